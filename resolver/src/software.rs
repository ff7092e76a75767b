//! Pure. Server software: what a server runs as, and what that loads.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::catalog::{Release, Source};
use crate::request::Request;
use crate::version::Minecraft;

/// What a server runs as (`spec.software`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub enum Software {
    /// Paper.
    #[default]
    Paper,
    /// Paper with more settings and features: it loads what Paper loads, and what is made for it alone.
    Purpur,
    /// Paper with many regions that tick on their own: it loads only plugins that say they bear that.
    Folia,
    /// A proxy in front of servers. Its versions are its own, it has no world, and its plugins have another API.
    Velocity,
}

/// What a Paper server loads. Purpur and Folia builds are not implied by these.
const PAPER_LOADS: [&str; 3] = ["bukkit", "paper", "spigot"];

/// What a Purpur server loads: all of Paper's, because it is Paper with patches on top.
const PURPUR_LOADS: [&str; 4] = ["bukkit", "paper", "purpur", "spigot"];

fn names(release: &Release, known: &[&str]) -> bool {
    release.loaders.iter().any(|loader| known.iter().any(|known| loader.eq_ignore_ascii_case(known)))
}

impl Software {
    /// All that there is.
    pub const ALL: [Self; 4] = [Self::Paper, Self::Purpur, Self::Folia, Self::Velocity];

    /// The software whose builds have to be known to answer these requests, Paper first. The lists of Purpur and Folia are read by
    /// what Paper has built, and the Java of Purpur is Paper's.
    pub fn all_of(requests: &[Request]) -> Vec<Self> {
        let runs = |software: &Self| requests.iter().any(|request| request.software == *software);
        let needed = |software: &Self| match software {
            Self::Paper => runs(&Self::Paper) || runs(&Self::Purpur) || runs(&Self::Folia),
            Self::Purpur | Self::Folia | Self::Velocity => runs(software),
        };
        Self::ALL.into_iter().filter(needed).collect()
    }

    /// What the list of its builds is called where that could not be read ([`crate::catalog::Catalog::unread`]): `fill/paper`.
    pub(crate) fn list(self) -> String {
        let site = match self {
            Self::Purpur => "purpur",
            Self::Paper | Self::Folia | Self::Velocity => "fill",
        };
        format!("{site}/{}", self.project())
    }

    /// Whether it is Paper, which no text has to name.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this signature")]
    pub(crate) fn is_paper(&self) -> bool {
        *self == Self::Paper
    }

    /// Whether it is a Minecraft server, with a world: its versions are Minecraft's. A proxy has neither.
    pub fn is_minecraft(self) -> bool {
        match self {
            Self::Paper | Self::Purpur | Self::Folia => true,
            Self::Velocity => false,
        }
    }

    /// The least Java of a version for which nobody states one.
    pub(crate) fn java_of(self, version: &Minecraft) -> u32 {
        match self {
            Self::Paper | Self::Purpur | Self::Folia => version.vanilla_java(),
            // What its newest lines need: with less, a server could be told to start on a Java that refuses it.
            Self::Velocity => 21,
        }
    }

    /// Whose versions it has: those of Minecraft, or its own.
    pub(crate) fn numbered_as(self) -> String {
        if self.is_minecraft() { "Minecraft".to_owned() } else { self.to_string() }
    }

    /// Its project where its builds are published, and the start of its files' names.
    pub fn project(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Purpur => "purpur",
            Self::Folia => "folia",
            Self::Velocity => "velocity",
        }
    }

    /// Whether a page says that it loads a release; one that names no software at all is believed.
    pub(crate) fn is_named_by(self, release: &Release) -> bool {
        release.loaders.is_empty()
            || match self {
                Self::Paper => names(release, &PAPER_LOADS),
                Self::Purpur => names(release, &PURPUR_LOADS),
                Self::Folia | Self::Velocity => names(release, &[self.project()]),
            }
    }

    /// Whether a release is made for servers of its kind: what it does not load of those is another matter.
    pub(crate) fn is_kin_of(self, release: &Release) -> bool {
        match self {
            Self::Paper | Self::Purpur | Self::Velocity => self.is_named_by(release),
            Self::Folia => self.is_named_by(release) || Self::Paper.is_named_by(release),
        }
    }

    /// Whether the lists of a source are about it. The Minecraft versions on Modrinth are those of players and servers, and
    /// bind no proxy.
    pub(crate) fn is_listed_at(self, source: Source) -> bool {
        self.is_minecraft() || source == Source::Hangar
    }

    /// What a page lists for it.
    pub(crate) fn list_of(self, source: Source, release: &Release) -> &[Minecraft] {
        if self.is_listed_at(source) { &release.minecraft } else { &[] }
    }
}

/// The name people know.
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
