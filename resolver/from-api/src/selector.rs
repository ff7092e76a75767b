//! Pure. Selects the plugins of a server: label selectors with the semantics of Kubernetes.

use std::collections::BTreeMap;

use crds::{LabelSelector, PaperMCServer, Plugin};

/// The plugins of the server's namespace whose selector matches its labels, by name.
pub fn matching<'a>(server: &PaperMCServer, plugins: impl IntoIterator<Item = &'a Plugin>) -> Vec<&'a Plugin> {
    let none = BTreeMap::new();
    let labels = server.metadata.labels.as_ref().unwrap_or(&none);
    let mut found: Vec<&Plugin> = plugins
        .into_iter()
        .filter(|plugin| plugin.metadata.namespace == server.metadata.namespace)
        .filter(|plugin| matches(&plugin.spec.instance_selector, labels))
        .collect();
    found.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    found
}

/// Whether a selector matches these labels. All its parts must match, and an empty one matches everything.
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let LabelSelector { match_labels, match_expressions } = selector;
    let equal = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    let is_met = |key: &str, operator: &str, values: &[String]| match operator {
        "In" => labels.get(key).is_some_and(|value| values.contains(value)),
        // As in Kubernetes, an object without the label matches `NotIn`.
        "NotIn" => labels.get(key).is_none_or(|value| !values.contains(value)),
        "Exists" => labels.contains_key(key),
        "DoesNotExist" => !labels.contains_key(key),
        // The schema allows no other operator. If there is one, a missing plugin is safer than a plugin on the wrong
        // server.
        _ => false,
    };
    match_labels.iter().flatten().all(equal)
        && match_expressions.iter().flatten().all(|requirement| {
            is_met(&requirement.key, &requirement.operator, requirement.values.as_deref().unwrap_or_default())
        })
}
