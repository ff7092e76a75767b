//! Pure. Computes the requirements between releases, by the rules of `docs/concepts/solve.md`. For tests only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use resolver::model::api_version::ApiVersion;
use resolver::model::catalog::{
    Artifact, Catalog, Declared, Dependency, DependencyKind, Project, ProjectKey, Release, Source,
};
use resolver::model::compatibility_facts::Requirement;
use resolver::model::request::{Dependencies, Request};
use resolver::model::software::Software;

use super::jar_identification::KnownFile;
use super::loading::is_meant_for;
use super::name_rules::NameOwners;
use super::rules::{Terms, Unknown, delisted, is_running, project_index, publication_time};
use super::texts;

/// An installed file, with the metadata from inside it.
#[derive(Clone, Copy)]
pub(crate) struct InstalledFile<'a> {
    pub(crate) file: &'a Artifact,
    pub(crate) java: Option<u32>,
    pub(crate) api_version: Option<&'a ApiVersion>,
    pub(crate) folia: Option<bool>,
    pub(crate) declared: Option<&'a Declared>,
}

impl Terms<'_> {
    /// The installed files of a release. `None` if it has no file, or if a pattern of `jars` does not match exactly one
    /// file.
    pub(crate) fn files<'r>(&self, release: &'r Release) -> Option<Vec<InstalledFile<'r>>> {
        let main = release.file.as_ref()?;
        let mut all = vec![InstalledFile {
            file: main,
            java: release.java,
            api_version: release.api_version.as_ref(),
            folia: release.folia,
            declared: release.declared.as_ref(),
        }];
        for jar in &release.further {
            let (java, api_version, folia) = (jar.java, jar.api_version.as_ref(), jar.folia);
            all.push(InstalledFile { file: &jar.file, java, api_version, folia, declared: jar.declared.as_ref() });
        }
        if self.software == Software::Velocity {
            // A proxy ignores the metadata for Bukkit.
            all = all
                .iter()
                .map(|installed| InstalledFile { java: None, api_version: None, declared: None, ..*installed })
                .collect();
        }
        let mut wanted: BTreeSet<usize> = BTreeSet::new();
        for names in &self.jars {
            if names.is_empty() {
                wanted.insert(0);
            }
            for name in *names {
                let mut meant =
                    all.iter().enumerate().filter(|(_, jar)| texts::jar_pattern_matches(name, &jar.file.name));
                let (Some((at, _)), None) = (meant.next(), meant.next()) else { return None };
                wanted.insert(at);
            }
        }
        Some(wanted.into_iter().map(|at| all[at]).collect())
    }
}

/// The requirement of one release on another member.
pub(crate) struct ReleaseRequirement<'a> {
    /// The other member.
    pub(crate) target: usize,
    /// Whether the other member may be absent.
    pub(crate) or_absent: bool,
    /// The accepted releases.
    pub(crate) one_of: BTreeSet<&'a str>,
    /// The accepted range, if the requirement comes from a fact and not from a page or a JAR.
    pub(crate) fact: Option<String>,
    /// The oldest accepted release, if the minimum was guessed from publication dates.
    pub(crate) guessed: Option<&'a Release>,
}

/// Resolves the dependencies of releases to projects.
pub(crate) struct Needs<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) request: &'a Request,
    /// Indexes of the requested projects.
    pub(crate) requested: BTreeSet<usize>,
    /// The `requires` of the Plugins whose settings apply, by the indexes of their projects.
    pub(crate) own_requirements: BTreeMap<usize, &'a [Requirement]>,
    /// The owners of the names in JARs. `None` while the members are not computed yet.
    pub(crate) names_in_jars: Option<NameOwners>,
    /// The time of the query. Later publications are ignored.
    pub(crate) now: Timestamp,
    /// Unmanaged JARs whose release is known.
    pub(crate) files: Vec<KnownFile<'a>>,
}

/// What a dependency refers to.
pub(super) enum Resolved {
    /// The project with this index.
    Project(usize),
    /// The project could not be read.
    Unread,
    /// The project was not fetched yet.
    Unknown,
    /// A fact names an unreadable project, or a JAR requires a name that no plugin on the server has. The user has to
    /// resolve it.
    Missing,
    /// An unmanaged JAR that is installed.
    UnmanagedFile,
    /// The source has no such project, or the project has no release for this server.
    Unavailable,
}

type Table = LazyLock<BTreeMap<String, String>>;

