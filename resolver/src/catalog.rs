//! Pure. The catalog: an immutable, dated snapshot of what the upstreams publish.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::software::Software;
use crate::version::Minecraft;

/// What every upstream said, as last read. Immutable; a newer reading is a new catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalog {
    /// Every Paper version with a build, oldest first.
    pub paper: Vec<PaperVersion>,
    /// When Fill was read.
    pub paper_read_at: Timestamp,
    /// Other software that somebody asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<Software, OtherSoftware>,
    /// Projects by where they come from and what they are called there.
    pub projects: Vec<Project>,
    /// Image tags of the server image's repository; empty when nobody asked Docker Hub.
    #[serde(default)]
    pub images: Vec<ImageTag>,
    /// Projects that could not be read and why, in words for the user: a question about them has no answer. Keyed as
    /// [`ProjectKey`] prints: `modrinth/viaversion` (a bare `viaversion` is understood too). Builds of which it is not known what
    /// they are stand here as well: `purpur/purpur/26.2/2622`.
    #[serde(default)]
    pub unread: BTreeMap<String, String>,
    /// Whose the JARs are that people put on their servers themselves, by sha256 (64 hex digits), as far as a site knows them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub owners: BTreeMap<String, Owner>,
}

/// Whose a file is, by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Owner {
    /// The project.
    pub project: ProjectKey,
    /// The site's id of the release; None: the site names the project only, and the release is the one with this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
}

impl Catalog {
    /// A catalog of nothing: every question about it is one that nobody can answer yet.
    pub fn unread_at(at: Timestamp) -> Self {
        Self {
            paper: Vec::new(),
            paper_read_at: at,
            others: BTreeMap::new(),
            projects: Vec::new(),
            images: Vec::new(),
            unread: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    /// Every version of a software, with its builds.
    pub fn versions(&self, software: Software) -> &[PaperVersion] {
        match software {
            Software::Paper => &self.paper,
            Software::Purpur | Software::Folia | Software::Velocity => {
                self.others.get(&software).map_or(&[], |other| other.versions.as_slice())
            }
        }
    }

    /// The same, to change; None where nobody has read it.
    pub(crate) fn versions_mut(&mut self, software: Software) -> Option<&mut Vec<PaperVersion>> {
        match software {
            Software::Paper => Some(&mut self.paper),
            Software::Purpur | Software::Folia | Software::Velocity => {
                self.others.get_mut(&software).map(|other| &mut other.versions)
            }
        }
    }

    /// When the builds of a software were read.
    pub fn read_at(&self, software: Software) -> Timestamp {
        self.others.get(&software).map_or(self.paper_read_at, |other| other.read_at)
    }

    /// The project that `key` names: by slug, id or name, without case.
    pub fn project(&self, key: &ProjectKey) -> Option<&Project> {
        let mine = || self.projects.iter().filter(|project| project.key.source == key.source);
        mine()
            .find(|project| project.id == key.project || project.key.project.eq_ignore_ascii_case(&key.project))
            .or_else(|| mine().find(|project| project.name.eq_ignore_ascii_case(&key.project)))
    }

    /// The project and the release that a file with this sha256 (64 hex digits) is of, if a site knows it. Of a version for several
    /// kinds of servers what it has for this one: the others may have the same bytes, and lists of their own.
    pub fn release_of_file(&self, software: Software, sha256: &str) -> Option<(&Project, &Release)> {
        let Owner { project, release } = self.owners.get(sha256)?;
        let is_it = |known: &&Release| match release {
            Some(id) => known.id == *id,
            None => known.jars().any(|jar| {
                let hash = jar.file.hash.as_deref().and_then(|hash| hash.strip_prefix("sha256:"));
                hash.is_some_and(|hash| hash.eq_ignore_ascii_case(sha256))
            }),
        };
        let project = self.project(project)?;
        let release = project.releases.iter().find(|release| software.is_kin_of(release) && is_it(release))?;
        Some((project, release))
    }

    /// What the list of a software's builds is called and why it could not be read, if that is why no build is known.
    pub(crate) fn builds_unread(&self, software: Software) -> Option<(String, String)> {
        if !self.versions(software).is_empty() {
            return None;
        }
        let list = software.list();
        let because = self.unread.get(&list)?.clone();
        Some((list, because))
    }

    /// Why the project that `key` names could not be read, if that was so.
    pub fn unread_because(&self, key: &ProjectKey) -> Option<&str> {
        let full = key.to_string();
        self.unread
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(&full) || name.eq_ignore_ascii_case(&key.project))
            .map(|(_, because)| because.as_str())
    }
}

/// Where a plugin comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// `hangar.papermc.io`
    Hangar,
    /// `modrinth.com`
    Modrinth,
    /// One file, named by its address and its hash ([`ProjectKey::of_file`]).
    Url,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hangar => "hangar",
            Self::Modrinth => "modrinth",
            Self::Url => "url",
        })
    }
}

