//! Pure. Checks a lock against a catalog and a request, constraint by constraint, without a search.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::explanation::{PaperPin, Unanswerable};
use crate::index::CandidateIndex;
use crate::index::candidates::{Edge, EdgeKind, PluginCandidates};
use crate::model::catalog::{Artifact, Catalog, Project, Release};
use crate::model::compatibility_facts::UsedFact;
use crate::model::ignore_unknown_fields::passing_over;
use crate::model::image_tag::java_of_image;
use crate::model::lock::{Guess, Lock, LockReason, LockedFile, LockedPlugin};
use crate::model::request::{PaperRequest, Request};
use crate::model::software::{PaperName, Software};
use crate::model::unusable::Unusable;
use crate::model::unverified_build::announced_md5;
use crate::model::version::Minecraft;

mod facts;

pub use facts::stale_facts;

/// A fact of a lock that is no longer true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "fact", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum StaleFact {
    /// Paper has no such build, or had none yet.
    PaperGone {
        /// The locked one.
        paper: PaperName,
        /// Its publication time, if that is later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        out_from: Option<Timestamp>,
    },
    /// The catalog holds no builds of this Minecraft version, so nothing was checked: the request cannot use it.
    PaperUnknown {
        /// The locked one.
        paper: PaperName,
    },
    /// The JAR of the locked build has changed.
    PaperChanged {
        /// The locked build.
        paper: PaperName,
        /// The hash in the lock.
        locked: String,
        /// The hash at the source. Absent if it gives none.
        published: Option<String>,
    },
    /// Paper and the plugins need another Java version.
    Java {
        /// In the lock.
        locked: u32,
        /// According to the source.
        published: u32,
    },
    /// The source has no such release, or had none yet.
    ReleaseGone {
        /// The plugin name.
        plugin: String,
        /// The locked version.
        version: String,
        /// Its publication time, if that is later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        out_from: Option<Timestamp>,
    },
    /// The catalog does not hold the project, so nothing was checked: the request does not need it.
    ProjectUnknown {
        /// The plugin name.
        plugin: String,
        /// The locked version.
        version: String,
    },
    /// The file of the locked release has changed.
    FileChanged {
        /// The plugin name.
        plugin: String,
        /// The locked version.
        version: String,
        /// The hash in the lock.
        locked: String,
        /// The hash at the source. Absent if it gives none, or has no file.
        published: Option<String>,
    },
    /// A fact about versions that no source states any more, or not in this form.
    FactGone {
        /// The fact in the lock.
        #[serde(deserialize_with = "passing_over")]
        said: UsedFact,
    },
    /// A guess that the dates no longer give.
    GuessChanged {
        /// The guess in the lock.
        #[serde(deserialize_with = "passing_over")]
        guess: Guess,
        /// The guess that they give now. Absent if nothing is guessed about these two.
        #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Option::is_none")]
        now: Option<Guess>,
    },
    /// The tag of the locked image does not state the locked Java version.
    ImageJava {
        /// In the lock.
        locked: u32,
        /// The version in the tag. Absent if the tag states none, or there is no image.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        says: Option<u32>,
    },
}

