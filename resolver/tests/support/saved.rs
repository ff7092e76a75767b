//! Pure. A question about servers in the words of the file that `--problem` takes: what a test prints of it can be asked again.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

/// The question, asked and answered at this instant. Generic, for the tests of the library have other names for its types.
pub(crate) fn saved(catalog: &impl Serialize, requests: &(impl Serialize + ?Sized), now: Timestamp) -> String {
    let question = json!({ "now": now, "at": now });
    json!({ "formatVersion": 1, "question": question, "requests": requests, "catalog": catalog }).to_string()
}
