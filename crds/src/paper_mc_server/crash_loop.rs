//! Pure. A server whose process ends again and again: what its owner wishes for then, and what was counted.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What becomes of a server whose process ends with an error three times within an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnCrashLoop {
    /// The kubelet starts it again each time: some get well by themselves. It is told.
    #[default]
    Continue,
    /// It is stopped, and told. It starts again when the spec changes, or when a person asks for an update, a way back or a restore.
    Stop,
}

/// The ends of a server's process that nobody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrashStatus {
    /// The UID of the pod that they happened in. In another one they are counted anew.
    #[schemars(schema_with = "schema::text64")]
    pub pod: String,
    /// When, within the last hour, the newest last; of a server that is stopped, within the hour before that.
    #[schemars(with = "Vec<String>", length(max = 10), inner(length(max = 64)))]
    pub at: Vec<Timestamp>,
    /// The server is stopped for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StoppedByCrashes>,
}

/// A server that is stopped because its process ended again and again (`onCrashLoop: Stop`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoppedByCrashes {
    /// When that was decided.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// The generation of the spec then. With another one it starts again.
    #[schemars(range(min = 0))]
    pub generation: i64,
    /// How its process ended last, `exit code 137 (OOMKilled)`.
    #[schemars(schema_with = "schema::text64")]
    pub last: String,
    /// The requests by annotation that stood there then. With a further one it starts again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 128)))]
    pub requests: Vec<String>,
}
