//! Pure. Combines the observation and the solve result into the goal, the gate and the observation that the rollout takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::Contents;
use crds::paper_mc_server::{CrashStatus, UnmanagedFile};
use crds::{PaperMCServer, PaperMCServerStatus, Plugin};
use from_api::ServerState;
use jiff::{SignedDuration, Timestamp};
use resolver::Unsolvable;
use resolver::explanation::Explanation;
use resolver::model::bundled_plugins::bundled_in;
use resolver::model::catalog::Catalog;
use resolver::model::compatibility_facts::CompatibilityFacts;
use resolver::model::lock::Lock;
use resolver::model::request::{Request, Running};
use resolver::model::version::Minecraft;
use scheduler::maintenance::Gate;
use scheduler::observation::{EvictionPolicy, Goal, ImagesOnNode, NodeState, Observation, RestartDue, Verification};

use super::approval::ApprovalState;
use super::backups::{is_plugin_data_restore_requested, world_state};
use super::changes::{ServerChange, TemplateChange, format_changes};
use super::crash_loop::{ProcessState, process_state};
use super::drain::Drain;
use super::follows::FollowWait;
use super::hang::RestartedHang;
use super::in_game_stop::verification_began;
use super::model::baseline::EMPTY_BASELINE;
use super::model::image_pull::state::Pull;
use super::model::records::LockRecord;
use super::next_window::NextWindow;
use super::observe::Observed;
use super::online_backup::OnlineBackups;
use super::opportunistic::OpportunisticState;
use super::partial::PartialSelection;
use super::partial::urgent::UrgentUpdate;
use super::pinned_set::PinnedSet;
use super::requested_restart::RestartRequest;
use super::requested_restore::RestoreRequests;
use super::scheduled_restart::ScheduledRestarts;
use super::unmanaged_jars::unmanaged_files;
use super::verify::{VerificationResult, VerificationTarget, clock_offset, other_image, reachable_from, verify};
use crate::Config;
use crate::caches::Rendered;
use crate::update_slots::SlotUnavailable;
use constraint::Constraint;
use failed_revisions::facts_with_failed_goal;
pub(crate) use start_timeout::StartTimeout;
use validate::CheckedServer;

pub(crate) mod constraint;
pub(crate) mod failed_revisions;
mod opportunistic;
pub(crate) mod staging;
mod start_timeout;

/// The inputs of a pass before it plans.
#[derive(Clone, Copy)]
pub(crate) struct PassInput<'a> {
    pub(crate) server: &'a PaperMCServer,
    pub(crate) checked: &'a CheckedServer,
    pub(crate) observed: &'a Observed,
    /// The last status.
    pub(crate) before: &'a PaperMCServerStatus,
    /// The instant of the decision: the observation, or the opening of the window for which it waited.
    pub(crate) now: Timestamp,
}

/// The running lock and the limits that a solve must respect.
pub(crate) struct RunningState {
    pub(crate) lock: Option<Arc<LockRecord>>,
    /// The lock that a rollout in progress has given to the pod, unless it has failed. It stays the goal while no solve is possible.
    pub(crate) candidate: Option<Arc<LockRecord>>,
    pub(crate) floor: Option<Minecraft>,
    /// The unmanaged JARs that the agent reports now. `None` if the agent is unreachable: then the list in the status counts.
    pub(crate) unmanaged_jars: Option<Vec<UnmanagedFile>>,
}

impl RunningState {
    /// Takes the stable lock, or the pod's lock while no revision is stable yet. After a roll-back the stable lock is the older one, and
    /// the versions below which plugins do not go follow it.
    pub(crate) fn from_observed(observed: &Observed) -> Self {
        let floor = observed.reply.report.as_ref().and_then(|report| report.world.floor.as_ref());
        let lock = observed.stable_lock.clone().or_else(|| observed.pod_lock.clone());
        // A world that could not be inspected is at least as new as the Minecraft of the stable lock.
        let floor = floor
            .and_then(|floor| floor.minecraft.parse().ok())
            .or_else(|| observed.stable_lock.as_ref().map(|record| record.lock.minecraft.clone()));
        let is_candidate = |revision| !observed.facts.failed.contains(&revision);
        let has_candidate = observed.is_rollout_in_progress() && observed.pod_revision.is_some_and(is_candidate);
        let candidate = observed.pod_lock.clone().filter(|_| has_candidate);
        Self { lock, candidate, floor, unmanaged_jars: observed.reply.report.as_deref().map(unmanaged_files) }
    }

