//! Edge (reads). `resolver ready`: shows for all servers which plugins are ready for a Minecraft version and which are
//! not.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answers::{exit_status, first_published, missing_data};
use crate::args::{Format, ReadyArgs};
use crate::output::table::table;
use crate::session::InputSource;
use crate::{ExitStatus, Output, what_if};
use resolver::explanation::{Blocker, WhyNot};
use resolver::model::catalog::last_release;
use resolver::model::catalog::{Catalog, ProjectKey};
use resolver::model::request::Request;
use resolver::model::software::Software;
use resolver::model::version::Minecraft;
use resolver::render::phrases;
use resolver::render::phrases::{date, list};
use resolver::render::{short, text};
use resolver::{Budget, Fleet, Unsolvable};

/// The report.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReadyReport {
    /// The Minecraft version of the query.
    target: Minecraft,
    /// When its first build was published. Absent when it is not released.
    #[serde(skip_serializing_if = "Option::is_none")]
    paper_since: Option<Timestamp>,
    /// Number of requested plugins.
    of: usize,
    /// Requested plugins that are ready on each of their servers, by name.
    ready: Vec<String>,
    /// Plugins that are not ready, by name, including plugins that only other plugins need.
    not_ready: Vec<NotReady>,
    /// The servers of the query, by name.
    servers: Vec<Server>,
}

/// A plugin that is not ready.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NotReady {
    /// The display name.
    name: String,
    /// Its project.
    key: ProjectKey,
    /// Its newest release that may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<String>,
    /// The newest Minecraft version on the list of that release.
    #[serde(skip_serializing_if = "Option::is_none")]
    listed_up_to: Option<Minecraft>,
    /// Why it is not ready, as a short text for users.
    why: String,
    /// When its authors last published a release.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_release: Option<Timestamp>,
    /// The same time, where the authors only have to list a version or publish a usable release.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_release_at: Option<Timestamp>,
    /// The servers that it blocks.
    servers: BTreeSet<String>,
}

/// One server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Server {
    /// Its name.
    name: String,
    /// Whether it can run the version.
    can: bool,
    /// Why not, as a short text for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

type Answers = Vec<(String, Result<WhyNot, Unsolvable>)>;

/// Runs `resolver ready`.
pub(crate) fn ready(ready: &ReadyArgs, now: Timestamp) -> Result<Output, Output> {
    let ReadyArgs { target, from, format } = ready;
    let mut notes = Vec::new();
    let mut source = InputSource::read(from, &mut notes, now)?;
    source.checked.remove_proxies(&mut notes);
    let at = source.at;
    let queried = source.checked.servers();
    let session = source.gather(from, &mut notes, |catalog, requests| {
        let mut answers = why_not_by_server(catalog, requests, target, at);
        let missing = missing_data(&answers);
        answers.retain(|(server, _)| queried.contains(server));
        (answers, missing)
    })?;
    let mut output = Output { stdout: String::new(), stderr: notes, status: ExitStatus::Solved };
    let mut whys = Vec::new();
    for (_, result) in &session.answer {
        match result {
            Ok(why) => whys.push(why),
            Err(unsolvable) => {
                output.stderr.push(text::render(&unsolvable.explanation(), at).trim_end().to_owned());
                output.status = output.status.max(exit_status(unsolvable));
            }
        }
    }
    session.add_read_errors(&mut output);
    if let Some(why) = whys.iter().find(|why| !why.exists) {
        let nearest: Vec<&str> = why.nearest.iter().map(Minecraft::as_str).collect();
        output.stderr.push(format!("there is no {} {target}: there are {}", why.software, list(&nearest, 3)));
        output.status = ExitStatus::Failed;
        return Ok(output);
    }
    let unmanaged = session.requests.iter().flat_map(|request| &request.unmanaged);
    let unmanaged_files = unmanaged.map(|jar| jar.file.as_str()).collect();
    let report = report(&session.catalog, &whys, &unmanaged_files, target, at);
    if !report.not_ready.is_empty() || report.servers.iter().any(|server| !server.can) {
        output.status = output.status.max(ExitStatus::NoSolution);
    }
    output.stdout = match format {
        Format::Human => render_text(&report),
        Format::Json => serde_json::to_string_pretty(&report).expect("a report has string keys only") + "\n",
    };
    Ok(output)
}

/// The answer of each server, by name. A target that is not released yet is treated as released.
fn why_not_by_server(catalog: &Catalog, requests: &[Request], target: &Minecraft, at: Timestamp) -> Answers {
    let catalog = &*catalog.with_unread_projects(requests);
    let with_target = what_if::with_future_versions(catalog, target, at);
    let catalog = with_target.as_ref().unwrap_or(catalog);
    let fleet = Fleet::read(catalog, requests, at);
    let decided = fleet.decide(Budget::default());
    let result = |request: &Request| Some((request.server.clone(), decided.why_not(&request.server, target)?));
    let mut answers: Answers = requests.iter().filter_map(result).collect();
    answers.sort_by(|(a, _), (b, _)| a.cmp(b));
    answers
}

