//! Edge (reads). Checks that the Secrets that a spec names allow their use. The kubelet gives them to the pod, whoever has named them, and a
//! writer of the spec need not be allowed to read them.
//!
//! Only their labels are read: at the first pass, after a change of their names, and once an hour.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::Api;
use serde_json::Value;
use validate::CheckedServer;

use super::observe::{ObserveError, read_error};
use crate::caches::AllowedSecrets;
use crate::context::Context;
use crate::k8s::labels::{ALLOW_USE, allow_use_command, allows_use};

/// How long a read label counts. A label that was removed has an effect after that time.
const VALID_FOR: SignedDuration = SignedDuration::from_hours(1);

/// The message about the first Secret that is missing or does not allow its use. `None` if there is none.
pub(crate) async fn refusal(
    ctx: &Context,
    server: &CheckedServer,
    now: Timestamp,
) -> Result<Option<String>, ObserveError> {
    let names = named_secrets(server);
    let key = (server.namespace.clone(), server.name.clone());
    let is_valid = |known: AllowedSecrets| {
        known.names == names && (SignedDuration::ZERO..VALID_FOR).contains(&now.duration_since(known.read_at))
    };
    if !ctx.config.require_secret_label
        || names.is_empty()
        || ctx.caches.allowed_secrets.get(&key).is_some_and(is_valid)
    {
        return Ok(None);
    }
    let secrets: Api<Secret> = Api::namespaced(ctx.client.clone(), &server.namespace);
    for name in &names {
        let found = secrets.get_metadata_opt(name).await.map_err(read_error("Secret", name))?;
        if !found.as_ref().is_some_and(|secret| allows_use(secret.labels())) {
            ctx.caches.allowed_secrets.remove(&key);
            return Ok(Some(message(&server.namespace, name, found.is_some())));
        }
    }
    ctx.caches.allowed_secrets.put(key, AllowedSecrets { names, read_at: now });
    Ok(None)
}

/// The Secrets of `spec.rcon.passwordSecret`, and all of `spec.podTemplate`.
fn named_secrets(server: &CheckedServer) -> BTreeSet<String> {
    let rcon = &server.pod.rcon;
    let mut names: BTreeSet<String> =
        rcon.secret.iter().filter(|_| rcon.enabled).map(|(name, _)| name.clone()).collect();
    let template = serde_json::to_value(&server.pod.template).expect("a Kubernetes type serialises");
    collect_secrets(&template, &mut names);
    names.remove("");
    names
}

/// Kubernetes names a Secret in `imagePullSecrets`, in `secret` of a volume, and in fields such as `secretKeyRef` and `nodePublishSecretRef`.
fn collect_secrets(value: &Value, names: &mut BTreeSet<String>) {
    let mut add = |named: &Value| names.extend(named.as_str().map(str::to_owned));
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_secrets(item, names)),
        Value::Object(fields) => {
            for (field, value) in fields {
                if field == "secret" || field.ends_with("ecretRef") || field.ends_with("ecretKeyRef") {
                    add(&value["name"]);
                    add(&value["secretName"]);
                } else if field == "imagePullSecrets" {
                    value.as_array().into_iter().flatten().for_each(|secret| add(&secret["name"]));
                }
            }
            fields.values().for_each(|value| collect_secrets(value, names));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn message(namespace: &str, name: &str, exists: bool) -> String {
    let command = allow_use_command(namespace, name);
    if exists {
        format!(
            "Secret `{name}` does not allow its use by servers. The owner of the Secret can allow it with `{command}`"
        )
    } else {
        format!(
            "there is no Secret `{name}` in this namespace. Create it with the label `{}: \"{}\"`, or correct its name \
            in the spec",
            ALLOW_USE.0, ALLOW_USE.1
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::test_server::server;
    use validate::check;

    fn names(spec: serde_json::Value) -> Vec<String> {
        named_secrets(&check(&server(spec)).unwrap()).into_iter().collect()
    }

    #[test]
    fn every_named_secret_needs_permission() {
        assert_eq!(names(json!({})), [""; 0]);
        let password = json!({"passwordSecret": {"name": "rcon", "key": "password"}});
        let container = json!({
            "name": "extra", "image": "extra:1",
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k"}}}],
            "envFrom": [{"secretRef": {"name": "b"}}],
        });
        let template = json!({"spec": {
            "imagePullSecrets": [{"name": "registry"}], "containers": [container],
            "volumes": [
                {"name": "c", "secret": {"secretName": "c"}},
                {"name": "d", "projected": {"sources": [{"secret": {"name": "d"}}]}},
                {"name": "e", "csi": {"driver": "x", "nodePublishSecretRef": {"name": "e"}}},
            ],
        }});
        let spec = json!({"podTemplate": template, "rcon": password});
        assert_eq!(names(spec), ["a", "b", "c", "d", "e", "rcon", "registry"]);
    }

    #[test]
    fn refusal_names_secret_and_command() {
        let text = message("games", "rcon", true);
        assert!(text.ends_with("with `kubectl -n games label secret rcon nightshift.dev/allow-use=true`"), "{text}");
        assert!(message("games", "rcon", false).starts_with("there is no Secret `rcon`"));
    }
}
