//! Pure. Handles a user's restore request (`nightshift.dev/restore-from`): the selected backup, whether it may be restored, and the result.
//!
//! A request is handled in steps: observed, backup selected, finished. Each step is recorded in the status before the next. `latest`
//! therefore keeps its meaning, and another operator can continue at any point. The agent records on the volume which request it has
//! carried out.

use crds::annotations::RESTORE_FROM;
use crds::paper_mc_server::{RestoreHandled, RestoreResult};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use scheduler::maintenance::Gate;
use scheduler::observation::{Disruption, RestartDue};
use scheduler::protocol::restore::{AskedRestore, LATEST, NOBODY};

use super::approval::whole_second;
use super::backups::copies;
use super::check::CheckedServer;
use super::observe::{Observed, server_of};
use crate::error_chain::cut;
use select::{NoBackupReason, OVERWRITE, RestoreQuery, choose, read};

mod select;
pub(crate) mod write_request;

pub(crate) use select::newest;

/// How long a restore request to the init container is valid after the user's request was first observed. The server is stopped within 30
/// minutes of that. The remaining time is enough for an image pull or a node's recovery. A request that is not carried out by then must not
/// take effect weeks later.
const ORDER_COUNTS: SignedDuration = SignedDuration::from_hours(2);

/// How long after the end of its countdown an announced roll-back may still be decided: enough for a save and a pass.
const TOLD_COUNTS: SignedDuration = SignedDuration::from_mins(10);

/// The restore request of one server at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RestoreRequests {
    /// The record for the status. `None` if there is no request.
    pub(crate) noted: Option<RestoreHandled>,
    /// Set if the restore may be carried out.
    pub(crate) due: Option<PendingRestore>,
    /// Whether the restore may be combined with the roll-back of a failed revision, or with the start of a pod that cannot open the worlds.
    /// It may not if it is unknown whether the restore was carried out already. The roll-back then inspects the worlds itself, and the
    /// user's request does not replace that.
    pub(crate) goes_with_the_way_back: bool,
    /// Protects the backup from being pruned until the restore request is written. An update before that may take another backup.
    pub(crate) keeps: Option<AskedRestore>,
}

/// A restart, and the restore request that is written before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingRestore {
    pub(crate) restart: RestartDue,
    pub(crate) order: AskedRestore,
}

impl RestoreRequests {
    /// Evaluates the request of this server.
    pub(crate) fn of(
        server: &PaperMCServer,
        checked: &CheckedServer,
        seen: &Observed,
        before: &PaperMCServerStatus,
        now: Timestamp,
    ) -> Self {
        let restores = Self::of_request(server, checked, seen, before, now);
        let noted = restores.noted.as_ref().filter(|noted| noted.result.is_none() && checked.backup.is_some());
        Self { keeps: noted.and_then(keeping), ..restores }
    }

    fn of_request(
        server: &PaperMCServer,
        checked: &CheckedServer,
        seen: &Observed,
        before: &PaperMCServerStatus,
        now: Timestamp,
    ) -> Self {
        let Some(asked) = written(server) else { return Self::default() };
        let known = before.last_handled.as_ref().and_then(|handled| handled.restore_from.as_ref());
        let Some(known) = known.filter(|known| known.asked == asked) else {
            let seen_at = whole_second(now);
            let noted = RestoreHandled { asked, seen_at, copy: None, result: None, message: None };
            return Self { noted: Some(noted), ..Self::default() };
        };
        let over = |result, message: Option<String>| {
            let message = message.map(|message| cut(&message, 1_024));
            let noted = RestoreHandled { result: Some(result), message, ..known.clone() };
            Self { noted: Some(noted), ..Self::default() }
        };
        let waits = || Self { noted: Some(known.clone()), ..Self::default() };
        if known.result.is_some() {
            return waits();
        }
        match outcome(seen, known) {
            Some(Ok(())) => return over(RestoreResult::Restored, None),
            Some(Err(why)) => return over(RestoreResult::Failed, Some(why)),
            None if is_begun(seen, known) => return waits(),
            None => {}
        }
        let until = match checked.windows.by_hand(known.seen_at, true, now) {
            Some(Gate::Open { opened_at: _, until }) => until,
            Some(Gate::NoNewStarts { .. } | Gate::Shut { .. }) | None => match told_until(checked, seen, now) {
                Some(until) => until,
                None => return over(RestoreResult::Refused, Some(too_late(checked, now))),
            },
        };
        let Some(copy) = &known.copy else {
            return match choose(&asked, checked, seen) {
                Ok(copy) => {
                    Self { noted: Some(RestoreHandled { copy: Some(copy), ..known.clone() }), ..Self::default() }
                }
                Err(NoBackupReason::Refused(why)) => over(RestoreResult::Refused, Some(why)),
                Err(NoBackupReason::NotYet) => waits(),
            };
        };
        let read = read(&asked);
        let due = seen.settled_lock.as_ref().map(|settled| PendingRestore {
            restart: RestartDue {
                due: known.seen_at,
                until,
                policy: checked.policy,
                only_empty: false,
                gives_way_until: known.seen_at,
            },
            order: AskedRestore {
                request: request_of(known),
                to: settled.files.lock.clone(),
                copy: copy.clone(),
                overwrite: read.as_ref().is_ok_and(|asked| asked.overwrite),
                everything: read.as_ref().is_ok_and(|asked| asked.everything),
                not_after: known.seen_at + ORDER_COUNTS,
            },
        });
        let is_known = seen.report.is_some() || seen.world_refused().is_some();
        let goes_with_the_way_back = due.is_some() && is_known;
        Self { noted: Some(known.clone()), goes_with_the_way_back, due, keeps: None }
    }