/// The minimum `ViaVersion` of each `ViaBackwards` release. The solver reads the same file, because its data is not
/// part of the rules.
static VIAVERSION_MINIMUMS: Table =
    LazyLock::new(|| read_table(include_str!("../../src/index/known_constraints/viabackwards.json")));

/// The `WorldEdit` that `WorldGuard` was compiled against.
static WORLDEDIT_MINIMUMS: Table =
    LazyLock::new(|| read_table(include_str!("../../src/index/known_constraints/worldguard.json")));

fn read_table(text: &str) -> BTreeMap<String, String> {
    let table: serde_json::Value = serde_json::from_str(text).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    table["atLeast"].as_array().unwrap().iter().map(|row| (text(&row[0]), text(&row[1]))).collect()
}

/// The `ViaVersion` and the `ViaBackwards` that `ViaRewind` was compiled against.
static VIAREWIND_MINIMUMS: [Table; 2] = [
    LazyLock::new(|| read_table(include_str!("../../src/index/known_constraints/viarewind-viaversion.json"))),
    LazyLock::new(|| read_table(include_str!("../../src/index/known_constraints/viarewind-viabackwards.json"))),
];

/// The minimum `ViaVersion` of a known `ViaBackwards` release.
pub(crate) fn least_viaversion(viabackwards: &str) -> Option<&'static str> {
    VIAVERSION_MINIMUMS.get(viabackwards).map(String::as_str)
}

/// A constraint of a release on another plugin.
pub(super) enum BuiltIn {
    /// The accepted versions.
    Range(String),
    /// Exactly this version, unless other versions of the two plugins are running together.
    Same(String),
    /// Guessed from publication dates.
    Guess,
}

pub(super) fn built_in(project: &Project, release: &Release) -> Vec<(ProjectKey, BuiltIn)> {
    let rewind = match project.key.source {
        Source::Modrinth => (project.id == "TbHIxhx5").then_some(["P1OZGk5p", "NpvuJQoq"]),
        Source::Hangar => project.name.eq_ignore_ascii_case("ViaRewind").then_some(["ViaVersion", "ViaBackwards"]),
        Source::Url => None,
    };
    let via = match project.key.source {
        Source::Modrinth => (project.id == "NpvuJQoq").then_some("P1OZGk5p"),
        Source::Hangar => project.name.eq_ignore_ascii_case("ViaBackwards").then_some("ViaVersion"),
        Source::Url => None,
    };
    let guard = match project.key.source {
        Source::Modrinth => (project.key.project == "worldguard").then_some("worldedit"),
        Source::Hangar => project.name.eq_ignore_ascii_case("WorldGuard").then_some("WorldEdit"),
        Source::Url => None,
    };
    let key = |project_name: &str| ProjectKey { source: project.key.source, project: project_name.to_owned() };
    let at_least = |least: &str| BuiltIn::Range(format!(">={least}"));
    if let Some(via) = via {
        return vec![(key(via), least_viaversion(&release.version).map_or(BuiltIn::Guess, at_least))];
    }
    if let Some([version, backwards]) = rewind {
        let [compiled, also_compiled] = &VIAREWIND_MINIMUMS;
        let minimum = |table: &Table| table.get(&release.version).map_or(BuiltIn::Guess, |least| at_least(least));
        // Releases of 3.0 load without ViaBackwards.
        let needs_both = texts::in_range(">=3.1.0", &release.version);
        let mut needs = vec![(key(version), minimum(compiled))];
        needs.extend(needs_both.then(|| (key(backwards), minimum(also_compiled))));
        return needs;
    }
    let compiled = guard.zip(WORLDEDIT_MINIMUMS.get(&release.version));
    compiled.map(|(guard, least)| (key(guard), at_least(least))).into_iter().collect()
}

/// Whether a project is a module of `EssentialsX`, which requires the core in its own version.
fn is_module_of_essentials(project: &Project) -> bool {
    let core = |name: &str| ["essentials", "essentialsx"].iter().any(|core| name.eq_ignore_ascii_case(core));
    !core(&project.name)
        && (texts::are_grouped(&project.name, "EssentialsX")
            || texts::are_grouped(&project.name.to_lowercase().replacen("essentials", "essentialsx", 1), "EssentialsX"))
}

pub(crate) fn is_named(project: &Project, name: &str) -> bool {
    [&project.name, &project.id, &project.key.project].into_iter().any(|alias| alias.eq_ignore_ascii_case(name))
}

