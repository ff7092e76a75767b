//! Edge (reads). The clients for Fill, PurpurMC, Hangar, Modrinth and Docker Hub: they fill the [`catalog`](crate::catalog).
//!
//! Everything read is kept in memory and, in a compact form, on disk; a page is asked for again only when its time is up,
//! with `If-None-Match` where the upstream gave an `ETag`. When an upstream fails, what was read before is used and the
//! [`CatalogBuild`] says so. Time is an argument of [`Fetcher::catalog`]; nothing here reads a clock.
//!
//! # Requests this makes
//!
//! | when | Fill | each Modrinth project | each Hangar project | Docker Hub |
//! |---|---|---|---|---|
//! | nothing stored | 1 + one per Paper version not older than [`CatalogQuery::oldest`] | 2 | 1 + one per 25 releases, + 1 if several pages | at most 3 |
//! | within [`Ttl`] | 0 | 0 | 0 | 0 |
//! | every 5 minutes | 1 + 3 (the newest versions) + one per version with a new build; 304 if unchanged | – | – | – |
//! | every 10 minutes | – | 1 | 1 | – |
//! | every hour | – | – | – | 1 |
//! | every day | one per older version; 304 if unchanged | 2 | as if nothing was stored | – |
//!
//! PurpurMC is asked where a server runs as Purpur: as Fill is, but each version has to be asked about by itself, because its list of
//! versions names no builds. The JAR of a build that a set would have is downloaded once: its source gives an md5 only.
//!
//! A file that a Plugin names by its address is downloaded once, whatever its size, and read; nothing is asked about it again.
//!
//! All are paced per upstream (Hangar 4 a second, Modrinth 5), at most 8 at the same time, and a page asked
//! for by many at once is requested once.

mod catalog_builder;
mod disk_cache;
mod disk_format;
mod docker_hub;
mod error;
mod fetcher;
mod fill;
mod hangar;
mod http;
mod modrinth;
mod page_cache;
mod project_page;
mod purpur;
mod rate_limit;
mod url;

use std::fmt;

use reqwest::Url;

use crate::software::Software;

pub use catalog_builder::{CatalogBuild, ReadError};
pub use error::{Blame, FetchError, StartError, in_words};
pub use fetcher::{CatalogQuery, Fetcher, Settings, Ttl};
pub use http::{RetryPolicy, client};

/// Where each API is: what its paths are appended to.
///
/// Plain `http` is accepted here, and only here, because an admin wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstreams {
    /// PaperMC's downloads, by default `https://fill.papermc.io/v3`.
    pub fill: Url,
    /// PurpurMC's downloads, by default `https://api.purpurmc.org/v2`.
    pub purpur: Url,
    /// By default `https://hangar.papermc.io/api/v1`.
    pub hangar: Url,
    /// By default `https://api.modrinth.com/v2`.
    pub modrinth: Url,
    /// By default `https://hub.docker.com/v2`.
    pub docker_hub: Url,
}

impl Default for Upstreams {
    fn default() -> Self {
        let url = |text| Url::parse(text).expect("a literal that a test parses");
        Self {
            fill: url("https://fill.papermc.io/v3"),
            purpur: url("https://api.purpurmc.org/v2"),
            hangar: url("https://hangar.papermc.io/api/v1"),
            modrinth: url("https://api.modrinth.com/v2"),
            docker_hub: url("https://hub.docker.com/v2"),
        }
    }
}

impl Upstreams {
    /// All of them: what has the origin of one is trusted as that one is.
    pub fn all(&self) -> Vec<Url> {
        Upstream::ALL.into_iter().map(|upstream| self.base(upstream).clone()).collect()
    }

    fn base(&self, upstream: Upstream) -> &Url {
        match upstream {
            Upstream::Fill => &self.fill,
            Upstream::Purpur => &self.purpur,
            Upstream::Hangar => &self.hangar,
            Upstream::Modrinth => &self.modrinth,
            Upstream::DockerHub => &self.docker_hub,
        }
    }

    /// The address of a path below an upstream's base; each segment is escaped, so a name cannot leave its place.
    fn at(&self, upstream: Upstream, segments: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.base(upstream).clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

/// One of the five we read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Upstream {
    /// PaperMC's build service.
    Fill,
    /// PurpurMC's build service.
    Purpur,
    /// PaperMC's plugin repository.
    Hangar,
    /// `modrinth.com`
    Modrinth,
    /// Tags of the server image.
    DockerHub,
}

impl Upstream {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [Self::Fill, Self::Purpur, Self::Hangar, Self::Modrinth, Self::DockerHub];

    /// Who publishes the builds of a software.
    pub(crate) fn of_builds(software: Software) -> Self {
        match software {
            Software::Purpur => Self::Purpur,
            Software::Paper | Software::Folia | Software::Velocity => Self::Fill,
        }
    }

    /// A name for metrics: a closed set.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Purpur => "purpur",
            Self::Hangar => "hangar",
            Self::Modrinth => "modrinth",
            Self::DockerHub => "docker-hub",
        }
    }
}

/// The name people know.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fill => "PaperMC Fill",
            Self::Purpur => "PurpurMC",
            Self::Hangar => "Hangar",
            Self::Modrinth => "Modrinth",
            Self::DockerHub => "Docker Hub",
        })
    }
}

#[cfg(test)]
mod tests;
