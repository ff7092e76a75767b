//! Pure. Tests properties of every answer and its texts on random small problems.

use jiff::{SignedDuration, Timestamp};
use resolver::catalog::Catalog;
use resolver::explain::{Conflict, Explanation, Hint, HintStep, SolvedExplanation, text};
use resolver::request::{
    CompatibilityOverride, Dependencies, HotfixSiblings, ImagePolicy, OverrideMode, PaperRequest, PluginRequest,
    Request, Unlisted, VersionRequest,
};
use resolver::unmanaged_jar::UnmanagedPlugins;
use resolver::{Resolution, Unsolvable, resolve};
use serde_json::Value;

use super::because::Tried;
use super::generate::{self, Dice, NAMES};
use super::problem::Problem;
use super::{checker, lost, rules, share_of, software};

/// Complete answers of one property, with every hint solved again. Only a share of them is tested.
const ANSWERS: u64 = 1_000;

pub(super) fn answer(problem: &Problem) -> Result<Resolution, Unsolvable> {
    resolve(&problem.catalog, &problem.request, problem.now)
}

pub(super) fn explanation(answer: &Result<Resolution, Unsolvable>) -> Explanation {
    match answer {
        Ok(resolution) => resolution.explanation.clone(),
        Err(unsolvable) => unsolvable.explanation(),
    }
}

/// All output, as text.
pub(super) fn said(problem: &Problem) -> String {
    let answer = answer(problem);
    let explanation = explanation(&answer);
    let lock = answer.map_or_else(|error| format!("{error:?}"), |resolution| resolution.lock.to_json());
    let json = serde_json::to_string_pretty(&explanation).unwrap();
    format!("{lock}\n{json}\n{}", text::render(&explanation, problem.now))
}

/// Tests a property on many problems. A failing problem is shrunk and printed as a scenario.
pub(super) fn always(first: u64, property: impl Fn(&Problem) -> Result<(), String>) {
    always_of(generate::problem, first, property);
}

/// The same on problems with delisted releases.
fn always_with_lost(first: u64, property: impl Fn(&Problem) -> Result<(), String>) {
    always_of(lost::problem, first, property);
}

fn always_of(drawn: fn(u64) -> Problem, first: u64, property: impl Fn(&Problem) -> Result<(), String>) {
    for seed in first..first + share_of(ANSWERS) {
        let mut problem = drawn(seed);
        // A query that needs an unverified build has no answer yet. The comparison with exhaustive search tests that it
        // gets one.
        software::see_all(&mut problem.catalog);
        if let Err(fault) = property(&problem) {
            let small = problem.shrunk(|smaller| property(smaller).is_err());
            let fault = property(&small).err().unwrap_or(fault);
            let text = text::render(&explanation(&answer(&small)), small.now);
            panic!("seed {seed}: {fault}\n{text}\n{}", small.to_scenario(&format!("seed-{seed}")));
        }
    }
}

pub(super) fn shuffled(problem: &Problem, seed: u64) -> Problem {
    let mut dice = Dice::new(seed);
    let mut other = problem.clone();
    dice.shuffle(&mut other.catalog.paper);
    dice.shuffle(&mut other.catalog.projects);
    dice.shuffle(&mut other.catalog.images);
    dice.shuffle(&mut other.request.plugins);
    for version in &mut other.catalog.paper {
        dice.shuffle(&mut version.builds);
    }
    for project in &mut other.catalog.projects {
        dice.shuffle(&mut project.releases);
        for release in &mut project.releases {
            dice.shuffle(&mut release.dependencies);
            dice.shuffle(&mut release.minecraft);
        }
    }
    if let Some(running) = &mut other.request.running {
        dice.shuffle(&mut running.releases);
        dice.shuffle(&mut running.lost);
    }
    other
}

#[test]
fn answer_bytes_are_independent_of_input_order() {
    always_with_lost(1_000_000, |problem| {
        let (one, other) = (said(problem), said(&shuffled(problem, 7)));
        if one == other { Ok(()) } else { Err(format!("{one}\n-- and in another order --\n{other}")) }
    });
}

