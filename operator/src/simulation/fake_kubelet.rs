//! Edge (writes). Simulates the kubelet of the only node: it turns a pod in the API into a running server, and stops
//! it.
//!
//! The init container is the real one, on a volume of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{CommandFactory, Parser};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use scheduler::agent::config;
use scheduler::agent::init::{self, InitResult};
use scheduler::protocol::FileSet;
use scheduler::protocol::signature::Key as AgentKey;
use serde_json::{Value, json};

use super::cluster::SimCluster;
use super::cluster_handle::ClusterHandle;
use super::fake_agent::AgentState;
use super::fake_node::conditions;
use super::objects::Key;
use super::scenario::SetBehaviour;
use crate::clock::now;
use crate::server::render::lock_config_map::FILES_KEY;
use crate::server::render::pod::{ENABLE_RCON, PREPARE_CONTAINER, SERVER_CONTAINER};
use crate::server::render::secret::{AGENT_KEY, RCON_PASSWORD, secret_name};

/// The time limit of the real init container for a world of a few files.
const PREPARES_WITHIN: Duration = Duration::from_secs(30);
/// The longest pause of the kubelet between two starts of a container.
const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

/// The phase of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// No node takes it.
    Pending,
    /// Its node is off.
    Lost,
    /// Its init container runs, or will be tried again.
    Preparing,
    /// The init container has refused with this message, and will be tried again.
    Refused(String),
    /// The server's process starts.
    Booting,
    Up,
    /// The server's process has exited with an error and will be restarted in the same pod.
    Ended,
    Stopping,
}

/// The pod as the kubelet knows it.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) uid: String,
    /// The entry of the history that it was created from.
    pub(super) revision: String,
    pub(super) files: FileSet,
    pub(super) fate: SetBehaviour,
    pub(super) phase: Phase,
    /// When its phase ends by itself.
    pub(super) due: Option<Timestamp>,
    made_at: Timestamp,
    prepared_at: Option<Timestamp>,
    /// When the server's current or last process was started.
    pub(super) started_at: Timestamp,
    pub(super) up_since: Timestamp,
    pub(super) starts: u32,
    tries: u32,
    last_end: Option<Timestamp>,
    /// The exit code of the last process.
    pub(super) exit_code: i32,
    /// Its node is off, and counts as not ready.
    pub(super) is_missed: bool,
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
    pub(super) fn next(&self) -> Option<Timestamp> {
        let staged_at = self.agent.staging.as_ref().map(|(_, at)| *at);
        self.due.into_iter().chain(staged_at).chain(self.hangs_until).min()
    }

    /// All times that it waits for.
    pub(super) fn waits_for(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        let staged_at = self.agent.staging.as_mut().map(|(_, at)| at);
        let of_server = [&mut self.crashes_until, &mut self.hangs_until, &mut self.refuses_until];
        let all = [&mut self.due, &mut self.agent.answers_from].into_iter().chain(of_server);
        all.flatten().chain(staged_at)
    }

    /// Whether the server has a process.
    pub(super) fn runs(&self) -> bool {
        match self.phase {
            Phase::Booting | Phase::Up => true,
            Phase::Stopping => self.has_process,
            Phase::Pending | Phase::Lost | Phase::Preparing | Phase::Refused(_) | Phase::Ended => false,
        }
    }

    /// Whether the server was created with RCON.
    pub(super) fn has_rcon(&self) -> bool {
        self.has_rcon
    }

    pub(super) fn hangs(&self) -> bool {
        self.hangs_until.is_some_and(|until| now() < until)
    }

    /// Whether its server carries out commands of the console.
    pub(super) fn obeys(&self) -> bool {
        self.phase == Phase::Up
            && self.has_rcon
            && !self.hangs()
            && self.refuses_until.is_none_or(|until| until <= now())
    }

    /// Its node was off, and is on again: the pod is prepared again, and its process has ended with an error.
    pub(super) fn prepare_again(&mut self, at: Timestamp) {
        (self.phase, self.due, self.prepared_at, self.tries) = (Phase::Preparing, Some(at), None, 0);
        self.is_missed = false;
        if self.starts > 0 {
            self.last_end = Some(now());
        }
    }

    fn backoff(tries: u32) -> SignedDuration {
        let seconds = 10_i64 << tries.min(6);
        SignedDuration::from_secs(seconds).min(LONGEST_BACKOFF)
    }
}

