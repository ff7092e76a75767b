//! Pure. The data of a question that no metadata answers: what is missing, and what is known all the same.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PaperName;
use crate::catalog::{Catalog, ProjectKey};
use crate::index::Gap;
use crate::request::Request;

/// Why no metadata answers the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Unanswerable {
    /// The server as the request names it.
    pub server: String,
    /// Projects that the catalog does not hold yet: fetch them and ask again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetch: Vec<ProjectKey>,
    /// The build that would be chosen, whose bytes nobody has seen: its source gives an md5 only, which no lock rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<PaperName>,
    /// Projects and builds that could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<(String, String)>,
    /// What the server asks for and is known all the same, where something could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<LastRead>,
}

/// Something that was read, be it before its upstream was down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastRead {
    /// The builds of a software (`Paper`), or a project (`modrinth/viaversion`).
    pub what: String,
    /// When it was read last.
    pub read_at: Timestamp,
}

impl Unanswerable {
    /// Of a request that lacks this.
    pub(crate) fn lacking(catalog: &Catalog, request: &Request, gap: Gap) -> Self {
        // What nobody has fetched yet is there in a moment; of an upstream that is down people ask since when.
        let known = if gap.unread.is_empty() { Vec::new() } else { known(catalog, request) };
        Self {
            server: request.server.clone(),
            fetch: gap.fetch.into_iter().collect(),
            unseen: Vec::new(),
            unread: gap.unread.into_iter().collect(),
            known,
        }
    }
}

/// The builds and the projects that a request names, as far as they were ever read.
fn known(catalog: &Catalog, request: &Request) -> Vec<LastRead> {
    let software = request.software;
    let builds = LastRead { what: software.to_string(), read_at: catalog.read_at(software) };
    let builds = (!catalog.versions(software).is_empty()).then_some(builds);
    let mut keys: Vec<&ProjectKey> = request.plugins.iter().map(|wish| &wish.key).collect();
    keys.sort();
    keys.dedup();
    let read = |key: &ProjectKey| Some(LastRead { what: key.shown(), read_at: catalog.project(key)?.read_at });
    builds.into_iter().chain(keys.into_iter().filter_map(read)).collect()
}
