//! Pure. Defines the data of a request that the available metadata cannot answer: the missing and the known parts.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::catalog::{Catalog, ProjectKey};
use crate::model::gap::Gap;
use crate::model::request::Request;
use crate::model::software::PaperName;

/// The reason why the available metadata cannot answer the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Unanswerable {
    /// The server as the request names it.
    pub server: String,
    /// Projects that the catalog does not hold yet. Fetch them and solve again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetch: Vec<ProjectKey>,
    /// The build that would be chosen but was not downloaded for verification yet: its source gives only an md5, which
    /// is not sufficient for a lock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<PaperName>,
    /// Projects and builds that could not be read, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<(String, String)>,
    /// Requested parts that are known although others could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<LastRead>,
}

/// A part that was read, possibly before its upstream became unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastRead {
    /// The builds of a software (`Paper`), or a project (`modrinth/viaversion`).
    pub what: String,
    /// The time of the last read.
    pub read_at: Timestamp,
}

impl Unanswerable {
    /// For a request with this gap.
    pub(crate) fn from_gap(catalog: &Catalog, request: &Request, gap: Gap) -> Self {
        // A project that was not fetched yet is available soon. The last read times matter if an upstream is
        // unavailable.
        let known = if gap.unread.is_empty() { Vec::new() } else { last_reads(catalog, request) };
        Self {
            server: request.server.clone(),
            fetch: gap.fetch.into_iter().collect(),
            unverified: Vec::new(),
            unread: gap.unread.into_iter().collect(),
            known,
        }
    }
}

/// The builds and the projects that a request names, as far as they were ever read.
fn last_reads(catalog: &Catalog, request: &Request) -> Vec<LastRead> {
    let software = request.software;
    let builds = LastRead { what: software.to_string(), read_at: catalog.read_at(software) };
    let builds = (!catalog.versions(software).is_empty()).then_some(builds);
    let mut keys: Vec<&ProjectKey> = request.plugins.iter().map(|plugin_request| &plugin_request.key).collect();
    keys.sort();
    keys.dedup();
    let read = |key: &ProjectKey| Some(LastRead { what: key.to_display(), read_at: catalog.project(key)?.read_at });
    builds.into_iter().chain(keys.into_iter().filter_map(read)).collect()
}
