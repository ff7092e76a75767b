//! Edge (reads). `resolver plan`: what would be changed on which server, when, and what waits.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::alone::{self, Alone, Whole};
use super::arguments::{Format, Plan as Asked};
use super::change::{self, Change, changes};
use super::gathered::{Start, end_of, gather_answers, one_server};
use super::outdated::{self, Row};
use super::schedule::Schedule;
use super::table::table;
use super::when::When;
use super::{End, Said, diff};
use crate::explain::{Explanation, human};
use crate::lock::Lock;
use crate::request::Running;
use crate::upstream::in_words;

/// What would be changed on one server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plan {
    /// The server.
    server: String,
    /// Whether it would be restarted, or started for the first time.
    restart: bool,
    /// When that would be.
    when: When,
    /// How long it is down for that, and how long for the copy before it, as the operator told it of what it plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    down: Option<String>,
    /// Which image the server's node could not pull, as the operator told it of what it plans: it is not restarted for it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    image_problem: Option<String>,
    /// When it is restarted as it is, without a change: cron, zone, and the next time as the operator told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_the_clock: Option<String>,
    /// What would be another than now, Paper first.
    changes: Vec<Change>,
    /// What of it also comes alone, without a window of the server, while everything else stays as it is: Plugins with `spec.urgent` or with
    /// `spec.windows`. All of it comes together in a window of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alone: Vec<Alone>,
    /// What is newer and has to wait.
    waits: Vec<Wait>,
}

/// Something newer that waits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Wait {
    /// `Paper`, or the name that people know a plugin by.
    name: String,
    /// The newest there is.
    version: String,
    /// Why it waits, in few words.
    why: String,
}

/// `resolver plan`.
pub(super) fn plan(plan: &Asked, now: Timestamp) -> Result<Said, Said> {
    let failed = |said: String| Said::nothing_but(vec![said]);
    let mut notes = Vec::new();
    let mut start = Start::of(&plan.from, &mut notes, now)?;
    let mut locks: BTreeMap<String, Lock> = BTreeMap::new();
    for name in &plan.running {
        let lock = diff::read_lock(name).map_err(|error| failed(in_words(&error)))?;
        let names = start.checked.servers();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let server = one_server(&names, Some(&lock.server), "")
            .map_err(|_| {
                failed(format!("{name}: the lock is for `{}`, which is not among the servers here", lock.server))
            })?
            .to_owned();
        start.checked.takes_for_running(&server, &Running::of(&lock));
        locks.insert(server, lock);
    }
    let (runs, schedules) = (start.checked.running.clone(), start.checked.schedules.clone());
    let (now, at) = (start.now, start.at);
    let gathered = gather_answers(&plan.from, start, None, &mut notes)?;
    let mut said = Said { answer: String::new(), notes, end: End::Solved };
    for (server, answer) in &gathered.answer {
        let resolution = match answer {
            Ok(resolution) => resolution,
            Err(unsolvable) => {
                said.notes.push(human::render(&unsolvable.explanation(), at).trim_end().to_owned());
                said.end = said.end.max(end_of(unsolvable));
                continue;
            }
        };
        let Explanation::Solved(solved) = &resolution.explanation else { continue };
        if solved.stopped_by().is_some() {
            // None of it comes.
            said.notes.push(human::render(&resolution.explanation, at).trim_end().to_owned());
            said.end = said.end.max(End::NoSolution);
            continue;
        }
        let (runs, schedule) = (runs.get(server).cloned().unwrap_or_default(), schedules.get(server));
        let mut changes = changes(solved, resolution, &runs, locks.get(server));
        for change in changes.iter_mut().filter(|change| change.one_way) {
            change.no_copy = schedule.is_some_and(|schedule| schedule.no_copy);
        }
        let is_new = runs.paper.is_none()
            && gathered.requests.iter().any(|request| request.server == *server && request.running.is_none());
        let when = When::of((is_new, changes.is_empty()), schedule, now, at);
        let is_one_way = changes.iter().any(|change| change.one_way);
        let when = if is_one_way { when.in_windows_only() } else { when };
        let whole = Whole {
            catalog: &gathered.catalog,
            requests: &gathered.requests,
            resolution,
            solved,
            changes: &changes,
            runs: &runs,
            lock: locks.get(server),
        };
        let (when, alone) = alone::alone(&whole, schedule, when, now, at);
        let plan_of_server = Plan {
            server: server.clone(),
            restart: !changes.is_empty(),
            when,
            alone,
            down: schedule.and_then(|schedule| down(schedule, &changes, is_one_way)),
            image_problem: schedule.and_then(|schedule| schedule.about_all().image_problem),
            by_the_clock: schedule.and_then(|schedule| schedule.by_the_clock.clone()),
            changes,
            waits: outdated::board(&gathered.catalog, solved, &runs, at).behind.into_iter().filter_map(wait).collect(),
        };
        match plan.format {
            Format::Human => {
                if !said.answer.is_empty() {
                    said.answer.push('\n');
                }
                said.answer.push_str(&in_sentences(&plan_of_server));
            }
            Format::Json => {
                let json = serde_json::to_string_pretty(&plan_of_server).expect("a plan has string keys only");
                said.answer.push_str(&json);
                said.answer.push('\n');
            }
        }
    }
    gathered.say_problems(&mut said);
    Ok(said)
}

