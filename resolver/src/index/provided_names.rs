//! Pure. The names in JARs: what the plugins of a server are called, and where the names lead that they do not load without.

use std::collections::{BTreeMap, BTreeSet};

use super::dependency_closure::{DependencyTarget, in_order, target};
use super::jar_selection::Jars;
use super::version_bounds::BoundContext;
use crate::catalog::{Catalog, Declared, DependencyKind, Project, Release, Source};
use crate::known_constraints::is_called;
use crate::name_conflict::folded;
use crate::request::{Request, has_any};
use crate::unmanaged_jar::UnmanagedJar;

/// What the JARs of a plugin that come say of names, over all its releases. Names are folded.
#[derive(Debug, Default)]
pub(super) struct DeclaredNames {
    /// Its own.
    own: BTreeSet<String>,
    /// Further ones under which others find it.
    provides: BTreeSet<String>,
    /// Those that some release does not load without.
    asks: BTreeSet<String>,
    /// Whether what comes of some release was read.
    read: bool,
    /// Whether something can come, and nobody has read any of it.
    unread: bool,
}

impl DeclaredNames {
    pub(super) fn of(project: &Project, jars: &Jars<'_>) -> Self {
        let mut spoken = Self::default();
        for release in project.releases.iter().filter(|release| is_read(release)) {
            let Some(picked) = jars.declared(release) else { continue };
            spoken.read |= picked.iter().all(Option::is_some);
            for declared in picked.into_iter().flatten() {
                spoken.own.insert(folded(&declared.name));
                spoken.provides.extend(declared.provides.iter().map(|name| folded(name)));
                spoken.asks.extend(declared.depend.iter().map(|name| folded(name)));
            }
        }
        spoken.unread = !spoken.read && project.releases.iter().any(|release| jars.pick(release).is_ok());
        spoken
    }

    /// Whether other plugins find the project under this name (folded).
    pub(super) fn bears(&self, project: &Project, name: &str) -> bool {
        if self.read { self.own.contains(name) || self.provides.contains(name) } else { is_called(project, name) }
    }

    /// The names (folded) under which other plugins find the project.
    pub(super) fn names(&self, project: &Project) -> BTreeSet<String> {
        if self.read {
            return self.own.union(&self.provides).cloned().collect();
        }
        [&project.name, &project.key.project, &project.id].into_iter().map(|name| folded(name)).collect()
    }

    /// Whether any release asks for anybody.
    pub(super) fn asks(&self) -> bool {
        !self.asks.is_empty()
    }
}

fn is_read(release: &Release) -> bool {
    release.jars().any(|jar| jar.declared.is_some())
}

/// Who has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameOwners {
    /// The project at this place of the catalog.
    Project(usize),
    /// A JAR that somebody put on the server.
    Own,
}

/// Who is called what on one server.
pub(super) struct NameTable {
    /// By folded name, who is meant first; None: nobody has been asked yet.
    called: Option<BTreeMap<String, Vec<NameOwners>>>,
    /// Whether nothing can come that nobody has read.
    read: bool,
    /// Whether the server has run, so that its own JARs are known.
    ran: bool,
}

/// What the names that one plugin asks for mean on a server.
#[derive(PartialEq, Eq)]
pub(super) struct NameResolution {
    names: Vec<(String, Vec<NameOwners>)>,
    read: bool,
    ran: bool,
}

/// One that takes part.
pub(super) struct NameOwner<'x> {
    pub(super) place: usize,
    pub(super) requested: bool,
    pub(super) spoken: &'x DeclaredNames,
}

impl NameTable {
    /// As long as nobody knows who takes part: names lead nowhere.
    pub(super) fn unasked() -> Self {
        Self { called: None, read: false, ran: false }
    }

