//! Edge (reads). `resolver outdated`: lists packages that are not at their newest release, with the reason and since
//! when.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answers::exit_status;
use crate::args::{Format, OutdatedArgs};
use crate::input::running::RunningSet;
use crate::output::table::table;
use crate::session::{InputSource, gather_answers};
use crate::{ExitStatus, Output};
use resolver::explanation::{Blocker, ChosenPlugin, Explanation, SolvedExplanation};
use resolver::model::catalog::{Catalog, Project};
use resolver::render::phrases::date;
use resolver::render::{short, text};

/// Outdated packages of one server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutdatedReport {
    /// The server.
    server: String,
    /// Why the chosen version set is not applied, as a short text for users. Absent when it is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    /// Packages that are not at their newest release, Paper first.
    pub(crate) behind: Vec<OutdatedRow>,
    /// Number of packages, including Paper.
    of: usize,
}

/// A package that is not at its newest release.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutdatedRow {
    /// `Paper`, or the display name of a plugin.
    pub(crate) name: String,
    /// The running version according to the object's status. Absent when the status does not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runs: Option<String>,
    /// The chosen version. Absent when strategy `latest` excludes the plugin, or when it is new in a version set that
    /// is not applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) would_run: Option<String>,
    /// The newest version that exists.
    pub(crate) newest: String,
    /// Why the newest version is not chosen, as a short text for users. Absent when it is chosen and not yet running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why_not: Option<String>,
    /// When the newest version was published, if its source contains the date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
}

/// Runs `resolver outdated`.
pub(crate) fn outdated(outdated: &OutdatedArgs, now: Timestamp) -> Result<Output, Output> {
    let mut notes = Vec::new();
    let source = InputSource::read(&outdated.from, &mut notes, now)?;
    let (running, at) = (source.checked.running.clone(), source.at);
    let session = gather_answers(&outdated.from, source, None, &mut notes)?;
    let mut output = Output { stdout: String::new(), stderr: notes, status: ExitStatus::Solved };
    let mut reports = Vec::new();
    for (server, result) in &session.answer {
        match result.as_ref().map(|resolution| &resolution.explanation) {
            Ok(Explanation::Solved(solved)) => {
                let runs = running.get(server).cloned().unwrap_or_default();
                let report = report(&session.catalog, solved, &runs, at);
                if report.stopped.is_some() {
                    output.status = output.status.max(ExitStatus::NoSolution);
                }
                reports.push(report);
            }
            Ok(other) => output.stderr.push(text::render(other, at).trim_end().to_owned()),
            Err(unsolvable) => {
                output.stderr.push(text::render(&unsolvable.explanation(), at).trim_end().to_owned());
                output.status = output.status.max(exit_status(unsolvable));
            }
        }
    }
    for report in &reports {
        match outdated.format {
            Format::Human => {
                if !output.stdout.is_empty() {
                    output.stdout.push('\n');
                }
                output.stdout.push_str(&render_text(report));
            }
            Format::Json => {
                let json = serde_json::to_string_pretty(report).expect("a report has string keys only");
                output.stdout.push_str(&json);
                output.stdout.push('\n');
            }
        }
    }
    session.add_read_errors(&mut output);
    Ok(output)
}

