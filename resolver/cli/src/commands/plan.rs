//! Edge (reads). `resolver plan`: shows which changes are planned on which server, when, and which updates wait.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::diff;
use super::outdated::{self, OutdatedRow};
use crate::answers::exit_status;
use crate::args::{Format, PlanArgs};
use crate::input::from_status::Schedule;
use crate::input::running::RunningSet;
use crate::output::changes;
use crate::output::changes::{RenderedChange, changes};
use crate::output::hotfix_note::HotfixListing;
use crate::output::table::table;
use crate::schedule::partial;
use crate::schedule::partial::{ChosenSet, FullSelection, PartialUpdate};
use crate::schedule::when::RestartTime;
use crate::select_server::select_server;
use crate::session::{InputSource, gather_answers};
use crate::{ExitStatus, Output};
use resolver::explanation::{Explanation, SolvedExplanation};
use resolver::model::catalog::Catalog;
use resolver::model::lock::Lock;
use resolver::model::request::{Request, Running};
use resolver::render::phrases::date;
use resolver::render::{short, text};
use resolver::{Resolution, Unsolvable};
use upstream::format_chain;

/// Planned changes of one server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerPlan {
    /// The server.
    server: String,
    /// Why only partial updates are applied, as a short text for users: no version set meets all requirements, or the
    /// chosen one cannot be applied.
    #[serde(rename = "stopped", skip_serializing_if = "Option::is_none")]
    no_full_update_because: Option<String>,
    /// Whether the server would be restarted, or started for the first time.
    restart: bool,
    /// When the full update is applied.
    when: RestartTime,
    /// The downtime and the duration of the backup before it, as the operator estimated them for its planned update.
    #[serde(skip_serializing_if = "Option::is_none")]
    down: Option<String>,
    /// The image that the server's node could not pull for the planned update, according to the operator. The server is
    /// not restarted for the update before it can be pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    image_problem: Option<String>,
    /// Scheduled restarts without a change: cron, zone, and the next time according to the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_restart: Option<String>,
    /// The changes, Paper first.
    changes: Vec<RenderedChange>,
    /// Partial updates of Plugins with `spec.urgent` or with `spec.windows`. They need no window of the server, and all
    /// other packages keep their versions. The full update, in a window of the server, includes them.
    #[serde(rename = "alone", skip_serializing_if = "Vec::is_empty")]
    partial_updates: Vec<PartialUpdate>,
    /// Plugins of the full version set that run because their list contains the hotfix sibling, changed or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counts_as_listed: Vec<HotfixListing>,
    /// Newer versions that have to wait.
    waits: Vec<PlanWait>,
}

/// A newer version that has to wait.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlanWait {
    /// `Paper`, or the display name of a plugin.
    name: String,
    /// The newest version that exists.
    version: String,
    /// Why it waits, as a short text.
    why: String,
    /// When it was published, if its source contains the date.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

