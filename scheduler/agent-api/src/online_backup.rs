//! Pure. Defines requests for an online backup and their results.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Contents, Trigger};

/// A request for an online backup. The same request is never served twice, also not by the next agent of the same volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OnlineBackupRequest {
    /// The name of the request. At most 64 bytes of letters, digits, `-`, `:` and `.`: `scheduled-2026-11-22T04:00:00Z`, `asked-1763782800`.
    pub request: String,
    /// [`Trigger::Scheduled`] or [`Trigger::OnDemand`].
    pub trigger: Trigger,
    /// The part to back up.
    pub contents: Contents,
    /// How long autosave may be off while files are read, in seconds. Paper unloads no chunk meanwhile.
    pub timeout_seconds: u32,
}

/// A backup that must not be pruned while an online backup is running, because a user wants to restore it. The last request to the agent counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProtectBackup {
    /// Its name.
    pub backup: String,
    /// Until when, by the agent's clock.
    pub until: Timestamp,
}

/// The last request that an agent was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OnlineBackupReport {
    /// The name of the request.
    pub request: String,
    /// When it began, or ended.
    pub at: Timestamp,
    /// Its result.
    pub outcome: OnlineBackupOutcome,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum OnlineBackupOutcome {
    /// The backup is running.
    Running,
    /// The backup exists and is verified.
    Taken {
        /// Its name.
        id: String,
    },
    /// No backup was taken. Earlier backups are unchanged.
    Failed {
        /// The reason as text for users.
        why: String,
    },
}
