//! Pure. Handles a user's restore request (`nightshift.dev/restore-from`): the selected backup, whether it may be restored, and the result.
//!
//! A request is handled in steps: observed, backup selected, finished. Each step is recorded in the status before the next. `latest`
//! therefore keeps its meaning, and another operator can continue at any point. The agent records on the volume which request it has
//! carried out.

use agent_api::restore::{LATEST, NO_SET, RequestedRestore};
use crds::annotations::RESTORE_FROM;
use crds::paper_mc_server::{RestoreHandled, RestoreResult};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use scheduler::maintenance::Gate;
use scheduler::observation::{Disruption, RestartDue};

use super::backups::current_backups;
use super::observe::{Observed, server_status};
use crate::clock::truncate_to_second;
use crate::error_chain::cut;
use select::{NoBackupReason, OVERWRITE, RestoreQuery, choose_backup, parse_query};
use validate::CheckedServer;

mod select;
pub(crate) mod write_request;

pub(crate) use select::newest_backup;

/// How long a restore request to the init container is valid after the user's request was first observed. The server is stopped within 30
/// minutes of that. The remaining time is enough for an image pull or a node's recovery. A request that is not carried out by then must not
/// take effect weeks later.
const REQUEST_VALID_FOR: SignedDuration = SignedDuration::from_hours(2);

/// How long after the end of its countdown an announced roll-back may still be decided: enough for a save and a pass.
const ANNOUNCEMENT_VALID_FOR: SignedDuration = SignedDuration::from_mins(10);

/// The restore request of one server at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RestoreRequests {
    /// The record for the status. `None` if there is no request.
    pub(crate) record: Option<RestoreHandled>,
    /// Set if the restore may be carried out.
    pub(crate) due: Option<PendingRestore>,
    /// Whether the restore may be combined with the roll-back of a failed revision, or with the start of a pod that cannot open the worlds.
    /// It may not if it is unknown whether the restore was carried out already. The roll-back then inspects the worlds itself, and the
    /// user's request does not replace that.
    pub(crate) can_join_rollback: bool,
    /// Protects the backup from being pruned until the restore request is written. An update before that may take another backup.
    pub(crate) protected: Option<RequestedRestore>,
}

/// A restart, and the restore request that is written before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingRestore {
    pub(crate) restart: RestartDue,
    pub(crate) request: RequestedRestore,
}

impl RestoreRequests {
    /// Evaluates the request of this server.
    pub(crate) fn new(
        server: &PaperMCServer,
        checked: &CheckedServer,
        observed: &Observed,
        before: &PaperMCServerStatus,
        now: Timestamp,
    ) -> Self {
        let restores = Self::evaluate(server, checked, observed, before, now);
        let record = restores.record.as_ref().filter(|record| record.result.is_none() && checked.data.backup.is_some());
        Self { protected: record.and_then(protecting_request), ..restores }
    }

    fn evaluate(
        server: &PaperMCServer,
        checked: &CheckedServer,
        observed: &Observed,
        before: &PaperMCServerStatus,
        now: Timestamp,
    ) -> Self {
        let Some(requested) = written_request(server) else { return Self::default() };
        let previous = before.last_handled.as_ref().and_then(|handled| handled.restore_from.as_ref());
        let Some(previous) = previous.filter(|previous| previous.asked == requested) else {
            let seen_at = truncate_to_second(now);
            let record = RestoreHandled { asked: requested, seen_at, backup: None, result: None, message: None };
            return Self { record: Some(record), ..Self::default() };
        };
        let over = |result, message: Option<String>| {
            let message = message.map(|message| cut(&message, 1_024));
            let record = RestoreHandled { result: Some(result), message, ..previous.clone() };
            Self { record: Some(record), ..Self::default() }
        };
        let waits = || Self { record: Some(previous.clone()), ..Self::default() };
        if previous.result.is_some() {
            return waits();
        }
        match outcome(observed, previous) {
            Some(Ok(())) => return over(RestoreResult::Restored, None),
            Some(Err(why)) => return over(RestoreResult::Failed, Some(why)),
            None if has_begun(observed, previous) => return waits(),
            None => {}
        }
        let until = match checked.updates.windows.on_request(previous.seen_at, true, now) {
            Some(Gate::Open { opened_at: _, until }) => Some(until),
            Some(Gate::NoNewStarts { .. } | Gate::Shut { .. }) | None => announced_until(checked, observed, now),
        };
        let Some(until) = until else {
            return over(RestoreResult::Refused, Some(too_late_message(checked, now)));
        };
        let Some(backup) = &previous.backup else {
            return match choose_backup(&requested, checked, observed) {
                Ok(backup) => Self {
                    record: Some(RestoreHandled { backup: Some(backup), ..previous.clone() }),
                    ..Self::default()
                },
                Err(NoBackupReason::Refused(why)) => over(RestoreResult::Refused, Some(why)),
                Err(NoBackupReason::NotReady) => waits(),
            };
        };
        let due = pending_restore(checked, observed, (previous, backup), until);
        let is_state_known = observed.reply.report.is_some() || observed.world_refused().is_some();
        let can_join_rollback = due.is_some() && is_state_known;
        Self { record: Some(previous.clone()), can_join_rollback, due, protected: None }
    }

