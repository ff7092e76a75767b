//! Edge (writes). Simulates events that only scenario files cause.
//!
//! Examples are files of an admin on the volume, a full volume, and a log that reports damage. Others are a server
//! without ping replies, and a stop in the game.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use scheduler::protocol::damage::DamageTold;
use scheduler::protocol::loaded::AtStart;
use scheduler::protocol::{FileSet, Staging, UnmanagedJar};
use scheduler::staging::drift::drift;
use scheduler::staging::unmanaged_jars::UnmanagedJars;
use scheduler::staging::{StagedManifest, Volume};
use serde_json::{Value, json};

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::objects::Key;
use super::scenario::{Extra, SetBehaviour};
use crate::clock::now;
use crate::server::render::pull_pod::pull_name;

/// The interval of the agent's checks of a server. It keeps the time since the last check short, so that a missed ping
/// does not count as silence.
const LOOKS_EVERY: SignedDuration = SignedDuration::from_secs(5);
/// How long the kubelet takes to pull an image.
const PULLS_FOR: SignedDuration = SignedDuration::from_secs(10);
/// Free bytes of a full volume.
const LEFT_ON_A_FULL_VOLUME: u64 = 3 << 20;

/// The changes by a scenario file.
#[derive(Debug, Default)]
pub(super) struct ByScript {
    /// The JARs that an admin has put into `plugins/`.
    pub(super) jars: BTreeSet<String>,
    pub(super) is_full: bool,
    /// Files that the agent could not download because the volume was full.
    refused: Option<FileSet>,
    pub(super) damage: Option<DamageTold>,
    /// The server answers no ping until then, but it answers commands.
    pub(super) no_ping_until: Option<Timestamp>,
    /// Until the second time, each process exits after running for this long.
    pub(super) dies_after: Option<(SignedDuration, Timestamp)>,
    unmanaged: UnmanagedJars,
    /// Starts also open a world `creative` and a datapack `file/skylands`.
    pub(super) has_another_world: bool,
    /// The registry has no image that is not already on the node.
    pub(super) is_image_missing: bool,
    /// When a player has stopped the server in the game.
    pub(super) stops_in_game: Vec<Timestamp>,
    /// When the agent has last checked the server.
    pub(super) looked_at: Option<Timestamp>,
    /// When the kubelet reports on the pod that pulls images.
    pulls_at: Option<Timestamp>,
}

impl ByScript {
    /// How long the running process may run. `None`: without a limit.
    pub(super) fn lives_for(&self) -> Option<SignedDuration> {
        self.dies_after.filter(|(_, until)| now() < *until).map(|(lives, _)| lives)
    }

    /// The worlds that a start with this version set opens.
    pub(super) fn worlds(&self, fate: SetBehaviour) -> BTreeMap<String, AtStart> {
        let overworld = ("overworld".to_owned(), AtStart::Opened);
        let another = self.has_another_world.then(|| ("creative".to_owned(), at_start(fate)));
        std::iter::once(overworld).chain(another).collect()
    }

    /// The datapacks that a start with this version set opens.
    pub(super) fn datapacks(&self, fate: SetBehaviour) -> BTreeMap<String, AtStart> {
        self.has_another_world.then(|| ("file/skylands".to_owned(), at_start(fate))).into_iter().collect()
    }

    pub(super) fn is_ping_silent(&self) -> bool {
        self.no_ping_until.is_some_and(|until| now() < until)
    }
}

/// The state of a world or datapack that every earlier start opened.
fn at_start(fate: SetBehaviour) -> AtStart {
    if fate == SetBehaviour::LosesWorld { AtStart::NotAnyMore } else { AtStart::Opened }
}

impl SimCluster {
    fn key_of_pull(&self) -> Key {
        Key::new("pods", &pull_name(self.scenario.seat.name))
    }

    /// The operator has created a pod that pulls images.
    pub(super) fn note_pull(&mut self, pod: &Value) {
        if self.is_scripted() && pod["metadata"]["name"] == self.key_of_pull().name.as_str() {
            let images =
                pod["spec"]["containers"].as_array().into_iter().flatten().filter_map(|of| of["image"].as_str());
            self.tell(format!("kubelet: pulls {}", images.collect::<Vec<_>>().join(", ")));
            self.by_script.pulls_at = Some(now() + PULLS_FOR);
        }
    }

    /// When the kubelet finishes the pull, or the agent checks again whether the server is empty.
    pub(super) fn next_by_script(&self) -> Option<Timestamp> {
        let counts = self.is_scripted() && self.scenario.has(Extra::Opportunistic);
        let looks_at = self.by_script.looked_at.filter(|_| counts && self.pod.is_some()).map(|at| at + LOOKS_EVERY);
        self.by_script.pulls_at.into_iter().chain(looks_at).min()
    }

    /// Whether a player stopped the server in the game about then.
    pub(super) fn was_stopped_in_game(&self, at: Timestamp) -> bool {
        self.by_script.stops_in_game.iter().any(|stop| at.duration_since(*stop).abs() < SignedDuration::from_mins(1))
    }

    /// The kubelet has pulled the images, or failed.
    pub(super) fn pull_images(&mut self) {
        if self.by_script.pulls_at.take_if(|at| *at <= now()).is_none() {
            return;
        }
        let (key, is_missing) = (self.key_of_pull(), self.by_script.is_image_missing);
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
        self.tell(if is_missing { "kubelet: cannot pull an image" } else { "kubelet: has pulled the images" });
        self.news = true;
    }

    /// The operator requests a download, and the volume has no space for it.
    pub(super) fn refuses_files(&mut self, set: &FileSet) -> bool {
        self.by_script.refused = self.by_script.is_full.then(|| set.clone());
        self.by_script.is_full
    }

    /// The error of files that the volume had no space for.
    pub(super) fn staging_refused(&self) -> Option<Staging> {
        let set = self.by_script.refused.as_ref()?;
        let needed = set.plugins.len() as u64 * (5 << 20);
        let error = scheduler::staging::content_store::Error::Full { free: LEFT_ON_A_FULL_VOLUME, needed };
        Some(Staging { lock: set.lock.clone(), done: 0, of: 4, error: Some(error.to_string()) })
    }

    /// Managed files that differ from the lock.
    pub(super) fn drifted(&self) -> Vec<String> {
        let volume = Volume::new(self.disks.data());
        let manifest: Option<StagedManifest> = volume.manifest().ok().flatten();
        manifest.and_then(|manifest| drift(&volume, &manifest).ok()).map(|drift| drift.changed).unwrap_or_default()
    }

    /// The descriptors of an admin's JARs.
    pub(super) fn unmanaged_jars(&self, files: &[String]) -> Vec<UnmanagedJar> {
        self.by_script.unmanaged.look(&Volume::new(self.disks.data()), files)
    }

    /// The log reports a damaged world.
    pub(super) fn tell_of_damage(&mut self, line: &str) {
        let (since, last) = self.by_script.damage.as_ref().map_or((now(), now()), |told| (told.since, now()));
        let lines = self.by_script.damage.as_ref().map_or(0, |told| told.lines) + 1;
        self.by_script.damage = Some(DamageTold { since, last, lines, first: line.to_owned() });
    }

    /// A player with the permission runs `/stop`.
    pub(super) fn stop_in_game(&mut self) {
        if !self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up) {
            return;
        }
        self.save_world();
        self.by_script.stops_in_game.push(now());
        self.pod.as_mut().expect("looked at above").exit_code = 0;
        self.end_process("server: the process ends with exit code 0");
    }
}