impl<'a> Needs<'a> {
    /// The projects that these releases need. Releases whose dependencies cannot be installed are ignored.
    pub(crate) fn needed_projects(
        &self,
        index: usize,
        terms: &Terms<'_>,
        releases: &[&'a Release],
    ) -> Result<BTreeSet<usize>, Unknown> {
        let mut needed = BTreeSet::new();
        for release in releases {
            for resolved in self.required_projects(index, terms, release) {
                match resolved {
                    Resolved::Project(other) if self.can_be_met(index, terms, release) => {
                        needed.insert(other);
                    }
                    Resolved::Unknown => return Err(Unknown),
                    Resolved::Project(_)
                    | Resolved::Unread
                    | Resolved::Missing
                    | Resolved::UnmanagedFile
                    | Resolved::Unavailable => {}
                }
            }
        }
        Ok(needed)
    }

    /// Whether all dependencies of a release can be installed: they are read, and the policy allows them.
    pub(crate) fn can_be_met(&self, index: usize, terms: &Terms<'_>, release: &Release) -> bool {
        self.required_projects(index, terms, release).iter().all(|resolved| match resolved {
            Resolved::Project(other) => {
                self.request.dependencies == Dependencies::Install || self.requested.contains(other)
            }
            Resolved::Unread => is_running(self.request, release),
            Resolved::Missing => false,
            Resolved::Unknown | Resolved::UnmanagedFile | Resolved::Unavailable => true,
        })
    }

    fn required_projects(&self, index: usize, terms: &Terms<'_>, release: &Release) -> Vec<Resolved> {
        let dependencies = release.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Required);
        let mut resolved: Vec<Resolved> =
            dependencies.map(|dependency| self.resolve_dependency(index, dependency)).collect();
        resolved.extend(self.jar_requirements(index, terms, release));
        resolved.extend(self.constraints(index, release, &self.files).into_iter().map(|(resolved, _)| resolved));
        resolved.into_iter().map(|resolved| self.or_unmanaged_file(resolved, &self.files)).collect()
    }

