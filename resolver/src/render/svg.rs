//! Pure. Renders the explanation as a diagram: chosen versions on the left, waiting ones on the right, and lines to
//! their blockers.
//!
//! The result is one SVG of bounded width for any number of servers, without scripts or external resources. The same
//! explanations produce the same bytes.

use super::phrases::{UNVERIFIED, named, paper, short_name};
use super::short;
use crate::explanation::{Conflict, Explanation, Pinned, ReleaseState, Unanswerable, WhyNotRelease};
use crate::model::budget::BudgetExceeded;
use crate::model::version::Minecraft;

mod draw;
mod section;
mod solved;
#[cfg(test)]
mod tests;
mod xml;

use section::{DiagramBox, Kind, Section};

/// Limit of servers in one diagram. The number of further ones is stated.
const MAX_SERVERS: usize = 20;

/// Renders the diagram of these explanations. `what_if` describes the assumptions that differ from reality.
pub fn render(explanations: &[Explanation], what_if: &[String]) -> String {
    let sections: Vec<Section> = explanations.iter().take(MAX_SERVERS).map(section).collect();
    let mut heads = what_if.to_vec();
    if explanations.len() > MAX_SERVERS {
        heads.push(format!("{MAX_SERVERS} of {} servers, the others are not drawn", explanations.len()));
    }
    draw::draw_diagram(&sections, &heads)
}

fn section(explanation: &Explanation) -> Section {
    match explanation {
        Explanation::Solved(solved) => solved::solved(solved),
        Explanation::WhyNot(why) => solved::why_not(why),
        Explanation::WhyNotRelease(why) => release(why),
        Explanation::Impossible(unsolvable) => conflict(unsolvable),
        Explanation::Unanswerable(unknown) => unanswerable(unknown),
        Explanation::GaveUp(gave_up) => given_up(gave_up),
    }
}

fn conflict(conflict: &Conflict) -> Section {
    let Conflict {
        server,
        software,
        running,
        reasons,
        more,
        hints: _,
        more_hints: _,
        hints_left_out: _,
        waits: _,
        unread: _,
        lists_read_later: _,
    } = conflict;
    let mut section = Section::with_title(format!("the request of {} cannot be met", short_name(server)));
    section.left_head = "blocked by";
    section.left = (reasons.iter().map(|reason| short::reason(*software, reason)))
        .map(|(name, note)| DiagramBox::new(Kind::Blocks, name, note))
        .collect();
    section.left_unnamed = *more;
    if let Some(running) = running {
        section.right_head = "keeps running";
        section.right.push(DiagramBox::new(Kind::Chosen, named(&running.paper), ""));
        let plugins = running.plugins.iter();
        section
            .right
            .extend(plugins.map(|(name, version)| DiagramBox::new(Kind::Chosen, format!("{name} {version}"), "")));
    }
    section
}

fn release(why: &WhyNotRelease) -> Section {
    let WhyNotRelease { server, plugin, version, state, paper, instead, pinned, .. } = why;
    let gets = if *state == ReleaseState::Chosen { "gets" } else { "does not get" };
    let mut section = Section::with_title(format!("{} {gets} {plugin} {version}", short_name(server)));
    let note = match state {
        ReleaseState::Chosen => "in the chosen version set".to_owned(),
        ReleaseState::Older => "a newer one fits the rest".to_owned(),
        ReleaseState::Excluded { because } => short::why_older(because),
        ReleaseState::NoReleaseMatches => "the request cannot be met".to_owned(),
        ReleaseState::NoSuchRelease { nearest: _ } => "there is no such release".to_owned(),
    };
    section.left_head = "chosen";
    section.left.extend(paper.iter().map(|paper| DiagramBox::new(Kind::Chosen, named(paper), "")));
    section.left.extend(instead.iter().map(|instead| DiagramBox::new(Kind::Chosen, format!("{plugin} {instead}"), "")));
    section.right_head = "requested";
    section.right.push(DiagramBox::new(Kind::Waits, format!("{plugin} {version}"), note));
    section.right.extend(pinned.iter().map(|pinned| match pinned {
        Pinned::Set { paper, changes: _ } => DiagramBox::new(Kind::Chosen, named(paper), "with it pinned"),
        Pinned::NoSet { answer: _ } => DiagramBox::new(Kind::Blocks, "no solution", "with it pinned"),
    }));
    section
}

fn given_up(gave_up: &BudgetExceeded) -> Section {
    let BudgetExceeded { steps: _, limit: _, clashing } = gave_up;
    let mut section = Section::with_title(short::gave_up(&BudgetExceeded { clashing: Vec::new(), ..gave_up.clone() }));
    if !clashing.is_empty() {
        section.left_head = "conflicting";
        section.left = clashing.iter().map(|name| DiagramBox::new(Kind::Blocks, name, "")).collect();
    }
    section
}

fn unanswerable(unknown: &Unanswerable) -> Section {
    let Unanswerable { server, fetch, unverified, unread, known: _ } = unknown;
    let mut section = Section::with_title(format!("no result for {}: some metadata is missing", short_name(server)));
    section.left_head = "missing";
    section.left = unread.iter().map(|(project, because)| DiagramBox::new(Kind::Blocks, project, because)).collect();
    section
        .left
        .extend(fetch.iter().map(|key| DiagramBox::new(Kind::Blocks, key.to_display(), "has not been fetched yet")));
    section.left.extend(unverified.iter().map(|build| DiagramBox::new(Kind::Blocks, named(build), UNVERIFIED)));
    section
}
