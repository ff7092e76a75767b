//! Edge (reads). Clients for Fill, PurpurMC, Hangar, Modrinth and Docker Hub that build the
//! [`catalog`](resolver::model::catalog).
//!
//! Every page that is read is cached in memory and, in a compact form, on disk. A page is requested again only after
//! its [`Ttl`], with `If-None-Match` where the upstream gave an `ETag`. When an upstream fails, the cached page is used
//! and the [`CatalogBuild`] reports the failure. Time is an argument of [`Fetcher::catalog`]. This module reads no
//! clock.
//!
//! # Requests per upstream
//!
//! | when | Fill | each Modrinth project | each Hangar project | Docker Hub |
//! |---|---|---|---|---|
//! | cache is empty | 1 + one per Paper version not older than [`CatalogQuery::oldest`] | 2 | 1 + one per 25 releases, + 1 if several pages | at most 3 |
//! | within [`Ttl`] | 0 | 0 | 0 | 0 |
//! | every 5 minutes | 1 + 3 (the newest versions) + one per version with a new build (304 if unchanged) | – | – | – |
//! | every 10 minutes | – | 1 | 1 | – |
//! | every hour | – | – | – | 1 |
//! | every day | one per older version (304 if unchanged) | 2 | as with an empty cache | – |
//!
//! A query with a [`CatalogQuery::max_age`] reads its pages anew that are older, with conditional requests.
//!
//! PurpurMC is read where a server runs Purpur. It is read as Fill is, but with one request per version, because its
//! list of versions contains no builds. The JAR of a build that a version set would contain is downloaded once, because
//! PurpurMC publishes only an md5.
//!
//! A file that a Plugin names by its URL is downloaded once, whatever its size, and read. No further request is made
//! for it.
//!
//! Requests are rate-limited per upstream (Hangar and Modrinth 4 a second), and at most 8 run at the same time.
//! Concurrent requests for the same page are merged into one.

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
#[cfg(test)]
#[path = "../../tests/support/mutate.rs"]
mod mutate;
mod page_cache;
mod project_page;
mod purpur;
mod rate_limit;
mod release_files;
mod rows;
mod url;

use std::fmt;

use reqwest::Url;

pub use catalog_builder::{CatalogBuild, ReadError};
pub use error::{Blame, FetchError, StartError, format_chain};
pub use fetcher::{CatalogQuery, Fetcher, Settings, Ttl};
pub use http::RetryPolicy;
use resolver::model::software::Software;

/// Base URL of each API. Request paths are appended to it.
///
/// Plain `http` is accepted here, and only here, because an admin configures these URLs.
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
        let url = |text| Url::parse(text).expect("the literal is a URL, as a test checks");
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
    /// All base URLs. A URL with the origin of one of them is trusted as that one is.
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

    /// The URL of a path below an upstream's base. Each segment is escaped, so a name cannot add path segments.
    fn url(&self, upstream: Upstream, segments: &[&str], query: &[(&str, &str)]) -> Url {
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

/// One of the five upstreams that are read.
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
    /// All upstreams, in order.
    pub const ALL: [Self; 5] = [Self::Fill, Self::Purpur, Self::Hangar, Self::Modrinth, Self::DockerHub];

    /// The upstream that publishes the builds of a server software.
    pub(crate) fn for_builds(software: Software) -> Self {
        match software {
            Software::Purpur => Self::Purpur,
            Software::Paper | Software::Folia | Software::Velocity => Self::Fill,
        }
    }

    /// Name for metrics, from a closed set.
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

/// The name that users know.
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
