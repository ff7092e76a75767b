//! Pure. Renders the pod template: the server's container with the environment of its image, and the agent's containers.

use std::collections::BTreeMap;

use agent_api::signed::Verifier;
use agent_api::{FileSet, PORT, STOP_TIMEOUT_SECONDS};
use k8s_openapi::DeepMerge as _;
use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, Container, ContainerPort, EmptyDirVolumeSource, ExecAction, HTTPGetAction,
    KeyToPath, Lifecycle, LifecycleHandler, LocalObjectReference, PersistentVolumeClaimVolumeSource,
    PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile, SecretVolumeSource,
    SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use resolver::model::lock::Lock;

use super::init_requests::{ROLLBACK_REQUEST_KEY, init_requests_map_name};
use super::lock_config_map::lock_map_name;
use super::secret::{AGENT_KEY, secret_name};
use super::service::GAME_PORT;
use crate::Config;
use crate::k8s::labels;
use validate::CheckedServer;
use validate::image_contract::{
    AGENT_CONTAINER, AGENT_CONTAINERS, BACKUP_DIRECTORY_CONTAINER, BACKUP_VOLUME, INIT_REQUESTS_VOLUME, KEY_VOLUME,
    PREPARE_CONTAINER, RESTORE_VOLUME, SERVER_CONTAINER,
};

mod env;

/// Mount path of the restore requests.
const INIT_REQUESTS_DIR: &str = "/etc/nightshift-init-requests";
/// Mount path of the server's volume.
const DATA_DIR: &str = "/data";
/// Mount path of the backup volume.
const BACKUP_DIR: &str = "/backups";
/// Mount path of the other claim.
const RESTORE_DIR: &str = "/restore";
/// Mount path of the agent's key.
const KEY_DIR: &str = "/etc/nightshift-key";
/// Mode of the key's file, which belongs to root. The kubelet lets the pod's `fsGroup` read it too.
const KEY_MODE: i32 = 0o400;
/// Mount path of the lock.
const LOCK_DIR: &str = "/etc/nightshift";
/// Mount path of the `emptyDir` that carries the agent's binary and socket to the server's container.
const SHARED_DIR: &str = "/nightshift";
/// How long the image's runner waits for the answer to its own `stop` by RCON. Its stop duration begins after that (source: itzg/mc-server-runner).
const RUNNER_COMMAND_SECONDS: i64 = 120;
/// Time for the agent to record the exit. A server that hangs must be killed by the runner: the kubelet would kill the agent too.
const RECORD_SECONDS: i64 = 15;
/// Interval of the start-up probe.
const START_PROBE_SECONDS: i32 = 2;
/// 24 hours. The kubelet counts failures regardless of progress, and a kill while the world is rewritten damages it. The operator's own
/// deadline ends a start, and it is extended as long as log or world change. The probe must never fail before it.
const START_PROBE_FAILURES: i32 = 43_200;

/// The directory for the backups of a server. Each has its own, because several servers may share a claim.
pub(super) fn backups_path(server: &str) -> String {
    format!("{BACKUP_DIR}/{server}")
}

/// The whole template: Nightshift's, with the user's `podTemplate` merged into it.
pub(crate) fn build_template(
    server: &CheckedServer,
    lock: &Lock,
    files: &FileSet,
    verifier: &Verifier,
    config: &Config,
) -> PodTemplateSpec {
    let mut init_containers: Vec<_> = build_backup_directory(server, config).into_iter().collect();
    init_containers.extend([build_prepare(server, files, verifier, config), build_agent(server, config)]);
    let spec = PodSpec {
        init_containers: Some(init_containers),
        containers: vec![build_server(server, lock, config)],
        volumes: Some(build_volumes(server, files)),
        security_context: Some(pod_security()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(grace_period_seconds(server)),
        image_pull_secrets: image_pull_secrets(config),
        ..PodSpec::default()
    };
    let mut template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels::child(&server.name)),
            annotations: Some(BTreeMap::from([
                (labels::LOCK_DIGEST.to_owned(), files.lock.clone()),
                (labels::AGENT_DIGEST.to_owned(), config.agent_digest.clone()),
                ("kubectl.kubernetes.io/default-container".to_owned(), SERVER_CONTAINER.to_owned()),
            ])),
            ..ObjectMeta::default()
        }),
        spec: Some(spec),
    };
    // `check` has rejected every field of it that belongs to Nightshift, so the merge cannot overwrite any.
    template.merge_from(server.pod.template.clone());
    let spec = template.spec.as_mut().expect("set above");
    let game = spec.containers.iter_mut().find(|c| c.name == SERVER_CONTAINER).expect("built above");
    // The heap depends on the container's resources, which are known only after the merge.
    let heap = super::heap::heap_mib(&server.pod.heap, game.resources.as_ref());
    game.env = Some(env::merge_env(env::server_env(server, lock, files, heap), game.env.take().unwrap_or_default()));
    let identity = game.security_context.clone().unwrap_or_default();
    for container in spec.init_containers.iter_mut().flatten() {
        if AGENT_CONTAINERS.contains(&container.name.as_str()) {
            run_as(container, &identity);
        }
    }
    template
}

