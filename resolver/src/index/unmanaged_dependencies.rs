//! Pure. What JARs of people's own need, by what is inside them and by the pages of those whose release is known: a plugin that runs for one
//! of them stays, although nobody asks for it. Nothing is brought for them; what only a page requires and nobody has is told.

use std::collections::{BTreeMap, BTreeSet};

use super::delay_groups::Companion;
use super::dependency_closure::{DependencyTarget, Gap, find, in_order, target};
use super::eligibility_cache::EligibilityTable;
use super::identified_jars::{KnownFile, are_namesakes, known_files};
use super::jar_selection::Jars;
use super::provided_names::DeclaredNames;
use super::version_bounds::BoundContext;
use super::{CandidateIndex, RequestedBy, Rules};
use crate::catalog::{Catalog, Channel, DependencyKind, Project, ProjectKey};
use crate::name_conflict::folded;
use crate::request::Request;
use crate::solve::provider::Chosen;
use crate::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};

/// What a JAR of people's own needs.
struct Need<'a> {
    /// Its name in `plugins/`.
    file: &'a str,
    /// Where that is; None: a name says not where.
    project: Option<&'a Project>,
    /// The names, folded, under which it is found. Whoever has one of them will do.
    names: BTreeSet<String>,
}

impl Need<'_> {
    /// Whether it is this project, or its namesake at the other site.
    fn is_for(&self, project: &Project) -> bool {
        self.project.is_some_and(|own| std::ptr::eq(own, project) || are_namesakes(own, project))
    }

    fn is_met_by(&self, project: &Project, spoken: &DeclaredNames) -> bool {
        self.is_for(project) || self.names.iter().any(|name| spoken.bears(project, name))
    }

    /// Whether a JAR of people's own will do.
    fn is_met_by_own(&self, catalog: &Catalog, request: &Request, files: &[KnownFile<'_>]) -> bool {
        let has_one = |jar: &UnmanagedJar| jar.names().any(|name| self.names.contains(&folded(name)));
        // A site may know whose bytes they are, and of which release not, or of one for other software.
        let is_its = |jar: &UnmanagedJar| {
            let owner = jar.sha256.as_ref().and_then(|sha256| catalog.owners.get(sha256));
            let whose = owner.and_then(|owner| catalog.project(&owner.project));
            whose.zip(self.project).is_some_and(|(one, other)| std::ptr::eq(one, other))
        };
        request.unmanaged.iter().any(|jar| has_one(jar) || is_its(jar))
            || files.iter().any(|file| self.is_for(file.project))
    }
}

/// The plugins that nobody asks for and that stay, by the places of their projects, with the files that need each.
///
/// Only what runs stays: a JAR that lacks somebody is no worse off than today. What was brought for a managed plugin may be needed by a JAR
/// that its owner added later; nobody told us, and the JAR says it itself, or its page does.
pub(super) fn kept<'a>(
    judgements: &mut EligibilityTable<'a>,
    request: &'a Request,
    asked: &BTreeMap<usize, (RequestedBy<'a>, Rules<'a>)>,
    gap: &mut Gap,
) -> BTreeMap<usize, Vec<String>> {
    let catalog = judgements.catalog;
    let requested: BTreeSet<usize> = asked.keys().copied().collect();
    let files = known_files(catalog, request, &requested);
    let mut needs = by_names(request);
    needs.extend(by_pages(judgements, request, (&files, &BoundContext::of(request, &requested, None)), gap));
    needs.retain(|need| !need.is_met_by_own(catalog, request, &files));
    let mut kept: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    if needs.is_empty() {
        return kept;
    }
    for (&place, (_, rules)) in asked {
        let spoken = judgements.spoken(place, &rules.jars);
        needs.retain(|need| !need.is_met_by(&catalog.projects[place], &spoken));
    }
    let mut met = vec![false; needs.len()];
    let mut missing = Gap::default();
    for key in unasked(request).iter().filter(|_| !needs.is_empty()) {
        let Some(place) = judgements.find_or_note(key, &mut missing) else { continue };
        let spoken = judgements.spoken(place, &Jars::main_for(request.software));
        let mut files = BTreeSet::new();
        for (need, met) in needs.iter().zip(&mut met) {
            if need.is_met_by(&catalog.projects[place], &spoken) {
                *met = true;
                files.insert(need.file);
            }
        }
        if !files.is_empty() && !requested.contains(&place) {
            kept.insert(place, files.into_iter().map(str::to_owned).collect());
        }
    }
    gap.fetch.append(&mut missing.fetch);
    // What cannot be read may be what a name means. Where a page says where it is, it is not that.
    if needs.iter().zip(met).any(|(need, met)| !met && need.project.is_none()) {
        gap.unread.append(&mut missing.unread);
    }
    kept
}

