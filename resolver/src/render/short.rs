//! Pure. Renders reasons as a few words, for table columns. The sentences are in `phrases`.

use super::phrases::{build_channel, channel, date, list, names, paper, spans, stated_api_version};
use crate::explanation::{Blocker, ListedRelease, Reason, SharedName, SharedVersion, UnmetNeed, WhyOlder};
use crate::model::budget::{BudgetExceeded, Limit};
use crate::model::software::Software;
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

/// The reason why a release may not be used.
pub fn unusable(reason: &Unusable) -> String {
    match reason {
        Unusable::Channel { is, .. } => format!("published as {}", channel(*is)),
        Unusable::Delayed { eligible_at, .. } => format!("eligible from {}", date(*eligible_at)),
        Unusable::DelayedWithCompanion { eligible_at, with, .. } => {
            format!("eligible with {with} from {}", date(*eligible_at))
        }
        Unusable::NeedsProposed { projects } => {
            format!("needs {}, which no Plugin requests", list(&names(projects), 3))
        }
        Unusable::Unlisted => "lists no Minecraft version".to_owned(),
        Unusable::Older { than } => format!("older than {than}, which runs"),
        Unusable::OtherProject { project, .. } => format!("{} means another project now", project.to_display()),
        Unusable::Held { at, .. } => format!("you hold it at {at}"),
        Unusable::Superseded { by } => format!("replaced by {by}"),
        Unusable::NoFile => "no file at its source".to_owned(),
        Unusable::NoJar { file: _ } => "no JAR at its source".to_owned(),
        Unusable::NoSuchJar { jar, has: _ } => format!("no file `{jar}`"),
        Unusable::SeveralJars { jar, several: _ } => format!("several files `{jar}`"),
        Unusable::NoChecksum => "no checksum at its source".to_owned(),
        Unusable::WrongSoftware { loaders, software: _ } => format!("made for {}", list(loaders, 2)),
        Unusable::SoftwareUnsaid { software } => format!("not known to run on {software}"),
        Unusable::ApiVersion { needs } => format!("refuses servers below {needs}"),
        Unusable::ApiVersionRefused { states, .. } => format!("refused for its {}", stated_api_version(states)),
        Unusable::DescriptorRefused { .. } => "refused by Paper for its descriptor".to_owned(),
        Unusable::NeedsUnread { project, .. } => format!("needs {project}, which could not be read"),
        Unusable::NeedsForbidden { project } => format!("needs {project}, which no Plugin requests"),
        Unusable::NeedsUnknown { plugin, .. } | Unusable::NeedsMissing { plugin } => {
            format!("needs {plugin}, which is not installed")
        }
        Unusable::BuildChannel { best, .. } => format!("only {} builds yet", build_channel(*best)),
        Unusable::NoBuild { .. } => "no such build".to_owned(),
        Unusable::Preview => "a preview".to_owned(),
        Unusable::BelowFloor { .. } => "older than the world".to_owned(),
        Unusable::Unmanaged { files } => format!("waits for the unmanaged {}", list(files, 2)),
        Unusable::UnmanagedRefused { file, because: _ } => format!("would not load the unmanaged {file}"),
        Unusable::BesideFile { file, .. } => format!("conflicts with the unmanaged {file}"),
        Unusable::ImageCarries { minecraft, build, image: _ } => format!("your image has {minecraft}-{build}"),
        Unusable::JavaTooOld { needs, has, image: _ } => format!("needs Java {needs}, your image has {has}"),
        Unusable::JavaHeld { needs, has, policy: _ } => format!("needs Java {needs}, the image has {has}"),
        Unusable::NoImage { java } => format!("no image with Java {java}"),
    }
}

/// The reason why a newer release was not chosen.
pub fn why_older(because: &WhyOlder) -> String {
    match because {
        WhyOlder::Unusable { unusable: reason } => unusable(reason),
        WhyOlder::NotListed { .. } => "not listed for this Paper".to_owned(),
        WhyOlder::Pinned => "you pinned another".to_owned(),
        WhyOlder::Needs { needs } => format!("needs {}", list(needs, 3)),
        WhyOlder::SharedVersion { shared_version: which } => shared_version(which),
        WhyOlder::Others { with, facts: _ } => format!("conflicts with {}", list(with, 3)),
    }
}

/// States that a search was given up, and which plugins made it hard.
pub fn gave_up(gave_up: &BudgetExceeded) -> String {
    format!("no solution was found {}", used_budget(gave_up))
}

/// States that the blockers of a Paper version are unknown because the search was given up.
pub fn blockers_unknown(gave_up: &BudgetExceeded) -> String {
    format!("its blockers were not determined {}", used_budget(gave_up))
}

