//! Pure. Checks a server as the user wrote it. Returns a spec on which every later step can rely, or violations with field and fix.
//!
//! The operator and the command `resolver` use the same checks, with the same words. They repeat the CEL rules, because an object may be older
//! than the schema. [`admission`] adds the rules that only matter for an object in a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use agent_api::Contents;
use crds::paper_mc_server::{
    self, AnnouncementTarget, BeforeUpdate, Eula, GracefulShutdown, KeepPluginData, OnCrashLoop, OnHang, PolicyKind,
    ScheduledContents, Software,
};
use crds::{PaperMCServer, duration};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource as _, ResourceExt};
use scheduler::announcement::locale::LANGUAGES;
use scheduler::announcement::placeholder::unknown_placeholder;
use scheduler::maintenance::{BackupTimes, CheckTimes, RestartSchedule, Windows, check_zone};
use scheduler::observation::PlayerPolicy;

pub mod admission;
pub mod image_contract;
pub mod lenient;
pub mod memory_quantity;
pub mod pod_security;
mod pod_template;
mod restore_from;
mod texts;
pub mod windows;

use pod_security::{PodTemplatePolicy, check_pod_security};
use pod_template::check_pod_template;
use restore_from::check_restore_from;
pub use restore_from::{CheckedRestoreFrom, is_backup_reference};
use texts::{
    ANNOUNCEMENT, DRAIN_ANNOUNCEMENT, RESTART_ANNOUNCEMENT, RESTORE_ANNOUNCEMENT, SCALE_DOWN_ANNOUNCEMENT,
    SHORT_ANNOUNCEMENT, SHORT_DRAIN_ANNOUNCEMENT, SHORT_SCALE_DOWN_ANNOUNCEMENT,
};
pub use texts::{Announcement, Texts};
use windows::{check_backup_schedule, check_restart, check_windows};

/// A violation in a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Field path, such as `spec.updateSchedule.maintenanceWindow.cron`.
    pub path: String,
    /// The problem and its fix.
    pub problem: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// The setting `spec.jvm.heap`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heap {
    /// From the memory limit, otherwise from the request.
    Auto,
    /// A fixed size from the spec.
    Fixed {
        /// Size in MiB.
        mib: u64,
    },
}

/// A server whose spec is valid.
#[derive(Debug, Clone)]
pub struct CheckedServer {
    /// Its name.
    pub name: String,
    /// Its namespace. Empty for an object in a file that names none.
    pub namespace: String,
    /// The owner of all its objects. `None` for an object in a file, which has no UID.
    pub owner: Option<OwnerReference>,
    /// Whether the user accepted the EULA. The operator starts nothing without it.
    pub eula: bool,
    /// When updates are applied.
    pub updates: CheckedUpdates,
    /// How players are warned.
    pub players: CheckedPlayers,
    /// The pod.
    pub pod: CheckedPod,
    /// Volumes and backups.
    pub data: CheckedData,
    /// The Service.
    pub service: CheckedService,
}

/// When updates are applied.
#[derive(Debug, Clone)]
pub struct CheckedUpdates {
    /// The server's time zone, an IANA name.
    pub zone: String,
    /// Windows and blackouts.
    pub windows: Windows,
    /// When new releases are looked for. `None` if that is continuous.
    pub checks: Option<CheckTimes>,
    /// If `false`, updates are planned but never applied automatically.
    pub automatic: bool,
    /// `spec.suspend`: the same, temporarily.
    pub suspended: bool,
    /// How long the server must be empty for an update outside of windows. `None` if updates wait for a window.
    pub opportunistic: Option<SignedDuration>,
    /// `None` if it follows no other server.
    pub follows: Option<CheckedFollows>,
}

