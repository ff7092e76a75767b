//! Pure. Builds the conditions of a server.

use agent_api::Server;
use crds::paper_mc_server::LastUpdate;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use resolver::render::text;
use scheduler::observation::{DataVersion, Players, PodPhase, Revision, Verification};
use scheduler::rollout::{OpportunityReason, Step, WaitingOn};

use super::backup::{self, BACKUP_READY};
use super::backup_schedule::{self, BACKUP_CRON_VALID};
use super::context::{MAX_MESSAGE_LENGTH, PassReport, condition, explanation_message};
use super::displaced_jars::JARS_DISPLACED;
use super::format::format_short_duration;
use super::manual_recovery::{no_backup_message, roll_forward_past_refusal, rollback_would_lose_message};
use super::plugins_enabled::{NOT_ENABLED, PLUGINS_ENABLED, RunningPlugins};
use super::seed_volume::{self, RESTORED_FROM};
use super::volume_rejected::{self, UNSAFE_ITEM, VOLUME_REJECTED};
use super::waiting::{players_message, scaled_to_zero_message};
use super::{displaced_jars, drift, lock_rejection, pending, update_blocked, world_damage};
use crate::error_chain::cut;
use crate::server::backups::current_backups;
use crate::server::constraints::update_slot::UPDATE_SLOT;
use crate::server::constraints::{self, image_pull, pinned_set};
use crate::server::crash_loop::CRASH_LOOP;
use crate::server::in_game_stop::stopped_at;
use crate::server::plan::PassInput;
use crate::server::plan::constraint::ConditionSection;
use validate::CheckedServer;

mod init_container;
mod unplanned;

use super::agent_rejection::{AGENT_REJECTS, agent_rejection};
use super::refusal::init_message;
use super::responsiveness::{self, AGENT_UNREACHABLE, PLAYERS_UNKNOWN};
use super::waiting::{COUNTDOWN_WHILE_EMPTY, waiting_for_window};
use crate::server::requested_restore::replace_worlds_hint;
pub(super) use unplanned::{NAME_CONFLICT, build_blocked, build_failure, build_rollout};

/// The reason of `Ready` and `Updating` while a crash loop has stopped the server.
const STOPPED_BY_CRASHES: &str = "StoppedByCrashes";

/// Whether the files of the next lock are available. The condition is absent while they are.
const ARTIFACTS_READY: &str = "ArtifactsReady";
/// The reason if the agent could not stage them on the volume.
const NOT_STAGED: &str = "NotStaged";

impl PassReport<'_> {
    /// A condition of this pass.
    fn new_condition(&self, of: &'static str, status: Option<bool>, reason: &str, message: String) -> Condition {
        condition(self.pass.server, of, status, reason, message, self.pass.now, &self.pass.before.conditions)
    }

    /// A condition that is absent unless it is true.
    fn true_condition(&self, of: &'static str, reason: &str, message: &str) -> Condition {
        self.new_condition(of, Some(true), reason, cut(message, MAX_MESSAGE_LENGTH))
    }

    /// The same condition as before this pass.
    fn previous_condition(&self, of: &str) -> Option<Condition> {
        self.pass.before.conditions.iter().find(|old| old.type_ == of).cloned()
    }
}

