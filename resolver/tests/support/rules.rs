//! Pure. The rules of `docs/concepts/solve.md`, implemented a second time from that page. For tests only.
//!
//! It shares only the types of catalog and request with the solver. The page is the only common basis, so an error that
//! both implementations contain is an error of the page.

use jiff::{SignedDuration, Timestamp};
use resolver::model::catalog::{Catalog, Channel, ImageTag, PaperVersion, Project, ProjectKey, Release};
use resolver::model::compatibility_facts::Requirement;
use resolver::model::request::{CompatibilityOverride, HotfixSiblings, ImagePolicy, OverrideMode, Request, Unlisted};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;

use super::dependencies::ReleaseRequirement;
use super::loading::has_list;
use super::membership::Membership;
use super::paper_rules::{Paper, builds, paper};
use super::texts::{self, Key};
use super::unmanaged_jars::{self, PageRequirement};

/// When a release was published. A file by URL has no date and counts as always published.
pub(crate) fn publication_time(release: &Release) -> Timestamp {
    release.published.unwrap_or(Timestamp::MIN)
}

/// A project that is part of the solve.
pub(crate) struct Member<'a> {
    pub(crate) index: usize,
    pub(crate) project: &'a Project,
    /// The names of the Plugin objects that request it.
    pub(crate) objects: Vec<&'a str>,
    /// Unmanaged JARs that need it, if it is running and unrequested.
    pub(crate) needed_by_files: Vec<String>,
    pub(crate) terms: Terms<'a>,
    /// The usable releases, regardless of pins, oldest first.
    pub(crate) usable: Vec<&'a Release>,
    /// For each usable release, its requirements on the other members.
    pub(crate) requirements: Vec<Vec<ReleaseRequirement<'a>>>,
}

/// The settings that apply to one plugin.
#[derive(Clone, PartialEq)]
pub(crate) struct Terms<'a> {
    pub(crate) software: Software,
    pub(crate) channel: Channel,
    pub(crate) delay: SignedDuration,
    pub(crate) compatibility: Option<&'a CompatibilityOverride>,
    pub(crate) pin: Option<&'a str>,
    /// The `jars` of each Plugin object. Empty means the main file.
    pub(crate) jars: Vec<&'a [String]>,
    pub(crate) requires: &'a [Requirement],
    /// Whether it may be older than the running release.
    pub(crate) may_downgrade: bool,
    /// Whether it is held at the running release.
    pub(crate) held: bool,
    /// The other requested projects of its delay group, by index, with their delays.
    pub(crate) delay_group: Vec<(usize, SignedDuration)>,
}

impl Member<'_> {
    /// Whether it must be installed, whatever the other members are.
    pub(crate) fn is_required(&self) -> bool {
        !self.objects.is_empty() || !self.needed_by_files.is_empty()
    }
}

/// The rules, applied to one server: all that they determine before a release is chosen.
pub(crate) struct ServerRules<'a> {
    pub(crate) request: &'a Request,
    pub(crate) catalog: &'a Catalog,
    now: Timestamp,
    /// Oldest first.
    pub(crate) papers: Vec<Paper<'a>>,
    /// In their order of priority.
    pub(crate) members: Vec<Member<'a>>,
    /// Requirements on the pages of unmanaged JARs that neither another unmanaged JAR nor a requested plugin meets.
    pub(crate) page_requirements: Vec<PageRequirement<'a>>,
}

/// The catalog lacks data that an answer needs.
pub(crate) struct Unknown;

pub(crate) fn is_running(request: &Request, release: &Release) -> bool {
    request.running.as_ref().is_some_and(|running| running.releases.contains(&release.id))
}

/// The running release of a project if it is delisted, as the lock describes it.
pub(crate) fn delisted<'a>(request: &'a Request, project: &Project) -> Option<&'a Release> {
    let mut delisted_releases = request.running.iter().flat_map(|running| &running.delisted);
    let running_release = &delisted_releases.find(|delisted| delisted.project == project.key)?.release;
    project.releases.iter().all(|release| release.id != running_release.id).then_some(running_release)
}

/// All running releases of a project, delisted or not.
pub(crate) fn running_releases<'a>(request: &'a Request, project: &'a Project) -> impl Iterator<Item = &'a Release> {
    project.releases.iter().chain(delisted(request, project)).filter(move |release| is_running(request, release))
}