/// The command line of the init container, made from its environment.
#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    init: config::InitConfig,
}

/// Carries out all steps that are due now.
pub(super) async fn step(shared: &ClusterHandle) {
    let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now());
    let mut beside = None;
    let (prepares, stages) = {
        let mut world = shared.world();
        if due(world.controller_at) {
            world.control();
        }
        if world.next_players <= now() {
            world.play();
        }
        world.ask_for_eviction();
        world.see_end_of_forced();
        world.see_end_of_pod();
        world.see_end_of_hang();
        world.pull_images();
        world.note_proven();
        world.agent_looks();
        let is_due = world.pod.as_ref().is_some_and(|pod| due(pod.due));
        let phase = world.pod.as_ref().map(|pod| pod.phase.clone()).filter(|_| is_due);
        let forced_ends_at = world.forced.as_ref().map(|forced| forced.ends_at);
        let prepares = match phase {
            Some(Phase::Preparing | Phase::Refused(_)) => {
                if let Some(ends_at) = forced_ends_at {
                    beside = world.prepare_beside(ends_at);
                    None
                } else {
                    Some(world.mount())
                }
            }
            Some(phase) => {
                world.go_on(&phase);
                None
            }
            None => None,
        };
        let agent = world.pod.as_mut().map(|pod| &mut pod.agent);
        (prepares, agent.and_then(|agent| agent.staging.take_if(|(_, at)| *at <= now())))
    };
    if let Some(beside) = beside {
        let is_done = beside.run().await;
        shared.world().check_beside(&beside, is_done);
    }
    if let Some(settings) = prepares {
        let outcome = tokio::time::timeout(PREPARES_WITHIN, init::run(&settings)).await;
        let mut world = shared.world();
        world.note_cold_copies();
        world.prepared(outcome.ok());
    }
    if let Some((set, _)) = stages {
        super::fake_agent::stage(shared, &set).await;
    }
}

impl SimCluster {
    /// The kubelet sees a new pod.
    pub(super) fn begin_pod(&mut self) {
        let pod = self.objects.get(&self.key_of_pod()).expect("it was just made").clone();
        let files = self.files_of(&pod);
        let key = self.secret(AGENT_KEY);
        let fate = if self.ledger.mended_at.is_some() { SetBehaviour::Good } else { self.scenario.fate_of(&files) };
        let soon = now() + self.seconds(1, 4);
        let is_placed = pod["spec"].get("nodeName").is_some();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.pod = Some(Pod {
            uid: text(&pod["metadata"]["uid"]),
            revision: text(&pod["metadata"]["labels"]["controller-revision-hash"]),
            files,
            fate,
            phase: if is_placed { Phase::Preparing } else { Phase::Pending },
            due: is_placed.then_some(soon),
            made_at: now(),
            prepared_at: None,
            started_at: now(),
            up_since: now(),
            starts: 0,
            tries: 0,
            last_end: None,
            exit_code: 1,
            is_missed: false,
            crashes_until: None,
            hangs_until: None,
            refuses_until: None,
            has_rcon: has_rcon(&pod),
            has_process: true,
            agent: AgentState::new(AgentKey::from_hex(&key).expect("the key of the Secret"), self.scenario.node_ahead),
        });
        self.write_status();
    }

    fn files_of(&mut self, pod: &Value) -> FileSet {
        let volumes = pod["spec"]["volumes"].as_array().expect("volumes");
        let lock = volumes.iter().find(|volume| volume["name"] == "lock").expect("the lock's volume");
        let map = Key::new("configmaps", lock["configMap"]["name"].as_str().expect("a name"));
        // Without it the pod would never start.
        let map = self.objects.get(&map).expect("the lock of a pod is there when it starts");
        serde_json::from_str(map["data"][FILES_KEY].as_str().expect("files")).expect("files of a lock")
    }