/// The Secrets for the agent's image. `podTemplate` adds those for other images: the merge compares names.
fn image_pull_secrets(config: &Config) -> Option<Vec<LocalObjectReference>> {
    let secrets: Vec<_> = config.pull_secrets().into_iter().map(|name| LocalObjectReference { name }).collect();
    (!secrets.is_empty()).then_some(secrets)
}

/// Runs the container as the user of the merged server container. Files that the agent renames must belong to the server.
fn run_as(container: &mut Container, identity: &SecurityContext) {
    let context = container.security_context.get_or_insert_default();
    context.run_as_user = identity.run_as_user.or(context.run_as_user);
    context.run_as_group = identity.run_as_group.or(context.run_as_group);
}

fn build_server(server: &CheckedServer, lock: &Lock, config: &Config) -> Container {
    Container {
        name: SERVER_CONTAINER.to_owned(),
        image: Some(image_of(server, lock, config)),
        working_dir: Some(DATA_DIR.to_owned()),
        stdin: Some(true),
        ports: Some(vec![ContainerPort {
            name: Some("minecraft".to_owned()),
            container_port: GAME_PORT,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        volume_mounts: Some(vec![mount("data", DATA_DIR, false), mount("nightshift", SHARED_DIR, true)]),
        lifecycle: Some(Lifecycle {
            pre_stop: Some(LifecycleHandler {
                exec: Some(ExecAction { command: Some(stop_command(server)) }),
                ..LifecycleHandler::default()
            }),
            ..Lifecycle::default()
        }),
        startup_probe: Some(Probe {
            period_seconds: Some(START_PROBE_SECONDS),
            failure_threshold: Some(START_PROBE_FAILURES),
            ..agent_probe("/started")
        }),
        readiness_probe: Some(Probe { period_seconds: Some(5), failure_threshold: Some(3), ..agent_probe("/ready") }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(no_capabilities()),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

/// The time of a stop in which every step takes its maximum: the hook, then the runner's command, then the stop.
fn grace_period_seconds(server: &CheckedServer) -> i64 {
    server.pod.stop_timeout.as_secs() + RUNNER_COMMAND_SECONDS + env::stop_duration_seconds(server) + RECORD_SECONDS
}

/// The stop hook. The timeout is added only if it differs from the default: otherwise the template of every server would change.
fn stop_command(server: &CheckedServer) -> Vec<String> {
    let mut command = vec![format!("{SHARED_DIR}/agent"), "stop".to_owned()];
    let seconds = server.pod.stop_timeout.as_secs();
    if seconds.cast_unsigned() != STOP_TIMEOUT_SECONDS {
        // The server's container has none of the agent's variables.
        command.extend(["--stop-timeout".to_owned(), seconds.to_string()]);
    }
    command
}

/// The image: from the spec, otherwise from the lock, otherwise from the operator's flag.
fn image_of(server: &CheckedServer, lock: &Lock, config: &Config) -> String {
    server
        .pod
        .image
        .clone()
        .or_else(|| lock.image.clone())
        .unwrap_or_else(|| config.game_image.replace("{java}", &lock.java.to_string()))
}

/// Makes the directory that the other containers mount by `subPath`, as the server's user. The kubelet would make it for root, and not every
/// volume supports `fsGroup`. It is the only container with the whole backup volume, and it sees nothing that the server writes.
fn build_backup_directory(server: &CheckedServer, config: &Config) -> Option<Container> {
    server.backup_volume_claim()?;
    Some(Container {
        name: BACKUP_DIRECTORY_CONTAINER.to_owned(),
        env: env::repository_env(server).map(|variable| vec![variable]),
        volume_mounts: Some(vec![mount(BACKUP_VOLUME, BACKUP_DIR, false)]),
        ..agent_image_container(config, "backup-directory")
    })
}

fn build_prepare(server: &CheckedServer, files: &FileSet, verifier: &Verifier, config: &Config) -> Container {
    let mut prepare = base_agent_container(server, config, "init");
    let variables = env::backup_env(server).into_iter().chain(env::rollback_env(server));
    prepare.env.get_or_insert_default().extend(variables.chain(env::trust_env(files, verifier)));
    if server.accepts_restore_requests() {
        prepare.volume_mounts.get_or_insert_default().push(mount(INIT_REQUESTS_VOLUME, INIT_REQUESTS_DIR, true));
    }
    if let Some(request) = server.foreign_restore() {
        let volume = if request.apart { RESTORE_VOLUME } else { BACKUP_VOLUME };
        let repository = mount(volume, &format!("{RESTORE_DIR}/{}", request.server), true);
        prepare.volume_mounts.get_or_insert_default().push(directory_of(&request.server, repository));
    }
    Container { name: PREPARE_CONTAINER.to_owned(), ..prepare }
}

fn build_agent(server: &CheckedServer, config: &Config) -> Container {
    let mut agent = base_agent_container(server, config, "sidecar");
    agent.env.get_or_insert_default().push(env::key_env());
    // Neither `prepare`, which works on files that plugins write, nor the server can read it.
    agent.volume_mounts.get_or_insert_default().push(mount(KEY_VOLUME, KEY_DIR, true));
    Container {
        name: AGENT_CONTAINER.to_owned(),
        restart_policy: Some("Always".to_owned()),
        ports: Some(vec![ContainerPort {
            name: Some("agent".to_owned()),
            container_port: i32::from(PORT),
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        ..agent
    }
}

fn base_agent_container(server: &CheckedServer, config: &Config, verb: &str) -> Container {
    let mut mounts =
        vec![mount("data", DATA_DIR, false), mount("nightshift", SHARED_DIR, false), mount("lock", LOCK_DIR, true)];
    if server.backup_volume_claim().is_some() {
        // Backups are taken before the server starts, and beside it while it runs.
        mounts.push(directory_of(&server.name, mount(BACKUP_VOLUME, &backups_path(&server.name), false)));
    }
    Container {
        env: Some(env::agent_env(server, config)),
        volume_mounts: Some(mounts),
        ..agent_image_container(config, verb)
    }
}

fn agent_image_container(config: &Config, verb: &str) -> Container {
    Container {
        image: Some(config.agent_image.clone()),
        command: Some(vec!["/agent".to_owned(), verb.to_owned()]),
        resources: Some(ResourceRequirements {
            requests: Some(quantities(&[("cpu", "5m"), ("memory", "32Mi")])),
            limits: Some(quantities(&[("memory", "256Mi")])),
            ..ResourceRequirements::default()
        }),
        security_context: Some(confined()),
        ..Container::default()
    }
}

fn build_volumes(server: &CheckedServer, files: &FileSet) -> Vec<Volume> {
    let init_requests = server.accepts_restore_requests().then(|| Volume {
        name: INIT_REQUESTS_VOLUME.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: init_requests_map_name(&server.name),
            // The ConfigMap exists only while there is a request, and a pod must start without it.
            optional: Some(true),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    });
    let claimed = |name: &str, claim: &str| Volume {
        name: name.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim.to_owned(),
            ..PersistentVolumeClaimVolumeSource::default()
        }),
        ..Volume::default()
    };
    let backups = server.backup_volume_claim().map(|claim| claimed(BACKUP_VOLUME, &claim));
    let others = server.extra_restore_claim().map(|claim| claimed(RESTORE_VOLUME, claim));
    let mut volumes = vec![
        claimed("data", server.data.storage.existing_claim.as_ref().unwrap_or(&server.claim_name())),
        Volume {
            name: "nightshift".to_owned(),
            empty_dir: Some(EmptyDirVolumeSource {
                size_limit: Some(Quantity("256Mi".to_owned())),
                ..EmptyDirVolumeSource::default()
            }),
            ..Volume::default()
        },
        Volume {
            name: "lock".to_owned(),
            config_map: Some(ConfigMapVolumeSource {
                name: lock_map_name(&server.name, &files.lock),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        },
    ];
    volumes.push(key_volume(server));
    volumes.extend(backups.into_iter().chain(init_requests).chain(others));
    volumes
}

fn key_volume(server: &CheckedServer) -> Volume {
    let item = KeyToPath { key: AGENT_KEY.to_owned(), path: AGENT_KEY.to_owned(), mode: None };
    Volume {
        name: KEY_VOLUME.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret_name(&server.name)),
            items: Some(vec![item]),
            default_mode: Some(KEY_MODE),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// 1000:1000 is the user of the itzg image. `OnRootMismatch` prevents a chown of a 100 GB world at each start.
fn pod_security() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(1_000),
        run_as_group: Some(1_000),
        fs_group: Some(1_000),
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(runtime_default()),
        ..PodSecurityContext::default()
    }
}

/// The container runtime's default seccomp profile.
pub(super) fn runtime_default() -> SeccompProfile {
    SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() }
}

/// Security context of all of Nightshift's containers: they can write to their mounts only.
pub(super) fn confined() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(no_capabilities()),
        ..SecurityContext::default()
    }
}

fn agent_probe(path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(i32::from(PORT)),
            ..HTTPGetAction::default()
        }),
        timeout_seconds: Some(2),
        ..Probe::default()
    }
}

fn mount(name: &str, at: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: at.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

/// Only the directory of this server, of a volume with the backups of several.
fn directory_of(server: &str, mount: VolumeMount) -> VolumeMount {
    VolumeMount { sub_path: Some(server.to_owned()), ..mount }
}

pub(super) fn quantities(of: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
    of.iter().map(|(name, value)| ((*name).to_owned(), Quantity((*value).to_owned()))).collect()
}

fn no_capabilities() -> Capabilities {
    Capabilities { drop: Some(vec!["ALL".to_owned()]), ..Capabilities::default() }
}

#[cfg(test)]
mod tests;