impl<'a> ServerRules<'a> {
    pub(crate) fn new(catalog: &'a Catalog, request: &'a Request, now: Timestamp) -> Result<Self, Unknown> {
        let mut papers: Vec<Paper<'a>> = builds(catalog, request.software)
            .iter()
            .filter_map(|version| paper(catalog, request, version, now))
            .collect();
        papers.sort_by_key(|paper| texts::minecraft_order(paper.minecraft));
        let (members, page_requirements) = Membership { catalog, request, now }.compute()?;
        let mut rules = Self { request, catalog, now, papers, members, page_requirements };
        for at in 0..rules.papers.len() {
            if !unmanaged_jars::allows_paper(&rules, at, now) {
                rules.papers[at].build = None;
            }
        }
        Ok(rules)
    }

    /// The Java of a version set. `files` are the Java versions that its files need.
    pub(crate) fn java(&self, paper: usize, files: impl Iterator<Item = u32>) -> u32 {
        let unmanaged_java = unmanaged_jars::java(self.catalog, self.request, self.now);
        files.chain(unmanaged_java).fold(self.papers[paper].java, u32::max)
    }

    /// The image for a version set that needs this Java.
    pub(crate) fn image(&self, java: u32) -> Option<String> {
        let chosen = |images: &[ImageTag], java| texts::newest_image(images, java, self.now);
        let request = self.request;
        let running = request.running.as_ref();
        if request.software == Software::Velocity {
            return request.image.clone();
        }
        match (&request.image, request.image_policy, running.and_then(|running| running.java)) {
            (Some(image), _, _) => Some(image.clone()),
            (None, ImagePolicy::Keep, Some(_)) => running.unwrap().image.clone(),
            (None, ImagePolicy::SameJava, Some(has)) => {
                let same = self.catalog.images.iter().filter(|image| texts::java_in(&image.tag) == Some(has)).cloned();
                chosen(&same.collect::<Vec<_>>(), has).or_else(|| running.unwrap().image.clone())
            }
            (None, ImagePolicy::Follow, _) | (None, _, None) => chosen(&self.catalog.images, java),
        }
    }

    /// Whether a Paper does not load a release, regardless of lists and overrides.
    pub(crate) fn is_refused(&self, member: usize, release: &Release, paper: usize) -> bool {
        let files = self.members[member].terms.files(release).unwrap_or_default();
        let minecraft = self.papers[paper].minecraft;
        files.iter().any(|file| file.api_version.is_some_and(|states| !texts::accepts_api_version(states, minecraft)))
    }

    /// Whether the page, or the user's override, allows a release of a member on a Paper.
    pub(crate) fn is_listed(&self, member: usize, release: &Release, paper: usize) -> bool {
        if self.is_refused(member, release, paper) {
            return false;
        }
        let compatibility =
            self.members[member].terms.compatibility.filter(|compatibility| applies_to(compatibility, release));
        let adds = compatibility.is_some_and(|compatibility| compatibility.mode == OverrideMode::Add);
        let source = self.members[member].project.key.source;
        let on_page = if has_list(self.request.software, source, release) {
            self.list_covers(&release.minecraft, paper)
        } else {
            // If releases without a list are refused, an override with mode `Add` is their list.
            self.request.unlisted == Unlisted::Assume || !adds
        };
        let Some(compatibility) = compatibility else { return on_page };
        let meant =
            compatibility.minecraft.iter().any(|pattern| texts::pattern_matches(pattern, self.papers[paper].minecraft));
        match compatibility.mode {
            OverrideMode::Add => on_page || meant,
            OverrideMode::Replace => compatibility.minecraft.is_empty() || meant,
            OverrideMode::Remove => on_page && !meant,
        }
    }