    /// Whether settings, plugins and their data are restored with the worlds.
    pub(crate) fn restores_everything(&self) -> bool {
        self.due.as_ref().is_some_and(|due| due.request.everything)
    }

    /// The restart that is due. A restart for a restore replaces a scheduled one.
    pub(crate) fn restart(&self, scheduled: Option<RestartDue>) -> Option<RestartDue> {
        self.due.as_ref().map(|due| due.restart).or(scheduled)
    }

    /// Whether a request is pending or in progress.
    pub(crate) fn is_open(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.result.is_none())
    }

    /// Whether the written restore request is void, because the user's request is finished, was removed or was replaced.
    pub(crate) fn ends_request(&self, before: Option<&RestoreHandled>) -> bool {
        let continues = |before: &RestoreHandled| {
            self.record
                .as_ref()
                .is_some_and(|now| now.result.is_none() && (&now.asked, now.seen_at) == (&before.asked, before.seen_at))
        };
        before.is_some_and(|before| before.result.is_none() && requested_backup(before).is_some() && !continues(before))
    }

    /// For the condition: whether the request is pending, the reason, and the message. `None` if there is nothing to report.
    pub(crate) fn condition_parts(&self) -> Option<(bool, &'static str, String)> {
        let record = self.record.as_ref()?;
        let message = record.message.clone().unwrap_or_default();
        Some(match (record.result, &record.backup) {
            (Some(RestoreResult::Restored), _) => return None,
            (Some(RestoreResult::Refused), _) => (false, "Refused", message),
            (Some(RestoreResult::Failed), _) => (false, "Failed", message),
            (None, Some(backup)) => {
                let effect = match parse_query(&record.asked) {
                    Ok(RestoreQuery { everything: true, .. }) => {
                        format!("All contents of the backup {backup} are restored")
                    }
                    Ok(RestoreQuery { .. }) | Err(_) => format!("The worlds of the backup {backup} are restored"),
                };
                (true, "Waiting", format!("{effect} as soon as no other change is in progress."))
            }
            (None, None) => {
                let text = "The backups are checked when the agent of the pod answers.".to_owned();
                (true, "Waiting", text)
            }
        })
    }
}

/// The command that requests a restore of the worlds of this backup.
pub(crate) fn restore_command(server: &CheckedServer, backup: &str) -> String {
    let CheckedServer { name, namespace, .. } = server;
    let annotation = format!("{RESTORE_FROM}=\"{backup};{OVERWRITE}\"");
    format!("kubectl -n {namespace} annotate papermcserver {name} --overwrite {annotation}")
}

/// The request as it is stored in the status.
fn written_request(server: &PaperMCServer) -> Option<String> {
    let requested = server.annotations().get(RESTORE_FROM)?.trim();
    (!requested.is_empty()).then(|| cut(requested, 253))
}

/// The name of the request for the agent.
fn request_name(previous: &RestoreHandled) -> String {
    format!("asked-{}", previous.seen_at.as_second())
}

/// The requested backup, even if its existence could not be checked yet. `None` if the newest one is requested and not selected yet.
fn requested_backup(previous: &RestoreHandled) -> Option<String> {
    let written = || {
        parse_query(&previous.asked)
            .ok()
            .map(|query| query.backup)
            .filter(|backup| *backup != LATEST)
            .map(str::to_owned)
    };
    previous.backup.clone().or_else(written)
}

/// The restore request that only protects the backup and is addressed to no pod.
fn protecting_request(previous: &RestoreHandled) -> Option<RequestedRestore> {
    Some(RequestedRestore {
        request: request_name(previous),
        to: NO_SET.to_owned(),
        backup: requested_backup(previous)?,
        overwrite: false,
        everything: false,
        not_after: previous.seen_at + REQUEST_VALID_FOR,
    })
}