/// How players are warned of a stop.
#[derive(Debug, Clone)]
pub struct CheckedPlayers {
    /// Whether players are warned, or awaited.
    pub policy: PlayerPolicy,
    /// How long before a stop players are warned.
    pub notice: SignedDuration,
    /// The same while the server is empty.
    pub empty_notice: SignedDuration,
    /// Announcement of an update.
    pub announcement: Announcement,
    /// Where players see announcements, including those of a restart.
    pub show: BTreeSet<agent_api::AnnouncementTarget>,
    /// Texts for players other than announcements.
    pub texts: Texts,
    /// `None` if it has no scheduled restarts.
    pub restart: Option<CheckedRestart>,
    /// Announcement of a restart without an update, scheduled or requested.
    pub restart_announcement: Announcement,
    /// Whether its pod may be evicted. `None` if the spec does not set it, then the players policy decides.
    pub eviction: Option<paper_mc_server::Eviction>,
    /// Announcement before an eviction.
    pub drain_announcement: Announcement,
    /// Announcement before a requested restore.
    pub restore_announcement: Announcement,
    /// Announcement before the server is scaled to zero.
    pub scale_down_announcement: Announcement,
}

/// The pod and the server's process in it.
#[derive(Debug, Clone)]
pub struct CheckedPod {
    /// How long a stop with its save may take.
    pub stop_timeout: SignedDuration,
    /// The reaction to a process that exits repeatedly.
    pub on_crash_loop: OnCrashLoop,
    /// The reaction to a server that hangs.
    pub on_hang: OnHang,
    /// RCON.
    pub rcon: CheckedRcon,
    /// The heap of the JVM.
    pub heap: Heap,
    /// The image. `None` if the resolver chooses it.
    pub image: Option<String>,
    /// `spec.replicas`. It is also 0 while a crash loop has stopped the server.
    pub replicas: i32,
    /// The user's `podTemplate`.
    pub template: PodTemplateSpec,
}

/// The data of the server and its backups.
#[derive(Debug, Clone)]
pub struct CheckedData {
    /// The data volume.
    pub storage: CheckedStorage,
    /// `None` if no backups are taken.
    pub backup: Option<CheckedBackup>,
    /// `None` if a volume without a world gets a new one.
    pub restore_from: Option<CheckedRestoreFrom>,
    /// Maximum size of a plugin's data folder to be saved, in bytes. 0 means that none is saved.
    pub keep_plugin_data: u64,
}

/// The server that has to run an update first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedFollows {
    /// Its name, in the same namespace.
    pub server: String,
    /// How long it must have run the changes of an update.
    pub soak: SignedDuration,
}

/// Scheduled restarts.
#[derive(Debug, Clone)]
pub struct CheckedRestart {
    /// When they are due.
    pub restarts: RestartSchedule,
    /// Whether players are warned, or awaited.
    pub policy: PlayerPolicy,
    /// Whether only an empty server is restarted.
    pub only_empty: bool,
}

/// RCON on the pod's loopback interface.
#[derive(Debug, Clone)]
pub struct CheckedRcon {
    /// Whether the server has RCON.
    pub enabled: bool,
    /// The TCP port.
    pub port: u16,
    /// Name and key of the user's Secret. `None` if Nightshift's Secret is used.
    pub secret: Option<(String, String)>,
}

/// The data volume.
#[derive(Debug, Clone)]
pub struct CheckedStorage {
    /// The requested size, a quantity.
    pub size: String,
    /// The storage class. `None`: the cluster's default.
    pub class: Option<String>,
    /// Whether the claim stays when the server is deleted.
    pub retain: bool,
    /// Access mode of the claim.
    pub access_mode: String,
    /// The user's claim. `None` if Nightshift creates one.
    pub existing_claim: Option<String>,
}

/// Backups of the server.
#[derive(Debug, Clone)]
pub struct CheckedBackup {
    /// Before which updates a backup is taken.
    pub before_update: BeforeUpdate,
    /// When online backups are taken. `None` if only on request.
    pub schedule: Option<BackupTimes>,
    /// Why there is no schedule although the spec has one. It blocks nothing but the scheduled backups.
    pub schedule_problem: Option<Violation>,
    /// Contents of an online backup.
    pub online_contents: Contents,
    /// Where the backups are.
    pub volume: BackupVolume,
    /// Maximum number of good backups.
    pub max_count: u32,
    /// Maximum age of a backup. `None`: no limit.
    pub max_age: Option<SignedDuration>,
}