    /// The record of this lock if the server or the candidate has it. `None` for any other lock.
    pub(crate) fn record_of(&self, lock: &Lock) -> Option<&Arc<LockRecord>> {
        self.lock.iter().chain(&self.candidate).find(|record| record.lock.digest() == lock.digest())
    }
}

/// The state of a server outside the specs. It is copied into the status unchanged, so that `resolver explain` can ask the same query.
///
/// `catalog` shows which releases have been delisted. `None` if no catalog has been read yet.
pub(crate) fn server_state(runs: &RunningState, config: &Config, catalog: Option<&Catalog>) -> ServerState {
    let running = runs.lock.as_ref().map(|record| running(&record.lock, catalog));
    let image = (!config.game_image.contains("{java}")).then(|| config.game_image.clone());
    ServerState { floor: runs.floor.clone(), running, image }
}

/// The packages that a lock runs. Delisted releases among them can be kept, because their files are on the server's volume.
pub(super) fn running(lock: &Lock, catalog: Option<&Catalog>) -> Running {
    let running = Running::from_lock(lock);
    match catalog {
        Some(catalog) => running.with_delisted(lock, catalog),
        None => running,
    }
}

/// Builds the request of one server. `Err` holds the spec violations as text.
pub(crate) fn build_request(
    server: &PaperMCServer,
    plugins: &[Arc<Plugin>],
    runs: &RunningState,
    config: &Config,
    (facts, catalog): (&CompatibilityFacts, Option<&Catalog>),
    is_manual: bool,
) -> Result<Request, String> {
    let mut request = server_state(runs, config, catalog)
        .build_request(server, plugins.iter().map(AsRef::as_ref))
        .map_err(|violations| validate::join_messages(&violations))?;
    if let Some(unmanaged_jars) = &runs.unmanaged_jars {
        // The report of the agent is newer than the list in the status.
        request.unmanaged = from_api::unmanaged(&server.spec, unmanaged_jars);
    }
    request.facts = facts.clone();
    if is_manual {
        // An apply-now request also skips the delays.
        request.delay = SignedDuration::ZERO;
        for plugin in &mut request.plugins {
            plugin.delay = SignedDuration::ZERO;
        }
    }
    Ok(request)
}

/// The result of the solve and the lock to continue with: the new lock, or the running one if there is no new one. An unsolvable request
/// leaves a running server unchanged, and a rollout in progress continues while the upstreams are read.
pub(crate) struct ResolvedLock {
    pub(crate) lock: Option<Lock>,
    pub(crate) explanation: Explanation,
    pub(crate) solved: bool,
}

/// No image can be pinned while Docker Hub is unreachable. The image of the running lock is pinned already and has the same Java version.
pub(super) fn with_image_of(mut lock: Lock, runs: &RunningState) -> Lock {
    if lock.image.is_none() {
        let same_java = runs.lock.as_ref().filter(|record| record.lock.java == lock.java);
        (lock.image, lock.image_java) =
            same_java.map_or((None, None), |record| (record.lock.image.clone(), record.lock.image_java));
    }
    lock
}

/// Converts the result of the solver.
pub(crate) fn resolved_lock(resolved: Result<resolver::Resolution, Unsolvable>, runs: &RunningState) -> ResolvedLock {
    match resolved {
        Ok(resolution) => {
            // The same version set solved again later differs in dates only. The running record is kept, byte for byte.
            let same = runs.record_of(&resolution.lock);
            let lock = same.map_or_else(|| with_image_of(resolution.lock, runs), |record| record.lock.clone());
            ResolvedLock { lock: Some(lock), explanation: resolution.explanation, solved: true }
        }
        Err(unsolvable) => {
            let explanation = unsolvable.explanation();
            let candidate = runs.candidate.as_ref().filter(|_| !is_impossible(&explanation));
            let lock = candidate.or(runs.lock.as_ref()).map(|record| record.lock.clone());
            ResolvedLock { lock, explanation, solved: false }
        }
    }
}

