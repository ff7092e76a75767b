//! Pure. Plans online backups: the one that is due by `spec.backup.schedule` or `nightshift.dev/backup-now`, when it may be requested, and
//! when the next one is due.

use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use scheduler::backup::Contents;
use scheduler::maintenance::{BackupHistory, BackupRequest, Gate, next_copy};
use scheduler::observation::{Goal, Observation, PodPhase};
use scheduler::protocol::{AgentReport, BackupsSeen, HotCopy, HotCopyOutcome, PlayerCount as PlayersSeen, Server};
use scheduler::rollout::{Step, WaitingOn, is_under_way};

use super::backups::copies;
use super::check::CheckedServer;
use super::observe::Observed;
use super::render::pod::{AGENT_CONTAINER, BACKUP_VOLUME};
use crate::error_chain::cut;
use crate::k8s::labels::BACKUP_NOW;
use crate::requeue::Outcome;

pub(crate) mod request;

/// How long automatic saving may be off. Paper unloads no chunk meanwhile, so its memory grows while players move. Half an hour is enough
/// to read 100 GB from a disk of 60 MB/s. Larger servers need backups before updates, or snapshots of the volume.
const TIMEOUT_SECONDS: u32 = 30 * 60;

/// Message for a request that this pod cannot handle.
pub(crate) const WITH_THE_NEXT_RESTART: &str =
    "copies of the running server come with its next restart: its pod of now can take none";

/// The online backups of one server at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OnlineBackups {
    /// The backup to request from the agent when nothing else is in progress.
    pub(crate) due: Option<HotCopy>,
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
    pub(crate) fn of(
        server: &PaperMCServer,
        checked: &CheckedServer,
        seen: &Observed,
        before: &PaperMCServerStatus,
        is_too_old: bool,
        now: Timestamp,
    ) -> Self {
        let written = written(server, before);
        let refusing = |why: &str| {
            let counts = matches!(&written, Some((_, Some(asked))) if asked.counts(now));
            Self { refused: counts.then(|| format!("`{BACKUP_NOW}` asks for a copy{why}")), ..Self::default() }
        };
        let Some(backup) = &checked.backup else {
            return refusing(", and this server has none: write `spec.backup` first");
        };
        if !checked.rcon.enabled {
            return refusing(" of the running server, which needs RCON: set `spec.rcon.enabled: true`");
        }
        let backups = copies(seen);
        let past = BackupHistory {
            promised: before.backup.as_ref().and_then(|backup| backup.next_backup),
            hot: backups.and_then(|backups| backups.hot.as_ref()),
            newest: backups.and_then(|backups| newest(backups, backup.hot_contents)),
            is_unplayed: seen.report.as_ref().is_some_and(|report| is_unplayed(report, backup.hot_contents)),
        };
        let asked = written.as_ref().and_then(|(_, asked)| *asked);
        let value = || written.as_ref().map(|(value, _)| value.clone());
        let is_served = asked.is_some_and(|asked| asked.was_given(&past));
        let counts = !is_served && asked.is_some_and(|asked| asked.counts(now));
        let schedule = backup.schedule.as_ref();
        let upcoming = schedule.and_then(|schedule| schedule.next(now));
        let is_from_before =
            is_too_old || seen.runs_without_rcon() || seen.pod.as_ref().is_some_and(|pod| !writes_copies(pod));
        let needs_restart = is_from_before && (counts || schedule.is_some());
        let refused = match &written {
            Some((value, None)) => Some(format!(
                "`{BACKUP_NOW}` is `{value}`, which is no time: write the present one in unix seconds, as `date +%s` prints it"
            )),
            Some(_) if counts && needs_restart => Some(format!("`{BACKUP_NOW}`: {WITH_THE_NEXT_RESTART}")),
            Some(_) | None => None,
        };
        Self {
            due: next_copy(schedule, asked, &past, now).map(|due| HotCopy {
                request: due.request(),
                trigger: due.trigger(),
                contents: backup.hot_contents,
                timeout_seconds: TIMEOUT_SECONDS,
            }),
            is_running: past.hot.is_some_and(|hot| hot.outcome == HotCopyOutcome::Running),
            next: schedule.and_then(|schedule| schedule.owed(&past, now)).or(upcoming),
            upcoming,
            served: if is_served { value() } else { None },
            accepted: if counts { value() } else { None },
            refused,
            needs_restart,
            refusal: None,
        }
    }

    /// Requeues a server that is at rest: soon while a backup is in progress, and at the instant of the next one.
    pub(crate) fn in_time(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        match outcome {
            Outcome::Settled | Outcome::Waiting { .. } if self.is_running => Outcome::Under { until: None },
            Outcome::Settled
            | Outcome::Waiting { .. }
            | Outcome::Acted
            | Outcome::Under { .. }
            | Outcome::Counting { .. }
            | Outcome::Failed { .. } => self.upcoming.map_or(outcome, |at| outcome.no_later_than(at, now)),
        }
    }
}

