//! Edge (writes). Tracks the worlds of the last process and their backups: a start must find all of the one, or all of
//! the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use scheduler::agent::clock::now as real_now;
use scheduler::backup::create::{BackupSpec, take};
use scheduler::backup::repository::BackupRepository;
use scheduler::backup::{Backup, LiveReads};
use scheduler::protocol::restore::Restored;
use scheduler::protocol::{HotCopy, HotCopyOutcome, HotCopySeen};
use scheduler::staging::Volume;
use scheduler::staging::fs_ops::{Disk, RealFs};
use scheduler::world::Worlds;
use serde_json::Value;
use walkdir::WalkDir;

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::invariants::NOTICE;
use super::user_actions::ASKED_FOR;
use super::world_layout::FOLDERS;
use crate::clock::now;

/// All files of all worlds, of both layouts, by their paths below the server's directory.
type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// The expected contents of worlds and backups.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The worlds as the last process left them.
    left: Tree,
    /// The expected contents of each backup, and when it was complete. The name of a deleted backup may be used again.
    held: BTreeMap<String, (Timestamp, Tree)>,
    /// Their names in the order in which they were taken.
    order: Vec<String>,
    /// Requests that have led to an online backup.
    served: BTreeSet<String>,
    /// The restore that a user requested, with overwrite.
    asked: Option<Asked>,
}

/// A restore that a user requested.
#[derive(Debug)]
struct Asked {
    /// The value of the annotation.
    value: String,
    copy: String,
    at: Timestamp,
    /// The number of starts that found this backup instead of the worlds of the last process.
    came: u32,
    /// A start found this backup, and it equals the worlds of the last process.
    is_no_other: bool,
}

impl SimCluster {
    /// The repository of this server's backups. `None` if it takes none.
    pub(super) fn shelf(&self) -> Option<PathBuf> {
        let below = self.objects.get(&self.key_of_pod()).ok().and_then(backups_of)?;
        Some(self.disks.copies().join(below))
    }

    /// Good backups, oldest first.
    fn good_copies(&self) -> Vec<Backup> {
        let listed = self.shelf().map(|shelf| BackupRepository::new(shelf).list().expect("copies can be listed"));
        listed.into_iter().flatten().filter_map(|copy| copy.state.ok()).collect()
    }

    /// The clocks were set back, so scheduled times that were served occur again.
    pub(super) fn forget_served(&mut self) {
        self.copies.served.clear();
    }

    /// The process has exited, so no process writes to the worlds.
    pub(super) fn note_left(&mut self) {
        self.copies.left = tree(&self.disks.data());
    }

    /// The init container has ended: its backups contain the worlds of the last process.
    pub(super) fn note_cold_copies(&mut self) {
        for Backup { id, completed_at, .. } in self.good_copies() {
            if self.copies.held.get(&id).is_none_or(|(at, _)| *at != completed_at) {
                self.copies.order.push(id.clone());
                self.copies.held.insert(id, (completed_at, self.copies.left.clone()));
            }
        }
    }

