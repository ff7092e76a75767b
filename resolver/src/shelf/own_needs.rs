//! Pure. What JARs of people's own do not load without: a plugin that runs for one of them stays, although nobody asks for it.

use std::collections::{BTreeMap, BTreeSet};

use super::closure::Gap;
use super::companions::Companion;
use super::jars::Jars;
use super::judgements::Judgements;
use super::{Asked, Rules};
use crate::catalog::{Channel, ProjectKey};
use crate::declared::folded;
use crate::request::Request;
use crate::unmanaged::{UnmanagedJar, UnmanagedPlugins};

/// The plugins that nobody asks for and that stay, by the places of their projects, with the files that need each.
///
/// Only what runs stays: a JAR that lacks somebody does not load today either, and nothing gets worse for it. What was brought
/// for a managed plugin may be needed by a JAR that its owner added later; nobody told us, and the JAR says it itself.
pub(super) fn kept<'a>(
    judgements: &mut Judgements<'a>,
    request: &'a Request,
    asked: &BTreeMap<usize, (Asked<'a>, Rules<'a>)>,
    gap: &mut Gap,
) -> BTreeMap<usize, Vec<String>> {
    let mut kept: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut needs = needs(request);
    if needs.is_empty() {
        return kept;
    }
    let catalog = judgements.catalog;
    for (&place, (_, rules)) in asked {
        let spoken = judgements.spoken(place, &rules.jars);
        needs.retain(|name, _| !spoken.bears(&catalog.projects[place], name));
    }
    let unasked: &[ProjectKey] = request.running.as_ref().map_or(&[], |running| &running.unasked);
    for key in unasked.iter().filter(|_| !needs.is_empty()) {
        let Some(place) = judgements.find_or_note(key, gap) else { continue };
        let spoken = judgements.spoken(place, &Jars::main_for(request.software));
        let borne = needs.iter().filter(|(name, _)| spoken.bears(&catalog.projects[place], name));
        let files: BTreeSet<&str> = borne.flat_map(|(_, files)| files.iter().copied()).collect();
        if !files.is_empty() && !asked.contains_key(&place) {
            kept.insert(place, files.into_iter().map(str::to_owned).collect());
        }
    }
    kept
}

/// The names, folded, that JARs of people's own do not load without and none of them has, with their files.
fn needs(request: &Request) -> BTreeMap<String, Vec<&str>> {
    let mut needs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    if request.unmanaged_plugins == UnmanagedPlugins::Ignore || !request.software.is_minecraft() {
        return needs;
    }
    for jar in &request.unmanaged {
        for name in &jar.depend {
            needs.entry(folded(name)).or_default().push(&jar.file);
        }
    }
    for name in request.unmanaged.iter().flat_map(UnmanagedJar::names) {
        needs.remove(&folded(name));
    }
    needs
}

/// The rules of a plugin that stays for them: nobody has written any, so it takes nothing that is younger than all that somebody
/// asks for.
pub(super) fn rules<'a>(request: &'a Request, together: Vec<Companion<'a>>) -> Rules<'a> {
    let delays = request.plugins.iter().map(|wish| wish.delay);
    Rules {
        channel: Channel::Release,
        delay: delays.fold(request.delay, std::cmp::Ord::max),
        may_go_down: false,
        hold: None,
        compatibility: None,
        pin: None,
        jars: Jars::main_for(request.software),
        requires: None,
        unlisted: request.unlisted,
        together,
    }
}