impl CheckedBackup {
    /// The backups of a server without `spec.backup`: one of the worlds from before a newer Minecraft, on the server's own volume.
    fn without_spec() -> Self {
        Self {
            before_update: BeforeUpdate::OneWay,
            schedule: None,
            schedule_problem: None,
            online_contents: Contents::Everything,
            volume: BackupVolume::Data,
            max_count: 1,
            max_age: None,
        }
    }
}

/// The volume that backups are stored on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupVolume {
    /// The server's own.
    Data,
    /// A claim that Nightshift creates.
    Created {
        /// The requested size, a quantity.
        size: String,
        /// The storage class. `None`: the cluster's default.
        class: Option<String>,
    },
    /// The user's claim.
    Existing(String),
}

/// The Service.
#[derive(Debug, Clone)]
pub struct CheckedService {
    /// The type of Service.
    pub kind: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl CheckedServer {
    /// Whether a running server is changed without a user's request.
    pub fn updates_automatically(&self) -> bool {
        self.updates.automatic && !self.updates.suspended && !self.updates.windows.windows.is_empty()
    }

    /// Name of the data claim. Other Minecraft operators use the same name, so an existing volume is adopted.
    pub fn claim_name(&self) -> String {
        data_claim(&self.name)
    }

    /// Name of the backup claim, unless the user has set one.
    pub fn backup_claim_name(&self) -> String {
        backup_claim(&self.name)
    }

    /// The claim with the backups. `None` if the server has none, or if they are on its own volume.
    pub fn backup_volume_claim(&self) -> Option<String> {
        volume_claim(self.data.backup.as_ref()?, &self.name)
    }

    /// Adapts the spec to a server that runs without RCON, whatever the spec says now. Players cannot be warned, and no save is ever
    /// confirmed.
    #[must_use]
    pub fn without_rcon(mut self) -> Self {
        self.players.policy = PlayerPolicy::Ignore;
        if let Some(restart) = &mut self.players.restart {
            restart.policy = PlayerPolicy::Ignore;
        }
        self
    }

    /// Whether its init container handles restore requests: for plugin data or worlds that a failed revision changed, or for a backup.
    pub fn accepts_restore_requests(&self) -> bool {
        self.data.backup.is_some() || self.data.restore_from.is_some() || self.data.keep_plugin_data > 0
    }
}

fn data_claim(server: &str) -> String {
    format!("data-{server}-0")
}

fn backup_claim(server: &str) -> String {
    format!("backup-{server}-0")
}

/// The claim of the server's backups, unless they are on its own volume.
fn volume_claim(backup: &CheckedBackup, server: &str) -> Option<String> {
    match &backup.volume {
        BackupVolume::Data => None,
        BackupVolume::Created { .. } => Some(backup_claim(server)),
        BackupVolume::Existing(claim) => Some(claim.clone()),
    }
}

/// The only field whose violations do not prevent an answer of the command `resolver`.
const SOFTWARE: &str = "spec.software";

/// Collects violations while values are parsed.
#[derive(Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, path: &str, problem: impl fmt::Display) {
        self.0.push(Violation { path: path.to_owned(), problem: problem.to_string() });
    }

    fn parse_duration(&mut self, path: &str, text: &str) -> SignedDuration {
        duration::parse(text).unwrap_or_else(|error| {
            self.add(path, error);
            SignedDuration::ZERO
        })
    }
}

fn check_stop_timeout(text: &str, violations: &mut Violations) -> SignedDuration {
    let path = "spec.gracefulShutdown.timeout";
    let before = violations.0.len();
    let timeout = violations.parse_duration(path, text);
    if violations.0.len() == before && timeout < GracefulShutdown::MIN_TIMEOUT {
        let message = format!(
            "`{text}` is too short: the server would be killed while it still writes the world, because one tick of a \
            busy server may take a minute. Write 60s or more, or remove the field. The default is 5m, and a server \
            that stops sooner causes no wait"
        );
        violations.add(path, message);
    }
    timeout
}