fn unasked(request: &Request) -> &[ProjectKey] {
    request.running.as_ref().map_or(&[], |running| &running.unasked)
}

/// The names that JARs of people's own do not load without.
fn by_names<'a>(request: &'a Request) -> Vec<Need<'a>> {
    if request.unmanaged_plugins == UnmanagedPlugins::Ignore || !request.software.is_minecraft() {
        return Vec::new();
    }
    let of = |jar: &'a UnmanagedJar| {
        let names = jar.depend.iter().map(|name| BTreeSet::from([folded(name)]));
        names.map(|names| Need { file: &jar.file, project: None, names })
    };
    request.unmanaged.iter().flat_map(of).collect()
}

/// What the pages of these files require. What has to be read first is noted in `gap`.
fn by_pages<'a>(
    judgements: &mut EligibilityTable<'a>,
    request: &'a Request,
    (files, facing): (&[KnownFile<'a>], &BoundContext<'_>),
    gap: &mut Gap,
) -> Vec<Need<'a>> {
    let catalog = judgements.catalog;
    let mut needs = Vec::new();
    for file in files {
        for line in in_order(file.release).into_iter().filter(|line| line.kind == DependencyKind::Required) {
            match target(catalog, facing, file.place, line) {
                DependencyTarget::Project(place) => {
                    let project = &catalog.projects[place];
                    let names = judgements.spoken(place, &Jars::main_for(request.software)).names(project);
                    needs.push(Need { file: file.file, project: Some(project), names });
                }
                DependencyTarget::Fetch(key) => drop(gap.fetch.insert(key)),
                // It may be one of those that run, and is not to be taken away.
                DependencyTarget::Unread { project: name, because: _ } | DependencyTarget::Outside(name) => {
                    needs.push(Need { file: file.file, project: None, names: BTreeSet::from([folded(&name)]) });
                }
                // The others no page ever means.
                DependencyTarget::Nothing
                | DependencyTarget::Unknown { .. }
                | DependencyTarget::Missing(_)
                | DependencyTarget::Own => {}
            }
        }
    }
    needs
}

/// What the page of a JAR of people's own requires and nobody on the server is known to be.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MissingDependency<'x> {
    /// The JAR.
    pub(crate) file: &'x str,
    /// What is required, by the name that people know.
    pub(crate) plugin: &'x str,
    /// Where it is.
    pub(crate) project: &'x ProjectKey,
}

impl CandidateIndex<'_> {
    /// What pages of files require and is not there with these releases either.
    pub(crate) fn missing(&self, chosen: &Chosen) -> BTreeSet<MissingDependency<'_>> {
        let (catalog, request) = (self.judgements.catalog, self.request);
        if request.unmanaged.is_empty() {
            return BTreeSet::new();
        }
        let asked = self.shelves.iter().filter(|shelf| shelf.asked.is_some());
        let requested: BTreeSet<usize> = asked.filter_map(|shelf| find(catalog, &shelf.project.key)).collect();
        let files = known_files(catalog, request, &requested);
        let facing = BoundContext::of(request, &requested, None);
        // All of it was read before there was a world.
        let mut needs = by_pages(&mut self.judgements.continued(), request, (&files, &facing), &mut Gap::default());
        needs.retain(|need| need.project.is_some() && !need.is_met_by_own(catalog, request, &files));
        if needs.is_empty() {
            return BTreeSet::new();
        }
        // One that is asked for and does not come now is told elsewhere.
        for (shelf, place) in self.shelves.iter().zip(&chosen.releases) {
            if shelf.asked.is_some() || place.is_some() {
                let spoken = DeclaredNames::of(shelf.project, &shelf.rules.jars);
                needs.retain(|need| !need.is_met_by(shelf.project, &spoken));
            }
        }
        // What the source of a page does not have is believed to be there, as everywhere.
        let known = needs.into_iter().filter_map(|need| Some((need.file, need.project?)));
        known.map(|(file, project)| MissingDependency { file, plugin: &project.name, project: &project.key }).collect()
    }
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