/// The outdated packages of a server.
pub(crate) fn report(
    catalog: &Catalog,
    solved: &SolvedExplanation,
    runs: &RunningSet,
    at: Timestamp,
) -> OutdatedReport {
    let is_stopped = solved.deploy_blocker().is_some();
    let of_paper = paper_row(catalog, solved, runs);
    let of_paper = if is_stopped { kept_paper_row(solved, of_paper, runs) } else { of_paper };
    let mut behind: Vec<OutdatedRow> = of_paper.into_iter().collect();
    behind.extend(solved.plugins.iter().filter_map(|one| {
        let row = plugin_row(one, runs);
        if is_stopped { kept_plugin_row(one, row, runs) } else { row }
    }));
    let excluded = solved.left_behind.iter().filter_map(|excluded_plugin| {
        let name = &excluded_plugin.name;
        let blocks_itself = excluded_plugin.blocker.name == *name;
        let (version, since) = if blocks_itself {
            newest(catalog, &excluded_plugin.blocker, at)?
        } else {
            newest_by_name(catalog, name, at)?
        };
        // A plugin that keeps its version is among the plugins, and may be at its newest release.
        excluded_plugin.stays.is_none().then(|| OutdatedRow {
            name: name.clone(),
            runs: runs.plugins.get(name).cloned(),
            would_run: None,
            newest: version,
            why_not: Some(if blocks_itself {
                short::blocker(&excluded_plugin.blocker)
            } else {
                format!("needs {}", excluded_plugin.blocker.name)
            }),
            since,
        })
    });
    behind.extend(excluded);
    let of = 1
        + solved.plugins.len()
        + solved.left_behind.iter().filter(|excluded_plugin| excluded_plugin.stays.is_none()).count();
    let stopped = solved.deploy_blocker().map(|(name, files)| short::name_conflict(name, files));
    OutdatedReport { server: solved.server.clone(), stopped, behind, of }
}

/// Why a chosen release is not applied, for a table row. The line above the table names the files.
const STOPPED: &str = "the set is stopped";

/// The row of a package that keeps its version because the version set with its other release is not applied.
fn keeping_version(row: OutdatedRow, kept_version: Option<String>) -> OutdatedRow {
    let why: Vec<String> = row.why_not.into_iter().chain([STOPPED.to_owned()]).collect();
    OutdatedRow { would_run: kept_version, why_not: Some(why.join("; ")), ..row }
}

fn kept_paper_row(solved: &SolvedExplanation, row: Option<OutdatedRow>, runs: &RunningSet) -> Option<OutdatedRow> {
    let chosen = &solved.paper;
    if chosen.runs_now {
        return row;
    }
    let kept_version = chosen.instead_of.as_ref().map(|name| format!("{}-{}", name.minecraft, name.build));
    let row = row.unwrap_or_else(|| OutdatedRow {
        name: solved.software.to_string(),
        runs: runs.paper.clone(),
        would_run: None,
        newest: format!("{}-{}", chosen.minecraft, chosen.build),
        why_not: None,
        since: Some(chosen.published),
    });
    Some(keeping_version(row, kept_version))
}

fn kept_plugin_row(chosen: &ChosenPlugin, row: Option<OutdatedRow>, runs: &RunningSet) -> Option<OutdatedRow> {
    if chosen.runs_now && chosen.instead_of.is_none() {
        return row;
    }
    let row = row.unwrap_or_else(|| OutdatedRow {
        name: chosen.name.clone(),
        runs: runs.plugins.get(&chosen.name).cloned(),
        would_run: None,
        newest: chosen.version.clone(),
        why_not: None,
        since: chosen.published,
    });
    Some(keeping_version(row, chosen.instead_of.clone()))
}

/// The newest release that could be chosen if it were listed. With a pin, the newest of all releases, because only the
/// pinned one could be chosen.
fn newest(catalog: &Catalog, blocker: &Blocker, at: Timestamp) -> Option<(String, Option<Timestamp>)> {
    if blocker.pinned.is_none() {
        return blocker.newest.as_ref().map(|newest| (newest.version.clone(), newest.published));
    }
    newest_of(catalog.project(&blocker.key)?, at)
}

/// The newest release of the plugin with this name.
fn newest_by_name(catalog: &Catalog, name: &str, at: Timestamp) -> Option<(String, Option<Timestamp>)> {
    newest_of(catalog.projects.iter().find(|project| project.name == name)?, at)
}

fn newest_of(project: &Project, at: Timestamp) -> Option<(String, Option<Timestamp>)> {
    let releases = project.releases.iter().filter(|release| release.published.is_none_or(|published| published <= at));
    let newest = releases.max_by_key(|release| (release.channel, release.published))?;
    Some((newest.version.clone(), newest.published))
}