/// The result according to the agent, even if it is reported by a later pod.
fn outcome(observed: &Observed, previous: &RestoreHandled) -> Option<Result<(), String>> {
    let request = request_name(previous);
    let not_obeyed =
        observed.world_refused().and_then(|refusal| refusal.refused_request).filter(|(of, _)| *of == request);
    if let Some((_, why)) = not_obeyed {
        return Some(Err(format!("{why}. The worlds are unchanged, and the stable version set cannot open them")));
    }
    let backups = current_backups(observed)?;
    if backups.restored.as_ref().and_then(|restored| restored.request.as_ref()) == Some(&request) {
        return Some(Ok(()));
    }
    if let Some(refused) = backups.restore_refused.as_ref().filter(|refused| refused.request == request) {
        return Some(Err(format!("{}. No files were changed", refused.why)));
    }
    // The init container has finished when the sidecar answers. Until the controller acts, the old pod still answers.
    let another = observed
        .facts
        .restarted
        .is_some_and(|restarted| restarted.due == previous.seen_at && observed.pod_uid() != Some(restarted.pod));
    let silent = "the server was restarted, but its agent reports neither that the worlds were restored nor why not: \
    see the log of container `prepare`";
    another.then(|| Err(silent.to_owned()))
}

/// Whether the server is being stopped for the restore, or is starting after it.
fn has_begun(observed: &Observed, previous: &RestoreHandled) -> bool {
    let stops = observed.pod.as_ref().is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
    let is_recorded = observed.facts.restarted.filter(|restarted| restarted.due == previous.seen_at);
    is_recorded.is_some_and(|restarted| stops || observed.pod_uid() != Some(restarted.pod))
        || is_handled_by_init(observed, previous)
}

/// Whether the restore request is written and an init container will carry it out, or retries by itself. Either the roll-back is written,
/// or the pod has the stable files. A server that is up has not been stopped for it.
fn is_handled_by_init(observed: &Observed, previous: &RestoreHandled) -> bool {
    let is_addressed = |request: &RequestedRestore| request.request == request_name(previous) && request.to != NO_SET;
    let is_written = observed.init_requests.on_request.as_ref().is_some_and(is_addressed);
    let runs_stable_files = observed.runs_stable_files();
    let is_up = observed.pod.as_ref().and_then(server_status).is_some_and(|server| server.started == Some(true));
    is_written && (observed.has_stable_template() || runs_stable_files) && !(runs_stable_files && is_up)
}

/// How long an announced roll-back remains valid for players. A blackout ends it.
fn announced_until(server: &CheckedServer, observed: &Observed, now: Timestamp) -> Option<Timestamp> {
    let disruption = Disruption::RollBack { failed: observed.pod_revision? };
    let announced = observed
        .facts
        .announced
        .filter(|announced| announced.act == disruption && Some(announced.pod) == observed.pod_uid())?;
    let until = announced.ends + ANNOUNCEMENT_VALID_FOR;
    (now < until && server.updates.windows.blackout_at(now).is_none()).then_some(until)
}

/// The restart for the restore of this backup, which may begin until `until`. `None` before any set is stable.
fn pending_restore(
    checked: &CheckedServer,
    observed: &Observed,
    (record, backup): (&RestoreHandled, &str),
    until: Timestamp,
) -> Option<PendingRestore> {
    let stable = observed.stable_lock.as_ref()?;
    let query = parse_query(&record.asked);
    Some(PendingRestore {
        restart: RestartDue {
            due: record.seen_at,
            until,
            policy: checked.players.policy,
            only_empty: false,
            yields_until: record.seen_at,
        },
        request: RequestedRestore {
            request: request_name(record),
            to: stable.files.lock.clone(),
            backup: backup.to_owned(),
            overwrite: query.as_ref().is_ok_and(|query| query.overwrite),
            everything: query.as_ref().is_ok_and(|query| query.everything),
            not_after: record.seen_at + REQUEST_VALID_FOR,
        },
    })
}

fn too_late_message(server: &CheckedServer, now: Timestamp) -> String {
    match server.updates.windows.blackout_at(now) {
        Some((blackout, until)) => {
            format!(
                "`{RESTORE_FROM}` is refused, because blackout `{}` lasts until {until}: repeat the request then",
                blackout.name()
            )
        }
        None => format!(
            "`{RESTORE_FROM}` could not be served within 30 minutes, because of another change, an unreachable agent \
            or a blackout. Remove it and write it again"
        ),
    }
}

/// The command with which a user replaces the worlds by a backup.
pub(crate) fn replace_worlds_hint(checked: &CheckedServer, backup: &str) -> String {
    format!(
        "To replace the worlds by the backup `{backup}`, and lose all progress since then, run `{}`",
        restore_command(checked, backup)
    )
}

#[cfg(test)]
pub(crate) mod tests;
