//! Pure. A copy that a person asks for: the order to put its worlds in place, what came of it, and what there is to choose from. And the one
//! that a volume without a world gets.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::backup::Contents;

/// The key of the order in the `ConfigMap` with orders, beside that of [`RestoreOrder`](super::RestoreOrder). Agents from before it was
/// known do not look at it.
pub const ASKED_ORDER: &str = "restore-from.json";

/// The key of [`NewVolumeOrder`] in the same `ConfigMap`.
pub const NEW_VOLUME_ORDER: &str = "new-volume.json";

/// Names a restore by [`NewVolumeOrder`], as a person's request is named.
pub const NEW_VOLUME: &str = "new-volume";

/// In the place of a copy's name: the newest one that holds worlds.
pub const LATEST: &str = "latest";

/// In the place of the set that obeys an [`AskedRestore`]: none does yet. Until then the copy only stays.
pub const NOBODY: &str = "";

/// How many copies are listed: as many as `spec.backup.retention` lets stay.
pub const LISTED: usize = 100;

/// An order to put the worlds of one copy in the place of all that are there. It is obeyed by the set that it names, before that starts;
/// once, whatever comes of it; and if it cannot be, the server starts on the worlds that are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskedRestore {
    /// Names the request. At most 64 bytes: `asked-1763782800`.
    pub request: String,
    /// The digest of the lock that is to start: 64 hex digits. Or [`NOBODY`].
    pub to: String,
    /// The copy's name.
    pub copy: String,
    /// The explicit word: worlds that are there make room, and are set aside.
    pub overwrite: bool,
    /// Settings, plugins and their data too. Not written when false: agents from before it was known do not know the field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub everything: bool,
    /// When it is void: found weeks later it would be a disaster.
    pub not_after: Timestamp,
}

/// A copy was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// When.
    pub at: Timestamp,
    /// The copy's name.
    pub id: String,
    /// Where that lies which made room, relative to the server's directory; empty: nothing did.
    pub set_aside: String,
    /// The request that it was done for, a person's or [`NEW_VOLUME`]; None: after an update that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Settings, plugins and their data too. False: the worlds alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub everything: bool,
    /// The copy had been taken after the log told of damage to the worlds: they are not whole for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
}

/// An order that was not obeyed. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreRefused {
    /// As it was named.
    pub request: String,
    /// When.
    pub at: Timestamp,
    /// In words for people.
    pub why: String,
}

/// What a volume without a world gets before a server starts on it: all that a copy holds. It stands for as long as the server's owner wants
/// it, and a volume obeys it once. Where it cannot be obeyed nothing starts: a new world would take the place of the one that is missed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewVolumeOrder {
    /// Whose copies: the name of their directory.
    pub server: String,
    /// The copy's name, or [`LATEST`].
    pub copy: String,
    /// The claim that they lie on, for people.
    pub claim: String,
    /// It is another claim than that of the server's own copies, and mounted apart, for the first start alone.
    pub apart: bool,
}

/// What came of an order for a volume without a world. The record on the volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewVolume {
    /// As it stood.
    pub order: NewVolumeOrder,
    /// When.
    pub at: Timestamp,
    /// The copy that was put there; None: none was, because the volume had a world.
    #[serde(default)]
    pub copy: Option<String>,
}

/// One copy that lies there, good or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedCopy {
    /// Its name.
    pub id: String,
    /// What it holds; None: nobody knows, see `problem`. Known beside a `problem`, too: it only could not be read, and may be tried by its name.
    #[serde(default)]
    pub contents: Option<Contents>,
    /// World format of the worlds in it.
    #[serde(default)]
    pub data_version: Option<u32>,
    /// The digest of the lock that had run.
    #[serde(default)]
    pub lock: Option<String>,
    /// Why it does not count.
    #[serde(default)]
    pub problem: Option<String>,
    /// The server's log had told of damage to its worlds before it was taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
}
