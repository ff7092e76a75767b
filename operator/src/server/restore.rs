//! Pure. The worlds of a copy by a person's word (`nightshift.dev/restore-from`): which copy is meant, whether it may be put in place, and
//! what came of it.
//!
//! A request is taken in steps, each of which stands in the status before the next: first seen, copy chosen, over. So `latest` stays the copy
//! that it was, and whoever dies in between goes on where it stood. The agent remembers on the volume which request it carried out.

use crds::approval::RESTORE_FROM;
use crds::paper_mc_server::{RestoreHandled, RestoreResult};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use scheduler::backup::Contents;
use scheduler::gate::Gate;
use scheduler::protocol::restore::{AskedRestore, LATEST, ListedCopy};
use scheduler::protocol::{BackupsSeen, FileSet, Report};
use scheduler::seen::Restart;

use super::check::{CheckedServer, is_copy};
use super::consent::whole_second;
use super::copies::copies;
use super::observe::Observed;
use crate::chain::cut;

pub(crate) mod act;

/// How long an order counts from when its request was first seen. The server is stopped within 30 minutes of that; an image is pulled and
/// a node comes back in what is left. What nobody has obeyed by then would be found weeks later.
const ORDER_COUNTS: SignedDuration = SignedDuration::from_hours(2);

/// The word without which worlds that are there stay there.
const OVERWRITE: &str = "overwrite";
/// The words for settings, plugins and their data too.
const EVERYTHING: &str = "contents=Everything";
/// How many copies are named to who asked for one that is not there.
const NAMED: usize = 5;

/// The request of one server, as of one instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Restores {
    /// What the status has to say of it. None: nobody asks for anything.
    pub(crate) noted: Option<RestoreHandled>,
    /// It may be carried out.
    pub(crate) due: Option<DueRestore>,
}

/// A restart, and the order that is given before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DueRestore {
    pub(crate) restart: Restart,
    pub(crate) order: AskedRestore,
}

/// Why nothing comes of a request now.
#[derive(Debug, PartialEq, Eq)]
enum No {
    /// Somebody has to be asked first.
    NotYet,
    /// For good, in words.
    Refused(String),
}

impl Restores {
    /// Of this server.
    pub(crate) fn of(
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
            return Self { noted: Some(noted), due: None };
        };
        let over = |result, message: Option<String>| {
            let message = message.map(|message| cut(&message, 1_024));
            Self { noted: Some(RestoreHandled { result: Some(result), message, ..known.clone() }), due: None }
        };
        let waits = || Self { noted: Some(known.clone()), due: None };
        if known.result.is_some() {
            return waits();
        }
        match outcome(seen, known) {
            Some(Ok(())) => return over(RestoreResult::Restored, None),
            Some(Err(why)) => return over(RestoreResult::Failed, Some(why)),
            None if is_begun(seen, known) => return waits(),
            None => {}
        }
        let Some(Gate::Open { opened_at: _, until }) = checked.windows.by_hand(known.seen_at, true, now) else {
            return over(RestoreResult::Refused, Some(too_late(checked, now)));
        };
        let Some(copy) = &known.copy else {
            return match choose(&asked, checked, seen) {
                Ok(copy) => Self { noted: Some(RestoreHandled { copy: Some(copy), ..known.clone() }), due: None },
                Err(No::Refused(why)) => over(RestoreResult::Refused, Some(why)),
                Err(No::NotYet) => waits(),
            };
        };
        let read = read(&asked);
        let due = seen.settled_lock.as_ref().map(|settled| DueRestore {
            restart: Restart { due: known.seen_at, until, policy: checked.policy, only_empty: false },
            order: AskedRestore {
                request: request_of(known),
                to: settled.files.lock.clone(),
                copy: copy.clone(),
                overwrite: read.as_ref().is_ok_and(|asked| asked.overwrite),
                everything: read.as_ref().is_ok_and(|asked| asked.everything),
                not_after: known.seen_at + ORDER_COUNTS,
            },
        });
        Self { noted: Some(known.clone()), due }
    }

    /// What is to be restarted. What is restarted for a person is not restarted by the clock too.
    pub(crate) fn restart(&self, by_the_clock: Option<Restart>) -> Option<Restart> {
        self.due.as_ref().map(|due| due.restart).or(by_the_clock)
    }

    /// The order that was given is void: its request is over, was taken away, or is another one now.
    pub(crate) fn ends_order(&self, before: Option<&RestoreHandled>) -> bool {
        let goes_on = |before: &RestoreHandled| {
            self.noted
                .as_ref()
                .is_some_and(|now| now.result.is_none() && (&now.asked, now.seen_at) == (&before.asked, before.seen_at))
        };
        before.is_some_and(|before| before.result.is_none() && before.copy.is_some() && !goes_on(before))
    }

    /// What stands in the condition: whether it is still to be done, one word, and the words. None: nothing is to be said.
    pub(crate) fn in_words(&self) -> Option<(bool, &'static str, String)> {
        let noted = self.noted.as_ref()?;
        let message = noted.message.clone().unwrap_or_default();
        Some(match (noted.result, &noted.copy) {
            (Some(RestoreResult::Restored), _) => return None,
            (Some(RestoreResult::Refused), _) => (false, "Refused", message),
            (Some(RestoreResult::Failed), _) => (false, "Failed", message),
            (None, Some(copy)) => {
                let what = match read(&noted.asked) {
                    Ok(Asked { everything: true, .. }) => format!("all that the copy {copy} holds is put in place"),
                    Ok(Asked { .. }) | Err(_) => format!("the worlds of the copy {copy} are put in place"),
                };
                (true, "Waiting", format!("{what} as soon as nothing else is under way"))
            }
            (None, None) => {
                let text = "the copies are looked at when the server runs and its agent answers".to_owned();
                (true, "Waiting", text)
            }
        })
    }
}