/// The resources that a search used, and the plugins that made it hard.
fn used_budget(gave_up: &BudgetExceeded) -> String {
    let BudgetExceeded { steps, limit, clashing } = gave_up;
    let within = match limit {
        Limit::Steps => format!("within {steps} steps"),
        Limit::Memory => format!("within the memory limit, after {steps} steps"),
        // The number of steps at the time limit differs between runs, and a condition would change with it.
        Limit::Time => "within the time limit".to_owned(),
    };
    let clashing = match clashing.as_slice() {
        [] => String::new(),
        names => format!(" (conflicting: {})", list(names, names.len())),
    };
    format!("{within}{clashing}")
}

/// States that plugins are one version on several servers.
pub fn shared_version(shared_version: &SharedVersion) -> String {
    let (plugins, statement) = shared_plugins(shared_version);
    format!("{plugins}: {statement}")
}

/// Plugins that are one version on several servers, and that fact.
pub(super) fn shared_plugins(shared_version: &SharedVersion) -> (String, String) {
    let names: Vec<&str> = shared_version.names().collect();
    (list(&names, 3), "same version on several servers".to_owned())
}

/// The blockers: `blocked by A, B and 2 more`.
pub fn blocked_by<S: AsRef<str>>(names: &[S]) -> String {
    format!("blocked by {}", list(names, 3))
}

/// States that the operator does not deploy a version set because these files share a plugin name, and the remedy.
pub fn name_conflict(name: &str, files: &[String]) -> String {
    format!("{}: remove one of them", phrase(name, files))
}

/// The same for the version set of a requested Paper version.
pub fn shared_name(SharedName { name, files }: &SharedName) -> String {
    name_conflict(name, files)
}

/// The reason why a plugin is not ready, from its own point of view, and the plugins that need it.
pub fn blocker(blocker: &Blocker) -> String {
    let why = blocker_itself(blocker, None);
    match blocker.needed_by.as_slice() {
        names @ [_, ..] if blocker.waits_for_listing() => format!("{why} (needed by {})", list(names, 3)),
        [..] => why,
    }
}

/// The reason without the dependents, for this Minecraft version if it is known.
pub(super) fn blocker_itself(blocker: &Blocker, target: Option<&Minecraft>) -> String {
    if let Some(pinned) = &blocker.pinned {
        let missing = if blocker.nearest.is_empty() { "" } else { ", which does not exist" };
        return format!("you pinned {pinned}{missing}");
    }
    if let Some(nearly) = &blocker.nearly {
        return format!("{} is listed: {}", nearly.version, unusable(&nearly.unusable));
    }
    if let [UnmetNeed { name, release: Some(release), unusable: reason, object: _ }] = blocker.lacks.as_slice() {
        let why = reason.as_ref().map_or_else(|| listing(Some(release), target), unusable);
        return format!("would need {name} {}: {why}", release.version);
    }
    let refuses = blocker.newest.as_ref().is_some_and(|newest| newest.refuses.is_some());
    match blocker.together_with.as_slice() {
        names @ [_, ..] if !refuses => format!("conflicts with {}", list(names, 3)),
        [..] => listing(blocker.newest.as_ref(), target),
    }
}

/// Describes a list that does not name `target`.
fn listing(newest: Option<&ListedRelease>, target: Option<&Minecraft>) -> String {
    let Some(newest) = newest else { return "no eligible release".to_owned() };
    match (&newest.refuses, &newest.sibling, &newest.up_to) {
        (Some(refuses), _, _) => unusable(refuses),
        (None, _, _) if newest.unread => "its page could not be read".to_owned(),
        (None, _, _) if newest.delisted => "the running release is delisted".to_owned(),
        (None, _, _) if newest.overridden => "your compatibilityOverride removes it".to_owned(),
        (None, Some(sibling), _) => format!("listed for its hotfix sibling {sibling}"),
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
        Reason::NoPaper => (software.to_string(), "no version is available".to_owned()),
        Reason::PaperUnusable { papers, unusable: why } => (format!("{software} {}", spans(papers)), unusable(why)),
        Reason::NeededByFiles { plugin, files } => (list(files, 2), format!("unmanaged, needs {plugin}")),
        Reason::NoSuchRelease { plugin, version, object: _, nearest: _ } => {
            (format!("{plugin} {version}"), "does not exist".to_owned())
        }
        Reason::PluginPinned { plugin, version, papers, object: _ } if papers.is_empty() => {
            (format!("{plugin} {version}"), "you pinned it".to_owned())
        }
        Reason::PluginPinned { plugin, version, papers, object: _ } => {
            (format!("{plugin} {version}"), format!("you pinned it, listed for {}", spans(papers)))
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
                (None, None) => format!("{needs}, which is not available"),
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
        Reason::SharedVersion { shared_version } => shared_plugins(shared_version),
    }
}

/// `A.jar and B.jar share the plugin name Shop`
pub(crate) fn phrase(name: &str, files: &[String]) -> String {
    format!("{} share the plugin name {name}", list(files, 4))
}
