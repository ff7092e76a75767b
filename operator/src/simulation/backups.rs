//! Edge (writes). Tracks the worlds of the last process and their backups: a start must find all of the one, or all of
//! the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use agent::backup::create::{BackupSpec, create_backup};
use agent::backup::repository::BackupRepository;
use agent::backup::{Backup, LiveReads};
use agent::clock::now as real_now;
use agent::staging::Volume;
use agent::staging::fs_ops::{Disk, RealFs};
use agent::world::Worlds;
use agent_api::restore::Restored;
use agent_api::{OnlineBackupOutcome, OnlineBackupReport, OnlineBackupRequest};
use jiff::Timestamp;
use serde_json::Value;
use walkdir::WalkDir;

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::invariants::NOTICE;
use super::user_actions::REQUEST_VALID_FOR;
use super::world_layout::FOLDERS;
use crate::clock::now;

/// All files of all worlds, of both layouts, by their paths below the server's directory.
type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// The expected contents of worlds and backups.
#[derive(Debug, Default)]
pub(super) struct BackupInvariants {
    /// The worlds as the last process left them.
    last_worlds: Tree,
    /// The expected contents of each backup, and when it was complete. The name of a deleted backup may be used again.
    contents: BTreeMap<String, (Timestamp, Tree)>,
    /// Their names in the order in which they were taken.
    order: Vec<String>,
    /// Requests that have led to an online backup.
    served: BTreeSet<String>,
    /// The restore that a user requested, with overwrite.
    requested: Option<RequestedRestore>,
}

/// A restore that a user requested.
#[derive(Debug)]
struct RequestedRestore {
    /// The value of the annotation.
    value: String,
    backup: String,
    requested_at: Timestamp,
    /// The number of starts that found this backup instead of the worlds of the last process.
    starts_with_backup: u32,
    /// A start found this backup, and it equals the worlds of the last process.
    equals_last_worlds: bool,
}

impl SimCluster {
    /// The repository of this server's backups. `None` if it takes none.
    pub(super) fn backup_repository(&self) -> Option<PathBuf> {
        let (volume, below) = self.objects.get(&self.pod_key()).ok().and_then(repository_path)?;
        let volume = if volume == "data" { self.disks.data() } else { self.disks.backups() };
        Some(volume.join(below))
    }

    /// Good backups, oldest first.
    fn good_backups(&self) -> Vec<Backup> {
        let listed = self
            .backup_repository()
            .map(|repository| BackupRepository::new(repository).list().expect("the backups can be listed"));
        listed.into_iter().flatten().filter_map(|backup| backup.state.ok()).collect()
    }

    /// The clocks were set back, so scheduled times that were served occur again.
    pub(super) fn clear_served(&mut self) {
        self.backups.served.clear();
    }

    /// The process has exited, so no process writes to the worlds.
    pub(super) fn record_last_worlds(&mut self) {
        self.backups.last_worlds = read_tree(&self.disks.data());
    }

    /// The init container has ended: its backups contain the worlds of the last process.
    pub(super) fn record_offline_backups(&mut self) {
        for Backup { id, completed_at, .. } in self.good_backups() {
            if self.backups.contents.get(&id).is_none_or(|(at, _)| *at != completed_at) {
                self.trace_if_scripted(format!("init container: has taken backup {id}"));
                self.backups.order.push(id.clone());
                self.backups.contents.insert(id, (completed_at, self.backups.last_worlds.clone()));
            }
        }
    }

