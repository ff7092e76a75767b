//! Edge (reads). Runs the scenarios: each file has a small catalog, requests, and the expected answer.

#![expect(clippy::unwrap_used, clippy::panic, reason = "an unreadable scenario must fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use resolver::explanation::Explanation;
use resolver::model::catalog::{Catalog, Source};
use resolver::model::lock::{Lock, LockedPlugin};
use resolver::model::request::{Request, VersionRequest};
use resolver::render::text::{self, MAX_SUMMARY_LENGTH};
use resolver::{
    Budget, Fleet, Resolution, Unsolvable, missing_projects, resolve_fleet, resolve_within, why_not_within,
};

#[path = "support/checker.rs"]
mod checker;
#[path = "support/dependencies.rs"]
mod dependencies;
#[path = "support/scenario.rs"]
mod format;
#[path = "support/future_format.rs"]
mod future_format;
#[path = "support/jar_identification.rs"]
mod jar_identification;
#[path = "support/loading.rs"]
mod loading;
#[path = "support/membership.rs"]
mod membership;
#[path = "support/name_rules.rs"]
mod name_rules;
#[path = "support/paper_rules.rs"]
mod paper_rules;
#[path = "support/published.rs"]
mod published;
#[path = "support/raw_scenario.rs"]
mod raw_scenario;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/rules.rs"]
mod rules;
#[path = "support/texts.rs"]
mod texts;
#[path = "support/unmanaged_jars.rs"]
mod unmanaged_jars;
#[path = "support/verify_findings.rs"]
mod verify_findings;

use format::{Expect, Scenario};
use raw_scenario::{Parts, Verbatim};

fn scenario(path: &Path) -> datatest_stable::Result<()> {
    let case = Asked::read(path)?;
    let (name, pages) = (&case.name, case.pages());
    assert_eq!(path.file_stem().unwrap().to_str(), Some(name.as_str()), "the file has the name of the scenario");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("scenarios/answers");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name.as_str(), pages.join("\n")));
    Ok(())
}

impl Scenario {
    /// The requests of all servers, the scenario's own server first.
    fn requests(&self) -> Vec<Request> {
        let others = self.server.iter().map(|(name, another)| self.request(name, &another.request));
        let replicas = self.server.iter().flat_map(|(name, another)| {
            (2..=another.copies).map(move |number| self.request(&format!("{name}-{number}"), &another.request))
        });
        std::iter::once(self.request("lobby", &self.request)).chain(others).chain(replicas).collect()
    }
}

/// A query with its expected answers, from either format of a scenario file.
struct Asked {
    name: String,
    at: Timestamp,
    catalog: Catalog,
    requests: Vec<Request>,
    /// The expected answers of the first servers. The answers of further servers are not checked.
    expected: Vec<Expect>,
    budget: Budget,
}

impl Asked {
    fn read(path: &Path) -> datatest_stable::Result<Self> {
        let table: toml::Table = toml::from_str(&std::fs::read_to_string(path)?)?;
        if table.contains_key("problem") {
            let Verbatim::<Expect> { name, why: _why, at, expect, others, problem } = table.try_into()?;
            let Parts { request, others: further, catalog } = problem;
            assert_eq!(others.len(), further.len(), "each further server needs an expected answer");
            let requests = std::iter::once(request).chain(further).collect();
            let expected = std::iter::once(expect).chain(others).collect();
            return Ok(Self { name, at, catalog, requests, expected, budget: Budget::default() });
        }
        let scenario: Scenario = table.try_into()?;
        let (catalog, requests, budget) = (scenario.catalog(), scenario.requests(), scenario.budget());
        let others = scenario.server.into_values().map(|another| another.expect);
        let expected = std::iter::once(scenario.expect).chain(others).collect();
        Ok(Self { name: scenario.name, at: scenario.at, catalog, requests, expected, budget })
    }

    /// The checked answer for each server.
    fn pages(&self) -> Vec<String> {
        let Self { name: _, at, catalog, requests, expected, budget } = self;
        if let ([request], [expect]) = (requests.as_slice(), expected.as_slice()) {
            let result = resolve_within(catalog, request, *at, *budget);
            return vec![check(*at, catalog, request, expect, &result, self.why_not(request, expect))];
        }
        let results = resolve_fleet(catalog, requests, *at, *budget);
        (requests.iter().zip(expected))
            .map(|(request, expect)| {
                let (_, result) = results.iter().find(|(server, _)| *server == request.server).unwrap();
                check(*at, catalog, request, expect, result, self.why_not(request, expect))
            })
            .collect()
    }

