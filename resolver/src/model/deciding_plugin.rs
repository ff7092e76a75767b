//! Pure. Decides which of several Plugins for one project applies to a server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::request::{PluginRequest, Request};
use super::version::lenient;

/// The requests with the most specific selectors, by the names of their Plugins. Only these decide the release.
pub(crate) fn most_specific<'a>(requests: &[&'a PluginRequest]) -> Vec<&'a PluginRequest> {
    let mut most = requests.to_vec();
    if most.len() > 1 {
        let highest = requests.iter().map(|plugin_request| specificity(plugin_request)).max();
        most.retain(|plugin_request| Some(specificity(plugin_request)) == highest);
        most.sort_by(|a, b| a.object.cmp(&b.object));
    }
    most
}

/// The request whose fields apply, of those with the [`most_specific`] selectors. A request for the newest version lets
/// the solver choose. If all are pins, the highest one applies. `None` without requests.
pub(crate) fn deciding_request<'a>(most_specific: &[&'a PluginRequest]) -> Option<&'a PluginRequest> {
    let requests = most_specific.iter().copied();
    let unpinned = requests.clone().find(|plugin_request| plugin_request.pinned_version().is_none());
    unpinned.or_else(|| {
        requests.reduce(|best, plugin_request| match (best.pinned_version(), plugin_request.pinned_version()) {
            (Some(a), Some(b)) if lenient::compare(b, a).is_gt() => plugin_request,
            _ => best,
        })
    })
}

/// The number of labels and expressions in the selector. It is zero for a selector that matches every server.
fn specificity(plugin_request: &PluginRequest) -> usize {
    let selector = plugin_request.selector.as_deref().unwrap_or("{}");
    // Every selector was written from a typed one.
    let Ok(Selector { match_labels, match_expressions }) = serde_json::from_str(selector) else { return 0 };
    match_labels.len() + match_expressions.len()
}

/// The parts of a label selector.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<IgnoredAny>,
}

impl Request {
    /// The Plugin whose fields apply, of these that request one project. `None` unless there are several.
    pub fn deciding_object(&self, objects: &[String]) -> Option<&str> {
        let named = |plugin_request: &&PluginRequest| objects.contains(&plugin_request.object);
        let requests: Vec<&PluginRequest> = self.plugins.iter().filter(named).collect();
        let deciding = deciding_request(&most_specific(&requests)).filter(|_| requests.len() > 1);
        deciding.map(|plugin_request| plugin_request.object.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(plugins: &[(&str, Option<&str>, &Value)]) -> Request {
        let plugins: Vec<Value> = plugins
            .iter()
            .map(|(object, pin, selector)| {
                let version = match pin {
                    Some(version) => json!({"strategy": "pin", "version": version}),
                    None => json!({"strategy": "latest"}),
                };
                json!({
                    "object": object, "key": {"source": "modrinth", "project": "claims"}, "version": version,
                    "delay": "PT0S", "channel": "release", "selector": selector.to_string(),
                })
            })
            .collect();
        serde_json::from_value(json!({
            "server": "games/lobby", "paper": {"strategy": "auto"}, "delay": "PT0S", "channel": "STABLE",
            "plugins": plugins,
        }))
        .unwrap()
    }

    #[test]
    fn plugin_with_more_specific_selector_decides() {
        let all = json!({});
        let tier = json!({"matchLabels": {"tier": "survival"}});
        let expression = json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]});
        let both = json!({
            "matchLabels": {"tier": "survival"}, "matchExpressions": [{"key": "nightly", "operator": "DoesNotExist"}],
        });
        for (plugins, deciding) in [
            ([("a", None, &all), ("b", Some("1"), &tier)], "b"),
            ([("a", Some("2"), &tier), ("b", Some("1"), &both)], "b"),
            ([("a", None, &both), ("b", Some("1"), &expression)], "a"),
            // Equally specific: without a pin, else the highest pin.
            ([("a", Some("1"), &tier), ("b", None, &expression)], "b"),
            ([("a", Some("1.9"), &tier), ("b", Some("1.10"), &tier)], "b"),
            ([("a", Some("1.10"), &all), ("b", Some("1.9"), &all)], "a"),
        ] {
            let objects = ["a".to_owned(), "b".to_owned()];
            assert_eq!(request(&plugins).deciding_object(&objects), Some(deciding), "{plugins:?}");
            assert_eq!(request(&plugins).deciding_object(&objects[..1]), None, "one Plugin has nothing to decide");
        }
    }
}
