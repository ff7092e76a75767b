//! Pure. Checks a user's `podTemplate` against the level of the Pod Security Standards that the admin chose.
//!
//! The chart has the same rules with the same words in a `ValidatingAdmissionPolicy` (`templates/pod-template-policy.yaml`), which refuses a
//! server at once. Nightshift's own containers keep to Restricted.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::core::v1::{
    AppArmorProfile, Container, PodSecurityContext, PodSpec, PodTemplateSpec, SELinuxOptions, SeccompProfile,
    SecurityContext, Volume,
};

use super::Violations;
use crate::image_contract::SERVER_CONTAINER;

/// What a user's `podTemplate` may say, in the words of the Pod Security Standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodTemplatePolicy {
    /// The level Restricted, and no service account.
    Restricted,
    /// The level Baseline, and no service account.
    Baseline,
    /// No rule: who may write a server can become root on a node.
    Any,
}

impl PodTemplatePolicy {
    const ALL: [Self; 3] = [Self::Restricted, Self::Baseline, Self::Any];

    /// Its name as a value of the chart.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Restricted => "Restricted",
            Self::Baseline => "Baseline",
            Self::Any => "Any",
        }
    }
}

impl fmt::Display for PodTemplatePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PodTemplatePolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        named.ok_or_else(|| format!("`{text}` is not a policy: write Restricted, Baseline or Any"))
    }
}

const HOST_NAMESPACES: &str = "host namespaces are not allowed: remove hostNetwork, hostPID and hostIPC";
const HOST_PATH: &str = "hostPath volumes are not allowed: use a claim";
const HOST_PORTS: &str = "host ports are not allowed: remove hostPort";
const PRIVILEGED: &str = "privileged containers and host processes are not allowed";
const CAPABILITIES: &str = "capabilities may not be added, except those that containers have by default";
const PROC_MOUNT: &str = "procMount must be Default";
const SECCOMP: &str = "an unconfined seccomp profile is not allowed";
const APP_ARMOR: &str = "an unconfined AppArmor profile is not allowed";
const SE_LINUX: &str = "SELinux user and role may not be set, and the type must be one of a container";
const SYSCTLS: &str = "only safe sysctls are allowed";
const SERVICE_ACCOUNT: &str = "a service account other than default is not allowed, and neither is a token of one";
const VOLUME_TYPES: &str = "only these volumes are allowed: configMap, csi, downwardAPI, emptyDir, ephemeral, \
    persistentVolumeClaim, projected, secret";
const PRIVILEGE_ESCALATION: &str =
    "additional containers must set allowPrivilegeEscalation to false, and papermc may not set it to true";
const DROPPED_CAPABILITIES: &str = "additional containers must drop ALL capabilities, papermc may not keep one, and \
    only NET_BIND_SERVICE may be added";
const ROOT: &str = "containers may not run as root: remove runAsUser 0 and runAsNonRoot false";

/// Capabilities that a container runtime grants by default.
const DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const SE_LINUX_TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
const SAFE_SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];
/// The annotation of the time before the field `appArmorProfile`, which the API server still accepts.
const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Reports each rule that the template breaks. One violation per rule, as in the admission policy.
pub(super) fn check_pod_security(template: &PodTemplateSpec, policy: PodTemplatePolicy, violations: &mut Violations) {
    let default = PodSpec::default();
    let pod = template.spec.as_ref().unwrap_or(&default);
    let restricted = match policy {
        PodTemplatePolicy::Any => return,
        PodTemplatePolicy::Baseline => Vec::from([(CAPABILITIES, adds_capability(pod, &DEFAULT_CAPABILITIES))]),
        PodTemplatePolicy::Restricted => restricted_rules(pod),
    };
    let broken = baseline_rules(template, pod).into_iter().chain(restricted).filter(|(_, is_broken)| *is_broken);
    for (problem, _) in broken {
        violations.add("spec.podTemplate", problem);
    }
}

