//! Pure. From what was seen and what the solve answers to the goal, the gate and the words of the rollout.

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

/// What runs, as far as a solve must know it.
pub(crate) struct WhatRuns {
    pub(crate) lock: Option<Arc<LockRecord>>,
    pub(crate) floor: Option<Minecraft>,
    /// The JARs of people's own, as the agent says now; None: it is silent, and what the status kept counts.
    pub(crate) strangers: Option<Vec<UnmanagedFile>>,
}

impl WhatRuns {
    /// The settled lock; the pod's own while nothing has settled yet. After a roll-back that is the older one again, and what
    /// plugins do not go below with it.
    pub(crate) fn of(seen: &Observed) -> Self {
        let floor = seen.report.as_ref().and_then(|report| report.world.floor.as_ref());
        let lock = seen.settled_lock.clone().or_else(|| seen.pod_lock.clone());
        // A world that nobody could look at now is at least as new as the Minecraft that settled on it.
        let floor = floor
            .and_then(|floor| floor.minecraft.parse().ok())
            .or_else(|| seen.settled_lock.as_ref().map(|record| record.lock.minecraft.clone()));
        Self { lock, floor, strangers: seen.report.as_deref().map(strangers) }
    }

    /// What is kept of a lock that is what runs; None: it is another one.
    pub(crate) fn record_of(&self, lock: &Lock) -> Option<&Arc<LockRecord>> {
        self.lock.as_ref().filter(|record| record.lock.digest() == lock.digest())
    }
}

/// What is known of a server beside the specs. It goes into the status as it is, for `resolver explain` to ask the same.
///
/// `catalog`: what tells which releases pages have lost; None: nothing has been read yet.
pub(crate) fn known(runs: &WhatRuns, config: &Config, catalog: Option<&Catalog>) -> ServerState {
    let running = runs.lock.as_ref().map(|record| running(&record.lock, catalog));
    let image = (!config.game_image.contains("{java}")).then(|| config.game_image.clone());
    ServerState { floor: runs.floor.clone(), running, image }
}

/// What a lock makes run. What pages have lost of it can be kept: its files lie on the server's volume.
pub(super) fn running(lock: &Lock, catalog: Option<&Catalog>) -> Running {
    let running = Running::of(lock);
    match catalog {
        Some(catalog) => running.with_lost(lock, catalog),
        None => running,
    }
}

/// The request of one server; `Err` holds the complaints in words.
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
        // What the agent sees now, not what stood in the status.
        request.unmanaged = resolver::from_api::unmanaged(&server.spec, seen);
    }
    request.facts = facts.clone();
    if by_hand {
        // "Now" skips the delays too (L112).
        request.delay = SignedDuration::ZERO;
        for wish in &mut request.plugins {
            wish.delay = SignedDuration::ZERO;
        }
    }
    Ok(request)
}

/// What the solve says, and the lock to go on with: the new one, or what runs when there is no new one. An impossible
/// request leaves a running server alone.
pub(crate) struct ResolvedLock {
    pub(crate) lock: Option<Lock>,
    pub(crate) explanation: Explanation,
    pub(crate) solved: bool,
}

/// While Docker Hub cannot be read nothing pins an image. What runs is pinned already, and serves the same Java.
pub(super) fn with_image_of(mut lock: Lock, runs: &WhatRuns) -> Lock {
    if lock.image.is_none() {
        let same_java = runs.lock.as_ref().filter(|record| record.lock.java == lock.java);
        (lock.image, lock.image_java) =
            same_java.map_or((None, None), |record| (record.lock.image.clone(), record.lock.image_java));
    }
    lock
}

