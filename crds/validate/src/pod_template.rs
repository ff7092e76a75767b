//! Pure. Rejects fields of a user's `podTemplate` that Nightshift sets itself, and mounts that would hide the worlds from it.

use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec, Volume, VolumeMount};

use super::Violations;
use crate::image_contract::{AGENT_CONTAINERS, MANAGED_VOLUMES, RESERVED_VARIABLES, SERVER_CONTAINER};

/// Mount path of the server's directory.
const DATA: &str = "/data";

/// Reports the fields that a user's `podTemplate` must not set because the safety of the world depends on them. They are never silently
/// dropped.
pub(super) fn check_pod_template(template: &PodTemplateSpec, violations: &mut Violations) {
    const SPEC: &str = "spec.podTemplate.spec";
    const WATCHED: &str = "Nightshift needs it to warn players, to save and to monitor the server: remove the field";
    const RELIED_ON: &str = "Nightshift relies on the image's own start command and variables: remove the field";
    let Some(spec) = &template.spec else { return };
    for container in spec.containers.iter().filter(|container| container.name == SERVER_CONTAINER) {
        let path = format!("{SPEC}.containers[{SERVER_CONTAINER}]");
        for (field, is_set, problem) in [
            ("lifecycle", container.lifecycle.is_some(), WATCHED),
            ("startupProbe", container.startup_probe.is_some(), WATCHED),
            ("readinessProbe", container.readiness_probe.is_some(), WATCHED),
            ("livenessProbe", container.liveness_probe.is_some(), WATCHED),
            ("image", container.image.is_some(), "set `spec.image`"),
            ("command", container.command.is_some(), RELIED_ON),
            ("args", container.args.is_some(), RELIED_ON),
            ("envFrom", container.env_from.is_some(), RELIED_ON),
        ] {
            if is_set {
                violations.add(&format!("{path}.{field}"), problem);
            }
        }
        for variable in container.env.iter().flatten() {
            if let Some((name, fix)) = RESERVED_VARIABLES.into_iter().find(|(name, _)| *name == variable.name) {
                violations.add(&format!("{path}.env[{name}]"), format_args!("cannot be set here: {fix}"));
            }
        }
        for mount in container.volume_mounts.iter().flatten() {
            if let Some(problem) = mount_problem(mount, spec) {
                violations.add(&format!("{path}.volumeMounts[{}]", mount.mount_path), problem);
            }
        }
    }
    for container in spec.init_containers.iter().flatten() {
        if AGENT_CONTAINERS.contains(&container.name.as_str()) {
            violations.add(
                &format!("{SPEC}.initContainers[{}]", container.name),
                "Nightshift has a container of this name: choose another name",
            );
        }
    }
    for volume in spec.volumes.iter().flatten() {
        if MANAGED_VOLUMES.contains(&volume.name.as_str()) {
            violations.add(
                &format!("{SPEC}.volumes[{}]", volume.name),
                "Nightshift has a volume of this name: choose another name",
            );
        }
    }
    if spec.termination_grace_period_seconds.is_some() {
        violations.add(&format!("{SPEC}.terminationGracePeriodSeconds"), "set `spec.gracefulShutdown.timeout`");
    }
    if spec.host_network == Some(true) {
        violations.add(&format!("{SPEC}.hostNetwork"), "RCON would listen on the node's loopback: remove the field");
    }
    if spec.share_process_namespace == Some(true) {
        violations.add(
            &format!("{SPEC}.shareProcessNamespace"),
            "the server's processes could read the agent's key: remove the field",
        );
    }
    if spec.restart_policy.as_deref().is_some_and(|policy| policy != "Always") {
        violations.add(&format!("{SPEC}.restartPolicy"), "must be `Always`: remove the field");
    }
}

/// Why the server must not have this mount. The init container and the agent mount only the server's own volume below its directory. They
/// would see no world on another volume. No backup would then precede a step that cannot be undone, and an upgrade of the world by a newer
/// Minecraft would go unnoticed.
fn mount_problem(mount: &VolumeMount, spec: &PodSpec) -> Option<&'static str> {
    let at = normalize(&mount.mount_path);
    if at == Path::new(DATA) || at == Path::new("/nightshift") {
        return Some("Nightshift mounts its own volume there");
    }
    if !at.starts_with(DATA) {
        return None;
    }
    if mount.name == "data" {
        return Some(
            "the server and Nightshift's world checks would see these files at different paths: move the files to \
            this path on the data volume, and remove the mount",
        );
    }
    let is_harmless =
        || spec.volumes.iter().flatten().any(|volume| volume.name == mount.name && is_read_only_or_ephemeral(volume));
    (!is_unrelated_path(&at) && !is_harmless()).then_some(
        "Nightshift does not protect worlds there: they are not backed up before a newer Minecraft opens them, and an \
        older one may open them afterwards. Move them to the data volume, or out of `/data`",
    )
}