/// Whether a backup may be requested in this pass. The server must be up, and no update, restart, rollout or countdown may be in progress
/// or begin now. `spec.suspend` and blackouts do not matter, because a backup stops no server. A failed revision may wait for a user's
/// decision for days, and the progress on it is stored nowhere else, so backups continue.
pub(crate) fn may_be_taken(
    goal: &Goal,
    seen: &Observation,
    report: Option<&AgentReport>,
    gate: Gate,
    step: Step,
) -> bool {
    let rests = matches!(
        step,
        Step::Settled
            | Step::Wait(
                WaitingOn::Window { .. }
                    | WaitingOn::Players { .. }
                    | WaitingOn::Held { .. }
                    | WaitingOn::BelowFloor { .. }
                    | WaitingOn::NoImage
                    // The wait may last for days, and a stop cancels a backup.
                    | WaitingOn::Eviction
            )
    );
    // No server could open a backup of worlds whose conversion to another layout did not finish.
    let is_left = matches!(step, Step::Wait(why) if why.is_about_the_way_back()) && seen.world.whole;
    let is_up = seen.pod.is_some_and(|pod| pod.life == PodPhase::Up)
        && report.is_some_and(|report| matches!(report.server, Server::Up { .. }));
    (rests || is_left) && is_up && !is_under_way(goal, seen, gate)
}

/// The request in the annotation, as written and as parsed. `None` if it was handled.
fn written(server: &PaperMCServer, before: &PaperMCServerStatus) -> Option<(String, Option<BackupRequest>)> {
    let value = cut(server.annotations().get(BACKUP_NOW)?.trim(), 253);
    let handled = before.last_handled.as_ref();
    if value.is_empty() || handled.and_then(|handled| handled.backup_now.as_ref()) == Some(&value) {
        return None;
    }
    let accepted = handled.and_then(|handled| handled.backup_now_accepted.as_ref()) == Some(&value);
    let at = value.parse().ok().and_then(|second| Timestamp::from_second(second).ok());
    Some((value, at.map(|at| BackupRequest { at, accepted })))
}

/// When the newest good backup with these contents was started.
fn newest(backups: &BackupsSeen, contents: Contents) -> Option<Timestamp> {
    let holds = |copy: Contents| {
        (copy.has_worlds() || !contents.has_worlds()) && (copy.has_server_files() || !contents.has_server_files())
    };
    let known = [&backups.last, &backups.last_of_worlds].into_iter().flatten();
    known.filter(|copy| holds(copy.contents)).map(|copy| copy.started_at).max()
}

/// Whether no player can have joined since the newest good backup, it has these contents, and there was no restore since. Players who are
/// online now have left no trace yet.
fn is_unplayed(report: &AgentReport, contents: Contents) -> bool {
    report.backups.as_ref().is_some_and(|backups| {
        let last = backups.last.as_ref().map(|copy| copy.started_at);
        let restored = backups.restored.as_ref().map(|restored| restored.at);
        last.is_some() && last == newest(backups, contents) && backups.unplayed_since_last && restored <= last
    }) && report.players == PlayersSeen::Nobody
}

/// Whether the agent of this pod may write to the backup repository.
fn writes_copies(pod: &Pod) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let mut mounts = containers
        .filter(|container| container.name == AGENT_CONTAINER)
        .flat_map(|container| container.volume_mounts.iter().flatten());
    mounts.any(|mount| mount.name == BACKUP_VOLUME && mount.read_only != Some(true))
}

#[cfg(test)]
pub(crate) mod tests;
