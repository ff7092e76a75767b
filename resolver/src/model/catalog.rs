//! Pure. Defines the catalog: an immutable, dated snapshot of the upstream publications.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::api_version::ApiVersion;
use super::software::Software;
use super::untrusted_text::hide_url_secrets;
use super::version::Minecraft;

/// The data of all upstreams, as last read. It is immutable: a newer read gives a new catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalog {
    /// Every Paper version with a build, oldest first.
    pub paper: Vec<PaperVersion>,
    /// The time when Fill was read.
    pub paper_read_at: Timestamp,
    /// Other software that servers request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<Software, OtherSoftware>,
    /// Projects with their key at the source.
    pub projects: Vec<Project>,
    /// Image tags of the server image's repository. Empty if Docker Hub was not read.
    #[serde(default)]
    pub images: Vec<ImageTag>,
    /// Projects that could not be read, with a reason for the user: a request for them cannot be answered. The key is
    /// the text form of [`ProjectKey`]: `modrinth/viaversion` (`viaversion` alone is accepted, too). Unverified builds
    /// that could not be downloaded are listed as well: `purpur/purpur/26.2/2622`. So are unreadable parts of what could
    /// be read: the builds of a version (`fill/paper/1.21.11`), and a release of a project (`modrinth/viaversion/5.5.1`).
    #[serde(default)]
    pub unread: BTreeMap<String, String>,
    /// The owners of unmanaged JARs by sha256 (64 hex digits), as far as a site knows them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub owners: BTreeMap<String, Owner>,
}

/// The project and release of a file, identified by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Owner {
    /// The project.
    pub project: ProjectKey,
    /// The site's id of the release. `None` if the site names only the project, and the release is the one with this
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
}

impl Catalog {
    /// An empty catalog. Every request on it is unanswerable.
    pub fn empty(at: Timestamp) -> Self {
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

    /// The versions for modification. `None` if the software was not read.
    pub fn versions_mut(&mut self, software: Software) -> Option<&mut Vec<PaperVersion>> {
        match software {
            Software::Paper => Some(&mut self.paper),
            Software::Purpur | Software::Folia | Software::Velocity => {
                self.others.get_mut(&software).map(|other| &mut other.versions)
            }
        }
    }

    /// The time when the builds of a software were read.
    pub fn read_at(&self, software: Software) -> Timestamp {
        self.others.get(&software).map_or(self.paper_read_at, |other| other.read_at)
    }

    /// The project that `key` names: by slug, id or name, case-insensitively. Not by name if the project of that slug
    /// exists and could not be read: another project may have its name.
    pub fn project(&self, key: &ProjectKey) -> Option<&Project> {
        let mine = || self.projects.iter().filter(|project| project.key.source == key.source);
        let by_name = || mine().find(|project| project.name.eq_ignore_ascii_case(&key.project));
        mine()
            .find(|project| project.id == key.project || project.key.project.eq_ignore_ascii_case(&key.project))
            .or_else(|| by_name().filter(|_| self.unread_reason(key).is_none()))
    }

    /// The project and the release of a file with this sha256 (64 hex digits), if a site knows it. If the version
    /// supports several kinds of servers, this is the release for this software. The others may have the same bytes but
    /// their own lists.
    pub fn release_of_file(&self, software: Software, sha256: &str) -> Option<(&Project, &Release)> {
        let Owner { project, release } = self.owners.get(sha256)?;
        let is_match = |candidate: &&Release| match release {
            Some(id) => candidate.id == *id,
            None => candidate.jars().any(|jar| {
                let hash = jar.file.hash.as_deref().and_then(|hash| hash.strip_prefix("sha256:"));
                hash.is_some_and(|hash| hash.eq_ignore_ascii_case(sha256))
            }),
        };
        let project = self.project(project)?;
        let release = project.releases.iter().find(|release| software.accepts_kind_of(release) && is_match(release))?;
        Some((project, release))
    }

    /// The name of the list of a software's builds, and why it could not be read. `None` unless that is why no build is
    /// known.
    pub(crate) fn builds_unread(&self, software: Software) -> Option<(String, String)> {
        if !self.versions(software).is_empty() {
            return None;
        }
        let list = software.list_name();
        let because = self.unread.get(&list)?.clone();
        Some((list, because))
    }

    /// The reason why the project that `key` names could not be read, if any.
    pub fn unread_reason(&self, key: &ProjectKey) -> Option<&str> {
        let full = key.to_string();
        self.unread
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(&full) || name.eq_ignore_ascii_case(&key.project))
            .map(|(_, because)| because.as_str())
    }
}

/// The source of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// `hangar.papermc.io`
    Hangar,
    /// `modrinth.com`
    Modrinth,
    /// A single file, identified by its URL and its hash ([`ProjectKey::from_file`]).
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
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectKey {
    /// The source.
    pub source: Source,
    /// Slug or id, compared case-insensitively. For [`Source::Url`] the URL with the hash.
    pub project: String,
}