/// A part of the request that a lock does not meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "unmet", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unmet {
    /// The server runs other software. No other part was checked.
    Software {
        /// The requested software.
        software: Software,
    },
    /// Another Paper version is pinned.
    PaperPin {
        /// The pin.
        pin: PaperPin,
    },
    /// The locked Paper version may not be used.
    Paper {
        /// The reason.
        unusable: Unusable,
    },
    /// Another image is pinned.
    Image {
        /// The pin.
        pinned: String,
    },
    /// A requested plugin is not in the lock.
    Missing {
        /// The plugin name.
        plugin: String,
        /// The objects that request it.
        objects: Vec<String>,
    },
    /// A running plugin that unmanaged JARs need and no Plugin object requests is not in the lock.
    MissingForFiles {
        /// The plugin name.
        plugin: String,
        /// The JARs, by their names in `plugins/`.
        files: Vec<String>,
    },
    /// A plugin in the lock is neither requested nor needed.
    NotRequested {
        /// The plugin name.
        plugin: String,
        /// The locked version.
        version: String,
    },
    /// Another release is pinned.
    Pinned {
        /// The plugin name.
        plugin: String,
        /// The locked version.
        version: String,
        /// The pin.
        pin: String,
    },
    /// The locked release may not be used.
    Release {
        /// The plugin name.
        plugin: String,
        /// The locked version.
        version: String,
        /// The reason.
        unusable: Unusable,
    },
    /// Other files of the locked release are requested (`spec.source.jars`).
    Files {
        /// The plugin name.
        plugin: String,
        /// The locked version.
        version: String,
        /// The requested files, by their names at the source.
        wanted: Vec<String>,
    },
    /// There is no evidence that the locked release runs on the locked Paper version, or the user's override excludes
    /// it.
    NotListed {
        /// The plugin name.
        plugin: String,
        /// The locked version.
        version: String,
        /// The newest version on its list.
        up_to: Option<Minecraft>,
        /// Whether its page lists the Paper version, and `compatibilityOverride` excludes it.
        by_override: bool,
    },
    /// Its requirement on, or exclusion of, another plugin conflicts with the lock.
    Together {
        /// The plugin name.
        plugin: String,
        /// The locked version.
        version: String,
        /// The other plugin.
        with: String,
        /// The locked version of that one. Absent if it is not in the lock.
        locked: Option<String>,
    },
}

/// The facts of a lock about its files that this catalog does not confirm as of `now`: Paper first, then plugins in the
/// lock's order, then the image. For facts about versions, see [`stale_facts`].
pub fn stale_file_facts(lock: &Lock, catalog: &Catalog, now: Timestamp) -> Vec<StaleFact> {
    let mut stale = stale_paper_facts(lock, catalog, now);
    for locked in &lock.plugins {
        let (plugin, version) = (locked.name.clone(), locked.version.clone());
        let Some(project) = project_of(locked, catalog) else {
            stale.push(StaleFact::ProjectUnknown { plugin, version });
            continue;
        };
        let mut releases = project.releases.iter();
        let release = releases.find(|release| release.id == locked.release_id && release.version == locked.version);
        let Some(release) = release.filter(|release| release.published.is_none_or(|published| published <= now)) else {
            let out_from = release.and_then(|release| release.published);
            stale.push(StaleFact::ReleaseGone { plugin, version, out_from });
            continue;
        };
        stale.extend(locked.files().filter_map(|file| {
            let published = published_hash(release, file);
            let changed = || (plugin.clone(), version.clone(), file.hash.clone(), published.map(str::to_owned));
            let (plugin, version, locked, published) = (!has_hash(file, published)).then(changed)?;
            Some(StaleFact::FileChanged { plugin, version, locked, published })
        }));
    }
    let says = lock.image.as_deref().and_then(java_of_image);
    let read = lock.image_java.filter(|read| says != Some(read.has));
    stale.extend(read.map(|read| StaleFact::ImageJava { locked: read.has, says }));
    stale
}

/// The hash of a locked file at its source: of that JAR of the release, otherwise of the main one.
fn published_hash<'a>(release: &'a Release, locked: &LockedFile) -> Option<&'a str> {
    let mut jars = release.jars().map(|jar| jar.file);
    let file = jars.find(|file| is_same_file(locked, file)).or(release.file.as_ref())?;
    file.hash.as_deref()
}

/// Whether a locked file is this one: by its hash, or by its URL if the file at that URL has changed.
fn is_same_file(locked: &LockedFile, file: &Artifact) -> bool {
    has_hash(locked, file.hash.as_deref()) || locked.url == file.url
}

fn project_of<'a>(locked: &LockedPlugin, catalog: &'a Catalog) -> Option<&'a Project> {
    catalog.projects.iter().find(|project| is_same_project(locked, &project.key, &project.id))
}

fn is_same_project(locked: &LockedPlugin, key: &crate::model::catalog::ProjectKey, id: &str) -> bool {
    locked.key.source == key.source && locked.project_id == id
}