    /// The names of those that take part. What JARs say they are counts before what they provide, one that was asked for before
    /// one that only comes along, and all of them before JARs of people's own. Of a project whose JARs nobody has read there is
    /// what people call it, and its slug, instead.
    pub(super) fn of(catalog: &Catalog, request: &Request, bearers: &[NameOwner<'_>]) -> Self {
        let mut claims = Vec::new();
        for NameOwner { place, requested, spoken } in bearers {
            let project = &catalog.projects[*place];
            if !has_any(project, request.software, request.running.as_ref()) {
                continue;
            }
            let mut claim = |second: bool, name: String| claims.push((second, !requested, &project.key, name, *place));
            if spoken.read {
                spoken.own.iter().for_each(|name| claim(false, name.clone()));
                spoken.provides.iter().for_each(|name| claim(true, name.clone()));
            } else {
                claim(false, folded(&project.name));
                claim(true, folded(&project.key.project));
            }
        }
        claims.sort();
        let mut called: BTreeMap<String, Vec<NameOwners>> = BTreeMap::new();
        let claimed = claims.into_iter().map(|(_, _, _, name, place)| (name, NameOwners::Project(place)));
        let own = request.unmanaged.iter().flat_map(UnmanagedJar::names).map(|name| (folded(name), NameOwners::Own));
        for (name, who) in claimed.chain(own) {
            let bearers = called.entry(name).or_default();
            if !bearers.contains(&who) {
                bearers.push(who);
            }
        }
        let read = bearers.iter().all(|bearer| !bearer.spoken.unread)
            && request.unmanaged.iter().all(|jar| jar.name.is_some());
        Self { called: Some(called), read, ran: request.running.is_some() }
    }

    /// All of it that matters to one plugin; None where nothing does.
    pub(super) fn meaning(&self, spoken: &DeclaredNames) -> Option<NameResolution> {
        let called = self.called.as_ref().filter(|_| spoken.asks())?;
        let names = spoken.asks.iter().map(|name| (name.clone(), called.get(name).cloned().unwrap_or_default()));
        Some(NameResolution { names: names.collect(), read: self.read, ran: self.ran })
    }

    /// Where the names lead without which the JARs of a release that come do not load. It outranks the page: what that calls
    /// optional is required then.
    pub(super) fn asked_by(
        &self,
        catalog: &Catalog,
        place: usize,
        (release, jars): (&Release, &Jars<'_>),
        facing: &BoundContext<'_>,
    ) -> Vec<DependencyTarget> {
        let Some(called) = self.called.as_ref().filter(|_| is_read(release)) else { return Vec::new() };
        let declared: Vec<&Declared> = jars.declared(release).into_iter().flatten().flatten().collect();
        let own: BTreeSet<String> = declared.iter().flat_map(|declared| declared.names()).map(folded).collect();
        let asks: BTreeSet<&str> = declared.iter().flat_map(|declared| &declared.depend).map(String::as_str).collect();
        let mut targets = Vec::new();
        for name in asks {
            let folded = folded(name);
            let others = called.get(&folded).into_iter().flatten();
            match others.copied().find(|who| *who != NameOwners::Project(place)) {
                _ if own.contains(&folded) => {}
                Some(NameOwners::Project(found)) => targets.push(DependencyTarget::Project(found)),
                Some(NameOwners::Own) => {}
                None => targets.extend(self.on_page(catalog, place, (release, name), facing)),
            }
        }
        targets
    }

    /// Where a name leads that nobody on the server has: the page may have the project, as an optional one.
    fn on_page(
        &self,
        catalog: &Catalog,
        place: usize,
        (release, name): (&Release, &str),
        facing: &BoundContext<'_>,
    ) -> Vec<DependencyTarget> {
        let (mut unfetched, mut unsure) = (Vec::new(), false);
        for line in in_order(release) {
            match line.kind {
                DependencyKind::Required | DependencyKind::Optional => {}
                DependencyKind::Incompatible | DependencyKind::Embedded => continue,
            }
            match target(catalog, facing, place, line) {
                DependencyTarget::Project(found) if bears(&catalog.projects[found], name) => {
                    return vec![DependencyTarget::Project(found)];
                }
                DependencyTarget::Fetch(key) => unfetched.push(DependencyTarget::Fetch(key)),
                DependencyTarget::Unread { .. } => unsure = true,
                // The last three no page ever means.
                DependencyTarget::Project(_)
                | DependencyTarget::Outside(_)
                | DependencyTarget::Nothing
                | DependencyTarget::Unknown { .. }
                | DependencyTarget::Own
                | DependencyTarget::Missing(_) => {}
            }
        }
        if !unfetched.is_empty() {
            return unfetched;
        }
        // Whoever writes down the address of a file has seen what it needs, and can say who that is.
        let seen = self.ran || catalog.projects[place].key.source == Source::Url;
        let certain = self.read && seen && !unsure;
        vec![if certain {
            DependencyTarget::Missing(name.to_owned())
        } else {
            DependencyTarget::Outside(name.to_owned())
        }]
    }
}

/// Whether a project, or what would come of any of its releases that was read, is called so.
fn bears(project: &Project, name: &str) -> bool {
    let mut read = project.releases.iter().filter_map(|release| release.declared.as_ref()).flat_map(Declared::names);
    is_called(project, name) || read.any(|own| folded(own) == folded(name))
}