/// Time for which a new server is not created. Plugins of the same manifest file arrive a moment later. A server that started without them
/// would have to wait for its window to get them.
const CREATION_DELAY: SignedDuration = SignedDuration::from_secs(3);

/// Instant before which a server is too new to be created. `None` if it may be created.
pub(crate) fn too_new_until(server: &PaperMCServer, observed: &Observed, now: Timestamp) -> Option<Timestamp> {
    let created = server.metadata.creation_timestamp.as_ref()?.0;
    let fresh = observed.stateful_set.is_none() && observed.facts.settled.is_none();
    (fresh && now < created + CREATION_DELAY).then_some(created + CREATION_DELAY)
}

/// The version set that the server shall run, with its files and its pod template.
pub(crate) struct Target {
    pub(crate) record: Arc<LockRecord>,
    pub(crate) rendered: Rendered,
    /// The changes from the stable set.
    pub(crate) changes: Vec<ServerChange>,
    /// Why the pod template differs from the stable one, if there are no such changes.
    pub(crate) template_change: TemplateChange,
    /// Why the files of a newer lock could not be fetched. The running lock stays the goal then.
    pub(crate) files_problem: Option<String>,
}

impl Target {
    /// Why an update to this target is due.
    pub(crate) fn describe_changes(&self) -> String {
        if self.changes.is_empty() { self.template_change.describe() } else { format_changes(&self.changes) }
    }
}

/// How the target was selected.
pub(crate) struct Selection {
    pub(crate) explanation: Explanation,
    pub(crate) solved: bool,
    /// The Plugin whose fields apply, by the Plugins that request one project of the lock.
    pub(crate) deciding: BTreeMap<Vec<String>, String>,
    /// The pinned set that a user requested, which replaces the solved one.
    pub(crate) pinned_set: Option<PinnedSet>,
    /// The partial update, if there is one.
    pub(crate) partial: PartialSelection,
    /// End of the partial update: the end of the request for it, or the next opening of a window of the server.
    pub(crate) partial_until: Option<Timestamp>,
}

/// The state of each feature that can delay the update.
pub(crate) struct ConstraintStates {
    pub(crate) approval: ApprovalState,
    pub(crate) apply_request: ApplyRequest,
    /// Set if the followed server has to run this lock first.
    pub(crate) follow_wait: Option<FollowWait>,
    /// Recent crashes of the stable revision, and whether the server is stopped because of them.
    pub(crate) crashes: Option<CrashStatus>,
    /// Set while the server hangs, if it is to be restarted for that.
    pub(crate) hang: Option<RestartedHang>,
    /// Set if the update waits for room for the backup before it.
    pub(crate) missing_room: Option<MissingRoom>,
    /// Set if the update waits for a free update slot.
    pub(crate) slot_unavailable: Option<SlotUnavailable>,
    /// Images that the server's node has to pull before the server is stopped.
    pub(crate) images: Option<Pull>,
    /// State of the server's node.
    pub(crate) drain: Drain,
    /// The constraints that have shut the gate.
    pub(crate) delaying: Vec<&'static dyn Constraint>,
}

impl ConstraintStates {
    /// The states before any constraint is evaluated.
    pub(crate) fn new(approval: ApprovalState, apply_request: ApplyRequest, drain: Drain) -> Self {
        Self {
            approval,
            apply_request,
            follow_wait: None,
            crashes: None,
            hang: None,
            missing_room: None,
            slot_unavailable: None,
            images: None,
            drain,
            delaying: Vec::new(),
        }
    }
}

/// A user's request to apply an update now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ApplyRequest {
    /// The instant of the request that has opened the gate, if one has. Such an update needs no update slot.
    pub(crate) requested_at: Option<Timestamp>,
    /// The instant of a request that a blackout rejects.
    pub(crate) rejected_at: Option<Timestamp>,
}

/// What is missing for the backup before an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingRoom {
    /// Its volume has too little room.
    TooLittle {
        contents: Contents,
        /// Bytes that the backup needs at most.
        needed: u64,
        /// Bytes that it may use.
        room: u64,
    },
    /// The agent has not measured it yet. The update does not wait longer than this.
    Unmeasured { until: Timestamp },
}