/// A project as the user names it: source and slug (or id).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectKey {
    /// Where it comes from.
    pub source: Source,
    /// Slug or id, compared without case; for [`Source::Url`] the address with the hash.
    pub project: String,
}

/// What stands for the version of a file whose JAR states none.
pub const FALLBACK_VERSION: &str = "0.0.0";

/// Stands between the address and the hash of a file, as `pip` writes it. No address of ours has a `#` of its own.
const HASH_MARK: &str = "#sha256=";

impl ProjectKey {
    /// The file at an address with this sha256 (64 hex digits): with other bytes it is another project.
    pub fn of_file(url: &str, sha256: &str) -> Self {
        Self { source: Source::Url, project: format!("{url}{HASH_MARK}{}", sha256.to_ascii_lowercase()) }
    }

    /// A project of a site, as its `Display` writes it; None for anything else.
    pub fn of_site(text: &str) -> Option<Self> {
        let (site, project) = text.split_once('/')?;
        let source = [Source::Hangar, Source::Modrinth].into_iter().find(|source| source.to_string() == site)?;
        (!project.is_empty()).then(|| Self { source, project: project.to_owned() })
    }

    /// The address and the sha256 (64 hex digits, lower case) of a file; None for a project of a site.
    pub fn file(&self) -> Option<(&str, &str)> {
        if self.source == Source::Url { self.project.rsplit_once(HASH_MARK) } else { None }
    }

    /// As people call it: `modrinth/viaversion`, or the bare address.
    pub fn shown(&self) -> String {
        self.file().map_or_else(|| self.to_string(), |(url, _)| url.to_owned())
    }
}

impl fmt::Display for ProjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.project)
    }
}

/// The builds of a software other than Paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OtherSoftware {
    /// Every version with a build, oldest first. A proxy's are its own, and stand where Minecraft's do.
    pub versions: Vec<PaperVersion>,
    /// When Fill was read.
    pub read_at: Timestamp,
}

/// One Minecraft version that Paper has builds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PaperVersion {
    /// The Minecraft version.
    pub minecraft: Minecraft,
    /// Fill's `java.version.minimum`.
    #[serde(default)]
    pub java: Option<u32>,
    /// Flags Fill recommends for the JVM.
    #[serde(default)]
    pub jvm_flags: Vec<String>,
    /// When support ended, if it did: `support.end`, or an empty date for `UNSUPPORTED` without one.
    #[serde(default)]
    pub unsupported: bool,
    /// Its builds, by number, ascending. May be empty: that is legal upstream.
    pub builds: Vec<Build>,
}

/// One build of Paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Build {
    /// Its number: identifies it only together with the Minecraft version.
    pub number: u32,
    /// When it was published.
    pub published: Timestamp,
    /// How stable its makers call it.
    pub channel: BuildChannel,
    /// The server JAR.
    pub file: Artifact,
}

/// Fill's channels, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BuildChannel {
    /// Early builds of a new Minecraft version.
    Alpha,
    /// Mostly done.
    Beta,
    /// For everybody.
    Stable,
    /// Stable, and advertised.
    Recommended,
}

/// A downloadable file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifact {
    /// File name as the source calls it.
    pub name: String,
    /// Where it is downloaded.
    pub url: String,
    /// Size in bytes.
    #[serde(default)]
    pub size: Option<u64>,
    /// `sha256:<hex>` (Fill, Hangar) or `sha512:<hex>` (Modrinth); None when the source gives none. Of a build of Purpur
    /// `md5:<hex>` until somebody has seen its bytes, and their sha256 from then on.
    #[serde(default)]
    pub hash: Option<String>,
}

/// One plugin project with all its releases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Project {
    /// How the user names it.
    pub key: ProjectKey,
    /// The source's stable id: slugs can be renamed. `dependencies` refer to this.
    pub id: String,
    /// The name people know: `ViaVersion`.
    pub name: String,
    /// When its list was read. Lists are edited after release, so every answer that rests on one says when.
    pub read_at: Timestamp,
    /// Releases, newest first by publication, then by version.
    pub releases: Vec<Release>,
}

impl Project {
    /// Whether its page has a release of this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.releases.iter().any(|release| release.id == id)
    }
}

