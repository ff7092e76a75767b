//! Edge (writes). Simulates events that only scenario files cause.
//!
//! Examples are files of an admin on the volume, a full volume, and a log that reports damage. Others are a server
//! without ping replies, and a stop in the game.

use std::collections::{BTreeMap, BTreeSet};

use agent::staging::drift::drift;
use agent::staging::unmanaged_jars::UnmanagedJars;
use agent::staging::{AppliedManifest, Volume};
use agent_api::loaded_content::AtStart;
use agent_api::world_damage::DamageReport;
use agent_api::{FileSet, Staging, UnmanagedJar};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::objects::Key;
use super::scenario::{Extra, SetBehaviour};
use crate::clock::now;
use crate::server::observe::pending::Lack;
use crate::server::render::pull_pod::pull_name;

/// The interval of the agent's checks of a server. It keeps the time since the last check short, so that a missed ping
/// does not count as silence.
const CHECK_INTERVAL: SignedDuration = SignedDuration::from_secs(5);
/// How long the kubelet takes to pull an image.
const PULL_DURATION: SignedDuration = SignedDuration::from_secs(10);
/// Free bytes of a full volume.
const FREE_ON_FULL_VOLUME: u64 = 3 << 20;

/// The changes by a scenario file.
#[derive(Debug, Default)]
pub(super) struct ScriptedChanges {
    /// The JARs that an admin has put into `plugins/`.
    pub(super) jars: BTreeSet<String>,
    pub(super) is_volume_full: bool,
    /// The bytes that a backup may use. `None`: enough.
    pub(super) backup_room: Option<u64>,
    /// Files that the agent could not download because the volume was full.
    refused_files: Option<FileSet>,
    pub(super) damage: Option<DamageReport>,
    /// The server answers no ping until then, but it answers commands.
    pub(super) no_ping_until: Option<Timestamp>,
    /// Until the second time, each process exits after running for this long.
    pub(super) crashes_after: Option<(SignedDuration, Timestamp)>,
    unmanaged: UnmanagedJars,
    /// Starts also open a world `creative` and a datapack `file/skylands`.
    pub(super) has_extra_world: bool,
    /// The registry has no image that is not already on the node.
    pub(super) is_image_missing: bool,
    /// What the cluster cannot provide for a new pod.
    pub(super) lack: Option<Lack>,
    /// When a player has stopped the server in the game.
    pub(super) stops_in_game: Vec<Timestamp>,
    /// When the agent has last checked the server.
    pub(super) checked_at: Option<Timestamp>,
    /// When the kubelet reports on the pod that pulls images.
    pull_ends_at: Option<Timestamp>,
}

impl ScriptedChanges {
    /// How long the running process may run. `None`: without a limit.
    pub(super) fn process_lifetime(&self) -> Option<SignedDuration> {
        self.crashes_after.filter(|(_, until)| now() < *until).map(|(lifetime, _)| lifetime)
    }

    /// The worlds that a start with this version set opens.
    pub(super) fn worlds(&self, behaviour: SetBehaviour) -> BTreeMap<String, AtStart> {
        let overworld = ("overworld".to_owned(), AtStart::Opened);
        let extra = self.has_extra_world.then(|| ("creative".to_owned(), at_start(behaviour)));
        std::iter::once(overworld).chain(extra).collect()
    }

    /// The datapacks that a start with this version set opens.
    pub(super) fn datapacks(&self, behaviour: SetBehaviour) -> BTreeMap<String, AtStart> {
        self.has_extra_world.then(|| ("file/skylands".to_owned(), at_start(behaviour))).into_iter().collect()
    }

    pub(super) fn is_ping_silent(&self) -> bool {
        self.no_ping_until.is_some_and(|until| now() < until)
    }
}

/// The state of a world or datapack that every earlier start opened.
fn at_start(behaviour: SetBehaviour) -> AtStart {
    if behaviour == SetBehaviour::LosesWorld { AtStart::NotAnyMore } else { AtStart::Opened }
}

impl SimCluster {
    fn pull_pod_key(&self) -> Key {
        Key::new("pods", &pull_name(self.scenario.server_index.name))
    }

    /// The operator has created a pod that pulls images.
    pub(super) fn record_pull(&mut self, pod: &Value) {
        if self.is_scripted() && pod["metadata"]["name"] == self.pull_pod_key().name.as_str() {
            let images = pod["spec"]["containers"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|container| container["image"].as_str());
            self.trace(format!("kubelet: pulls {}", images.collect::<Vec<_>>().join(", ")));
            self.scripted.pull_ends_at = Some(now() + PULL_DURATION);
        }
    }