/// Checks a whole spec and returns all violations at once.
pub fn check(server: &PaperMCServer) -> Result<CheckedServer, Vec<Violation>> {
    check_with(server, PodTemplatePolicy::Any)
}

/// The same, with the admin's rules for `spec.podTemplate`.
pub fn check_with(server: &PaperMCServer, policy: PodTemplatePolicy) -> Result<CheckedServer, Vec<Violation>> {
    let spec = &server.spec;
    let mut violations = Violations::default();
    let zone = check_time_zone(&spec.time_zone, &mut violations);
    let updates = check_updates(server, zone, &mut violations);
    // Other software would be started as Paper, with a world and plugins that are made for something else.
    if spec.software != Software::Paper {
        let message = format!(
            "Nightshift runs Paper only. `resolver explain` also answers for {}. Remove the field, or run that server \
            without Nightshift",
            spec.software.as_str()
        );
        violations.add(SOFTWARE, message);
    }
    let players = check_players(server, zone, &mut violations);
    let pod = check_pod(server, &mut violations);
    check_pod_security(&pod.template, policy, &mut violations);
    let data = check_data(server, zone, &mut violations);
    let checked = CheckedServer {
        name: server.name_any(),
        namespace: server.namespace().unwrap_or_default(),
        owner: server.controller_owner_ref(&()),
        eula: spec.eula == Some(Eula::Accepted),
        updates,
        players,
        pod,
        data,
        service: CheckedService {
            kind: spec.service.kind.as_str().to_owned(),
            annotations: spec.service.annotations.clone(),
        },
    };
    if violations.0.is_empty() { Ok(checked) } else { Err(violations.0) }
}

/// The server's zone, or UTC in place of an unknown one.
fn check_time_zone<'z>(zone: &'z str, violations: &mut Violations) -> &'z str {
    match check_zone(zone) {
        Ok(()) => zone,
        Err(error) => {
            violations.add("spec.timeZone", error);
            "UTC"
        }
    }
}

fn check_updates(server: &PaperMCServer, zone: &str, violations: &mut Violations) -> CheckedUpdates {
    let (spec, schedule) = (&server.spec, &server.spec.update_schedule);
    CheckedUpdates {
        zone: zone.to_owned(),
        windows: check_windows(server, zone, violations),
        checks: schedule.check_cron.as_deref().and_then(|cron| {
            let checks = CheckTimes::parse(cron, zone);
            checks.map_err(|error| violations.add("spec.updateSchedule.checkCron", error)).ok()
        }),
        automatic: schedule.maintenance_window.as_ref().is_none_or(|window| window.enabled),
        suspended: spec.suspend,
        opportunistic: schedule.opportunistic.as_ref().map(|opportunistic| {
            violations.parse_duration("spec.updateSchedule.opportunistic.emptyFor", &opportunistic.empty_for)
        }),
        follows: check_follows(server, violations),
    }
}