/// Whether the path holds neither worlds nor files of a lock. Maps and databases of plugins are often kept on another disk.
fn is_unrelated_path(at: &Path) -> bool {
    let below = at.strip_prefix(DATA).unwrap_or(at);
    let mut parts = below.iter().filter_map(|part| part.to_str());
    match (parts.next(), parts.next()) {
        (Some("logs" | "crash-reports"), _) | (Some("plugins"), Some(_)) | (Some("bluemap"), Some("web")) => true,
        (Some(_) | None, _) => false,
    }
}

/// Whether the volume is read-only, or is deleted with the pod.
fn is_read_only_or_ephemeral(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.projected.is_some()
        || volume.downward_api.is_some()
        || volume.empty_dir.is_some()
        || volume.image.is_some()
}

/// The path as the container runtime normalises it: `/data//world/`, `data/world` and `/data/./world` are one path.
fn normalize(path: &str) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::check;
    use crate::tests::server;

    fn violations(container: &str, mount: &Value, volumes: &Value) -> Vec<String> {
        let spec = json!({"containers": [{"name": container, "volumeMounts": [mount]}], "volumes": volumes});
        let found = check(&server(json!({"podTemplate": {"spec": spec}}))).err().unwrap_or_default();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pod_template_rejects_volume_that_may_hold_world() {
        let fast = json!([{"name": "fast", "persistentVolumeClaim": {"claimName": "fast"}}]);
        for at in [
            "/data/plugins",
            "/data/logs-of-world",
            "/data/world",
            "/data/world/",
            "/data//world",
            "/data/./world",
            "data/world",
            "/srv/../data/worlds/a",
        ] {
            for mount in
                [json!({"name": "fast", "mountPath": at}), json!({"name": "fast", "mountPath": at, "subPath": "x"})]
            {
                let found = violations("papermc", &mount, &fast);
                assert_eq!(found.len(), 1, "{mount}");
                let path = format!(
                    "spec.podTemplate.spec.containers[papermc].volumeMounts[{at}]: Nightshift does not protect"
                );
                assert!(found[0].starts_with(&path), "{}", found[0]);
                assert!(found[0].ends_with("Move them to the data volume, or out of `/data`"), "{}", found[0]);
            }
        }
        for mut volume in [
            json!({"hostPath": {"path": "/mnt/fast"}}),
            json!({"nfs": {"server": "nas", "path": "/"}}),
            json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}),
        ] {
            volume["name"] = json!("fast");
            let mount = json!({"name": "fast", "mountPath": "/data/world"});
            assert_eq!(violations("papermc", &mount, &json!([volume])).len(), 1, "{volume}");
        }
        let user_command =
            violations("papermc", &json!({"name": "data", "mountPath": "/data/world", "subPath": "a"}), &json!([]));
        assert!(
            user_command[0].ends_with("move the files to this path on the data volume, and remove the mount"),
            "{user_command:?}"
        );
        let whole = violations("papermc", &json!({"name": "fast", "mountPath": "/data/"}), &fast);
        assert!(whole[0].ends_with("Nightshift mounts its own volume there"), "{whole:?}");
    }

    #[test]
    fn pod_template_accepts_volumes_without_worlds() {
        for mut volume in [
            json!({"configMap": {"name": "motd"}}),
            json!({"secret": {"secretName": "forwarding"}}),
            json!({"projected": {"sources": []}}),
            json!({"downwardAPI": {"items": []}}),
            json!({"emptyDir": {}}),
            json!({"image": {"reference": "example.com/packs:1"}}),
        ] {
            volume["name"] = json!("small");
            let mount = json!({"name": "small", "mountPath": "/data/config/small", "subPath": "x"});
            assert_eq!(violations("papermc", &mount, &json!([volume])), [""; 0], "{volume}");
        }
        let fast = json!([{"name": "fast", "persistentVolumeClaim": {"claimName": "fast"}}]);
        for (container, at) in [
            ("papermc", "/data/plugins/Map/web"),
            ("papermc", "/data/logs"),
            ("papermc", "/maps"),
            ("papermc", "/database"),
            ("papermc", "/data-old/x"),
            ("map", "/data/world"),
        ] {
            let found = violations(container, &json!({"name": "fast", "mountPath": at}), &fast);
            assert_eq!(found, [""; 0], "{container} {at}");
        }
    }
}
