//! Edge (writes). Simulates the Minecraft server: it loads its files, opens the world, keeps the players' builds in
//! memory, and writes them to the disk when it saves.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use agent::play_record::record_players;
use agent::staging::Volume;
use agent::world::Worlds;
use agent_api::{File, FileSet};
use artifacts::Hash;
use jiff::{SignedDuration, Timestamp};

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::scenario::SetBehaviour;
use super::world_layout::{
    Layout, files_to_migrate, finish_migration, is_migrated, is_partly_migrated, migrate_files, read_builds,
    write_worlds,
};
use crate::clock::now;

/// The players' builds. Each one is a number.
#[derive(Debug, Default)]
pub(super) struct PlayerBuilds {
    last: u64,
    /// The builds in the memory of the running process.
    in_memory: Vec<u64>,
    /// The builds that were on the disk once, so they must never be lost.
    saved: Vec<u64>,
    /// A process writes to the worlds.
    is_open: bool,
    /// The process has not migrated all worlds yet.
    pub(super) is_migrating: bool,
    /// Migrations of worlds to the layout of 26.1 that have ended. The next field counts those that did not end.
    pub(super) migrations: u32,
    pub(super) migrations_interrupted: u32,
}

impl SimCluster {
    /// A start of the server opens the files on the volume. Checks for mixed version sets, an older Minecraft and lost
    /// blocks.
    pub(super) fn open_world(&mut self) {
        let pod = self.pod.as_ref().expect("a pod that starts its server");
        let (files, data) = (pod.files.clone(), self.disks.data());
        self.check(self.forced.is_none(), "no server starts beside another one on its volume");
        self.trace(format!(
            "server: starts Minecraft {} with {} (lock {})",
            files.minecraft,
            plugin_list(&files),
            &files.lock[..8]
        ));
        if let Some(mismatch) = find_mismatch(&data, &files, &self.scripted.jars) {
            self.check(false, &format!("a server starts with the files of one version set: {mismatch}"));
        }
        let floor = Worlds::read(&data).expect("the worlds are readable").floor();
        let is_older = floor.is_some_and(|floor| Some(floor.data_version) > files.data_version);
        self.check(!is_older, "no older Minecraft opens a world");
        let layout = Layout::from_minecraft(&files.minecraft);
        let is_migrated = layout == Layout::Siblings && is_migrated(&data);
        self.check(!is_migrated, "no older Minecraft opens worlds that a newer one migrates");
        let on_disk = read_builds(&data, layout);
        if self.check_found_worlds() {
            // The players gave up all builds since that backup.
            self.builds.saved.clone_from(&on_disk);
        }
        let lost: Vec<_> = self.builds.saved.iter().filter(|build| !on_disk.contains(build)).collect();
        let lost = (!lost.is_empty()).then(|| format!("a start finds all saved blocks: {} are missing", lost.len()));
        if let Some(lost) = lost {
            self.check(false, &lost);
        }
        self.load_worlds(&files, on_disk);
    }

    /// The process has checked the worlds, and opens them. A 26.1 server migrates older worlds, either at once or
    /// during its whole start.
    fn load_worlds(&mut self, files: &FileSet, on_disk: Vec<u64>) {
        let data = self.disks.data();
        let to_migrate = match Layout::from_minecraft(&files.minecraft) {
            Layout::Siblings => 0,
            Layout::Nested => files_to_migrate(&data).len(),
        };
        if to_migrate > 0 && is_partly_migrated(&data) {
            self.trace("server: refuses the worlds, because their move to the new layout is incomplete");
            // Each later start refuses them too.
            self.pod.as_mut().expect("a pod that starts its server").behaviour = SetBehaviour::CrashesAtStart;
            return;
        }
        (self.builds.in_memory, self.builds.is_open) = (on_disk, true);
        if to_migrate == 0 {
            return write_worlds(&data, files, &self.builds.in_memory);
        }
        self.builds.is_migrating = true;
        let migrates_slowly =
            self.pod.as_ref().is_some_and(|pod| matches!(pod.behaviour, SetBehaviour::MigratesFor(_)));
        if !migrates_slowly && (self.is_scripted() || self.rng.one_in(2)) {
            return self.finish_migration(files);
        }
        let migrated = 1 + self.rng.number_below(to_migrate - 1);
        migrate_files(&data, migrated);
        self.trace(format!("server: has moved {migrated} of {to_migrate} world files to the new layout"));
    }

    /// Finishes the migration of the worlds. Only then the server writes the worlds that it has opened.
    pub(super) fn finish_migration(&mut self, files: &FileSet) {
        if std::mem::take(&mut self.builds.is_migrating) {
            finish_migration(&self.disks.data());
            write_worlds(&self.disks.data(), files, &self.builds.in_memory);
            self.builds.migrations += 1;
            self.trace("server: has moved all worlds to the new layout");
        }
    }

