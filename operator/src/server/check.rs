//! Pure. The server as the user wrote it -> a server that every later step can rely on, or complaints with field and fix.
//!
//! Everything that CEL refuses already is refused here again: an object may be older than the schema.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crds::paper_mc_server::{
    AnnouncementTarget, BeforeUpdate, Eula, GracefulShutdown, KeepPluginData, OnCrashLoop, PolicyKind,
    ScheduledContents, Software,
};
use crds::{PaperMCServer, duration, paper_mc_server};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use scheduler::announcement::locale::LANGUAGES;
use scheduler::announcement::placeholder::unknown;
use scheduler::backup::Contents;
use scheduler::maintenance::{BackupTimes, Restarts, Windows};
use scheduler::observation::PlayerPolicy;
use scheduler::protocol;

use super::render::heap::Heap;
use super::render::owner_of;
use crate::memory_quantity;

pub(crate) mod lenient;
mod pod_template;
mod restore_from;
mod texts;
pub(crate) mod windows;

use pod_template::check_pod_template;
use restore_from::check_restore_from;
pub(crate) use restore_from::{CheckedRestoreFrom, is_copy};
use texts::{ANNOUNCEMENT, DRAIN_ANNOUNCEMENT, SHORT_ANNOUNCEMENT, SHORT_DRAIN_ANNOUNCEMENT};
pub(crate) use texts::{Announcement, Texts};
use windows::{check_copies, check_restart, check_windows};

/// Something that is wrong with a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// `spec.updateSchedule.maintenanceWindow.cron`.
    pub(crate) path: String,
    /// What is wrong, and what to write.
    pub(crate) problem: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// A server whose spec holds together.
#[derive(Debug, Clone)]
pub(crate) struct CheckedServer {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) owner: OwnerReference,
    /// The user agreed to the EULA; without it nothing is ever started.
    pub(crate) eula: bool,
    pub(crate) zone: String,
    pub(crate) windows: Windows,
    /// False: updates are planned and never applied by themselves.
    pub(crate) automatic: bool,
    /// `spec.suspend`: the same, for a while.
    pub(crate) suspended: bool,
    /// How long nobody must have been on for an update outside of windows; None: it waits for one.
    pub(crate) opportunistic: Option<SignedDuration>,
    /// None: it waits for no other server.
    pub(crate) follows: Option<CheckedFollows>,
    pub(crate) policy: PlayerPolicy,
    pub(crate) notice: SignedDuration,
    pub(crate) empty_notice: SignedDuration,
    pub(crate) announcement: Announcement,
    /// Where players read it, before a restart too.
    pub(crate) show: BTreeSet<protocol::Place>,
    /// What they read beside announcements.
    pub(crate) texts: Texts,
    /// None: it is not restarted by the clock.
    pub(crate) restart: Option<CheckedRestart>,
    /// Whether its pod may be evicted; None: the user says nothing, see [`super::drain::eviction_of`].
    pub(crate) eviction: Option<paper_mc_server::Eviction>,
    /// What players read before that.
    pub(crate) drain_announcement: Announcement,
    pub(crate) stop_timeout: SignedDuration,
    /// What becomes of it when its process ends again and again.
    pub(crate) on_crash_loop: OnCrashLoop,
    pub(crate) rcon: CheckedRcon,
    pub(crate) heap: Heap,
    pub(crate) storage: CheckedStorage,
    /// None: no copies are taken.
    pub(crate) backup: Option<CheckedBackup>,
    /// None: a volume without a world gets a new one.
    pub(crate) restore_from: Option<CheckedRestoreFrom>,
    /// How large the data folder of a plugin may be to be kept, in bytes; 0: none is kept.
    pub(crate) keep_plugin_data: u64,
    pub(crate) service: CheckedService,
    pub(crate) image: Option<String>,
    /// `spec.replicas`; 0 also while a loop of crashes has stopped it.
    pub(crate) replicas: i32,
    pub(crate) pod_template: PodTemplateSpec,
}

/// The server that goes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckedFollows {
    pub(crate) server: String,
    /// How long it must have run what an update changes.
    pub(crate) soak: SignedDuration,
}

/// Restarts by the clock.
#[derive(Debug, Clone)]
pub(crate) struct CheckedRestart {
    pub(crate) restarts: Restarts,
    pub(crate) policy: PlayerPolicy,
    pub(crate) only_empty: bool,
    pub(crate) announcement: Announcement,
}