fn has_hash(locked: &LockedFile, published: Option<&str>) -> bool {
    published.is_some_and(|published| published.eq_ignore_ascii_case(&locked.hash))
}

fn stale_paper_facts(lock: &Lock, catalog: &Catalog, now: Timestamp) -> Vec<StaleFact> {
    let paper = || lock.paper_name();
    let version = catalog.versions(lock.software).iter().find(|version| version.minecraft == lock.minecraft);
    let Some(version) = version.filter(|version| !version.builds.is_empty()) else {
        return vec![StaleFact::PaperUnknown { paper: paper() }];
    };
    let build = version.builds.iter().find(|build| build.number == lock.build);
    let Some(build) = build.filter(|build| build.published <= now) else {
        return vec![StaleFact::PaperGone { paper: paper(), out_from: build.map(|build| build.published) }];
    };
    let mut stale = Vec::new();
    // The build could not be downloaded, which is reported elsewhere: an md5 neither confirms nor contradicts a lock.
    if announced_md5(&build.file).is_none() && !has_hash(&lock.paper, build.file.hash.as_deref()) {
        let (locked, published) = (lock.paper.hash.clone(), build.file.hash.clone());
        stale.push(StaleFact::PaperChanged { paper: paper(), locked, published });
    }
    let needs = |locked: &LockedPlugin| {
        let release = project_of(locked, catalog)?.releases.iter().find(|release| release.id == locked.release_id)?;
        let is_locked = |file: &Artifact| locked.files().any(|locked| is_same_file(locked, file));
        let jars = release.jars().filter(|jar| lock.software.is_minecraft() && is_locked(jar.file));
        jars.filter_map(|jar| jar.java).max()
    };
    let paper = version.java.unwrap_or_else(|| lock.software.default_java(&version.minecraft));
    let published = lock.plugins.iter().filter_map(needs).fold(paper, u32::max);
    if published != lock.java {
        stale.push(StaleFact::Java { locked: lock.java, published });
    }
    stale
}

/// The parts of the request that the lock does not meet on this catalog as of `now`: the server first, then plugins.
///
/// # Errors
/// The catalog lacks a project that the request needs.
pub fn unmet(
    lock: &Lock,
    catalog: &Catalog,
    request: &Request,
    now: Timestamp,
) -> Result<Vec<Unmet>, Box<Unanswerable>> {
    // Of the locked Paper version, only the locked build is kept, because that one is checked. The other versions show
    // what Paper has built.
    let mut catalog = catalog.with_unread_projects([request]).into_owned();
    let versions = catalog.versions_mut(lock.software).into_iter().flatten();
    for version in versions.filter(|version| version.minecraft == lock.minecraft) {
        version.builds.retain(|build| build.number == lock.build);
    }
    let candidates = build_index(&catalog, request, now)?;
    if request.software != lock.software {
        return Ok(vec![Unmet::Software { software: request.software }]);
    }
    let mut unmet = unmet_server_requirements(lock, &candidates);
    let Some(paper) = candidates.papers.iter().position(|paper| paper.version.minecraft == lock.minecraft) else {
        // There is no such Paper version, which is a stale fact. The plugins on it cannot be checked.
        return Ok(unmet);
    };
    let check = Check { lock, catalog: &catalog, candidates: &candidates, paper };
    for (at, plugin) in candidates.plugins.iter().enumerate() {
        check.check_plugin(at, plugin, &mut unmet);
    }
    let unneeded = lock.plugins.iter().filter(|locked| check.is_unneeded(locked));
    unmet.extend(
        unneeded.map(|locked| Unmet::NotRequested { plugin: locked.name.clone(), version: locked.version.clone() }),
    );
    Ok(unmet)
}

/// The catalog as the server sees it, if no data is missing.
fn build_index<'a>(
    catalog: &'a Catalog,
    request: &'a Request,
    now: Timestamp,
) -> Result<CandidateIndex<'a>, Box<Unanswerable>> {
    CandidateIndex::build(catalog, request, now).map_err(|gap| Box::new(Unanswerable::from_gap(catalog, request, gap)))
}

