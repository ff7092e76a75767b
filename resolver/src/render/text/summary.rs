//! Pure. Renders the result on one line, for conditions, Events and messages: the state, the first hint, and where to
//! read the rest.
//!
//! It does not depend on a clock: a status is not written again only because a list was read again.

use super::blockers::but_clause;
use super::builder::gave_up;
use super::solved::{blocking_clauses, deploy_blocker, headline, newest};
use super::unsolvable::unsolvable_headline;
use super::{hints, why_not_release};
use crate::explanation::{
    Blocker, Conflict, Explanation, Hint, NewerPaper, Pinned, ReleaseState, SharedVersion, SolvedExplanation,
    Unanswerable, WhyNot, WhyNotRelease,
};
use crate::model::untrusted_text::sanitize_line;
use crate::model::unusable::passes_by_itself;
use crate::model::version::Minecraft;
use crate::render::phrases::{
    UNVERIFIED, date, last_release_at, list, named, nearest_are, paper, sentence, short_name,
};
use crate::render::short;

/// Limit of bytes in a summary with names of usual length: the maximum for a message about a server.
pub const MAX_SUMMARY_LENGTH: usize = 512;

/// The content of a summary. Names that are left out are counted.
#[derive(Clone, Copy)]
struct Size {
    names: usize,
    hint: bool,
}

/// The first size that fits is used.
const SIZES: [Size; 4] = [
    Size { names: 3, hint: true },
    Size { names: 2, hint: true },
    Size { names: 1, hint: true },
    Size { names: 1, hint: false },
];

impl Explanation {
    /// The result on one line of complete sentences, at most [`MAX_SUMMARY_LENGTH`] bytes unless the names alone are
    /// longer.
    pub fn summary(&self) -> String {
        self.fitting_summary().1
    }

    /// The sentence of the [summary](Self::summary) about the next newer Paper version, if that waits for an action: on
    /// a pin, a plugin, a file or an image.
    ///
    /// `None` if no newer version is known, if it will be used automatically, or if its blockers are unknown. Also
    /// `None` if the whole version set is stopped for another reason.
    pub fn blocked_paper_sentence(&self) -> Option<String> {
        let Self::Solved(solved) = self else { return None };
        let newer = solved.newer_paper.first().filter(|_| solved.deploy_blocker().is_none())?;
        let no_blocker = newer.blocked_by.is_empty() && newer.shared_versions.is_empty() && newer.pinned.is_none();
        let needs_no_action = no_blocker && passes_by_itself(newer.unusable.as_ref());
        let is_held = newer.gave_up.is_none() && !needs_no_action;
        is_held.then(|| sanitize_line(&blocking_reasons(solved, newer, self.fitting_summary().0)).into_owned())
    }

    fn fitting_summary(&self) -> (Size, String) {
        let of_size = |size| (size, sanitize_line(&self.summary_of_size(size)).into_owned());
        let shortest = || of_size(SIZES[SIZES.len() - 1]);
        SIZES.into_iter().map(of_size).find(|(_, line)| line.len() <= MAX_SUMMARY_LENGTH).unwrap_or_else(shortest)
    }

    fn summary_of_size(&self, size: Size) -> String {
        match self {
            Self::Solved(solved) => solved_summary(solved, size),
            Self::Impossible(impossible) => conflict_summary(impossible, size),
            Self::WhyNot(why) => why_not(why, size),
            Self::WhyNotRelease(why) => why_not_release(why, size),
            Self::Unanswerable(unanswerable) => unanswerable_summary(unanswerable, size),
            Self::GaveUp(given_up) => {
                let [text, fix] = gave_up(given_up);
                format!("{} {fix}", sentence(&text))
            }
        }
    }
}

fn solved_summary(solved: &SolvedExplanation, size: Size) -> String {
    let SolvedExplanation { server, software, paper: chosen, newer_paper, hints, .. } = solved;
    if let Some(stopped) = deploy_blocker(solved) {
        return format!("{stopped}{}", ending(&[], server, "", size));
    }
    let Some(newer) = newer_paper.first() else { return format!("{} {}", headline(solved), newest(solved)) };
    let runs = paper(*software, &chosen.minecraft, chosen.build);
    let text = format!("The newest for {} is {runs}. {}", short_name(server), blocking_reasons(solved, newer, size));
    format!("{text}{}", ending(hints, server, "", size))
}

/// The reasons against a newer Paper version.
fn blocking_reasons(solved: &SolvedExplanation, newer: &NewerPaper, size: Size) -> String {
    let blocked_by = blocker_list(&newer.blocked_by, &[], &newer.minecraft, size);
    let reasons = blocking_clauses(newer, blocked_by.as_deref(), size.names);
    format!("{} {}, out since {}, {reasons}.", solved.software, newer.minecraft, date(newer.since))
}

fn conflict_summary(impossible: &Conflict, size: Size) -> String {
    let Conflict {
        server,
        software,
        running,
        reasons,
        more,
        hints,
        more_hints: _,
        hints_left_out: _,
        waits: _,
        unread: _,
        lists_read_later: _,
    } = impossible;
    let keeps_running = running
        .as_ref()
        .map(|_| format!(", and {} keeps its running versions", short_name(server)))
        .unwrap_or_default();
    let facts: Vec<String> = reasons.iter().map(|reason| fact_with_note(short::reason(*software, reason))).collect();
    let facts = shortened_list(&facts, facts.len() + more, size.names);
    let text = sentence(&format!("{}{keeps_running}: {facts}.", unsolvable_headline(impossible)));
    format!("{text}{}", ending(hints, server, "", size))
}

