//! Pure. Formats a query in the file format of `--problem`, so that a failed test case can be reproduced.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

/// The saved query at this time. It is generic, because the library's tests use other paths for its types.
pub(crate) fn saved_query_json(
    catalog: &impl Serialize,
    requests: &(impl Serialize + ?Sized),
    now: Timestamp,
) -> String {
    let question = json!({ "now": now, "at": now });
    json!({ "formatVersion": 1, "question": question, "requests": requests, "catalog": catalog }).to_string()
}
