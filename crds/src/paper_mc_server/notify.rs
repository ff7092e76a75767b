//! Pure. Channels of a chat that are told about a server: where they are, what they are told, and what they were told.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretKey;
use crate::schema;

/// A channel that is told what happens to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotifyChannel {
    /// Its name, for messages; no two are the same.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The form of its messages.
    #[serde(rename = "type")]
    pub kind: ChatKind,
    /// Where the webhook's address is. It is a password: whoever has it may write there.
    pub secret: SecretKey,
    /// What it is told; everything when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 9), extend("x-kubernetes-list-type" = "set"))]
    pub occasions: Vec<NotificationEvent>,
    /// Words of your own.
    #[serde(default, skip_serializing_if = "NotificationTexts::is_empty")]
    pub texts: NotificationTexts,
}

impl NotifyChannel {
    /// Whether it is told about this.
    pub fn wants(&self, occasion: NotificationEvent) -> bool {
        self.occasions.is_empty() || self.occasions.contains(&occasion)
    }
}

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChatKind {
    /// Discord's.
    Discord,
    /// Slack's, which Mattermost and others understand too.
    Slack,
}

impl ChatKind {
    /// As it stands in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discord => "Discord",
            Self::Slack => "Slack",
        }
    }
}

/// What a channel is told about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum NotificationEvent {
    /// Another set is going to be applied.
    Planned,
    /// Ten minutes before the window in which it is.
    Soon,
    /// It was applied and proven, or kept although it could not be proven: that is said then.
    Done,
    /// It did not work here, and what ran before comes back.
    RolledBack,
    /// It did not work here, and does not go back by itself: a person has to decide.
    Failed,
    /// Nothing newer has been possible for 14 days.
    Blocked,
    /// A copy should have been taken, and was not; or the copies cannot be read.
    BackupFailed,
    /// The server's process ends with an error again and again, without an update.
    CrashLoop,
    /// The server's log tells of damaged chunks or region files.
    WorldDamaged,
}

impl NotificationEvent {
    /// As it stands in a spec.
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
            Self::WorldDamaged => "WorldDamaged",
        }
    }
}

/// Words of one's own, by occasion. Several languages are several lines. `{namespace}`, `{server}`, `{what}`, `{when}`,
/// `{down}` and `{why}` are replaced; one that does not apply becomes `-`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationTexts {
    /// With `{what}` and `{when}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub planned: Option<String>,
    /// With `{what}` and `{when}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub soon: Option<String>,
    /// With `{what}` and `{down}`, such as `21 s`; and `{why}` it is not proven, where it is not. Without that place it is said behind the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub done: Option<String>,
    /// With `{what}` and `{why}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub rolled_back: Option<String>,
    /// With `{what}` and `{why}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub failed: Option<String>,
    /// With `{what}`: who holds, or why nothing is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub blocked: Option<String>,
    /// With `{what}`: why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub backup_failed: Option<String>,
    /// With `{what}`: how often, and how it ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub crash_loop: Option<String>,
    /// With `{what}`: what the log has told since when, and which copy is the newest from before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text")]
    pub world_damaged: Option<String>,
}

impl NotificationTexts {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The words for one occasion.
    pub fn of(&self, occasion: NotificationEvent) -> Option<&str> {
        let Self { planned, soon, done, rolled_back, failed, blocked, backup_failed, crash_loop, world_damaged } = self;
        match occasion {
            NotificationEvent::Planned => planned,
            NotificationEvent::Soon => soon,
            NotificationEvent::Done => done,
            NotificationEvent::RolledBack => rolled_back,
            NotificationEvent::Failed => failed,
            NotificationEvent::Blocked => blocked,
            NotificationEvent::BackupFailed => backup_failed,
            NotificationEvent::CrashLoop => crash_loop,
            NotificationEvent::WorldDamaged => world_damaged,
        }
        .as_deref()
    }
}

/// What a text may have in braces, to be replaced.
pub const PLACES: [&str; 6] = ["namespace", "server", "what", "when", "down", "why"];

/// A text with the places that are known, and no other brace: a misspelt place is refused where it is written.
fn text(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let pattern = format!(r"^([^{{}}]|\{{({})\}})+$", PLACES.join("|"));
    schemars::json_schema!({"type": "string", "minLength": 1, "maxLength": 1000, "pattern": pattern})
}

/// Something that channels are told, and how far that is. What was told stays here, so that it is told once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationState {
    /// What happened, or will.
    pub occasion: NotificationEvent,
    /// Which one of its kind: a revision, an instant. Once for each.
    #[schemars(schema_with = "schema::text64")]
    pub about: String,
    /// Since when it is to be told.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// When it is not worth telling any more.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub until: Timestamp,
    /// What changes, or who holds.
    #[schemars(length(max = 512))]
    pub what: String,
    /// When it is to happen, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub when: Option<String>,
    /// How long the server was down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub down: Option<String>,
    /// Why it did not work, or is not proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub why: Option<String>,
    /// The channels that are still to be told: `team` of `spec.notify`, `cluster/team` of the operator's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 48)))]
    pub pending: Vec<String>,
    /// The channels that could not be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 48)))]
    pub given_up: Vec<String>,
}
