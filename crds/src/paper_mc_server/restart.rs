//! Pure. Defines scheduled restarts of a server without an update.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PolicyKind;
use crate::schema;

/// When a server is restarted without an update. A scheduled restart is skipped in a night in which an update restarts the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// When the server is restarted: a cron expression with five fields, such as `0 5 * * *`. It needs no maintenance window. Blackouts and
    /// `suspend` override it. A restart is skipped in a night in which an update restarts the server.
    #[schemars(schema_with = "schema::cron")]
    pub cron: String,
    /// The IANA time zone of `cron`, such as `Europe/Berlin`. Defaults to `spec.timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
    /// Whether players can delay the restart: `Announce`, `WaitForEmpty` or `Ignore`. Defaults to `players.policy`. The deadline is
    /// `players.deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyKind>,
    /// Conditions under which the server is restarted. If they are not met, the restart is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_if: Option<RestartOnlyIf>,
    /// The warning that players read before the restart. `{in}` and `{in:de}` are replaced by the remaining time. Defaults to `players.text`. At
    /// most 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::announcement")]
    pub text: Option<String>,
}

/// Conditions of a scheduled restart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestartOnlyIf {
    /// How long the server must have run at the scheduled time, such as `12h`. Defaults to 6 hours, but at most half of the time since the previous
    /// scheduled time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub uptime_at_least: Option<String>,
    /// Whether the server must be empty when the restart begins. Defaults to `false`. The restart waits for an empty server. It is skipped if
    /// players are online until it is too late.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty: bool,
}
