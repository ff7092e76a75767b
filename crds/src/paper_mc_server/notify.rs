//! Pure. Defines notification channels: their addresses, their events and their delivery state.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretKey;
use crate::schema;

/// A chat channel that receives notifications about a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotifyChannel {
    /// The name of the channel, which is used in messages. Unique in the list. At most 40 lower-case letters, digits and dashes.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The message format: `Discord` or `Slack`. Mattermost and others understand `Slack` too.
    #[serde(rename = "type")]
    pub kind: ChatKind,
    /// The Secret key that holds the webhook address. Treat the address as a password: everyone who has it may write to the channel. The Secret
    /// needs the label `nightshift.dev/allow-use: "true"`.
    pub secret: SecretKey,
    /// The events that the channel receives. Empty means all events. `Planned`: another version set will be applied. `Soon`: ten minutes before the
    /// maintenance window of an update. `Done`: an update was applied and verified, or kept without verification, which the message states.
    /// `RolledBack`: an update failed, and the previous version set is restored. `Failed`: an update failed and cannot be rolled back
    /// automatically, so you have to decide. `Blocked`: no newer version has been possible for 14 days. `BackupFailed`: a due backup was not taken,
    /// or backups cannot be read. `CrashLoop`: the process exits with an error repeatedly, without an update. `NotResponding`: the
    /// process runs, but has answered no ping for a minute. `WorldDamaged`: the log reports damaged chunks or region files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "set"))]
    pub events: Vec<NotificationEvent>,
    /// Your own message texts, by event. Several languages are several lines. The placeholders `{namespace}`, `{server}`, `{what}`, `{when}`,
    /// `{down}` and `{why}` are replaced. A placeholder without a value becomes `-`.
    #[serde(default, skip_serializing_if = "NotificationTexts::is_empty")]
    pub texts: NotificationTexts,
}

impl NotifyChannel {
    /// Whether the channel receives this event.
    pub fn is_subscribed_to(&self, event: NotificationEvent) -> bool {
        self.events.is_empty() || self.events.contains(&event)
    }
}

/// The message format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChatKind {
    /// The format of Discord.
    Discord,
    /// The format of Slack, which Mattermost and others understand too.
    Slack,
}

impl ChatKind {
    /// The name as written in the spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discord => "Discord",
            Self::Slack => "Slack",
        }
    }
}

/// The events that a channel can receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum NotificationEvent {
    /// Another version set will be applied.
    Planned,
    /// Ten minutes before the maintenance window of an update.
    Soon,
    /// The update was applied and verified, or kept without verification. The message states the latter.
    Done,
    /// The update failed, and the previous version set is restored.
    RolledBack,
    /// The update failed and cannot be rolled back automatically. A user has to decide.
    Failed,
    /// No newer version has been possible for 14 days.
    Blocked,
    /// A due backup was not taken, or the backups cannot be read.
    BackupFailed,
    /// The server's process exits with an error repeatedly, without an update.
    CrashLoop,
    /// The server's process runs, but has answered no ping for a minute.
    NotResponding,
    /// The server's log reports damaged chunks or region files.
    WorldDamaged,
}

impl NotificationEvent {
    /// The name as written in the spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "Planned",
            Self::Soon => "Soon",
            Self::Done => "Done",
            Self::RolledBack => "RolledBack",
            Self::Failed => "Failed",
            Self::Blocked => "Blocked",
            Self::BackupFailed => "BackupFailed",
            Self::CrashLoop => "CrashLoop",
            Self::NotResponding => "NotResponding",
            Self::WorldDamaged => "WorldDamaged",
        }
    }
}

/// Custom message texts, by event. Several languages are several lines. `{namespace}`, `{server}`, `{what}`, `{when}`, `{down}` and `{why}` are
/// replaced. A placeholder without a value becomes `-`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationTexts {
    /// The text for `Planned`. `{what}` is the change and `{when}` the time. At most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub planned: Option<String>,
    /// The text for `Soon`. `{what}` is the change and `{when}` the time. At most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub soon: Option<String>,
    /// The text for `Done`. `{what}` is the change and `{down}` the downtime, such as `21 s`. `{why}` is the reason if the update is not verified.
    /// If the text has no `{why}`, the reason is appended. At most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub done: Option<String>,
    /// The text for `RolledBack`. `{what}` is the change and `{why}` the reason. At most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub rolled_back: Option<String>,
    /// The text for `Failed`. `{what}` is the change and `{why}` the reason. At most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub failed: Option<String>,
    /// The text for `Blocked`. `{what}` names the blocking plugins, or the reason why no update is possible. At most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub blocked: Option<String>,
    /// The text for `BackupFailed`. `{what}` is the reason why there is no backup. At most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub backup_failed: Option<String>,
    /// The text for `CrashLoop`. `{what}` is the number of exits and the last exit. At most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub crash_loop: Option<String>,
    /// The text for `NotResponding`. `{what}` is the time of the last answer. At most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub not_responding: Option<String>,
    /// The text for `WorldDamaged`. `{what}` is what the log has reported since when, and the newest backup from before the damage. At most 1000
    /// characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub world_damaged: Option<String>,
}

impl NotificationTexts {
    /// Whether no text is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The text for one event.
    pub fn text_for(&self, event: NotificationEvent) -> Option<&str> {
        let Self {
            planned,
            soon,
            done,
            rolled_back,
            failed,
            blocked,
            backup_failed,
            crash_loop,
            not_responding,
            world_damaged,
        } = self;
        match event {
            NotificationEvent::Planned => planned,
            NotificationEvent::Soon => soon,
            NotificationEvent::Done => done,
            NotificationEvent::RolledBack => rolled_back,
            NotificationEvent::Failed => failed,
            NotificationEvent::Blocked => blocked,
            NotificationEvent::BackupFailed => backup_failed,
            NotificationEvent::CrashLoop => crash_loop,
            NotificationEvent::NotResponding => not_responding,
            NotificationEvent::WorldDamaged => world_damaged,
        }
        .as_deref()
    }
}

/// The placeholders that a text may contain in braces.
pub const PLACEHOLDERS: [&str; 6] = ["namespace", "server", "what", "when", "down", "why"];

/// A text with known placeholders and no other brace. The API server rejects a misspelt placeholder when the text is written.
fn text(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let pattern = format!(r"^([^{{}}]|\{{({})\}})+$", PLACEHOLDERS.join("|"));
    schemars::json_schema!({"type": "string", "minLength": 1, "maxLength": 1000, "pattern": pattern})
}

/// A notification and its delivery state. Delivered notifications stay in the list, so that each is sent once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationState {
    /// The event that the notification is about.
    pub event: NotificationEvent,
    /// The identity of the event among its kind: a revision or a time. Each is notified once.
    #[schemars(schema_with = "schema::text64")]
    pub about: String,
    /// The time from which the notification is to be delivered.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// The time after which the notification is no longer useful.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub until: Timestamp,
    /// The change, or the blocking plugins.
    #[schemars(length(max = 512))]
    pub what: String,
    /// The time of the change, as text for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub when: Option<String>,
    /// How long the server was down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub down: Option<String>,
    /// Why the update failed, or is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub why: Option<String>,
    /// The channels with a pending delivery: `team` for a channel of `spec.notify`, `cluster/team` for a channel of the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 48)))]
    pub pending: Vec<String>,
    /// The channels for which delivery was given up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 48)))]
    pub given_up: Vec<String>,
}
