//! Pure. Defines the reaction to a crash loop, and the crash counts in the status.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The reaction to a process that exits with an error three times within an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnCrashLoop {
    /// The kubelet restarts the process each time, because some servers recover. A notification is sent.
    #[default]
    Continue,
    /// The server is stopped, and a notification is sent. It starts again when the spec changes, or when a user requests an update, a roll-back or
    /// a restore.
    Stop,
}

/// The unrequested exits of a server's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrashStatus {
    /// The UID of the pod in which the process exited. Exits in another pod are counted from zero.
    #[schemars(schema_with = "schema::text64")]
    pub pod: String,
    /// The times of the exits within the last hour, newest last. At most 10. If the server is stopped, those of the hour before the stop.
    #[schemars(with = "Vec<String>", length(max = 10), inner(length(max = 64)))]
    pub at: Vec<Timestamp>,
    /// Since when the server had hung before each of its restarts for that within the last hour (`onHang: Restart`), newest last. They count in every
    /// pod. At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", length(max = 10), inner(length(max = 64)))]
    pub hangs: Vec<Timestamp>,
    /// The stop of the server for these exits. Absent if it is not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<CrashLoopStop>,
}

/// A server that is stopped because its process exited repeatedly (`onCrashLoop: Stop`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrashLoopStop {
    /// The time of the decision.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// The generation of the spec at that time. The server starts again at another generation.
    #[schemars(range(min = 0))]
    pub generation: i64,
    /// How the process exited last, such as `exit code 137 (OOMKilled)`, or `a hang`.
    #[schemars(schema_with = "schema::text64")]
    pub last: String,
    /// The request annotations at that time. The server starts again when a new one is added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 128)))]
    pub requests: Vec<String>,
}