/// The parts of the status that report conditions. `kubectl describe` shows the conditions in this order.
const PARTS: [fn(&PassReport<'_>) -> Vec<Condition>; 8] = [
    selection_conditions,
    backup_conditions,
    file_conditions,
    pod_conditions,
    request_conditions,
    delay_conditions,
    window_conditions,
    progress_condition,
];

/// The conditions of a complete pass.
pub(super) fn build_conditions(report: &PassReport<'_>) -> Vec<Condition> {
    PARTS.iter().flat_map(|conditions| conditions(report)).collect()
}

/// Whether the server runs, and which version set is selected.
fn selection_conditions(report: &PassReport<'_>) -> Vec<Condition> {
    let plan = report.plan;
    let (is_up, reason, message) = ready(report.pass.checked, report);
    let ready = report.new_condition("Ready", is_up, reason, message);
    let explanation = &plan.selection.explanation;
    let (status, reason, message) = if plan.selection.solved {
        (Some(true), "Solved", first_line(&text::render(explanation, report.pass.now)))
    } else if plan.is_impossible() {
        (Some(false), "NoSolution", explanation_message(explanation))
    } else {
        (None, "MetadataMissing", explanation_message(explanation))
    };
    let resolved = report.new_condition("Resolved", status, reason, message);
    let available = if plan.is_update() {
        report.true_condition("UpdateAvailable", "UpdatePlanned", &plan.target.describe_changes())
    } else {
        let message = "The server is up to date.".to_owned();
        report.new_condition("UpdateAvailable", Some(false), "UpToDate", message)
    };
    let (blocked, reason, message) =
        update_blocked::condition_parts(plan, &report.pass.before.conditions, hold(report));
    let blocked = report.new_condition(update_blocked::UPDATE_BLOCKED, blocked, &reason, message);
    vec![ready, resolved, available, blocked]
}

/// Why the planned update, or any update, does not start in the next window: reason and message. A queue for an update slot and a failed try
/// that is repeated by itself are no hold.
fn hold(report: &PassReport<'_>) -> Option<(&'static str, String)> {
    let PassInput { checked, before, .. } = report.pass;
    if let Some(pinned) = pinned_set::reason_and_message(report) {
        return Some(pinned);
    }
    if !report.plan.is_update() {
        return None;
    }
    let delay = constraints::wait(report);
    if let Some(delay) = delay.filter(|delay| delay.reason != UPDATE_SLOT) {
        return Some((delay.reason, delay.message));
    }
    let Step::Wait(waiting) = report.step else { return None };
    let next_window = &report.plan.next_window;
    let waits_for_window =
        matches!(waiting, WaitingOn::Window { .. }) && next_window.blackout.is_none() && !next_window.is_suspended;
    let is_scaled_to_zero = waiting == WaitingOn::ScaledToZero && !report.plan.is_stopped();
    let ends_by_itself = waits_for_window
        || is_scaled_to_zero
        || matches!(waiting, WaitingOn::Eviction | WaitingOn::SaveRefused { .. } | WaitingOn::ServerDown);
    let (is_updating, reason, message) = waiting_condition(waiting, checked, report, before.last_update.as_ref());
    (!is_updating && !ends_by_itself).then_some((reason, message))
}

fn backup_conditions(report: &PassReport<'_>) -> Vec<Condition> {
    let backup = backup::condition_parts(report.pass.checked, report).map(|(status, reason, message)| {
        // While the agent is unreachable, the last condition remains.
        let is_silent = status.is_none() && reason == AGENT_UNREACHABLE;
        let remains = |old: &Condition| is_silent || (status == Some(true) && backup::failure_remains(old, report));
        let previous = report.previous_condition(BACKUP_READY).filter(remains);
        previous.unwrap_or_else(|| report.new_condition(BACKUP_READY, status, reason, message))
    });
    let cron = backup_schedule::condition_parts(report.pass.server, report.pass.checked, report);
    let cron = cron
        .map(|(is_valid, reason, message)| report.new_condition(BACKUP_CRON_VALID, Some(is_valid), reason, message));
    backup.into_iter().chain(cron).collect()
}

/// The files and the images of the next version set.
fn file_conditions(report: &PassReport<'_>) -> Vec<Condition> {
    let (plan, observed) = (report.plan, report.pass.observed);
    let missing =
        |reason, why: &str| report.new_condition(ARTIFACTS_READY, Some(false), reason, cut(why, MAX_MESSAGE_LENGTH));
    let files = if let Some(why) = &plan.target.files_problem {
        Some(missing("FilesMissing", why))
    } else if let Some(why) = plan.staging_problem(observed) {
        Some(missing(NOT_STAGED, &not_staged_message(why)))
    } else if plan.is_staging(observed) {
        // During a retry, the last condition remains.
        report.previous_condition(ARTIFACTS_READY).filter(|old| old.reason == NOT_STAGED)
    } else {
        None
    };
    files.into_iter().chain(constraint_conditions(ConditionSection::Files, report)).collect()
}

/// Problems of the pod and its volume that a user should fix. Each condition is absent while there is no problem.
fn pod_conditions(report: &PassReport<'_>) -> Vec<Condition> {
    let before = &report.pass.before.conditions;
    let agent = report.pass.observed.reply.report.as_deref();
    let drift =
        drift::reason_and_message(report).map(|(reason, message)| report.true_condition("Drifted", reason, &message));
    let rejected =
        volume_rejected::message(report).map(|message| report.true_condition(VOLUME_REJECTED, UNSAFE_ITEM, &message));
    let exposed = agent.filter(|agent| agent.rcon_exposed).map(|_| {
        let message = "RCON answers on the pod's own address. The server software ignores `rcon.ip`.";
        report.true_condition("RconExposed", "ReachableOnPodIP", message)
    });
    let unsigned = lock_rejection::message(report)
        .map(|message| report.true_condition(lock_rejection::LOCK_REJECTED, lock_rejection::NOT_SIGNED, &message));
    let rejects =
        agent_rejection(report).map(|(reason, message)| report.true_condition(AGENT_REJECTS, reason, message));
    let damage = world_damage::condition(report.pass.checked, report, before, |type_, reason, message| {
        report.new_condition(type_, Some(true), reason, message)
    });
    let plugins = match RunningPlugins::of_stable_set(report.pass.observed) {
        Some(plugins) => {
            plugins.message().map(|message| report.new_condition(PLUGINS_ENABLED, Some(false), NOT_ENABLED, message))
        }
        // Until they are known, the last condition remains.
        None => report.previous_condition(PLUGINS_ENABLED),
    };
    let displaced = match agent {
        Some(agent) => displaced_jars::message(agent)
            .map(|message| report.new_condition(JARS_DISPLACED, Some(true), displaced_jars::NAME_CONFLICT, message)),
        // While the agent is unreachable, the last condition remains.
        None => report.previous_condition(JARS_DISPLACED),
    };
    let duplicate = update_blocked::name_conflicts(&report.plan.selection.explanation)
        .map(|message| report.true_condition("DuplicatePluginName", update_blocked::TWO_JARS_ONE_NAME, &message));
    let other_project = match update_blocked::other_projects(&report.plan.selection.explanation) {
        Some(message) if message.is_empty() => None,
        Some(message) => Some(report.true_condition(update_blocked::OTHER_PROJECT, "SlugLeadsElsewhere", &message)),
        // While the result is unknown, the last condition remains.
        None => report.previous_condition(update_blocked::OTHER_PROJECT),
    };
    let of_plugins = plugins.into_iter().chain(displaced).chain(duplicate).chain(other_project);
    let of_server = rejected.into_iter().chain(drift).chain(unsigned).chain(exposed).chain(rejects).chain(damage);
    of_server.chain(of_plugins).collect()
}

/// Pinned sets, partial updates and restores.
fn request_conditions(report: &PassReport<'_>) -> Vec<Condition> {
    let checked = report.pass.checked;
    let seed = checked.data.restore_from.as_ref().and_then(|_| {
        let result = seed_volume::condition_parts(checked, report);
        let result =
            result.map(|(done, reason, message)| report.new_condition(RESTORED_FROM, Some(done), reason, message));
        // While the agent is unreachable, the last condition remains.
        result.or_else(|| report.previous_condition(RESTORED_FROM))
    });
    constraint_conditions(ConditionSection::Requests, report).chain(seed).collect()
}

/// Other features that delay an update, or an eviction from a node.
fn delay_conditions(report: &PassReport<'_>) -> Vec<Condition> {
    constraint_conditions(ConditionSection::Delays, report).collect()
}

fn window_conditions(report: &PassReport<'_>) -> Vec<Condition> {
    constraint_conditions(ConditionSection::Windows, report).collect()
}

/// The conditions of the constraints in one of these parts.
fn constraint_conditions(section: ConditionSection, report: &PassReport<'_>) -> impl Iterator<Item = Condition> {
    constraints::conditions(section, report).map(|text| {
        let message = cut(&text.message, MAX_MESSAGE_LENGTH);
        report.new_condition(text.type_, text.status, text.reason, message)
    })
}

fn progress_condition(report: &PassReport<'_>) -> Vec<Condition> {
    let (is_updating, reason, message) = updating(report.pass.checked, report, report.pass.before.last_update.as_ref());
    vec![report.new_condition("Updating", Some(is_updating), reason, message)]
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

fn ready(checked: &CheckedServer, report: &PassReport<'_>) -> (Option<bool>, &'static str, String) {
    let down = |reason, message: &str| (Some(false), reason, cut(message, MAX_MESSAGE_LENGTH));
    let down_for = |(reason, message): (&'static str, String)| down(reason, &message);
    let is_scaled_to_zero =
        report.plan.observation.stateful_set.is_some_and(|stateful_set| stateful_set.scaled_to_zero);
    match report.plan.observation.pod.map(|pod| pod.phase) {
        Some(PodPhase::Up) if report.plan.verification.result == Verification::Failed => {
            down("VerificationFailed", &report.plan.verification.problem)
        }
        Some(PodPhase::Up) => responsiveness::condition_parts(report)
            .unwrap_or_else(|| (Some(true), "Running", "The server answers.".to_owned())),
        Some(PodPhase::Pending) => down_for(pending::reason_and_message(report)),
        Some(PodPhase::Starting { .. }) if volume_rejected::message(report).is_some() => {
            down_for(init_refusal(checked, report))
        }
        Some(PodPhase::Starting { .. }) => {
            down("Starting", &format!("The server is starting.{}", init_container::error_suffix(report)))
        }
        Some(PodPhase::Down) if report.pass.observed.pod.as_ref().is_some_and(|pod| stopped_at(pod).is_some()) => {
            down("StoppedInGame", "The server was stopped in the game (`/stop`) and is started again.")
        }
        Some(PodPhase::Down) => down("Down", "The server's process is not running."),
        Some(PodPhase::Refused) => down_for(init_refusal(checked, report)),
        Some(PodPhase::Stopping { .. }) => down("Stopping", "The pod is being stopped."),
        None if report.plan.is_stopped() => {
            down(STOPPED_BY_CRASHES, &format!("The server is stopped after a crash loop. See {CRASH_LOOP}."))
        }
        None if is_scaled_to_zero => down("ScaledToZero", "`spec.replicas` is 0."),
        None => down("NoPod", "The pod does not exist yet."),
    }
}

/// Why the init container refuses to let the server start.
fn init_refusal(checked: &CheckedServer, report: &PassReport<'_>) -> (&'static str, String) {
    if let Some(why) = volume_rejected::message(report) {
        return (VOLUME_REJECTED, why);
    }
    if let Some(why) = lock_rejection::message(report).filter(|_| report.pass.observed.is_start_rejected()) {
        return (lock_rejection::NOT_SIGNED, why);
    }
    if let Some(why) = backup::start_refusal(report) {
        return ("BackupFailed", why);
    }
    if let Some(why) = seed_volume::start_refusal(report) {
        return (seed_volume::NOT_RESTORED_YET, why);
    }
    let silent = || "The agent refused to open the world: see the log of container `prepare`".to_owned();
    let why = init_message(report).unwrap_or_else(silent);
    let backups = report.pass.observed.world_refused().and_then(|refusal| refusal.backups);
    let replace_hint = backups.as_ref().map(|backups| match backups.first() {
        Some(backup) => replace_worlds_hint(checked, backup),
        None => "There is no good backup that it could open".to_owned(),
    });
    let ways: Vec<String> =
        [Some(cut(&why, 512)), replace_hint, roll_forward_past_refusal(report)].into_iter().flatten().collect();
    ("WorldRefused", ways.join(". "))
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
        Step::RollForward { .. } => "The pod template of the next version set replaces that of the pod.",
        Step::MarkStable { .. } => "The version set is verified.",
        Step::Restart { .. } if report.plan.tasks.scale_down.is_some() => "The server was scaled to zero.",
        Step::Restart { .. } => "The pod is being replaced for a restart.",
        Step::EndRestart => "The restart has ended.",
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
    let changing = |reason, message: &str| (true, reason, cut(message, MAX_MESSAGE_LENGTH));
    let at_rest = |reason, message: &str| (false, reason, cut(message, MAX_MESSAGE_LENGTH));
    let at_rest_for = |(reason, message): (&'static str, String)| at_rest(reason, &message);
    let changing_for = |(reason, message): (&'static str, String)| changing(reason, &message);
    let only_empty = report.plan.opportunistic.reason == Some(OpportunityReason::Empty);
    match waiting {
        WaitingOn::Window { opens } => at_rest_for(waiting_for_window(opens, report)),
        WaitingOn::Countdown { ends } if only_empty => changing(
            COUNTDOWN_WHILE_EMPTY,
            &format!("No players are online. The server stops at {ends} unless a player joins."),
        ),
        WaitingOn::Countdown { ends } => {
            changing("Countdown", &format!("Players are warned. The server stops at {ends}."))
        }
        WaitingOn::Eviction => {
            at_rest("Draining", "No change is in progress. The server may be evicted from its node.")
        }
        WaitingOn::Players { until } => changing("WaitingForPlayers", &players_message(until, report)),
        WaitingOn::Agent { until } => changing_for(players_unknown(until, report)),
        WaitingOn::Controller => {
            changing("WaitingForController", "Waiting for the StatefulSet controller to replace the pod.")
        }
        WaitingOn::PodMissing => changing("PodMissing", "Waiting for the StatefulSet controller to create the pod."),
        WaitingOn::PodStopping { .. } => changing("PodStopping", "The pod is being stopped."),
        WaitingOn::Cluster => changing_for(pending::reason_and_message(report)),
        WaitingOn::Start { until } => {
            let error = init_container::error_suffix(report);
            changing("Starting", &format!("{}{error}", start_deadline(until, report)))
        }
        WaitingOn::Images => changing("PullingImages", &image_pull::waiting_message(report.plan)),
        WaitingOn::NoImage => at_rest("NoImage", &image_pull::problem(report.plan).unwrap_or_default()),
        WaitingOn::Verification { until } => changing("Verifying", &verifying(until, report)),
        WaitingOn::ScaledToZero if report.plan.is_stopped() => {
            let message = format!("No update starts while the server is stopped. See {CRASH_LOOP}.");
            at_rest(STOPPED_BY_CRASHES, &message)
        }
        WaitingOn::ScaledToZero => at_rest("ScaledToZero", scaled_to_zero_message(report)),
        WaitingOn::NodeLost => at_rest("NodeLost", &node_lost(report)),
        WaitingOn::SaveRefused { retry_at } => at_rest("SaveRefused", &save_refused(retry_at)),
        WaitingOn::Blocked { failed } => at_rest("Held", &failed_before(failed, report, last)),
        WaitingOn::BelowFloor { floor } => at_rest("BelowFloor", &below_floor(floor, report)),
        WaitingOn::WorldRefused => at_rest_for(init_refusal(checked, report)),
        WaitingOn::NoBackup => at_rest("NoBackup", &no_backup_message(checked, report)),
        WaitingOn::RollbackWouldLoseProgress => {
            at_rest("RollbackWouldLoseProgress", &rollback_would_lose_message(checked, report))
        }
        WaitingOn::ServerDown => at_rest("ServerDown", &init_container::down_reason(report)),
        WaitingOn::FirstStartFailed => at_rest("FirstStartFailed", &first_start_failed(report)),
    }
}

/// The deadline of a start. Each sign of life moves it. So while there are any, the text has the time after the last one: the instant would
/// change the status in every pass.
fn start_deadline(until: Timestamp, report: &PassReport<'_>) -> String {
    match report.pass.observed.reply.report.as_deref().map(|agent| &agent.server) {
        Some(Server::Starting { progress_at }) => {
            let time = format_short_duration(until.duration_since(*progress_at));
            format!("The server has {time} after each sign of life to start.")
        }
        Some(Server::Absent | Server::Up { .. } | Server::Stopping { .. }) | None => {
            format!("The server has until {until} to start.")
        }
    }
}

fn verifying(until: Timestamp, report: &PassReport<'_>) -> String {
    let is_restarted = report.plan.observation.is_restarted();
    let subject = if is_restarted { "The restarted server" } else { "The new version set" };
    format!("{subject} must stay healthy until {until}.")
}

fn save_refused(retry_at: Timestamp) -> String {
    format!(
        "The server did not confirm its save. Possible causes: full disk, permissions, unreachable RCON. The save is \
        retried at {retry_at}."
    )
}

/// The revision that is not tried again. The last verification is about the running set, and not about the one that failed.
fn failed_before(failed: Revision, report: &PassReport<'_>, last: Option<&LastUpdate>) -> String {
    let why_last = last.filter(|last| !last.successful).map(|last| last.message.clone());
    let why = backup::missing_backup_reason(report).or(why_last);
    let why = why.unwrap_or_else(|| report.plan.verification.problem.clone());
    format!("Revision {failed} failed on this server. It is tried again when the spec or a release changes. {why}")
}

fn below_floor(floor: DataVersion, report: &PassReport<'_>) -> String {
    let hint = backup::downgrade_hint(current_backups(report.pass.observed), &report.plan.target.record.files);
    format!("A newer Minecraft opened the world (format {floor}). This version set cannot open it. {hint}")
}

fn first_start_failed(report: &PassReport<'_>) -> String {
    let corrected = || "The first start failed. Correct the spec: the start is then retried at once.".to_owned();
    seed_volume::start_refusal(report).unwrap_or_else(corrected)
}

/// The players cannot be counted, because the agent is unreachable or the server does not answer its ping.
fn players_unknown(until: Timestamp, report: &PassReport<'_>) -> (&'static str, String) {
    let since = match report.plan.observation.players {
        Players::Unknown { since } => format!(" since {since}"),
        Players::Nobody | Players::Some(_) | Players::Hidden => String::new(),
    };
    let reply = &report.pass.observed.reply;
    let (reason, problem) = if reply.report.is_some() {
        (PLAYERS_UNKNOWN, format!("The server has not answered a ping{since}, so its players are unknown"))
    } else {
        let why = reply.refusal.as_ref().map_or(String::new(), |(_, message)| format!(": {message}"));
        (AGENT_UNREACHABLE, format!("The agent is unreachable{since}{why}"))
    };
    (reason, format!("{problem}. Nightshift continues at {until}."))
}

fn node_lost(report: &PassReport<'_>) -> String {
    let pod = report.pass.observed.pod.as_ref();
    let node = pod.and_then(|pod| pod.spec.as_ref()).and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    let deleted_at = pod.and_then(|pod| pod.metadata.deletion_timestamp.as_ref());
    let since = deleted_at.map_or_else(String::new, |at| format!(", and its pod should have exited by {}", at.0));
    format!(
        "Node `{node}` does not answer{since}. Make sure that the machine is off, then run: kubectl taint nodes {node} \
         node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    )
}
