//! Pure. Reads the running version set from the status of a server object. A user's manifest has none.

use std::collections::BTreeMap;

use crds::paper_mc_server::{PaperMCServerStatus, PluginState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use resolver::model::lock::LockReason;

/// The running version set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct RunningSet {
    /// Paper: `1.21.10-130`. Without the build if that is unknown.
    pub(crate) paper: Option<String>,
    /// Versions of the plugins by display name.
    pub(crate) plugins: BTreeMap<String, String>,
    /// Why they are installed, by the same names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) reasons: BTreeMap<String, LockReason>,
}

/// The version set in the status.
pub(crate) fn from_status(status: Option<&PaperMCServerStatus>) -> RunningSet {
    let Some(status) = status else { return RunningSet::default() };
    let build = status.current_build.map(|build| format!("-{build}")).unwrap_or_default();
    let plugins = status.plugins.iter();
    let names = |list: &String| list.split(", ").map(str::to_owned).collect();
    let reason = |one: &PluginState| {
        let requested = one.plugin.as_ref().map(|objects| LockReason::RequestedBy(names(objects)));
        requested.or_else(|| one.needed_by.as_ref().map(|plugins| LockReason::NeededBy(names(plugins))))
    };
    RunningSet {
        reasons: plugins.clone().filter_map(|one| Some((one.name.clone(), reason(one)?))).collect(),
        paper: status.current_version.as_ref().map(|minecraft| format!("{minecraft}{build}")),
        plugins: plugins.filter_map(|one| Some((one.name.clone(), one.current_version.clone()?))).collect(),
    }
}

/// Reads a status leniently: a newer operator may have written it, and values that are not understood are ignored.
pub(crate) fn parse_status(written: Value) -> PaperMCServerStatus {
    let Value::Object(fields) = written else { return PaperMCServerStatus::default() };
    let understood = |key: &str, value: &Value| {
        serde_json::from_value::<PaperMCServerStatus>(json!({key: value})).is_ok().then(|| value.clone())
    };
    let mut understood_fields = Map::new();
    for (key, value) in fields {
        let value = match value {
            Value::Array(items) => {
                let items = items.into_iter().filter(|item| understood(&key, &json!([item])).is_some());
                Some(Value::Array(items.collect()))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                understood(&key, &value)
            }
        };
        understood_fields.extend(value.map(|value| (key, value)));
    }
    serde_json::from_value(Value::Object(understood_fields)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_newer_operator_is_read_without_unknown_parts() {
        let status = parse_status(json!({
            "currentVersion": "1.21.10", "currentBuild": "a hundred", "unheardOf": {"a": 1},
            "plugins": [
                {"name": "DiscordSRV", "currentVersion": "1.30.3", "state": "Installed"},
                {"name": "ViaVersion", "currentVersion": "5.7.1", "state": "Levitating"},
            ],
        }));
        let runs = from_status(Some(&status));
        assert_eq!(runs.paper.as_deref(), Some("1.21.10"));
        assert_eq!(runs.plugins, BTreeMap::from([("DiscordSRV".to_owned(), "1.30.3".to_owned())]));
    }
}