    /// Whether a list contains a Paper, or a version that counts for it.
    pub(crate) fn list_covers(&self, list: &[Minecraft], paper: usize) -> bool {
        let paper = self.papers[paper].minecraft;
        if self.request.software == Software::Velocity {
            // Lists of proxies contain minor versions: `3.4`.
            return paper.parts().is_some_and(|[major, minor, _]| {
                list.iter().any(|listed| listed.parts() == Some([major, minor, 0]) && listed.is_release())
            });
        }
        let is_published = |version: &&PaperVersion| version.builds.iter().any(|build| build.published <= self.now);
        let by_paper: Vec<&Minecraft> = match self.request.software {
            Software::Paper => self.papers.iter().map(|paper| paper.minecraft).collect(),
            Software::Purpur | Software::Folia | Software::Velocity => {
                self.catalog.paper.iter().filter(is_published).map(|version| &version.minecraft).collect()
            }
        };
        let built = |text: &str| by_paper.iter().any(|other| other.as_str() == text);
        let is_built_here = |text: &str| self.papers.iter().any(|other| other.minecraft.as_str() == text);
        if list.contains(paper) {
            return true;
        }
        if self.request.hotfix_siblings == HotfixSiblings::Ask {
            return false;
        }
        if texts::siblings(paper).iter().any(|sibling| list.iter().any(|listed| listed.as_str() == *sibling)) {
            return true;
        }
        // A list with the previous patch also counts, if Paper skipped that patch but built an older version.
        let Some(before) = texts::patch_before(paper) else { return false };
        let skipped: Minecraft = before.parse().unwrap();
        list.contains(&skipped)
            && !built(&before)
            && by_paper.iter().any(|other| texts::minecraft_order(other) < texts::minecraft_order(&skipped))
            && !texts::siblings(&skipped).iter().any(|sibling| is_built_here(sibling))
    }

    /// Whether the pin of a member allows a release.
    pub(crate) fn meets_pin(&self, member: usize, release: &Release) -> bool {
        self.members[member].terms.pin.is_none_or(|pin| texts::pin_matches(pin, &release.version))
    }
}

/// The age of a release: whether it has a date (releases without a date count as older), whether it is not for a
/// snapshot, its publication time, and its version.
pub(crate) type Age = (bool, bool, Timestamp, Key);

/// Order of the releases of one line. Uploads of one version at the same time are equal.
pub(crate) fn age(release: &Release) -> Age {
    let version = &release.version;
    (release.published.is_some(), !texts::is_for_snapshot(version), publication_time(release), Key::parse(version))
}

/// The releases of a project, oldest first: by age, but a release of an older line goes in front of the first release
/// with a higher version that was published before it.
pub(crate) fn in_order<'a>(releases: impl Iterator<Item = &'a Release>) -> Vec<&'a Release> {
    let has_line = |release: &Release| release.published.is_some() && !texts::is_for_snapshot(&release.version);
    let mut by_age: Vec<&Release> = releases.collect();
    by_age.sort_by_cached_key(|release| (age(release), release.id.clone()));
    let mut ordered: Vec<(Key, &Release)> = Vec::new();
    let mut highest: Option<Key> = None;
    for release in by_age {
        let key = Key::parse(&release.version);
        let is_below = |(other, it): &(Key, &Release)| has_line(it) && key.is_lower(other);
        let is_of_line = |(other, it): &(Key, &Release)| {
            has_line(it) && texts::are_of_one_line(&release.version, &it.version) && !key.is_lower(other)
        };
        // Only a release below the highest one so far can be of an older line.
        let is_older = has_line(release) && highest.as_ref().is_some_and(|highest| key < *highest);
        let line = if is_older { ordered.iter().position(is_of_line) } else { None };
        let place = line.and_then(|line| {
            let newer = ordered[line..].iter().position(is_below)?;
            Some(line + newer)
        });
        if has_line(release) {
            highest = highest.max(Some(key.clone()));
        }
        ordered.insert(place.unwrap_or(ordered.len()), (key, release));
    }
    ordered.into_iter().map(|(_, release)| release).collect()
}

pub(super) fn applies_to(compatibility: &CompatibilityOverride, release: &Release) -> bool {
    let means = |named: &String| match named.strip_suffix(".x").or_else(|| named.strip_suffix(".*")) {
        // `1.2.x` matches versions that begin with these numbers, without a further digit of the last number.
        Some(prefix) => {
            let version = release.version.trim_start_matches('v');
            version.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        }
        None => *named == release.version,
    };
    compatibility.releases.is_empty() || compatibility.releases.iter().any(means)
}

pub(crate) fn project_index(catalog: &Catalog, key: &ProjectKey) -> Option<usize> {
    let same = |text: &str| text.eq_ignore_ascii_case(&key.project);
    let at = |test: &dyn Fn(&Project) -> bool| {
        catalog.projects.iter().position(|project| project.key.source == key.source && test(project))
    };
    at(&|project| project.id == key.project || same(&project.key.project))
        .or_else(|| at(&|project| same(&project.name)))
}
