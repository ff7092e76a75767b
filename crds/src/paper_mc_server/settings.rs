//! Pure. Defines the settings of a server: one struct for each field of the spec that has fields of its own.

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
    /// When the operator looks for new releases: a cron expression with five fields, such as `0 3 * * *`, in the time zone of the server. Releases that
    /// are published in between are planned after the next check. Without this field, the operator looks for releases continuously.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::cron")]
    pub check_cron: Option<String>,
    /// The maintenance window in which updates are applied. Required, unless `windows` has an entry. Set `enabled: false` to never apply updates
    /// automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_window: Option<MaintenanceWindow>,
    /// Additional maintenance windows. At most 8. The server may be updated while any of them is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub windows: Vec<NamedWindow>,
    /// Times at which the server is not updated or restarted. At most 16. Blackouts override all windows, and also requests to apply an update now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub blackouts: Vec<Blackout>,
    /// Allows updates outside of the windows when they affect no player. Without this field, updates are applied in windows only. These updates are
    /// applied when the server is empty, at `replicas: 0`, and with a scheduled restart. An update to a newer Minecraft version still waits for a
    /// window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opportunistic: Option<Opportunistic>,
}

/// When an update may be applied outside of the windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Opportunistic {
    /// How long the server must have been empty, such as `15m`. Defaults to `10m`. A player who joins during the countdown cancels the update.
    #[serde(default = "ten_minutes")]
    #[schemars(schema_with = "schema::duration")]
    pub empty_for: String,
}

/// A maintenance window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// Whether updates are applied automatically. Defaults to `true`. With `false`, updates are planned but never applied automatically.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// When the window opens: a cron expression with five fields, such as `0 4 * * 0` (Sundays at 04:00). Required, unless `enabled` is false.
    /// Empty when absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::cron")]
    pub cron: String,
    /// How long the window stays open: `15m` to `168h`. Defaults to `1h`.
    #[serde(default = "one_hour")]
    #[schemars(schema_with = "schema::duration")]
    pub duration: String,
    /// The last part of the window, in which no update starts, such as `30m`. An update that started before it may finish. It must be at least one
    /// minute shorter than `duration`. Without this field, an update starts if its countdown can end one minute before the window closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub latest_start: Option<String>,
    /// The IANA time zone of `cron`, such as `Europe/Berlin`. Defaults to `spec.timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
}

/// An additional window of a server, or a window of one Plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedWindow {
    /// The name of the window, which is used in messages. Unique in the list. At most 40 lower-case letters, digits and dashes.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// When the window opens: a cron expression with five fields, such as `0 5 * * 1-5`.
    #[schemars(schema_with = "schema::cron")]
    pub cron: String,
    /// How long the window stays open: `15m` to `168h`. Defaults to `1h`.
    #[serde(default = "one_hour")]
    #[schemars(schema_with = "schema::duration")]
    pub duration: String,
    /// The last part of the window, in which no update starts, such as `30m`. An update that started before it may finish. It must be at least one
    /// minute shorter than `duration`. Without this field, an update starts if its countdown can end one minute before the window closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub latest_start: Option<String>,
    /// The IANA time zone of `cron`, such as `Europe/Berlin`. Defaults to `spec.timeZone` of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
}