    /// When the kubelet finishes the pull, or the agent checks again whether the server is empty.
    pub(super) fn next_scripted_event_at(&self) -> Option<Timestamp> {
        let counts = self.is_scripted() && self.scenario.has_extra(Extra::Opportunistic);
        let next_check_at =
            self.scripted.checked_at.filter(|_| counts && self.pod.is_some()).map(|at| at + CHECK_INTERVAL);
        self.scripted.pull_ends_at.into_iter().chain(next_check_at).min()
    }

    /// Whether a player stopped the server in the game about then.
    pub(super) fn was_stopped_in_game(&self, at: Timestamp) -> bool {
        self.scripted.stops_in_game.iter().any(|stop| at.duration_since(*stop).abs() < SignedDuration::from_mins(1))
    }

    /// The kubelet has pulled the images, or failed.
    pub(super) fn pull_images(&mut self) {
        if self.scripted.pull_ends_at.take_if(|at| *at <= now()).is_none() {
            return;
        }
        let (key, is_missing) = (self.pull_pod_key(), self.scripted.is_image_missing);
        let Ok(pod) = self.objects.get(&key) else { return };
        let of_each = pod["spec"]["containers"].as_array().cloned().unwrap_or_default().into_iter().map(|container| {
            let is_missing = is_missing && container["image"].as_str().is_some_and(|image| image.contains("missing"));
            let state = if is_missing {
                json!({"waiting": {"reason": "ErrImagePull", "message": format!("{}: not found", container["image"].as_str().unwrap_or_default())}})
            } else {
                json!({"terminated": {"exitCode": 0}})
            };
            let id = if is_missing { "" } else { "sha256:1" };
            json!({"name": container["name"], "image": container["image"], "imageID": id, "ready": false, "restartCount": 0, "state": state})
        });
        let statuses: Vec<Value> = of_each.collect();
        let is_missing = statuses.iter().any(|status| status["imageID"] == "");
        let started = now().to_string();
        self.objects.change(&key, now(), |pod| {
            pod["status"] = json!({"phase": "Pending", "startTime": started, "containerStatuses": statuses});
        });
        self.trace(if is_missing { "kubelet: cannot pull an image" } else { "kubelet: has pulled the images" });
        self.has_changes = true;
    }

    /// The operator requests a download, and the volume has no space for it.
    pub(super) fn refuse_if_full(&mut self, file_set: &FileSet) -> bool {
        self.scripted.refused_files = self.scripted.is_volume_full.then(|| file_set.clone());
        self.scripted.is_volume_full
    }

    /// The error of files that the volume had no space for.
    pub(super) fn staging_error(&self) -> Option<Staging> {
        let file_set = self.scripted.refused_files.as_ref()?;
        let needed = file_set.plugins.len() as u64 * (5 << 20);
        let error = agent::staging::volume_store::Error::Full { free: FREE_ON_FULL_VOLUME, needed };
        Some(Staging { lock: file_set.lock.clone(), done: 0, of: 4, error: Some(error.to_string()) })
    }

    /// Managed files that differ from the lock.
    pub(super) fn drifted_files(&self) -> Vec<String> {
        let volume = Volume::new(self.disks.data());
        let manifest: Option<AppliedManifest> = volume.manifest().ok().flatten();
        manifest.and_then(|manifest| drift(&volume, &manifest).ok()).map(|drift| drift.changed).unwrap_or_default()
    }

    /// The descriptors of an admin's JARs.
    pub(super) fn unmanaged_jars(&self, files: &[String]) -> Vec<UnmanagedJar> {
        self.scripted.unmanaged.describe(&Volume::new(self.disks.data()), files)
    }

    /// The log reports a damaged world.
    pub(super) fn record_damage(&mut self, line: &str) {
        let (since, last) = self.scripted.damage.as_ref().map_or((now(), now()), |damage| (damage.since, now()));
        let lines = self.scripted.damage.as_ref().map_or(0, |damage| damage.lines) + 1;
        self.scripted.damage = Some(DamageReport { since, last, lines, first: line.to_owned() });
    }

    /// A player with the permission runs `/stop`.
    pub(super) fn stop_in_game(&mut self) {
        if !self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up) {
            return;
        }
        self.save_world();
        self.scripted.stops_in_game.push(now());
        self.pod.as_mut().expect("the pod exists").exit_code = 0;
        self.end_process("server: the process ends with exit code 0");
    }
}
