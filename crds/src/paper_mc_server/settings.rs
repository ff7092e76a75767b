//! Pure. The settings of a server, one struct for each field of the spec that has fields of its own.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Blackout;
use crate::schema;

/// When updates are applied.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateSchedule {
    /// When to look for new releases. They are looked for all the time anyway, so it changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::cron")]
    pub check_cron: Option<String>,
    /// The window in which updates are applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_window: Option<MaintenanceWindow>,
    /// Further windows; the server may be updated while any of them is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub windows: Vec<NamedWindow>,
    /// Times in which no window counts, and no request to apply now either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub blackouts: Vec<Blackout>,
    /// Updates also come outside of the windows, where nobody would mind: when nobody is on, at `replicas: 0`, and with a restart by the
    /// clock. A newer Minecraft waits for a window. Without it they come in windows only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opportunistic: Option<Opportunistic>,
}

/// When an update may come outside of the windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Opportunistic {
    /// How long nobody must have been on. Who joins during the countdown calls it off.
    #[serde(default = "ten_minutes")]
    #[schemars(schema_with = "schema::duration")]
    pub empty_for: String,
}

/// A maintenance window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// False: updates are planned and never applied by themselves.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// When it opens: five cron fields, such as `0 4 * * 0`. Required, unless `enabled` is false; empty when absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::cron")]
    pub cron: String,
    /// How long it stays open: `15m` to `168h`.
    #[serde(default = "one_hour")]
    #[schemars(schema_with = "schema::duration")]
    pub duration: String,
    /// Nothing begins in this last part of it, such as `30m`; what has begun by then may end. It leaves a minute of `duration` at least. Without
    /// it an update begins as long as its countdown can end a minute before the window does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub latest_start: Option<String>,
    /// Its zone, when it is not `spec.timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
}

/// A further window of a server, or a window of a single Plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedWindow {
    /// Its name, for messages; no two are the same.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// When it opens.
    #[schemars(schema_with = "schema::cron")]
    pub cron: String,
    /// How long it stays open: `15m` to `168h`.
    #[serde(default = "one_hour")]
    #[schemars(schema_with = "schema::duration")]
    pub duration: String,
    /// Nothing begins in this last part of it, such as `30m`; what has begun by then may end. It leaves a minute of `duration` at least. Without
    /// it an update begins as long as its countdown can end a minute before the window does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub latest_start: Option<String>,
    /// Its zone, when it is not that of the server (`spec.timeZone`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
}

/// What players are told, and how much say they have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlayersPolicy {
    /// Whether somebody who plays can delay an update.
    #[serde(default)]
    pub policy: PolicyKind,
    /// With `WaitForEmpty`: how long after the window opened we wait at most.
    #[serde(default = "deadline")]
    #[schemars(schema_with = "schema::duration")]
    pub deadline: String,
    /// How long players are warned.
    #[serde(default = "five_minutes")]
    #[schemars(schema_with = "schema::duration")]
    pub notice: String,
    /// The countdown when nobody is on: somebody may join in between.
    #[serde(default = "ten_seconds")]
    #[schemars(schema_with = "schema::duration")]
    pub empty_notice: String,
    /// What they read; `{in}` becomes the time that is left, `{in:de}` the same in German. Several languages are several lines: in the
    /// chat they stand under one another. The action bar and a title hold the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::announcement")]
    pub text: Option<String>,
    /// The same before their server may be evicted from a node that is emptied (`spec.eviction: OnUpgrade`). Left out: `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::announcement")]
    pub drain_text: Option<String>,
    /// Where they read it. The chat holds what was said, the other two are seen by who does not look there.
    #[serde(default = "chat")]
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub show: Vec<AnnouncementTarget>,
    /// What they read when they are disconnected for a stop. It is a setting of the pod: a change comes with a restart in the next window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub kick_text: Option<String>,
    /// What they read before a stop that nobody announced, or that comes before its time: `kubectl delete pod`, an eviction with
    /// `spec.eviction: Always`, a scale to zero. A change comes as one of `kickText` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub stop_text: Option<String>,
    /// What they read when what they were told of does not come: somebody has joined an empty server, a blackout begins, the server is suspended,
    /// the goal is another one, the node stays. A change comes as one of `kickText` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub called_off_text: Option<String>,
}

impl Default for PlayersPolicy {
    fn default() -> Self {
        Self {
            policy: PolicyKind::default(),
            deadline: deadline(),
            notice: five_minutes(),
            empty_notice: ten_seconds(),
            text: None,
            drain_text: None,
            show: chat(),
            kick_text: None,
            stop_text: None,
            called_off_text: None,
        }
    }
}

/// Where players read how long they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AnnouncementTarget {
    /// Every line, in the chat.
    Chat,
    /// Every line, above the hotbar for three seconds.
    ActionBar,
    /// The time that is left, large, with the text below it: at the beginning, at one minute, and each of the last ten seconds.
    Title,
}

/// How much say players have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum PolicyKind {
    /// They are told, and then it happens.
    #[default]
    Announce,
    /// Wait until nobody is on, up to the deadline.
    WaitForEmpty,
    /// No countdown and no save before the stop. The stop itself warns for seconds and saves, unless RCON is off.
    Ignore,
}