/// How players are warned before a stop, and whether they can delay an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlayersPolicy {
    /// Whether players can delay an update. `Announce` (default): they are warned, and then the update starts. `WaitForEmpty`: the update waits
    /// until no player is online, at most for `deadline`. `Ignore`: no countdown and no save before the stop. The stop itself warns players for
    /// seconds and saves, unless RCON is disabled.
    #[serde(default)]
    pub policy: PolicyKind,
    /// The longest time to wait for an empty server after the window opened, such as `1h`. Defaults to `45m`. Used with `WaitForEmpty` only.
    #[serde(default = "deadline")]
    #[schemars(schema_with = "schema::duration")]
    pub deadline: String,
    /// How long players are warned before a stop, such as `10m`. Defaults to `5m`.
    #[serde(default = "five_minutes")]
    #[schemars(schema_with = "schema::duration")]
    pub notice: String,
    /// The countdown when no player is online, such as `30s`. Defaults to `10s`. It exists because a player may join meanwhile.
    #[serde(default = "ten_seconds")]
    #[schemars(schema_with = "schema::duration")]
    pub empty_notice: String,
    /// The warning that players read before a stop. `{in}` is replaced by the remaining time in English, and `{in:de}` by the same in German. Write
    /// several languages as several lines. The chat shows all lines, one below the other. The action bar and a title show the first line only. At
    /// most 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::announcement")]
    pub text: Option<String>,
    /// The warning that players read before the server may be evicted from a node that is drained (`spec.eviction: OnUpgrade`). Same format as
    /// `text`. Defaults to `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::announcement")]
    pub drain_text: Option<String>,
    /// The warning that players read before a restart that restores a backup on request. Same format as `text`. The default says that the worlds
    /// return to an earlier backup, and that what is built until then is set aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::announcement")]
    pub restore_text: Option<String>,
    /// The warning that players read before the server is scaled to zero. Same format as `text`. The default says that the server stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::announcement")]
    pub scale_down_text: Option<String>,
    /// Where players read the warning: `Chat` (default), `ActionBar` and `Title`. `Chat` and `ActionBar` show every line. `Title` shows the
    /// remaining time in large letters with the text below it. The chat keeps what was announced. The other two reach players who do not read the
    /// chat.
    #[serde(default = "chat")]
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub show: Vec<AnnouncementTarget>,
    /// The text that players read when they are disconnected for a stop. At most 256 characters. It is a setting of the pod, so a change applies
    /// with a restart in the next maintenance window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub kick_text: Option<String>,
    /// The text that players read before an unannounced or early stop: `kubectl delete pod`, an eviction with `spec.eviction: Always`, or scaling
    /// to zero. At most 256 characters. A change applies with a restart in the next maintenance window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub stop_text: Option<String>,
    /// The text that players read when an announced stop is cancelled. At most 256 characters. Reasons are: a player joined an empty server, a
    /// blackout begins, the server is suspended, the planned version set changed, or the server stays on its node. A change applies with a restart
    /// in the next maintenance window.
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
            restore_text: None,
            scale_down_text: None,
            show: chat(),
            kick_text: None,
            stop_text: None,
            called_off_text: None,
        }
    }
}

/// Where players read the remaining time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AnnouncementTarget {
    /// Every line, in the chat.
    Chat,
    /// Every line, above the hotbar for three seconds.
    ActionBar,
    /// The remaining time in large letters with the text below it: at the beginning, at one minute, and in each of the last ten seconds.
    Title,
}

/// Whether players can delay a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum PolicyKind {
    /// Players are warned, and then the stop happens.
    #[default]
    Announce,
    /// The stop waits until no player is online, at most for the deadline.
    WaitForEmpty,
    /// No countdown and no save before the stop. The stop itself warns players for seconds and saves, unless RCON is disabled.
    Ignore,
}

/// How the server is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    // The parser of the API server does not know days. A value with days is either long enough, or the operator rejects it.
    validation = Rule::new("self.timeout.contains('d') || duration(self.timeout) >= duration('60s')")
        .message("must be 60s or more, so that a server is not killed while it writes the world: one tick of a busy \
        server may take a minute. The default is 5m").field_path(".timeout").reason(Reason::FieldValueInvalid),
)]
pub struct GracefulShutdown {
    /// How long the server may take to save and stop before it is killed. Defaults to `5m`. At least `60s`. It is a setting of the pod, so a change
    /// applies with a restart in the next maintenance window.
    #[serde(default = "five_minutes")]
    #[schemars(schema_with = "schema::duration")]
    pub timeout: String,
}