/// Runs `resolver plan`.
pub(crate) fn plan(plan: &PlanArgs, now: Timestamp) -> Result<Output, Output> {
    let failed = |error: String| Output::failure(vec![error]);
    let mut notes = Vec::new();
    let mut source = InputSource::read(&plan.from, &mut notes, now)?;
    let mut locks: BTreeMap<String, Lock> = BTreeMap::new();
    for name in &plan.running {
        let lock = diff::read_lock(name).map_err(|error| failed(format_chain(&error)))?;
        let names = source.checked.servers();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let server = select_server(&names, Some(&lock.server), "")
            .map_err(|_| {
                failed(format!("{name}: the lock is for `{}`, which is not among the servers here", lock.server))
            })?
            .to_owned();
        source.checked.set_running(&server, &Running::from_lock(&lock));
        locks.insert(server, lock);
    }
    let (runs, schedules) = (source.checked.running.clone(), source.checked.schedules.clone());
    let (now, at) = (source.now, source.at);
    let session = gather_answers(&plan.from, source, None, &mut notes)?;
    let mut output = Output { stdout: String::new(), stderr: notes, status: ExitStatus::Solved };
    for (server, result) in &session.answer {
        let runs = runs.get(server).cloned().unwrap_or_default();
        let planned = Planned {
            catalog: &session.catalog,
            requests: &session.requests,
            server,
            runs: &runs,
            lock: locks.get(server),
            schedule: schedules.get(server),
            now,
            at,
        };
        let plan_of_server = match result {
            Ok(resolution) => {
                let Explanation::Solved(solved) = &resolution.explanation else { continue };
                match solved.deploy_blocker() {
                    Some((name, files)) => {
                        output.stderr.push(text::render(&resolution.explanation, at).trim_end().to_owned());
                        output.status = output.status.max(ExitStatus::NoSolution);
                        let changes = changes(solved, resolution, &runs, planned.lock);
                        let chosen = ChosenSet { resolution, solved, changes: &changes };
                        planned.partial_plan(Some(chosen), short::name_conflict(name, files))
                    }
                    None => Some(planned.full_plan(resolution, solved)),
                }
            }
            Err(unsolvable) => {
                let explanation = unsolvable.explanation();
                output.stderr.push(text::render(&explanation, at).trim_end().to_owned());
                output.status = output.status.max(exit_status(unsolvable));
                planned.partial_plan(None, why_no_version_set(unsolvable))
            }
        };
        if let Some(plan_of_server) = plan_of_server {
            add_plan(&mut output, &plan_of_server, plan.format);
        }
    }
    session.add_read_errors(&mut output);
    Ok(output)
}

/// Adds the plan of a server.
fn add_plan(output: &mut Output, plan: &ServerPlan, format: Format) {
    match format {
        Format::Human => {
            if !output.stdout.is_empty() {
                output.stdout.push('\n');
            }
            output.stdout.push_str(&render_text(plan));
        }
        Format::Json => {
            output.stdout.push_str(&serde_json::to_string_pretty(plan).expect("a plan has string keys only"));
            output.stdout.push('\n');
        }
    }
}

/// Why there is no full update when no version set was chosen. The notes contain the full explanation.
fn why_no_version_set(unsolvable: &Unsolvable) -> String {
    match unsolvable {
        Unsolvable::NoSolution(_) => "no version set meets the request".to_owned(),
        Unsolvable::Unanswerable(_) => "some metadata is missing".to_owned(),
        Unsolvable::GaveUp(gave_up) => short::gave_up(gave_up),
    }
}

/// Input of a server's plan, except the chosen version set.
struct Planned<'a> {
    catalog: &'a Catalog,
    requests: &'a [Request],
    server: &'a str,
    runs: &'a RunningSet,
    /// The lock of the running version set, if it is known file by file.
    lock: Option<&'a Lock>,
    schedule: Option<&'a Schedule>,
    /// The current time, or that of the saved query.
    now: Timestamp,
    /// The time to evaluate for.
    at: Timestamp,
}

