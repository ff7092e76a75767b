//! Pure. What JARs of people's own need: what they do not load without, by what is inside them, and what the pages require of
//! those whose release is known. What runs of it stays; what only a page leads to and does not run comes where it can.

use std::collections::{BTreeMap, BTreeSet};

use super::closure::{Gap, Target, in_order, target};
use super::companions::Companion;
use super::jars::Jars;
use super::judgements::Judgements;
use super::known_files::{KnownFile, known_files};
use super::{Asked, Rules};
use crate::catalog::{Channel, DependencyKind, Project, ProjectKey};
use crate::declared::folded;
use crate::explain::{Lacks, Warning};
use crate::request::{Dependencies, Request};
use crate::unmanaged::{UnmanagedJar, UnmanagedPlugins};

/// What is needed of one plugin that nobody asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Needed {
    /// The files that need it, by name.
    files: BTreeSet<String>,
    /// Whether it runs: then it has to stay.
    runs: bool,
}

impl Needed {
    /// The files, by name.
    pub(super) fn files(&self) -> Vec<String> {
        self.files.iter().cloned().collect()
    }

    /// Whether it does not run, and comes where that is in nobody's way: the file runs without it, too.
    pub(super) fn is_brought(&self) -> bool {
        !self.runs
    }
}

/// What plugins are asked for, by the places of their projects.
type AskedFor<'a> = BTreeMap<usize, (Asked<'a>, Rules<'a>)>;

/// The plugins that nobody asks for and that files need, by the places of their projects.
///
/// By what is inside a JAR only what runs is needed: a name says not where that is, and a JAR that lacks somebody does not load
/// today either. What was brought for a managed plugin may be needed by a JAR that its owner added later; nobody told us, and the
/// JAR says it itself. A page says where it is, so what is not there can come. What cannot is told.
pub(super) fn needed<'a>(
    judgements: &mut Judgements<'a>,
    request: &'a Request,
    asked: &AskedFor<'a>,
    (warnings, gap): (&mut Vec<Warning>, &mut Gap),
) -> BTreeMap<usize, Needed> {
    let mut finding = Finding { lacks: lacks(request), needed: BTreeMap::new(), judgements, request, asked };
    let members = asked.keys().copied().collect();
    let files = known_files(finding.judgements.catalog, request, &members);
    if finding.lacks.is_empty() && files.is_empty() {
        return finding.needed;
    }
    finding.by_names(gap);
    for file in &files {
        finding.by_page(file, warnings, gap);
    }
    finding.needed
}

struct Finding<'j, 'a> {
    judgements: &'j mut Judgements<'a>,
    request: &'a Request,
    asked: &'j AskedFor<'a>,
    /// The names, folded, that files do not load without and nobody has, with the files.
    lacks: BTreeMap<String, Vec<&'a str>>,
    needed: BTreeMap<usize, Needed>,
}