    /// Whether settings, plugins and their data are restored with the worlds.
    pub(crate) fn brings_everything(&self) -> bool {
        self.due.as_ref().is_some_and(|due| due.order.everything)
    }

    /// The restart that is due. A restart for a restore replaces a scheduled one.
    pub(crate) fn restart(&self, by_the_clock: Option<RestartDue>) -> Option<RestartDue> {
        self.due.as_ref().map(|due| due.restart).or(by_the_clock)
    }

    /// Whether a request is pending or in progress.
    pub(crate) fn is_open(&self) -> bool {
        self.noted.as_ref().is_some_and(|noted| noted.result.is_none())
    }

    /// Whether the written restore request is void, because the user's request is finished, was removed or was replaced.
    pub(crate) fn ends_order(&self, before: Option<&RestoreHandled>) -> bool {
        let goes_on = |before: &RestoreHandled| {
            self.noted
                .as_ref()
                .is_some_and(|now| now.result.is_none() && (&now.asked, now.seen_at) == (&before.asked, before.seen_at))
        };
        before.is_some_and(|before| before.result.is_none() && copy_of(before).is_some() && !goes_on(before))
    }

    /// For the condition: whether the request is pending, the reason, and the message. `None` if there is nothing to report.
    pub(crate) fn in_words(&self) -> Option<(bool, &'static str, String)> {
        let noted = self.noted.as_ref()?;
        let message = noted.message.clone().unwrap_or_default();
        Some(match (noted.result, &noted.copy) {
            (Some(RestoreResult::Restored), _) => return None,
            (Some(RestoreResult::Refused), _) => (false, "Refused", message),
            (Some(RestoreResult::Failed), _) => (false, "Failed", message),
            (None, Some(copy)) => {
                let what = match read(&noted.asked) {
                    Ok(RestoreQuery { everything: true, .. }) => {
                        format!("all that the copy {copy} holds is put in place")
                    }
                    Ok(RestoreQuery { .. }) | Err(_) => format!("the worlds of the copy {copy} are put in place"),
                };
                (true, "Waiting", format!("{what} as soon as nothing else is under way"))
            }
            (None, None) => {
                let text = "the copies are looked at when the agent of its pod answers".to_owned();
                (true, "Waiting", text)
            }
        })
    }
}

/// The command that requests a restore of the worlds of this backup.
pub(crate) fn command(server: &CheckedServer, copy: &str) -> String {
    let CheckedServer { name, namespace, .. } = server;
    let asked = format!("{RESTORE_FROM}=\"{copy};{OVERWRITE}\"");
    format!("kubectl -n {namespace} annotate papermcserver {name} --overwrite {asked}")
}

/// The request as it is stored in the status.
fn written(server: &PaperMCServer) -> Option<String> {
    let asked = server.annotations().get(RESTORE_FROM)?.trim();
    (!asked.is_empty()).then(|| cut(asked, 253))
}