/// One published version of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Release {
    /// The source's id of it: identity. Version strings repeat.
    pub id: String,
    /// The version as its authors write it.
    pub version: String,
    /// When it was published; None for a file that was named by its address, which does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// How stable its authors call it.
    pub channel: Channel,
    /// The Minecraft versions somebody listed, in order. A set with holes, never a range. Empty: nobody said anything. Of what
    /// Hangar has for a proxy, the proxy's own versions.
    pub minecraft: Vec<Minecraft>,
    /// Software it is published for, lower case: `paper`, `spigot`, `velocity`, …
    pub loaders: Vec<String>,
    /// Whether its JAR says that Folia may load it. None: not known, because nobody has read its JAR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folia: Option<bool>,
    /// The least Minecraft that loads it (`api-version` of its JAR): an older server refuses it, whatever a list or a user
    /// says. None: not known, because only the JARs of [`Source::Url`] are read for the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Minecraft>,
    /// The least Java that loads it: what its main class was compiled for. None: not known, because nobody has read its JAR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// The names in its JAR. None: not known, because nobody has read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declared>,
    /// What its page says it needs.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// The JAR; None when the source only links somewhere else. Of several the one that the source calls its main one.
    #[serde(default)]
    pub file: Option<Artifact>,
    /// Its further JARs, which come only when somebody names them (`spec.source.jars`). No sources, no javadoc.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherJar>,
}

/// A JAR of a release beside its main one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FurtherJar {
    /// The file.
    pub file: Artifact,
    /// As [`Release::api_version`] is of the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Minecraft>,
    /// As [`Release::java`] is of the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// As [`Release::folia`] is of the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folia: Option<bool>,
    /// As [`Release::declared`] is of the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declared>,
}

impl FurtherJar {
    /// One that nobody has read.
    pub fn unread(file: Artifact) -> Self {
        Self { file, api_version: None, java: None, folia: None, declared: None }
    }
}

/// The names in the description of a JAR (`plugin.yml`, `paper-plugin.yml`), by which plugins find each other on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Declared {
    /// Its own.
    pub name: String,
    /// Further ones under which it satisfies the `depend` of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Those without which it does not load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depend: Vec<String>,
}

impl Declared {
    /// All under which others find it, its own first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.provides).map(String::as_str)
    }
}

/// One JAR of a release, with what is known from inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jar<'a> {
    pub(crate) file: &'a Artifact,
    pub(crate) api_version: Option<&'a Minecraft>,
    pub(crate) java: Option<u32>,
    pub(crate) folia: Option<bool>,
    pub(crate) declared: Option<&'a Declared>,
}

impl Release {
    /// Its JARs, the main one first.
    pub(crate) fn jars(&self) -> impl Iterator<Item = Jar<'_>> {
        let main = self.file.iter().map(|file| Jar {
            file,
            api_version: self.api_version.as_ref(),
            java: self.java,
            folia: self.folia,
            declared: self.declared.as_ref(),
        });
        main.chain(self.further.iter().map(|FurtherJar { file, api_version, java, folia, declared }| Jar {
            file,
            api_version: api_version.as_ref(),
            java: *java,
            folia: *folia,
            declared: declared.as_ref(),
        }))
    }
}

/// A plugin's channel, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Channel {
    /// Modrinth `alpha`, Hangar `Alpha`.
    Alpha,
    /// Modrinth `beta`, Hangar `Snapshot`, `Beta` or a channel flagged UNSTABLE.
    Beta,
    /// Everything else.
    Release,
}

/// One line of a release's dependencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dependency {
    /// The project's stable id at the same source, when it is there.
    #[serde(default)]
    pub project_id: Option<String>,
    /// Its name, when the source gives one (Hangar does, Modrinth does not; a JAR gives nothing else).
    #[serde(default)]
    pub name: Option<String>,
    /// An exact release, when pinned.
    #[serde(default)]
    pub version_id: Option<String>,
    /// What kind of need it is.
    pub kind: DependencyKind,
}

/// What a dependency means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DependencyKind {
    /// Does not load without it.
    Required,
    /// Only binds when it is there.
    Optional,
    /// Must not be there.
    Incompatible,
    /// Inside the JAR already.
    Embedded,
}

/// One tag of the server image, with what it is pinned by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageTag {
    /// `docker.io/itzg/minecraft-server`
    pub repository: String,
    /// `2026.8.1-java21`
    pub tag: String,
    /// `sha256:…` of the index, so that a moved tag changes nothing.
    pub digest: String,
    /// When it was pushed.
    pub pushed: Timestamp,
}
