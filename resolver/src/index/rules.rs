//! Pure. Defines the policy that applies to one plugin of a request.

use jiff::{SignedDuration, Timestamp};

use super::jar_selection::Jars;
use super::known_constraints::UserConstraint;
use crate::model::catalog::Channel;
use crate::model::request::{CompatibilityOverride, Hold, Unlisted};

/// Limit of releases of one plugin in an index. The oldest ones beyond it are left out. An index is 16 bits wide, and
/// no project publishes that many.
pub(crate) const MAX_RELEASES: usize = 60_000;

/// The policy that applies to one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rules<'a> {
    pub(crate) channel: Channel,
    pub(crate) delay: SignedDuration,
    /// Whether a downgrade below the running release is allowed.
    pub(crate) may_downgrade: bool,
    /// The Plugin object that is held at the running release, and the origin of the hold. `None` if no release of it
    /// runs.
    pub(crate) hold: Option<(&'a str, Hold)>,
    pub(crate) compatibility: Option<&'a CompatibilityOverride>,
    pub(crate) pin: Option<&'a str>,
    /// The files of a release that are installed.
    pub(crate) jars: Jars<'a>,
    /// Constraints of its Plugin object on its own versions and on those of other plugins.
    pub(crate) requires: Option<UserConstraint<'a>>,
    /// The server's policy for pages without a list of Minecraft versions.
    pub(crate) unlisted: Unlisted,
    /// The companion plugins on this server.
    pub(crate) companions: Vec<Companion<'a>>,
}

/// The Plugin objects that request a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedBy<'a> {
    /// All objects, by name.
    pub(crate) objects: Vec<&'a str>,
    /// The object whose fields apply.
    pub(crate) deciding_object: &'a str,
    /// Objects that want one release on all their servers (`updateStrategy: latest`), by name.
    pub(crate) latest: Vec<&'a str>,
}

/// The instant at which a release published at `published` is old enough.
pub(crate) fn eligible_at(published: Timestamp, delay: SignedDuration) -> Timestamp {
    published.checked_add(delay).unwrap_or(Timestamp::MAX)
}

/// A plugin that belongs to another plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Companion<'a> {
    pub(crate) position: usize,
    /// The delay of its releases.
    pub(crate) delay: SignedDuration,
    /// The Plugin object that requests it.
    pub(crate) object: &'a str,
}
