//! Pure. Tests on random small problems that every reported blocker really blocks: a solve with Paper pinned to the
//! blocked version fails.

use resolver::explanation::{Blocker, ChosenPlugin, Explanation, HintStep, SolvedExplanation, WhyNot, WhyOlder};
use resolver::model::request::VersionRequest;
use resolver::model::version::Minecraft;
use resolver::{Resolution, why_not};

use super::problem::Problem;
use super::properties::{
    can_be_solved_alone, check_hint, for_all, force_paper, is_solvable, is_unsolvable, objects_of, resolve_problem,
};
use super::ready::{are_ready, with_usable_paper};
use super::rules::{self, ServerRules};
use super::why_older::CaseCounts;

/// Whether a plugin blocks a Paper, or needs a blocker.
fn is_blocked(blockers: &[Blocker], name: &str) -> bool {
    blockers.iter().any(|blocker| blocker.name == name || blocker.needed_by.iter().any(|dependent| dependent == name))
}

/// The requested plugins that neither block a Paper nor need a blocker.
fn unblocked_plugins<'p>(problem: &'p Problem, blockers: &[Blocker]) -> Vec<&'p str> {
    let requested = problem.catalog.projects.iter().filter(|project| !objects_of(problem, &project.name).is_empty());
    requested.map(|project| project.name.as_str()).filter(|name| !is_blocked(blockers, name)).collect()
}

/// Checks that all blockers are reported: without the reported ones, the Paper can be chosen.
fn check_blockers_complete(problem: &Problem, minecraft: &Minecraft, blockers: &[Blocker]) -> Result<(), String> {
    let unblocked = unblocked_plugins(problem, blockers);
    let mut without = problem.clone();
    // Also removes blockers that run only because an unmanaged JAR needs them.
    if let Some(running) = &mut without.request.running {
        running.unrequested.retain(|key| {
            let index = rules::project_index(&problem.catalog, key);
            index.is_none_or(|index| !is_blocked(blockers, &problem.catalog.projects[index].name))
        });
    }
    if are_ready(&without, minecraft, &unblocked) {
        Ok(())
    } else {
        Err(format!("{unblocked:?} are not reported as blockers, but cannot all be installed on {minecraft}"))
    }
}

fn check_blockers(problem: &Problem, solved: &SolvedExplanation, counts: &CaseCounts) -> Result<(), String> {
    for newer in &solved.newer_paper {
        let usable = newer.unusable.as_ref().map(|_| with_usable_paper(problem, &newer.minecraft));
        let problem = usable.as_ref().unwrap_or(problem);
        check_blockers_complete(problem, &newer.minecraft, &newer.blocked_by)?;
        if newer.blocked_by.is_empty() {
            continue;
        }
        if is_solvable(&force_paper(problem, &newer.minecraft, &|_| true)) {
            return Err(format!("{} is reported as blocked, but a solve with this Paper succeeds", newer.minecraft));
        }
        counts.record("a blocked Paper");
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
                    return Err(format!(
                        "no requested plugin and no unmanaged JAR needs {}, an unrequested blocker of {}",
                        blocker.name, newer.minecraft
                    ));
                }
            } else if !blocker.together_with.is_empty() {
                blocking_together.extend(objects);
                blocking_together.extend(blocker.together_with.iter().flat_map(|name| objects_of(problem, name)));
                continue;
            }
            if is_solvable(&force_paper(problem, &newer.minecraft, &|plugin_request| {
                objects.contains(&plugin_request.object)
            })) {
                return Err(format!("a solve with only the blocker {} succeeds on {}", blocker.name, newer.minecraft));
            }
            counts.record("a plugin that blocks a Paper alone");
        }
        if !blocking_together.is_empty()
            && is_solvable(&force_paper(problem, &newer.minecraft, &|plugin_request| {
                blocking_together.contains(&plugin_request.object)
            }))
        {
            return Err(format!(
                "a solve with only the Plugins {blocking_together:?}, which block together, succeeds on {}",
                newer.minecraft
            ));
        }
    }
    Ok(())
}

