//! Pure. Builds the lines of a text answer.

use jiff::Timestamp;

use crate::explanation::{LastRead, Unanswerable, UnreadKind, UnreadPart};
use crate::model::budget::BudgetExceeded;
use crate::model::software::Software;
use crate::model::untrusted_text::sanitize_line;
use crate::render::phrases::{UNVERIFIED, list, named, read_time};
use crate::render::short;

/// Limit of listed known items of an unanswerable request. Further ones are counted.
const MAX_KNOWN: usize = 5;

/// The text so far.
pub(super) struct TextBuilder {
    pub(super) text: String,
    pub(super) now: Timestamp,
    /// The server software.
    pub(super) software: Software,
}

impl TextBuilder {
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(sanitize_line(line).trim_end());
        self.text.push('\n');
    }

    pub(super) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Two columns, indented. The second may have several lines.
    pub(super) fn table(&mut self, rows: &[(String, Vec<String>)]) {
        let width = rows.iter().map(|(head, _)| head.chars().count()).max().unwrap_or(0);
        for (head, lines) in rows {
            for (at, line) in lines.iter().enumerate() {
                let head = if at == 0 { head.as_str() } else { "" };
                let row = format!("  {head:width$}  {line}");
                self.line(&row);
            }
        }
    }

    /// The parts that could not be read, with the reasons.
    pub(super) fn unread(&mut self, parts: &[UnreadPart]) {
        if parts.is_empty() {
            return;
        }
        self.gap();
        self.line("could not be read");
        let row = |UnreadPart { kind, what, because }: &UnreadPart| {
            let effect = match kind {
                UnreadKind::RunningPlugin => ": it stays at this version until its page can be read",
                UnreadKind::NewPlugin => ": it is installed after its page can be read",
                UnreadKind::Builds | UnreadKind::Release | UnreadKind::Image => "",
            };
            (what.clone(), vec![format!("{because}{effect}")])
        };
        let rows: Vec<_> = parts.iter().map(row).collect();
        self.table(&rows);
    }

    pub(super) fn lists_read_later(&mut self, read_at: Option<Timestamp>) {
        if let Some(read_at) = read_at {
            self.gap();
            let day = read_at.to_zoned(jiff::tz::TimeZone::UTC).date();
            self.line(&format!("version lists as of {day}: older lists are not recorded"));
        }
    }

    pub(super) fn unanswerable(&mut self, unanswerable: &Unanswerable) {
        let Unanswerable { server, fetch, unverified, unread, known } = unanswerable;
        self.line(&format!("no result for {server}: some metadata is missing."));
        for (project, because) in unread {
            self.line(&format!("  {project}  could not be read: {because}"));
        }
        for key in fetch {
            self.line(&format!("  {}  has not been fetched yet", key.to_display()));
        }
        for build in unverified {
            self.line(&format!("  {}  {UNVERIFIED}: fetch the catalog once with network access", named(build)));
        }
        if !known.is_empty() {
            let describe =
                |LastRead { what, read_at }: &LastRead| format!("{what} ({})", read_time(*read_at, self.now));
            let known: Vec<String> = known.iter().map(describe).collect();
            self.line(&format!("Known: {}.", list(&known, MAX_KNOWN)));
        }
    }
}

/// States that a search was given up, and the remedy.
pub(super) fn gave_up(gave_up: &BudgetExceeded) -> [String; 2] {
    let plugins = match gave_up.clashing.as_slice() {
        [] => "a plugin or the server",
        [_] => "it",
        _ => "one of them",
    };
    let field = if gave_up.clashing.is_empty() { "`spec.version`" } else { "`spec.version` on its Plugin" };
    [
        format!("{}. A solution may still exist.", short::gave_up(gave_up)),
        format!("Pin {plugins} ({field}) to make the search smaller, and please report it."),
    ]
}