/// The version of a file whose JAR states none.
pub const FALLBACK_VERSION: &str = "0.0.0";

/// Separator between the URL and the hash of a file, as in `pip`. Valid URLs contain no `#` here.
const HASH_SEPARATOR: &str = "#sha256=";

impl ProjectKey {
    /// The file at a URL with this sha256 (64 hex digits). With other bytes it is another project.
    pub fn from_file(url: &str, sha256: &str) -> Self {
        Self { source: Source::Url, project: format!("{url}{HASH_SEPARATOR}{}", sha256.to_ascii_lowercase()) }
    }

    /// Parses the `Display` form of a site's project. `None` for any other text.
    pub fn parse_site(text: &str) -> Option<Self> {
        let (site, project) = text.split_once('/')?;
        let source = [Source::Hangar, Source::Modrinth].into_iter().find(|source| source.to_string() == site)?;
        (!project.is_empty()).then(|| Self { source, project: project.to_owned() })
    }

    /// The URL and the sha256 (64 hex digits, lower case) of a file. `None` for a site's project.
    pub fn file(&self) -> Option<(&str, &str)> {
        if self.source == Source::Url { self.project.rsplit_once(HASH_SEPARATOR) } else { None }
    }

    /// The form for display: `modrinth/viaversion`, or the URL alone, without a password or a token.
    pub fn to_display(&self) -> String {
        self.file().map_or_else(|| self.to_string(), |(url, _)| hide_url_secrets(url))
    }
}

/// A URL has no password and no token. Its hash identifies the file.
impl fmt::Display for ProjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file() {
            Some((url, hash)) => write!(f, "{}/{}{HASH_SEPARATOR}{hash}", self.source, hide_url_secrets(url)),
            None => write!(f, "{}/{}", self.source, self.project),
        }
    }
}

/// The builds of a software other than Paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OtherSoftware {
    /// Every version with a build, oldest first. A proxy has its own version numbers, in place of Minecraft versions.
    pub versions: Vec<PaperVersion>,
    /// The time when Fill was read.
    pub read_at: Timestamp,
}

/// One Minecraft version for which Paper has builds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PaperVersion {
    /// The Minecraft version.
    pub minecraft: Minecraft,
    /// Fill's `java.version.minimum`.
    #[serde(default)]
    pub java: Option<u32>,
    /// JVM flags that Fill recommends.
    #[serde(default)]
    pub jvm_flags: Vec<String>,
    /// Whether support ended: the status is `UNSUPPORTED`.
    #[serde(default)]
    pub unsupported: bool,
    /// Its builds, by number, ascending. May be empty, which is legal upstream.
    pub builds: Vec<Build>,
}

/// One build of Paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Build {
    /// Its number. It identifies the build only together with the Minecraft version.
    pub number: u32,
    /// The publication time.
    pub published: Timestamp,
    /// The channel, as set by its authors.
    pub channel: BuildChannel,
    /// The server JAR.
    pub file: Artifact,
}

/// Fill's channels, least stable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BuildChannel {
    /// Early builds of a new Minecraft version.
    Alpha,
    /// Mostly complete.
    Beta,
    /// For general use.
    Stable,
    /// Stable, and advertised.
    Recommended,
}

/// A downloadable file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifact {
    /// The file name at the source.
    pub name: String,
    /// The download URL.
    pub url: String,
    /// The size in bytes.
    #[serde(default)]
    pub size: Option<u64>,
    /// `sha256:<hex>` (Fill, Hangar) or `sha512:<hex>` (Modrinth). `None` if the source gives none. A build of Purpur
    /// has `md5:<hex>` until it was downloaded, and its sha256 from then on.
    #[serde(default)]
    pub hash: Option<String>,
}

/// One plugin project with all its releases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Project {
    /// The key by which the user names it.
    pub key: ProjectKey,
    /// The stable id at the source, because slugs can be renamed. `dependencies` refer to this.
    pub id: String,
    /// The display name: `ViaVersion`.
    pub name: String,
    /// The time when its list was read. Lists are edited after release, so every explanation based on one states this
    /// time.
    pub read_at: Timestamp,
    /// Releases, newest first by publication, then by version.
    pub releases: Vec<Release>,
}

impl Project {
    /// Whether its page has a release with this id.
    pub(crate) fn has_release(&self, id: &str) -> bool {
        self.releases.iter().any(|release| release.id == id)
    }
}

