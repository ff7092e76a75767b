//! Pure. Defines the lock: the chosen version set with its hashes, as stable bytes, and the digest that identifies it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::catalog::{Artifact, ProjectKey};
use super::compatibility_facts::UsedFact;
use super::software::{PaperName, Software};
use super::version::Minecraft;

/// All files that one server runs.
///
/// Solving one request on one catalog twice gives the same bytes ([`Lock::to_json`]). The digest changes only if
/// something that runs changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lock {
    /// The file format. A lock without it has format 1, which had neither [`Self::guesses`] nor [`Self::image_java`].
    #[serde(default = "FormatVersion::<2>::first")]
    pub format_version: FormatVersion<2>,
    /// `namespace/name` of the server it was solved for.
    pub server: String,
    /// The server software. Absent for Paper. [`Self::minecraft`], [`Self::build`] and [`Self::paper`] refer to this
    /// software.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The Minecraft version of Paper.
    pub minecraft: Minecraft,
    /// The build of Paper. It identifies a build only together with the Minecraft version.
    pub build: u32,
    /// The minimum Java version (major version) on which everything starts: Paper, and each plugin whose JAR was read.
    pub java: u32,
    /// The server image. `None` if none is known, and the operator uses its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The server JAR.
    pub paper: LockedFile,
    /// JVM flags that Fill recommends for this Paper version. They are advice for the operator and not part of the
    /// digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jvm_flags: Vec<String>,
    /// The plugins: requested ones by object name, then their dependencies by project name.
    pub plugins: Vec<LockedPlugin>,
    /// The lists that were read, with their read times. The result is based on them.
    pub facts: Vec<Fact>,
    /// Facts about versions that constrain these plugins and that no page states, each with its source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<UsedFact>,
    /// Minimum versions between these plugins that are guessed from publication dates, where neither a page nor a fact
    /// states any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guesses: Vec<Guess>,
    /// The Java version in the tag of the image. Absent if the tag does not state it, and without an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_java: Option<ImageJava>,
}

/// The format version of a stored file. `NEWEST` is written. Reading refuses an unknown format, so that no program acts
/// on half of a file. A file of an older format is written back in its own format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct FormatVersion<const NEWEST: u32>(u32);

impl<const NEWEST: u32> FormatVersion<NEWEST> {
    /// The format of a file from before files stated their format.
    pub(crate) fn first() -> Self {
        Self(1)
    }
}

impl<const NEWEST: u32> Default for FormatVersion<NEWEST> {
    fn default() -> Self {
        Self(NEWEST)
    }
}

impl<const NEWEST: u32> TryFrom<u32> for FormatVersion<NEWEST> {
    type Error = UnknownFormat;

    fn try_from(format: u32) -> Result<Self, UnknownFormat> {
        if (1..=NEWEST).contains(&format) { Ok(Self(format)) } else { Err(UnknownFormat { format, newest: NEWEST }) }
    }
}

impl<const NEWEST: u32> From<FormatVersion<NEWEST>> for u32 {
    fn from(format: FormatVersion<NEWEST>) -> Self {
        format.0
    }
}

/// A file with an unknown format version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is of format {format}, and the newest that this version reads is {newest}")]
pub struct UnknownFormat {
    format: u32,
    newest: u32,
}

/// One file of a lock. It always has a hash: a file without one is never chosen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedFile {
    /// The name on the volume: one path component, distinct within a lock.
    pub name: String,
    /// The download URL.
    pub url: String,
    /// Size in bytes, if the source states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// `sha256:<hex>` or `sha512:<hex>`.
    pub hash: String,
}

/// One plugin of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedPlugin {
    /// The display name: `ViaVersion`.
    pub name: String,
    /// The project.
    pub key: ProjectKey,
    /// The stable id of the project at its source.
    pub project_id: String,
    /// The id of the release at its source.
    pub release_id: String,
    /// The version as its authors write it.
    pub version: String,
    /// The JAR.
    pub file: LockedFile,
    /// Further JARs of the same release, if its Plugin names several (`spec.source.jars`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<LockedFile>,
    /// The reason why it is in the lock.
    pub reason: LockReason,
}

impl Lock {
    /// The projects of the plugins that no Plugin object requests.
    pub(crate) fn unrequested(&self) -> impl Iterator<Item = &ProjectKey> {
        let unrequested = |plugin: &&LockedPlugin| matches!(plugin.reason, LockReason::NeededBy(_));
        self.plugins.iter().filter(unrequested).map(|plugin| &plugin.key)
    }
}

