//! Pure. Builds the status of a server.

use std::collections::{BTreeMap, BTreeSet};

use crds::paper_mc_server::{
    AvailableUpdate, CrashStatus, HandledRequests, HistoryEntry, PlannedPlugin, PluginState, PluginStateKind,
    RolloutFacts,
};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use resolver::explanation::{Explanation, NotUpdatedWithLatest};
use resolver::model::lock::{Lock, LockReason, LockedPlugin};
use scheduler::observation::{RecordedFacts, Verification};
use scheduler::rollout::{Step, WaitingOn};

use super::context::PassReport;
use super::downtime_estimate::{DowntimeEstimate, downtime_without_backup};
use super::stop_times::disconnected_players;
use super::{backup, last_stop, plugin_data, plugins_enabled, short_reason, update_blocked};
use crate::clock::truncate_to_second;
use crate::error_chain::cut;
use crate::k8s::labels;
use crate::server::act::outcome::{MarkedStable, StepOutcome};
use crate::server::approval::recorded_request;
use crate::server::changes::ServerChange;
use crate::server::constraints::image_pull;
use crate::server::crash_loop::with_hang;
use crate::server::partial::PartialSelection;
use crate::server::pinned_set::{SetOrigin, next_history, retained_record};
use crate::server::plan::gate::request_opens_gate;
use crate::server::plan::running_version;
use crate::server::scale_down;
use crate::server::unmanaged_jars::{retained, unmanaged_files};
use validate::CheckedServer;

pub(crate) mod last_update;

use super::format::format_time;
use last_update::build_last_update;
pub(super) use last_update::was_stopped_again;

