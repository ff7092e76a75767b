//! Pure. Copies of a server: when one is taken, where it lies, how long it stays.

use jiff::Timestamp;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Copies of the server on a volume of their own. A change of it comes with the next window; of `schedule` at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.enabled || !has(self.schedule)")
        .message("no copies are taken while enabled is false: leave one of the two out").field_path(".schedule").reason(Reason::FieldValueForbidden),
)]
pub struct Backup {
    /// False: none are taken. Those that lie there stay.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Before which updates the stopped server is copied.
    #[serde(default)]
    pub before_update: BeforeUpdate,
    /// Copies of the running server, by the clock. None are taken without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<BackupSchedule>,
    /// The volume that they lie on. It is never deleted with the server.
    #[serde(default)]
    pub storage: BackupStorage,
    /// How many stay.
    #[serde(default)]
    pub retention: BackupRetention,
}

/// Before which updates a copy is taken. An update whose copy fails does not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum BeforeUpdate {
    /// Of the worlds, before a newer Minecraft opens them: they cannot go back afterwards.
    #[default]
    OneWay,
    /// Of worlds, settings, plugins and their data, before every change of Paper or plugins, also before another image. Not before other settings
    /// of the pod, nor before a step back to the set before.
    Always,
    /// Before none.
    Never,
}

impl BeforeUpdate {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OneWay => "OneWay",
            Self::Always => "Always",
            Self::Never => "Never",
        }
    }
}

/// When a copy of the running server is taken. Nobody is disconnected for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSchedule {
    /// When: five cron fields, such as `0 */6 * * *`. It needs no window; neither blackouts nor `suspend` keep it.
    #[schemars(schema_with = "schema::cron")]
    pub cron: String,
    /// Its zone, when it is not `spec.timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
    /// What of. It goes for `nightshift.dev/backup-now` too.
    #[serde(default)]
    pub contents: ScheduledContents,
    /// Instants at which one would be of no use are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_if: Option<BackupOnlyIf>,
}

impl BackupSchedule {
    /// Whether an instant is left out before which nobody has played.
    pub fn only_played(&self) -> bool {
        self.only_if.as_ref().is_some_and(|only_if| only_if.played)
    }
}

/// What must hold for a copy by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupOnlyIf {
    /// Somebody may have played since the newest copy of such contents. What changes without anybody on (settings, what plugins do by themselves)
    /// waits for them.
    #[serde(default)]
    pub played: bool,
}

/// What a copy of the running server holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ScheduledContents {
    /// Worlds, settings, plugins and their data.
    #[default]
    Everything,
    /// All world folders.
    Worlds,
}

/// The volume of the copies: the claim `backup-<server>-0`, or one of yours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0")
        .message("a volume can grow and never shrink").field_path(".size"),
    validation = Rule::new("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
        .message("it is fixed once the volume exists").field_path(".storageClassName"),
    validation = Rule::new("!(has(self.existingClaim) && has(self.storageClassName))")
        .message("a claim that exists has its class already: leave storageClassName out").field_path(".storageClassName").reason(Reason::FieldValueForbidden),
)]
pub struct BackupStorage {
    /// How large; may grow. A copy of the worlds needs about as much as they do.
    #[serde(default = "twenty_gi")]
    #[schemars(schema_with = "schema::quantity")]
    pub size: String,
    /// The storage class; the cluster's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub storage_class_name: Option<String>,
    /// A claim to be used as it is; the copies lie in a directory with the server's name. Several servers may share one that can be
    /// mounted by them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub existing_claim: Option<String>,
}

impl Default for BackupStorage {
    fn default() -> Self {
        Self { size: twenty_gi(), storage_class_name: None, existing_claim: None }
    }
}

/// How many copies stay, looked at before one asks for its room, and again when it has been read back. In any case these stay: the newest good
/// one of the worlds and that of the rest; that of the worlds from before an update, and for 30 days the newest such of an older Minecraft; of a
/// damaged world the newest good one from before; and the one that `nightshift.dev/restore-from` names, until something has come of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupRetention {
    /// At most so many good ones.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    pub max_count: u32,
    /// None older than this, such as `30d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub max_age: Option<String>,
}

impl Default for BackupRetention {
    fn default() -> Self {
        Self { max_count: ten(), max_age: None }
    }
}

/// The copies that lie there, as the agent said it last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// The newest good one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<LastBackup>,
    /// How many good ones there are.
    pub backup_count: u32,
    /// How many lie there that do not count, because they are damaged or could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub damaged_count: u32,
    /// The last time that a copy was put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_restore: Option<LastRestore>,
    /// The next instant of `spec.backup.schedule`; one that has passed is still to be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_backup: Option<Timestamp>,
}

/// A copy that was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRestore {
    /// When.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// The copy's directory.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// Where that lies which made room, on the server's volume, until you delete it. Absent: nothing did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::text253")]
    pub set_aside: String,
}

/// What has come of a request to put a copy in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreHandled {
    /// The request as it is written.
    #[schemars(schema_with = "schema::text253")]
    pub asked: String,
    /// When it was first seen.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub seen_at: Timestamp,
    /// The copy that it names: `latest` may mean another one later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub copy: Option<String>,
    /// How it ended; absent while it is being served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RestoreResult>,
    /// Why it ended so, unless all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub message: Option<String>,
}

/// How a request to put a copy in place ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RestoreResult {
    /// The worlds are those of the copy; the rest too, if it was asked for.
    Restored,
    /// Nothing was stopped, nothing was changed.
    Refused,
    /// The server was restarted, and runs on what it had.
    Failed,
}

/// One copy. It was read back from beginning to end before it got its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastBackup {
    /// The directory that it lies in.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// When it was begun: nothing later is in it.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Timestamp,
    /// When it had been read back.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub completed_at: Timestamp,
    /// Why it was taken.
    pub trigger: BackupTrigger,
    /// What it holds.
    pub contents: BackupContents,
    /// Digest of the lock that had run: 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub lock: Option<String>,
    /// Size of the archive in bytes.
    pub size_bytes: i64,
    /// The server's log had told of damage to its worlds before it was taken. It takes the place of no copy from before that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
}

/// Why a copy was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackupTrigger {
    /// Between the stop and the start of an update.
    BeforeUpdate,
    /// By `spec.backup.schedule`, while the server ran.
    Scheduled,
    /// By `nightshift.dev/backup-now`, while the server ran.
    OnDemand,
}

/// What a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BackupContents {
    /// All world folders.
    Worlds,
    /// Settings, plugins and their data.
    ServerFiles,
    /// Both.
    Everything,
}

fn yes() -> bool {
    true
}
fn ten() -> u32 {
    10
}
fn twenty_gi() -> String {
    "20Gi".to_owned()
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