    /// The agent takes an online backup. `None` if it cannot now.
    pub(super) fn take_online_backup(&mut self, request: &OnlineBackupRequest) -> Option<OnlineBackupReport> {
        let is_up = self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up && !pod.is_hanging());
        let is_new = !self.backups.served.contains(&request.request);
        self.check(is_new, "each online backup is requested once");
        let repository = self.backup_repository().filter(|_| is_up)?;
        self.save_world();
        let data = self.disks.data();
        let manifest = Volume::new(&data).manifest().expect("a manifest");
        let spec = BackupSpec {
            data: &data,
            worlds: &Worlds::read(&data).expect("the worlds are readable"),
            reading: LiveReads::Online,
            contents: request.contents,
            trigger: request.trigger,
            lock: manifest.as_ref().map(|manifest| manifest.lock.as_str()),
            before: None,
            request: Some(&request.request),
            after_damage: self.scripted.damage.is_some(),
        };
        let Backup { id, completed_at, .. } =
            create_backup(&spec, &BackupRepository::new(repository), &mut Disk::new(RealFs), real_now)
                .expect("a backup of a few files");
        self.trace(format!("agent: takes an online backup: {id}"));
        self.backups.order.push(id.clone());
        self.backups.contents.insert(id.clone(), (completed_at, read_tree(&data)));
        self.backups.served.insert(request.request.clone());
        Some(OnlineBackupReport {
            request: request.request.clone(),
            at: now(),
            outcome: OnlineBackupOutcome::Taken { id },
        })
    }

    /// A user requests a restore of one of the backups. `None` if there is none, or if the same request was made
    /// before, which has no effect.
    pub(super) fn choose_restore(&mut self) -> Option<String> {
        let all = self.good_backups();
        let Backup { id: backup, .. } = all.get(self.rng.number_below(all.len().max(1)))?.clone();
        let value = format!("{backup};overwrite");
        if self.backups.requested.as_ref().is_some_and(|requested| requested.value == value) {
            return None;
        }
        self.backups.requested = Some(RequestedRestore {
            value: value.clone(),
            backup,
            requested_at: now(),
            starts_with_backup: 0,
            equals_last_worlds: false,
        });
        Some(value)
    }

    /// A scenario file requests a restore of this backup.
    pub(super) fn record_restore_request(&mut self, backup: &str) {
        let (value, backup) = (format!("{backup};overwrite"), backup.to_owned());
        self.backups.requested = Some(RequestedRestore {
            value,
            backup,
            requested_at: now(),
            starts_with_backup: 0,
            equals_last_worlds: false,
        });
    }

    /// The name of a backup by its number, oldest first from 1.
    pub(super) fn backup_by_number(&self, number: usize) -> String {
        self.backups.order.get(number - 1).cloned().unwrap_or_else(|| format!("there is no backup {number}"))
    }

    /// Whether a start has found the requested backup.
    pub(super) fn is_restored(&self) -> bool {
        self.backups.requested.as_ref().is_some_and(|requested| requested.starts_with_backup > 0)
    }

    /// When a user last requested a restore.
    pub(super) fn restore_requested_at(&self) -> Option<Timestamp> {
        self.backups.requested.as_ref().map(|requested| requested.requested_at)
    }

    /// The backup of the requested restore.
    pub(super) fn backup_to_restore(&self) -> Option<&str> {
        self.backups.requested.as_ref().map(|requested| requested.backup.as_str())
    }

    /// Whether a requested restore is still pending and may still happen.
    pub(super) fn waits_for_restore(&self) -> bool {
        self.backups.requested.as_ref().is_some_and(|requested| {
            requested.starts_with_backup == 0 && now() < requested.requested_at + REQUEST_VALID_FOR + NOTICE
        })
    }

    /// Checks that a start finds the worlds of the last process, or those of exactly one backup. Returns whether a user
    /// requested that backup.
    pub(super) fn check_found_worlds(&mut self) -> bool {
        let found = read_tree(&self.disks.data());
        if found == self.backups.last_worlds {
            let BackupInvariants { contents, requested, .. } = &mut self.backups;
            if let Some(requested) = requested {
                requested.equals_last_worlds |= contents.get(&requested.backup).is_some_and(|(_, tree)| *tree == found);
            }
            return false;
        }
        let matching: Vec<String> =
            self.backups.contents.iter().filter(|(_, (_, tree))| *tree == found).map(|(id, _)| id.clone()).collect();
        self.trace(format!("server: finds the worlds of backup {}", matching.join(", ")));
        // The worlds of a backup are undamaged.
        self.scripted.damage = None;
        self.check(!matching.is_empty(), "a start finds the worlds of the last process or of a backup");
        let record = std::fs::read(Volume::new(self.disks.data()).restored_path()).expect("the restore is recorded");
        let Restored { id, request, .. } = serde_json::from_slice(&record).expect("a record");
        self.check(matching.contains(&id), "a start finds the backup that is recorded as restored");
        // A rollback may restore the same backup, or one with the same contents.
        let is_requested = |requested: &&mut RequestedRestore| request.is_some() && requested.backup == id;
        let Some(requested) = self.backups.requested.as_mut().filter(is_requested) else { return false };
        requested.starts_with_backup += 1;
        let is_once = requested.starts_with_backup == 1;
        self.check(is_once, "a requested restore happens once");
        true
    }

    /// Checks that the result of the requested restore is reported, and is correct.
    pub(super) fn check_restore(&mut self) {
        let server = self.objects.get(&self.server_key()).expect("the server object exists");
        let handled = server["status"]["lastHandled"]["restoreFrom"].clone();
        let Some(RequestedRestore { value, backup, requested_at, starts_with_backup, equals_last_worlds }) =
            &self.backups.requested
        else {
            return;
        };
        let (starts_with_backup, equals_last_worlds) = (*starts_with_backup > 0, *equals_last_worlds);
        let is_handled = handled["asked"] == value.as_str();
        let result = handled["result"].as_str().filter(|_| is_handled).map(str::to_owned);
        self.trace(format!(
            "status: the restore of {backup}, requested at {requested_at}: {result:?} {}",
            handled["message"]
        ));
        match result.as_deref() {
            Some("Restored") => {
                self.check(
                    starts_with_backup || equals_last_worlds,
                    "a restore is reported only after a start found the backup",
                );
            }
            Some(_) => self.check(!starts_with_backup, "no start finds a backup that is reported as not restored"),
            None => self.check(false, "a requested restore gets a result"),
        }
    }
}

/// The directory in which the repository's volume is mounted, and the repository of a pod's agent on it.
fn repository_path(pod: &Value) -> Option<(String, String)> {
    let containers = pod["spec"]["initContainers"].as_array()?;
    let variables = containers.iter().flat_map(|container| container["env"].as_array().into_iter().flatten());
    let mut backups = variables.filter(|variable| variable["name"] == "NIGHTSHIFT_BACKUPS");
    let path = backups.next()?["value"].as_str()?;
    let (volume, below) = path.trim_start_matches('/').split_once('/')?;
    Some((volume.to_owned(), below.to_owned()))
}

fn read_tree(data: &Path) -> Tree {
    let files = FOLDERS.iter().flat_map(|folder| WalkDir::new(data.join(folder))).filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_file() && entry.file_name() != "session.lock");
    let read = |path: &Path| std::fs::read(path).expect("a file of the world");
    files.map(|entry| (entry.path().strip_prefix(data).expect("below data").to_owned(), read(entry.path()))).collect()
}
