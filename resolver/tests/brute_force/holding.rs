//! Pure. Tests on random small problems that every reported blocker is one: a solve that is forced past it fails.

use resolver::Resolution;
use resolver::explain::{Blocker, ChosenPlugin, Explanation, HintStep, SolvedExplanation, WhyNot, WhyOlder};
use resolver::request::VersionRequest;
use resolver::version::Minecraft;
use resolver::why_not;

use super::because::Tried;
use super::problem::Problem;
use super::properties::{always, answer, can_stand_alone, forced, is_no, is_yes, keeps_its_word, objects_of};
use super::ready::{are_ready, made_usable};
use super::rules::{self, Book};

/// Whether a plugin blocks a Paper, or needs a blocker.
fn holds(holders: &[Blocker], name: &str) -> bool {
    holders.iter().any(|holder| holder.name == name || holder.needed_by.iter().any(|by| by == name))
}

/// The requested plugins that do not.
fn the_rest<'p>(problem: &'p Problem, holders: &[Blocker]) -> Vec<&'p str> {
    let asked = problem.catalog.projects.iter().filter(|project| !objects_of(problem, &project.name).is_empty());
    asked.map(|project| project.name.as_str()).filter(|name| !holds(holders, name)).collect()
}

/// Checks that all blockers are reported: without them, the Paper can be chosen.
fn nobody_else_holds(problem: &Problem, minecraft: &Minecraft, holders: &[Blocker]) -> Result<(), String> {
    let rest = the_rest(problem, holders);
    let mut without = problem.clone();
    // Also removes a plugin that is running for an unmanaged JAR.
    if let Some(running) = &mut without.request.running {
        running.unasked.retain(|key| {
            let place = rules::place_of(&problem.catalog, key);
            place.is_none_or(|place| !holds(holders, &problem.catalog.projects[place].name))
        });
    }
    if are_ready(&without, minecraft, &rest) { Ok(()) } else { Err(format!("{rest:?} are not ready for {minecraft}")) }
}

fn holders_hold(problem: &Problem, solved: &SolvedExplanation, tried: &Tried) -> Result<(), String> {
    for newer in &solved.newer_paper {
        let usable = newer.unusable.as_ref().map(|_| made_usable(problem, &newer.minecraft));
        let problem = usable.as_ref().unwrap_or(problem);
        nobody_else_holds(problem, &newer.minecraft, &newer.held_by)?;
        if newer.held_by.is_empty() {
            continue;
        }
        if is_yes(&forced(problem, &newer.minecraft, &|_| true)) {
            return Err(format!("{} can be forced although it is held", newer.minecraft));
        }
        tried.note("a held Paper");
        if !can_stand_alone(problem) {
            continue;
        }
        let mut together = Vec::new();
        for holder in &newer.held_by {
            let mut objects = objects_of(problem, &holder.name);
            if objects.is_empty() {
                // The plugin is not requested, so the plugins that need it block together with it.
                objects = holder.needed_by.iter().flat_map(|name| objects_of(problem, name)).collect();
                let is_own = |name: &String| problem.request.unmanaged.iter().any(|jar| jar.file == *name);
                if objects.is_empty() && !holder.needed_by.iter().any(is_own) {
                    return Err(format!("{} holds {} for nobody", holder.name, newer.minecraft));
                }
            } else if !holder.together_with.is_empty() {
                together.extend(objects);
                together.extend(holder.together_with.iter().flat_map(|name| objects_of(problem, name)));
                continue;
            }
            if is_yes(&forced(problem, &newer.minecraft, &|wish| objects.contains(&wish.object))) {
                return Err(format!("{} alone does not hold {}", holder.name, newer.minecraft));
            }
            tried.note("one who holds it alone");
        }
        if !together.is_empty() && is_yes(&forced(problem, &newer.minecraft, &|wish| together.contains(&wish.object))) {
            return Err(format!("{together:?} do not hold {} together", newer.minecraft));
        }
    }
    Ok(())
}

#[test]
fn paper_blockers_really_block() {
    let tried = Tried::default();
    always(6_000_000, |problem| match answer(problem) {
        Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) => holders_hold(problem, &solved, &tried),
        Ok(_) | Err(_) => Ok(()),
    });
    tried.are_enough(&[("a held Paper", 20), ("one who holds it alone", 20)]);
}

