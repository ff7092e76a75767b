//! Pure. Replaces the texts in a pod template that belong to one server by placeholders. Templates that are equal then get the same defaults
//! from the API server, so that a thousand equal servers need one dry run.

use kube::ResourceExt;
use serde_json::Value;
use validate::CheckedServer;

use super::Bundle;
use super::init_requests::init_requests_map_name;
use super::pod::backups_path;
use super::secret::secret_name;
use crate::k8s::labels;
use crate::server::template_variable::variable_of;
use validate::image_contract::{FILES_DIGEST, PREPARE_CONTAINER, SIGNED_BY};

/// No text in a template begins with this character.
const PLACEHOLDER: char = '\0';

/// The texts of a server's template that differ between equal servers. The order is the same for all.
pub(crate) fn own_texts(server: &CheckedServer, bundle: &Bundle) -> [String; 10] {
    let trust = [FILES_DIGEST, SIGNED_BY].map(|variable| {
        let spec = bundle.template.spec.as_ref();
        spec.and_then(|spec| variable_of(spec, PREPARE_CONTAINER, variable)).unwrap_or_default().to_owned()
    });
    let [files_digest, signed_by] = trust;
    [
        server.name.clone(),
        bundle.lock.annotations().get(labels::LOCK_DIGEST).cloned().unwrap_or_default(),
        bundle.lock.name_any(),
        init_requests_map_name(&server.name),
        secret_name(&server.name),
        server.claim_name(),
        server.backup_claim_name(),
        backups_path(&server.name),
        files_digest,
        signed_by,
    ]
}

/// The template with placeholders for these texts. A text that only contains one of them stays.
pub(crate) fn with_placeholders(mut template: Value, own: &[String]) -> Value {
    replace_texts(&mut template, &|text| {
        own.iter().position(|own| own == text).map(|index| format!("{PLACEHOLDER}{index}"))
    });
    template
}

/// The template with these texts in place of the placeholders.
pub(crate) fn without_placeholders(mut template: Value, own: &[String]) -> Value {
    replace_texts(&mut template, &|text| own.get(text.strip_prefix(PLACEHOLDER)?.parse::<usize>().ok()?).cloned());
    template
}

fn replace_texts(value: &mut Value, replacement: &impl Fn(&str) -> Option<String>) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_texts(field, replacement)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_texts(item, replacement)),
        Value::String(text) => {
            if let Some(new) = replacement(text) {
                *text = new;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn own(server: &str) -> [String; 2] {
        [server.to_owned(), format!("{server}-lock-1")]
    }

    fn template(server: &str, motd: &str) -> Value {
        json!({
            "metadata": {"labels": {"nightshift.dev/server": server}},
            "spec": {
                "containers": [{"name": "papermc", "env": [{"name": "MOTD", "value": motd}]}],
                "volumes": [{"name": "lock", "configMap": {"name": format!("{server}-lock-1")}}],
            },
        })
    }

    fn defaulted(server: &str, motd: &str) -> Value {
        let mut template = template(server, motd);
        template["spec"]["volumes"][0]["configMap"]["defaultMode"] = json!(420);
        template
    }

    #[test]
    fn templates_of_equal_servers_get_the_same_defaults() {
        let (lobby, survival) = (own("lobby"), own("survival"));
        let general = with_placeholders(template("lobby", "Hello"), &lobby);
        assert_eq!(with_placeholders(template("survival", "Hello"), &survival), general);
        let defaults = with_placeholders(defaulted("lobby", "Hello"), &lobby);
        assert_eq!(without_placeholders(defaults, &survival), defaulted("survival", "Hello"));
    }

    #[test]
    fn templates_with_different_texts_stay_different() {
        let (lobby, survival) = (own("lobby"), own("survival"));
        let general = with_placeholders(template("lobby", "Hello"), &lobby);
        assert_ne!(with_placeholders(template("survival", "Goodbye"), &survival), general);
        let named = with_placeholders(template("lobby", "This is lobby"), &lobby);
        assert_ne!(with_placeholders(template("survival", "This is survival"), &survival), named);
        assert_ne!(with_placeholders(template("survival", "lobby"), &survival), general);
    }
}
