//! Pure. Renders the explanation as a diagram: chosen versions on the left, waiting ones on the right, and lines to
//! their blockers.
//!
//! The result is one SVG of bounded width for any number of servers, without scripts or external resources. The same
//! explanations produce the same bytes.

use super::phrases::UNSEEN;
use super::text::{named, paper, short};
use super::{Conflict, Explanation, Pinned, ReleaseState, Unanswerable, WhyNotRelease, short_form};
use crate::solve::BudgetExceeded;
use crate::version::Minecraft;

mod draw;
mod section;
mod solved;
#[cfg(test)]
mod tests;
mod xml;

use section::{DiagramBox, Kind, Section};

/// Limit of servers in one diagram. The number of further ones is stated.
const SERVERS: usize = 20;

/// Renders the diagram of these explanations. `supposed` describes the assumptions that differ from reality.
pub fn render(explanations: &[Explanation], supposed: &[String]) -> String {
    let sections: Vec<Section> = explanations.iter().take(SERVERS).map(section).collect();
    let mut heads = supposed.to_vec();
    if explanations.len() > SERVERS {
        heads.push(format!("{SERVERS} of {} servers; the others are not drawn", explanations.len()));
    }
    draw::picture(&sections, &heads)
}

fn section(explanation: &Explanation) -> Section {
    match explanation {
        Explanation::Solved(solved) => solved::solved(solved),
        Explanation::WhyNot(why) => solved::why_not(why),
        Explanation::WhyNotRelease(why) => release(why),
        Explanation::Impossible(no) => impossible(no),
        Explanation::Unanswerable(unknown) => unanswerable(unknown),
        Explanation::GaveUp(gave_up) => given_up(gave_up),
    }
}

fn impossible(no: &Conflict) -> Section {
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
        lists_read_later: _,
    } = no;
    let mut section = Section::titled(format!("nothing meets what {} asks for", short(server)));
    section.left_head = "what rules it out";
    section.left = (reasons.iter().map(|reason| short_form::reason(*software, reason)))
        .map(|(name, note)| DiagramBox::new(Kind::Holds, name, note))
        .collect();
    section.left_unnamed = *more;
    if let Some(running) = running {
        section.right_head = "goes on running";
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
    let mut section = Section::titled(format!("{} {gets} {plugin} {version}", short(server)));
    let note = match state {
        ReleaseState::Chosen => "in the set that is chosen".to_owned(),
        ReleaseState::Older => "a newer one goes with the rest".to_owned(),
        ReleaseState::KeptOut { because } => short_form::because(because),
        ReleaseState::NothingMeets => "nothing meets what is asked for".to_owned(),
        ReleaseState::NoSuchRelease { nearest: _ } => "there is no such release".to_owned(),
    };
    section.left_head = "chosen";
    section.left.extend(paper.iter().map(|paper| DiagramBox::new(Kind::Chosen, named(paper), "")));
    section.left.extend(instead.iter().map(|instead| DiagramBox::new(Kind::Chosen, format!("{plugin} {instead}"), "")));
    section.right_head = "asked about";
    section.right.push(DiagramBox::new(Kind::Waits, format!("{plugin} {version}"), note));
    section.right.extend(pinned.iter().map(|pinned| match pinned {
        Pinned::Set { paper, changes: _ } => DiagramBox::new(Kind::Chosen, named(paper), "with it pinned"),
        Pinned::NoSet { answer: _ } => DiagramBox::new(Kind::Holds, "no set", "with it pinned"),
    }));
    section
}

fn given_up(gave_up: &BudgetExceeded) -> Section {
    let BudgetExceeded { steps: _, limit: _, clashing } = gave_up;
    let mut section = Section::titled(short_form::gave_up(&BudgetExceeded { clashing: Vec::new(), ..gave_up.clone() }));
    if !clashing.is_empty() {
        section.left_head = "kept clashing";
        section.left = clashing.iter().map(|name| DiagramBox::new(Kind::Holds, name, "")).collect();
    }
    section
}

fn unanswerable(unknown: &Unanswerable) -> Section {
    let Unanswerable { server, fetch, unseen, unread, known: _ } = unknown;
    let mut section = Section::titled(format!("no answer for {}: some of what it needs is not known", short(server)));
    section.left_head = "not known";
    section.left = unread.iter().map(|(project, because)| DiagramBox::new(Kind::Holds, project, because)).collect();
    section.left.extend(fetch.iter().map(|key| DiagramBox::new(Kind::Holds, key.shown(), "has not been fetched yet")));
    section.left.extend(unseen.iter().map(|build| DiagramBox::new(Kind::Holds, named(build), UNSEEN)));
    section
}
