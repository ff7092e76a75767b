//! Pure. Tests properties that every answer and its texts must have, on random small problems.

use jiff::{SignedDuration, Timestamp};
use resolver::explanation::{Conflict, Explanation, Hint, HintStep, SolvedExplanation, UpstreamAction};
use resolver::model::catalog::Catalog;
use resolver::model::request::{
    CompatibilityOverride, Dependencies, HotfixSiblings, ImagePolicy, OverrideMode, PaperRequest, PluginRequest,
    Request, Unlisted, VersionRequest,
};
use resolver::model::unmanaged_jar::UnmanagedPlugins;
use resolver::render::text;
use resolver::{Resolution, Unsolvable, resolve};
use serde_json::Value;

use super::generate::{self, NAMES, Rng};
use super::problem::Problem;
use super::why_older::CaseCounts;
use super::{checker, delisted, rules, scaled_to_run, software};

/// Number of problems per property in a thorough run. It is small, because every hint of an answer is solved again.
const ANSWERS: u64 = 1_000;

pub(super) fn resolve_problem(problem: &Problem) -> Result<Resolution, Unsolvable> {
    resolve(&problem.catalog, &problem.request, problem.now)
}

pub(super) fn explanation(result: &Result<Resolution, Unsolvable>) -> Explanation {
    match result {
        Ok(resolution) => resolution.explanation.clone(),
        Err(unsolvable) => unsolvable.explanation(),
    }
}

/// The lock and the explanation of a problem, as JSON and as text.
pub(super) fn output_text(problem: &Problem) -> String {
    let result = resolve_problem(problem);
    let explanation = explanation(&result);
    let lock = result.map_or_else(|error| format!("{error:?}"), |resolution| resolution.lock.to_json());
    let json = serde_json::to_string_pretty(&explanation).unwrap();
    format!("{lock}\n{json}\n{}", text::render(&explanation, problem.now))
}

/// Tests a property on many problems. A failing problem is shrunk and printed as a scenario.
pub(super) fn for_all(first: u64, property: impl Fn(&Problem) -> Result<(), String>) {
    for_all_generated(generate::problem, first, property);
}

/// Like [`for_all`], on problems with delisted releases.
fn for_all_with_delisted(first: u64, property: impl Fn(&Problem) -> Result<(), String>) {
    for_all_generated(delisted::problem, first, property);
}

fn for_all_generated(generate: fn(u64) -> Problem, first: u64, property: impl Fn(&Problem) -> Result<(), String>) {
    for seed in first..first + scaled_to_run(ANSWERS) {
        let mut problem = generate(seed);
        // A query that needs an unverified build has no answer yet. `brute_force.rs` tests that it has an answer after
        // the build is verified.
        software::verify_all_builds(&mut problem.catalog);
        if let Err(error) = property(&problem) {
            let small = problem.shrunk(|smaller| property(smaller).is_err());
            let error = property(&small).err().unwrap_or(error);
            let text = text::render(&explanation(&resolve_problem(&small)), small.now);
            panic!("seed {seed}: {error}\n{text}\n{}", small.to_scenario(&format!("seed-{seed}")));
        }
    }
}

pub(super) fn shuffled(problem: &Problem, seed: u64) -> Problem {
    let mut rng = Rng::new(seed);
    let mut other = problem.clone();
    rng.shuffle(&mut other.catalog.paper);
    rng.shuffle(&mut other.catalog.projects);
    rng.shuffle(&mut other.catalog.images);
    rng.shuffle(&mut other.request.plugins);
    for version in &mut other.catalog.paper {
        rng.shuffle(&mut version.builds);
    }
    for project in &mut other.catalog.projects {
        rng.shuffle(&mut project.releases);
        for release in &mut project.releases {
            rng.shuffle(&mut release.dependencies);
            rng.shuffle(&mut release.minecraft);
        }
    }
    if let Some(running) = &mut other.request.running {
        rng.shuffle(&mut running.releases);
        rng.shuffle(&mut running.delisted);
    }
    other
}

#[test]
fn answer_bytes_are_independent_of_input_order() {
    for_all_with_delisted(1_000_000, |problem| {
        let (one, other) = (output_text(problem), output_text(&shuffled(problem, 7)));
        if one == other { Ok(()) } else { Err(format!("{one}\n-- with the input in another order --\n{other}")) }
    });
}