#[test]
fn reported_paper_blockers_block_paper() {
    let counts = CaseCounts::default();
    for_all(6_000_000, |problem| match resolve_problem(problem) {
        Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) => {
            check_blockers(problem, &solved, &counts)
        }
        Ok(_) | Err(_) => Ok(()),
    });
    counts.assert_enough(&[("a blocked Paper", 20), ("a plugin that blocks a Paper alone", 20)]);
}

#[test]
fn newer_unlisted_release_cannot_be_pinned() {
    let counts = CaseCounts::default();
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
            // Plugins before it in the order are pinned to their chosen releases, because the newer release may be
            // possible with older releases of those.
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
                return Err(format!(
                    "{} {} is reported as unlisted, but a solve with it pinned does not fail",
                    plugin.name, newer.version
                ));
            }
            if let WhyOlder::Others { with, .. } = &newer.because
                && with.is_empty()
            {
                return Err(format!(
                    "{} {} is reported as incompatible with other plugins, but none is named",
                    plugin.name, newer.version
                ));
            }
            counts.record("a newer release that was not chosen");
        }
        Ok(())
    });
    counts.assert_enough(&[("a newer release that was not chosen", 20)]);
}

fn texts_equal(a: &str, b: &str) -> bool {
    super::texts::pin_matches(a, b)
}

fn check_why_not(problem: &Problem, why: &WhyNot, counts: &CaseCounts) -> Result<(), String> {
    let forced_problem = force_paper(problem, &why.target, &|_| true);
    let possible = resolve_problem(&forced_problem).is_ok();
    if let Some(shared_name) = &why.shared_name
        && let Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) = resolve_problem(&forced_problem)
        && solved.deploy_blocker().is_none()
    {
        return Err(format!(
            "two files with one plugin name are reported for {}, but its answer has no name conflict: {shared_name:?}",
            why.target
        ));
    }
    let free = why.pinned.is_none() && why.unusable.is_none() && why.shared_name.is_none();
    if why.possible && !possible {
        return Err(format!("{} is reported as possible, but a solve with this Paper fails", why.target));
    }
    if free && !why.possible && possible {
        return Err(format!("{} is reported as impossible, but a solve with this Paper succeeds", why.target));
    }
    let Ok(rules) = ServerRules::new(&forced_problem.catalog, &forced_problem.request, forced_problem.now) else {
        return Ok(());
    };
    if why.exists != rules.papers.iter().any(|paper| *paper.minecraft == why.target) {
        return Err(format!("whether {} exists is reported wrongly as {}", why.target, why.exists));
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
            return Err(format!(
                "{name} is reported as ready for {}, but blocks it, or is neither requested nor running",
                why.target
            ));
        }
        if let Some(name) = unblocked.iter().find(|name| !why.ready.iter().any(|ready| ready == *name)) {
            return Err(format!("{name} is requested and does not block {}, but is not reported as ready", why.target));
        }
        if !why.blockers.is_empty() && is_solvable(&force_paper(problem, &why.target, &|_| true)) {
            return Err(format!(
                "{:?} are reported as blockers of {}, but a solve with this Paper succeeds",
                why.blockers, why.target
            ));
        }
    }
    for hint in &why.hints {
        let mut pinned = problem.clone();
        if why.pinned.is_none() && !hint.steps.contains(&HintStep::UnpinServer) {
            // If the version cannot be chosen at all, the hints lead to the nearest version that can.
            pinned = force_paper(&pinned, why.nearest.first().unwrap_or(&why.target), &|_| true);
        }
        check_hint(&pinned, hint)?;
        counts.record("a hint");
    }
    counts.record(if why.possible { "a possible Paper" } else { "an impossible Paper" });
    why.blockers.iter().for_each(|_| counts.record("a blocker"));
    Ok(())
}

#[test]
fn why_not_answer_agrees_with_solve_of_that_paper() {
    let counts = CaseCounts::default();
    for_all(8_000_000, |problem| {
        for version in &problem.catalog.paper {
            if let Ok(why) = why_not(&problem.catalog, &problem.request, &version.minecraft, problem.now) {
                check_why_not(problem, &why, &counts)?;
            }
        }
        Ok(())
    });
    let kinds = ["a hint", "a blocker", "a possible Paper", "an impossible Paper"];
    counts.assert_enough(&kinds.map(|kind| (kind, 20)));
}