/// The request as it is kept in the status.
fn written(server: &PaperMCServer) -> Option<String> {
    let asked = server.annotations().get(RESTORE_FROM)?.trim();
    (!asked.is_empty()).then(|| cut(asked, 253))
}

/// Its name, for the agent.
fn request_of(known: &RestoreHandled) -> String {
    format!("asked-{}", known.seen_at.as_second())
}

/// What the agent says that came of it; also when it ran in a pod that the server was given since.
fn outcome(seen: &Observed, known: &RestoreHandled) -> Option<Result<(), String>> {
    let backups = copies(seen)?;
    let request = request_of(known);
    if backups.restored.as_ref().and_then(|restored| restored.request.as_ref()) == Some(&request) {
        return Some(Ok(()));
    }
    if let Some(refused) = backups.restore_refused.as_ref().filter(|refused| refused.request == request) {
        return Some(Err(format!("{}; all is as it was", refused.why)));
    }
    // The init container has ended where the sidecar answers.
    let came_for_it = seen.facts.restarted.is_some_and(|it| it.due == known.seen_at && pod_uid(seen) != Some(it.pod));
    let silent = "the server was restarted, and its agent says neither that the worlds were put in place nor why not: see the log of \
                  container `prepare`";
    came_for_it.then(|| Err(silent.to_owned()))
}

fn pod_uid(seen: &Observed) -> Option<scheduler::seen::PodUid> {
    seen.pod.as_ref()?.uid()?.parse().ok()
}