/// The catalog with one more, unrelated project.
pub(super) fn with_unrelated_project(catalog: &Catalog) -> Catalog {
    let mut more = catalog.clone();
    let mut unrelated = generate::problem(3).catalog.projects.remove(0);
    "unrelated".clone_into(&mut unrelated.id);
    "unrelated".clone_into(&mut unrelated.key.project);
    "Unrelated".clone_into(&mut unrelated.name);
    for release in &mut unrelated.releases {
        release.id.insert_str(0, "unrelated-");
    }
    more.projects.insert(0, unrelated);
    more
}

#[test]
fn answer_bytes_are_independent_of_unrelated_project() {
    for_all_with_delisted(2_000_000, |problem| {
        let more = Problem { catalog: with_unrelated_project(&problem.catalog), ..problem.clone() };
        let (one, other) = (output_text(problem), output_text(&more));
        if one == other { Ok(()) } else { Err(format!("{one}\n-- with an unrelated project --\n{other}")) }
    });
}

/// The same problem with longer project names, in the same order.
fn renamed(problem: &Problem) -> Problem {
    fn lengthened<T: serde::Serialize + serde::de::DeserializeOwned>(of: &T) -> T {
        serde_json::from_str(&lengthen_names(serde_json::to_string(of).unwrap())).unwrap()
    }
    Problem { catalog: lengthened(&problem.catalog), request: lengthened(&problem.request), now: problem.now }
}

/// Lengthens the names in lower and in upper case, because users may write a name in either.
fn lengthen_names(text: String) -> String {
    NAMES.iter().fold(text, |text, name| {
        let (upper, long) = (name.to_uppercase(), format!("{name}zq"));
        text.replace(name, &long).replace(&upper, &long.to_uppercase())
    })
}

