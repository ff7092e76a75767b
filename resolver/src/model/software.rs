//! Pure. Models server software and the plugins that it loads.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::catalog::{Release, Source};
use super::version::Minecraft;

/// The software of a server (`spec.software`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Software {
    /// Paper.
    #[default]
    Paper,
    /// Paper with more settings and features: it loads Paper plugins and its own.
    Purpur,
    /// Paper with many regions that tick independently: it only loads plugins that declare support for it.
    Folia,
    /// A proxy for servers. It has its own version numbers, no world, and another plugin API.
    Velocity,
}

/// The loaders that a Paper server supports. Releases for Purpur or Folia only are not included.
const PAPER_LOADERS: [&str; 3] = ["bukkit", "paper", "spigot"];

/// The loaders that a Purpur server supports: all of Paper's, because it is Paper with patches on top.
const PURPUR_LOADERS: [&str; 4] = ["bukkit", "paper", "purpur", "spigot"];

fn names_loader(release: &Release, loaders: &[&str]) -> bool {
    release.loaders.iter().any(|loader| loaders.iter().any(|name| loader.eq_ignore_ascii_case(name)))
}

impl Software {
    /// All values.
    pub const ALL: [Self; 4] = [Self::Paper, Self::Purpur, Self::Folia, Self::Velocity];

    /// The name of the list of its builds, used if that could not be read ([`crate::model::catalog::Catalog::unread`]):
    /// `fill/paper`.
    pub fn list_name(self) -> String {
        let site = match self {
            Self::Purpur => "purpur",
            Self::Paper | Self::Folia | Self::Velocity => "fill",
        };
        format!("{site}/{}", self.project())
    }

    /// Whether it is Paper, which texts need not name.
    pub fn is_paper(&self) -> bool {
        *self == Self::Paper
    }

    /// Whether it is a Minecraft server, with Minecraft's version numbers and a world. A proxy has neither.
    pub fn is_minecraft(self) -> bool {
        match self {
            Self::Paper | Self::Purpur | Self::Folia => true,
            Self::Velocity => false,
        }
    }

    /// The minimum Java version of a version for which no source states one.
    pub(crate) fn default_java(self, version: &Minecraft) -> u32 {
        match self {
            Self::Paper | Self::Purpur | Self::Folia => version.vanilla_java(),
            // The requirement of its newest lines: with less, a server could be started on a Java version that refuses
            // it.
            Self::Velocity => 21,
        }
    }

    /// The origin of its version numbers: Minecraft, or the software itself.
    pub(crate) fn version_scheme(self) -> String {
        if self.is_minecraft() { "Minecraft".to_owned() } else { self.to_string() }
    }

    /// The project under which its builds are published, which is also the prefix of its file names.
    pub fn project(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Purpur => "purpur",
            Self::Folia => "folia",
            Self::Velocity => "velocity",
        }
    }

    /// Whether a page states that the software loads a release. A page that names no software counts as yes.
    pub fn is_named_by(self, release: &Release) -> bool {
        release.loaders.is_empty()
            || match self {
                Self::Paper => names_loader(release, &PAPER_LOADERS),
                Self::Purpur => names_loader(release, &PURPUR_LOADERS),
                Self::Folia | Self::Velocity => names_loader(release, &[self.project()]),
            }
    }

    /// Whether a release is made for servers of its kind. The software may still refuse to load it.
    pub(crate) fn accepts_kind_of(self, release: &Release) -> bool {
        match self {
            Self::Paper | Self::Purpur | Self::Velocity => self.is_named_by(release),
            Self::Folia => self.is_named_by(release) || Self::Paper.is_named_by(release),
        }
    }

    /// Whether the lists of a source are about it. The Minecraft versions on Modrinth apply to players and servers, and
    /// do not constrain a proxy.
    pub(crate) fn is_listed_at(self, source: Source) -> bool {
        self.is_minecraft() || source == Source::Hangar
    }

    /// The list on a page that applies to it.
    pub(crate) fn listed_versions(self, source: Source, release: &Release) -> &[Minecraft] {
        if self.is_listed_at(source) { &release.minecraft } else { &[] }
    }
}

/// The display name.
impl fmt::Display for Software {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Paper => "Paper",
            Self::Purpur => "Purpur",
            Self::Folia => "Folia",
            Self::Velocity => "Velocity",
        })
    }
}

/// A Minecraft version and a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PaperName {
    /// The software. Absent for Paper.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The Minecraft version.
    pub minecraft: Minecraft,
    /// The build number.
    pub build: u32,
}

/// `Paper 1.21.10 (build 130)`
impl fmt::Display for PaperName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { software, minecraft, build } = self;
        write!(f, "{software} {minecraft} (build {build})")
    }
}