impl<'a> Planned<'a> {
    fn full_selection(&self, chosen: Option<ChosenSet<'a>>) -> FullSelection<'a> {
        let &Self { catalog, requests, server, runs, lock, .. } = self;
        FullSelection { catalog, requests, server, chosen, runs, lock }
    }

    /// The plan of a full update.
    fn full_plan(&self, resolution: &Resolution, solved: &SolvedExplanation) -> ServerPlan {
        let &Self { catalog, requests, server, runs, lock, schedule, now, at } = self;
        let mut changes = changes(solved, resolution, runs, lock);
        for change in changes.iter_mut().filter(|change| change.one_way) {
            change.no_backup = schedule.is_some_and(|schedule| schedule.no_backup);
        }
        let is_new = runs.paper.is_none()
            && requests.iter().any(|request| request.server == *server && request.running.is_none());
        let when = RestartTime::full_update((is_new, changes.is_empty()), schedule, now, at);
        let is_one_way = changes.iter().any(|change| change.one_way);
        let when = if is_one_way { when.restricted_to_windows() } else { when };
        let chosen = ChosenSet { resolution, solved, changes: &changes };
        let (when, partial_updates) =
            partial::split_partial(&self.full_selection(Some(chosen)), schedule, when, now, at);
        ServerPlan {
            server: server.to_owned(),
            no_full_update_because: None,
            restart: !changes.is_empty(),
            when,
            partial_updates,
            down: schedule.and_then(|schedule| downtime(schedule, &changes, is_one_way)),
            image_problem: schedule.and_then(|schedule| schedule.for_full_update().image_problem),
            scheduled_restart: schedule.and_then(|schedule| schedule.scheduled_restart.clone()),
            changes,
            counts_as_listed: HotfixListing::from_solved(solved),
            waits: outdated::report(catalog, solved, runs, at).behind.into_iter().filter_map(wait).collect(),
        }
    }

    /// The plan of partial updates where no full update is applied. `None` when there are none.
    fn partial_plan(&self, chosen: Option<ChosenSet<'_>>, no_full_update_because: String) -> Option<ServerPlan> {
        let partial_updates = partial::partial_only(&self.full_selection(chosen), self.schedule, self.now, self.at);
        (!partial_updates.is_empty()).then(|| ServerPlan {
            server: self.server.to_owned(),
            no_full_update_because: Some(no_full_update_because),
            restart: true,
            when: RestartTime::Never,
            down: None,
            image_problem: None,
            scheduled_restart: self.schedule.and_then(|schedule| schedule.scheduled_restart.clone()),
            changes: Vec::new(),
            partial_updates,
            counts_as_listed: Vec::new(),
            waits: Vec::new(),
        })
    }
}

/// The operator's estimate applies to this plan if both contain a newer Minecraft, or neither does, because the backup
/// and a longer start depend on that. Its estimate of a partial update does not apply.
fn downtime(schedule: &Schedule, changes: &[RenderedChange], is_one_way: bool) -> Option<String> {
    let (estimate, estimate_is_one_way) = schedule.down.as_ref()?;
    let applies = !changes.is_empty() && schedule.planned_partial.is_none() && *estimate_is_one_way == is_one_way;
    applies.then(|| estimate.clone())
}

fn wait(row: OutdatedRow) -> Option<PlanWait> {
    let OutdatedRow { name, runs: _, would_run: _, newest, why_not, since } = row;
    Some(PlanWait { name, version: newest, why: why_not?, since })
}

fn render_text(plan: &ServerPlan) -> String {
    let ServerPlan {
        server,
        no_full_update_because,
        restart: _,
        when,
        down,
        image_problem,
        scheduled_restart,
        changes,
        partial_updates,
        counts_as_listed,
        waits,
    } = plan;
    let head = match when {
        RestartTime::Never if no_full_update_because.is_some() => "only partial updates are applied".to_owned(),
        RestartTime::Never if scheduled_restart.is_some() => "nothing changes".to_owned(),
        RestartTime::Never => "nothing changes, and it is not restarted".to_owned(),
        RestartTime::FirstStart => "starts for the first time, at once".to_owned(),
        RestartTime::Held { .. } => format!("resumes {}", when.phrase()),
        RestartTime::Open
        | RestartTime::Urgent { .. }
        | RestartTime::Window { .. }
        | RestartTime::Windows { .. }
        | RestartTime::OwnWindows { .. }
        | RestartTime::Manual
        | RestartTime::Approval { .. }
        | RestartTime::Followed { .. }
        | RestartTime::Suspended => format!("is restarted {}", when.phrase()),
    };
    let how = if when.is_opportunistic() { "on schedule, with these changes" } else { "on schedule" };
    let clock = scheduled_restart.as_ref().map(|clock| format!(", and it is restarted {how}: {clock}"));
    let down = down.as_ref().map(|down| format!(", down for {down}")).unwrap_or_default();
    let mut text = format!("{server}: {head}{down}{}\n", clock.unwrap_or_default());
    if let Some(why) = no_full_update_because {
        text.extend(["  no other update: ", why, "\n"]);
    }
    let rows: Vec<Vec<String>> =
        changes.iter().map(|change| vec![change.name.clone(), changes::phrase(change)]).collect();
    text.push_str(&table("  ", &rows));
    if let Some(problem) = image_problem {
        text.extend(["  waits for an image: ", problem, "\n"]);
    }
    if !partial_updates.is_empty() {
        text.push_str("  partial updates\n");
        let rows: Vec<Vec<String>> = partial_updates.iter().map(PartialUpdate::row).collect();
        text.push_str(&table("    ", &rows));
    }
    // The full version set usually contains the partial updates too, so the set removes duplicates.
    let listings: BTreeSet<&HotfixListing> =
        counts_as_listed.iter().chain(partial_updates.iter().flat_map(|partial| &partial.counts_as_listed)).collect();
    if !listings.is_empty() {
        text.push_str("  counts as listed\n");
        let rows: Vec<Vec<String>> = listings.into_iter().map(HotfixListing::row).collect();
        text.push_str(&table("    ", &rows));
    }
    if !waits.is_empty() {
        text.push_str("  waits\n");
        let row = |PlanWait { name, version, why, since }: &PlanWait| {
            let since = since.map(|since| format!("out since {}", date(since))).unwrap_or_default();
            vec![format!("{name} {version}"), why.clone(), since]
        };
        let rows: Vec<Vec<String>> = waits.iter().map(row).collect();
        text.push_str(&table("    ", &rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::when::BlockedReason;

    #[test]
    fn plan_reports_image_that_node_cannot_pull() {
        let plan = ServerPlan {
            server: "games/lobby".to_owned(),
            no_full_update_because: None,
            restart: true,
            when: RestartTime::Open,
            down: None,
            image_problem: Some("the image `game:2` cannot be pulled on node `a`: ErrImagePull".to_owned()),
            scheduled_restart: None,
            changes: Vec::new(),
            partial_updates: Vec::new(),
            counts_as_listed: Vec::new(),
            waits: Vec::new(),
        };
        let text = "games/lobby: is restarted now: a window is open\n  waits for an image: the image `game:2` cannot be pulled on node `a`: \
                    ErrImagePull\n";
        assert_eq!(render_text(&plan), text);
    }

    #[test]
    fn plan_without_changes_may_still_have_scheduled_restart() {
        let plan = |when, scheduled_restart: Option<&str>| ServerPlan {
            server: "games/lobby".to_owned(),
            no_full_update_because: None,
            restart: false,
            when,
            down: None,
            image_problem: None,
            scheduled_restart: scheduled_restart.map(str::to_owned),
            changes: Vec::new(),
            partial_updates: Vec::new(),
            counts_as_listed: Vec::new(),
            waits: Vec::new(),
        };
        let clock = Some("0 5 * * * UTC");
        for (plan, text) in [
            (plan(RestartTime::Never, None), "games/lobby: nothing changes, and it is not restarted\n"),
            (
                plan(RestartTime::Never, clock),
                "games/lobby: nothing changes, and it is restarted on schedule: 0 5 * * * UTC\n",
            ),
            (
                plan(RestartTime::Open, clock),
                "games/lobby: is restarted now: a window is open, and it is restarted on schedule: 0 5 * * * UTC\n",
            ),
            (
                plan(RestartTime::Held { by: BlockedReason::Hold }, clock),
                "games/lobby: resumes when `*`, which pins it to the running version set, is removed from `spec.hold`, \
                 and it is restarted on schedule: 0 5 * * * UTC\n",
            ),
        ] {
            assert_eq!(render_text(&plan), text);
        }
    }
}
