//! Pure. The lock: the chosen set with its hashes, as stable bytes, and the digest that names it everywhere.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::catalog::{Artifact, ProjectKey};
use crate::compatibility_facts::UsedFact;
use crate::explain::PaperName;
use crate::software::Software;
use crate::version::Minecraft;

/// Everything that one server runs, file by file.
///
/// Two solves of one request on one catalog give the same bytes ([`Lock::to_json`]); the digest changes only when
/// something that runs changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lock {
    /// How to read the rest. A lock without it is of format 1, which had neither [`Self::guesses`] nor [`Self::image_java`].
    #[serde(default = "FormatVersion::<2>::first")]
    pub format_version: FormatVersion<2>,
    /// `namespace/name` of the server it was solved for.
    pub server: String,
    /// What it runs as; absent for Paper. [`Self::minecraft`], [`Self::build`] and [`Self::paper`] are of this.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// Paper's Minecraft version.
    pub minecraft: Minecraft,
    /// Paper's build; names a build only together with the Minecraft version.
    pub build: u32,
    /// The least Java that all of it starts on (major version): Paper, and each plugin whose JAR was read.
    pub java: u32,
    /// The server image; `None` when nobody knows one, and the operator falls back to its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The server JAR.
    pub paper: LockedFile,
    /// JVM flags that Fill recommends for this Paper; advice to the operator, no part of the digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jvm_flags: Vec<String>,
    /// The plugins: those asked for by object name, then those they need by project name.
    pub plugins: Vec<LockedPlugin>,
    /// What was read, and when: the answer is as good as these.
    pub facts: Vec<Fact>,
    /// Facts about versions that bind these plugins and that no page states, each with who says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<UsedFact>,
    /// What these plugins are taken to need of each other where nobody has said it, by the dates of their releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guesses: Vec<Guess>,
    /// What the tag of the image was read to say; absent when it does not say its Java, and without an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_java: Option<ImageJava>,
}

/// The format of a file that is kept; `NEWEST` is what is written. One that is not known is refused while reading, so that nobody
/// acts on half of a file. What was read of an older one is written as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct FormatVersion<const NEWEST: u32>(u32);

impl<const NEWEST: u32> FormatVersion<NEWEST> {
    /// What a file is of that was written before files said so.
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

/// A file of a format that is not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is of format {format}, and the newest that this version reads is {newest}")]
pub struct UnknownFormat {
    format: u32,
    newest: u32,
}

/// One file of a lock, always with a hash: a file without one is never chosen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedFile {
    /// The name it gets on the volume: one path component, distinct within a lock.
    pub name: String,
    /// Where it is downloaded.
    pub url: String,
    /// Size in bytes, where the source says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// `sha256:<hex>` or `sha512:<hex>`.
    pub hash: String,
}

/// One plugin of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedPlugin {
    /// The name people know: `ViaVersion`.
    pub name: String,
    /// Where it comes from.
    pub key: ProjectKey,
    /// The source's stable id of the project.
    pub project_id: String,
    /// The source's id of the release.
    pub release_id: String,
    /// The version as its authors write it.
    pub version: String,
    /// The JAR.
    pub file: LockedFile,
    /// Further JARs of the same release, where its Plugin names several (`spec.source.jars`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<LockedFile>,
    /// Why it is here.
    pub reason: LockReason,
}

impl Lock {
    /// The projects of the plugins that nobody asked for.
    pub(crate) fn unasked(&self) -> impl Iterator<Item = &ProjectKey> {
        let unasked = |plugin: &&LockedPlugin| matches!(plugin.reason, LockReason::NeededBy(_));
        self.plugins.iter().filter(unasked).map(|plugin| &plugin.key)
    }
}

impl LockedPlugin {
    /// All its JARs.
    pub fn files(&self) -> impl Iterator<Item = &LockedFile> {
        std::iter::once(&self.file).chain(&self.more)
    }
}