/// RCON on the pod's loopback.
#[derive(Debug, Clone)]
pub(crate) struct CheckedRcon {
    pub(crate) enabled: bool,
    pub(crate) port: u16,
    /// Name and key of the user's Secret; None: ours.
    pub(crate) secret: Option<(String, String)>,
}

/// The volume.
#[derive(Debug, Clone)]
pub(crate) struct CheckedStorage {
    pub(crate) size: String,
    pub(crate) class: Option<String>,
    pub(crate) retain: bool,
    pub(crate) access_mode: String,
    pub(crate) existing_claim: Option<String>,
}

/// Copies of the server.
#[derive(Debug, Clone)]
pub(crate) struct CheckedBackup {
    pub(crate) before_update: BeforeUpdate,
    /// When the running server is copied; None: only when a person asks.
    pub(crate) schedule: Option<BackupTimes>,
    /// Why there is none although one is written. It keeps nothing but these copies.
    pub(crate) schedule_problem: Option<Complaint>,
    /// What such a copy holds.
    pub(crate) hot_contents: Contents,
    pub(crate) size: String,
    pub(crate) class: Option<String>,
    pub(crate) existing_claim: Option<String>,
    pub(crate) max_count: u32,
    pub(crate) max_age: Option<SignedDuration>,
}

/// The Service.
#[derive(Debug, Clone)]
pub(crate) struct CheckedService {
    pub(crate) kind: String,
    pub(crate) annotations: BTreeMap<String, String>,
}

impl CheckedServer {
    /// Whether anything that runs is changed without a person's request.
    pub(crate) fn changes_by_itself(&self) -> bool {
        self.automatic && !self.suspended && !self.windows.windows.is_empty()
    }

    /// The name that other operators of the field give the claim, so that an existing volume is adopted.
    pub(crate) fn claim_name(&self) -> String {
        data_claim(&self.name)
    }

    /// The claim of the copies, unless the user brought one.
    pub(crate) fn backup_claim_name(&self) -> String {
        backup_claim(&self.name)
    }

    /// The claim with the copies; None: it has none.
    pub(crate) fn copies_claim(&self) -> Option<String> {
        let backup = self.backup.as_ref()?;
        Some(backup.existing_claim.clone().unwrap_or_else(|| self.backup_claim_name()))
    }

    /// For a server that runs without RCON, whatever its spec says by now: nobody can be told, and no save is ever confirmed.
    pub(crate) fn asking_nobody(mut self) -> Self {
        self.policy = PlayerPolicy::Ignore;
        if let Some(restart) = &mut self.restart {
            restart.policy = PlayerPolicy::Ignore;
        }
        self
    }

    /// Its init container obeys orders: to put back what a failed set has changed, or a copy.
    pub(crate) fn may_be_ordered_back(&self) -> bool {
        self.backup.is_some() || self.restore_from.is_some() || self.keep_plugin_data > 0
    }
}

fn data_claim(server: &str) -> String {
    format!("data-{server}-0")
}

fn backup_claim(server: &str) -> String {
    format!("backup-{server}-0")
}

/// Collects complaints while values are read.
#[derive(Default)]
struct Complaints(Vec<Complaint>);

impl Complaints {
    fn add(&mut self, path: &str, problem: impl fmt::Display) {
        self.0.push(Complaint { path: path.to_owned(), problem: problem.to_string() });
    }

    fn duration(&mut self, path: &str, text: &str) -> SignedDuration {
        duration::parse(text).unwrap_or_else(|error| {
            self.add(path, error);
            SignedDuration::ZERO
        })
    }
}

fn check_stop_timeout(text: &str, complaints: &mut Complaints) -> SignedDuration {
    let path = "spec.gracefulShutdown.timeout";
    let before = complaints.0.len();
    let timeout = complaints.duration(path, text);
    if complaints.0.len() == before && timeout < GracefulShutdown::LEAST {
        let words = format!(
            "`{text}` is too short: the server would be killed while it still writes the world, and one tick of a busy \
             server may take a minute. Write 60s or more, or remove the field: the default is 5m, and a server that \
             stops sooner is not waited for"
        );
        complaints.add(path, words);
    }
    timeout
}

