//! Pure. A copy of a server that goes on running: what is asked for, and what came of it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::backup::{Contents, Trigger};

/// Take a copy of the running server. The same request is never served twice, also not by the next agent of the same volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HotCopy {
    /// Names the request. At most 64 bytes, letters, digits, `-`, `:` and `.`: `scheduled-2026-11-22T04:00:00Z`, `asked-1763782800`.
    pub request: String,
    /// [`Trigger::Scheduled`] or [`Trigger::OnDemand`].
    pub trigger: Trigger,
    /// What of.
    pub contents: Contents,
    /// For how long automatic saving may be off while files are read, in seconds. Paper unloads no chunk meanwhile.
    pub timeout_seconds: u32,
}

/// A copy that makes room for none while one of the running server is under way: a person wants it put in place. What an agent was told last counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeepCopy {
    /// Its name.
    pub copy: String,
    /// Until when, by the agent's clock.
    pub until: Timestamp,
}

/// The last request that an agent was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotCopySeen {
    /// As it was named.
    pub request: String,
    /// When it was begun, or ended.
    pub at: Timestamp,
    /// What came of it.
    pub outcome: HotCopyOutcome,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HotCopyOutcome {
    /// It is being taken.
    Running,
    /// It lies there, read back.
    Taken {
        /// Its name.
        id: String,
    },
    /// There is none. What was there before is untouched.
    Failed {
        /// In words for people.
        why: String,
    },
}
