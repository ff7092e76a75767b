//! Pure. Checks compatibility with unmanaged JARs whose release is known upstream: each is a package with one fixed
//! release.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::dependency_closure::{DependencyTarget, find, in_order, target};
use super::dependency_edges::guessed_minimum;
use super::eligibility::listed;
use super::version_bounds::BoundContext;
use super::{CandidateIndex, PluginCandidates};
use crate::catalog::{Catalog, Dependency, DependencyKind, Project, Release};
use crate::compatibility_facts::UsedFact;
use crate::known_constraints::Bound;
use crate::request::Request;
use crate::unmanaged_jar::UnmanagedPlugins;
use crate::unusable::{GroupSplit, Unusable};

/// An unmanaged JAR and the release it was identified as.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownFile<'a> {
    pub(super) file: &'a str,
    /// Position of the project.
    pub(super) place: usize,
    pub(super) project: &'a Project,
    pub(super) release: &'a Release,
}

impl PartialEq for KnownFile<'_> {
    fn eq(&self, other: &Self) -> bool {
        let Self { file, place, project: _, release } = self;
        (*file, *place, &release.id) == (other.file, other.place, &other.release.id)
    }
}

impl Eq for KnownFile<'_> {}

impl KnownFile<'_> {
    /// Whether the file belongs to the project at `place`, or to its namesake at another site.
    pub(super) fn is_of(&self, catalog: &Catalog, place: usize) -> bool {
        self.place == place || are_namesakes(self.project, &catalog.projects[place])
    }
}

/// Whether two projects are the same plugin at two sites.
pub(super) fn are_namesakes(one: &Project, other: &Project) -> bool {
    one.key.source != other.key.source && one.name.eq_ignore_ascii_case(&other.name)
}

/// The files that count, by name. A file whose project is among `members`, at either site, is a second file of an
/// installed plugin. The check for name conflicts reports it.
pub(super) fn known_files<'a>(
    catalog: &'a Catalog,
    request: &'a Request,
    members: &BTreeSet<usize>,
) -> Vec<KnownFile<'a>> {
    if catalog.owners.is_empty() || request.unmanaged_plugins == UnmanagedPlugins::Ignore {
        return Vec::new();
    }
    let known = request.unmanaged.iter().filter_map(|jar| {
        let (project, release) = catalog.release_of_file(request.software, jar.sha256.as_deref()?)?;
        let known = KnownFile { file: &jar.file, place: find(catalog, &project.key)?, project, release };
        (!members.iter().any(|&member| known.is_of(catalog, member))).then_some(known)
    });
    let mut known: Vec<KnownFile<'_>> = known.collect();
    known.sort_by_key(|known| known.file);
    known
}

/// The known relations between one file and the releases of one project.
struct FileCompatibility<'x> {
    file: &'x KnownFile<'x>,
    catalog: &'x Catalog,
    /// Position of the project.
    place: usize,
    /// Its releases and those of the file's project, oldest first.
    own: &'x [&'x Release],
    theirs: Vec<&'x Release>,
    /// The entries on the file's page about the project: the kind, and the release that it names.
    lines: Vec<(DependencyKind, Option<&'x str>)>,
    /// The versions of it that the file needs according to a fact.
    bound: Option<Bound>,
    /// Facts are resolved with this file alone, because they mean something else for another file.
    facing: BoundContext<'x>,
}

impl<'x> FileCompatibility<'x> {
    fn of(
        file: &'x KnownFile<'x>,
        (catalog, now): (&'x Catalog, Timestamp),
        (place, own): (usize, &'x [&'x Release]),
        facing: &BoundContext<'x>,
    ) -> Self {
        let about = |line: &&'x Dependency| leads_to(catalog, facing, file.place, line) == Some(place);
        Self {
            file,
            catalog,
            place,
            own,
            theirs: listed(file.project, now, |release| facing.runs(release), None),
            lines: (in_order(file.release).into_iter().filter(about))
                .map(|line| (line.kind, line.version_id.as_deref()))
                .collect(),
            bound: facing.bound_of(catalog, file, place),
            facing: facing.beside(std::slice::from_ref(file)),
        }
    }

    /// The reason why a release is incompatible with the file: an exclusion on a page, a release that a page names, a
    /// fact, or a publication date.
    fn against(&self, release: &Release) -> Option<Unusable> {
        let apart = self.by_pages(release).or_else(|| self.by_facts(release))?;
        let KnownFile { file, project, release: is, place: _ } = self.file;
        Some(Unusable::BesideFile {
            file: (*file).to_owned(),
            project: project.name.clone(),
            version: is.version.clone(),
            apart: Box::new(apart),
        })
    }

