//! Pure. Combines the observation and the solve result into the goal, the gate and the observation that the rollout takes.

use std::sync::Arc;

use crds::paper_mc_server::{AvailableUpdate, CrashStatus, HandledRequests, UnmanagedFile};
use crds::{PaperMCServer, PaperMCServerStatus, Plugin};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use resolver::Unsolvable;
use resolver::catalog::Catalog;
use resolver::compatibility_facts::CompatibilityFacts;
use resolver::explain::Explanation;
use resolver::from_api::ServerState;
use resolver::lock::Lock;
use resolver::request::{Request, Running};
use resolver::version::Minecraft;
use scheduler::maintenance::{Gate, Windows};
use scheduler::observation::{EvictionSeen, Goal, ImagesOnNode, NodeState, Observation, Partition, Revision};
use scheduler::protocol;

use super::approval::{ApprovalState, whole_second};
use super::backups::{data_ordered, look_at_world};
use super::changes::{ServerChange, changes};
use super::check::CheckedServer;
use super::crash_loop::{ProcessExit, process_of};
use super::drain::Drain;
use super::follows::{FollowState, FollowWait};
use super::image_pull::state::Pull;
use super::in_game_stop::proof_began;
use super::next_window::NextWindow;
use super::observe::Observed;
use super::online_backup::OnlineBackups;
use super::opportunistic::OpportunisticState;
use super::partial::PartialSelection;
use super::partial::urgent::UrgentUpdate;
use super::pinned_set::PinnedSet;
use super::records::LockRecord;
use super::requested_restore::RestoreRequests;
use super::scheduled_restart::Restarts;
use super::unmanaged_jars::strangers;
use super::verify::{Baseline, VerificationResult, VerificationTarget, asked_from, clocks_differ, other_image, prove};
use crate::Config;
use crate::caches::Rendered;
use crate::k8s::labels;
use crate::node_watch::NodeObservation;
use crate::update_slots::SlotUnavailable;
use failed_revisions::with_what_failed;
pub(crate) use start_timeout::StartTimeout;

mod failed_revisions;
mod start_timeout;

/// The running lock and the limits that a solve must respect.
pub(crate) struct WhatRuns {
    pub(crate) lock: Option<Arc<LockRecord>>,
    pub(crate) floor: Option<Minecraft>,
    /// The unmanaged JARs that the agent reports now. `None` if the agent is unreachable: then the list in the status counts.
    pub(crate) strangers: Option<Vec<UnmanagedFile>>,
}

impl WhatRuns {
    /// Takes the stable lock, or the pod's lock while no revision is stable yet. After a roll-back the stable lock is the older one, and
    /// the versions below which plugins do not go follow it.
    pub(crate) fn of(seen: &Observed) -> Self {
        let floor = seen.report.as_ref().and_then(|report| report.world.floor.as_ref());
        let lock = seen.settled_lock.clone().or_else(|| seen.pod_lock.clone());
        // A world that could not be inspected is at least as new as the Minecraft of the stable lock.
        let floor = floor
            .and_then(|floor| floor.minecraft.parse().ok())
            .or_else(|| seen.settled_lock.as_ref().map(|record| record.lock.minecraft.clone()));
        Self { lock, floor, strangers: seen.report.as_deref().map(strangers) }
    }

    /// The record of this lock if it is the running one. `None` for any other lock.
    pub(crate) fn record_of(&self, lock: &Lock) -> Option<&Arc<LockRecord>> {
        self.lock.as_ref().filter(|record| record.lock.digest() == lock.digest())
    }
}

/// The state of a server outside the specs. It is copied into the status unchanged, so that `resolver explain` can ask the same query.
///
/// `catalog` shows which releases have been delisted. `None` if no catalog has been read yet.
pub(crate) fn known(runs: &WhatRuns, config: &Config, catalog: Option<&Catalog>) -> ServerState {
    let running = runs.lock.as_ref().map(|record| running(&record.lock, catalog));
    let image = (!config.game_image.contains("{java}")).then(|| config.game_image.clone());
    ServerState { floor: runs.floor.clone(), running, image }
}

