//! Pure. Builds servers for tests.

use crds::PaperMCServer;
use serde_json::{Value, json};

/// A server with these fields in its spec, and with the defaults of the others.
pub(crate) fn server(mut spec: Value) -> PaperMCServer {
    let Value::Object(fields) = &mut spec else { panic!("a spec is an object") };
    fields.entry("updateStrategy").or_insert_with(|| json!("auto"));
    serde_json::from_value(json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer",
        "metadata": {"name": "lobby", "namespace": "games", "uid": "6f1c9f5e-0c3b-4c51-9a53-0b8f6c1f2d3e"},
        "spec": spec,
    }))
    .unwrap()
}