fn paper_row(catalog: &Catalog, solved: &SolvedExplanation, runs: &RunningSet) -> Option<OutdatedRow> {
    let chosen = &solved.paper;
    let would_run = format!("{}-{}", chosen.minecraft, chosen.build);
    let row = |newest: String, why_not: Option<String>, since: Timestamp| OutdatedRow {
        name: solved.software.to_string(),
        runs: runs.paper.clone(),
        would_run: Some(would_run.clone()),
        newest,
        why_not,
        since: Some(since),
    };
    if let Some(newer) = solved.newer_paper.last() {
        let names: Vec<&str> = newer.blocked_by.iter().map(|blocker| blocker.name.as_str()).collect();
        let why = match (&newer.unusable, &newer.pinned, &newer.gave_up) {
            (Some(unusable), _, _) if names.is_empty() => short::unusable(unusable),
            (Some(unusable), _, _) => format!("{}, {}", short::unusable(unusable), short::blocked_by(&names)),
            (None, Some(pin), _) => format!("you pinned {}", pin.version),
            (None, None, Some(gave_up)) => short::blockers_unknown(gave_up),
            (None, None, None) if names.is_empty() => {
                newer.shared_versions.first().map(short::shared_version).unwrap_or_default()
            }
            (None, None, None) => short::blocked_by(&names),
        };
        return Some(row(newer.minecraft.to_string(), Some(why), newer.since));
    }
    if let Some(newer) = &solved.paper.newer_build {
        let version = catalog.versions(solved.software).iter().find(|version| version.minecraft == chosen.minecraft);
        let build = version.and_then(|version| version.builds.iter().find(|build| build.number == newer.build))?;
        let newest = format!("{}-{}", chosen.minecraft, newer.build);
        let pinned = || format!("you pinned build {}", chosen.build);
        let why = newer.unusable.as_ref().map_or_else(pinned, short::unusable);
        return Some(row(newest, Some(why), build.published));
    }
    let differs = runs.paper.as_ref().is_some_and(|runs| *runs != would_run);
    differs.then(|| row(would_run.clone(), None, chosen.published))
}

fn plugin_row(chosen: &ChosenPlugin, runs: &RunningSet) -> Option<OutdatedRow> {
    let runs = runs.plugins.get(&chosen.name).cloned();
    let row = |newest: &str, why_not: Option<String>, since: Option<Timestamp>| OutdatedRow {
        name: chosen.name.clone(),
        runs: runs.clone(),
        would_run: Some(chosen.version.clone()),
        newest: newest.to_owned(),
        why_not,
        since,
    };
    if let Some(newest) = &chosen.newest {
        return Some(row(&newest.version, Some(short::why_older(&newest.because)), newest.published));
    }
    let differs = runs.as_ref().is_some_and(|runs| *runs != chosen.version);
    differs.then(|| row(&chosen.version, None, chosen.published))
}

fn render_text(report: &OutdatedReport) -> String {
    let OutdatedReport { server, stopped, behind, of } = report;
    if behind.is_empty() {
        return format!("{server}: everything is up to date\n");
    }
    let has_running = behind.iter().any(|row| row.runs.is_some());
    let mut head = vec!["NAME", "RUNS", "WOULD RUN", "NEWEST", "WHY NOT", "OUT SINCE"];
    if !has_running {
        head.remove(1);
    }
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(str::to_owned).collect()];
    for row in behind {
        let OutdatedRow { name, runs, would_run, newest, why_not, since } = row;
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![name.clone()];
        if has_running {
            cells.push(or_dash(runs));
        }
        cells.extend([
            or_dash(would_run),
            newest.clone(),
            or_dash(why_not),
            since.map_or_else(|| "-".to_owned(), date),
        ]);
        rows.push(cells);
    }
    let stopped = stopped.as_ref().map(|why| format!("  no update: {why}\n")).unwrap_or_default();
    format!("{server}: {} of {of} not up to date\n{stopped}{}", behind.len(), table("  ", &rows))
}