/// The whole status without its conditions.
pub(super) fn build_status(
    server: &PaperMCServer,
    checked: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> PaperMCServerStatus {
    let plan = report.plan;
    let lock = &plan.target.record.lock;
    let agent = report.pass.observed.reply.report.as_deref();
    let running = running_version(agent);
    let stable = report.pass.observed.stable_lock.as_ref().map(|record| &record.lock);
    let update = plan.is_update();
    let not_enabled = plugins_enabled::projects_not_enabled(report.pass.observed, &before.plugins);
    let wait_reason = short_reason::wait_reason(report);
    // A window is not announced for an update that is held back.
    let opens = plan.next_window.next_opening.filter(|_| wait_reason.is_none());
    let next_restart = next_restart(report, opens);
    PaperMCServerStatus {
        observed_generation: server.metadata.generation,
        // The version remains while the server is down.
        version: running.as_ref().map(format_version).or_else(|| before.version.clone()),
        current_version: running.as_ref().map(|running| running.0.clone()).or_else(|| before.current_version.clone()),
        current_build: running.as_ref().and_then(|(_, build)| *build).or(before.current_build),
        desired_version: Some(lock.minecraft.to_string()),
        desired_build: Some(lock.build),
        lock: agent.and_then(|agent| agent.lock.clone()).or_else(|| before.lock.clone()),
        update: update.then(|| cut(&plan.target.describe_changes(), 1_024)),
        next_window: next_window_text(checked, report, wait_reason, opens),
        next_window_at: opens,
        next_restart: next_restart.map(|at| next_restart_text(at, checked, report)),
        next_restart_at: next_restart,
        held_by: update_blocked::blocked_by(plan, before),
        plugins: plugin_states(
            stable,
            lock,
            not_updated(&plan.selection.explanation),
            &not_enabled,
            &plan.selection.deciding,
        ),
        unmanaged: agent
            .map_or_else(|| before.unmanaged.clone(), |agent| retained(unmanaged_files(agent), &server.spec)),
        available_update: update.then(|| build_available_update(checked, report, before)),
        update_blocked: update_blocked::build_status(plan, before),
        last_update: build_last_update(report, before),
        history: build_history(report, before),
        last_stop: last_stop::build_status(agent, before),
        crashes: build_crashes(report),
        backup: backup::build_status(checked, agent, before, plan.tasks.backups.next),
        plugin_data: plugin_data::build_status(agent, before),
        last_handled: last_handled(server, report, before),
        notices: Vec::new(), // derived from the whole status, and therefore added last
        rollout: rollout_facts(&report.pass.observed.facts).or_else(|| before.rollout.clone()),
        basis: None, // the same for each result of a pass, and therefore added there
        players: agent.and_then(|agent| agent.players.count()),
        replicas: Some(i32::from(report.pass.observed.pod.is_some())),
        selector: Some(selector(&checked.name)),
        conditions: Vec::new(),
    }
}

/// When the server restarts next. `opens` is when the next window opens, if an update waits for one.
fn next_restart(report: &PassReport<'_>, opens: Option<Timestamp>) -> Option<Timestamp> {
    let plan = report.plan;
    let opens = opens.filter(|_| plan.is_update() && !plan.gate.is_open());
    plan.tasks.restarts.next_restart(&plan.goal, &plan.observation, opens)
}

fn next_restart_text(at: Timestamp, checked: &CheckedServer, report: &PassReport<'_>) -> String {
    if at <= report.pass.now { "now".to_owned() } else { format_time(at, &checked.updates.zone, report.pass.now) }
}

/// The crashes. A restart for a hang counts as one.
fn build_crashes(report: &PassReport<'_>) -> Option<CrashStatus> {
    let crashes = report.plan.constraints.crashes.clone();
    let pod = report.pass.observed.pod.as_ref().and_then(|pod| pod.metadata.uid.as_deref());
    if let (StepOutcome::Restarting { due, .. }, Some(hang), Some(pod)) =
        (report.done, report.plan.constraints.hang, pod)
        && hang.due == Some(*due)
    {
        return Some(with_hang(crashes, pod, truncate_to_second(hang.since)));
    }
    crashes
}

/// For example `1.21.10-130`.
fn format_version((minecraft, build): &(String, Option<u32>)) -> String {
    match build {
        Some(build) => format!("{minecraft}-{build}"),
        None => minecraft.clone(),
    }
}

/// The column `NEXT WINDOW`: when the update is applied, or why it waits.
fn next_window_text(
    checked: &CheckedServer,
    report: &PassReport<'_>,
    wait_reason: Option<String>,
    opens: Option<Timestamp>,
) -> Option<String> {
    let (plan, is_update) = (report.plan, report.plan.is_update());
    let is_blocked = matches!(report.step, Step::Wait(WaitingOn::Blocked { .. }));
    match wait_reason {
        _ if is_blocked => Some("held".to_owned()),
        Some(wait_reason) => Some(cut(&wait_reason, 64)),
        None if plan.gate.is_open() && is_update => Some("now".to_owned()),
        None if plan.selection.pinned_set.is_some() && !is_update => Some("held".to_owned()),
        None if plan.next_window.is_suspended => Some("suspended".to_owned()),
        None => {
            let opens = opens.map(|at| format_time(at, &checked.updates.zone, report.pass.now));
            plan.opportunistic.format_when(opens)
        }
    }
}

fn build_available_update(
    checked: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> AvailableUpdate {
    let plan = report.plan;
    let target = &plan.target;
    let digest = &target.record.files.lock;
    let previous = before.available_update.as_ref().filter(|previous| previous.digest == *digest);
    AvailableUpdate {
        digest: digest.clone(),
        version: target.record.lock.minecraft.to_string(),
        build: target.record.lock.build,
        one_way: target.changes.iter().any(|change| change.one_way),
        summary: cut(&target.describe_changes(), 1_024),
        found_at: previous.map_or(Some(report.pass.now), |previous| previous.found_at),
        plugins: planned_plugins(&target.changes),
        cost: DowntimeEstimate::new(checked, report, before).message().map(|downtime| cut(&downtime, 253)),
        staged: plan.observation.staged,
        image_problem: image_pull::problem(plan),
    }
}

fn build_history(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Vec<HistoryEntry> {
    let agent = report.pass.observed.reply.report.as_deref();
    let origin = SetOrigin {
        down_seconds: downtime_without_backup(agent),
        players: disconnected_players(agent),
        unverified: report.pass.observed.stable.as_ref().is_some_and(|record| record.unverified.is_some()),
    };
    let stable_lock = report.pass.observed.stable_lock.as_deref();
    next_history(&before.history, stable_lock, origin, passes_verification(report), report.pass.now)
}

/// The status after a pass without a plan that took a step of the rollout in progress. The last plan remains, unless it has been applied.
pub(super) fn build_rollout(
    server: &PaperMCServer,
    checked: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> PaperMCServerStatus {
    let now = build_status(server, checked, report, before);
    let observed = PaperMCServerStatus {
        observed_generation: now.observed_generation,
        version: now.version,
        current_version: now.current_version,
        current_build: now.current_build,
        lock: now.lock,
        unmanaged: now.unmanaged,
        last_update: now.last_update,
        history: now.history,
        last_stop: now.last_stop,
        crashes: now.crashes,
        backup: now.backup.or_else(|| before.backup.clone()),
        plugin_data: now.plugin_data,
        rollout: now.rollout,
        players: now.players,
        replicas: now.replicas,
        selector: now.selector,
        ..before.clone()
    };
    if is_update_done(report, before) {
        let (update, available_update, next_window, next_window_at) = (None, None, None, None);
        let (plugins, last_handled) = (now.plugins, observed.last_handled.clone().map(mark_handled));
        let nothing_planned = PaperMCServerStatus { update, available_update, next_window, next_window_at, ..observed };
        PaperMCServerStatus { plugins, last_handled, ..nothing_planned }
    } else {
        observed
    }
}

/// Marks the request as handled.
fn mark_handled(handled: HandledRequests) -> HandledRequests {
    match handled.apply_now_accepted {
        Some(request) => HandledRequests { apply_now: Some(request), apply_now_accepted: None, ..handled },
        None => handled,
    }
}

/// Whether the planned update has become stable.
pub(super) fn is_update_done(report: &PassReport<'_>, before: &PaperMCServerStatus) -> bool {
    let stable_digest = report.pass.observed.stable_lock.as_ref().map(|record| &record.files.lock);
    before.available_update.as_ref().is_some_and(|planned| Some(&planned.digest) == stable_digest)
}

fn selector(server: &str) -> String {
    labels::selector(server).into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn planned_plugins(changes: &[ServerChange]) -> Vec<PlannedPlugin> {
    let plugins = changes.iter().filter(|change| change.package != "Paper");
    plugins
        .filter_map(|change| {
            let version = change.to.as_ref()?;
            Some(PlannedPlugin { name: cut(&change.package, 64), version: cut(version, 64) })
        })
        .take(200)
        .collect()
}

/// Plugins that the strategy `latest` could not keep up with.
fn not_updated(explanation: &Explanation) -> &[NotUpdatedWithLatest] {
    match explanation {
        Explanation::Solved(solved) => &solved.left_behind,
        Explanation::Impossible(_)
        | Explanation::Unanswerable(_)
        | Explanation::WhyNot(_)
        | Explanation::WhyNotRelease(_)
        | Explanation::GaveUp(_) => &[],
    }
}

/// The states of all plugins, by name. `not_enabled` has the projects of the running lock whose plugins did not enable, `deciding` the Plugin
/// whose fields apply, by the Plugins that request one project.
fn plugin_states(
    running: Option<&Lock>,
    lock: &Lock,
    unfollowed: &[NotUpdatedWithLatest],
    not_enabled: &BTreeSet<String>,
    deciding: &BTreeMap<Vec<String>, String>,
) -> Vec<PluginState> {
    let was =
        |project: &str| running.and_then(|running| running.plugins.iter().find(|plugin| plugin.project_id == project));
    let mut states: Vec<PluginState> = lock
        .plugins
        .iter()
        .map(|plugin| {
            let current = was(&plugin.project_id);
            let is_unfollowed = unfollowed.iter().any(|left| left.name == plugin.name);
            let kind = match current {
                None => PluginStateKind::PendingInstall,
                Some(current) if not_enabled.contains(&current.project_id) => PluginStateKind::NotEnabled,
                Some(_) if is_unfollowed => PluginStateKind::Unfollowed,
                Some(current) if current.release_id == plugin.release_id => PluginStateKind::Installed,
                Some(_) => PluginStateKind::PendingUpdate,
            };
            locked_plugin_state(plugin, current, kind, deciding)
        })
        .collect();
    let removed = running
        .into_iter()
        .flat_map(|running| &running.plugins)
        .filter(|plugin| !lock.plugins.iter().any(|locked| locked.project_id == plugin.project_id));
    let not_followed = unfollowed.iter().filter(|left| left.stays.is_none() && !is_running(running, &left.name));
    states.extend(not_followed.map(|left| PluginState {
        name: cut(&left.name, 64),
        plugin: left.object.as_ref().map(|object| cut(object, 253)),
        decided_by: None,
        needed_by: None,
        current_version: None,
        desired_version: None,
        state: PluginStateKind::Unfollowed,
    }));
    states.extend(removed.map(|plugin| PluginState {
        name: cut(&plugin.name, 64),
        plugin: None,
        decided_by: None,
        needed_by: None,
        current_version: Some(cut(&plugin.version, 64)),
        desired_version: None,
        state: PluginStateKind::PendingRemoval,
    }));
    states.sort_by(|a, b| a.name.cmp(&b.name));
    // The list is keyed by name. The API server rejects the whole status if an entry occurs twice.
    states.dedup_by(|a, b| a.name == b.name);
    states.truncate(200);
    states
}

/// The state of a plugin of the lock. `current` is its running release.
fn locked_plugin_state(
    plugin: &LockedPlugin,
    current: Option<&LockedPlugin>,
    state: PluginStateKind,
    deciding: &BTreeMap<Vec<String>, String>,
) -> PluginState {
    let (requested_by, decided_by, needed_by) = match &plugin.reason {
        LockReason::RequestedBy(objects) => (Some(objects.join(", ")), deciding.get(objects), None),
        LockReason::NeededBy(plugins) => (None, None, Some(plugins.join(", "))),
    };
    PluginState {
        name: cut(&plugin.name, 64),
        plugin: requested_by.map(|names| cut(&names, 253)),
        decided_by: decided_by.map(|object| cut(object, 253)),
        needed_by: needed_by.map(|names| cut(&names, 253)),
        current_version: current.map(|current| cut(&current.version, 64)),
        desired_version: Some(cut(&plugin.version, 64)),
        state,
    }
}

fn is_running(running: Option<&Lock>, name: &str) -> bool {
    running.is_some_and(|running| running.plugins.iter().any(|plugin| plugin.name == name))
}

/// Whether the running stable set passes its verification now. It may have been kept without.
pub(super) fn passes_verification(report: &PassReport<'_>) -> bool {
    report.plan.verification.result == Verification::Passed && report.pass.observed.runs_stable_files()
}

/// The state of the requests. A request that was made in time is accepted, and counts as handled when no update is left.
fn last_handled(
    server: &PaperMCServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Option<HandledRequests> {
    let (apply, apply_seen_at) = recorded_request(server, before.last_handled.as_ref(), report.pass.now).unzip();
    let mut handled = HandledRequests { apply, apply_seen_at, ..before.last_handled.clone().unwrap_or_default() };
    handled = retained_record(server, handled);
    let backups = &report.plan.tasks.backups;
    handled.backup_now = backups.served.clone().or(handled.backup_now);
    handled.backup_now_accepted.clone_from(&backups.accepted);
    handled.scaled_down_at = handled.scaled_down_at.filter(|_| scale_down::is_announced(server, report.pass.observed));
    let plan = report.plan;
    let is_served = match &plan.selection.partial {
        PartialSelection::Nothing | PartialSelection::Urgent(_) => matches!(report.step, Step::UpToDate),
        // The requested packages are updated. The request does not cover the rest of the plan.
        PartialSelection::Requested(_) => is_verified(report),
        PartialSelection::Refused(_) => false,
        PartialSelection::UpToDate(_) => true,
    };
    // A request with a scope remains accepted while it waits for an approval, or cannot be handled yet.
    let is_scoped = !matches!(plan.selection.partial, PartialSelection::Nothing | PartialSelection::Urgent(_));
    let counts = |request: &&String| {
        is_scoped || request_opens_gate(request, plan.gate, plan.constraints.apply_request.requested_at)
    };
    if let Some(request) = server.annotations().get(labels::APPLY_NOW).filter(counts) {
        let request = Some(cut(request, 1_024));
        if is_served {
            (handled.apply_now, handled.apply_now_accepted) = (request, None);
        } else {
            handled.apply_now_accepted = request;
        }
    }
    (handled != HandledRequests::default()).then_some(handled)
}

/// Whether the planned set has just been marked stable.
fn is_verified(report: &PassReport<'_>) -> bool {
    let goal = &report.plan.target.record.files.lock;
    let is_goal = report.pass.observed.pod_lock.as_ref().is_some_and(|record| record.files.lock == *goal);
    matches!(report.done, StepOutcome::MarkedStable(MarkedStable::Update)) && is_goal
}

/// The rollout facts in the status, in case the `StatefulSet` is deleted. `None` if there is nothing to keep.
pub(crate) fn rollout_facts(facts: &RecordedFacts) -> Option<RolloutFacts> {
    if facts.settled.is_none() && facts.failed.is_empty() {
        return None;
    }
    Some(RolloutFacts {
        settled: facts.settled.map(|stable| stable.revision.to_string()),
        settled_world: facts.settled.map(|stable| stable.world.0),
        failed: facts.failed.iter().map(ToString::to_string).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_not_updated_with_latest_is_shown_in_status() {
        let left = |name: &str, stays: Option<&str>| -> NotUpdatedWithLatest {
            serde_json::from_value(serde_json::json!({
                "name": name,
                "blocker": {
                    "name": name, "object": name.to_lowercase(), "readAt": "2026-01-21T12:00:00Z",
                    "key": {"source": "modrinth", "project": name.to_lowercase()},
                },
                "stays": stays,
            }))
            .unwrap()
        };
        let lock: Lock = serde_json::from_value(serde_json::json!({
            "server": "games/lobby", "minecraft": "1.21.10", "build": 129, "java": 21,
            "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"},
            "plugins": [{
                "name": "Stays", "key": {"source": "modrinth", "project": "stays"}, "projectId": "s", "releaseId": "s1",
                "version": "1", "file": {"name": "s.jar", "url": "", "hash": "sha256:01"}, "reason": {"requestedBy": ["stays"]},
            }],
            "facts": [],
        }))
        .unwrap();
        let not_updated = [left("Stays", Some("1")), left("LeftOut", None)];
        let states = plugin_states(Some(&lock), &lock, &not_updated, &BTreeSet::new(), &BTreeMap::new());
        let shown: Vec<_> = states.iter().map(|state| (state.name.as_str(), state.state)).collect();
        assert_eq!(shown, [("LeftOut", PluginStateKind::Unfollowed), ("Stays", PluginStateKind::Unfollowed)]);
        let states = plugin_states(Some(&lock), &lock, &[], &BTreeSet::new(), &BTreeMap::new());
        assert_eq!(states[0].state, PluginStateKind::Installed);
    }

    #[test]
    fn plugin_of_several_objects_shows_which_one_decides() {
        let lock: Lock = serde_json::from_value(serde_json::json!({
            "server": "games/lobby", "minecraft": "1.21.10", "build": 129, "java": 21,
            "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"},
            "plugins": [{
                "name": "Claims", "key": {"source": "modrinth", "project": "claims"}, "projectId": "c", "releaseId": "c1",
                "version": "1", "file": {"name": "c.jar", "url": "", "hash": "sha256:01"},
                "reason": {"requestedBy": ["all", "lobby"]},
            }],
            "facts": [],
        }))
        .unwrap();
        let objects = vec!["all".to_owned(), "lobby".to_owned()];
        let deciding = BTreeMap::from([(objects, "lobby".to_owned())]);
        let [state] = plugin_states(Some(&lock), &lock, &[], &BTreeSet::new(), &deciding).try_into().unwrap();
        assert_eq!((state.plugin.as_deref(), state.decided_by.as_deref()), (Some("all, lobby"), Some("lobby")));
    }

    #[test]
    fn plugin_without_request_is_shown_as_pending_removal() {
        let lock = |plugins: &[(&str, &str)]| -> Lock {
            let plugin = |(name, release): &(&str, &str)| {
                serde_json::json!({
                    "name": name, "key": {"source": "modrinth", "project": name}, "projectId": name, "releaseId": release,
                    "version": release, "file": {"name": "s.jar", "url": "", "hash": "sha256:01"}, "reason": {"requestedBy": [name]},
                })
            };
            serde_json::from_value(serde_json::json!({
                "server": "games/lobby", "minecraft": "1.21.10", "build": 129, "java": 21,
                "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"},
                "plugins": plugins.iter().map(plugin).collect::<Vec<_>>(), "facts": [],
            }))
            .unwrap()
        };
        let (before, after) = (
            lock(&[("Goes", "1"), ("Moves", "1"), ("Stays", "1")]),
            lock(&[("Comes", "1"), ("Moves", "2"), ("Stays", "1")]),
        );
        let shown = |running: &Lock| -> Vec<(String, PluginStateKind, Option<String>, Option<String>)> {
            let states = plugin_states(Some(running), &after, &[], &BTreeSet::new(), &BTreeMap::new()).into_iter();
            states.map(|state| (state.name, state.state, state.current_version, state.desired_version)).collect()
        };
        let (one, two) = (Some("1".to_owned()), Some("2".to_owned()));
        let wanted = [
            ("Comes", PluginStateKind::PendingInstall, &None, &one),
            ("Goes", PluginStateKind::PendingRemoval, &one, &None),
            ("Moves", PluginStateKind::PendingUpdate, &one, &two),
            ("Stays", PluginStateKind::Installed, &one, &one),
        ];
        assert_eq!(
            shown(&before),
            wanted.map(|(name, state, was, is)| (name.to_owned(), state, was.clone(), is.clone()))
        );
        assert!(shown(&after).iter().all(|(name, state, ..)| name != "Goes" && *state == PluginStateKind::Installed));
    }
}
