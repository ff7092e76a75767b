//! Pure. Defines the backup settings and the backup status of a server.

use jiff::Timestamp;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Backups of the server on a volume of their own. A change applies in the next maintenance window. A change of `schedule` applies at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.enabled || !has(self.schedule)")
        .message("no backups are taken while enabled is false: remove one of the two").field_path(".schedule").reason(Reason::FieldValueForbidden),
)]
pub struct Backup {
    /// Whether backups are taken. Defaults to `true`. With `false`, none is taken before a newer Minecraft either, and existing backups are kept.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The updates before which an offline backup is taken, while the server is stopped. If the backup fails, the update does not happen. `OneWay`
    /// (default): the worlds, before a newer Minecraft version opens them, because worlds cannot be downgraded. `Always`: worlds, settings, plugins
    /// and their data, before every change of Paper, plugins or the image. Changes of other pod settings and roll-backs are excluded. `Never`: no
    /// backup.
    #[serde(default)]
    pub before_update: BeforeUpdate,
    /// The schedule of online backups, which are taken while the server runs. Without this field, there are no scheduled backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<BackupSchedule>,
    /// The volume that backups are stored on. It is never deleted with the server.
    #[serde(default)]
    pub storage: BackupStorage,
    /// How many backups are kept, and for how long. Retention is applied before a backup that needs the space, and again after the backup is
    /// verified. Some backups are always kept: the newest good backup of the worlds, and that of the other files. The newest backup from before an
    /// update is always kept, and for 30 days the newest backups of older Minecraft versions. For a damaged world, the newest good backup from
    /// before the damage is kept. The backup that `nightshift.dev/restore-from` names is kept until the request is handled. A backup that could not
    /// be read is kept if it is the last one with worlds, or the last one with the other files.
    #[serde(default)]
    pub retention: BackupRetention,
}

/// The updates before which an offline backup is taken. If the backup fails, the update does not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum BeforeUpdate {
    /// The worlds, before a newer Minecraft version opens them. They cannot be downgraded afterwards.
    #[default]
    OneWay,
    /// Worlds, settings, plugins and their data, before every change of Paper, plugins or the image. Not before changes of other pod settings, and
    /// not before a roll-back to the previous version set.
    Always,
    /// No backup.
    Never,
}

impl BeforeUpdate {
    /// The name as written in the spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OneWay => "OneWay",
            Self::Always => "Always",
            Self::Never => "Never",
        }
    }
}

/// When an online backup is taken. Players stay connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSchedule {
    /// When a backup is taken: a cron expression with five fields, such as `0 */6 * * *`. It needs no maintenance window. Blackouts and `suspend`
    /// do not prevent it.
    #[schemars(schema_with = "schema::cron")]
    pub cron: String,
    /// The IANA time zone of `cron`, such as `Europe/Berlin`. Defaults to `spec.timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
    /// The files in the backup. `Everything` (default): worlds, settings, plugins and their data. `Worlds`: all world folders. It also applies to
    /// `nightshift.dev/backup-now`.
    #[serde(default)]
    pub contents: ScheduledContents,
    /// Conditions under which a scheduled backup is taken. If they are not met, it is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_if: Option<BackupOnlyIf>,
}

impl BackupSchedule {
    /// Whether a scheduled backup is skipped if nobody has played since the last one.
    pub fn is_skipped_if_unplayed(&self) -> bool {
        self.only_if.as_ref().is_some_and(|only_if| only_if.played)
    }
}

/// Conditions under which a scheduled backup is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupOnlyIf {
    /// Takes a scheduled backup only if a player may have joined since the newest backup with the same contents. Defaults to `false`. Changes that
    /// happen without players (settings, background work of plugins) are then saved by the next backup.
    #[serde(default)]
    pub played: bool,
}

/// The files in an online backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ScheduledContents {
    /// Worlds, settings, plugins and their data.
    #[default]
    Everything,
    /// All world folders.
    Worlds,
}