    /// Replaces a project by the unmanaged JAR of it, if there is one.
    fn or_unmanaged_file(&self, resolved: Resolved, files: &[KnownFile<'_>]) -> Resolved {
        let is_unmanaged = |other: usize| files.iter().any(|file| file.is_of(self.catalog, other));
        if matches!(resolved, Resolved::Project(other) if is_unmanaged(other)) {
            Resolved::UnmanagedFile
        } else {
            resolved
        }
    }

    /// Constraints that no page contains: from built-in tables, from the cluster's facts, and from the Plugin's
    /// `requires`. A later one of these replaces earlier ones about the same plugin. The required plugin may be one of
    /// the files.
    pub(super) fn constraints(
        &self,
        index: usize,
        release: &Release,
        files: &[KnownFile<'_>],
    ) -> Vec<(Resolved, BuiltIn)> {
        let project = &self.catalog.projects[index];
        let by_key = |key: &ProjectKey| {
            let elsewhere = files.iter().any(|file| file.is_known_elsewhere(key));
            if elsewhere { Resolved::UnmanagedFile } else { self.or_unmanaged_file(self.resolve_key(key), files) }
        };
        let mut constraints: Vec<(Resolved, BuiltIn)> =
            built_in(project, release).into_iter().map(|(key, bound)| (by_key(&key), bound)).collect();
        if is_module_of_essentials(project) && release.version != "0.0.0" {
            let mut cores: Vec<usize> = self.requested.iter().copied().collect();
            cores.retain(|at| {
                ["EssentialsX", "Essentials"].iter().any(|name| is_named(&self.catalog.projects[*at], name))
            });
            let order = |at: &usize| {
                let core = &self.catalog.projects[*at];
                (!is_named(core, "EssentialsX"), core.key.source != project.key.source, core.key.clone())
            };
            cores.sort_by_key(order);
            let has_unmanaged_core = files.iter().any(KnownFile::is_core_of_essentials);
            let core = cores
                .first()
                .map(|core| Resolved::Project(*core))
                .or(has_unmanaged_core.then_some(Resolved::UnmanagedFile));
            constraints.extend(core.map(|core| (core, BuiltIn::Same(format!("={}", release.version)))));
        }
        let cluster = self.request.facts.all().iter().filter(|fact| {
            is_named(project, &fact.plugin) && texts::in_range(fact.releases.as_str(), &release.version)
        });
        let own_requirements = self.own_requirements.get(&index).copied().unwrap_or_default();
        for requirement in cluster.map(|fact| &fact.requires).chain(own_requirements) {
            let resolved = self.resolve_display_name(index, &requirement.plugin, files);
            constraints.push((resolved, BuiltIn::Range(requirement.version.as_str().to_owned())));
        }
        let mut last: Vec<(Resolved, BuiltIn)> = Vec::new();
        for (resolved, bound) in constraints.into_iter().rev() {
            let is_overridden = |other: &Resolved| match (other, &resolved) {
                (Resolved::Project(a), Resolved::Project(b)) => a == b,
                (Resolved::UnmanagedFile, Resolved::UnmanagedFile) => true,
                _ => false,
            };
            if !last.iter().any(|(other, _)| is_overridden(other))
                && !matches!(resolved, Resolved::Project(to) if to == index)
            {
                last.push((resolved, bound));
            }
        }
        last
    }

    /// Resolves a display name. Requested plugins have priority.
    fn resolve_display_name(&self, index: usize, name: &str, files: &[KnownFile<'_>]) -> Resolved {
        let source = self.catalog.projects[index].key.source;
        let mut requested: Vec<usize> =
            self.requested.iter().copied().filter(|at| is_named(&self.catalog.projects[*at], name)).collect();
        requested.sort_by_key(|at| (self.catalog.projects[*at].key.source != source, &self.catalog.projects[*at].key));
        if let Some(found) = requested.first() {
            return Resolved::Project(*found);
        }
        if let Some(plugin_request) =
            self.request.plugins.iter().find(|plugin_request| plugin_request.object.eq_ignore_ascii_case(name))
        {
            return self.resolve_key(&plugin_request.key);
        }
        if files.iter().any(|file| is_named(file.project, name)) {
            return Resolved::UnmanagedFile;
        }
        if source == Source::Url {
            return Resolved::Missing;
        }
        match self.resolve_key(&ProjectKey { source, project: name.to_owned() }) {
            Resolved::Unread => Resolved::Missing,
            resolved @ (Resolved::Project(_)
            | Resolved::Unknown
            | Resolved::Missing
            | Resolved::UnmanagedFile
            | Resolved::Unavailable) => self.or_unmanaged_file(resolved, files),
        }
    }

    fn resolve_key(&self, key: &ProjectKey) -> Resolved {
        match project_index(self.catalog, key) {
            Some(index) => Resolved::Project(index),
            None if self.is_unread(key) => Resolved::Unread,
            None => Resolved::Unknown,
        }
    }

    /// Whether a project has a release for this kind of server, including a running release that is delisted.
    pub(super) fn is_for_server(&self, index: usize) -> bool {
        let project = &self.catalog.projects[index];
        let mut all = project.releases.iter().chain(delisted(self.request, project));
        all.any(|release| is_meant_for(self.request.software, release))
    }

    fn is_unread(&self, key: &ProjectKey) -> bool {
        let full = format!("{}/{}", key.source, key.project);
        self.catalog
            .unread
            .keys()
            .any(|name| name.eq_ignore_ascii_case(&full) || name.eq_ignore_ascii_case(&key.project))
    }

    pub(super) fn resolve_dependency(&self, index: usize, dependency: &Dependency) -> Resolved {
        let source = self.catalog.projects[index].key.source;
        let keys: Vec<ProjectKey> = [&dependency.project_id, &dependency.name]
            .into_iter()
            .flatten()
            .map(|project| ProjectKey { source, project: project.clone() })
            .collect();
        let has_release = |project: &Project| {
            let mut all = project.releases.iter().chain(delisted(self.request, project));
            project.key.source == source && all.any(|release| Some(&release.id) == dependency.version_id.as_ref())
        };
        let found = keys
            .iter()
            .find_map(|key| project_index(self.catalog, key))
            .or_else(|| self.catalog.projects.iter().position(has_release));
        match found {
            Some(other) if other != index && self.is_for_server(other) => Resolved::Project(other),
            None if keys.iter().any(|key| self.is_unread(key)) => Resolved::Unread,
            None if dependency.project_id.is_some() => Resolved::Unknown,
            Some(_) | None => Resolved::Unavailable,
        }
    }

    /// The requirements of a release on the members. `available` holds the members' releases, oldest first.
    pub(crate) fn requirements(
        &self,
        members: &[usize],
        available: &[Vec<&'a Release>],
        (index, terms): (usize, &Terms<'_>),
        release: &'a Release,
    ) -> Vec<ReleaseRequirement<'a>> {
        let member = |resolved: &Resolved| match resolved {
            Resolved::Project(other) => members.iter().position(|member| member == other),
            Resolved::Unread
            | Resolved::Unknown
            | Resolved::Missing
            | Resolved::UnmanagedFile
            | Resolved::Unavailable => None,
        };
        let mut requirements = Vec::new();
        for dependency in &release.dependencies {
            let Some(target) = member(&self.resolve_dependency(index, dependency)) else { continue };
            let means = |other: &Release| dependency.version_id.as_ref().is_none_or(|id| other.id == *id);
            let ids = |keep: &dyn Fn(&Release) -> bool| {
                available[target].iter().filter(|other| keep(other)).map(|other| other.id.as_str()).collect()
            };
            match dependency.kind {
                DependencyKind::Required => {
                    requirements.push(ReleaseRequirement {
                        target,
                        or_absent: false,
                        one_of: ids(&means),
                        fact: None,
                        guessed: None,
                    });
                }
                DependencyKind::Optional if dependency.version_id.is_some() => {
                    requirements.push(ReleaseRequirement {
                        target,
                        or_absent: true,
                        one_of: ids(&means),
                        fact: None,
                        guessed: None,
                    });
                }
                DependencyKind::Incompatible => {
                    requirements.push(ReleaseRequirement {
                        target,
                        or_absent: true,
                        one_of: ids(&|other| !means(other)),
                        fact: None,
                        guessed: None,
                    });
                }
                DependencyKind::Optional | DependencyKind::Embedded => {}
            }
        }
        for resolved in self.jar_requirements(index, terms, release) {
            let Some(target) = member(&resolved) else { continue };
            let one_of = available[target].iter().map(|other| other.id.as_str()).collect();
            requirements.push(ReleaseRequirement { target, or_absent: false, one_of, fact: None, guessed: None });
        }
        for (resolved, bound) in self.constraints(index, release, &[]) {
            let Some(target) = member(&resolved) else { continue };
            let within = |range: &str| {
                let within = available[target].iter().filter(|other| texts::in_range(range, &other.version));
                within.map(|other| other.id.as_str()).collect::<BTreeSet<&str>>()
            };
            let (one_of, strict, least) = match &bound {
                BuiltIn::Range(range) => (within(range), true, None),
                BuiltIn::Same(range) => (within(range), false, None),
                BuiltIn::Guess => {
                    let (least, ids) = guess_accepted(release, &available[target]);
                    (ids, false, least)
                }
            };
            let by_page = release.dependencies.iter().any(|dependency| {
                let binds = matches!(dependency.kind, DependencyKind::Required | DependencyKind::Optional);
                binds
                    && dependency.version_id.is_some()
                    && member(&self.resolve_dependency(index, dependency)) == Some(target)
            });
            let conflicts_with_running = is_running(self.request, release)
                && available[target]
                    .iter()
                    .any(|other| is_running(self.request, other) && !one_of.contains(other.id.as_str()));
            let is_lenient = matches!(bound, BuiltIn::Guess) && by_page || !strict && conflicts_with_running;
            let one_of =
                if is_lenient { available[target].iter().map(|other| other.id.as_str()).collect() } else { one_of };
            let fact = match bound {
                BuiltIn::Range(range) => Some(range),
                BuiltIn::Same(range) if !is_lenient => Some(range.trim_start_matches('=').to_owned()),
                BuiltIn::Same(_) | BuiltIn::Guess => None,
            };
            let guessed = least.filter(|_| !is_lenient);
            requirements.push(ReleaseRequirement { target, or_absent: false, one_of, fact, guessed });
        }
        requirements
    }
}

/// The releases of another plugin that a release is assumed to accept, guessed from publication dates: the oldest of
/// them, and the ids of all. The oldest is `None` if the dates determine none.
pub(super) fn guess_accepted<'a>(
    release: &Release,
    available: &[&'a Release],
) -> (Option<&'a Release>, BTreeSet<&'a str>) {
    let one_hour_later = publication_time(release).checked_add(SignedDuration::from_hours(1)).unwrap();
    // A delisted release has no known date.
    let dated = |via: &Release| via.published.is_some_and(|date| date <= one_hour_later);
    let newest = available.iter().rposition(|via| via.channel == release.channel && dated(via));
    (
        newest.map(|newest| available[newest]),
        available[newest.unwrap_or(0)..].iter().map(|via| via.id.as_str()).collect(),
    )
}