/// The catalog with one more, unrelated project.
pub(super) fn with_an_unrelated_project(catalog: &Catalog) -> Catalog {
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
    always_with_lost(2_000_000, |problem| {
        let more = Problem { catalog: with_an_unrelated_project(&problem.catalog), ..problem.clone() };
        let (one, other) = (said(problem), said(&more));
        if one == other { Ok(()) } else { Err(format!("{one}\n-- and with an unrelated project --\n{other}")) }
    });
}

/// The same problem with longer project names, in the same order.
fn renamed(problem: &Problem) -> Problem {
    fn longer<T: serde::Serialize + serde::de::DeserializeOwned>(of: &T) -> T {
        serde_json::from_str(&longer_names(serde_json::to_string(of).unwrap())).unwrap()
    }
    Problem { catalog: longer(&problem.catalog), request: longer(&problem.request), now: problem.now }
}

/// In both cases, because users may write a name in another one.
fn longer_names(text: String) -> String {
    NAMES.iter().fold(text, |text, name| {
        let (upper, long) = (name.to_uppercase(), format!("{name}zq"));
        text.replace(name, &long).replace(&upper, &long.to_uppercase())
    })
}

/// Removes spelling suggestions, which depend on the names.
fn forget_what_may_be_meant(told: &mut Value) {
    match told {
        Value::Object(fields) => {
            fields.remove("nearest");
            fields.values_mut().for_each(forget_what_may_be_meant);
        }
        Value::Array(all) => all.iter_mut().for_each(forget_what_may_be_meant),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn answer_is_independent_of_project_names() {
    let said = |problem: &Problem| {
        let answer = answer(problem);
        let mut told = serde_json::to_value(explanation(&answer)).unwrap();
        forget_what_may_be_meant(&mut told);
        format!("{}\n{told:#}", answer.map_or_else(|_| String::new(), |resolution| resolution.lock.to_json()))
    };
    always(12_000_000, |problem| {
        let other = said(&renamed(problem));
        let one = longer_names(said(problem));
        if one == other { Ok(()) } else { Err(format!("{one}\n-- and with other names --\n{other}")) }
    });
}

/// Follows a hint, as the user would.
fn followed(problem: &Problem, hint: &Hint) -> Problem {
    let mut changed = problem.clone();
    take(&mut changed.request, &mut changed.now, &hint.steps);
    changed
}

/// Applies the steps to a request.
pub(super) fn take(request: &mut Request, now: &mut Timestamp, steps: &[HintStep]) {
    for step in steps {
        let mut on = |object: &str, change: &dyn Fn(&mut PluginRequest)| {
            let wishes = request.plugins.iter_mut();
            wishes.filter(|wish| wish.object == object).for_each(change);
        };
        match step {
            HintStep::WaitUntil { at } => *now = *at,
            HintStep::ChangeOverride { object, mode, minecraft_versions, releases } => {
                on(object, &|wish| {
                    wish.compatibility = Some(CompatibilityOverride {
                        mode: *mode,
                        minecraft: minecraft_versions.clone(),
                        releases: releases.clone(),
                    });
                });
            }
            HintStep::DropOverride { object } => on(object, &|wish| wish.compatibility = None),
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
            HintStep::AllowMinecraft { object, minecraft_versions, releases } => on(object, &|wish| {
                wish.compatibility = Some(CompatibilityOverride {
                    mode: OverrideMode::Add,
                    minecraft: minecraft_versions.clone(),
                    releases: releases.clone(),
                });
            }),
            HintStep::DropRequirement { object, plugin } => {
                on(object, &|wish| wish.requires.retain(|requirement| requirement.plugin != *plugin));
            }
            HintStep::AllowDowngrade { object } => on(object, &|wish| wish.allow_downgrade = true),
            HintStep::Release { object, by: _ } => on(object, &|wish| wish.hold = None),
            HintStep::NoPluginDelay { object } => on(object, &|wish| wish.delay = SignedDuration::ZERO),
            HintStep::PluginChannel { object, channel } => on(object, &|wish| wish.channel = *channel),
            HintStep::PluginPerServer { object } => on(object, &|wish| wish.version = VersionRequest::Auto),
            HintStep::UnpinPlugin { object } => on(object, &|wish| wish.version = VersionRequest::Auto),
            HintStep::PinPlugin { object, version } => {
                on(object, &|wish| wish.version = VersionRequest::Pin { version: version.clone() });
            }
        }
    }
}

/// Checks that the hint gives the promised versions, and returns the answer.
pub(super) fn keeps_its_word(problem: &Problem, hint: &Hint) -> Result<Resolution, String> {
    let changed = followed(problem, hint);
    let then = answer(&changed).map_err(|error| format!("{:?} leads to: {error}", hint.steps))?;
    let gives = (&hint.gives.minecraft, hint.gives.build);
    if gives != (&then.lock.minecraft, then.lock.build) {
        return Err(format!("{:?} gives {} build {}, not {gives:?}", hint.steps, then.lock.minecraft, then.lock.build));
    }
    let complaints = checker::complaints(&changed.catalog, &changed.request, changed.now, &then.lock);
    if complaints.is_empty() { Ok(then) } else { Err(complaints.join("; ")) }
}

/// Number of plugins that `latest` excludes. A removed plugin counts twice.
pub(super) fn left_behind(solved: &SolvedExplanation) -> usize {
    solved.unfollowed.len() + solved.unfollowed.iter().filter(|left| left.stays.is_none()).count()
}

#[test]
fn hint_for_resolution_changes_answer_as_stated() {
    let tried = Tried::default();
    always(4_000_000, |problem| {
        let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = answer(problem) else { return Ok(()) };
        for hint in &solved.hints {
            let then = keeps_its_word(problem, hint)?;
            let Explanation::Solved(after) = &then.explanation else { panic!("a resolution explains a yes") };
            let newer = then.lock.minecraft > lock.minecraft;
            let follows = left_behind(after) < left_behind(&solved);
            let adds = matches!(hint.steps.as_slice(), [HintStep::AddPlugins { .. }])
                && then
                    .lock
                    .plugins
                    .iter()
                    .any(|plugin| !lock.plugins.iter().any(|old| old.release_id == plugin.release_id));
            if !newer && !follows && !adds {
                return Err(format!("{:?} changes nothing", hint.steps));
            }
            tried.note(if newer { "a newer Paper" } else { "the same Paper" });
        }
        Ok(())
    });
    tried.are_enough(&[("a newer Paper", 20), ("the same Paper", 2)]);
}

#[test]
fn hint_for_conflict_resolves_it() {
    let tried = Tried::default();
    always(5_000_000, |problem| {
        let Err(Unsolvable::NoSolution(impossible)) = answer(problem) else { return Ok(()) };
        impossible.hints.iter().try_for_each(|hint| keeps_its_word(problem, hint).map(|_| tried.note("a hint")))
    });
    tried.are_enough(&[("a hint", 50)]);
}

#[test]
fn hint_steps_are_all_necessary() {
    let tried = Tried::default();
    always(14_000_000, |problem| {
        let (hints, now) = match answer(problem) {
            Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) => (solved.hints, Some(lock.minecraft)),
            Err(Unsolvable::NoSolution(impossible)) => (impossible.hints, None),
            Ok(_) | Err(_) => return Ok(()),
        };
        for (place, hint) in hints.iter().enumerate() {
            let contained = |less: &&Hint| less.steps.iter().all(|step| hint.steps.contains(step));
            let mut before = hints[..place].iter().filter(|less| less.gives.minecraft >= hint.gives.minecraft);
            if let Some(less) = before.find(contained) {
                return Err(format!("{:?} contains {:?} and leads no further", hint.steps, less.steps));
            }
        }
        for hint in hints.iter().filter(|hint| now.as_ref().is_none_or(|now| hint.gives.minecraft > *now)) {
            tried.note(if hint.steps.len() > 1 { "a hint of several steps" } else { "a hint of one step" });
            for place in 0..hint.steps.len() {
                let mut fewer = hint.clone();
                fewer.steps.remove(place);
                let Ok(then) = answer(&followed(problem, &fewer)) else { continue };
                let Explanation::Solved(after) = &then.explanation else { panic!("a resolution explains a yes") };
                if after.unfollowed.is_empty() && then.lock.minecraft >= hint.gives.minecraft {
                    return Err(format!("{:?} does what {:?} does", fewer.steps, hint.steps));
                }
            }
        }
        Ok(())
    });
    tried.are_enough(&[("a hint of one step", 20), ("a hint of several steps", 5)]);
}

/// The request with Paper forced to a version, and only some of its plugins.
pub(super) fn forced(
    problem: &Problem,
    minecraft: &resolver::version::Minecraft,
    keep: &dyn Fn(&PluginRequest) -> bool,
) -> Problem {
    let mut forced = problem.clone();
    // A pinned build of this version is kept, because it may be used whatever its channel.
    if !matches!(&forced.request.paper, PaperRequest::BuildPin { version, .. } if version == minecraft) {
        forced.request.paper = PaperRequest::Pin { version: minecraft.clone() };
    }
    forced.request.plugins.retain(keep);
    forced
}

/// Whether a plugin can be solved alone. With `Forbid` it may need another requested plugin.
pub(super) fn can_stand_alone(problem: &Problem) -> bool {
    problem.request.dependencies == Dependencies::Install
}

/// The Plugin objects that request the project of this name.
pub(super) fn objects_of(problem: &Problem, name: &str) -> Vec<String> {
    let named = |wish: &&PluginRequest| {
        rules::place_of(&problem.catalog, &wish.key).is_some_and(|place| problem.catalog.projects[place].name == name)
    };
    problem.request.plugins.iter().filter(named).map(|wish| wish.object.clone()).collect()
}

pub(super) fn is_yes(problem: &Problem) -> bool {
    answer(problem).is_ok()
}

pub(super) fn is_no(problem: &Problem) -> bool {
    matches!(answer(problem), Err(Unsolvable::NoSolution(_)))
}

/// Checks that the problem stays unsolvable without everything that the explanation does not name.
fn names_enough(problem: &Problem, impossible: &Conflict, tried: &Tried) -> Result<(), String> {
    let text = text::render(&Explanation::Impossible(impossible.clone()), problem.now);
    let mut fewer = problem.clone();
    fewer.request.plugins.retain(|wish| {
        let place = rules::place_of(&problem.catalog, &wish.key).unwrap();
        text.contains(&problem.catalog.projects[place].name)
    });
    // A name in a fact may refer to no plugin any more. The answer is then unknown, which is no solution.
    if impossible.more == 0 && is_yes(&fewer) {
        return Err("the plugins that are named do not rule it out".to_owned());
    }
    let is_less = impossible.more == 0 && fewer.request.plugins.len() < problem.request.plugins.len();
    tried.note(if is_less { "a plugin is taken away" } else { "no plugin is" });
    Ok(())
}

#[test]
fn conflict_names_all_its_causes() {
    let tried = Tried::default();
    always(9_000_000, |problem| match answer(problem) {
        Err(Unsolvable::NoSolution(impossible)) => names_enough(problem, &impossible, &tried),
        Ok(_) | Err(_) => Ok(()),
    });
    tried.are_enough(&[("a plugin is taken away", 20)]);
}

#[test]
fn explanation_round_trips_through_json() {
    always_with_lost(10_000_000, |problem| {
        let explanation = explanation(&answer(problem));
        let text = serde_json::to_string(&explanation).unwrap();
        let back: Explanation = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        if back == explanation { Ok(()) } else { Err(text) }
    });
}

/// Texts that no output may contain: words of the solver, empty lists, double spaces of a missing value.
pub(super) fn spoiled(text: &str) -> Result<(), String> {
    let spoiled = [
        "Root",
        "incompatib",
        "IndexSet",
        "Bulk",
        "satisf",
        "nothing.",
        "with nothing",
        " ,",
        " .",
        "()",
        "{:?}",
        "..",
    ]
    .into_iter()
    .find(|word| text.contains(word));
    let long = text.lines().count() > 60;
    match spoiled {
        Some(word) => Err(format!("`{word}`")),
        None if long => Err("too long".to_owned()),
        None => Ok(()),
    }
}

#[test]
fn explanation_text_is_well_formed() {
    always(11_000_000, |problem| spoiled(&text::render(&explanation(&answer(problem)), problem.now)));
}