/// The volume that backups are stored on: the claim `backup-<server>-0`, or an existing claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0")
        .message("a volume can grow but never shrink").field_path(".size"),
    validation = Rule::new("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
        .message("it is fixed once the volume exists").field_path(".storageClassName"),
    validation = Rule::new("!(has(self.existingClaim) && has(self.storageClassName))")
        .message("an existing claim already has its class: remove storageClassName").field_path(".storageClassName").reason(Reason::FieldValueForbidden),
)]
pub struct BackupStorage {
    /// The size of the volume, such as `100Gi`. Defaults to `20Gi`. It can be increased but not decreased. A backup of the worlds needs about as
    /// much space as the worlds.
    #[serde(default = "twenty_gi")]
    #[schemars(schema_with = "schema::quantity")]
    pub size: String,
    /// The storage class of the volume. Defaults to the default class of the cluster. It cannot be changed once the volume exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub storage_class_name: Option<String>,
    /// The name of an existing claim that is used as it is. Backups are stored in a directory with the name of the server. Several servers may
    /// share a claim that all of them can mount. It cannot be combined with `storageClassName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub existing_claim: Option<String>,
}

impl Default for BackupStorage {
    fn default() -> Self {
        Self { size: twenty_gi(), storage_class_name: None, existing_claim: None }
    }
}

/// How many backups are kept, and for how long. Retention is applied before a backup that needs the space, and again after the backup is verified.
///
/// These backups are always kept:
/// - The newest good backup of the worlds, and that of the other files.
/// - The newest backup of the worlds from before an update.
/// - For 30 days, the newest backups of the worlds of older Minecraft versions.
/// - For a damaged world, the newest good backup from before the damage.
/// - The backup that `nightshift.dev/restore-from` names, until the request is handled.
/// - A backup that could not be read, if it is the last one with worlds, or the last one with the other files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupRetention {
    /// The maximum number of good backups. Defaults to 10. 1 to 100.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    pub max_count: u32,
    /// The maximum age of a backup, such as `30d`. Without this field, the age is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub max_age: Option<String>,
}

impl Default for BackupRetention {
    fn default() -> Self {
        Self { max_count: ten(), max_age: None }
    }
}

/// The stored backups, as last reported by the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// The newest good backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<LastBackup>,
    /// The number of good backups.
    pub backup_count: u32,
    /// The number of backups that are ignored, because they are damaged or could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub damaged_count: u32,
    /// The last restore of a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_restore: Option<LastRestore>,
    /// The next time of `spec.backup.schedule`. A time in the past means that the backup is still pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_backup: Option<Timestamp>,
}

/// A restore of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRestore {
    /// The time of the restore.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// The name of the backup's directory.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// The place on the server's volume where the displaced files are, until you delete them. Absent if no file was displaced.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::text253")]
    pub set_aside: String,
}

/// The result of a request to restore a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreHandled {
    /// The request as it is written in the annotation.
    #[schemars(schema_with = "schema::text253")]
    pub asked: String,
    /// The time at which the operator first observed the request.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub seen_at: Timestamp,
    /// The backup that the request names. It is recorded because `latest` may later stand for another backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub backup: Option<String>,
    /// How the request ended: `Restored`, `Refused` or `Failed`. Absent while the request is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RestoreResult>,
    /// The reason for the result. Absent if the restore succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub message: Option<String>,
}

/// How a request to restore a backup ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RestoreResult {
    /// The worlds were restored from the backup, and the other files too if requested.
    Restored,
    /// The server was not stopped, and no file was changed.
    Refused,
    /// The server was restarted, and it runs on the files that it had.
    Failed,
}

/// One backup. The archive was read back completely before the backup got its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastBackup {
    /// The directory of the backup.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// The time at which the backup started. It contains no later changes.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Timestamp,
    /// The time at which the archive had been read back.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub completed_at: Timestamp,
    /// Why the backup was taken: `before-update`, `scheduled` or `on-demand`.
    pub trigger: BackupTrigger,
    /// The files in the backup: `Worlds`, `ServerFiles` (settings, plugins and their data) or `Everything`.
    pub contents: BackupContents,
    /// The digest of the lock that was running: 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub lock: Option<String>,
    /// The size of the archive in bytes.
    pub size_bytes: i64,
    /// Whether the server's log had reported damage to its worlds before the backup was taken. Such a backup never replaces one from before the
    /// damage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
}

/// Why a backup was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackupTrigger {
    /// Between the stop and the start of an update.
    BeforeUpdate,
    /// By `spec.backup.schedule`, while the server was running.
    Scheduled,
    /// By `nightshift.dev/backup-now`, while the server was running.
    OnDemand,
}

/// The files in a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BackupContents {
    /// All world folders.
    Worlds,
    /// Settings, plugins and their data.
    ServerFiles,
    /// Worlds, settings, plugins and their data.
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
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