/// Checks a whole spec; all complaints at once.
pub(crate) fn check(server: &PaperMCServer) -> Result<CheckedServer, Vec<Complaint>> {
    let spec = &server.spec;
    let mut complaints = Complaints::default();
    let windows = check_windows(server, &mut complaints);
    // It would be started as Paper, on a world and with plugins that are made for something else.
    if spec.software != Software::Paper {
        let words = format!(
            "Nightshift runs Paper only; `resolver explain` answers for {}. Remove the field, or run that server without Nightshift",
            spec.software.as_str()
        );
        complaints.add("spec.software", words);
    }
    let maintenance = spec.update_schedule.maintenance_window.as_ref();
    let deadline = complaints.duration("spec.players.deadline", &spec.players.deadline);
    let policy = policy_of(spec.players.policy, deadline);
    let notice = complaints.duration("spec.players.notice", &spec.players.notice);
    let restart = check_restart(server, deadline, notice, &mut complaints);
    if spec.lacks_rcon() {
        complaints.add("spec.rcon.enabled", paper_mc_server::NEEDS_RCON);
    }
    let pod_template = spec.pod_template.clone().unwrap_or_default();
    check_pod_template(&pod_template, &mut complaints);
    let backup = check_backup(server, &mut complaints);
    check_languages("spec.players.text", spec.players.text.as_ref(), &mut complaints);
    let of_restart = spec.restart.as_ref().and_then(|restart| restart.text.as_ref());
    check_languages("spec.restart.text", of_restart, &mut complaints);
    let checked = CheckedServer {
        name: server.name_any(),
        namespace: server.namespace().unwrap_or_default(),
        owner: owner_of(server),
        eula: spec.eula == Some(Eula::Accepted),
        zone: spec.time_zone.clone(),
        windows,
        automatic: maintenance.is_none_or(|window| window.enabled),
        suspended: spec.suspend,
        opportunistic: (spec.update_schedule.opportunistic.as_ref())
            .map(|it| complaints.duration("spec.updateSchedule.opportunistic.emptyFor", &it.empty_for)),
        follows: check_follows(server, &mut complaints),
        policy,
        notice,
        empty_notice: complaints.duration("spec.players.emptyNotice", &spec.players.empty_notice),
        announcement: Announcement::of(spec.players.text.as_ref(), ANNOUNCEMENT, SHORT_ANNOUNCEMENT),
        show: check_places(&spec.players.show, &mut complaints),
        texts: Texts::of(&spec.players),
        restart,
        eviction: spec.eviction,
        drain_announcement: Announcement::of(
            spec.players.drain_text.as_ref().or(spec.players.text.as_ref()),
            DRAIN_ANNOUNCEMENT,
            SHORT_DRAIN_ANNOUNCEMENT,
        ),
        stop_timeout: check_stop_timeout(&spec.graceful_shutdown.timeout, &mut complaints),
        on_crash_loop: spec.on_crash_loop,
        rcon: CheckedRcon {
            enabled: spec.rcon.enabled,
            port: spec.rcon.port,
            secret: spec.rcon.password_secret.as_ref().map(|of| (of.name.clone(), of.key.clone())),
        },
        heap: check_heap(&spec.jvm.heap, &mut complaints),
        storage: CheckedStorage {
            size: spec.storage.size.clone(),
            class: spec.storage.storage_class_name.clone(),
            retain: spec.storage.retain,
            access_mode: spec.storage.access_mode.as_str().to_owned(),
            existing_claim: spec.storage.existing_claim.clone(),
        },
        restore_from: check_restore_from(server, backup.as_ref(), &mut complaints),
        backup,
        keep_plugin_data: check_keep_plugin_data(&spec.keep_plugin_data, &mut complaints),
        service: CheckedService {
            kind: spec.service.kind.as_str().to_owned(),
            annotations: spec.service.annotations.clone(),
        },
        image: spec.image.clone(),
        replicas: spec.replicas,
        pod_template,
    };
    if complaints.0.is_empty() { Ok(checked) } else { Err(complaints.0) }
}

fn policy_of(kind: PolicyKind, deadline: SignedDuration) -> PlayerPolicy {
    match kind {
        PolicyKind::Announce => PlayerPolicy::Announce,
        PolicyKind::WaitForEmpty => PlayerPolicy::WaitForEmpty { deadline },
        PolicyKind::Ignore => PlayerPolicy::Ignore,
    }
}