    fn secret(&self, key: &str) -> String {
        let name = secret_name(self.scenario.seat.name);
        let secret = self.objects.get(&Key::new("secrets", &name)).expect("the Secret is there before a pod");
        let bytes: ByteString = serde_json::from_value(secret["data"][key].clone()).expect("bytes");
        String::from_utf8(bytes.0).expect("a text")
    }

    /// The settings of the init container, with its volumes as they are at its start.
    pub(super) fn mount(&mut self) -> config::InitConfig {
        let pod = self.objects.get(&self.key_of_pod()).expect("there is a pod").clone();
        let mounts = self.disks.mounts();
        // The mounts start empty.
        let _ = std::fs::remove_dir_all(&mounts);
        let mut places: BTreeMap<String, PathBuf> = BTreeMap::new();
        for volume in pod["spec"]["volumes"].as_array().expect("volumes") {
            let name = volume["name"].as_str().expect("a name").to_owned();
            let place = match name.as_str() {
                "data" => self.disks.data(),
                crate::server::render::pod::BACKUP_VOLUME => self.disks.copies(),
                _ => mounts.join(&name),
            };
            std::fs::create_dir_all(&place).expect("a directory for a volume");
            if let Some(map) = volume["configMap"]["name"].as_str() {
                let map = self.objects.get(&Key::new("configmaps", map)).ok();
                for (file, text) in map.and_then(|map| map["data"].as_object()).into_iter().flatten() {
                    std::fs::write(place.join(file), text.as_str().unwrap_or_default()).expect("a file of a ConfigMap");
                }
            }
            places.insert(name, place);
        }
        let containers = pod["spec"]["initContainers"].as_array().expect("init containers");
        let prepare = containers.iter().find(|container| container["name"] == PREPARE_CONTAINER).expect("prepare");
        let mut line = vec!["prepare".to_owned()];
        let known: Vec<String> = Line::command()
            .get_arguments()
            .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
            .collect();
        for variable in prepare["env"].as_array().expect("an environment") {
            let name = variable["name"].as_str().expect("a name");
            let flag =
                name.strip_prefix("NIGHTSHIFT_").map(|name| format!("--{}", name.to_lowercase().replace('_', "-")));
            let value = match (variable["value"].as_str(), variable["valueFrom"]["secretKeyRef"]["key"].as_str()) {
                (Some(value), _) => on_host(value, &prepare["volumeMounts"], &places),
                (None, Some(_)) => self.secret(RCON_PASSWORD),
                (None, None) => continue,
            };
            if let Some(flag) = flag.filter(|flag| known.contains(flag)) {
                line.push(format!("{flag}={value}"));
            }
        }
        let (last_words, hook) = (mounts.join("last-words"), mounts.join("hook"));
        std::fs::write(&hook, b"").expect("a file");
        line.push(format!("--termination-log={}", last_words.display()));
        line.push(format!("--hook={}", hook.display()));
        Line::parse_from(line).init
    }

    /// Takes in the result of the init container. `None` if it hangs.
    fn prepared(&mut self, outcome: Option<InitResult>) {
        let backoff = {
            let Some(pod) = &mut self.pod else { return };
            pod.tries += 1;
            Pod::backoff(pod.tries)
        };
        match outcome {
            Some(InitResult::Ready(_)) => {
                self.find_unseen_end();
                let pod = self.pod.as_mut().expect("looked at above");
                (pod.prepared_at, pod.tries) = (Some(now()), 0);
                pod.agent.begin(now());
                if self.is_scripted() {
                    self.agent_finds_staged();
                }
                self.boot();
            }
            Some(InitResult::Refused(words) | InitResult::TryAnew(words)) => {
                let line = words.replace('\n', " / ");
                self.tell(format!("init container: refuses: {line}"));
                let pod = self.pod.as_mut().expect("looked at above");
                (pod.phase, pod.due) = (Phase::Refused(words), Some(now() + backoff));
            }
            None => {
                self.must(false, "the init container comes to an end");
                self.pod.as_mut().expect("looked at above").due = Some(now() + backoff);
            }
        }
        self.write_status();
        self.changed();
    }