/// One published version of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Release {
    /// The id of the release at its source, which identifies it. Version strings repeat.
    pub id: String,
    /// The version as its authors write it.
    pub version: String,
    /// The publication time. `None` for a file that was given by URL, which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// The channel, as set by its authors.
    pub channel: Channel,
    /// The listed Minecraft versions, in order. This is a set with gaps, never a range. Empty if the page has no list.
    /// A Hangar release for a proxy lists the proxy's own versions.
    pub minecraft: Vec<Minecraft>,
    /// Software it is published for, in lower case: `paper`, `spigot`, `velocity`, …
    pub loaders: Vec<String>,
    /// Whether its JAR declares support for Folia. `None` if the JAR was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folia: Option<bool>,
    /// The `api-version` of its JAR. A server that does not accept it refuses the plugin, regardless of lists and
    /// overrides. `None` if the JAR states none or was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<ApiVersion>,
    /// The rule by which Paper refuses the descriptor of its JAR on every version. `None` if there is no such rule or
    /// the JAR was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The minimum Java version that loads it: the one that its main class was compiled for. `None` if the JAR was not
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// The names in its JAR. `None` if the JAR was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declared>,
    /// The dependencies on its page.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// The JAR. `None` if the source only links to another site. If there are several, the main one according to the
    /// source.
    #[serde(default)]
    pub file: Option<Artifact>,
    /// Its further JARs, which are installed only if a Plugin names them (`spec.source.jars`). Excludes sources and
    /// javadoc.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherJar>,
}

/// A JAR of a release other than the main one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FurtherJar {
    /// The file.
    pub file: Artifact,
    /// As [`Release::api_version`] for the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<ApiVersion>,
    /// As [`Release::refused`] for the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// As [`Release::java`] for the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// As [`Release::folia`] for the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folia: Option<bool>,
    /// As [`Release::declared`] for the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declared>,
}

impl FurtherJar {
    /// A JAR that was not read.
    pub fn unread(file: Artifact) -> Self {
        Self { file, api_version: None, refused: None, java: None, folia: None, declared: None }
    }
}

/// The names in the descriptor of a JAR (`plugin.yml`, `paper-plugin.yml`), by which plugins on a server find each
/// other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Declared {
    /// Its own name.
    pub name: String,
    /// Its main class, by which a server recognises a plugin that it contains itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// Further names with which it satisfies the `depend` of other plugins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Names without which it does not load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depend: Vec<String>,
}

impl Declared {
    /// All names under which other plugins find it, its own name first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.provides).map(String::as_str)
    }
}

/// One JAR of a release, with the known data from its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jar<'a> {
    pub(crate) file: &'a Artifact,
    pub(crate) api_version: Option<&'a ApiVersion>,
    pub(crate) refused: Option<&'a str>,
    pub(crate) java: Option<u32>,
    pub(crate) folia: Option<bool>,
    pub(crate) declared: Option<&'a Declared>,
}

impl Release {
    /// The files of its JARs, the main one first.
    pub fn files(&self) -> impl Iterator<Item = &Artifact> {
        self.jars().map(|jar| jar.file)
    }

    /// Its JARs, the main one first.
    pub(crate) fn jars(&self) -> impl Iterator<Item = Jar<'_>> {
        let main = self.file.iter().map(|file| Jar {
            file,
            api_version: self.api_version.as_ref(),
            refused: self.refused.as_deref(),
            java: self.java,
            folia: self.folia,
            declared: self.declared.as_ref(),
        });
        main.chain(self.further.iter().map(|FurtherJar { file, api_version, refused, java, folia, declared }| Jar {
            file,
            api_version: api_version.as_ref(),
            refused: refused.as_deref(),
            java: *java,
            folia: *folia,
            declared: declared.as_ref(),
        }))
    }
}

/// A plugin's channel, least stable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Channel {
    /// Modrinth `alpha`, Hangar `Alpha`.
    Alpha,
    /// Modrinth `beta`, Hangar `Snapshot`, `Beta` or a channel flagged UNSTABLE.
    Beta,
    /// Everything else.
    Release,
}

/// One dependency on the page of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dependency {
    /// The stable id of the project, if it is at the same source.
    #[serde(default)]
    pub project_id: Option<String>,
    /// Its name, if the source gives one. Hangar does, Modrinth does not, and a JAR gives only a name.
    #[serde(default)]
    pub name: Option<String>,
    /// An exact release, if pinned.
    #[serde(default)]
    pub version_id: Option<String>,
    /// The kind of dependency.
    pub kind: DependencyKind,
}

/// The meaning of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DependencyKind {
    /// The plugin does not load without it.
    Required,
    /// Constrains the version only if it is installed.
    Optional,
    /// Must not be installed.
    Incompatible,
    /// Included in the JAR.
    Embedded,
}

/// One tag of the server image, with its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageTag {
    /// `docker.io/itzg/minecraft-server`
    pub repository: String,
    /// `2026.8.1-java21`
    pub tag: String,
    /// `sha256:…` of the index, so that moving the tag has no effect.
    pub digest: String,
    /// The time it was pushed.
    pub pushed: Timestamp,
}

/// The time of the last release of a project.
pub fn last_release(project: &Project, now: Timestamp) -> Option<Timestamp> {
    project.releases.iter().filter_map(|release| release.published).filter(|published| *published <= now).max()
}

/// The newest Minecraft release on a list.
pub(crate) fn newest_listed(release: &Release) -> Option<Minecraft> {
    let releases = release.minecraft.iter().filter(|listed| listed.is_release()).max();
    releases.or_else(|| release.minecraft.iter().max()).cloned()
}
