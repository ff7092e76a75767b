//! Pure. Whether a plugin that is called ready for a Paper really is.

use resolver::catalog::Project;
use resolver::request::VersionWish;
use resolver::version::Minecraft;

use super::inside;
use super::problem::Problem;
use super::properties::{forced, is_no, is_yes, objects_of};

/// Whether some set of what is asked for, with this plugin in it and with or without the pins of the others, goes on a Paper. Which
/// of the others it takes is open: what a plugin needs by its page or by a fact, and on whose terms, is for those to say.
pub(crate) fn is_ready(problem: &Problem, minecraft: &Minecraft, name: &str) -> bool {
    let own = objects_of(problem, name);
    let mut others: Vec<Vec<String>> =
        problem.catalog.projects.iter().map(|of| objects_of(problem, &of.name)).collect();
    others.retain(|objects| !objects.is_empty() && *objects != own);
    // A fact may name a plugin of another site, which is known by that name only while it is asked for: without it nobody
    // knows, and with it that plugin may be the one that is not ready.
    let request = &problem.request;
    let named = !request.facts.all().is_empty() || request.plugins.iter().any(|wish| !wish.requires.is_empty());
    let goes = |problem: &Problem| if named { !is_no(problem) } else { is_yes(problem) };
    let all = 1_usize << others.len();
    // Among those whose JARs nobody has read may be the one that a JAR needs: with some of them left out it would be known to be
    // missing.
    let is_read = |project: &Project| project.releases.iter().any(|release| release.declared.is_some());
    let mut problem = problem.clone();
    if problem.catalog.projects.iter().any(|project| !is_read(project)) {
        inside::forget_needs(&mut problem.catalog);
    }
    let problem = &problem;
    // Alone, then with all of them: one of the two mostly shows it.
    [0, all - 1].into_iter().chain(1..all - 1).any(|with| {
        let taken: Vec<&String> =
            (0..others.len()).filter(|at| with >> at & 1 == 1).flat_map(|at| &others[at]).collect();
        let forced = forced(problem, minecraft, &|wish| own.contains(&wish.object) || taken.contains(&&wish.object));
        let mut free = forced.clone();
        for wish in free.request.plugins.iter_mut().filter(|wish| !own.contains(&wish.object)) {
            wish.version = VersionWish::Auto;
        }
        // A pin may be what lets a release be used that is too young.
        goes(&forced) || free != forced && goes(&free)
    })
}