    /// The agent takes an online backup. `None` if it cannot now.
    pub(super) fn copy_running(&mut self, asked: &HotCopy) -> Option<HotCopySeen> {
        let is_up = self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up && !pod.hangs());
        let is_new = !self.copies.served.contains(&asked.request);
        self.must(is_new, "a copy of the running server is asked for again");
        let place = self.shelf().filter(|_| is_up)?;
        self.save_world();
        let data = self.disks.data();
        let manifest = Volume::new(&data).manifest().expect("a manifest");
        let order = BackupSpec {
            data: &data,
            worlds: &Worlds::read(&data).expect("the worlds are readable"),
            reading: LiveReads::Live,
            contents: asked.contents,
            trigger: asked.trigger,
            lock: manifest.as_ref().map(|manifest| manifest.lock.as_str()),
            before: None,
            request: Some(&asked.request),
            after_damage: self.by_script.damage.is_some(),
        };
        let Backup { id, completed_at, .. } =
            take(&order, &BackupRepository::new(place), &mut Disk::new(RealFs), real_now)
                .expect("a copy of a few files");
        self.tell(format!("agent: takes an online backup: {id}"));
        self.copies.order.push(id.clone());
        self.copies.held.insert(id.clone(), (completed_at, tree(&data)));
        self.copies.served.insert(asked.request.clone());
        Some(HotCopySeen { request: asked.request.clone(), at: now(), outcome: HotCopyOutcome::Taken { id } })
    }

    /// A user requests a restore of one of the backups. `None` if there is none, or if the same request was made
    /// before, which has no effect.
    pub(super) fn choose_copy(&mut self) -> Option<String> {
        let all = self.good_copies();
        let Backup { id: copy, .. } = all.get(self.dice.below(all.len().max(1)))?.clone();
        let value = format!("{copy};overwrite");
        if self.copies.asked.as_ref().is_some_and(|asked| asked.value == value) {
            return None;
        }
        self.copies.asked = Some(Asked { value: value.clone(), copy, at: now(), came: 0, is_no_other: false });
        Some(value)
    }

    /// A scenario file requests a restore of this backup.
    pub(super) fn note_asked(&mut self, copy: &str) {
        let (value, copy) = (format!("{copy};overwrite"), copy.to_owned());
        self.copies.asked = Some(Asked { value, copy, at: now(), came: 0, is_no_other: false });
    }

    /// The name of a backup by its number, oldest first from 1.
    pub(super) fn backup_numbered(&self, number: usize) -> String {
        self.copies.order.get(number - 1).cloned().unwrap_or_else(|| format!("there is no backup {number}"))
    }

    /// Whether a start has found the requested backup.
    pub(super) fn is_put_in_place(&self) -> bool {
        self.copies.asked.as_ref().is_some_and(|asked| asked.came > 0)
    }

    /// When a user last requested a restore.
    pub(super) fn copy_asked_at(&self) -> Option<Timestamp> {
        self.copies.asked.as_ref().map(|asked| asked.at)
    }

    /// The backup of the requested restore.
    pub(super) fn copy_asked_for(&self) -> Option<&str> {
        self.copies.asked.as_ref().map(|asked| asked.copy.as_str())
    }

    /// Whether a requested restore is still pending and may still happen.
    pub(super) fn waits_for_copy(&self) -> bool {
        self.copies.asked.as_ref().is_some_and(|asked| asked.came == 0 && now() < asked.at + ASKED_FOR + NOTICE)
    }

    /// Checks that a start finds the worlds of the last process, or those of exactly one backup. Returns whether a user
    /// requested that backup.
    pub(super) fn check_found(&mut self) -> bool {
        let found = tree(&self.disks.data());
        if found == self.copies.left {
            let Copies { held, asked, .. } = &mut self.copies;
            if let Some(asked) = asked {
                asked.is_no_other |= held.get(&asked.copy).is_some_and(|(_, tree)| *tree == found);
            }
            return false;
        }
        let of: Vec<String> =
            self.copies.held.iter().filter(|(_, (_, tree))| *tree == found).map(|(id, _)| id.clone()).collect();
        self.tell(format!("server: finds the worlds of backup {}", of.join(", ")));
        // The worlds of a backup are undamaged.
        self.by_script.damage = None;
        self.must(!of.is_empty(), "a start finds worlds that are neither as they were left nor as a copy holds them");
        let record = std::fs::read(Volume::new(self.disks.data()).restored_path()).expect("it is recorded");
        let Restored { id, request, .. } = serde_json::from_slice(&record).expect("a record");
        self.must(of.contains(&id), "a start finds another copy than the one that is said to have been put in place");
        // A rollback may restore the same backup, or one with the same contents.
        let is_asked_for = |asked: &&mut Asked| request.is_some() && asked.copy == id;
        let Some(asked) = self.copies.asked.as_mut().filter(is_asked_for) else { return false };
        asked.came += 1;
        let is_once = asked.came == 1;
        self.must(is_once, "a copy that a person asked for once is put in place again");
        true
    }

    /// Checks that the result of the requested restore is reported, and is correct.
    pub(super) fn judge_restore(&mut self) {
        let server = self.objects.get(&self.key_of_server()).expect("nobody deletes it");
        let handled = server["status"]["lastHandled"]["restoreFrom"].clone();
        let Some(Asked { value, copy, at, came, is_no_other }) = &self.copies.asked else { return };
        let (came, is_no_other) = (*came > 0, *is_no_other);
        let is_its_answer = handled["asked"] == value.as_str();
        let result = handled["result"].as_str().filter(|_| is_its_answer).map(str::to_owned);
        self.tell(format!("status: the restore of {copy}, requested at {at}: {result:?} {}", handled["message"]));
        match result.as_deref() {
            Some("Restored") => {
                self.must(came || is_no_other, "a copy is said to be in place that no start has found");
            }
            Some(_) => self.must(!came, "a copy is said not to be in place, and a start has found it"),
            None => self.must(false, "a person who asked for a copy has no answer"),
        }
    }
}

/// The repository of a pod's agent, relative to the backup volume.
fn backups_of(pod: &Value) -> Option<String> {
    let containers = pod["spec"]["initContainers"].as_array()?;
    let variables = containers.iter().flat_map(|container| container["env"].as_array().into_iter().flatten());
    let mut backups = variables.filter(|variable| variable["name"] == "NIGHTSHIFT_BACKUPS");
    let path = backups.next()?["value"].as_str()?;
    path.trim_start_matches('/').split_once('/').map(|(_, below)| below.to_owned())
}

fn tree(data: &Path) -> Tree {
    let files = FOLDERS.iter().flat_map(|folder| WalkDir::new(data.join(folder))).filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_file() && entry.file_name() != "session.lock");
    let read = |path: &Path| std::fs::read(path).expect("a file of the world");
    files.map(|entry| (entry.path().strip_prefix(data).expect("it is below").to_owned(), read(entry.path()))).collect()
}