/// The report for these servers. `unmanaged_files` are unmanaged JARs, which may need a plugin but are not requested plugins.
fn report(
    catalog: &Catalog,
    whys: &[&WhyNot],
    unmanaged_files: &BTreeSet<&str>,
    target: &Minecraft,
    at: Timestamp,
) -> ReadyReport {
    let mut not_ready: BTreeMap<(&str, &ProjectKey, Option<&str>, String), NotReady> = BTreeMap::new();
    // Requested plugins that are not ready themselves or through a dependency.
    let mut blocked: BTreeSet<&str> = BTreeSet::new();
    for why in whys {
        for blocker in &why.blockers {
            // A release may be pinned on one server and free on another.
            let newest = blocker.newest.as_ref().map(|newest| newest.version.as_str());
            let key = (blocker.name.as_str(), &blocker.key, newest, short::blocker(blocker));
            let row = not_ready.entry(key).or_insert_with(|| not_ready_row(catalog, blocker, at));
            row.servers.insert(why.server.clone());
            blocked.extend(blocker.object.as_ref().map(|_| blocker.name.as_str()));
            let needed_by = blocker.needed_by.iter().map(String::as_str);
            blocked.extend(needed_by.filter(|name| !unmanaged_files.contains(name)));
        }
    }
    let mut ready: BTreeSet<&str> = whys.iter().flat_map(|why| &why.ready).map(String::as_str).collect();
    ready.retain(|name| !blocked.contains(name));
    let paper_since = first_published(catalog, Software::Paper, target, at);
    ReadyReport {
        target: target.clone(),
        paper_since,
        of: ready.len() + blocked.len(),
        ready: ready.into_iter().map(str::to_owned).collect(),
        not_ready: not_ready.into_values().collect(),
        servers: whys
            .iter()
            .map(|why| server_row(why, first_published(catalog, why.software, target, at).is_some()))
            .collect(),
    }
}

fn not_ready_row(catalog: &Catalog, blocker: &Blocker, at: Timestamp) -> NotReady {
    NotReady {
        name: blocker.name.clone(),
        key: blocker.key.clone(),
        newest: blocker.newest.as_ref().map(|newest| newest.version.clone()),
        listed_up_to: blocker.newest.as_ref().and_then(|newest| newest.up_to.clone()),
        why: short::blocker(blocker),
        last_release: catalog.project(&blocker.key).and_then(|project| last_release(project, at)),
        last_release_at: blocker.last_release_at,
        servers: BTreeSet::new(),
    }
}

fn server_row(why: &WhyNot, is_published: bool) -> Server {
    let names: Vec<&str> = why.blockers.iter().map(|blocker| blocker.name.as_str()).collect();
    let mut reasons = Vec::new();
    // The eligibility of a Paper version that is not released is unknown.
    reasons.extend(why.unusable.as_ref().filter(|_| is_published).map(short::unusable));
    reasons.extend(why.pinned.as_ref().map(|pin| format!("you pinned {} {}", why.software, pin.version)));
    if !names.is_empty() {
        reasons.push(short::blocked_by(&names));
    }
    reasons.extend(why.shared_versions.iter().map(short::shared_version));
    reasons.extend(why.shared_name.as_ref().map(short::shared_name));
    let can = is_published && reasons.is_empty();
    if !is_published && reasons.is_empty() {
        reasons.push(format!("waits for {}", why.software));
    }
    Server { name: why.server.clone(), can, why_not: (!can).then(|| reasons.join(", ")) }
}

fn render_text(report: &ReadyReport) -> String {
    let ReadyReport { target, paper_since, of, ready, not_ready, servers } = report;
    let availability = match paper_since {
        Some(since) => format!("Paper has had it since {}", date(*since)),
        None => "Paper has no build of it yet".to_owned(),
    };
    let noun = if *of == 1 { "plugin is" } else { "plugins are" };
    let mut text = format!("{} of {of} {noun} ready for {target}. {availability}.\n", ready.len());
    if !not_ready.is_empty() {
        text.push_str("\nnot ready\n");
        let rows: Vec<Vec<String>> = not_ready.iter().map(not_ready_cells).collect();
        text.push_str(&table("  ", &rows));
    }
    if !ready.is_empty() {
        text = format!("{text}\nready\n  {}\n", list(ready, usize::MAX));
    }
    text.push_str("\nservers\n");
    let row =
        |server: &Server| vec![server.name.clone(), server.why_not.clone().unwrap_or_else(|| "can run it".to_owned())];
    let rows: Vec<Vec<String>> = servers.iter().map(row).collect();
    text.push_str(&table("  ", &rows));
    text
}

fn not_ready_cells(row: &NotReady) -> Vec<String> {
    let NotReady { name, key: _, newest, listed_up_to: _, why, last_release: _, last_release_at, servers } = row;
    let silent = last_release_at.map(phrases::last_release_at).unwrap_or_default();
    let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
    let named = newest.as_ref().map_or_else(|| name.clone(), |newest| format!("{name} {newest}"));
    vec![named, why.clone(), silent, format!("on {}", list(&servers, 3))]
}
