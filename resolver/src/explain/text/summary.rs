//! Pure. Renders the result on one line, for conditions, Events and messages: the state, the first hint, and where to
//! read the rest.
//!
//! It does not depend on a clock: a status is not written again only because a list was read again.

use super::super::phrases::{UNSEEN, date, list, nearest_are, sentence, silent_since};
use super::super::short_form;
use super::super::upstream_actions::may_pass;
use super::super::{
    Blocker, Conflict, Explanation, Hint, NewerPaper, OneVersion, Pinned, ReleaseState, SolvedExplanation,
    Unanswerable, WhyNot, WhyNotRelease,
};
use super::solved::{about_it, headline, kept_back, newest, stopped};
use super::unsolvable::cannot_be_met;
use super::{gave_up, hints, named, paper, short, why_not_release};
use crate::untrusted_text::visible;
use crate::version::Minecraft;

/// Limit of bytes in a summary with names of usual length: the maximum for a message about a server.
pub const LONGEST_SUMMARY: usize = 512;

/// The content of a summary. Names that are left out are counted.
#[derive(Clone, Copy)]
struct Size {
    names: usize,
    way_out: bool,
}

/// The first size that fits is used.
const SIZES: [Size; 4] = [
    Size { names: 3, way_out: true },
    Size { names: 2, way_out: true },
    Size { names: 1, way_out: true },
    Size { names: 1, way_out: false },
];

impl Explanation {
    /// The result on one line of complete sentences, at most [`LONGEST_SUMMARY`] bytes unless the names alone are
    /// longer.
    pub fn summary(&self) -> String {
        self.sized().1
    }

    /// The sentence of the [summary](Self::summary) about the next newer Paper version, if that waits for an action: on
    /// a pin, a plugin, a file or an image.
    ///
    /// `None` if no newer version is known, if it will be used automatically, or if its blockers are unknown. Also
    /// `None` if the whole version set is stopped for another reason.
    pub fn paper_held_back(&self) -> Option<String> {
        let Self::Solved(solved) = self else { return None };
        let newer = solved.newer_paper.first().filter(|_| solved.stopped_by().is_none())?;
        let nobody = newer.held_by.is_empty() && newer.one_version.is_empty() && newer.pinned.is_none();
        let comes_by_itself = nobody && may_pass(newer.unusable.as_ref());
        let is_held = newer.gave_up.is_none() && !comes_by_itself;
        is_held.then(|| visible(&waits(solved, newer, self.sized().0)).into_owned())
    }

    fn sized(&self) -> (Size, String) {
        let of_size = |size| (size, visible(&self.in_sentences(size)).into_owned());
        let shortest = || of_size(SIZES[SIZES.len() - 1]);
        SIZES.into_iter().map(of_size).find(|(_, line)| line.len() <= LONGEST_SUMMARY).unwrap_or_else(shortest)
    }

    fn in_sentences(&self, size: Size) -> String {
        match self {
            Self::Solved(solved) => yes(solved, size),
            Self::Impossible(impossible) => no(impossible, size),
            Self::WhyNot(why) => why_not(why, size),
            Self::WhyNotRelease(why) => why_not_release(why, size),
            Self::Unanswerable(unanswerable) => unknown(unanswerable, size),
            Self::GaveUp(given_up) => {
                let [what, fix] = gave_up(given_up);
                format!("{} {fix}", sentence(&what))
            }
        }
    }
}

fn yes(solved: &SolvedExplanation, size: Size) -> String {
    let SolvedExplanation { server, software, paper: chosen, newer_paper, hints, .. } = solved;
    if let Some(stopped) = stopped(solved) {
        return format!("{stopped}{}", ending(&[], server, "", size));
    }
    let Some(newer) = newer_paper.first() else { return format!("{} {}", headline(solved), newest(solved)) };
    let runs = paper(*software, &chosen.minecraft, chosen.build);
    let what = format!("The newest for {} is {runs}. {}", short(server), waits(solved, newer, size));
    format!("{what}{}", ending(hints, server, "", size))
}

/// The reasons against a newer Paper version.
fn waits(solved: &SolvedExplanation, newer: &NewerPaper, size: Size) -> String {
    let held_by = who_holds(&newer.held_by, &[], &newer.minecraft, size);
    let kept = kept_back(newer, held_by.as_deref(), size.names);
    format!("{} {}, out since {}, {kept}.", solved.software, newer.minecraft, date(newer.since))
}

fn no(impossible: &Conflict, size: Size) -> String {
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
        lists_read_later: _,
    } = impossible;
    let keeps = running.as_ref().map(|_| format!(", and {} keeps running as it is", short(server))).unwrap_or_default();
    let facts: Vec<String> = reasons.iter().map(|reason| fact(short_form::reason(*software, reason))).collect();
    let facts = list_of(&facts, facts.len() + more, size.names);
    let what = sentence(&format!("{}{keeps}: {facts}.", cannot_be_met(impossible)));
    format!("{what}{}", ending(hints, server, "", size))
}