fn check_players(server: &PaperMCServer, zone: &str, violations: &mut Violations) -> CheckedPlayers {
    let (spec, players) = (&server.spec, &server.spec.players);
    let deadline = violations.parse_duration("spec.players.deadline", &players.deadline);
    let notice = violations.parse_duration("spec.players.notice", &players.notice);
    let restart = check_restart(server, zone, (deadline, notice), violations);
    check_languages("spec.players.text", players.text.as_ref(), violations);
    check_languages("spec.players.drainText", players.drain_text.as_ref(), violations);
    check_languages("spec.players.restoreText", players.restore_text.as_ref(), violations);
    check_languages("spec.players.scaleDownText", players.scale_down_text.as_ref(), violations);
    let of_restart = spec.restart.as_ref().and_then(|restart| restart.text.as_ref());
    check_languages("spec.restart.text", of_restart, violations);
    CheckedPlayers {
        policy: player_policy(players.policy, deadline),
        notice,
        empty_notice: violations.parse_duration("spec.players.emptyNotice", &players.empty_notice),
        announcement: Announcement::new(players.text.as_ref(), ANNOUNCEMENT, SHORT_ANNOUNCEMENT),
        show: check_targets(&players.show, violations),
        texts: Texts::from_policy(players),
        restart,
        restart_announcement: Announcement::new(
            of_restart.or(players.text.as_ref()),
            RESTART_ANNOUNCEMENT,
            SHORT_ANNOUNCEMENT,
        ),
        eviction: spec.eviction,
        drain_announcement: Announcement::new(
            players.drain_text.as_ref().or(players.text.as_ref()),
            DRAIN_ANNOUNCEMENT,
            SHORT_DRAIN_ANNOUNCEMENT,
        ),
        restore_announcement: Announcement::new(
            players.restore_text.as_ref(),
            RESTORE_ANNOUNCEMENT,
            SHORT_ANNOUNCEMENT,
        ),
        scale_down_announcement: Announcement::new(
            players.scale_down_text.as_ref(),
            SCALE_DOWN_ANNOUNCEMENT,
            SHORT_SCALE_DOWN_ANNOUNCEMENT,
        ),
    }
}

fn check_pod(server: &PaperMCServer, violations: &mut Violations) -> CheckedPod {
    let spec = &server.spec;
    if spec.is_missing_rcon() {
        violations.add("spec.rcon.enabled", paper_mc_server::RCON_REQUIRED_MESSAGE);
    }
    let template = spec.pod_template.clone().unwrap_or_default();
    check_pod_template(&template, violations);
    CheckedPod {
        stop_timeout: check_stop_timeout(&spec.graceful_shutdown.timeout, violations),
        on_crash_loop: spec.on_crash_loop,
        on_hang: spec.on_hang,
        rcon: CheckedRcon {
            enabled: spec.rcon.enabled,
            port: spec.rcon.port,
            secret: spec.rcon.password_secret.as_ref().map(|of| (of.name.clone(), of.key.clone())),
        },
        heap: check_heap(&spec.jvm.heap, violations),
        image: spec.image.clone(),
        replicas: spec.replicas,
        template,
    }
}

fn check_data(server: &PaperMCServer, zone: &str, violations: &mut Violations) -> CheckedData {
    let (spec, storage) = (&server.spec, &server.spec.storage);
    let backup = check_backup(server, zone, violations);
    CheckedData {
        storage: CheckedStorage {
            size: storage.size.clone(),
            class: storage.storage_class_name.clone(),
            retain: storage.retain,
            access_mode: storage.access_mode.as_str().to_owned(),
            existing_claim: storage.existing_claim.clone(),
        },
        restore_from: check_restore_from(server, backup.as_ref(), violations),
        backup,
        keep_plugin_data: check_keep_plugin_data(&spec.keep_plugin_data, violations),
    }
}

fn player_policy(kind: PolicyKind, deadline: SignedDuration) -> PlayerPolicy {
    match kind {
        PolicyKind::Announce => PlayerPolicy::Announce,
        PolicyKind::WaitForEmpty => PlayerPolicy::WaitForEmpty { deadline },
        PolicyKind::Ignore => PlayerPolicy::Ignore,
    }
}

fn check_follows(server: &PaperMCServer, violations: &mut Violations) -> Option<CheckedFollows> {
    let follows = server.spec.follows.as_ref()?;
    if follows.server == server.name_any() {
        violations.add(
            "spec.follows.server",
            "a server cannot follow itself: name the server that is updated first, or remove `follows`",
        );
    }
    let soak = violations.parse_duration("spec.follows.soak", &follows.soak);
    Some(CheckedFollows { server: follows.server.clone(), soak })
}

/// Players would see the unknown placeholder unchanged.
fn check_languages(path: &str, text: Option<&String>, violations: &mut Violations) {
    let Some(unknown_placeholder) = text.and_then(|text| unknown_placeholder(text)) else { return };
    let languages = LANGUAGES.map(|language| language.code).join(", ");
    violations.add(
        path,
        format_args!(
            "`{unknown_placeholder}` names an unknown language: write `{{in}}`, or `{{in:…}}` with one of \
        {languages}"
        ),
    );
}