/// The server is being stopped for it, or comes back.
fn is_begun(seen: &Observed, known: &RestoreHandled) -> bool {
    let stops = seen.pod.as_ref().is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
    seen.facts.restarted.is_some_and(|it| it.due == known.seen_at && (stops || pod_uid(seen) != Some(it.pod)))
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

/// The copy that is asked for, if all that can be known here says that it can be put in place.
fn choose(asked: &str, server: &CheckedServer, seen: &Observed) -> Result<String, No> {
    let refused = |why: String| No::Refused(format!("`{RESTORE_FROM}`: {why}"));
    let Asked { copy, overwrite, everything } = read(asked).map_err(refused)?;
    if server.backup.is_none() {
        return Err(refused("this server has no copies: write `spec.backup` first".to_owned()));
    }
    let (Some(settled), Some(report)) = (&seen.settled_lock, seen.report.as_deref()) else { return Err(No::NotYet) };
    let listed = listed(report, everything).map_err(refused)?;
    if !overwrite {
        let why = format!(
            "the server has worlds. They are set aside, and nobody plays them any more, if you write `{asked};{OVERWRITE}`"
        );
        return Err(refused(why));
    }
    find(copy, everything, listed, &settled.files).map_err(refused)
}

/// The copies there are, if the agent can do with them what is asked for.
fn listed(report: &Report, everything: bool) -> Result<&[ListedCopy], String> {
    match &report.backups {
        Some(BackupsSeen { problem: Some(problem), .. }) => Err(problem.clone()),
        Some(BackupsSeen { listed: Some(listed), puts_back_everything, .. })
            if *puts_back_everything || !everything =>
        {
            Ok(listed)
        }
        Some(_) | None => {
            Err("the pod is from before the copies or the request were known: that comes with its next restart. \
                               Write it again after that"
                .to_owned())
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked<'a> {
    /// A copy's name, or `latest`.
    copy: &'a str,
    /// The explicit word.
    overwrite: bool,
    /// Settings, plugins and their data too.
    everything: bool,
}

/// What is written.
fn read(asked: &str) -> Result<Asked<'_>, String> {
    let (copy, words) = asked.split_once(';').unwrap_or((asked, ""));
    let copy = copy.trim_end();
    let split: Vec<&str> = words.split(';').map(str::trim).collect();
    let (overwrite, everything) = match split.as_slice() {
        [""] if !asked.contains(';') => (false, false),
        [OVERWRITE] => (true, false),
        [EVERYTHING] => (false, true),
        [OVERWRITE, EVERYTHING] | [EVERYTHING, OVERWRITE] => (true, true),
        _ => {
            let way = format!("write `;{OVERWRITE}`, or `;{OVERWRITE};{EVERYTHING}`");
            return Err(format!("`;{words}` behind the copy's name is not known: {way}"));
        }
    };
    if is_copy(copy) {
        return Ok(Asked { copy, overwrite, everything });
    }
    Err(format!("`{copy}` is no copy's name: write `{LATEST}`, or a name such as `20261122T030000Z-1a2b3c4d`"))
}

/// The name of the copy, if it holds what is asked for and the set that runs can open its worlds.
fn find(wanted: &str, everything: bool, listed: &[ListedCopy], runs: &FileSet) -> Result<String, String> {
    let has_worlds = |copy: &&ListedCopy| copy.contents.is_some_and(Contents::has_worlds);
    let has_all = |copy: &&ListedCopy| has_worlds(copy) && copy.contents.is_some_and(Contents::has_server_files);
    let will_do = |copy: &&ListedCopy| if everything { has_all(copy) } else { has_worlds(copy) };
    let what = if everything { "worlds, settings and plugins" } else { "worlds" };
    let found = match wanted {
        LATEST => listed.iter().find(will_do),
        name => listed.iter().find(|copy| copy.id == name),
    };
    let newest = || {
        let names: Vec<_> = listed.iter().filter(will_do).take(NAMED).map(|copy| copy.id.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("the newest ones with {what} are: {names}")
    };
    let Some(found) = found else { return Err(format!("there is no copy `{wanted}`; {}", newest())) };
    let id = &found.id;
    if let Some(problem) = &found.problem {
        return Err(format!("the copy `{id}` cannot be used: {problem}"));
    }
    if !has_worlds(&found) {
        return Err(format!("the copy `{id}` holds no worlds"));
    }
    if !will_do(&found) {
        let way = format!("leave `;{EVERYTHING}` out for its worlds alone");
        return Err(format!("the copy `{id}` holds worlds and nothing else: {way}; {}", newest()));
    }
    if !runs.opens(found.data_version, found.lock.as_deref()) {
        let runs = &runs.minecraft;
        return Err(format!(
            "the copy `{id}` is of a newer Minecraft than {runs}, which runs, and a world cannot go back"
        ));
    }
    Ok(id.clone())
}

#[cfg(test)]
mod tests;