/// How the server is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    // The API server's parser knows no days. Whoever writes them gives time enough, or is told by the operator.
    validation = Rule::new("self.timeout.contains('d') || duration(self.timeout) >= duration('60s')")
        .message("shorter than 60s a server would be killed while it still writes the world: one tick of a busy server may take a minute; the default is 5m").field_path(".timeout").reason(Reason::FieldValueInvalid),
)]
pub struct GracefulShutdown {
    /// How long the server may take to save and stop before it is killed; at least `60s`. It is a setting of the pod: a change comes with a
    /// restart in the next window.
    #[serde(default = "five_minutes")]
    #[schemars(schema_with = "schema::duration")]
    pub timeout: String,
}

impl GracefulShutdown {
    /// Less than this is no time for a server to stop in: by default Paper's watchdog lets a single tick take a minute, and a server that is in one
    /// has not begun to save. The rule above says it too.
    pub const LEAST: SignedDuration = SignedDuration::from_secs(60);
}

impl Default for GracefulShutdown {
    fn default() -> Self {
        Self { timeout: five_minutes() }
    }
}

/// RCON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rcon {
    /// Nightshift warns, counts and saves over it. `false`: SIGTERM stops the server, nobody is warned, and no save is confirmed before. Only with
    /// `players.policy: Ignore`.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Its port on the pod's loopback.
    #[serde(default = "rcon_port")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
    /// Where the password is; generated when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretKey>,
}

impl Default for Rcon {
    fn default() -> Self {
        Self { enabled: true, port: rcon_port(), password_secret: None }
    }
}

/// One key of a Secret in the server's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKey {
    /// The Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// The Java virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Jvm {
    /// `auto` (from the memory limit, else the request) or a quantity such as `4Gi`.
    #[serde(default = "auto")]
    #[schemars(length(max = 32), regex(pattern = r"^(auto|[1-9][0-9]*(M|G|Mi|Gi))$"))]
    pub heap: String,
}

impl Default for Jvm {
    fn default() -> Self {
        Self { heap: auto() }
    }
}

/// The volume of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0")
        .message("a volume can grow and never shrink").field_path(".size"),
    validation = Rule::new("self.accessMode == oldSelf.accessMode")
        .message("it is fixed once the volume exists").field_path(".accessMode"),
    validation = Rule::new("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
        .message("it is fixed once the volume exists").field_path(".storageClassName"),
    validation = Rule::new("has(self.existingClaim) == has(oldSelf.existingClaim) && (!has(self.existingClaim) || self.existingClaim == oldSelf.existingClaim)")
        .message("a server keeps its world: make a new PaperMCServer for another claim").field_path(".existingClaim"),
    validation = Rule::new("!(has(self.existingClaim) && has(self.storageClassName))")
        .message("a claim that exists has its class already: leave storageClassName out").field_path(".storageClassName").reason(Reason::FieldValueForbidden),
)]
pub struct Storage {
    /// How large; may grow.
    #[serde(default = "ten_gi")]
    #[schemars(schema_with = "schema::quantity")]
    pub size: String,
    /// The storage class; the cluster's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub storage_class_name: Option<String>,
    /// The world outlives the server object.
    #[serde(default = "yes")]
    pub retain: bool,
    /// `ReadWriteOncePod` keeps two servers from ever opening one world; for classes that cannot: `ReadWriteOnce`.
    #[serde(default)]
    pub access_mode: AccessMode,
    /// A claim to be taken over as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub existing_claim: Option<String>,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            size: ten_gi(),
            storage_class_name: None,
            retain: true,
            access_mode: AccessMode::default(),
            existing_claim: None,
        }
    }
}

/// Who may mount the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum AccessMode {
    /// One pod.
    #[default]
    ReadWriteOncePod,
    /// One node.
    ReadWriteOnce,
}

impl AccessMode {
    /// As Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadWriteOncePod => "ReadWriteOncePod",
            Self::ReadWriteOnce => "ReadWriteOnce",
        }
    }
}

/// The Service players connect to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Its type.
    #[serde(default, rename = "type")]
    pub kind: ServiceKind,
    /// Copied onto it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::text_map")]
    pub annotations: BTreeMap<String, String>,
}

/// Type of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ServiceKind {
    /// An address of its own.
    #[default]
    LoadBalancer,
    /// A port on every node.
    NodePort,
    /// Inside the cluster only, for servers behind a proxy.
    ClusterIP,
}

impl ServiceKind {
    /// As Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LoadBalancer => "LoadBalancer",
            Self::NodePort => "NodePort",
            Self::ClusterIP => "ClusterIP",
        }
    }
}

fn yes() -> bool {
    true
}
fn one_hour() -> String {
    "1h".to_owned()
}
fn deadline() -> String {
    "45m".to_owned()
}
fn ten_minutes() -> String {
    "10m".to_owned()
}
fn five_minutes() -> String {
    "5m".to_owned()
}
fn chat() -> Vec<AnnouncementTarget> {
    vec![AnnouncementTarget::Chat]
}
fn ten_seconds() -> String {
    "10s".to_owned()
}
fn rcon_port() -> u16 {
    25_575
}
fn auto() -> String {
    "auto".to_owned()
}
fn ten_gi() -> String {
    "10Gi".to_owned()
}