fn why_not(why: &WhyNot, size: Size) -> String {
    let WhyNot { server, software, target, hints, .. } = why;
    let flag = if why.unreleased || !why.plugins.is_empty() { "target" } else { "why-not" };
    let ending = || ending(hints, server, &format!(" --{flag} {target}"), size);
    let instead: Vec<&str> = why.nearest.iter().map(Minecraft::as_str).collect();
    if !why.exists {
        let ending = if hints.is_empty() { String::new() } else { ending() };
        return format!("There is no {software} {target}{}.{ending}", nearest_are(&instead));
    }
    let name = short_name(server);
    if why.possible {
        return format!("{name} can run {software} {target}: there are no blockers.");
    }
    let blocked_by = blocker_list(&why.blockers, &why.shared_versions, target, size);
    let mut clauses = Vec::new();
    clauses.extend(why.unreleased.then(|| "there is no build of it yet".to_owned()));
    clauses.extend(why.unusable.as_ref().map(|reason| but_clause(reason) + &nearest_are(&instead)));
    clauses.extend(why.pinned.as_ref().map(|pin| format!("you pinned {software} {} (`spec.version`)", pin.version)));
    clauses.extend(blocked_by.map(|names| format!("it is blocked by {names}")));
    clauses.extend(why.shared_name.as_ref().map(short::shared_name));
    let nearest = why.nearest_possible.as_ref().filter(|nearest| nearest.minecraft != *target);
    let nearest = nearest.map(|nearest| format!(" The nearest available is {}.", named(nearest))).unwrap_or_default();
    let text = format!("{name} cannot run {software} {target} yet: {}.{nearest}", clauses.join(", and "));
    format!("{text}{}", ending())
}

fn why_not_release(why: &WhyNotRelease, size: Size) -> String {
    let WhyNotRelease { server, plugin, object, version, state, pinned, .. } = why;
    let text = match state {
        ReleaseState::Excluded { because } => {
            format!("{} does not get {plugin} {version}: {}.", short_name(server), short::why_older(because))
        }
        ReleaseState::Chosen
        | ReleaseState::Older
        | ReleaseState::NoReleaseMatches
        | ReleaseState::NoSuchRelease { nearest: _ } => format!("{}.", why_not_release::release_headline(why)),
    };
    let text = sentence(&text);
    let Some(pinned) = pinned else { return text };
    let then = match pinned {
        Pinned::Set { paper, changes: _ } => {
            format!("With it pinned, {} would run {}.", short_name(server), named(paper))
        }
        Pinned::NoSet { .. } => format!("With it pinned, there is no solution for {}.", short_name(server)),
    };
    format!("{text} {then}{}", ending(&[], server, &format!(" --why-not {object}={version}"), size))
}

fn unanswerable_summary(unanswerable: &Unanswerable, size: Size) -> String {
    let Unanswerable { server, fetch, unverified, unread, known: _ } = unanswerable;
    let mut missing: Vec<String> =
        unread.iter().map(|(project, because)| format!("{project} could not be read ({because})")).collect();
    missing.extend(fetch.iter().map(|key| format!("{} has not been fetched yet", key.to_display())));
    missing.extend(unverified.iter().map(|build| fact_with_note((named(build), UNVERIFIED.to_owned()))));
    let missing = shortened_list(&missing, missing.len(), size.names);
    format!("There is no result for {server}, because some metadata is missing: {missing}.")
}

/// A subject with the statement about it.
fn fact_with_note((subject, note): (String, String)) -> String {
    format!("{subject} ({note})")
}

/// The first `most` of them. `all` is the total number.
fn shortened_list(texts: &[String], all: usize, most: usize) -> String {
    let shown = texts.len().min(most);
    let mut texts = texts[..shown].to_vec();
    texts.extend((all > shown).then(|| format!("{} more", all - shown)));
    list(&texts, usize::MAX)
}

/// The blockers of a Paper version, each with its reason. `None` if there are none.
fn blocker_list(blockers: &[Blocker], shared: &[SharedVersion], on: &Minecraft, size: Size) -> Option<String> {
    let reason = |blocker: &Blocker| {
        let silent = blocker.last_release_at.map(|at| format!(", {}", last_release_at(at))).unwrap_or_default();
        fact_with_note((blocker.name.clone(), format!("{}{silent}", short::blocker_itself(blocker, Some(on)))))
    };
    let mut holding: Vec<String> = blockers.iter().map(reason).collect();
    holding.extend(shared.iter().map(|one| fact_with_note(short::shared_plugins(one))));
    (!holding.is_empty()).then(|| shortened_list(&holding, holding.len(), size.names))
}

/// The first hint, and where to read the full explanation.
fn ending(hints: &[Hint], server: &str, flags: &str, size: Size) -> String {
    let hint = hints.first().filter(|_| size.hint).map(|nearest| hints::hint_sentence(nearest, size.names));
    let hint = hint.map(|hint| format!(" {hint}")).unwrap_or_default();
    let arguments = match server.split_once('/') {
        Some((namespace, name)) => format!("server/{name} -n {namespace}"),
        None => format!("server/{server}"),
    };
    format!("{hint} In full: `resolver explain {arguments}{flags}`.")
}