/// Removes spelling suggestions, which depend on the names.
fn remove_suggestions(data: &mut Value) {
    match data {
        Value::Object(fields) => {
            fields.remove("nearest");
            fields.values_mut().for_each(remove_suggestions);
        }
        Value::Array(all) => all.iter_mut().for_each(remove_suggestions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn answer_is_independent_of_project_names() {
    let answer_of = |problem: &Problem| {
        let result = resolve_problem(problem);
        let mut data = serde_json::to_value(explanation(&result)).unwrap();
        remove_suggestions(&mut data);
        format!("{}\n{data:#}", result.map_or_else(|_| String::new(), |resolution| resolution.lock.to_json()))
    };
    for_all(12_000_000, |problem| {
        let other = answer_of(&renamed(problem));
        let one = lengthen_names(answer_of(problem));
        if one == other { Ok(()) } else { Err(format!("{one}\n-- with other project names --\n{other}")) }
    });
}

/// The problem after the user followed a hint.
fn apply_hint(problem: &Problem, hint: &Hint) -> Problem {
    let mut changed = problem.clone();
    apply_steps(&mut changed.request, &mut changed.now, &hint.steps);
    changed
}

/// Applies the steps to a request.
pub(super) fn apply_steps(request: &mut Request, now: &mut Timestamp, steps: &[HintStep]) {
    for step in steps {
        let mut on = |object: &str, change: &dyn Fn(&mut PluginRequest)| {
            let plugin_requests = request.plugins.iter_mut();
            plugin_requests.filter(|plugin_request| plugin_request.object == object).for_each(change);
        };
        match step {
            HintStep::WaitUntil { at } => *now = *at,
            HintStep::ChangeOverride { object, mode, minecraft_versions, releases } => {
                on(object, &|plugin_request| {
                    plugin_request.compatibility = Some(CompatibilityOverride {
                        mode: *mode,
                        minecraft: minecraft_versions.clone(),
                        releases: releases.clone(),
                    });
                });
            }
            HintStep::DropOverride { object } => on(object, &|plugin_request| plugin_request.compatibility = None),
            HintStep::NoServerDelay => request.delay = SignedDuration::ZERO,
            HintStep::ServerChannel { channel } => request.channel = *channel,
            HintStep::UnpinImage => request.image = None,
            HintStep::PinImage { image } => request.image = Some(image.clone()),
            HintStep::ImageFollows => request.image_policy = ImagePolicy::Follow,
            HintStep::InstallDependencies => request.dependencies = Dependencies::Install,
            HintStep::TrustFiles { server: _, files, minecraft } => {
                for jar in request.unmanaged.iter_mut().filter(|jar| files.contains(&jar.file)) {
                    jar.trusted.push(minecraft.to_string());
                }
            }
            HintStep::WarnUnmanaged => request.unmanaged_plugins = UnmanagedPlugins::Warn,
            HintStep::IgnoreUnmanaged => request.unmanaged_plugins = UnmanagedPlugins::Ignore,
            HintStep::AddPlugins { plugins } => {
                for plugin in plugins {
                    request.plugins.push(PluginRequest {
                        object: plugin.object.clone(),
                        key: plugin.key.clone(),
                        jars: Vec::new(),
                        version: VersionRequest::Auto,
                        delay: request.delay,
                        channel: plugin.channel,
                        compatibility: plugin.allows.as_ref().map(|allows| CompatibilityOverride {
                            mode: OverrideMode::Add,
                            minecraft: allows.minecraft_versions.clone(),
                            releases: allows.releases.clone(),
                        }),
                        requires: Vec::new(),
                        allow_downgrade: false,
                        hold: None,
                        delay_together: Vec::new(),
                        selector: None,
                    });
                }
            }
            HintStep::TrustSiblings => request.hotfix_siblings = HotfixSiblings::Trust,
            HintStep::AssumeUnlisted => request.unlisted = Unlisted::Assume,
            HintStep::UnpinServer => request.paper = PaperRequest::Auto,
            HintStep::PinServer { version, build: None } => {
                request.paper = PaperRequest::Pin { version: version.clone() };
            }
            HintStep::PinServer { version, build: Some(build) } => {
                request.paper = PaperRequest::BuildPin { version: version.clone(), build: *build };
            }
            HintStep::AllowMinecraft { object, minecraft_versions, releases } => on(object, &|plugin_request| {
                plugin_request.compatibility = Some(CompatibilityOverride {
                    mode: OverrideMode::Add,
                    minecraft: minecraft_versions.clone(),
                    releases: releases.clone(),
                });
            }),
            HintStep::DropRequirement { object, plugin } => {
                on(object, &|plugin_request| {
                    plugin_request.requires.retain(|requirement| requirement.plugin != *plugin);
                });
            }
            HintStep::AllowDowngrade { object } => on(object, &|plugin_request| plugin_request.allow_downgrade = true),
            HintStep::Release { object, by: _ } => on(object, &|plugin_request| plugin_request.hold = None),
            HintStep::NoPluginDelay { object } => {
                on(object, &|plugin_request| plugin_request.delay = SignedDuration::ZERO);
            }
            HintStep::PluginChannel { object, channel } => {
                on(object, &|plugin_request| plugin_request.channel = *channel);
            }
            HintStep::PluginPerServer { object } => {
                on(object, &|plugin_request| plugin_request.version = VersionRequest::Auto);
            }
            HintStep::UnpinPlugin { object } => {
                on(object, &|plugin_request| plugin_request.version = VersionRequest::Auto);
            }
            HintStep::PinPlugin { object, version } => {
                on(object, &|plugin_request| plugin_request.version = VersionRequest::Pin { version: version.clone() });
            }
        }
    }
}

/// Checks that a followed hint leads to the stated versions, and returns the answer.
pub(super) fn check_hint(problem: &Problem, hint: &Hint) -> Result<Resolution, String> {
    let changed = apply_hint(problem, hint);
    let then = resolve_problem(&changed).map_err(|error| format!("the steps {:?} lead to: {error}", hint.steps))?;
    let gives = (&hint.gives.minecraft, hint.gives.build);
    if gives != (&then.lock.minecraft, then.lock.build) {
        return Err(format!(
            "the steps {:?} lead to {} build {}, but the hint states {gives:?}",
            hint.steps, then.lock.minecraft, then.lock.build
        ));
    }
    let violations = checker::violations(&changed.catalog, &changed.request, changed.now, &then.lock);
    if violations.is_empty() { Ok(then) } else { Err(violations.join("; ")) }
}

/// Number of plugins that `latest` excludes. A removed plugin counts twice.
pub(super) fn excluded_count(solved: &SolvedExplanation) -> usize {
    solved.left_behind.len() + solved.left_behind.iter().filter(|plugin| plugin.stays.is_none()).count()
}

#[test]
fn hint_for_resolution_changes_answer_as_stated() {
    let counts = CaseCounts::default();
    for_all(4_000_000, |problem| {
        let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = resolve_problem(problem) else {
            return Ok(());
        };
        for hint in &solved.hints {
            let then = check_hint(problem, hint)?;
            let Explanation::Solved(after) = &then.explanation else { panic!("expected a solved explanation") };
            let newer = then.lock.minecraft > lock.minecraft;
            let follows = excluded_count(after) < excluded_count(&solved);
            let adds = matches!(hint.steps.as_slice(), [HintStep::AddPlugins { .. }])
                && then
                    .lock
                    .plugins
                    .iter()
                    .any(|plugin| !lock.plugins.iter().any(|old| old.release_id == plugin.release_id));
            if !newer && !follows && !adds {
                return Err(format!("the steps {:?} do not improve the answer", hint.steps));
            }
            counts.record(if newer { "a hint that leads to a newer Paper" } else { "a hint that keeps the Paper" });
        }
        Ok(())
    });
    counts.assert_enough(&[("a hint that leads to a newer Paper", 20), ("a hint that keeps the Paper", 2)]);
}

#[test]
fn hint_for_conflict_resolves_it() {
    let counts = CaseCounts::default();
    for_all(5_000_000, |problem| {
        let Err(Unsolvable::NoSolution(impossible)) = resolve_problem(problem) else { return Ok(()) };
        impossible.hints.iter().try_for_each(|hint| check_hint(problem, hint).map(|_| counts.record("a hint")))
    });
    counts.assert_enough(&[("a hint", 50)]);
}

/// The problem after these list entries. `None` if one of the actions is a new release, whose page is unknown, or is
/// about a Paper that may not be used yet.
fn with_list_entries(problem: &Problem, waits: &[UpstreamAction]) -> Option<Problem> {
    let rules = rules::ServerRules::new(&problem.catalog, &problem.request, problem.now).ok()?;
    let mut after = problem.clone();
    for action in waits {
        let UpstreamAction::Listed { plugin, release, minecraft, only: _ } = action else { return None };
        rules.papers.iter().find(|paper| paper.minecraft == minecraft && paper.build.is_some())?;
        let projects = after.catalog.projects.iter_mut().filter(|project| project.name == *plugin);
        let releases = projects.flat_map(|project| &mut project.releases);
        for listed in releases.filter(|listed| listed.version == *release && !listed.minecraft.contains(minecraft)) {
            listed.minecraft.push(minecraft.clone());
            listed.minecraft.sort();
        }
    }
    Some(after)
}

#[test]
fn wait_for_list_entries_leads_to_another_answer() {
    let counts = CaseCounts::default();
    for_all(21_000_000, |problem| {
        let (waits, target) = match resolve_problem(problem) {
            Ok(Resolution { explanation: Explanation::Solved(solved), .. }) if solved.left_behind.is_empty() => {
                (solved.waits, solved.newer_paper.into_iter().next().map(|newer| newer.minecraft))
            }
            Err(Unsolvable::NoSolution(impossible)) => (impossible.waits, None),
            Ok(_) | Err(_) => return Ok(()),
        };
        let Some(after) = with_list_entries(problem, &waits).filter(|_| !waits.is_empty()) else { return Ok(()) };
        match resolve_problem(&after) {
            // A build has to be downloaded first.
            Err(Unsolvable::Unanswerable(_)) => Ok(()),
            Err(error) => Err(format!("after {waits:?}: {error}")),
            Ok(then) if target.as_ref().is_some_and(|target| then.lock.minecraft < *target) => {
                Err(format!("after {waits:?} the Paper is {} and not {target:?}", then.lock.minecraft))
            }
            Ok(_) => {
                counts.record(if target.is_some() { "a newer Paper" } else { "a solution" });
                Ok(())
            }
        }
    });
    counts.assert_enough(&[("a newer Paper", 5), ("a solution", 5)]);
}

#[test]
fn hint_steps_are_all_necessary() {
    let counts = CaseCounts::default();
    for_all(14_000_000, |problem| {
        let (hints, now) = match resolve_problem(problem) {
            Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) => (solved.hints, Some(lock.minecraft)),
            Err(Unsolvable::NoSolution(impossible)) => (impossible.hints, None),
            Ok(_) | Err(_) => return Ok(()),
        };
        for (index, hint) in hints.iter().enumerate() {
            let contained = |less: &&Hint| less.steps.iter().all(|step| hint.steps.contains(step));
            let mut before = hints[..index].iter().filter(|less| less.gives.minecraft >= hint.gives.minecraft);
            if let Some(less) = before.find(contained) {
                return Err(format!(
                    "the steps {:?} contain the steps {:?} of an earlier hint, but lead to no newer Paper",
                    hint.steps, less.steps
                ));
            }
        }
        for hint in hints.iter().filter(|hint| now.as_ref().is_none_or(|now| hint.gives.minecraft > *now)) {
            counts.record(if hint.steps.len() > 1 { "a hint of several steps" } else { "a hint of one step" });
            for index in 0..hint.steps.len() {
                let mut fewer = hint.clone();
                fewer.steps.remove(index);
                let Ok(then) = resolve_problem(&apply_hint(problem, &fewer)) else { continue };
                let Explanation::Solved(after) = &then.explanation else { panic!("expected a solved explanation") };
                if after.left_behind.is_empty() && then.lock.minecraft >= hint.gives.minecraft {
                    return Err(format!("the steps {:?} are sufficient instead of {:?}", fewer.steps, hint.steps));
                }
            }
        }
        Ok(())
    });
    counts.assert_enough(&[("a hint of one step", 20), ("a hint of several steps", 5)]);
}

/// The request with Paper forced to a version, and only some of its plugins.
pub(super) fn force_paper(
    problem: &Problem,
    minecraft: &resolver::model::version::Minecraft,
    keep: &dyn Fn(&PluginRequest) -> bool,
) -> Problem {
    let mut forced = problem.clone();
    // A pinned build of this version is kept, because its channel does not matter.
    if !matches!(&forced.request.paper, PaperRequest::BuildPin { version, .. } if version == minecraft) {
        forced.request.paper = PaperRequest::Pin { version: minecraft.clone() };
    }
    forced.request.plugins.retain(keep);
    forced
}

/// Whether each plugin can be solved without the others. With `dependencies: Forbid` or `Propose`, a plugin may need
/// another requested plugin.
pub(super) fn can_be_solved_alone(problem: &Problem) -> bool {
    problem.request.dependencies == Dependencies::Install
}

/// The Plugin objects that request the project of this name.
pub(super) fn objects_of(problem: &Problem, name: &str) -> Vec<String> {
    let named = |plugin_request: &&PluginRequest| {
        rules::project_index(&problem.catalog, &plugin_request.key)
            .is_some_and(|index| problem.catalog.projects[index].name == name)
    };
    problem.request.plugins.iter().filter(named).map(|plugin_request| plugin_request.object.clone()).collect()
}

pub(super) fn is_solvable(problem: &Problem) -> bool {
    resolve_problem(problem).is_ok()
}

pub(super) fn is_unsolvable(problem: &Problem) -> bool {
    matches!(resolve_problem(problem), Err(Unsolvable::NoSolution(_)))
}

/// Checks that the problem stays unsolvable without the plugins that the explanation does not name.
fn check_names(problem: &Problem, impossible: &Conflict, counts: &CaseCounts) -> Result<(), String> {
    let text = text::render(&Explanation::Impossible(impossible.clone()), problem.now);
    let mut fewer = problem.clone();
    fewer.request.plugins.retain(|plugin_request| {
        let index = rules::project_index(&problem.catalog, &plugin_request.key).unwrap();
        text.contains(&problem.catalog.projects[index].name)
    });
    // A fact may name a removed plugin. The answer is then unknown, which is not a solution.
    if impossible.more == 0 && is_solvable(&fewer) {
        return Err("the request has a solution with only the plugins that the explanation names".to_owned());
    }
    let is_less = impossible.more == 0 && fewer.request.plugins.len() < problem.request.plugins.len();
    counts.record(if is_less { "a conflict that names only some plugins" } else { "another conflict" });
    Ok(())
}

#[test]
fn conflict_names_all_its_causes() {
    let counts = CaseCounts::default();
    for_all(9_000_000, |problem| match resolve_problem(problem) {
        Err(Unsolvable::NoSolution(impossible)) => check_names(problem, &impossible, &counts),
        Ok(_) | Err(_) => Ok(()),
    });
    counts.assert_enough(&[("a conflict that names only some plugins", 20)]);
}

#[test]
fn explanation_round_trips_through_json() {
    for_all_with_delisted(10_000_000, |problem| {
        let explanation = explanation(&resolve_problem(problem));
        let text = serde_json::to_string(&explanation).unwrap();
        let parsed: Explanation = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        if parsed == explanation { Ok(()) } else { Err(text) }
    });
}

/// Checks that a text is not too long and contains no internal word of the solver, no empty list and no gap where a
/// value is missing.
pub(super) fn check_text(text: &str) -> Result<(), String> {
    let forbidden = ["Root", "IndexSet", "Bulk", "satisf", "nothing.", "with nothing", " ,", " .", "()", "{:?}", ".."]
        .into_iter()
        .find(|word| text.contains(word));
    let long = text.lines().count() > 60;
    match forbidden {
        Some(word) => Err(format!("the text contains `{word}`")),
        None if long => Err("the text has more than 60 lines".to_owned()),
        None => Ok(()),
    }
}

#[test]
fn explanation_text_is_well_formed() {
    for_all(11_000_000, |problem| check_text(&text::render(&explanation(&resolve_problem(problem)), problem.now)));
}