/// Changes of the server besides the update.
#[derive(Default)]
pub(crate) struct OtherTasks {
    pub(crate) restarts: ScheduledRestarts,
    /// The restart that a user requested.
    pub(crate) restart_request: RestartRequest,
    /// The stop of a server that a user has scaled to zero.
    pub(crate) scale_down: Option<RestartDue>,
    /// Online backups.
    pub(crate) backups: OnlineBackups,
    /// The restore that a user requested.
    pub(crate) restores: RestoreRequests,
    /// When new releases are looked for next. `None` if that is continuous.
    pub(crate) next_check: Option<Timestamp>,
}

/// The result of planning: what the rollout, the steps and the report need.
pub(crate) struct Plan {
    pub(crate) goal: Goal,
    pub(crate) observation: Observation,
    pub(crate) gate: Gate,
    pub(crate) next_window: NextWindow,
    pub(crate) target: Target,
    pub(crate) selection: Selection,
    pub(crate) verification: VerificationResult,
    pub(crate) constraints: ConstraintStates,
    /// Whether the update may start outside of windows, and why.
    pub(crate) opportunistic: OpportunisticState,
    pub(crate) tasks: OtherTasks,
}

impl Plan {
    /// The plan to run `target` when `gate` allows it. No constraint has been evaluated yet.
    pub(crate) fn new(
        pass: &PassInput<'_>,
        target: Target,
        selection: Selection,
        constraints: ConstraintStates,
        tasks: OtherTasks,
        gate: Gate,
        start_timeout: StartTimeout,
    ) -> Self {
        let PassInput { checked, observed, now, .. } = *pass;
        let drain = &constraints.drain;
        let restart = tasks.restores.restart(tasks.restart_request.due.or(tasks.restarts.due));
        let restart = tasks.scale_down.or(restart);
        let verification = verify_pod(observed, &target.record, start_timeout.settle, now);
        let observation = build_observation(
            observed,
            &target,
            &tasks.restores,
            start_timeout,
            verification.result,
            drain.node_state(),
        );
        let urgent_opening = selection.partial.urgent().and_then(UrgentUpdate::next_opening);
        Self {
            goal: build_goal(checked, &target, restart, drain.eviction),
            observation,
            gate,
            next_window: NextWindow::new(checked, now).with_plugin_window(urgent_opening),
            target,
            selection,
            verification,
            constraints,
            opportunistic: OpportunisticState::none(gate),
            tasks,
        }
    }

    /// Whether the goal differs from the stable revision.
    pub(crate) fn is_update(&self) -> bool {
        self.observation.facts.settled.is_some_and(|stable| stable.revision != self.goal.revision)
    }

    /// Whether the request is unsolvable, as opposed to unanswered because metadata is missing.
    pub(crate) fn is_impossible(&self) -> bool {
        is_impossible(&self.selection.explanation)
    }
}

/// The goal of the rollout: the target, and how this server may be stopped for it.
fn build_goal(server: &CheckedServer, target: &Target, restart: Option<RestartDue>, eviction: EvictionPolicy) -> Goal {
    Goal {
        revision: target.rendered.revision,
        world: target.record.world(),
        policy: server.players.policy,
        notice: server.players.notice,
        empty_notice: server.players.empty_notice,
        stop_timeout: server.pod.stop_timeout,
        restart,
        eviction,
    }
}

/// The input of the rollout.
fn build_observation(
    observed: &Observed,
    target: &Target,
    restores: &RestoreRequests,
    start_timeout: StartTimeout,
    verification: Verification,
    node: NodeState,
) -> Observation {
    let report = observed.reply.report.as_deref();
    let stable_world = observed.facts.settled.map(|stable| stable.world);
    let one_way = observed.pod_lock.as_ref().is_some_and(|lock| stable_world.is_some_and(|world| lock.world() > world));
    let files = &target.record.files;
    Observation {
        stateful_set: observed.stateful_set_view,
        pod: observed.pod_view(start_timeout.start_within(one_way)),
        players: observed.players(),
        empty_since: report.and_then(|report| report.empty_since),
        verification,
        world: world_state(observed),
        node,
        // An unreachable agent stages nothing and must not delay an update for ever. The `prepare` container fetches missing files when
        // the pod starts.
        staged: report.is_none_or(|report| {
            report.staged.contains(&files.lock) || report.lock.as_deref() == Some(files.lock.as_str())
        }),
        images: ImagesOnNode::Present,
        // A restore of everything in a backup also restores the plugin data of that day.
        data_restore_requested: is_plugin_data_restore_requested(observed)
            || restores.can_join_rollback && restores.restores_everything(),
        user_restore_requested: restores.can_join_rollback,
        crash_loop: false,
        agent_memory: observed.agent_memory(),
        facts: facts_with_failed_goal(observed, &target.rendered),
    }
}

