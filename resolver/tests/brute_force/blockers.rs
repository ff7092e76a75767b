//! Pure. Tests on random small problems that every reported blocker is one: a solve that is forced past it fails.

use resolver::explanation::{Blocker, ChosenPlugin, Explanation, HintStep, SolvedExplanation, WhyNot, WhyOlder};
use resolver::model::request::VersionRequest;
use resolver::model::version::Minecraft;
use resolver::{Resolution, why_not};

use super::problem::Problem;
use super::properties::{
    can_be_solved_alone, check_hint, for_all, force_paper, is_solvable, is_unsolvable, objects_of, resolve_problem,
};
use super::ready::{are_ready, with_usable_paper};
use super::rules::{self, Book};
use super::why_older::Tried;

/// Whether a plugin blocks a Paper, or needs a blocker.
fn is_blocked(blockers: &[Blocker], name: &str) -> bool {
    blockers.iter().any(|blocker| blocker.name == name || blocker.needed_by.iter().any(|dependent| dependent == name))
}

/// The requested plugins that do not.
fn unblocked_plugins<'p>(problem: &'p Problem, blockers: &[Blocker]) -> Vec<&'p str> {
    let requested = problem.catalog.projects.iter().filter(|project| !objects_of(problem, &project.name).is_empty());
    requested.map(|project| project.name.as_str()).filter(|name| !is_blocked(blockers, name)).collect()
}

/// Checks that all blockers are reported: without them, the Paper can be chosen.
fn check_blockers_complete(problem: &Problem, minecraft: &Minecraft, blockers: &[Blocker]) -> Result<(), String> {
    let unblocked = unblocked_plugins(problem, blockers);
    let mut without = problem.clone();
    // Also removes a plugin that is running for an unmanaged JAR.
    if let Some(running) = &mut without.request.running {
        running.unrequested.retain(|key| {
            let index = rules::project_index(&problem.catalog, key);
            index.is_none_or(|index| !is_blocked(blockers, &problem.catalog.projects[index].name))
        });
    }
    if are_ready(&without, minecraft, &unblocked) {
        Ok(())
    } else {
        Err(format!("{unblocked:?} are not ready for {minecraft}"))
    }
}

fn check_blockers(problem: &Problem, solved: &SolvedExplanation, tried: &Tried) -> Result<(), String> {
    for newer in &solved.newer_paper {
        let usable = newer.unusable.as_ref().map(|_| with_usable_paper(problem, &newer.minecraft));
        let problem = usable.as_ref().unwrap_or(problem);
        check_blockers_complete(problem, &newer.minecraft, &newer.blocked_by)?;
        if newer.blocked_by.is_empty() {
            continue;
        }
        if is_solvable(&force_paper(problem, &newer.minecraft, &|_| true)) {
            return Err(format!("{} can be forced although it is held", newer.minecraft));
        }
        tried.record("a held Paper");
        if !can_be_solved_alone(problem) {
            continue;
        }
        let mut blocking_together = Vec::new();
        for blocker in &newer.blocked_by {
            let mut objects = objects_of(problem, &blocker.name);
            if objects.is_empty() {
                // The plugin is not requested, so the plugins that need it block together with it.
                objects = blocker.needed_by.iter().flat_map(|name| objects_of(problem, name)).collect();
                let is_unmanaged = |name: &String| problem.request.unmanaged.iter().any(|jar| jar.file == *name);
                if objects.is_empty() && !blocker.needed_by.iter().any(is_unmanaged) {
                    return Err(format!("{} holds {} for nobody", blocker.name, newer.minecraft));
                }
            } else if !blocker.together_with.is_empty() {
                blocking_together.extend(objects);
                blocking_together.extend(blocker.together_with.iter().flat_map(|name| objects_of(problem, name)));
                continue;
            }
            if is_solvable(&force_paper(problem, &newer.minecraft, &|plugin_request| {
                objects.contains(&plugin_request.object)
            })) {
                return Err(format!("{} alone does not hold {}", blocker.name, newer.minecraft));
            }
            tried.record("one who holds it alone");
        }
        if !blocking_together.is_empty()
            && is_solvable(&force_paper(problem, &newer.minecraft, &|plugin_request| {
                blocking_together.contains(&plugin_request.object)
            }))
        {
            return Err(format!("{blocking_together:?} do not hold {} together", newer.minecraft));
        }
    }
    Ok(())
}

#[test]
fn paper_blockers_really_block() {
    let tried = Tried::default();
    for_all(6_000_000, |problem| match resolve_problem(problem) {
        Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) => {
            check_blockers(problem, &solved, &tried)
        }
        Ok(_) | Err(_) => Ok(()),
    });
    tried.assert_enough(&[("a held Paper", 20), ("one who holds it alone", 20)]);
}