    /// Players join, build and leave.
    pub(super) fn simulate_players(&mut self) {
        let pause = self.seconds(20, 600);
        self.next_players = now() + pause;
        let is_up = self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up && !pod.is_hanging());
        if !is_up {
            self.clear_players();
            return;
        }
        let before = self.players;
        if self.is_scripted() {
            return self.continue_play();
        }
        self.players = match self.rng.number_below(4) {
            0 => 0,
            1 => before.saturating_sub(1),
            _ => before + 1,
        }
        .min(self.scenario.max_players);
        if self.players != before {
            let players = self.players;
            self.trace(format!("players: {players} online"));
        }
        if self.players > 0 {
            self.empty_since = None;
            self.played_since.get_or_insert_with(now);
            self.build();
            // The agent records the players, if it runs.
            if self.pod.as_ref().is_some_and(|pod| pod.agent.is_reachable()) {
                record_players(&Volume::new(self.disks.data())).expect("a record on the volume");
            }
        } else {
            self.clear_players();
        }
        // Minecraft saves by itself every five minutes.
        if self.rng.one_in(3) {
            self.save_world();
        }
    }

    /// The number of players stays the same. They build, and Minecraft saves.
    fn continue_play(&mut self) {
        if self.players == 0 {
            return self.clear_players();
        }
        self.build();
        if self.pod.as_ref().is_some_and(|pod| pod.agent.is_reachable()) {
            record_players(&Volume::new(self.disks.data())).expect("a record on the volume");
        }
        self.save_world();
    }

    /// Players build something.
    pub(super) fn build(&mut self) {
        self.builds.last += 1;
        self.builds.in_memory.push(self.builds.last);
    }

    /// This many players join, and stay until then.
    pub(super) fn join(&mut self, players: u32, until: Timestamp) {
        (self.players, self.next_players) = (players, until);
        (self.empty_since, self.played_since) = (None, Some(now()));
    }

    /// Saves the worlds in memory to the disk.
    pub(super) fn save_world(&mut self) {
        let Some(files) = self.pod.as_ref().map(|pod| pod.files.clone()) else { return };
        self.save_with_files(&files);
    }

    /// Saves as a server that runs these files.
    pub(super) fn save_with_files(&mut self, files: &FileSet) {
        write_worlds(&self.disks.data(), files, &self.builds.in_memory);
        self.builds.saved = self.builds.in_memory.clone();
    }

    /// The process has ended. If a pod was deleted by force, its process still runs, and no other pod has one.
    pub(super) fn lose_unsaved(&mut self) {
        self.clear_players();
        if self.forced.is_some() {
            return;
        }
        self.builds.in_memory.clear();
        self.builds.migrations_interrupted += u32::from(std::mem::take(&mut self.builds.is_migrating));
        if std::mem::take(&mut self.builds.is_open) {
            self.record_last_worlds();
        }
    }

    pub(super) fn clear_players(&mut self) {
        self.players = 0;
        self.empty_since.get_or_insert_with(now);
        self.played_since = None;
    }

    /// The server does not answer for this time.
    pub(super) fn hang(&mut self, duration: SignedDuration) {
        // The agent pings every few seconds, so it has just seen the last answer.
        self.agent_observe();
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.phase == Phase::Up) else { return };
        pod.hangs_until = Some(now() + duration);
        self.trace(format!("server: does not answer for {} s", duration.as_secs()));
        self.write_status();
        self.mark_changed();
    }
}

/// The plugins of a version set, by their names and files: `ViaVersion-5.7.0.jar`.
fn plugin_list(files: &FileSet) -> String {
    let names = files.plugins.iter().map(|file| file.path.trim_start_matches("plugins/").to_owned());
    let names: Vec<String> = names.collect();
    if names.is_empty() { "no plugins".to_owned() } else { names.join(", ") }
}

/// The first file that differs from this version set, or that the server would load from another one.
fn find_mismatch(data: &Path, files: &FileSet, unmanaged: &BTreeSet<String>) -> Option<String> {
    let differs = |file: &File| {
        let hash = Hash::parse(&file.hash.0).expect("a hash");
        !hash.matches_file(&data.join(&file.path)).unwrap_or(false)
    };
    if let Some(file) = agent::staging::all_files(files).find(|file| differs(file)) {
        return Some(format!("{} is not as locked", file.path));
    }
    let loaded = fs::read_dir(data.join("plugins")).into_iter().flatten().flatten();
    let jars =
        loaded.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|extension| extension == "jar"));
    let mut names = jars.filter_map(|path| Some(format!("plugins/{}", path.file_name()?.display())));
    let is_locked = |name: &String| files.plugins.iter().any(|file| file.path == *name);
    names.find(|name| !is_locked(name) && !unmanaged.contains(name)).map(|name| format!("{name} is of another set"))
}
