//! Pure. Plans online backups: the one that is due by `spec.backup.schedule` or `nightshift.dev/backup-now`, when it may be requested, and
//! when the next one is due.

use agent_api::Contents;
use agent_api::{
    AgentReport, BackupsReport, OnlineBackupOutcome, OnlineBackupRequest, PlayerCount as PlayersSeen, Server,
};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use scheduler::maintenance::{BackupHistory, BackupRequest, Gate, next_backup};
use scheduler::observation::{Goal, Observation, PodPhase};
use scheduler::rollout::{Step, WaitingOn, is_in_progress};

use super::backups::current_backups;
use super::observe::Observed;
use super::request_time::{MAX_VALUE_LENGTH, not_a_time, parse_time};
use super::template_variable::has_variable;
use crate::error_chain::cut;
use crate::k8s::labels::BACKUP_NOW;
use crate::requeue::Outcome;
use validate::CheckedServer;
use validate::image_contract::{AGENT_CONTAINER, BACKUPS};

pub(crate) mod request;

/// How long automatic saving may be off. Paper unloads no chunk meanwhile, so its memory grows while players move. Half an hour is enough
/// to read 100 GB from a disk of 60 MB/s. Larger servers need backups before updates, or snapshots of the volume.
const TIMEOUT_SECONDS: u32 = 30 * 60;

/// Message for a request that this pod cannot handle.
pub(crate) const AFTER_NEXT_RESTART: &str =
    "Online backups are possible after the next restart: the current pod cannot take them";

/// The online backups of one server at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OnlineBackups {
    /// The backup to request from the agent when nothing else is in progress.
    pub(crate) due: Option<OnlineBackupRequest>,
    /// Whether a backup is in progress.
    pub(crate) is_running: bool,
    /// The scheduled instant that is still owed, otherwise the next one. A scheduled backup is owed once its instant is in the status.
    pub(crate) next: Option<Timestamp>,
    /// The next scheduled instant after now.
    pub(crate) upcoming: Option<Timestamp>,
    /// The annotation's value, if the agent has received its request.
    pub(crate) served: Option<String>,
    /// The annotation's value, if it was set in time and has not been handled yet.
    pub(crate) accepted: Option<String>,
    /// Why a user's request has no effect.
    pub(crate) refused: Option<String>,
    /// Whether backups are wanted that this pod cannot take.
    pub(crate) needs_restart: bool,
    /// The agent's error in response to the request that is due.
    pub(crate) refusal: Option<String>,
}

impl OnlineBackups {
    /// The backups of this server. `is_too_old` is whether the pod's agent has rejected such a request as unknown.
    pub(crate) fn new(
        server: &PaperMCServer,
        checked: &CheckedServer,
        observed: &Observed,
        before: &PaperMCServerStatus,
        is_too_old: bool,
        now: Timestamp,
    ) -> Self {
        let written = written_request(server, before);
        let refusing = |why: &str| {
            let counts = matches!(&written, Some((_, Some(request))) if request.is_valid(now));
            Self { refused: counts.then(|| format!("`{BACKUP_NOW}` requests a backup{why}")), ..Self::default() }
        };
        let Some(backup) = &checked.data.backup else {
            return refusing(", but this server takes no backups: `spec.backup.enabled` is `false`");
        };
        if !checked.pod.rcon.enabled {
            return refusing(" of the running server, which requires RCON: set `spec.rcon.enabled: true`");
        }
        let backups = current_backups(observed);
        let past = BackupHistory {
            last_shown: before.backup.as_ref().and_then(|backup| backup.next_backup),
            last_request: backups.and_then(|backups| backups.online.as_ref()),
            newest: backups.and_then(|backups| newest_backup(backups, backup.online_contents)),
            is_unplayed: observed
                .reply
                .report
                .as_ref()
                .is_some_and(|report| is_unplayed(report, backup.online_contents)),
        };
        let request = written.as_ref().and_then(|(_, request)| *request);
        let value = || written.as_ref().map(|(value, _)| value.clone());
        let is_served = request.is_some_and(|request| request.was_given(&past));
        let counts = !is_served && request.is_some_and(|request| request.is_valid(now));
        let schedule = backup.schedule.as_ref();
        let cannot_write = observed.pod.as_ref().is_some_and(|pod| !can_take_backups(pod));
        let is_from_before = is_too_old || observed.runs_without_rcon() || cannot_write;
        let needs_restart = is_from_before && (counts || schedule.is_some());
        let refused = match &written {
            Some((value, None)) => Some(not_a_time(BACKUP_NOW, value)),
            Some(_) if counts && needs_restart => Some(format!("`{BACKUP_NOW}`: {AFTER_NEXT_RESTART}")),
            Some(_) | None => None,
        };
        Self {
            due: next_backup(schedule, request, &past, now).map(|due| OnlineBackupRequest {
                request: due.request(),
                trigger: due.trigger(),
                contents: backup.online_contents,
                timeout_seconds: TIMEOUT_SECONDS,
            }),
            is_running: past.last_request.is_some_and(|online| online.outcome == OnlineBackupOutcome::Running),
            next: schedule.and_then(|schedule| schedule.due_instant(&past, now)).or_else(|| schedule?.next(now)),
            upcoming: schedule.and_then(|schedule| schedule.next(now)),
            served: if is_served { value() } else { None },
            accepted: if counts { value() } else { None },
            refused,
            needs_restart,
            refusal: None,
        }
    }