/// Why a plugin is in a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LockReason {
    /// These Plugin objects ask for it, by name.
    RequestedBy(Vec<String>),
    /// Nobody asked; these plugins of the lock (names people know) need it, or JARs of people's own (their files).
    NeededBy(Vec<String>),
}

/// Something that was read and when.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fact {
    /// `Paper`, or `ViaVersion (modrinth)`.
    pub about: String,
    /// When its list was read.
    pub read_at: Timestamp,
}

/// A least version that no page states and nobody has recorded: guessed from the dates of two releases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guess {
    /// The plugin that needs, by the name people know.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// When that was published, if anybody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// The plugin it needs, by the name people know.
    pub needs: String,
    /// The oldest release of it that will do, by the order of its source.
    pub at_least: String,
    /// When that one was published, if anybody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_published: Option<Timestamp>,
}

/// The Java of an image, by its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageJava {
    /// The major version.
    pub has: u32,
    /// When the tag was pushed, where it is one that was read; not for an image that was only named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Timestamp>,
}

/// What names a lock: sha256 over what runs, in hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct LockDigest(String);

impl LockDigest {
    /// All 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 16 hex digits: what object names and labels carry.
    pub fn short(&self) -> &str {
        self.0.get(..16).unwrap_or(&self.0)
    }
}

impl fmt::Display for LockDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What the digest covers. Field order is part of the format: a change gives every server a new digest, and a restart.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Covered<'a> {
    minecraft: &'a str,
    build: u32,
    java: u32,
    image: Option<&'a str>,
    files: Vec<[&'a str; 4]>,
}

impl Lock {
    /// Names this lock by what runs: versions, file names and hashes. Dates, addresses, sizes, reasons, facts and
    /// the server's name are left out, so that a newer reading, or one more fact about the same files, restarts nobody.
    pub fn digest(&self) -> LockDigest {
        let mut files: Vec<[&str; 4]> = self
            .plugins
            .iter()
            .flat_map(|p| p.files().map(move |file| (p, file)))
            .map(|(p, file)| [p.release_id.as_str(), p.version.as_str(), file.name.as_str(), file.hash.as_str()])
            .collect();
        files.push([self.software.project(), "", &self.paper.name, &self.paper.hash]);
        files.sort_unstable();
        let covered = Covered {
            minecraft: self.minecraft.as_str(),
            build: self.build,
            java: self.java,
            image: self.image.as_deref(),
            files,
        };
        LockDigest(hex::encode(Sha256::digest(json(&covered, false))))
    }

    /// Its Paper, or what stands in its place.
    pub fn paper_name(&self) -> PaperName {
        PaperName { software: self.software, minecraft: self.minecraft.clone(), build: self.build }
    }

    /// The lock as pretty JSON with a final newline, the same bytes each time.
    pub fn to_json(&self) -> String {
        let mut text = json(self, true);
        text.push('\n');
        text
    }
}

fn json(value: &impl Serialize, pretty: bool) -> String {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.expect("strings and numbers below string keys always serialise")
}

/// A file name that is one safe path component: what a source calls its file is outside text.
pub(crate) fn safe_file_name(artifact: &Artifact, project: &str) -> String {
    let kept: String = artifact
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-') { c } else { '_' })
        .collect();
    let kept = kept.trim_start_matches(['.', '-']);
    let is_jar = std::path::Path::new(kept).extension().is_some_and(|e| e.eq_ignore_ascii_case("jar"));
    // 120: with the `.part` of a download it stays far below the 255 bytes of a file name.
    let stem: String = if is_jar { kept[..kept.len() - 4].to_owned() } else { kept.to_owned() };
    let stem: String = stem.chars().take(120).collect();
    if stem.is_empty() {
        let plain: String = project.chars().filter(char::is_ascii_alphanumeric).take(60).collect();
        format!("{}.jar", if plain.is_empty() { "plugin" } else { &plain })
    } else {
        format!("{stem}.jar")
    }
}

mod lock_diff;

pub use lock_diff::{ChangeKind, Difference, LockName, PaperChange, PluginChange, ReleaseChange, ReleaseName};

#[cfg(test)]
mod tests;
