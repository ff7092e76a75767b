//! Pure. Reasons in few words, for the columns of tables; the sentences are in `words`.

use super::words::{build_channel, channel, date, list, names};
use super::{Because, Holder, OneVersion};
use crate::solve::{GaveUp, Limit};
use crate::unusable::Unusable;

/// Why something may not be used.
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
        Unusable::ImageCarries { minecraft, build, image: _ } => format!("your image carries {minecraft}-{build}"),
        Unusable::JavaTooOld { needs, has, image: _ } => format!("needs Java {needs}, your image has {has}"),
        Unusable::JavaHeld { needs, has, policy: _ } => format!("needs Java {needs}, the image has {has}"),
        Unusable::NoImage { java } => format!("no image with Java {java}"),
    }
}

/// Why a newer release was not taken.
pub fn because(because: &Because) -> String {
    match because {
        Because::Unusable { unusable: reason } => unusable(reason),
        Because::NotListed { .. } => "not listed for this Paper".to_owned(),
        Because::Pinned => "you pinned another".to_owned(),
        Because::Needs { needs } => format!("needs {}", list(needs, 3)),
        Because::OneVersion { one_version: shared } => one_version(shared),
        Because::Others { with, facts: _ } => format!("does not go with {}", list(with, 3)),
    }
}

/// That a search was given up, and what made it hard.
pub fn gave_up(gave_up: &GaveUp) -> String {
    format!("no answer was found {}", within(gave_up))
}

/// That it is not known who holds a Paper, because the search was given up.
pub fn holders_unknown(gave_up: &GaveUp) -> String {
    format!("who holds it was not found out {}", within(gave_up))
}

/// What a search took, and who made it hard.
fn within(gave_up: &GaveUp) -> String {
    let GaveUp { steps, limit, clashing } = gave_up;
    let within = match limit {
        Limit::Steps => format!("within {steps} steps"),
        Limit::Memory => format!("in the memory that a question may take, after {steps} steps"),
    };
    let clashing = match clashing.as_slice() {
        [] => String::new(),
        names => format!("; {} kept clashing", list(names, names.len())),
    };
    format!("{within}{clashing}")
}

/// That plugins are one version on several servers.
pub fn one_version(shared: &OneVersion) -> String {
    let names: Vec<&str> = shared.plugins.iter().map(|plugin| plugin.plugin.as_str()).collect();
    format!("{}: one version on several servers", list(&names, 3))
}

/// Who holds: `held by A, B and 2 more`.
pub fn held_by<S: AsRef<str>>(names: &[S]) -> String {
    format!("held by {}", list(names, 3))
}

/// Why a plugin is not ready for `target`, from its own point of view.
pub fn holder(holder: &Holder) -> String {
    if let Some(pinned) = &holder.pinned {
        return format!("you pinned {pinned}");
    }
    if let Some(nearly) = &holder.nearly {
        return format!("{} is listed: {}", nearly.version, unusable(&nearly.unusable));
    }
    if let Some(refuses) = holder.newest.as_ref().and_then(|newest| newest.refuses.as_ref()) {
        return unusable(refuses);
    }
    let list_ends = match holder.newest.as_ref().map(|newest| newest.up_to.as_ref()) {
        Some(Some(up_to)) => format!("listed up to {up_to}"),
        Some(None) => "no list".to_owned(),
        None => "no release that may be used".to_owned(),
    };
    match (holder.together_with.as_slice(), holder.needed_by.as_slice()) {
        ([], []) => list_ends,
        ([], names) => format!("{list_ends} (needed by {})", list(names, 3)),
        (names, _) => format!("does not go with {}", list(names, 3)),
    }
}