/// What the operator said of its own plan holds for what is found here, if both or neither bring a newer Minecraft: that is what a copy and a
/// longer start depend upon. What it says of a part that comes alone does not.
fn down(schedule: &Schedule, changes: &[Change], is_one_way: bool) -> Option<String> {
    let (told, told_one_way) = schedule.down.as_ref()?;
    let holds = !changes.is_empty() && schedule.told_alone.is_none() && *told_one_way == is_one_way;
    holds.then(|| told.clone())
}

fn wait(row: Row) -> Option<Wait> {
    let Row { name, runs: _, would_run: _, newest, why_not, since: _ } = row;
    Some(Wait { name, version: newest, why: why_not? })
}

fn in_sentences(plan: &Plan) -> String {
    let Plan { server, restart: _, when, down, image_problem, by_the_clock, changes, alone, waits } = plan;
    let head = match when {
        When::Never if by_the_clock.is_some() => "nothing changes".to_owned(),
        When::Never => "nothing changes, and it is not restarted".to_owned(),
        When::FirstStart => "starts for the first time, at once".to_owned(),
        When::Held => format!("goes on {}", when.in_words()),
        When::Open
        | When::Urgent { .. }
        | When::Window { .. }
        | When::Windows { .. }
        | When::OwnWindows { .. }
        | When::ByHand
        | When::Approval { .. }
        | When::Followed { .. }
        | When::Suspended => format!("is restarted {}", when.in_words()),
    };
    let how = if when.is_opportunistic() { "by the clock, and takes this along" } else { "as it is by the clock" };
    let clock = by_the_clock.as_ref().map(|clock| format!("; restarted {how}: {clock}"));
    let down = down.as_ref().map(|down| format!("; down for {down}")).unwrap_or_default();
    let mut text = format!("{server}: {head}{down}{}\n", clock.unwrap_or_default());
    let rows: Vec<Vec<String>> =
        changes.iter().map(|change| vec![change.name.clone(), change::in_words(change)]).collect();
    text.push_str(&table("  ", &rows));
    if let Some(problem) = image_problem {
        text.extend(["  waits for an image: ", problem, "\n"]);
    }
    if !alone.is_empty() {
        text.push_str("  alone\n");
        let rows: Vec<Vec<String>> = alone.iter().map(Alone::row).collect();
        text.push_str(&table("    ", &rows));
    }
    if !waits.is_empty() {
        text.push_str("  waits\n");
        let row = |Wait { name, version, why }: &Wait| vec![format!("{name} {version}"), why.clone()];
        let rows: Vec<Vec<String>> = waits.iter().map(row).collect();
        text.push_str(&table("    ", &rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_the_servers_node_cannot_pull_is_told_with_the_plan() {
        let plan = Plan {
            server: "games/lobby".to_owned(),
            restart: true,
            when: When::Open,
            down: None,
            image_problem: Some("the image `game:2` cannot be pulled on node `a`: ErrImagePull".to_owned()),
            by_the_clock: None,
            changes: Vec::new(),
            alone: Vec::new(),
            waits: Vec::new(),
        };
        let said = "games/lobby: is restarted now: a window is open\n  waits for an image: the image `game:2` cannot be pulled on node `a`: \
                    ErrImagePull\n";
        assert_eq!(in_sentences(&plan), said);
    }

    #[test]
    fn a_server_that_nothing_changes_may_still_be_restarted_by_the_clock() {
        let plan = |when, by_the_clock: Option<&str>| Plan {
            server: "games/lobby".to_owned(),
            restart: false,
            when,
            down: None,
            image_problem: None,
            by_the_clock: by_the_clock.map(str::to_owned),
            changes: Vec::new(),
            alone: Vec::new(),
            waits: Vec::new(),
        };
        let clock = Some("0 5 * * * UTC");
        for (plan, said) in [
            (plan(When::Never, None), "games/lobby: nothing changes, and it is not restarted\n"),
            (
                plan(When::Never, clock),
                "games/lobby: nothing changes; restarted as it is by the clock: 0 5 * * * UTC\n",
            ),
            (
                plan(When::Open, clock),
                "games/lobby: is restarted now: a window is open; restarted as it is by the clock: 0 5 * * * UTC\n",
            ),
        ] {
            assert_eq!(in_sentences(&plan), said);
        }
    }
}