fn unmet_server_requirements(lock: &Lock, candidates: &CandidateIndex<'_>) -> Vec<Unmet> {
    let request = candidates.request;
    let mut unmet = Vec::new();
    let pin = match &request.paper {
        PaperRequest::Pin { version } => Some(PaperPin { version: version.clone(), build: None }),
        PaperRequest::BuildPin { version, build } => Some(PaperPin { version: version.clone(), build: Some(*build) }),
        PaperRequest::Latest | PaperRequest::Auto => None,
    };
    unmet.extend(
        pin.filter(|pin| pin.version != lock.minecraft || pin.build.is_some_and(|build| build != lock.build))
            .map(|pin| Unmet::PaperPin { pin }),
    );
    let candidate = candidates.papers.iter().find(|paper| paper.version.minecraft == lock.minecraft);
    unmet.extend(candidate.and_then(|paper| paper.unusable.clone()).map(|unusable| Unmet::Paper { unusable }));
    let image = request.image.as_ref().filter(|pinned| lock.image.as_ref() != Some(pinned));
    unmet.extend(image.map(|pinned| Unmet::Image { pinned: pinned.clone() }));
    unmet
}

struct Check<'x, 'a> {
    lock: &'x Lock,
    catalog: &'x Catalog,
    candidates: &'x CandidateIndex<'a>,
    /// The position of the locked Paper version.
    paper: usize,
}

impl Check<'_, '_> {
    fn locked(&self, at: usize) -> Option<&LockedPlugin> {
        let project = self.candidates.plugins[at].project;
        self.lock.plugins.iter().find(|locked| self.is_locked_as(locked, project))
    }

    /// Whether a locked plugin is of this project, or of the running one that its slug led to before.
    fn is_locked_as(&self, locked: &LockedPlugin, project: &Project) -> bool {
        let running = self.candidates.request.running.as_ref();
        let before = running.and_then(|running| running.other_project_id(project));
        [Some(project.id.as_str()), before].into_iter().flatten().any(|id| is_same_project(locked, &project.key, id))
    }

    /// The position of the locked release among the candidates.
    fn locked_position(&self, at: usize) -> Option<usize> {
        let locked = self.locked(at)?;
        self.candidates.plugins[at].releases.iter().position(|candidate| candidate.release.id == locked.release_id)
    }

