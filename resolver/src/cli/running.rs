//! Pure. What runs on a server, as the status of its object says; a manifest of one's own has none.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::Node;

/// What runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Runs {
    /// Paper: `1.21.10-130`; without the build if that is not told.
    pub(super) paper: Option<String>,
    /// Plugins by the name people know.
    pub(super) plugins: BTreeMap<String, String>,
}

/// What the status of this object says. It may be written by an operator that is newer than this command: what is not
/// understood is as good as not there.
pub(super) fn of(object: &Node) -> Runs {
    let status = object.get("status").map(Node::to_json).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let build = status["currentBuild"].as_u64().map(|build| format!("-{build}")).unwrap_or_default();
    let plugins = status["plugins"].as_array().into_iter().flatten();
    Runs {
        paper: text(&status["currentVersion"]).map(|minecraft| minecraft + &build),
        plugins: plugins.filter_map(|one| Some((text(&one["name"])?, text(&one["currentVersion"])?))).collect(),
    }
}