    /// The kubelet starts the server's process.
    pub(super) fn boot(&mut self) {
        let takes = self.seconds(10, 40);
        {
            let pod = self.pod.as_mut().expect("a pod that was prepared");
            pod.starts += 1;
            (pod.phase, pod.started_at) = (Phase::Booting, now());
        }
        self.open_world();
        // The process may end because of the worlds.
        let pod = self.pod.as_mut().expect("looked at above");
        let takes =
            if let (SetBehaviour::MovesFor(lasts), true) = (pod.fate, self.marks.is_moving) { lasts } else { takes };
        pod.due = (pod.fate != SetBehaviour::NeverUp).then(|| now() + takes);
    }

    fn go_on(&mut self, phase: &Phase) {
        match phase {
            Phase::Booting => self.end_boot(),
            Phase::Up => self.crash("server: the process dies"),
            Phase::Ended => self.boot(),
            Phase::Stopping => {
                self.note_end_of_stop();
                return self.pod_is_gone();
            }
            Phase::Lost => return self.miss_node(),
            Phase::Pending | Phase::Preparing | Phase::Refused(_) => {}
        }
        self.write_status();
        self.changed();
    }

    fn end_boot(&mut self) {
        let fate = self.pod.as_ref().map(|pod| pod.fate);
        let crashes_on = self.pod.as_ref().and_then(|pod| pod.crashes_until).is_some_and(|until| now() < until);
        self.ledger.crashed_on |= crashes_on;
        if crashes_on || fate == Some(SetBehaviour::Crashes) {
            return self.crash("server: the process ends while it starts");
        }
        let files = self.pod.as_ref().expect("it boots").files.clone();
        self.end_move(&files);
        let dies = if fate == Some(SetBehaviour::DiesLater) { Some(now() + self.seconds(2, 50)) } else { None };
        let dies = self.by_script.lives_for().map(|lives| now() + lives).or(dies);
        let pod = self.pod.as_mut().expect("it boots");
        (pod.phase, pod.up_since, pod.due) = (Phase::Up, now(), dies);
        self.tell("server: is up and answers pings");
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
        self.tell(why);
        self.lose_unsaved();
        let pod = self.pod.as_mut().expect("it has a process");
        let backoff = if pod.starts == 1 { SignedDuration::from_secs(1) } else { Pod::backoff(pod.starts - 2) };
        (pod.phase, pod.last_end, pod.due, pod.hangs_until) = (Phase::Ended, Some(now()), Some(now() + backoff), None);
        // The agent checks every few seconds.
        self.agent_looks();
        self.write_status();
        self.changed();
    }

    /// The kubelet sees that the pod is to end: the hook saves and stops, or the grace period runs out.
    fn see_end_of_pod(&mut self) {
        let object = self.objects.get(&self.key_of_pod());
        if self.pod.is_some() && object.is_err() {
            // A pod on no node has no process to stop.
            return self.pod_is_gone();
        }
        let ends = object.ok().and_then(|pod| pod["metadata"]["deletionTimestamp"].as_str());
        let Some(ends) = ends.and_then(|text| text.parse::<Timestamp>().ok()) else { return };
        let stop = self.seconds(2, 8);
        self.ask_agent_to_stop();
        let Some(pod) = self.pod.as_mut().filter(|pod| !matches!(pod.phase, Phase::Stopping | Phase::Lost)) else {
            return;
        };
        let was_up = pod.phase == Phase::Up;
        pod.has_process = !matches!(pod.phase, Phase::Ended | Phase::Preparing | Phase::Refused(_) | Phase::Pending);
        let hangs = pod.hangs();
        (pod.phase, pod.due) = (Phase::Stopping, Some(if hangs { ends } else { now() + stop }));
        if was_up && !hangs {
            self.save_world();
        }
        self.lose_unsaved();
        self.tell("kubelet: stops the pod: preStop hook, then SIGTERM");
        self.write_status();
    }

    fn see_end_of_hang(&mut self) {
        let Some(pod) = &mut self.pod else { return };
        if pod.hangs_until.take_if(|until| *until <= now()).is_some() {
            self.tell("server: answers again");
            self.write_status();
            self.changed();
        }
    }