fn check_targets(show: &[AnnouncementTarget], violations: &mut Violations) -> BTreeSet<agent_api::AnnouncementTarget> {
    if show.is_empty() {
        violations.add(
            "spec.players.show",
            "is empty, so players would not be warned: remove the field, or write \
        `[Chat]`",
        );
    }
    let target = |target: &AnnouncementTarget| match target {
        AnnouncementTarget::Chat => agent_api::AnnouncementTarget::Chat,
        AnnouncementTarget::ActionBar => agent_api::AnnouncementTarget::ActionBar,
        AnnouncementTarget::Title => agent_api::AnnouncementTarget::Title,
    };
    show.iter().map(target).collect()
}

fn check_backup(server: &PaperMCServer, zone: &str, violations: &mut Violations) -> Option<CheckedBackup> {
    let Some(backup) = &server.spec.backup else { return Some(CheckedBackup::without_spec()) };
    let schedule = backup.schedule.as_ref();
    if !backup.enabled {
        if schedule.is_some() {
            violations.add(
                "spec.backup.schedule",
                "no backups are taken while `spec.backup.enabled` is false: remove one of the two",
            );
        }
        return None;
    }
    check_separate_volumes(server, backup.storage.existing_claim.as_deref(), violations);
    let max_age = backup.retention.max_age.as_deref();
    let (times, schedule_problem) = schedule.map_or((None, None), |schedule| check_backup_schedule(schedule, zone));
    Some(CheckedBackup {
        before_update: backup.before_update,
        schedule: times,
        schedule_problem,
        online_contents: match schedule.map(|schedule| schedule.contents).unwrap_or_default() {
            ScheduledContents::Everything => Contents::Everything,
            ScheduledContents::Worlds => Contents::Worlds,
        },
        volume: match &backup.storage.existing_claim {
            Some(claim) => BackupVolume::Existing(claim.clone()),
            None => BackupVolume::Created {
                size: backup.storage.size.clone(),
                class: backup.storage.storage_class_name.clone(),
            },
        },
        max_count: backup.retention.max_count,
        max_age: max_age.map(|text| violations.parse_duration("spec.backup.retention.maxAge", text)),
    })
}

/// A claim of the user has a directory for each server, which is a folder of the server here: each backup of everything would contain all earlier
/// ones. The loss of one volume would destroy the server and its backups.
fn check_separate_volumes(server: &PaperMCServer, existing_claim: Option<&str>, violations: &mut Violations) {
    let name = server.name_any();
    let data = server.spec.storage.existing_claim.clone().unwrap_or_else(|| data_claim(&name));
    if existing_claim.map_or_else(|| backup_claim(&name), str::to_owned) == data {
        violations.add(
            "spec.backup.storage.existingClaim",
            format_args!(
                "the backups would be on `{data}`, the claim of the server itself. Each full backup would contain all \
                earlier ones, and a lost volume would lose both. Name another claim"
            ),
        );
    }
}

/// The size limit in bytes. 0 means that no plugin data is saved.
fn check_keep_plugin_data(keep: &KeepPluginData, violations: &mut Violations) -> u64 {
    let size = &keep.max_size;
    memory_quantity::bytes(size).unwrap_or_else(|| {
        violations
            .add("spec.keepPluginData.maxSize", format_args!("`{size}` is not a size: write `512Mi`, or `0` for none"));
        0
    })
}

fn check_heap(heap: &str, violations: &mut Violations) -> Heap {
    if heap == "auto" {
        return Heap::Auto;
    }
    if let Some(mib) = memory_quantity::bytes(heap).map(|bytes| bytes >> 20).filter(|mib| *mib > 0) {
        return Heap::Fixed { mib };
    }
    violations.add("spec.jvm.heap", format_args!("`{heap}` is not an amount of memory: write `auto` or `4Gi`"));
    Heap::Auto
}

/// All violations in one line.
pub fn join_messages(violations: &[impl ToString]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
pub(crate) mod tests;