    /// The subject of the why-not query about this server, and its answer.
    fn why_not(&self, request: &Request, expect: &Expect) -> Option<(String, Explanation)> {
        let Self { name: _, at, catalog, requests, expected: _, budget } = self;
        let explain = |no: Unsolvable| no.explanation();
        if let Some(target) = &expect.why_not {
            let why = if requests.len() == 1 {
                why_not_within(catalog, request, target, *at, *budget)
            } else {
                Fleet::read(catalog, requests, *at).decide(*budget).why_not(&request.server, target).unwrap()
            };
            return Some((target.to_string(), why.map_or_else(explain, Explanation::WhyNot)));
        }
        let why_not = expect.why_not_release.as_ref()?;
        let (object, version) = why_not.split_once('=').unwrap();
        let mut pinned = requests.clone();
        for plugin_request in pinned
            .iter_mut()
            .flat_map(|request| &mut request.plugins)
            .filter(|plugin_request| plugin_request.object == object)
        {
            plugin_request.version = VersionRequest::Pin { version: version.to_owned() };
        }
        let (unpinned, pinned) = (Fleet::read(catalog, requests, *at), Fleet::read(catalog, &pinned, *at));
        let why = {
            let pinned = pinned.decide(*budget);
            unpinned.decide(*budget).why_not_release(&request.server, (object, version), &pinned).unwrap()
        };
        Some((why_not.clone(), why.map_or_else(explain, Explanation::WhyNotRelease)))
    }

    /// All explanations, each with its time.
    fn explanations(&self) -> Vec<(Explanation, Timestamp)> {
        let Self { name: _, at, catalog, requests, expected, budget } = self;
        let results = resolve_fleet(catalog, requests, *at, *budget).into_iter();
        let explanations = results.map(|(_, result)| result.map_or_else(|no| no.explanation(), |yes| yes.explanation));
        let why = self.why_not(&requests[0], &expected[0]).map(|(_, why)| why);
        explanations.chain(why).map(|explanation| (explanation, *at)).collect()
    }
}

/// Compares an answer with the expected one, and returns its text.
fn check(
    at: Timestamp,
    catalog: &Catalog,
    request: &Request,
    expect: &Expect,
    result: &Result<Resolution, Unsolvable>,
    why_not: Option<(String, Explanation)>,
) -> String {
    let fetch: Vec<String> = missing_projects(catalog, request).iter().map(|key| key.project.clone()).collect();
    assert_eq!(fetch, expect.fetch, "projects to fetch");
    let mut text = match result {
        Ok(resolution) => text::render(&resolution.explanation, at),
        Err(unsolvable) => text::render(&unsolvable.explanation(), at),
    };
    assert_eq!(result.is_ok(), expect.solvable, "{text}");
    let explanation = match result {
        Ok(resolution) => resolution.explanation.clone(),
        Err(unsolvable) => unsolvable.explanation(),
    };
    assert_round_trips(&explanation);
    text.push_str(&on_one_line(&explanation));
    if let Ok(resolution) = result {
        if let Some(paper) = &expect.paper {
            assert_eq!(resolution.lock.minecraft.as_str(), paper, "{text}");
            let chosen = resolution.lock.plugins.iter().map(|plugin| (plugin.name.clone(), plugin.version.clone()));
            assert_eq!(chosen.collect::<BTreeMap<_, _>>(), expect.plugins, "{text}");
        }
        if let Some(files) = &expect.files {
            let locked = resolution.lock.plugins.iter().flat_map(LockedPlugin::files);
            assert_eq!(&locked.map(|file| file.name.clone()).collect::<Vec<_>>(), files, "{text}");
        }
        if let Some(java) = expect.java {
            assert_eq!(resolution.lock.java, java, "{text}");
        }
        if let Some(image) = &expect.image {
            let tag =
                resolution.lock.image.as_ref().map(|full| full.split('@').next().unwrap().rsplit(':').next().unwrap());
            assert_eq!(tag, Some(image.as_str()), "{text}");
        }
        if let Some(blocked_by) = &expect.blocked_by {
            assert_eq!(&resolution.explanation.blocked_by(), blocked_by, "{text}");
        }
        // The checker supports only the sites, where every release has a date and a list.
        if request.plugins.iter().all(|plugin_request| plugin_request.key.source != Source::Url) {
            let catalog = catalog.with_unread_projects([request]);
            assert_eq!(checker::violations(&catalog, request, at, &resolution.lock), [""; 0], "{text}");
        }
    }
    if let (true, Ok(Resolution { lock, .. })) = (expect.shows_lock, result) {
        let written = lock.to_json();
        assert_eq!(&serde_json::from_str::<Lock>(&written).unwrap(), lock, "{written}");
        text.push_str("\n-- its lock --\n");
        text.push_str(&written);
    }
    if let Some((why_not, why)) = why_not {
        assert_round_trips(&why);
        text.push_str("\n-- why not ");
        text.push_str(&why_not);
        text.push_str("? --\n");
        text.push_str(&text::render(&why, at));
        text.push_str(&on_one_line(&why));
    }
    for mention in &expect.mentions {
        assert!(text.contains(mention.as_str()), "`{mention}` is not in:\n{text}");
    }
    for forbidden in &expect.never {
        assert!(!text.contains(forbidden.as_str()), "`{forbidden}` is in:\n{text}");
    }
    text
}