#[test]
fn release_not_chosen_cannot_be_forced() {
    let tried = Tried::default();
    always(7_000_000, |problem| {
        let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = answer(problem) else { return Ok(()) };
        for (plugin, newer) in ChosenPlugin::newer(&solved.plugins) {
            let unique = |version: &str| {
                let project = problem.catalog.projects.iter().find(|project| project.name == plugin.name).unwrap();
                project.releases.iter().filter(|release| texts_equal(&release.version, version)).count() == 1
            };
            let objects = objects_of(problem, &plugin.name);
            let unlisted = matches!(newer.because, WhyOlder::NotListed { .. } | WhyOlder::Others { .. });
            if !unlisted || objects.len() != 1 || !unique(&newer.version) || !solved.unfollowed.is_empty() {
                continue;
            }
            // Plugins before it in the order keep their releases, because a newer release may be possible at their
            // cost.
            let mut changed = forced(problem, &lock.minecraft, &|_| true);
            for wish in &mut changed.request.plugins {
                let place = rules::place_of(&problem.catalog, &wish.key).unwrap();
                let chosen = lock.plugins.iter().find(|other| other.project_id == problem.catalog.projects[place].id);
                let chosen = &chosen.unwrap().version;
                if objects.contains(&wish.object) {
                    wish.version = VersionRequest::Pin { version: newer.version.clone() };
                } else if wish.object < objects[0] {
                    wish.version = VersionRequest::Pin { version: chosen.clone() };
                }
            }
            if !is_no(&changed) && matches!(newer.because, WhyOlder::NotListed { .. }) {
                return Err(format!("{} {} can be forced in", plugin.name, newer.version));
            }
            if let WhyOlder::Others { with, .. } = &newer.because
                && with.is_empty()
            {
                return Err(format!("{} {} does not go together with nobody", plugin.name, newer.version));
            }
            tried.note("a newer release");
        }
        Ok(())
    });
    tried.are_enough(&[("a newer release", 20)]);
}

fn texts_equal(a: &str, b: &str) -> bool {
    super::texts::pin_means(a, b)
}

fn target_is_true(problem: &Problem, why: &WhyNot, tried: &Tried) -> Result<(), String> {
    let asked = forced(problem, &why.target, &|_| true);
    let possible = answer(&asked).is_ok();
    if let Some(shared) = &why.shared_name
        && let Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) = answer(&asked)
        && solved.stopped_by().is_none()
    {
        return Err(format!("{} is said to bring two files of one name, and does not: {shared:?}", why.target));
    }
    let free = why.pinned.is_none() && why.unusable.is_none() && why.shared_name.is_none();
    if why.possible && !possible {
        return Err(format!("{} is called possible", why.target));
    }
    if free && !why.possible && possible {
        return Err(format!("{} is possible and called impossible", why.target));
    }
    let Ok(book) = Book::open(&asked.catalog, &asked.request, asked.now) else { return Ok(()) };
    if why.exists != book.papers.iter().any(|paper| *paper.minecraft == why.target) {
        return Err(format!("{}: exists {}", why.target, why.exists));
    }
    if why.exists {
        let usable = why.unusable.as_ref().map(|_| made_usable(problem, &why.target));
        let problem = usable.as_ref().unwrap_or(problem);
        nobody_else_holds(problem, &why.target, &why.holders)?;
        let rest = the_rest(problem, &why.holders);
        let stays = problem.request.running.iter().flat_map(|running| &running.unasked);
        let stays: Vec<&str> = stays
            .filter_map(|key| Some(problem.catalog.projects[rules::place_of(&problem.catalog, key)?].name.as_str()))
            .collect();
        let is_ready = |name: &str| rest.contains(&name) || stays.contains(&name) && !holds(&why.holders, name);
        if let Some(name) = why.ready.iter().find(|name| !is_ready(name)) {
            return Err(format!("{name} is called ready for {} and holds it, or nobody wants it", why.target));
        }
        if let Some(name) = rest.iter().find(|name| !why.ready.iter().any(|ready| ready == *name)) {
            return Err(format!("{name} is asked for, does not hold {}, and is not called ready", why.target));
        }
        if !why.holders.is_empty() && is_yes(&forced(problem, &why.target, &|_| true)) {
            return Err(format!("{} can be had, and {:?} are said to hold it", why.target, why.holders));
        }
    }
    for hint in &why.hints {
        let mut pinned = problem.clone();
        if why.pinned.is_none() && !hint.steps.contains(&HintStep::UnpinServer) {
            // If the version cannot be chosen at all, the hints lead to the nearest one that can.
            pinned = forced(&pinned, why.nearest.first().unwrap_or(&why.target), &|_| true);
        }
        keeps_its_word(&pinned, hint)?;
        tried.note("a hint");
    }
    tried.note(if why.possible { "nothing against it" } else { "something against it" });
    why.holders.iter().for_each(|_| tried.note("a holder"));
    Ok(())
}

#[test]
fn why_not_answers_are_true() {
    let tried = Tried::default();
    always(8_000_000, |problem| {
        for version in &problem.catalog.paper {
            if let Ok(why) = why_not(&problem.catalog, &problem.request, &version.minecraft, problem.now) {
                target_is_true(problem, &why, &tried)?;
            }
        }
        Ok(())
    });
    let kinds = ["a hint", "a holder", "nothing against it", "something against it"];
    tried.are_enough(&kinds.map(|kind| (kind, 20)));
}
