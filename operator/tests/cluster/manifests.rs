//! Pure. Defines the objects that a user creates, as small as possible.

use serde_json::{Value, json};

/// The server of most tests.
pub(super) const LOBBY: &str = "lobby";
/// A window that never opens while a test runs.
pub(super) const NEVER_OPEN: &str = "0 4 29 2 *";
/// A window that is always open.
pub(super) const ALWAYS_OPEN: &str = "* * * * *";

/// A day on which ViaVersion and ViaBackwards 5.7.0 were the newest, and Paper was at 1.21.11.
pub(super) const BEFORE_RELEASE: &str = "2026-01-10T12:00:00Z";
/// A day on which 5.7.1 was released, and nothing else had changed.
pub(super) const AFTER_RELEASE: &str = "2026-01-19T12:00:00Z";
/// The changes of an update from `BEFORE_RELEASE` to `AFTER_RELEASE`.
pub(super) const RELEASE_CHANGES: [&str; 2] = ["ViaBackwards 5.7.0 -> 5.7.1", "ViaVersion 5.7.0 -> 5.7.1"];
/// Paper 1.21.11 was released, and ViaVersion 5.5.1 was not listed for it.
pub(super) const OLDER_MINECRAFT: &str = "2025-12-11T12:00:00Z";
/// The day after: ViaVersion 5.6.0 is listed for it.
pub(super) const NEWER_MINECRAFT: &str = "2025-12-12T18:00:00Z";

/// A server on the newest Paper that all its plugins work with.
pub(super) fn server(name: &str, cron: &str) -> Value {
    json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer",
        "metadata": {"name": name, "labels": {"tier": "test"}},
        "spec": {
            "eula": "Accepted",
            "updateStrategy": "auto",
            "updateSchedule": {"maintenanceWindow": {"cron": cron}},
            "players": {"notice": "8s", "emptyNotice": "3s"},
            "gracefulShutdown": {"timeout": "60s"},
            "storage": {"size": "64Mi", "retain": false},
            "service": {"type": "ClusterIP"},
            "podTemplate": {"spec": {
                "containers": [{"name": "papermc", "resources": {"requests": {"cpu": "5m", "memory": "64Mi"}}}],
                // A test may cordon the only node while others restart their servers.
                "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}],
            }},
        },
    })
}

/// The same with a volume for backups, and a window that never opens.
pub(super) fn server_with_backups(name: &str) -> Value {
    let mut object = server(name, NEVER_OPEN);
    object["spec"]["backup"] = json!({"storage": {"size": "64Mi"}});
    object
}

/// One of many servers on a node: it requests almost no resources, and its window never opens.
pub(super) fn small_server(name: &str) -> Value {
    let mut object = server(name, NEVER_OPEN);
    object["spec"]["podTemplate"]["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "1m", "memory": "8Mi"}});
    object
}

/// ViaBackwards on every server. It needs ViaVersion.
pub(super) fn viabackwards() -> Value {
    plugin("viabackwards")
}

/// A project of Modrinth on every server.
pub(super) fn plugin(project: &str) -> Value {
    json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": project},
        "spec": {
            "source": {"type": "modrinth", "project": project},
            "instanceSelector": {"matchLabels": {"tier": "test"}},
        },
    })
}