#[test]
fn release_not_chosen_cannot_be_forced() {
    let tried = Tried::default();
    for_all(7_000_000, |problem| {
        let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = resolve_problem(problem) else {
            return Ok(());
        };
        for (plugin, newer) in ChosenPlugin::newer(&solved.plugins) {
            let unique = |version: &str| {
                let project = problem.catalog.projects.iter().find(|project| project.name == plugin.name).unwrap();
                project.releases.iter().filter(|release| texts_equal(&release.version, version)).count() == 1
            };
            let objects = objects_of(problem, &plugin.name);
            let unlisted = matches!(newer.because, WhyOlder::NotListed { .. } | WhyOlder::Others { .. });
            if !unlisted || objects.len() != 1 || !unique(&newer.version) || !solved.left_behind.is_empty() {
                continue;
            }
            // Plugins before it in the order keep their releases, because a newer release may be possible at their
            // cost.
            let mut changed = force_paper(problem, &lock.minecraft, &|_| true);
            for plugin_request in &mut changed.request.plugins {
                let index = rules::project_index(&problem.catalog, &plugin_request.key).unwrap();
                let chosen = lock.plugins.iter().find(|other| other.project_id == problem.catalog.projects[index].id);
                let chosen = &chosen.unwrap().version;
                if objects.contains(&plugin_request.object) {
                    plugin_request.version = VersionRequest::Pin { version: newer.version.clone() };
                } else if plugin_request.object < objects[0] {
                    plugin_request.version = VersionRequest::Pin { version: chosen.clone() };
                }
            }
            if !is_unsolvable(&changed) && matches!(newer.because, WhyOlder::NotListed { .. }) {
                return Err(format!("{} {} can be forced in", plugin.name, newer.version));
            }
            if let WhyOlder::Others { with, .. } = &newer.because
                && with.is_empty()
            {
                return Err(format!("{} {} does not go together with nobody", plugin.name, newer.version));
            }
            tried.record("a newer release");
        }
        Ok(())
    });
    tried.assert_enough(&[("a newer release", 20)]);
}

fn texts_equal(a: &str, b: &str) -> bool {
    super::texts::pin_matches(a, b)
}

fn check_why_not(problem: &Problem, why: &WhyNot, tried: &Tried) -> Result<(), String> {
    let forced_problem = force_paper(problem, &why.target, &|_| true);
    let possible = resolve_problem(&forced_problem).is_ok();
    if let Some(shared_name) = &why.shared_name
        && let Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) = resolve_problem(&forced_problem)
        && solved.deploy_blocker().is_none()
    {
        return Err(format!("{} is said to bring two files of one name, and does not: {shared_name:?}", why.target));
    }
    let free = why.pinned.is_none() && why.unusable.is_none() && why.shared_name.is_none();
    if why.possible && !possible {
        return Err(format!("{} is called possible", why.target));
    }
    if free && !why.possible && possible {
        return Err(format!("{} is possible and called impossible", why.target));
    }
    let Ok(book) = Book::new(&forced_problem.catalog, &forced_problem.request, forced_problem.now) else {
        return Ok(());
    };
    if why.exists != book.papers.iter().any(|paper| *paper.minecraft == why.target) {
        return Err(format!("{}: exists {}", why.target, why.exists));
    }
    if why.exists {
        let usable = why.unusable.as_ref().map(|_| with_usable_paper(problem, &why.target));
        let problem = usable.as_ref().unwrap_or(problem);
        check_blockers_complete(problem, &why.target, &why.blockers)?;
        let unblocked = unblocked_plugins(problem, &why.blockers);
        let retained = problem.request.running.iter().flat_map(|running| &running.unrequested);
        let retained: Vec<&str> = retained
            .filter_map(|key| {
                Some(problem.catalog.projects[rules::project_index(&problem.catalog, key)?].name.as_str())
            })
            .collect();
        let is_ready =
            |name: &str| unblocked.contains(&name) || retained.contains(&name) && !is_blocked(&why.blockers, name);
        if let Some(name) = why.ready.iter().find(|name| !is_ready(name)) {
            return Err(format!("{name} is called ready for {} and holds it, or nobody wants it", why.target));
        }
        if let Some(name) = unblocked.iter().find(|name| !why.ready.iter().any(|ready| ready == *name)) {
            return Err(format!("{name} is asked for, does not hold {}, and is not called ready", why.target));
        }
        if !why.blockers.is_empty() && is_solvable(&force_paper(problem, &why.target, &|_| true)) {
            return Err(format!("{} can be had, and {:?} are said to hold it", why.target, why.blockers));
        }
    }
    for hint in &why.hints {
        let mut pinned = problem.clone();
        if why.pinned.is_none() && !hint.steps.contains(&HintStep::UnpinServer) {
            // If the version cannot be chosen at all, the hints lead to the nearest one that can.
            pinned = force_paper(&pinned, why.nearest.first().unwrap_or(&why.target), &|_| true);
        }
        check_hint(&pinned, hint)?;
        tried.record("a hint");
    }
    tried.record(if why.possible { "nothing against it" } else { "something against it" });
    why.blockers.iter().for_each(|_| tried.record("a blocker"));
    Ok(())
}

#[test]
fn why_not_answers_are_true() {
    let tried = Tried::default();
    for_all(8_000_000, |problem| {
        for version in &problem.catalog.paper {
            if let Ok(why) = why_not(&problem.catalog, &problem.request, &version.minecraft, problem.now) {
                check_why_not(problem, &why, &tried)?;
            }
        }
        Ok(())
    });
    let kinds = ["a hint", "a blocker", "nothing against it", "something against it"];
    tried.assert_enough(&kinds.map(|kind| (kind, 20)));
}