/// The name of the request for the agent.
fn request_of(known: &RestoreHandled) -> String {
    format!("asked-{}", known.seen_at.as_second())
}

/// The requested backup, even if its existence could not be checked yet. `None` if the newest one is requested and not selected yet.
fn copy_of(known: &RestoreHandled) -> Option<String> {
    let written = || read(&known.asked).ok().map(|asked| asked.copy).filter(|copy| *copy != LATEST).map(str::to_owned);
    known.copy.clone().or_else(written)
}

/// The restore request that only protects the backup and is addressed to no pod.
fn keeping(known: &RestoreHandled) -> Option<AskedRestore> {
    Some(AskedRestore {
        request: request_of(known),
        to: NOBODY.to_owned(),
        copy: copy_of(known)?,
        overwrite: false,
        everything: false,
        not_after: known.seen_at + ORDER_COUNTS,
    })
}

/// The result according to the agent, even if it is reported by a later pod.
fn outcome(seen: &Observed, known: &RestoreHandled) -> Option<Result<(), String>> {
    let request = request_of(known);
    let not_obeyed = seen.world_refused().and_then(|said| said.not_obeyed).filter(|(of, _)| *of == request);
    if let Some((_, why)) = not_obeyed {
        return Some(Err(format!("{why}; the worlds are as they were, and what settled cannot open them")));
    }
    let backups = copies(seen)?;
    if backups.restored.as_ref().and_then(|restored| restored.request.as_ref()) == Some(&request) {
        return Some(Ok(()));
    }
    if let Some(refused) = backups.restore_refused.as_ref().filter(|refused| refused.request == request) {
        return Some(Err(format!("{}; all is as it was", refused.why)));
    }
    // The init container has finished when the sidecar answers. Until the controller acts, the old pod still answers.
    let another = seen.facts.restarted.is_some_and(|it| it.due == known.seen_at && seen.pod_uid() != Some(it.pod));
    let silent = "the server was restarted, and its agent says neither that the worlds were put in place nor why not: see the log of \
                  container `prepare`";
    another.then(|| Err(silent.to_owned()))
}

/// Whether the server is being stopped for the restore, or is starting after it.
fn is_begun(seen: &Observed, known: &RestoreHandled) -> bool {
    let stops = seen.pod.as_ref().is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
    let is_recorded = seen.facts.restarted.filter(|it| it.due == known.seen_at);
    is_recorded.is_some_and(|it| stops || seen.pod_uid() != Some(it.pod)) || is_left_to_init(seen, known)
}

/// Whether the restore request is written and an init container will carry it out, or retries by itself. Either the roll-back is written,
/// or the pod has the stable files. A server that is up has not been stopped for it.
fn is_left_to_init(seen: &Observed, known: &RestoreHandled) -> bool {
    let stands = |order: &AskedRestore| order.request == request_of(known) && order.to != NOBODY;
    let stands = seen.orders.asked.as_ref().is_some_and(stands);
    let of_settled = seen.runs_settled_files();
    let is_up = seen.pod.as_ref().and_then(server_of).is_some_and(|server| server.started == Some(true));
    stands && (seen.settled_stands() || of_settled) && !(of_settled && is_up)
}

/// How long an announced roll-back remains valid for players. A blackout ends it.
fn told_until(server: &CheckedServer, seen: &Observed, now: Timestamp) -> Option<Timestamp> {
    let act = Disruption::RollBack { failed: seen.pod_revision? };
    let told = seen.facts.announced.filter(|told| told.act == act && Some(told.pod) == seen.pod_uid())?;
    let until = told.ends + TOLD_COUNTS;
    (now < until && server.windows.blackout_at(now).is_none()).then_some(until)
}

fn too_late(server: &CheckedServer, now: Timestamp) -> String {
    match server.windows.blackout_at(now) {
        Some((blackout, until)) => {
            format!(
                "`{RESTORE_FROM}` does not pass blackout `{}`, which is on until {until}: write it again then",
                blackout.name()
            )
        }
        None => format!(
            "`{RESTORE_FROM}` could not be served within 30 minutes: something else was under way, nobody could be asked, or a blackout came \
             between. Take it away and write it again"
        ),
    }
}

#[cfg(test)]
pub(crate) mod tests;