impl LockedPlugin {
    /// All its JARs.
    pub fn files(&self) -> impl Iterator<Item = &LockedFile> {
        std::iter::once(&self.file).chain(&self.more)
    }
}

/// The reason why a plugin is in a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LockReason {
    /// These Plugin objects request it, by name.
    RequestedBy(Vec<String>),
    /// No Plugin object requests it. These plugins of the lock (display names) or unmanaged JARs (file names) need it.
    NeededBy(Vec<String>),
}

/// A list that was read, and when.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fact {
    /// `Paper`, or `ViaVersion (modrinth)`.
    pub about: String,
    /// The time when its list was read.
    pub read_at: Timestamp,
}

/// A minimum version that neither a page nor a fact states: guessed from the dates of two releases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guess {
    /// The dependent plugin, by display name.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Its publication time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// The plugin it needs, by display name.
    pub needs: String,
    /// The oldest sufficient release of it, in the order of its source.
    pub at_least: String,
    /// The publication time of that release, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_published: Option<Timestamp>,
}

/// The Java version of an image, according to its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageJava {
    /// The major version.
    pub has: u32,
    /// The time the tag was pushed, if the tag was read. Absent for an image that was only named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Timestamp>,
}

/// Identifies a lock: sha256 over its running versions, in hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct LockDigest(String);

impl LockDigest {
    /// All 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 16 hex digits, as used in object names and labels.
    pub fn short(&self) -> &str {
        self.0.get(..16).unwrap_or(&self.0)
    }
}

impl fmt::Display for LockDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The content that the digest covers. Field order is part of the format: a change gives every server a new digest, and
/// a restart.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DigestedFields<'a> {
    minecraft: &'a str,
    build: u32,
    java: u32,
    image: Option<&'a str>,
    files: Vec<[&'a str; 4]>,
}

impl Lock {
    /// Computes the digest from the running versions, file names and hashes. Dates, URLs, sizes, reasons, facts and the
    /// server's name are left out. So a newer read, or one more fact about the same files, restarts no server.
    pub fn digest(&self) -> LockDigest {
        let mut files: Vec<[&str; 4]> = self
            .plugins
            .iter()
            .flat_map(|p| p.files().map(move |file| (p, file)))
            .map(|(p, file)| [p.release_id.as_str(), p.version.as_str(), file.name.as_str(), file.hash.as_str()])
            .collect();
        files.push([self.software.project(), "", &self.paper.name, &self.paper.hash]);
        files.sort_unstable();
        let covered = DigestedFields {
            minecraft: self.minecraft.as_str(),
            build: self.build,
            java: self.java,
            image: self.image.as_deref(),
            files,
        };
        LockDigest(hex::encode(Sha256::digest(serialize_json(&covered, false))))
    }

    /// The Paper version, or the version of the other software.
    pub fn paper_name(&self) -> PaperName {
        PaperName { software: self.software, minecraft: self.minecraft.clone(), build: self.build }
    }

    /// The lock as pretty-printed JSON with a final newline, with the same bytes each time.
    pub fn to_json(&self) -> String {
        let mut text = serialize_json(self, true);
        text.push('\n');
        text
    }
}

fn serialize_json(value: &impl Serialize, pretty: bool) -> String {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.expect("all map keys are strings, so serialising cannot fail")
}

/// A file name that is one safe path component: the name at the source is untrusted text.
pub(crate) fn safe_file_name(artifact: &Artifact, project: &str) -> String {
    let sanitized: String = artifact
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-') { c } else { '_' })
        .collect();
    let sanitized = sanitized.trim_start_matches(['.', '-']);
    let is_jar = std::path::Path::new(sanitized).extension().is_some_and(|e| e.eq_ignore_ascii_case("jar"));
    // 120: with the `.part` of a download it stays far below the limit of 255 bytes for a file name.
    let stem: String = if is_jar { sanitized[..sanitized.len() - 4].to_owned() } else { sanitized.to_owned() };
    let stem: String = stem.chars().take(120).collect();
    if stem.is_empty() {
        let plain: String = project.chars().filter(char::is_ascii_alphanumeric).take(60).collect();
        format!("{}.jar", if plain.is_empty() { "plugin" } else { &plain })
    } else {
        format!("{stem}.jar")
    }
}

pub use super::lock_diff::{ChangeKind, Difference, LockName, PaperChange, PluginChange, ReleaseName, ValueChange};

#[cfg(test)]
mod tests;
