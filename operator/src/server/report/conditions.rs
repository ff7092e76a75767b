//! Pure. Builds the conditions of a server.

use crds::paper_mc_server::LastUpdate;
use crds::{PaperMCServer, PaperMCServerStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use resolver::render::text;
use scheduler::observation::{Players, PodPhase, Verification};
use scheduler::rollout::{OpportunityReason, Step, WaitingOn};

use super::backup::{self, BACKUP_READY};
use super::backup_schedule::{self, BACKUP_CRON_VALID};
use super::context::{MAX_MESSAGE_LENGTH, PassReport, condition, explanation_message};
use super::manual_recovery::{no_backup_message, roll_forward_past_refusal, rollback_would_lose_message};
use super::seed_volume::{self, RESTORED_FROM};
use super::waiting::{approval_needed, follow_wait_message, players_message, scaled_to_zero_message};
use super::{crash_loop, displaced_jars, drain, drift, image_pull, update_blocked, world_damage};
use crate::error_chain::cut;
use crate::server::backups::current_backups;
use crate::server::changes;
use crate::server::check::CheckedServer;
use crate::server::crash_loop::CRASH_LOOP;
use crate::server::in_game_stop::stopped_at;
use crate::server::next_window::{NO_USABLE_WINDOW, SUSPENDED};

mod init_container;
mod unplanned;

use super::agent_rejection::{AGENT_REJECTS, agent_rejection};
use super::refusal::init_message;
use super::waiting::{COUNTDOWN_WHILE_EMPTY, waiting_for_window};
use crate::server::requested_restore::replace_worlds_hint;
pub(super) use unplanned::{build_blocked, build_failure, build_rollout};

/// The reason of `Ready` and `Updating` while a crash loop has stopped the server.
const STOPPED_BY_CRASHES: &str = "StoppedByCrashes";

/// Whether the files of the next lock are available. The condition is absent while they are.
const ARTIFACTS_READY: &str = "ArtifactsReady";
/// The reason if the agent could not stage them on the volume.
const NOT_STAGED: &str = "NotStaged";

/// The conditions of a complete pass.
pub(super) fn build_conditions(
    server: &PaperMCServer,
    checked: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Vec<Condition> {
    let last = before.last_update.as_ref();
    let (history, before) = (&before.history, before.conditions.as_slice());
    let plan = report.plan;
    let now = report.now;
    let of = |of, status, reason: &str, message: String| condition(server, of, status, reason, message, now, before);
    let update = plan.is_update();
    let (up, reason, message) = ready(checked, report);
    let explanation = explanation_message(&plan.explanation);
    let mut conditions = vec![of("Ready", Some(up), reason, message)];
    conditions.push(if plan.solved {
        of("Resolved", Some(true), "Solved", first_line(&text::render(&plan.explanation, now)))
    } else if !plan.is_impossible() {
        of("Resolved", None, "MetadataMissing", explanation)
    } else {
        of("Resolved", Some(false), "NoSolution", explanation)
    });
    conditions.push(if update {
        of("UpdateAvailable", Some(true), "UpdatePlanned", cut(&changes::format_changes(&plan.changes), 1_024))
    } else {
        of("UpdateAvailable", Some(false), "UpToDate", "The server is up to date.".to_owned())
    });
    let (blocked, why, message) = update_blocked::condition_parts(plan, before);
    conditions.push(of(update_blocked::UPDATE_BLOCKED, blocked, &why, message));
    if let Some((status, reason, message)) = backup::condition_parts(checked, report) {
        // While the agent is unreachable, the last condition remains.
        let is_silent = status.is_none() && reason == "AgentUnreachable";
        let previous = before.iter().find(|old| {
            old.type_ == BACKUP_READY && (is_silent || (status == Some(true) && backup::failure_remains(old, report)))
        });
        conditions.push(previous.cloned().unwrap_or_else(|| of(BACKUP_READY, status, reason, message)));
    }
    if let Some((is_valid, reason, message)) = backup_schedule::condition_parts(server, checked, report) {
        conditions.push(of(BACKUP_CRON_VALID, Some(is_valid), reason, message));
    }
    if let Some(why) = &plan.files_problem {
        conditions.push(of(ARTIFACTS_READY, Some(false), "FilesMissing", cut(why, 1_024)));
    } else if let Some(why) = plan.staging_problem(report.observed) {
        conditions.push(of(ARTIFACTS_READY, Some(false), NOT_STAGED, cut(&not_staged_message(why), 1_024)));
    } else if plan.is_staging(report.observed) {
        // During a retry, the last condition remains.
        conditions.extend(before.iter().find(|old| old.type_ == ARTIFACTS_READY && old.reason == NOT_STAGED).cloned());
    }
    conditions.extend(
        image_pull::condition_parts(report).map(|(type_, status, reason, message)| of(type_, status, reason, message)),
    );
    conditions.extend(pod_conditions(report).map(|(type_, reason, message)| of(type_, Some(true), reason, message)));
    if let Some((reason, message)) = crash_loop::reason_and_message(checked, report, before) {
        conditions.push(of(CRASH_LOOP, Some(true), reason, cut(&message, MAX_MESSAGE_LENGTH)));
    }
    conditions.extend(world_damage::condition(checked, report, before, |type_, reason, message| {
        of(type_, Some(true), reason, message)
    }));
    conditions.extend(displaced_jars_condition(report, before, |message| {
        of(displaced_jars::JARS_DISPLACED, Some(true), displaced_jars::NAME_CONFLICT, message)
    }));
    if let Some(message) = update_blocked::name_conflicts(&plan.explanation) {
        conditions.push(of("DuplicatePluginName", Some(true), update_blocked::TWO_JARS_ONE_NAME, cut(&message, 1_024)));
    }
    if let Some(pinned_set) = &plan.pinned_set {
        let message = cut(&pinned_set.message(&checked.namespace, &checked.name, history), 1_024);
        conditions.push(of("PinnedToSet", Some(true), pinned_set.reason(), message));
    }
    if let Some((is_partial, reason, message)) = plan.partial.condition_parts() {
        conditions.push(of("Scoped", Some(is_partial), reason, cut(&message, 1_024)));
    }
    if let Some((waits, reason, message)) = plan.restores.condition_parts() {
        conditions.push(of("RestoreRequested", Some(waits), reason, message));
    }
    if checked.restore_from.is_some() {
        // While the agent is unreachable, the last condition remains.
        let previous = before.iter().find(|old| old.type_ == RESTORED_FROM).cloned();
        let result = seed_volume::condition_parts(checked, report);
        let result = result.map(|(done, reason, message)| of(RESTORED_FROM, Some(done), reason, message));
        conditions.extend(result.or(previous));
    }
    if plan.approval.needs_approval {
        conditions.push(of("ApprovalNeeded", Some(true), "NotApproved", cut(&approval_needed(checked, plan), 1_024)));
    }
    if let Some(waits) = &plan.follow_wait {
        let message = cut(&follow_wait_message(waits, checked, now), 1_024);
        conditions.push(of("WaitingForLeaderServer", Some(true), waits.reason(), message));
    }
    if let Some((reason, message)) = drain::reason_and_message(checked, report) {
        conditions.push(of(drain::DRAINING, Some(true), reason, cut(&message, MAX_MESSAGE_LENGTH)));
    }
    if plan.next_window.is_suspended {
        conditions.push(of("Suspended", Some(true), "SpecSuspend", SUSPENDED.to_owned()));
    }
    if plan.next_window.has_no_usable_window {
        conditions.push(of("NoUsableWindow", Some(true), "BlackoutsCoverWindows", NO_USABLE_WINDOW.to_owned()));
    }
    let (updating, reason, message) = updating(checked, report, last);
    conditions.push(of("Updating", Some(updating), reason, message));
    conditions
}

/// Problems of the pod that a user should fix. Each condition is absent while there is no problem.
fn pod_conditions(report: &PassReport<'_>) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let agent = report.observed.report.as_deref();
    let drift = drift::reason_and_message(report).map(|(reason, message)| ("Drifted", reason, message));
    let exposed = agent.filter(|agent| agent.rcon_exposed).map(|_| {
        let message = "RCON answers on the pod's own address. The server software ignores `rcon.ip`.";
        ("RconExposed", "ReachableOnPodIP", message.to_owned())
    });
    let refused = agent_rejection(report).map(|(reason, message)| (AGENT_REJECTS, reason, cut(message, 1_024)));
    drift.into_iter().chain(exposed).chain(refused)
}

/// The condition for displaced JARs. While the agent is unreachable, the last one remains.
fn displaced_jars_condition(
    report: &PassReport<'_>,
    before: &[Condition],
    of: impl Fn(String) -> Condition,
) -> Option<Condition> {
    match report.observed.report.as_deref() {
        Some(agent) => displaced_jars::message(agent).map(of),
        None => before.iter().find(|old| old.type_ == displaced_jars::JARS_DISPLACED).cloned(),
    }
}

fn not_staged_message(why: &str) -> String {
    format!(
        "The files of the next version set are not on the volume: {why}. The running set stays. The download is \
    retried automatically."
    )
}

fn first_line(message: &str) -> String {
    cut(message.lines().next().unwrap_or_default(), MAX_MESSAGE_LENGTH)
}

fn ready(checked: &CheckedServer, report: &PassReport<'_>) -> (bool, &'static str, String) {
    let is_scaled_to_zero =
        report.plan.observation.stateful_set.is_some_and(|stateful_set| stateful_set.scaled_to_zero);
    match report.plan.observation.pod.map(|pod| pod.phase) {
        Some(PodPhase::Up) if report.plan.verification.result == Verification::Failed => {
            (false, "VerificationFailed", report.plan.verification.problem.clone())
        }
        Some(PodPhase::Up) => (true, "Running", "The server answers.".to_owned()),
        Some(PodPhase::Starting { .. }) => (
            false,
            "Starting",
            cut(&format!("The server is starting.{}", init_container::error_suffix(report)), MAX_MESSAGE_LENGTH),
        ),
        Some(PodPhase::Down) if report.observed.pod.as_ref().is_some_and(|pod| stopped_at(pod).is_some()) => {
            let message = "The server was stopped in the game (`/stop`) and is started again.";
            (false, "StoppedInGame", message.to_owned())
        }
        Some(PodPhase::Down) => (false, "Down", "The server's process is not running.".to_owned()),
        Some(PodPhase::Refused) => init_refusal(checked, report),
        Some(PodPhase::Stopping { .. }) => (false, "Stopping", "The pod is being stopped.".to_owned()),
        None if report.plan.is_stopped() => {
            (false, STOPPED_BY_CRASHES, format!("The server is stopped after a crash loop. See {CRASH_LOOP}."))
        }
        None if is_scaled_to_zero => (false, "ScaledToZero", "`spec.replicas` is 0.".to_owned()),
        None => (false, "NoPod", "The pod does not exist yet.".to_owned()),
    }
}

/// Why the init container refuses to let the server start.
fn init_refusal(checked: &CheckedServer, report: &PassReport<'_>) -> (bool, &'static str, String) {
    if let Some(why) = backup::start_refusal(report) {
        return (false, "BackupFailed", why);
    }
    if let Some(why) = seed_volume::start_refusal(report) {
        return (false, seed_volume::NOT_RESTORED_YET, why);
    }
    let silent = || "The agent refused to open the world: see the log of container `prepare`".to_owned();
    let why = init_message(report).unwrap_or_else(silent);
    let backups = report.observed.world_refused().and_then(|refusal| refusal.backups);
    let replace_hint = backups.as_ref().map(|backups| match backups.first() {
        Some(backup) => replace_worlds_hint(checked, backup),
        None => "There is no good backup that it could open".to_owned(),
    });
    let ways: Vec<String> = [Some(cut(&why, 512)), replace_hint, roll_forward_past_refusal(checked, report)]
        .into_iter()
        .flatten()
        .collect();
    (false, "WorldRefused", cut(&ways.join(". "), MAX_MESSAGE_LENGTH))
}

fn updating(
    checked: &CheckedServer,
    report: &PassReport<'_>,
    last: Option<&LastUpdate>,
) -> (bool, &'static str, String) {
    // A step that this pass carried out. The next pass replaces the text.
    let executed = match report.step {
        Step::UpToDate => return (false, "Stable", "No change is in progress.".to_owned()),
        Step::Wait(waiting) => return waiting_condition(waiting, checked, report, last),
        Step::Reannounce { ends, .. } => {
            return waiting_condition(WaitingOn::Countdown { ends }, checked, report, last);
        }
        Step::Create { .. } => "The StatefulSet was created.",
        Step::Stage => "The agent was asked to fetch the files.",
        Step::Announce { .. } => "Players are warned of the stop.",
        Step::Save { .. } => "The server was asked to save its worlds.",
        Step::WriteTemplate { .. } => "The pod template of the next version set was written.",
        Step::Commit { .. } => "The pod is being replaced.",
        Step::Restore { .. } => {
            "The pod template of the running version set was written back, because its update no longer applies."
        }
        Step::MarkFailed { .. } => "The update has failed, and is not tried again.",
        Step::RequestRestore { .. } => "The next start restores the worlds.",
        Step::RequestPluginDataRestore { .. } => "The next start restores the data of the plugins.",
        Step::RollBack { .. } => "The pod template of the previous version set was written.",
        Step::RollForward { .. } => "The pod template of the next version set replaces that of the failed one.",
        Step::MarkStable { .. } => "The version set is verified.",
        Step::Restart { .. } => "The pod is being replaced for a scheduled restart.",
        Step::EndRestart => "The scheduled restart has ended.",
        Step::BeginDrain { .. } => "The server prepares to leave its node.",
        Step::EndDrain => "The node is no longer drained.",
        Step::CancelAnnouncement { .. } => "The countdown was cancelled.",
    };
    (true, "StepExecuted", executed.to_owned())
}

fn waiting_condition(
    waiting: WaitingOn,
    checked: &CheckedServer,
    report: &PassReport<'_>,
    last: Option<&LastUpdate>,
) -> (bool, &'static str, String) {
    let problem = || report.plan.verification.problem.clone();
    // The last verification is about the running set, and not about the one that failed.
    let why_last = || last.filter(|last| !last.successful).map(|last| last.message.clone());
    match waiting {
        WaitingOn::Window { opens } => waiting_for_window(opens, checked, report),
        WaitingOn::Countdown { ends } if report.plan.opportunistic.reason == Some(OpportunityReason::Empty) => (
            true,
            COUNTDOWN_WHILE_EMPTY,
            format!("No players are online. The server stops at {ends} unless a player joins."),
        ),
        WaitingOn::Countdown { ends } => {
            (true, "Countdown", format!("Players are warned. The server stops at {ends}."))
        }
        WaitingOn::Eviction => {
            (false, "Draining", "No change is in progress. The server may be evicted from its node.".to_owned())
        }
        WaitingOn::Players { until } => (true, "WaitingForPlayers", players_message(until, report)),
        WaitingOn::Agent { until } => {
            let why = report.observed.refusal.as_ref().map_or(String::new(), |(_, message)| format!(": {message}"));
            let since = match report.plan.observation.players {
                Players::Unknown { since } => format!(" since {since}"),
                Players::Nobody | Players::Some(_) | Players::Hidden => String::new(),
            };
            (
                true,
                "AgentUnreachable",
                cut(
                    &format!(
                        "The agent is unreachable{since}{why}. Nightshift continues at \
            {until}."
                    ),
                    1_024,
                ),
            )
        }
        WaitingOn::Controller => {
            (true, "WaitingForController", "Waiting for the StatefulSet controller to replace the pod.".to_owned())
        }
        WaitingOn::PodMissing => {
            (true, "PodMissing", "Waiting for the StatefulSet controller to create the pod.".to_owned())
        }
        WaitingOn::PodStopping { .. } => (true, "PodStopping", "The pod is being stopped.".to_owned()),
        WaitingOn::Start { until } => {
            let message = format!("The server has until {until} to start.{}", init_container::error_suffix(report));
            (true, "Starting", cut(&message, MAX_MESSAGE_LENGTH))
        }
        WaitingOn::Images => (true, "PullingImages", image_pull::waiting_message(report)),
        WaitingOn::NoImage => (false, "NoImage", image_pull::problem(report).unwrap_or_default()),
        WaitingOn::Verification { until } => {
            let subject = if report.plan.observation.is_restarted() {
                "The restarted server"
            } else {
                "The new \
            version set"
            };
            (true, "Verifying", format!("{subject} must stay healthy until {until}."))
        }
        WaitingOn::ScaledToZero if report.plan.is_stopped() => {
            (false, STOPPED_BY_CRASHES, format!("No update starts while the server is stopped. See {CRASH_LOOP}."))
        }
        WaitingOn::ScaledToZero => (false, "ScaledToZero", scaled_to_zero_message(report).to_owned()),
        WaitingOn::NodeLost => (false, "NodeLost", node_lost(report)),
        WaitingOn::SaveRefused { retry_at } => (
            false,
            "SaveRefused",
            format!(
                "The server did not confirm its save. Possible causes: full disk, permissions, unreachable RCON. The \
                save is retried at {retry_at}."
            ),
        ),
        WaitingOn::Blocked { failed } => (
            false,
            "Held",
            format!(
                "Revision {failed} failed on this server. It is tried again when the spec or a release changes. {}",
                backup::missing_backup_reason(report).or_else(why_last).unwrap_or_else(problem)
            ),
        ),
        WaitingOn::BelowFloor { floor } => {
            let hint = backup::downgrade_hint(current_backups(report.observed), &report.plan.record.files);
            let text =
                format!("A newer Minecraft opened the world (format {floor}). This version set cannot open it. {hint}");
            (false, "BelowFloor", cut(&text, MAX_MESSAGE_LENGTH))
        }
        WaitingOn::WorldRefused => init_refusal(checked, report),
        WaitingOn::NoBackup => (false, "NoBackup", no_backup_message(checked, report)),
        WaitingOn::RollbackWouldLoseProgress => {
            (false, "RollbackWouldLoseProgress", rollback_would_lose_message(checked, report))
        }
        WaitingOn::ServerDown => (false, "ServerDown", cut(&init_container::down_reason(report), MAX_MESSAGE_LENGTH)),
        WaitingOn::FirstStartFailed => (
            false,
            "FirstStartFailed",
            seed_volume::start_refusal(report).unwrap_or_else(|| {
                "The first start failed. Correct the spec: the start is then retried at once.".to_owned()
            }),
        ),
    }
}

fn node_lost(report: &PassReport<'_>) -> String {
    let pod = report.observed.pod.as_ref();
    let node = pod.and_then(|pod| pod.spec.as_ref()).and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    let deleted_at = pod.and_then(|pod| pod.metadata.deletion_timestamp.as_ref());
    let since = deleted_at.map_or_else(String::new, |at| format!(", and its pod should have exited by {}", at.0));
    format!(
        "Node `{node}` does not answer{since}. Make sure that the machine is off, then run: kubectl taint nodes {node} \
         node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    )
}