impl<'a> Finding<'_, 'a> {
    fn unasked(&self) -> &'a [ProjectKey] {
        self.request.running.as_ref().map_or(&[], |running| &running.unasked)
    }

    /// What runs, and bears a name that a JAR does not load without. Its names are nobody's lack any more.
    fn by_names(&mut self, gap: &mut Gap) {
        let catalog = self.judgements.catalog;
        for (&place, (_, rules)) in self.asked {
            let spoken = self.judgements.spoken(place, &rules.jars);
            self.lacks.retain(|name, _| !spoken.bears(&catalog.projects[place], name));
        }
        let mut met: BTreeSet<String> = BTreeSet::new();
        for key in self.unasked().iter().filter(|_| !self.lacks.is_empty()) {
            let Some(place) = self.judgements.find_or_note(key, gap) else { continue };
            if self.asked.contains_key(&place) {
                continue;
            }
            let spoken = self.judgements.spoken(place, &Jars::main_for(self.request.software));
            for (name, files) in self.lacks.iter().filter(|(name, _)| spoken.bears(&catalog.projects[place], name)) {
                let needed = self.needed.entry(place).or_default();
                needed.files.extend(files.iter().map(|&file| file.to_owned()));
                needed.runs = true;
                met.insert(name.clone());
            }
        }
        self.lacks.retain(|name, _| !met.contains(name));
    }

    /// What the page of a file's release requires; and what it has as optional and the JAR does not load without.
    fn by_page(&mut self, file: &KnownFile<'a>, warnings: &mut Vec<Warning>, gap: &mut Gap) {
        let catalog = self.judgements.catalog;
        for line in in_order(file.release) {
            let is_required = match line.kind {
                DependencyKind::Required => true,
                DependencyKind::Optional => false,
                DependencyKind::Incompatible | DependencyKind::Embedded => continue,
            };
            let told = |plugin: &str, because| Warning::FileLacks {
                file: file.file.to_owned(),
                plugin: plugin.to_owned(),
                because,
            };
            match target(catalog, self.request.software, file.place, line) {
                Target::Project(place) if is_required || self.is_lacked_by(file, place) => {
                    if self.is_met(place) {
                        continue;
                    }
                    let project = &catalog.projects[place];
                    let runs = self.runs(project);
                    if let Some(because) = self.in_the_way(project).filter(|_| !runs) {
                        warnings.push(told(&project.name, because));
                    } else {
                        let needed = self.needed.entry(place).or_default();
                        needed.files.insert(file.file.to_owned());
                        needed.runs |= runs;
                    }
                }
                // An optional one is looked at where the JAR does not load without somebody: it may be that.
                Target::Fetch(key) if is_required || self.lacks_any(file) => drop(gap.fetch.insert(key)),
                Target::Unread { project, because } if is_required => {
                    // It may be one of those that run, and is not to be taken away.
                    for key in self.unasked() {
                        self.judgements.find_or_note(key, gap);
                    }
                    warnings.push(told(&project, Lacks::Unread { because }));
                }
                Target::Outside(name) if is_required && !self.is_there(&[folded(&name)]) => {
                    warnings.push(told(&name, Lacks::Elsewhere));
                }
                // Those of the second line no page ever means.
                Target::Project(_)
                | Target::Fetch(_)
                | Target::Unread { .. }
                | Target::Outside(_)
                | Target::Nothing
                | Target::Unknown { .. }
                | Target::Missing(_)
                | Target::Own => {}
            }
        }
    }

    fn lacks_any(&self, file: &KnownFile<'_>) -> bool {
        self.lacks.values().any(|files| files.contains(&file.file))
    }

    /// Whether a file does not load without a project, by a name that nobody has.
    fn is_lacked_by(&mut self, file: &KnownFile<'_>, place: usize) -> bool {
        let project = &self.judgements.catalog.projects[place];
        let spoken = self.judgements.spoken(place, &Jars::main_for(self.request.software));
        let mut of_file = self.lacks.iter().filter(|(_, files)| files.contains(&file.file));
        of_file.any(|(name, _)| spoken.bears(project, name))
    }

    /// Whether a project, or what is called so, is there anyway: asked for, or a JAR of people's own. What `depend` names counts
    /// more than the page: whoever bears the name will do.
    fn is_met(&mut self, place: usize) -> bool {
        let project = &self.judgements.catalog.projects[place];
        let spoken = self.judgements.spoken(place, &Jars::main_for(self.request.software));
        self.asked.contains_key(&place) || self.is_there(&spoken.names(project))
    }

    /// Whether anybody on the server has one of these names (folded).
    fn is_there(&mut self, names: &[String]) -> bool {
        let catalog = self.judgements.catalog;
        let has_one = |jar: &UnmanagedJar| names.iter().any(|name| jar.is_called(name));
        if self.request.unmanaged.iter().any(has_one) {
            return true;
        }
        self.asked.iter().any(|(&place, (_, rules))| {
            let spoken = self.judgements.spoken(place, &rules.jars);
            names.iter().any(|name| spoken.bears(&catalog.projects[place], name))
        })
    }

    /// Whether any release of it runs, or one that its page has lost.
    fn runs(&self, project: &Project) -> bool {
        let running = self.request.running.as_ref();
        let is_it = |key: &ProjectKey| self.judgements.catalog.project(key).is_some_and(|it| std::ptr::eq(it, project));
        let has_one = running.is_some_and(|running| project.releases.iter().any(|release| running.has(release)));
        has_one || self.unasked().iter().any(is_it)
    }

    /// Why what does not run is not brought.
    fn in_the_way(&self, project: &Project) -> Option<Lacks> {
        match self.request.dependencies {
            Dependencies::Forbid => return Some(Lacks::Forbidden),
            Dependencies::Propose => return Some(Lacks::Proposed { project: project.key.clone() }),
            Dependencies::Install => {}
        }
        // One that nobody could read may be just that plugin, and of two with one name the server loads one.
        let unread = self.request.unmanaged.iter().find(|jar| jar.name.is_none())?;
        Some(Lacks::Unclear { file: unread.file.clone() })
    }
}

/// The names, folded, that JARs of people's own do not load without and none of them has, with their files.
fn lacks(request: &Request) -> BTreeMap<String, Vec<&str>> {
    let mut lacks: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    if request.unmanaged_plugins == UnmanagedPlugins::Ignore || !request.software.is_minecraft() {
        return lacks;
    }
    for jar in &request.unmanaged {
        for name in &jar.depend {
            lacks.entry(folded(name)).or_default().push(&jar.file);
        }
    }
    for name in request.unmanaged.iter().flat_map(UnmanagedJar::names) {
        lacks.remove(&folded(name));
    }
    lacks
}

/// The rules of a plugin that stays or comes for them: nobody has written any, so it takes nothing that is younger than all that
/// somebody asks for.
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
