//! Pure. Restarts of a server by the clock, without an update.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PolicyKind;
use crate::schema;

/// When a server is restarted as it is. A night in which an update restarts it has its restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// When: five cron fields, such as `0 5 * * *`. It needs no window. Blackouts and `suspend` win over it.
    #[schemars(schema_with = "schema::cron")]
    pub cron: String,
    /// Its zone, when it is not `spec.timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
    /// How much say players have in it, when it is not `players.policy`. The deadline is that of `players`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyKind>,
    /// What must be true of the server; a restart for which it is not is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_if: Option<RestartOnlyIf>,
    /// What players read before it, when it is not `players.text`; `{in}` and `{in:de}` become the time that is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::announcement")]
    pub text: Option<String>,
}

/// What must be true of a server that is restarted by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestartOnlyIf {
    /// How long it has run at that instant, such as `12h`. Without it: 6 hours, and at most half of the time since the instant before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub uptime_at_least: Option<String>,
    /// Nobody is on when it begins. It is waited for, and left out if somebody is on until it is too late.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty: bool,
}