/// The rules of both levels, and whether the template breaks them.
fn baseline_rules(template: &PodTemplateSpec, pod: &PodSpec) -> [(&'static str, bool); 10] {
    let context = pod.security_context.as_ref();
    let is_set = |field: Option<bool>| field == Some(true);
    [
        (HOST_NAMESPACES, is_set(pod.host_network) || is_set(pod.host_pid) || is_set(pod.host_ipc)),
        (HOST_PATH, volumes(pod).any(|volume| volume.host_path.is_some())),
        (HOST_PORTS, containers(pod).any(has_host_port)),
        (PRIVILEGED, context.is_some_and(is_host_process_pod) || contexts(pod).any(is_privileged)),
        (PROC_MOUNT, contexts(pod).filter_map(|of| of.proc_mount.as_deref()).any(|mount| mount != "Default")),
        (SECCOMP, seccomp_profiles(pod).any(|profile| profile.type_ == "Unconfined")),
        (
            APP_ARMOR,
            app_armor_profiles(pod).any(|profile| profile.type_ == "Unconfined") || has_unconfined_annotation(template),
        ),
        (SE_LINUX, se_linux_options(pod).any(is_foreign_label)),
        (
            SYSCTLS,
            context
                .and_then(|of| of.sysctls.as_ref())
                .into_iter()
                .flatten()
                .any(|sysctl| !SAFE_SYSCTLS.contains(&sysctl.name.as_str())),
        ),
        (SERVICE_ACCOUNT, uses_service_account(pod)),
    ]
}

/// The additional rules of the level Restricted. The container of the server has secure defaults, which the template may not relax.
fn restricted_rules(pod: &PodSpec) -> Vec<(&'static str, bool)> {
    let escalates = |container: &Container| {
        let field = container.security_context.as_ref().and_then(|of| of.allow_privilege_escalation);
        field.unwrap_or(container.name != SERVER_CONTAINER)
    };
    let keeps_capability = |container: &Container| {
        let capabilities = container.security_context.as_ref().and_then(|of| of.capabilities.as_ref());
        match capabilities.and_then(|of| of.drop.as_ref()) {
            Some(dropped) => !dropped.iter().any(|capability| capability == "ALL"),
            None => container.name != SERVER_CONTAINER,
        }
    };
    let is_root = |user: Option<i64>, non_root: Option<bool>| user == Some(0) || non_root == Some(false);
    let pod_is_root = pod.security_context.as_ref().is_some_and(|of| is_root(of.run_as_user, of.run_as_non_root));
    vec![
        (VOLUME_TYPES, volumes(pod).any(is_restricted_volume)),
        (PRIVILEGE_ESCALATION, containers(pod).any(escalates)),
        (DROPPED_CAPABILITIES, containers(pod).any(keeps_capability) || adds_capability(pod, &["NET_BIND_SERVICE"])),
        (ROOT, pod_is_root || contexts(pod).any(|of| is_root(of.run_as_user, of.run_as_non_root))),
    ]
}

fn containers(pod: &PodSpec) -> impl Iterator<Item = &Container> {
    pod.containers.iter().chain(pod.init_containers.iter().flatten())
}

fn contexts(pod: &PodSpec) -> impl Iterator<Item = &SecurityContext> {
    containers(pod).filter_map(|container| container.security_context.as_ref())
}

fn volumes(pod: &PodSpec) -> impl Iterator<Item = &Volume> {
    pod.volumes.iter().flatten()
}

fn has_host_port(container: &Container) -> bool {
    container.ports.iter().flatten().any(|port| port.host_port.is_some_and(|port| port != 0))
}

fn is_host_process_pod(context: &PodSecurityContext) -> bool {
    context.windows_options.as_ref().is_some_and(|of| of.host_process == Some(true))
}

fn is_privileged(context: &SecurityContext) -> bool {
    let is_host_process = context.windows_options.as_ref().is_some_and(|of| of.host_process == Some(true));
    context.privileged == Some(true) || is_host_process
}

fn adds_capability(pod: &PodSpec, allowed: &[&str]) -> bool {
    let added = contexts(pod).filter_map(|of| of.capabilities.as_ref()).flat_map(|of| of.add.iter().flatten());
    added.into_iter().any(|capability| !allowed.contains(&capability.as_str()))
}

fn seccomp_profiles(pod: &PodSpec) -> impl Iterator<Item = &SeccompProfile> {
    let of_pod = pod.security_context.as_ref().and_then(|of| of.seccomp_profile.as_ref());
    of_pod.into_iter().chain(contexts(pod).filter_map(|of| of.seccomp_profile.as_ref()))
}

fn app_armor_profiles(pod: &PodSpec) -> impl Iterator<Item = &AppArmorProfile> {
    let of_pod = pod.security_context.as_ref().and_then(|of| of.app_armor_profile.as_ref());
    of_pod.into_iter().chain(contexts(pod).filter_map(|of| of.app_armor_profile.as_ref()))
}

fn has_unconfined_annotation(template: &PodTemplateSpec) -> bool {
    let annotations = template.metadata.as_ref().and_then(|of| of.annotations.as_ref());
    let is_unconfined =
        |(name, value): (&String, &String)| name.starts_with(APP_ARMOR_ANNOTATION) && value == "unconfined";
    annotations.into_iter().flatten().any(is_unconfined)
}

fn se_linux_options(pod: &PodSpec) -> impl Iterator<Item = &SELinuxOptions> {
    let of_pod = pod.security_context.as_ref().and_then(|of| of.se_linux_options.as_ref());
    of_pod.into_iter().chain(contexts(pod).filter_map(|of| of.se_linux_options.as_ref()))
}

fn is_foreign_label(label: &SELinuxOptions) -> bool {
    let is_set = |field: Option<&str>| field.is_some_and(|text| !text.is_empty());
    is_set(label.user.as_deref())
        || is_set(label.role.as_deref())
        || label.type_.as_deref().is_some_and(|type_| !SE_LINUX_TYPES.contains(&type_))
}

fn uses_service_account(pod: &PodSpec) -> bool {
    let is_foreign = |name: Option<&str>| !matches!(name, None | Some("" | "default"));
    let has_token = |volume: &Volume| {
        let sources = volume.projected.as_ref().and_then(|of| of.sources.as_ref());
        sources.into_iter().flatten().any(|source| source.service_account_token.is_some())
    };
    is_foreign(pod.service_account_name.as_deref())
        || is_foreign(pod.service_account.as_deref())
        || pod.automount_service_account_token == Some(true)
        || volumes(pod).any(has_token)
}

/// Whether the volume is of no type that Restricted allows. A volume without a type is not refused: it is merged into one of Nightshift's.
fn is_restricted_volume(volume: &Volume) -> bool {
    let Volume {
        name: _,
        config_map: _,
        csi: _,
        downward_api: _,
        empty_dir: _,
        ephemeral: _,
        persistent_volume_claim: _,
        projected: _,
        secret: _,
        aws_elastic_block_store,
        azure_disk,
        azure_file,
        cephfs,
        cinder,
        fc,
        flex_volume,
        flocker,
        gce_persistent_disk,
        git_repo,
        glusterfs,
        host_path,
        image,
        iscsi,
        nfs,
        photon_persistent_disk,
        portworx_volume,
        quobyte,
        rbd,
        scale_io,
        storageos,
        vsphere_volume,
    } = volume;
    let set = [
        aws_elastic_block_store.is_some(),
        azure_disk.is_some(),
        azure_file.is_some(),
        cephfs.is_some(),
        cinder.is_some(),
        fc.is_some(),
        flex_volume.is_some(),
        flocker.is_some(),
        gce_persistent_disk.is_some(),
        git_repo.is_some(),
        glusterfs.is_some(),
        host_path.is_some(),
        image.is_some(),
        iscsi.is_some(),
        nfs.is_some(),
        photon_persistent_disk.is_some(),
        portworx_volume.is_some(),
        quobyte.is_some(),
        rbd.is_some(),
        scale_io.is_some(),
        storageos.is_some(),
        vsphere_volume.is_some(),
    ];
    set.contains(&true)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::check_with;
    use crate::tests::server;

    /// The messages of a policy for this pod spec.
    fn refused(policy: PodTemplatePolicy, pod: &Value) -> Vec<String> {
        let server = server(json!({"podTemplate": {"spec": pod}}));
        let violations = check_with(&server, policy).err().unwrap_or_default();
        let of_policy = violations.into_iter().filter(|violation| violation.path == "spec.podTemplate");
        of_policy.map(|violation| violation.problem).collect()
    }

    fn container(name: &str, context: &Value) -> Value {
        json!({"containers": [{"name": name, "image": "exporter:1", "securityContext": context}]})
    }

    /// One template for each rule of Baseline.
    fn baseline_examples() -> Vec<(Value, &'static str)> {
        let volume = |source: &str, value: &Value| json!({"volumes": [{"name": "more", source: value}]});
        let context = |context: Value| container("papermc", &context);
        vec![
            (json!({"hostPID": true}), HOST_NAMESPACES),
            (json!({"hostIPC": true}), HOST_NAMESPACES),
            (volume("hostPath", &json!({"path": "/"})), HOST_PATH),
            (json!({"containers": [{"name": "map", "ports": [{"containerPort": 80, "hostPort": 80}]}]}), HOST_PORTS),
            (json!({"initContainers": [{"name": "a", "securityContext": {"privileged": true}}]}), PRIVILEGED),
            (json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}), PRIVILEGED),
            (context(json!({"procMount": "Unmasked"})), PROC_MOUNT),
            (json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}), SECCOMP),
            (context(json!({"appArmorProfile": {"type": "Unconfined"}})), APP_ARMOR),
            (context(json!({"seLinuxOptions": {"type": "spc_t"}})), SE_LINUX),
            (json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}), SYSCTLS),
            (json!({"serviceAccountName": "admin"}), SERVICE_ACCOUNT),
            (json!({"automountServiceAccountToken": true}), SERVICE_ACCOUNT),
            (volume("projected", &json!({"sources": [{"serviceAccountToken": {"path": "token"}}]})), SERVICE_ACCOUNT),
        ]
    }

    #[test]
    fn baseline_refuses_each_way_to_the_node() {
        for (pod, problem) in baseline_examples() {
            assert_eq!(refused(PodTemplatePolicy::Baseline, &pod), [problem], "{pod}");
            assert!(refused(PodTemplatePolicy::Restricted, &pod).contains(&problem.to_owned()), "{pod}");
            assert_eq!(refused(PodTemplatePolicy::Any, &pod), [""; 0], "{pod}");
        }
        let added = container("papermc", &json!({"capabilities": {"add": ["SYS_ADMIN"]}}));
        assert_eq!(refused(PodTemplatePolicy::Baseline, &added), [CAPABILITIES]);
    }

    #[test]
    fn baseline_refuses_unconfined_annotation() {
        let name = format!("{APP_ARMOR_ANNOTATION}papermc");
        let server = server(json!({"podTemplate": {"metadata": {"annotations": {name: "unconfined"}}}}));
        let violations = check_with(&server, PodTemplatePolicy::Baseline).unwrap_err();
        assert_eq!(violations[0].problem, APP_ARMOR);
    }

    #[test]
    fn restricted_requires_more_of_additional_containers() {
        let secure = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        assert_eq!(refused(PodTemplatePolicy::Restricted, &container("exporter", &secure)), [""; 0]);
        assert_eq!(refused(PodTemplatePolicy::Restricted, &container("papermc", &json!({}))), [""; 0]);
        let plain = container("exporter", &json!({}));
        assert_eq!(refused(PodTemplatePolicy::Restricted, &plain), [PRIVILEGE_ESCALATION, DROPPED_CAPABILITIES]);
        assert_eq!(refused(PodTemplatePolicy::Baseline, &plain), [""; 0]);
        for (pod, problem) in [
            (json!({"volumes": [{"name": "more", "nfs": {"server": "nas", "path": "/"}}]}), VOLUME_TYPES),
            (container("papermc", &json!({"allowPrivilegeEscalation": true})), PRIVILEGE_ESCALATION),
            (container("papermc", &json!({"capabilities": {"drop": []}})), DROPPED_CAPABILITIES),
            (container("papermc", &json!({"capabilities": {"add": ["CHOWN"]}})), DROPPED_CAPABILITIES),
            (container("papermc", &json!({"runAsUser": 0})), ROOT),
            (json!({"securityContext": {"runAsNonRoot": false}}), ROOT),
        ] {
            assert_eq!(refused(PodTemplatePolicy::Restricted, &pod), [problem], "{pod}");
            assert_eq!(refused(PodTemplatePolicy::Baseline, &pod), [""; 0], "{pod}");
        }
    }

    #[test]
    fn policies_accept_usual_templates() {
        let usual = json!({
            "nodeSelector": {"disk": "ssd"},
            "volumes": [{"name": "maps", "persistentVolumeClaim": {"claimName": "maps"}}],
            "containers": [{"name": "papermc", "resources": {"limits": {"memory": "4Gi"}}}],
        });
        for policy in PodTemplatePolicy::ALL {
            assert_eq!(refused(policy, &usual), [""; 0], "{policy}");
        }
    }

    #[test]
    fn admission_policy_of_chart_has_same_words() {
        let chart = include_str!("../../../charts/nightshift/templates/pod-template-policy.yaml");
        let rules = [
            HOST_NAMESPACES,
            HOST_PATH,
            HOST_PORTS,
            PRIVILEGED,
            CAPABILITIES,
            PROC_MOUNT,
            SECCOMP,
            APP_ARMOR,
            SE_LINUX,
            SYSCTLS,
            SERVICE_ACCOUNT,
            VOLUME_TYPES,
            PRIVILEGE_ESCALATION,
            DROPPED_CAPABILITIES,
            ROOT,
        ];
        for rule in rules {
            assert!(chart.contains(&format!("- message: \"spec.podTemplate: {rule}\"\n")), "{rule}");
        }
        assert_eq!(chart.matches("- message: ").count(), rules.len());
        let names = DEFAULT_CAPABILITIES.iter().chain(&SAFE_SYSCTLS).chain(&SE_LINUX_TYPES);
        for name in names {
            assert!(chart.contains(&format!("'{name}'")), "{name}");
        }
    }

    #[test]
    fn policy_is_parsed_by_its_name() {
        assert_eq!("Baseline".parse(), Ok(PodTemplatePolicy::Baseline));
        assert!("baseline".parse::<PodTemplatePolicy>().unwrap_err().contains("Restricted, Baseline or Any"));
    }
}