fn check_follows(server: &PaperMCServer, complaints: &mut Complaints) -> Option<CheckedFollows> {
    let follows = server.spec.follows.as_ref()?;
    if follows.server == server.name_any() {
        complaints.add(
            "spec.follows.server",
            "a server cannot follow itself: name the one that is to go first, or leave `follows` out",
        );
    }
    let soak = complaints.duration("spec.follows.soak", &follows.soak);
    Some(CheckedFollows { server: follows.server.clone(), soak })
}

/// Players would read the place as it stands.
fn check_languages(path: &str, text: Option<&String>, complaints: &mut Complaints) {
    let Some(place) = text.and_then(|text| unknown(text)) else { return };
    let known = LANGUAGES.map(|language| language.code).join(", ");
    complaints.add(
        path,
        format_args!("`{place}` names no language that is known: write `{{in}}`, or `{{in:…}}` with one of {known}"),
    );
}

fn check_places(show: &[AnnouncementTarget], complaints: &mut Complaints) -> BTreeSet<protocol::Place> {
    if show.is_empty() {
        complaints.add("spec.players.show", "is empty, so nobody would be told; remove the field, or write `[Chat]`");
    }
    let place = |place: &AnnouncementTarget| match place {
        AnnouncementTarget::Chat => protocol::Place::Chat,
        AnnouncementTarget::ActionBar => protocol::Place::ActionBar,
        AnnouncementTarget::Title => protocol::Place::Title,
    };
    show.iter().map(place).collect()
}

fn check_backup(server: &PaperMCServer, complaints: &mut Complaints) -> Option<CheckedBackup> {
    let backup = server.spec.backup.as_ref()?;
    let schedule = backup.schedule.as_ref();
    if !backup.enabled {
        if schedule.is_some() {
            complaints.add(
                "spec.backup.schedule",
                "no copies are taken while `spec.backup.enabled` is false: leave one of the two out",
            );
        }
        return None;
    }
    check_apart(server, backup.storage.existing_claim.as_deref(), complaints);
    let max_age = backup.retention.max_age.as_deref();
    let (copies, schedule_problem) =
        schedule.map_or((None, None), |schedule| check_copies(schedule, &server.spec.time_zone, complaints));
    Some(CheckedBackup {
        before_update: backup.before_update,
        schedule: copies,
        schedule_problem,
        hot_contents: match schedule.map(|schedule| schedule.contents).unwrap_or_default() {
            ScheduledContents::Everything => Contents::Everything,
            ScheduledContents::Worlds => Contents::Worlds,
        },
        size: backup.storage.size.clone(),
        class: backup.storage.storage_class_name.clone(),
        existing_claim: backup.storage.existing_claim.clone(),
        max_count: backup.retention.max_count,
        max_age: max_age.map(|text| complaints.duration("spec.backup.retention.maxAge", text)),
    })
}

/// Each copy of everything would hold all those before it, and one lost volume would take the server and its copies.
fn check_apart(server: &PaperMCServer, copies: Option<&str>, complaints: &mut Complaints) {
    let name = server.name_any();
    let data = server.spec.storage.existing_claim.clone().unwrap_or_else(|| data_claim(&name));
    if copies.map_or_else(|| backup_claim(&name), str::to_owned) == data {
        complaints.add(
            "spec.backup.storage.existingClaim",
            format_args!(
                "the copies would lie on `{data}`, the claim of the server itself: each copy of everything would hold all those before it, \
                 and who loses that volume would lose both. Name another claim"
            ),
        );
    }
}

/// In bytes; 0: none is kept.
fn check_keep_plugin_data(keep: &KeepPluginData, complaints: &mut Complaints) -> u64 {
    let size = &keep.max_size;
    memory_quantity::bytes(size).unwrap_or_else(|| {
        complaints
            .add("spec.keepPluginData.maxSize", format_args!("`{size}` is no size: write `512Mi`, or `0` for none"));
        0
    })
}

fn check_heap(heap: &str, complaints: &mut Complaints) -> Heap {
    if heap == "auto" {
        return Heap::Auto;
    }
    if let Some(mib) = memory_quantity::bytes(heap).map(|bytes| bytes >> 20).filter(|mib| *mib > 0) {
        return Heap::Fixed { mib };
    }
    complaints.add("spec.jvm.heap", format_args!("`{heap}` is no amount of memory: write `auto` or `4Gi`"));
    Heap::Auto
}

#[cfg(test)]
pub(crate) mod tests;
