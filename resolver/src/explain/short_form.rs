//! Pure. Renders reasons as a few words, for table columns. The sentences are in `phrases`.

use super::phrases::{build_channel, channel, date, list, names, spans};
use super::text::paper;
use super::{Blocker, ListedRelease, OneVersion, Reason, SharedName, UnmetNeed, WhyOlder, name_conflicts};
use crate::software::Software;
use crate::solve::{BudgetExceeded, Limit};
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// The reason why a release may not be used.
pub fn unusable(reason: &Unusable) -> String {
    match reason {
        Unusable::Channel { is, .. } => format!("published as {}", channel(*is)),
        Unusable::HeldBack { ripe_at, .. } => format!("held back until {}", date(*ripe_at)),
        Unusable::HeldBackTogether { ripe_at, with, .. } => format!("held back with {with} until {}", date(*ripe_at)),
        Unusable::NeedsProposed { projects } => format!("needs {}, which nobody asks for", list(&names(projects), 3)),
        Unusable::Unlisted => "lists no Minecraft version".to_owned(),
        Unusable::Older { than } => format!("older than {than}, which runs"),
        Unusable::Held { at, .. } => format!("you hold it at {at}"),
        Unusable::Superseded { by } => format!("replaced by {by}"),
        Unusable::NoFile => "no file at its source".to_owned(),
        Unusable::NoSuchJar { jar, has: _ } => format!("no file `{jar}`"),
        Unusable::SeveralJars { jar, several: _ } => format!("several files `{jar}`"),
        Unusable::NoChecksum => "no checksum at its source".to_owned(),
        Unusable::WrongSoftware { loaders, software: _ } => format!("made for {}", list(loaders, 2)),
        Unusable::SoftwareUnsaid { software } => format!("says nothing of {software}"),
        Unusable::ApiVersion { needs } => format!("refuses servers below {needs}"),
        Unusable::NeedsUnread { project, .. } => format!("needs {project}, which could not be read"),
        Unusable::NeedsForbidden { project } => format!("needs {project}, which nobody asks for"),
        Unusable::NeedsUnknown { plugin, .. } | Unusable::NeedsMissing { plugin } => {
            format!("needs {plugin}, which is not there")
        }
        Unusable::BuildChannel { best, .. } => format!("only {} builds yet", build_channel(*best)),
        Unusable::NoBuild { .. } => "no such build".to_owned(),
        Unusable::Preview => "a preview".to_owned(),
        Unusable::BelowFloor { .. } => "older than the world".to_owned(),
        Unusable::Unmanaged { files } => format!("waits for {}, not managed here", list(files, 2)),
        Unusable::UnmanagedRefused { file, because: _ } => format!("would not load {file}, not managed here"),
        Unusable::BesideFile { file, .. } => format!("does not go with {file}, not managed here"),
        Unusable::ImageCarries { minecraft, build, image: _ } => format!("your image carries {minecraft}-{build}"),
        Unusable::JavaTooOld { needs, has, image: _ } => format!("needs Java {needs}, your image has {has}"),
        Unusable::JavaHeld { needs, has, policy: _ } => format!("needs Java {needs}, the image has {has}"),
        Unusable::NoImage { java } => format!("no image with Java {java}"),
    }
}

/// The reason why a newer release was not chosen.
pub fn because(because: &WhyOlder) -> String {
    match because {
        WhyOlder::Unusable { unusable: reason } => unusable(reason),
        WhyOlder::NotListed { .. } => "not listed for this Paper".to_owned(),
        WhyOlder::Pinned => "you pinned another".to_owned(),
        WhyOlder::Needs { needs } => format!("needs {}", list(needs, 3)),
        WhyOlder::OneVersion { one_version: which } => one_version(which),
        WhyOlder::Others { with, facts: _ } => format!("does not go with {}", list(with, 3)),
    }
}

/// States that a search was given up, and which plugins made it hard.
pub fn gave_up(gave_up: &BudgetExceeded) -> String {
    format!("no answer was found {}", within(gave_up))
}

/// States that the blockers of a Paper version are unknown because the search was given up.
pub fn holders_unknown(gave_up: &BudgetExceeded) -> String {
    format!("who holds it was not found out {}", within(gave_up))
}

/// The resources that a search used, and the plugins that made it hard.
fn within(gave_up: &BudgetExceeded) -> String {
    let BudgetExceeded { steps, limit, clashing } = gave_up;
    let within = match limit {
        Limit::Steps => format!("within {steps} steps"),
        Limit::Memory => format!("in the memory that a question may take, after {steps} steps"),
        // The number of steps at the time limit differs between runs, and a condition would change with it.
        Limit::Time => "in the time that a question may take".to_owned(),
    };
    let clashing = match clashing.as_slice() {
        [] => String::new(),
        names => format!("; {} kept clashing", list(names, names.len())),
    };
    format!("{within}{clashing}")
}

/// States that plugins are one version on several servers.
pub fn one_version(one_version: &OneVersion) -> String {
    let (plugins, what) = shared(one_version);
    format!("{plugins}: {what}")
}

/// Plugins that are one version on several servers, and that fact.
pub(super) fn shared(one_version: &OneVersion) -> (String, String) {
    let names: Vec<&str> = one_version.names().collect();
    (list(&names, 3), "one version on several servers".to_owned())
}

/// The blockers: `held by A, B and 2 more`.
pub fn held_by<S: AsRef<str>>(names: &[S]) -> String {
    format!("held by {}", list(names, 3))
}

/// States that the operator does not deploy a version set because these files share a plugin name, and the remedy.
pub fn files_of_one_name(name: &str, files: &[String]) -> String {
    format!("{}: take one of them away", name_conflicts::in_words(name, files))
}

