//! Pure. Defines the part of the diagram for one server: boxes in two columns, and lines between them.

use std::collections::BTreeSet;

/// Limit of boxes in a column.
pub(super) const MAX_BOXES: usize = 14;

/// The part of the diagram for one server.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) title: String,
    /// The heading of the left column.
    pub(super) left_head: &'static str,
    pub(super) right_head: &'static str,
    pub(super) left: Vec<DiagramBox>,
    pub(super) right: Vec<DiagramBox>,
    /// The number of further items in the left column without names.
    pub(super) left_unnamed: usize,
    /// Lines from waiting items (right) to their blockers (left).
    pub(super) waits: BTreeSet<(usize, usize)>,
    /// Lines from items to their dependencies (both left).
    pub(super) needs: BTreeSet<(usize, usize)>,
}

/// A box with a name and a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiagramBox {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) note: String,
}

/// The meaning of a box. Each kind has its own style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Chosen,
    /// It blocks another item.
    Blocks,
    Waits,
    /// Represents the items that are not drawn.
    More,
}

impl DiagramBox {
    pub(super) fn new(kind: Kind, name: impl Into<String>, note: impl Into<String>) -> Self {
        Self { kind, name: name.into(), note: note.into() }
    }

    /// As text: `Paper 1.21.11 (out since 9 December 2025)`.
    pub(super) fn description(&self) -> String {
        if self.note.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.note) }
    }
}

impl Section {
    pub(super) fn with_title(title: String) -> Self {
        Self { title, ..Self::default() }
    }

    /// The same section with at most [`MAX_BOXES`] boxes in a column. Boxes with lines are kept first, then the order
    /// counts.
    pub(super) fn truncated(&self) -> Self {
        let at_left = self.waits.iter().map(|wait| wait.1).chain(self.needs.iter().flat_map(|need| [need.0, need.1]));
        let left = VisibleBoxes::new(self.left.len(), self.left_unnamed, &at_left.collect());
        let right = VisibleBoxes::new(self.right.len(), 0, &self.waits.iter().map(|wait| wait.0).collect());
        let needs = self.needs.iter().map(|need| (left.position(need.0), left.position(need.1)));
        Self {
            title: self.title.clone(),
            left_head: self.left_head,
            right_head: self.right_head,
            left: left.boxes(&self.left),
            right: right.boxes(&self.right),
            left_unnamed: 0,
            waits: self.waits.iter().map(|wait| (right.position(wait.0), left.position(wait.1))).collect(),
            needs: needs.filter(|(from, to)| from != to).collect(),
        }
    }
}

/// The boxes of a column that are drawn.
struct VisibleBoxes {
    positions: Vec<usize>,
    more: usize,
}

impl VisibleBoxes {
    fn new(count: usize, unnamed: usize, linked: &BTreeSet<usize>) -> Self {
        let room = if count + unnamed > MAX_BOXES || unnamed > 0 { MAX_BOXES - 1 } else { MAX_BOXES };
        let mut positions: Vec<usize> = (0..count).collect();
        positions.sort_by_key(|position| (!linked.contains(position), *position));
        positions.truncate(room);
        positions.sort_unstable();
        let more = count - positions.len() + unnamed;
        Self { positions, more }
    }

    /// The position of a box. The last position stands for all boxes that are not drawn.
    fn position(&self, of: usize) -> usize {
        self.positions.binary_search(&of).unwrap_or(self.positions.len())
    }

    fn boxes(&self, boxes: &[DiagramBox]) -> Vec<DiagramBox> {
        let mut visible: Vec<DiagramBox> = self.positions.iter().map(|position| boxes[*position].clone()).collect();
        if self.more > 0 {
            visible.push(DiagramBox::new(Kind::More, format!("and {} more", self.more), ""));
        }
        visible
    }
}