    /// Requeues a server at rest soon while a backup is in progress.
    pub(crate) fn requeue_while_running(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::UpToDate | Outcome::Waiting { .. } if self.is_running => Outcome::Polling { until: None },
            Outcome::UpToDate
            | Outcome::Waiting { .. }
            | Outcome::Acted
            | Outcome::Polling { .. }
            | Outcome::CountingDown { .. }
            | Outcome::Failed { .. } => outcome,
        }
    }
}

/// Whether a backup may be requested in this pass. The server must be up, and no update, restart, rollout or countdown may be in progress
/// or begin now. `spec.suspend` and blackouts do not matter, because a backup stops no server. A failed revision may wait for a user's
/// decision for days, and the progress on it is stored nowhere else, so backups continue.
pub(crate) fn may_be_taken(
    goal: &Goal,
    observation: &Observation,
    report: Option<&AgentReport>,
    gate: Gate,
    step: Step,
) -> bool {
    let rests = matches!(
        step,
        Step::UpToDate
            | Step::Wait(
                WaitingOn::Window { .. }
                    | WaitingOn::Players { .. }
                    | WaitingOn::Blocked { .. }
                    | WaitingOn::BelowFloor { .. }
                    | WaitingOn::NoImage
                    // The wait may last for days, and a stop cancels a backup.
                    | WaitingOn::Eviction
            )
    );
    // No server could open a backup of worlds whose conversion to another layout did not finish.
    let is_left = matches!(step, Step::Wait(why) if why.is_rollback_decision()) && observation.world.whole;
    let is_up = observation.pod.is_some_and(|pod| pod.phase == PodPhase::Up)
        && report.is_some_and(|report| matches!(report.server, Server::Up { .. }));
    (rests || is_left) && is_up && !is_in_progress(goal, observation, gate)
}

/// The request in the annotation, as written and as parsed. `None` if it was handled.
fn written_request(server: &PaperMCServer, before: &PaperMCServerStatus) -> Option<(String, Option<BackupRequest>)> {
    let value = cut(server.annotations().get(BACKUP_NOW)?.trim(), MAX_VALUE_LENGTH);
    let handled = before.last_handled.as_ref();
    if value.is_empty() || handled.and_then(|handled| handled.backup_now.as_ref()) == Some(&value) {
        return None;
    }
    let accepted = handled.and_then(|handled| handled.backup_now_accepted.as_ref()) == Some(&value);
    let request = parse_time(&value).map(|at| BackupRequest { at, accepted });
    Some((value, request))
}

/// When the newest good backup with these contents was started.
fn newest_backup(backups: &BackupsReport, contents: Contents) -> Option<Timestamp> {
    let has_contents = |contained: Contents| {
        (contained.has_worlds() || !contents.has_worlds())
            && (contained.has_server_files() || !contents.has_server_files())
    };
    let candidates = [&backups.last, &backups.last_of_worlds].into_iter().flatten();
    candidates.filter(|backup| has_contents(backup.contents)).map(|backup| backup.started_at).max()
}

/// Whether no player can have joined since the newest good backup, it has these contents, and there was no restore since. Players who are
/// online now have left no trace yet.
fn is_unplayed(report: &AgentReport, contents: Contents) -> bool {
    report.backups.as_ref().is_some_and(|backups| {
        let last = backups.last.as_ref().map(|backup| backup.started_at);
        let restored = backups.restored.as_ref().map(|restored| restored.at);
        last.is_some() && last == newest_backup(backups, contents) && backups.unplayed_since_last && restored <= last
    }) && report.players == PlayersSeen::Nobody
}

/// Whether the agent of this pod knows where the backups are.
fn can_take_backups(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| has_variable(spec, AGENT_CONTAINER, BACKUPS))
}

#[cfg(test)]
pub(crate) mod tests;