fn why_not(why: &WhyNot, size: Size) -> String {
    let WhyNot { server, software, target, hints, .. } = why;
    let asked = if why.to_come || !why.plugins.is_empty() { "target" } else { "why-not" };
    let ending = || ending(hints, server, &format!(" --{asked} {target}"), size);
    let instead: Vec<&str> = why.nearest.iter().map(Minecraft::as_str).collect();
    if !why.exists {
        let ending = if hints.is_empty() { String::new() } else { ending() };
        return format!("There is no {software} {target}{}.{ending}", nearest_are(&instead));
    }
    let who = short(server);
    if why.possible {
        return format!("{who} can run {software} {target}: nothing speaks against it.");
    }
    let held_by = who_holds(&why.holders, &why.one_version, target, size);
    let mut clauses = Vec::new();
    clauses.extend(why.to_come.then(|| "there is no build of it yet".to_owned()));
    clauses.extend(why.unusable.as_ref().map(|reason| format!("it {}{}", about_it(reason), nearest_are(&instead))));
    clauses.extend(why.pinned.as_ref().map(|pin| format!("you pinned {software} {} (`spec.version`)", pin.version)));
    clauses.extend(held_by.map(|names| format!("it is held by {names}")));
    clauses.extend(why.shared_name.as_ref().map(short_form::shared_name));
    let nearest = why.nearest_possible.as_ref().filter(|nearest| nearest.minecraft != *target);
    let nearest =
        nearest.map(|nearest| format!(" The nearest you can have is {}.", named(nearest))).unwrap_or_default();
    let what = format!("{who} cannot run {software} {target} yet: {}.{nearest}", clauses.join("; "));
    format!("{what}{}", ending())
}

fn why_not_release(why: &WhyNotRelease, size: Size) -> String {
    let WhyNotRelease { server, plugin, object, version, state, pinned, .. } = why;
    let what = match state {
        ReleaseState::KeptOut { because } => {
            format!("{} does not get {plugin} {version}: {}.", short(server), short_form::because(because))
        }
        ReleaseState::Chosen
        | ReleaseState::Older
        | ReleaseState::NothingMeets
        | ReleaseState::NoSuchRelease { nearest: _ } => format!("{}.", why_not_release::what(why)),
    };
    let what = sentence(&what);
    let Some(pinned) = pinned else { return what };
    let then = match pinned {
        Pinned::Set { paper, changes: _ } => format!("With it pinned, {} would run {}.", short(server), named(paper)),
        Pinned::NoSet { .. } => format!("With it pinned, there is no set for {}.", short(server)),
    };
    format!("{what} {then}{}", ending(&[], server, &format!(" --why-not {object}={version}"), size))
}

fn unknown(unanswerable: &Unanswerable, size: Size) -> String {
    let Unanswerable { server, fetch, unseen, unread, known: _ } = unanswerable;
    let mut missing: Vec<String> =
        unread.iter().map(|(project, because)| format!("{project} could not be read ({because})")).collect();
    missing.extend(fetch.iter().map(|key| format!("{} has not been fetched yet", key.shown())));
    missing.extend(unseen.iter().map(|build| fact((named(build), UNSEEN.to_owned()))));
    let missing = list_of(&missing, missing.len(), size.names);
    format!("There is no answer for {server}, because some of what it needs is not known: {missing}.")
}

/// A subject with the statement about it.
fn fact((what, note): (String, String)) -> String {
    format!("{what} ({note})")
}

/// The first `most` of them. `all` is the total number.
fn list_of(texts: &[String], all: usize, most: usize) -> String {
    let shown = texts.len().min(most);
    let mut texts = texts[..shown].to_vec();
    texts.extend((all > shown).then(|| format!("{} more", all - shown)));
    list(&texts, usize::MAX)
}

/// The blockers of a Paper version, each with its reason. `None` if there are none.
fn who_holds(holders: &[Blocker], shared: &[OneVersion], on: &Minecraft, size: Size) -> Option<String> {
    let reason = |holder: &Blocker| {
        let silent = holder.silent_since.map(|at| format!(", {}", silent_since(at))).unwrap_or_default();
        fact((holder.name.clone(), format!("{}{silent}", short_form::holder_itself(holder, Some(on)))))
    };
    let mut holding: Vec<String> = holders.iter().map(reason).collect();
    holding.extend(shared.iter().map(|one| fact(short_form::shared(one))));
    (!holding.is_empty()).then(|| list_of(&holding, holding.len(), size.names))
}

/// The first hint, and where to read the full explanation.
fn ending(hints: &[Hint], server: &str, flags: &str, size: Size) -> String {
    let way_out = hints.first().filter(|_| size.way_out).map(|nearest| hints::in_short(nearest, size.names));
    let way_out = way_out.map(|way_out| format!(" {way_out}")).unwrap_or_default();
    let place = match server.split_once('/') {
        Some((namespace, name)) => format!("server/{name} -n {namespace}"),
        None => format!("server/{server}"),
    };
    format!("{way_out} In full: `resolver explain {place}{flags}`.")
}