    fn check_plugin(&self, at: usize, plugin_candidates: &PluginCandidates<'_>, unmet: &mut Vec<Unmet>) {
        let plugin = plugin_candidates.name().to_owned();
        let Some(locked) = self.locked(at) else {
            // Strategy `latest` continues without plugins that cannot follow. Only the solver can decide whether they
            // can.
            let may_stay_behind = matches!(self.candidates.request.paper, PaperRequest::Latest);
            if let Some(requested_by) = plugin_candidates.requested_by.as_ref().filter(|_| !may_stay_behind) {
                let objects = requested_by.objects.iter().map(|&object| object.to_owned()).collect();
                unmet.push(Unmet::Missing { plugin, objects });
            } else if !plugin_candidates.unmanaged_dependents.is_empty() && !may_stay_behind {
                unmet.push(Unmet::MissingForFiles { plugin, files: plugin_candidates.unmanaged_dependents.clone() });
            }
            return;
        };
        let version = locked.version.clone();
        if !plugin_candidates.is_wanted() && !self.is_needed(at) {
            unmet.push(Unmet::NotRequested { plugin, version });
            return;
        }
        // A missing release is a stale fact.
        let Some(position) = self.locked_position(at) else { return };
        let candidate = &plugin_candidates.releases[position];
        let pin = plugin_candidates
            .rules
            .pin
            .filter(|_| plugin_candidates.requested_by.is_some() && !plugin_candidates.allowed.has(position + 1));
        if let Some(pin) = pin {
            unmet.push(Unmet::Pinned { plugin: plugin.clone(), version: version.clone(), pin: pin.to_owned() });
        }
        if let Some(unusable) = candidate.unusable.clone() {
            unmet.push(Unmet::Release { plugin: plugin.clone(), version: version.clone(), unusable });
        }
        let jars = plugin_candidates.rules.jars.select(candidate.release).unwrap_or_default();
        let lacks = jars.iter().any(|jar| !locked.files().any(|file| is_same_file(file, jar.file)));
        // If the release is unusable anyway, no other files can be requested.
        if candidate.unusable.is_none() && (lacks || jars.len() != locked.files().count()) {
            let wanted = jars.iter().map(|jar| jar.file.name.clone()).collect();
            unmet.push(Unmet::Files { plugin: plugin.clone(), version: version.clone(), wanted });
        }
        // Strategy `latest` keeps the running releases.
        let stays = matches!(self.candidates.request.paper, PaperRequest::Latest)
            && self.candidates.is_running(candidate.release);
        if let Some(unusable) = self.candidates.refusal(at, position, self.paper) {
            unmet.push(Unmet::Release { plugin: plugin.clone(), version: version.clone(), unusable });
        } else if !stays && self.candidates.listing_evidence(at, position, self.paper).is_none() {
            let up_to = crate::explain::newest_listed(candidate.release);
            let by_override = self.candidates.page_evidence(at, position, self.paper).is_some();
            unmet.push(Unmet::NotListed { plugin: plugin.clone(), version: version.clone(), up_to, by_override });
        }
        for edge in &plugin_candidates.edges[position] {
            let (other, position) = (self.locked(edge.to), self.locked_position(edge.to));
            // For a missing release, which is a stale fact, the requirement cannot be checked. 0 stands for "not
            // installed".
            if (other.is_none() || position.is_some()) && !edge.set.has(position.map_or(0, |position| position + 1)) {
                let with = self.candidates.plugins[edge.to].name().to_owned();
                let locked = other.map(|other| other.version.clone());
                let (plugin, version) = (plugin.clone(), version.clone());
                unmet.push(Unmet::Together { plugin, version, with, locked });
            }
        }
    }

    /// The locked releases with candidates, by plugin and position. `None` if the plugin has no such release.
    fn locked_candidates(&self) -> impl Iterator<Item = Option<(&PluginCandidates<'_>, usize)>> {
        let locked = (0..self.candidates.plugins.len()).filter(|&at| self.locked(at).is_some());
        locked.map(|at| Some((&*self.candidates.plugins[at], self.locked_position(at)?)))
    }

    /// Whether the dependencies of a locked release are unknown, because it is unusable or missing.
    fn has_unknown_dependencies(&self) -> bool {
        self.locked_candidates()
            .any(|candidate| candidate.is_none_or(|(plugin, position)| plugin.releases[position].unusable.is_some()))
    }

    /// Whether any plugin in the lock needs this plugin, or may need it.
    fn is_needed(&self, wanted: usize) -> bool {
        let needs = |edge: &Edge| edge.to == wanted && edge.kind == EdgeKind::Required;
        self.has_unknown_dependencies()
            || self.locked_candidates().flatten().any(|(plugin, position)| plugin.edges[position].iter().any(needs))
    }

    /// Whether a locked plugin has no candidates and is unnecessary: it was requested, or no plugin can need it.
    fn is_unneeded(&self, locked: &LockedPlugin) -> bool {
        let mut plugins = self.candidates.plugins.iter();
        let has_candidates = plugins.any(|plugin| self.is_locked_as(locked, plugin.project));
        let is_unnecessary = || !self.has_unknown_dependencies() && !self.is_delisted(locked);
        !has_candidates && (matches!(locked.reason, LockReason::RequestedBy(_)) || is_unnecessary())
    }

    /// Whether a locked plugin is delisted, with all other releases for such servers. Then dependencies no longer lead
    /// to it, so its dependents are unknown. That it is missing is a stale fact.
    fn is_delisted(&self, locked: &LockedPlugin) -> bool {
        project_of(locked, self.catalog).is_some_and(|project| !project.has_release(&locked.release_id))
    }
}