/// The packages that a lock runs. Delisted releases among them can be kept, because their files are on the server's volume.
pub(super) fn running(lock: &Lock, catalog: Option<&Catalog>) -> Running {
    let running = Running::of(lock);
    match catalog {
        Some(catalog) => running.with_lost(lock, catalog),
        None => running,
    }
}

/// Builds the request of one server. `Err` holds the spec violations as text.
pub(crate) fn request(
    server: &PaperMCServer,
    plugins: &[Arc<Plugin>],
    runs: &WhatRuns,
    config: &Config,
    (facts, catalog): (&CompatibilityFacts, Option<&Catalog>),
    by_hand: bool,
) -> Result<Request, String> {
    let mut request = known(runs, config, catalog)
        .ask(server, plugins.iter().map(AsRef::as_ref))
        .map_err(|complaints| complaints.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    if let Some(seen) = &runs.strangers {
        // The report of the agent is newer than the list in the status.
        request.unmanaged = resolver::from_api::unmanaged(&server.spec, seen);
    }
    request.facts = facts.clone();
    if by_hand {
        // An apply-now request also skips the delays (L112).
        request.delay = SignedDuration::ZERO;
        for wish in &mut request.plugins {
            wish.delay = SignedDuration::ZERO;
        }
    }
    Ok(request)
}

/// The result of the solve and the lock to continue with: the new lock, or the running one if there is no new one. An unsolvable request
/// leaves a running server unchanged.
pub(crate) struct ResolvedLock {
    pub(crate) lock: Option<Lock>,
    pub(crate) explanation: Explanation,
    pub(crate) solved: bool,
}

/// No image can be pinned while Docker Hub is unreachable. The image of the running lock is pinned already and has the same Java version.
pub(super) fn with_image_of(mut lock: Lock, runs: &WhatRuns) -> Lock {
    if lock.image.is_none() {
        let same_java = runs.lock.as_ref().filter(|record| record.lock.java == lock.java);
        (lock.image, lock.image_java) =
            same_java.map_or((None, None), |record| (record.lock.image.clone(), record.lock.image_java));
    }
    lock
}

/// Converts the result of the solver.
pub(crate) fn answer(resolved: Result<resolver::Resolution, Unsolvable>, runs: &WhatRuns) -> ResolvedLock {
    match resolved {
        Ok(resolution) => {
            // The same version set solved again later differs in dates only. The running record is kept, byte for byte.
            let same = runs.record_of(&resolution.lock);
            let lock = same.map_or_else(|| with_image_of(resolution.lock, runs), |record| record.lock.clone());
            ResolvedLock { lock: Some(lock), explanation: resolution.explanation, solved: true }
        }
        Err(unsolvable) => ResolvedLock {
            lock: runs.lock.as_ref().map(|record| record.lock.clone()),
            explanation: unsolvable.explanation(),
            solved: false,
        },
    }
}

/// The gate that an apply-now request opens, if the server has one that is valid. Blackouts override it.
///
/// A request is valid if it is at most five minutes old when first observed. The same pass records its acceptance in the status, so it
/// survives a restart of the operator.
pub(crate) fn requested_by_hand(
    server: &PaperMCServer,
    handled: Option<&HandledRequests>,
    windows: &Windows,
    now: Timestamp,
) -> Option<Gate> {
    let (asked_at, accepted) = request_by_hand(server, handled)?;
    windows.by_hand(asked_at, accepted, now)
}

/// The instant of an apply-now request that would be valid without a blackout that is active now or has been since.
pub(crate) fn refused_by_blackout(
    server: &PaperMCServer,
    handled: Option<&HandledRequests>,
    consent: &ApprovalState,
    windows: &Windows,
    now: Timestamp,
) -> Option<Timestamp> {
    let of_a_set = consent.apply_since.map(|since| (since, true));
    let mut requests = request_by_hand(server, handled).into_iter().chain(of_a_set);
    let is_refused = |&(asked_at, accepted): &(Timestamp, bool)| {
        let counts = Gate::by_hand(asked_at, accepted, now).is_some();
        counts && windows.by_hand(asked_at, accepted, now).is_none()
    };
    requests.find(is_refused).map(|(asked_at, _)| asked_at)
}

/// The apply-now request that has not been handled yet, and whether it was accepted.
fn request_by_hand(server: &PaperMCServer, handled: Option<&HandledRequests>) -> Option<(Timestamp, bool)> {
    let value = server.annotations().get(labels::APPLY_NOW)?;
    if handled.and_then(|handled| handled.apply_now.as_ref()) == Some(value) {
        return None;
    }
    let accepted = handled.and_then(|handled| handled.apply_now_accepted.as_ref()) == Some(value);
    Some((asked_at(value)?, accepted))
}

/// Whether this request opens the gate, rather than a window.
pub(crate) fn opens(request: &str, gate: Gate) -> bool {
    match gate {
        Gate::Open { opened_at, until: _ } => asked_at(request) == Some(opened_at),
        Gate::NoNewStarts { .. } | Gate::Shut { .. } => false,
    }
}

/// The instant of a request: unix seconds, followed by an optional scope.
fn asked_at(request: &str) -> Option<Timestamp> {
    let instant = request.split_once(';').map_or(request, |(instant, _)| instant);
    Timestamp::from_second(instant.trim().parse().ok()?).ok()
}

/// Time for which a new server is not created. Plugins of the same manifest file arrive a moment later. A server that started without them
/// would have to wait for its window to get them.
const SETTLES_IN: SignedDuration = SignedDuration::from_secs(3);

/// Instant before which a server is too new to be created. `None` if it may be created.
pub(crate) fn too_young(server: &PaperMCServer, seen: &Observed, now: Timestamp) -> Option<Timestamp> {
    let created = server.metadata.creation_timestamp.as_ref()?.0;
    let fresh = seen.set.is_none() && seen.facts.settled.is_none();
    (fresh && now < created + SETTLES_IN).then_some(created + SETTLES_IN)
}

/// The gate of this pass. A user's request overrides `spec.suspend`, which stops automatic changes only. It does not override a missing
/// approval, which is about the version set.
pub(crate) fn gate(server: &CheckedServer, consent: &ApprovalState, by_hand: Option<Gate>, now: Timestamp) -> Gate {
    if consent.needs_approval {
        return Gate::Shut { opens: None };
    }
    if let Some(gate) = by_hand {
        return gate;
    }
    if !server.changes_by_itself() {
        return Gate::Shut { opens: None };
    }
    server.windows.gate(now)
}

/// The gate for an update that may start outside the server's windows. An urgent update may start from the instant it was found (`known`).
/// While another revision is in rollout, the gate of that revision counts. A revision that was committed in a window is rolled back when
/// the window closes.
pub(crate) fn early_gate(
    windows: &Windows,
    alone: &PartialSelection,
    known: Option<&AvailableUpdate>,
    tries_another: bool,
    now: Timestamp,
) -> Option<Gate> {
    let found_at = known.and_then(|known| known.found_at);
    let early = alone.early().filter(|_| !tries_another)?;
    Some(early.gate(windows, whole_second(found_at.unwrap_or(now)), now))
}

/// All data of this pass that the rollout and the report need.
pub(crate) struct Plan {
    pub(crate) goal: Goal,
    pub(crate) seen: Observation,
    pub(crate) record: Arc<LockRecord>,
    pub(crate) rendered: Rendered,
    pub(crate) explanation: Explanation,
    pub(crate) solved: bool,
    /// Why the files of a newer lock could not be fetched. The running lock stays the goal then.
    pub(crate) files_problem: Option<String>,
    pub(crate) changes: Vec<ServerChange>,
    pub(crate) proof: VerificationResult,
    pub(crate) gate: Gate,
    pub(crate) outlook: NextWindow,
    pub(crate) consent: ApprovalState,
    /// The pinned set that a user requested, which replaces the solved one.
    pub(crate) undo: Option<PinnedSet>,
    /// The partial update, if there is one.
    pub(crate) alone: PartialSelection,
    /// End of the partial update: the end of the request for it, or the next opening of a window of the server.
    pub(crate) alone_until: Option<Timestamp>,
    /// Scheduled restarts.
    pub(crate) restarts: Restarts,
    /// Online backups.
    pub(crate) copies: OnlineBackups,
    /// The restore that a user requested.
    pub(crate) restores: RestoreRequests,
    /// Images that the server's node has to pull before the server is stopped.
    pub(crate) images: Option<Pull>,
    /// State of the server's node.
    pub(crate) drain: Drain,
    /// The instant of an apply-now request that a blackout rejects.
    pub(crate) refused: Option<Timestamp>,
    /// Set if the update waits for a free update slot.
    pub(crate) not_yet: Option<SlotUnavailable>,
    /// Set if the followed server has to run this lock first.
    pub(crate) waits: Option<FollowWait>,
    /// Whether the update may start outside of windows, and why.
    pub(crate) opportunistic: OpportunisticState,
    /// Recent crashes of the stable revision, and whether the server is stopped because of them.
    pub(crate) crashes: Option<CrashStatus>,
    /// Crashes prevent automatic changes. While the server is stopped, they prevent all changes.
    pub(crate) held_by_crashes: bool,
}

impl Plan {
    #[expect(clippy::too_many_arguments, reason = "the one place where the results of all earlier steps meet")]
    pub(crate) fn new(
        server: &CheckedServer,
        seen: &Observed,
        answer: ResolvedLock,
        record: Arc<LockRecord>,
        rendered: Rendered,
        gate: Gate,
        consent: ApprovalState,
        pace: StartTimeout,
        now: Timestamp,
    ) -> Self {
        let restarts = Restarts::of(server, seen.pod.as_ref(), now);
        let goal = Goal {
            revision: rendered.revision,
            world: record.world(),
            policy: server.policy,
            notice: server.notice,
            empty_notice: server.empty_notice,
            patience: server.stop_timeout,
            restart: restarts.due,
            eviction: EvictionSeen::Always,
        };
        let settled_world = seen.facts.settled.map(|settled| settled.world);
        let one_way =
            seen.pod_lock.as_ref().is_some_and(|lock| settled_world.is_some_and(|world| lock.world() > world));
        let proof = prove_pod(seen, &record, pace.settle, now);
        // An unreachable agent stages nothing and must not delay an update for ever. The `prepare` container fetches missing files when the
        // pod starts.
        let staged = seen.report.as_ref().is_none_or(|report| {
            report.staged.contains(&record.files.lock) || report.lock.as_deref() == Some(record.files.lock.as_str())
        });
        let looked_at = Observation {
            set: seen.shape,
            pod: seen.seen_pod(pace.start_within(one_way)),
            players: seen.players(),
            empty_since: seen.report.as_ref().and_then(|report| report.empty_since),
            verdict: proof.verdict,
            world: look_at_world(seen),
            node: NodeState::Unknown,
            staged,
            images: ImagesOnNode::Here,
            data_ordered: data_ordered(seen),
            copy_asked: false,
            crash_loop: false,
            agent_memory: seen.agent_memory(),
            facts: with_what_failed(seen, &rendered),
        };
        let before = seen.settled_lock.as_ref().map(|record| &record.lock);
        let changes = changes(before, &record.lock);
        Self {
            goal,
            seen: looked_at,
            rendered,
            explanation: answer.explanation,
            solved: answer.solved,
            files_problem: None,
            changes,
            proof,
            gate,
            outlook: NextWindow::of(server, now),
            consent,
            undo: None,
            alone: PartialSelection::default(),
            alone_until: None,
            restarts,
            copies: OnlineBackups::default(),
            restores: RestoreRequests::default(),
            images: None,
            drain: Drain { eviction: EvictionSeen::Always, node: None, look: NodeObservation::Unknown },
            refused: None,
            not_yet: None,
            waits: None,
            opportunistic: OpportunisticState::none(gate),
            crashes: None,
            held_by_crashes: false,
            record,
        }
    }

    /// Adds a user's restore request.
    pub(crate) fn with_restores(mut self, restores: RestoreRequests) -> Self {
        self.goal.restart = restores.restart(self.goal.restart);
        self.seen.copy_asked = restores.goes_with_the_way_back;
        // A restore of everything in a backup also restores the plugin data of that day.
        self.seen.data_ordered |= restores.goes_with_the_way_back && restores.brings_everything();
        Self { restores, ..self }
    }

    /// Adds the partial update, which ends at `until`.
    pub(crate) fn with_alone(mut self, alone: PartialSelection, until: Option<Timestamp>) -> Self {
        self.outlook = self.outlook.with_window_of_a_plugin(alone.early().and_then(UrgentUpdate::next_opening));
        Self { alone, alone_until: until, ..self }
    }

    /// Adds the state of the server's node.
    pub(crate) fn with_drain(mut self, drain: Drain) -> Self {
        (self.goal.eviction, self.seen.node) = (drain.eviction, drain.seen());
        Self { drain, ..self }
    }

    /// Closes the gate where the plan has to wait. An automatic change (`by_itself`) may wait for another server, or for this one to stay
    /// up. All changes wait while a roll-back is still possible.
    pub(crate) fn hold(
        &mut self,
        seen: &Observed,
        before: &PaperMCServerStatus,
        follows: Option<&FollowState>,
        by_itself: bool,
        now: Timestamp,
    ) {
        self.wait_for_followed(follows, seen, now);
        self.hold_while_it_crashes(before, seen, by_itself, now);
        if self.may_go_back(seen) {
            self.gate = Gate::Shut { opens: None };
        }
    }

    /// Whether the goal differs from the stable revision.
    pub(crate) fn is_update(&self) -> bool {
        self.seen.facts.settled.is_some_and(|settled| settled.revision != self.goal.revision)
    }

    /// Whether the request is unsolvable, as opposed to unanswered because metadata is missing.
    pub(crate) fn is_impossible(&self) -> bool {
        is_impossible(&self.explanation)
    }

    /// Whether a revision is being rolled out or rolled back. That is finished whatever else is wrong.
    pub(crate) fn is_on_trial(seen: &Observed) -> bool {
        let settled = seen.facts.settled.map(|settled| settled.revision);
        let open = seen.shape.is_some_and(|set| set.door == Partition::Open);
        settled.is_some() && (open || seen.pod_revision.is_some_and(|revision| Some(revision) != settled))
    }

    /// Whether the revision in rollout differs from `revision`.
    pub(crate) fn tries_another(seen: &Observed, revision: Revision) -> bool {
        Self::is_on_trial(seen) && seen.shape.is_none_or(|set| set.template != revision)
    }
}

/// The baseline before any revision is stable.
static NOTHING_KNOWN: Baseline = Baseline { enabled: Vec::new(), unread: Vec::new(), worlds: None, datapacks: None };

fn prove_pod(seen: &Observed, goal: &LockRecord, settle: SignedDuration, now: Timestamp) -> VerificationResult {
    let image = other_image(seen);
    // Kubelet and agent share the node's clock. Its offset from the operator's clock is known from the agent's last report.
    let ahead = seen.heard.as_ref().map_or(SignedDuration::ZERO, |heard| clocks_differ(heard.at, seen.silent_since));
    let by_our_clock = |at: Timestamp| at.checked_add(ahead).unwrap_or(at);
    let expected = VerificationTarget {
        files: seen.pod_lock.as_ref().map_or(&goal.files, |record| &record.files),
        before: seen.settled_lock.as_ref().map(|record| &record.files),
        baseline: seen.settled.as_ref().map_or(&NOTHING_KNOWN, |record| &record.baseline),
        settle,
        began: seen.pod.as_ref().and_then(proof_began).unwrap_or(now),
        asked_from: seen.pod.as_ref().and_then(asked_from).map_or(now, by_our_clock),
        process: seen.pod.as_ref().map_or(ProcessExit::Stays, |pod| process_of(pod, settle, now)),
        other_image: image.as_deref(),
    };
    prove(seen.report.as_deref(), &expected, now)
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
pub(crate) fn running_version(report: Option<&protocol::AgentReport>) -> Option<(String, Option<u32>)> {
    match &report?.server {
        protocol::Server::Up { minecraft, build, .. } => Some((minecraft.clone(), *build)),
        protocol::Server::Absent | protocol::Server::Starting { .. } | protocol::Server::Stopping { .. } => None,
    }
}

#[cfg(test)]
mod tests;