/// The summary of an answer: one line of limited length in whole sentences, which names a blocker if there is one.
fn on_one_line(explanation: &Explanation) -> String {
    let line = explanation.summary();
    let is_whole = line.lines().count() == 1 && line.ends_with('.') && !line.contains("..") && !line.contains('…');
    assert!(line.len() <= MAX_SUMMARY_LENGTH && is_whole, "{line}");
    let mut blocked_by: Vec<String> = explanation.blocked_by().into_iter().map(str::to_owned).collect();
    if let Explanation::Impossible(no) = explanation {
        let reasons = serde_json::to_value(&no.reasons).unwrap();
        blocked_by.extend(
            reasons.as_array().unwrap().iter().filter_map(|reason| Some(reason["plugin"].as_str()?.to_owned())),
        );
    }
    assert!(
        blocked_by.is_empty() || blocked_by.iter().any(|name| line.contains(name)),
        "none of {blocked_by:?} in:\n{line}"
    );
    format!("\n-- on one line --\n{line}\n")
}

/// JSON output is read back unchanged, also with additional fields of a newer version.
fn assert_round_trips(explanation: &Explanation) {
    let text = serde_json::to_string(explanation).unwrap();
    assert_eq!(serde_json::from_str::<Explanation>(&text).unwrap(), *explanation, "{text}");
    let newer = future_format::with_further_fields(&serde_json::from_str(&text).unwrap());
    assert_eq!(serde_json::from_value::<Explanation>(newer).unwrap(), *explanation, "with unknown fields: {text}");
}

fn scenario_files() -> std::io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir("tests/scenarios")?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    Ok(files)
}

/// The page of all reasons and hints consists of the output of the scenarios and of the `verify` tests, which show
/// every one of them.
fn page_of_reasons(path: &Path) -> datatest_stable::Result<()> {
    let mut results = Vec::new();
    for file in &scenario_files()? {
        let name = file.file_stem().unwrap().to_str().unwrap();
        for (explanation, at) in Asked::read(file)?.explanations() {
            let (data, text) = (serde_json::to_value(&explanation)?, text::render(&explanation, at));
            results.push(reference::Answer { scenario: name.to_owned(), data, text });
        }
    }
    let schema = |of: &str| -> datatest_stable::Result<serde_json::Value> {
        let file = format!("../docs/reference/schemas/{of}.schema.json");
        Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
    };
    let (page, missing) =
        reference::page(&schema("explanation")?, &schema("verify")?, &results, &verify_findings::findings()?);
    assert_eq!(missing, [""; 0], "no scenario and no test of `verify` shows these");
    if std::env::var_os("NIGHTSHIFT_GENERATE").is_some() {
        std::fs::write(path, &page)?;
    }
    assert!(
        std::fs::read_to_string(path)? == page,
        "{} does not match the scenarios: run `make generate`",
        path.display()
    );
    Ok(())
}

/// The rows of the feature list and of the admins' needs that the solver, its texts, its locks and `adopt` fulfill.
const ROWS: [&str; 33] = [
    "H02", "L060", "L061", "L062", "L063", "L064", "L065", "L066", "L067", "L068", "L074", "W01", "W02", "W04", "W10",
    "W11", "W22", "W24", "W25", "W28", "F01", "F02", "F03", "F14", "F20", "B1", "B5", "B6", "B7", "B8", "C2", "C3",
    "D",
];

/// Each row is cited in the `why` of a scenario that shows it. The path argument is that of this file, because the
/// harness requires one.
fn every_row_is_cited(_: &Path) -> datatest_stable::Result<()> {
    let mut cited = String::new();
    for file in scenario_files()? {
        let table: toml::Table = toml::from_str(&std::fs::read_to_string(file)?)?;
        cited.push_str(table["why"].as_str().unwrap());
        cited.push(' ');
    }
    let words: BTreeSet<&str> = cited.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let missing: Vec<&str> = ROWS.into_iter().filter(|row| !words.contains(row)).collect();
    assert_eq!(missing, [""; 0], "no scenario cites these");
    Ok(())
}

datatest_stable::harness! {
    { test = scenario, root = "tests/scenarios", pattern = r"\.toml$" },
    { test = page_of_reasons, root = "../docs/reference", pattern = r"reasons-and-hints\.md$" },
    { test = every_row_is_cited, root = "tests", pattern = r"scenarios\.rs$" },
}