    /// The entries on a release's page about the file's project.
    fn lines_of<'r>(&self, release: &'r Release) -> Vec<(DependencyKind, Option<&'r str>)> {
        let about = |line: &&Dependency| {
            leads_to(self.catalog, &self.facing, self.place, line)
                .is_some_and(|found| self.file.is_of(self.catalog, found))
        };
        let lines = in_order(release).into_iter().filter(about);
        lines.map(|line| (line.kind, line.version_id.as_deref())).collect()
    }

    fn by_pages(&self, release: &Release) -> Option<GroupSplit> {
        let of_release = self.lines_of(release);
        let excluded = |lines: &[(DependencyKind, Option<&str>)], id: &str| {
            let excludes = |(kind, named): &(_, Option<&str>)| {
                *kind == DependencyKind::Incompatible && named.is_none_or(|named| named == id)
            };
            lines.iter().any(excludes)
        };
        let another = |lines: &[(DependencyKind, Option<&str>)], id: &str| named(lines).any(|named| named != id);
        let there = &self.file.release.id;
        match () {
            () if excluded(&self.lines, &release.id) => Some(GroupSplit::FileExcludes),
            () if excluded(&of_release, there) => Some(GroupSplit::Excludes),
            () if another(&self.lines, &release.id) => Some(GroupSplit::FileNames),
            () if another(&of_release, there) => Some(GroupSplit::Names),
            () => None,
        }
    }

    fn by_facts(&self, release: &Release) -> Option<GroupSplit> {
        let KnownFile { project, release: is, .. } = self.file;
        let (here, there) = ((&self.catalog.projects[self.place], release), (*project, *is));
        let of_file = self.bound.as_ref().and_then(|bound| {
            let dated = named(&self.lines).next().is_none();
            Some(match broken(bound, there, here, (self.own, dated))? {
                UnmetBound::Fact(fact) => GroupSplit::FileNeeds { fact },
                UnmetBound::Guess(at_least) => GroupSplit::FileGuessed { needs: here.0.name.clone(), at_least },
            })
        });
        let of_release = || {
            let bounds = self.facing.bounds(self.catalog, self.place, release).into_iter();
            let (_, bound) = bounds.rev().find(|(target, _)| matches!(target, DependencyTarget::Own))?;
            let dated = named(&self.lines_of(release)).next().is_none();
            Some(match broken(&bound, here, there, (&self.theirs, dated))? {
                UnmetBound::Fact(fact) => GroupSplit::Needs { fact },
                UnmetBound::Guess(at_least) => GroupSplit::Guessed { at_least },
            })
        };
        of_file.or_else(of_release)
    }
}

/// The target project of an entry on a project's page.
fn leads_to(catalog: &Catalog, facing: &BoundContext<'_>, place: usize, line: &Dependency) -> Option<usize> {
    let DependencyTarget::Project(found) = target(catalog, facing, place, line) else { return None };
    Some(found)
}

/// The releases that entries require by id.
fn named<'x>(lines: &[(DependencyKind, Option<&'x str>)]) -> impl Iterator<Item = &'x str> {
    let asks = |kind| matches!(kind, DependencyKind::Required | DependencyKind::Optional);
    lines.iter().filter(move |(kind, _)| asks(*kind)).filter_map(|(_, named)| *named)
}

/// The unmet part of a bound.
enum UnmetBound {
    Fact(UsedFact),
    /// The minimum version guessed from publication dates.
    Guess(String),
}

/// Returns why a release does not accept the installed version of the other project, if so. `others` holds the releases
/// of that project, oldest first, and whether dates count. If a page names the release, dates do not count.
fn broken(
    bound: &Bound,
    (project, release): (&Project, &Release),
    (needed, there): (&Project, &Release),
    (others, dated): (&[&Release], bool),
) -> Option<UnmetBound> {
    match bound {
        Bound::Within(range, says) | Bound::Same(range, says) => (!range.has(&there.version)).then(|| {
            UnmetBound::Fact(UsedFact {
                plugin: project.name.clone(),
                version: release.version.clone(),
                needs: needed.name.clone(),
                range: range.clone(),
                says: says.clone(),
            })
        }),
        Bound::Guess => {
            let least = guessed_minimum(others, release).filter(|_| dated)?;
            let is = others.iter().position(|other| other.id == there.id)?;
            (is + 1 < least).then(|| UnmetBound::Guess(others[least - 1].version.clone()))
        }
    }
}

/// For each of these releases (oldest first) of the project at `place`: what keeps it from running beside the files.
///
/// A file that is incompatible with a running release blocks no release. The conflict exists already, and holding back
/// updates would not fix it.
pub(super) fn against(
    at: (&Catalog, Timestamp),
    place: usize,
    releases: &[&Release],
    files: &[KnownFile<'_>],
    facing: &BoundContext<'_>,
) -> Vec<Option<Unusable>> {
    if files.is_empty() {
        return vec![None; releases.len()];
    }
    let running = || releases.iter().filter(|release| facing.runs(release));
    let all = files.iter().map(|file| FileCompatibility::of(file, at, (place, releases), facing));
    let binding: Vec<FileCompatibility<'_>> =
        all.filter(|beside| !running().any(|release| beside.against(release).is_some())).collect();
    releases.iter().map(|release| binding.iter().find_map(|beside| beside.against(release))).collect()
}

impl CandidateIndex<'_> {
    /// The incompatibilities of a release with unmanaged JARs. For a release that was chosen they do not block it,
    /// because the conflict exists already.
    pub(crate) fn beside(&self, at: usize, place: usize) -> Vec<Unusable> {
        let catalog = self.judgements.catalog;
        let places = |which: &dyn Fn(&PluginCandidates<'_>) -> bool| -> BTreeSet<usize> {
            let members = self.shelves.iter().filter(|member| which(member));
            members.filter_map(|member| find(catalog, &member.project.key)).collect()
        };
        let files = known_files(catalog, self.request, &places(&|member| member.is_wanted()));
        let PluginCandidates { project, rules, releases, .. } = &*self.shelves[at];
        let Some(own) = find(catalog, &project.key).filter(|_| !files.is_empty()) else { return Vec::new() };
        let requested = places(&|member| member.asked.is_some());
        let facing = BoundContext::of(self.request, &requested, rules.requires);
        let releases: Vec<&Release> = releases.iter().map(|stocked| stocked.release).collect();
        let all = files.iter().map(|file| FileCompatibility::of(file, (catalog, self.now), (own, &releases), &facing));
        all.filter_map(|beside| beside.against(releases[place])).collect()
    }
}