    /// The object and the process are deleted, and unsaved changes are lost.
    pub(super) fn pod_is_gone(&mut self) {
        self.pod = None;
        self.lose_unsaved();
        self.objects.remove(&self.key_of_pod());
        self.tell("kubelet: the pod is gone");
        self.changed();
    }

    /// Writes the pod's status as the kubelet does.
    pub(super) fn write_status(&mut self) {
        let Some(pod) = &self.pod else { return };
        if pod.phase == Phase::Pending {
            let status = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
            return self.objects.change(&self.key_of_pod(), now(), |pod| pod["status"] = status);
        }
        let at = |at: Timestamp| (at + self.scenario.node_ahead).to_string();
        let pending = json!({"waiting": {"reason": "PodInitializing"}});
        let container = |name: &str, state: Value, last: Value, (started, ready): (bool, bool), restarts: u32| {
            json!({
                "name": name, "image": "", "imageID": "", "state": state, "lastState": last,
                "started": started, "ready": ready, "restartCount": restarts,
            })
        };
        let prepare = match (&pod.phase, pod.prepared_at) {
            (_, Some(done)) => (json!({"terminated": {"exitCode": 0, "finishedAt": at(done)}}), json!({})),
            (Phase::Refused(words), None) => {
                let end = json!({"exitCode": 3, "finishedAt": at(now()), "message": words});
                (json!({"waiting": {"reason": "CrashLoopBackOff"}}), json!({"terminated": end}))
            }
            (_, None) => (json!({"running": {"startedAt": at(pod.made_at)}}), json!({})),
        };
        let ended = pod.last_end.map(|end| {
            let reason = if pod.exit_code == 0 { "Completed" } else { "Error" };
            json!({"terminated": {"exitCode": pod.exit_code, "reason": reason, "finishedAt": at(end)}})
        });
        let running = json!({"running": {"startedAt": at(pod.started_at)}});
        let is_up = pod.phase == Phase::Up;
        let (state, last) = match pod.phase {
            Phase::Booting | Phase::Up | Phase::Lost => (running, ended.unwrap_or_else(|| json!({}))),
            Phase::Ended if pod.starts == 1 => (ended.unwrap_or_default(), json!({})),
            Phase::Ended => (json!({"waiting": {"reason": "CrashLoopBackOff"}}), ended.unwrap_or_default()),
            Phase::Stopping if pod.prepared_at.is_some() => (running, ended.unwrap_or_else(|| json!({}))),
            Phase::Pending | Phase::Preparing | Phase::Refused(_) | Phase::Stopping => (pending, json!({})),
        };
        let ready = is_up && !pod.hangs();
        let status = json!({
            "phase": "Running", "podIP": self.scenario.address.to_string(), "startTime": at(pod.made_at),
            "conditions": conditions(ready),
            "initContainerStatuses": [container(PREPARE_CONTAINER, prepare.0, prepare.1, (false, true), pod.tries)],
            "containerStatuses": [container(SERVER_CONTAINER, state, last, (is_up, ready), pod.starts.saturating_sub(1))],
        });
        self.objects.change(&self.key_of_pod(), now(), |pod| pod["status"] = status);
    }
}

/// Whether the pod template enables RCON in the server's image.
fn has_rcon(pod: &Value) -> bool {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut variables = containers.flat_map(|container| container["env"].as_array().into_iter().flatten());
    !variables.any(|variable| variable["name"] == ENABLE_RCON && variable["value"] == "false")
}

/// The path on this machine of a path in the container.
fn on_host(value: &str, mounts: &Value, places: &BTreeMap<String, PathBuf>) -> String {
    for mount in mounts.as_array().into_iter().flatten() {
        let (at, name) = (mount["mountPath"].as_str().unwrap_or_default(), mount["name"].as_str().unwrap_or_default());
        if let Ok(rest) = Path::new(value).strip_prefix(at) {
            let place = places[name].join(rest);
            return place.display().to_string();
        }
    }
    value.to_owned()
}
