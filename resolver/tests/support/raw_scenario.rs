//! Pure. A scenario with complete catalog and requests, as the brute force tests print it for a failure.

use jiff::Timestamp;
use resolver::model::catalog::Catalog;
use resolver::model::request::Request;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verbatim<E> {
    pub(crate) name: String,
    pub(crate) why: String,
    pub(crate) at: Timestamp,
    pub(crate) expect: E,
    /// The expected answers of the further servers.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<E>,
    pub(crate) problem: Parts,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parts {
    pub(crate) request: Request,
    /// Further servers. Without any, the one above is solved alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<Request>,
    pub(crate) catalog: Catalog,
}