fn verify_pod(observed: &Observed, goal: &LockRecord, settle: SignedDuration, now: Timestamp) -> VerificationResult {
    let image = other_image(observed);
    // Kubelet and agent share the node's clock. Its offset from the operator's clock is known from the agent's last report.
    let ahead = observed
        .reply
        .cached_report
        .as_ref()
        .map_or(SignedDuration::ZERO, |report| clock_offset(report.at, observed.reply.replied_at));
    let by_our_clock = |at: Timestamp| at.checked_add(ahead).unwrap_or(at);
    let record = observed.pod_lock.as_deref().unwrap_or(goal);
    let bundled: Vec<_> = bundled_in(record.lock.software, &record.lock.minecraft).map(|plugin| plugin.name).collect();
    let expected = VerificationTarget {
        files: &record.files,
        before: observed.stable_lock.as_ref().map(|record| &record.files),
        baseline: observed.stable.as_ref().map_or(&EMPTY_BASELINE, |record| &record.baseline),
        settle,
        began: observed.pod.as_ref().and_then(verification_began).unwrap_or(now),
        reachable_from: observed.pod.as_ref().and_then(reachable_from).map_or(now, by_our_clock),
        process: observed.pod.as_ref().map_or(ProcessState::Running, |pod| process_state(pod, settle, now)),
        other_image: image.as_deref(),
        bundled: &bundled,
    };
    verify(observed.reply.report.as_deref(), &expected, now)
}

/// Whether an explanation is a definite no. An abandoned search counts, because a second search usually ends the same way.
pub(crate) fn is_impossible(explanation: &Explanation) -> bool {
    match explanation {
        Explanation::Impossible(_) | Explanation::GaveUp(_) => true,
        Explanation::Solved(_)
        | Explanation::WhyNot(_)
        | Explanation::WhyNotRelease(_)
        | Explanation::Unanswerable(_) => false,
    }
}

/// The version that the server reports, for the status: for example `1.21.10` and build 130.
pub(crate) fn running_version(report: Option<&agent_api::AgentReport>) -> Option<(String, Option<u32>)> {
    match &report?.server {
        agent_api::Server::Up { minecraft, build, .. } => Some((minecraft.clone(), *build)),
        agent_api::Server::Absent | agent_api::Server::Starting { .. } | agent_api::Server::Stopping { .. } => None,
    }
}

pub(crate) mod gate;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn running_lock_needs_no_staging() {
        let lock = |build: u32, read_at: &str| -> Lock {
            serde_json::from_value(json!({
                "server": "games/lobby", "minecraft": "1.21.10", "build": build, "java": 21, "plugins": [],
                "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"},
                "facts": [{"about": "Paper", "readAt": read_at}],
            }))
            .unwrap()
        };
        let files = json!({
            "lock": "00", "minecraft": "1.21.10", "build": 130, "support": [], "plugins": [],
            "server": {"path": "paper.jar", "hash": "sha256:00", "url": ""},
        });
        let files = serde_json::from_value(files).unwrap();
        let record = Arc::new(LockRecord { lock: lock(130, "2026-11-20T12:00:00Z"), files });
        let runs = RunningState { lock: Some(record), candidate: None, floor: None, unmanaged_jars: None };
        assert!(runs.record_of(&lock(130, "2026-11-21T12:00:00Z")).is_some(), "only the time of the read differs");
        assert!(runs.record_of(&lock(131, "2026-11-20T12:00:00Z")).is_none());
        let nothing = RunningState { lock: None, candidate: None, floor: None, unmanaged_jars: None };
        assert!(nothing.record_of(&lock(130, "2026-11-20T12:00:00Z")).is_none());
    }
}