impl GracefulShutdown {
    /// The shortest `timeout`. Paper's watchdog lets a single tick take a minute by default, and a server in such a tick has not started to save.
    /// The rule above checks the same.
    pub const MIN_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);
}

impl Default for GracefulShutdown {
    fn default() -> Self {
        Self { timeout: five_minutes() }
    }
}

/// Settings of RCON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rcon {
    /// Whether the operator uses RCON to warn and count players and to save the world. Defaults to `true`. With `false`, SIGTERM stops the server,
    /// players are not warned, and no save is confirmed before the stop. `false` requires `players.policy: Ignore`. It cannot be combined with
    /// another `restart.policy`, `backup.schedule` or `updateSchedule.opportunistic`.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The RCON port on the loopback address of the pod. Defaults to 25575.
    #[serde(default = "rcon_port")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
    /// The Secret key that holds the password. Without this field, a password is generated. The Secret needs the label
    /// `nightshift.dev/allow-use: "true"`.
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
    /// The name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// Settings of the Java virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Jvm {
    /// The heap size: `auto` (default) or a quantity such as `4Gi`. `auto` is derived from the memory limit of the container, or from its memory
    /// request if there is no limit. It leaves a quarter of the memory, but at least 1 GiB, outside of the heap. Below 2 GiB the heap is half of
    /// the memory. Without limit and request, the default of the image applies (1 GiB).
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
        .message("a volume can grow but never shrink").field_path(".size"),
    validation = Rule::new("self.accessMode == oldSelf.accessMode")
        .message("it is fixed once the volume exists").field_path(".accessMode"),
    validation = Rule::new("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
        .message("it is fixed once the volume exists").field_path(".storageClassName"),
    validation = Rule::new("has(self.existingClaim) == has(oldSelf.existingClaim) && (!has(self.existingClaim) || self.existingClaim == oldSelf.existingClaim)")
        .message("a server keeps its world: create a new PaperMCServer for another claim").field_path(".existingClaim"),
    validation = Rule::new("!(has(self.existingClaim) && has(self.storageClassName))")
        .message("an existing claim already has its class: remove storageClassName").field_path(".storageClassName").reason(Reason::FieldValueForbidden),
)]
pub struct Storage {
    /// The size of the volume, such as `50Gi`. Defaults to `10Gi`. It can be increased but not decreased.
    #[serde(default = "ten_gi")]
    #[schemars(schema_with = "schema::quantity")]
    pub size: String,
    /// The storage class of the volume. Defaults to the default class of the cluster. It cannot be changed once the volume exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub storage_class_name: Option<String>,
    /// Whether the volume is kept when this PaperMCServer is deleted. Defaults to `true`. A volume that was created with `true` is always kept.
    #[serde(default = "yes")]
    pub retain: bool,
    /// The access mode of the volume. `ReadWriteOncePod` (default) prevents two servers from opening one world at the same time. Use
    /// `ReadWriteOnce` for storage classes without support for it. It cannot be changed once the volume exists.
    #[serde(default)]
    pub access_mode: AccessMode,
    /// The name of an existing claim that is used as it is, instead of a new one. It cannot be changed or combined with `storageClassName`.
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

/// The number of mounts that the volume allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum AccessMode {
    /// One pod.
    #[default]
    ReadWriteOncePod,
    /// One node.
    ReadWriteOnce,
}

impl AccessMode {
    /// The name in the Kubernetes API.
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
    /// The type of the Service: `LoadBalancer` (default), `NodePort` or `ClusterIP`. Use `ClusterIP` for servers behind a proxy.
    #[serde(default, rename = "type")]
    pub kind: ServiceKind,
    /// Annotations of the Service. At most 32.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::text_map")]
    pub annotations: BTreeMap<String, String>,
}

/// The type of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ServiceKind {
    /// An external address for this server.
    #[default]
    LoadBalancer,
    /// A port on every node.
    NodePort,
    /// An address inside the cluster only, for servers behind a proxy.
    ClusterIP,
}

impl ServiceKind {
    /// The name in the Kubernetes API.
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
