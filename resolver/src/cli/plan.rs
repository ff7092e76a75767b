//! Edge (reads). `resolver plan`: what would be changed on which server, when, and what waits.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::arguments::{Format, Plan as Asked};
use super::gathered::{Start, end_of, gather_answers, one_server};
use super::outdated::{self, Row};
use super::running::Runs;
use super::table::table;
use super::when::When;
use super::{End, Said, diff};
use crate::Resolution;
use crate::explain::{Explanation, Solved, human};
use crate::lock::Lock;
use crate::request::Running;
use crate::upstream::in_words;

/// What a change of the server's image is called.
const IMAGE: &str = "image";

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
    /// When it is restarted as it is, without a change: cron, zone, and the next time as the operator told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_the_clock: Option<String>,
    /// What would be another than now, Paper first.
    changes: Vec<Change>,
    /// What is newer and has to wait.
    waits: Vec<Wait>,
}

/// Something that would be another.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Change {
    /// `Paper`, `Java`, `image`, or the name that people know a plugin by.
    name: String,
    /// What runs; absent when it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// What would run; absent when it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// The world could not go back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    one_way: bool,
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
        let (runs, schedule) = (runs.get(server).cloned().unwrap_or_default(), schedules.get(server));
        let changes = changes(solved, resolution, &runs, locks.get(server));
        let is_new = runs.paper.is_none()
            && gathered.requests.iter().any(|request| request.server == *server && request.running.is_none());
        let when = When::of((is_new, changes.is_empty()), schedule, now, at);
        let is_one_way = changes.iter().any(|change| change.one_way);
        let plan_of_server = Plan {
            server: server.clone(),
            restart: !changes.is_empty(),
            when: if is_one_way { when.in_windows_only() } else { when },
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

fn changes(solved: &Solved, resolution: &Resolution, runs: &Runs, lock: Option<&Lock>) -> Vec<Change> {
    let paper = &solved.paper;
    let mut changes = Vec::new();
    let to = format!("{}-{}", paper.minecraft, paper.build);
    // A status that an older operator wrote names what runs, and the answer does not know it.
    let from = match &paper.instead_of {
        Some(before) if before.software != solved.software => {
            Some(format!("{} {}-{}", before.software, before.minecraft, before.build))
        }
        Some(before) => Some(format!("{}-{}", before.minecraft, before.build)),
        None => runs.paper.clone().filter(|_| !paper.runs_now),
    };
    if !paper.runs_now && from.as_ref() != Some(&to) {
        let minecraft = |text: &String| text.split('-').next().and_then(|text| text.parse().ok());
        let before = paper.instead_of.as_ref().map(|before| before.minecraft.clone());
        let before = before.or_else(|| from.as_ref().and_then(minecraft));
        let newer = solved.software.is_minecraft() && before.is_some_and(|before| before < paper.minecraft);
        let moves = paper.instead_of.as_ref().is_some_and(|before| before.software != solved.software);
        changes.push(Change { name: solved.software.to_string(), from, to: Some(to), one_way: newer || moves });
    }
    let change = |name: &str, from: Option<&str>, to: Option<&str>| Change {
        name: name.to_owned(),
        from: from.map(str::to_owned),
        to: to.map(str::to_owned),
        one_way: false,
    };
    if let Some(difference) = lock.map(|lock| lock.difference(&resolution.lock)) {
        let java = difference.java.map(|java| (java.from.to_string(), java.to.to_string()));
        changes.extend(java.map(|(from, to)| change("Java", Some(&from), Some(&to))));
        changes.extend(difference.image.map(|image| change(IMAGE, image.from.as_deref(), image.to.as_deref())));
    }
    for plugin in &solved.plugins {
        let before = match &plugin.instead_of {
            Some(before) => Some(before),
            None if plugin.runs_now => Some(&plugin.version),
            None => runs.plugins.get(&plugin.name),
        };
        if plugin.instead_of.is_some() || before != Some(&plugin.version) {
            changes.push(change(&plugin.name, before.map(String::as_str), Some(&plugin.version)));
        }
    }
    let mut gone: BTreeMap<&str, &str> =
        solved.removed.iter().map(|(name, version)| (name.as_str(), version.as_str())).collect();
    // What nobody asks for any more may be of a project that nobody has read.
    match lock {
        Some(lock) => gone.extend(lock.plugins.iter().map(|plugin| (plugin.name.as_str(), plugin.version.as_str()))),
        None => gone.extend(runs.plugins.iter().map(|(name, version)| (name.as_str(), version.as_str()))),
    }
    gone.retain(|name, _| !solved.plugins.iter().any(|plugin| plugin.name == *name));
    changes.extend(gone.into_iter().map(|(name, version)| change(name, Some(version), None)));
    changes
}

fn wait(row: Row) -> Option<Wait> {
    let Row { name, runs: _, would_run: _, newest, why_not, since: _ } = row;
    Some(Wait { name, version: newest, why: why_not? })
}

fn in_sentences(plan: &Plan) -> String {
    let Plan { server, restart: _, when, by_the_clock, changes, waits } = plan;
    let head = match when {
        When::Never if by_the_clock.is_some() => "nothing changes".to_owned(),
        When::Never => "nothing changes, and it is not restarted".to_owned(),
        When::FirstStart => "starts for the first time, at once".to_owned(),
        When::Held => format!("goes on {}", when.in_words()),
        When::Open
        | When::Window { .. }
        | When::Windows { .. }
        | When::ByHand
        | When::Approval { .. }
        | When::Followed { .. }
        | When::Suspended => format!("is restarted {}", when.in_words()),
    };
    let how = if when.is_opportunistic() { "by the clock, and takes this along" } else { "as it is by the clock" };
    let clock = by_the_clock.as_ref().map(|clock| format!("; restarted {how}: {clock}"));
    let mut text = format!("{server}: {head}{}\n", clock.unwrap_or_default());
    let rows: Vec<Vec<String>> =
        changes.iter().map(|change| vec![change.name.clone(), change_in_words(change)]).collect();
    text.push_str(&table("  ", &rows));
    if !waits.is_empty() {
        text.push_str("  waits\n");
        let row = |Wait { name, version, why }: &Wait| vec![format!("{name} {version}"), why.clone()];
        let rows: Vec<Vec<String>> = waits.iter().map(row).collect();
        text.push_str(&table("    ", &rows));
    }
    text
}

fn change_in_words(change: &Change) -> String {
    let Change { name, from, to, one_way } = change;
    match (from, to) {
        _ if name == IMAGE => diff::image_words(from.as_deref(), to.as_deref()),
        (Some(from), Some(to)) => {
            let one_way = if *one_way { ". One-way: the world cannot go back" } else { "" };
            format!("{from} -> {to}{one_way}")
        }
        (None, Some(to)) => format!("new: {to}"),
        (Some(from), None) => format!("goes: was {from}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_nothing_changes_may_still_be_restarted_by_the_clock() {
        let plan = |when, by_the_clock: Option<&str>| Plan {
            server: "games/lobby".to_owned(),
            restart: false,
            when,
            by_the_clock: by_the_clock.map(str::to_owned),
            changes: Vec::new(),
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