/// Takes the solve's word.
pub(crate) fn answer(resolved: Result<resolver::Resolution, Unsolvable>, runs: &WhatRuns) -> ResolvedLock {
    match resolved {
        Ok(resolution) => {
            // The same set read again later differs in dates only; the record that runs is kept, byte for byte.
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

/// A request to apply now, if the server carries one that counts: the gate it opens. Blackouts win over it.
///
/// It counts when it is at most five minutes old when first seen. That it was is written into the status in the same pass,
/// so it also survives a restart of the operator.
pub(crate) fn requested_by_hand(
    server: &PaperMCServer,
    handled: Option<&HandledRequests>,
    windows: &Windows,
    now: Timestamp,
) -> Option<Gate> {
    let (asked_at, accepted) = request_by_hand(server, handled)?;
    windows.by_hand(asked_at, accepted, now)
}

/// A request to apply now that would count if no blackout were on, or had been on since; it names its instant.
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

/// The request to apply now that was not served yet, and whether it was accepted.
fn request_by_hand(server: &PaperMCServer, handled: Option<&HandledRequests>) -> Option<(Timestamp, bool)> {
    let value = server.annotations().get(labels::APPLY_NOW)?;
    if handled.and_then(|handled| handled.apply_now.as_ref()) == Some(value) {
        return None;
    }
    let accepted = handled.and_then(|handled| handled.apply_now_accepted.as_ref()) == Some(value);
    Some((asked_at(value)?, accepted))
}

/// Whether it is this request that opens the gate, and no window.
pub(crate) fn opens(request: &str, gate: Gate) -> bool {
    match gate {
        Gate::Open { opened_at, until: _ } => asked_at(request) == Some(opened_at),
        Gate::NoNewStarts { .. } | Gate::Shut { .. } => false,
    }
}

/// The instant in a request: unix seconds, before a scope if it has one.
fn asked_at(request: &str) -> Option<Timestamp> {
    let instant = request.split_once(';').map_or(request, |(instant, _)| instant);
    Timestamp::from_second(instant.trim().parse().ok()?).ok()
}

/// How long a new server is left alone: the Plugins that come with it in one file arrive a moment later, and a server that
/// started without them would have to wait for its window to get them.
const SETTLES_IN: SignedDuration = SignedDuration::from_secs(3);

/// Until when a server is too new to be created.
pub(crate) fn too_young(server: &PaperMCServer, seen: &Observed, now: Timestamp) -> Option<Timestamp> {
    let created = server.metadata.creation_timestamp.as_ref()?.0;
    let fresh = seen.set.is_none() && seen.facts.settled.is_none();
    (fresh && now < created + SETTLES_IN).then_some(created + SETTLES_IN)
}

/// The gate of this pass. A person's request outranks `spec.suspend`, which is about what happens by itself, and not the
/// want of an approval, which is about the set.
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

/// The gate for what waits for no window of the server. What may not wait is there since it was found (`known`). While another set is on
/// trial, the gate of that one counts: what was committed in a window is taken back when it shuts.
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

/// Everything that the rollout and the report need of this pass.
pub(crate) struct Plan {
    pub(crate) goal: Goal,
    pub(crate) seen: Observation,
    pub(crate) record: Arc<LockRecord>,
    pub(crate) rendered: Rendered,
    pub(crate) explanation: Explanation,
    pub(crate) solved: bool,
    /// Why the files of a newer set could not be brought; what runs is kept as the goal then.
    pub(crate) files_problem: Option<String>,
    pub(crate) changes: Vec<ServerChange>,
    pub(crate) proof: VerificationResult,
    pub(crate) gate: Gate,
    pub(crate) outlook: NextWindow,
    pub(crate) consent: ApprovalState,
    /// The set at which a person's word keeps the server, instead of what the solve chose.
    pub(crate) undo: Option<PinnedSet>,
    /// What comes alone, if something does.
    pub(crate) alone: PartialSelection,
    /// Until when: the end of the request for it, or the next opening of a window of the server.
    pub(crate) alone_until: Option<Timestamp>,
    /// Restarts by the clock.
    pub(crate) restarts: Restarts,
    /// Copies of the running server.
    pub(crate) copies: OnlineBackups,
    /// The worlds of a copy that a person wants back.
    pub(crate) restores: RestoreRequests,
    /// What the server's node has to pull before the server is stopped, if anything.
    pub(crate) images: Option<Pull>,
    /// The server's node.
    pub(crate) drain: Drain,
    /// The instant of a request to apply now that a blackout refuses.
    pub(crate) refused: Option<Timestamp>,
    /// Others come first.
    pub(crate) not_yet: Option<SlotUnavailable>,
    /// The server that this one follows has to run it first.
    pub(crate) waits: Option<FollowWait>,
    /// Whether it may come outside of windows, and does.
    pub(crate) opportunistic: OpportunisticState,
    /// How often the process of what settled has ended with an error lately, and whether the server is stopped for that.
    pub(crate) crashes: Option<CrashStatus>,
    /// That is why nothing begins by itself; nothing at all while it is stopped.
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
        // A silent agent stages nothing, and its silence must not keep an update waiting for ever: `prepare` fetches what is
        // missing when the pod starts.
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

    /// With a person's request to restore.
    pub(crate) fn with_restores(mut self, restores: RestoreRequests) -> Self {
        self.goal.restart = restores.restart(self.goal.restart);
        self.seen.copy_asked = restores.goes_with_the_way_back;
        // With all that a copy holds come the plugins' data of that day.
        self.seen.data_ordered |= restores.goes_with_the_way_back && restores.brings_everything();
        Self { restores, ..self }
    }

    /// With what comes alone, `until` then.
    pub(crate) fn with_alone(mut self, alone: PartialSelection, until: Option<Timestamp>) -> Self {
        self.outlook = self.outlook.with_window_of_a_plugin(alone.early().and_then(UrgentUpdate::next_opening));
        Self { alone, alone_until: until, ..self }
    }

    /// With what is known of the server's node.
    pub(crate) fn with_drain(mut self, drain: Drain) -> Self {
        (self.goal.eviction, self.seen.node) = (drain.eviction, drain.seen());
        Self { drain, ..self }
    }

    /// What comes `by_itself` may have to wait for another server, or for this one to stay up; all for what may yet be gone back to.
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

    /// The goal differs from what is settled.
    pub(crate) fn is_update(&self) -> bool {
        self.seen.facts.settled.is_some_and(|settled| settled.revision != self.goal.revision)
    }

    /// A definite no, as opposed to metadata that is missing.
    pub(crate) fn is_impossible(&self) -> bool {
        is_impossible(&self.explanation)
    }

    /// Whether a revision is being brought in or taken back: that is finished whatever else is wrong.
    pub(crate) fn is_on_trial(seen: &Observed) -> bool {
        let settled = seen.facts.settled.map(|settled| settled.revision);
        let open = seen.shape.is_some_and(|set| set.door == Partition::Open);
        settled.is_some() && (open || seen.pod_revision.is_some_and(|revision| Some(revision) != settled))
    }

    /// Whether the set on trial is another one than this.
    pub(crate) fn tries_another(seen: &Observed, revision: Revision) -> bool {
        Self::is_on_trial(seen) && seen.shape.is_none_or(|set| set.template != revision)
    }
}

/// Before anything was settled.
static NOTHING_KNOWN: Baseline = Baseline { enabled: Vec::new(), unread: Vec::new(), worlds: None, datapacks: None };

fn prove_pod(seen: &Observed, goal: &LockRecord, settle: SignedDuration, now: Timestamp) -> VerificationResult {
    let image = other_image(seen);
    // The kubelet and the agent go by one clock. How far it is from ours is known since the agent was heard last.
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

/// Whether an explanation is a definite no: a search that was given up counts, because asking again mostly gives the same.
pub(crate) fn is_impossible(explanation: &Explanation) -> bool {
    match explanation {
        Explanation::Impossible(_) | Explanation::GaveUp(_) => true,
        Explanation::Solved(_)
        | Explanation::WhyNot(_)
        | Explanation::WhyNotRelease(_)
        | Explanation::Unanswerable(_) => false,
    }
}

/// What the server says it runs, for the status: `1.21.10` and 130.
pub(crate) fn running_version(report: Option<&protocol::AgentReport>) -> Option<(String, Option<u32>)> {
    match &report?.server {
        protocol::Server::Up { minecraft, build, .. } => Some((minecraft.clone(), *build)),
        protocol::Server::Absent | protocol::Server::Starting { .. } | protocol::Server::Stopping { .. } => None,
    }
}

#[cfg(test)]
mod tests;