/// The same for the version set of a requested Paper version.
pub(crate) fn shared_name(SharedName { name, files }: &SharedName) -> String {
    files_of_one_name(name, files)
}

/// The reason why a plugin is not ready, from its own point of view, and the plugins that need it.
pub fn holder(holder: &Blocker) -> String {
    let why = holder_itself(holder, None);
    match holder.needed_by.as_slice() {
        names @ [_, ..] if holder.waits_for_a_list() => format!("{why} (needed by {})", list(names, 3)),
        [..] => why,
    }
}

/// The reason without the dependents, for this Minecraft version if it is known.
pub(super) fn holder_itself(holder: &Blocker, target: Option<&Minecraft>) -> String {
    if let Some(pinned) = &holder.pinned {
        let missing = if holder.nearest.is_empty() { "" } else { ", which does not exist" };
        return format!("you pinned {pinned}{missing}");
    }
    if let Some(nearly) = &holder.nearly {
        return format!("{} is listed: {}", nearly.version, unusable(&nearly.unusable));
    }
    if let [UnmetNeed { name, release: Some(release), unusable: reason, object: _ }] = holder.lacks.as_slice() {
        let why = reason.as_ref().map_or_else(|| listing(Some(release), target), unusable);
        return format!("would take {name} {}: {why}", release.version);
    }
    let refuses = holder.newest.as_ref().is_some_and(|newest| newest.refuses.is_some());
    match holder.together_with.as_slice() {
        names @ [_, ..] if !refuses => format!("does not go with {}", list(names, 3)),
        [..] => listing(holder.newest.as_ref(), target),
    }
}

/// Describes a list that does not name `target`.
fn listing(newest: Option<&ListedRelease>, target: Option<&Minecraft>) -> String {
    let Some(newest) = newest else { return "no release that may be used".to_owned() };
    match (&newest.refuses, &newest.sibling, &newest.up_to) {
        (Some(refuses), _, _) => unusable(refuses),
        (None, _, _) if newest.lost => "its page has lost what runs".to_owned(),
        (None, _, _) if newest.overridden => "your compatibilityOverride takes it away".to_owned(),
        (None, Some(sibling), _) => format!("listed for its sibling {sibling}"),
        (None, None, Some(up_to)) if target.is_some_and(|target| target <= up_to) => "not listed for it".to_owned(),
        (None, None, Some(up_to)) => format!("listed up to {up_to}"),
        (None, None, None) => "no list".to_owned(),
    }
}

/// A fact of an unsolvable request: its subject, and the statement about it.
pub(super) fn reason(software: Software, reason: &Reason) -> (String, String) {
    match reason {
        Reason::PaperPinned { version, build: None } => (format!("{software} {version}"), "you pinned it".to_owned()),
        Reason::PaperPinned { version, build: Some(build) } => {
            (paper(software, version, *build), "you pinned it".to_owned())
        }
        Reason::NoSuchPaper { version, nearest: _ } => (format!("{software} {version}"), "does not exist".to_owned()),
        Reason::NoPaper => (software.to_string(), "there is none to choose from".to_owned()),
        Reason::PaperUnusable { papers, unusable: why } => (format!("{software} {}", spans(papers)), unusable(why)),
        Reason::NeededByFiles { plugin, files } => (list(files, 2), format!("needs {plugin}; not managed here")),
        Reason::NoSuchRelease { plugin, version, object: _, nearest: _ } => {
            (format!("{plugin} {version}"), "does not exist".to_owned())
        }
        Reason::PluginPinned { plugin, version, papers, object: _ } if papers.is_empty() => {
            (format!("{plugin} {version}"), "you pinned it".to_owned())
        }
        Reason::PluginPinned { plugin, version, papers, object: _ } => {
            (format!("{plugin} {version}"), format!("you pinned it; listed for {}", spans(papers)))
        }
        Reason::NotListed { plugin, newest, papers, object: _, both: _, read_at: _ } => {
            let name = newest.as_ref().map_or_else(|| plugin.clone(), |newest| format!("{plugin} {}", newest.version));
            (name, listing(newest.as_ref(), papers.first().map(|span| &span.from)))
        }
        Reason::ReleasesUnusable { plugin, version, unusable: why, .. } => {
            (format!("{plugin} {version}"), unusable(why))
        }
        Reason::Needs { plugin, version, needs, at_least, at_most, older: _, guessed: _, optional: _, fact: _ } => {
            let which = match (at_least, at_most) {
                (Some(least), Some(most)) if least == most => format!("{needs} {least}"),
                (Some(least), Some(most)) => format!("{needs} {least} to {most}"),
                (Some(least), None) => format!("{needs} {least} or newer"),
                (None, Some(most)) => format!("{needs} {most} or older"),
                (None, None) => format!("{needs}, which is not to be had"),
            };
            (format!("{plugin} {version}"), format!("needs {which}"))
        }
        Reason::Excludes { plugin, version, other, releases } => {
            let which = if releases.is_empty() { String::new() } else { format!(" {}", list(releases, 2)) };
            (format!("{plugin} {version}"), format!("excludes {other}{which}"))
        }
        Reason::OnlyThese { plugin, papers, oldest, newest } => {
            let which = if oldest == newest { oldest.clone() } else { format!("{oldest} to {newest}") };
            (format!("{plugin} {which}"), format!("only these on {}", spans(papers)))
        }
        Reason::NoRelease { plugin, object: _, papers: _ } => {
            (plugin.clone(), format!("has no release for {software}"))
        }
        Reason::OneVersion { one_version } => shared(one_version),
    }
}
