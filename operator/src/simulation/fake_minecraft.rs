//! Edge (writes). Simulates the Minecraft server: it loads its files, opens the world, keeps the players' builds in
//! memory, and writes them to the disk when it saves.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use resolver::jar::Hash;
use scheduler::agent::volume_report::note_players;
use scheduler::protocol::{File, FileSet};
use scheduler::staging::Volume;
use scheduler::world::Worlds;

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::scenario::SetBehaviour;
use super::world_layout::{Layout, end_move, is_half_moved, is_moved, move_some, moves, read_marks, write_worlds};
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
    pub(super) is_moving: bool,
    /// Migrations of worlds to the layout of 26.1 that have ended. The next field counts those that did not end.
    pub(super) moves: u32,
    pub(super) moves_broken_off: u32,
}

impl SimCluster {
    /// A start of the server opens the files on the volume. Checks for mixed version sets, an older Minecraft and lost
    /// blocks.
    pub(super) fn open_world(&mut self) {
        let pod = self.pod.as_ref().expect("a pod that starts its server");
        let (files, data) = (pod.files.clone(), self.disks.data());
        self.must(self.forced.is_none(), "a server starts beside one that still runs on its volume");
        self.tell(format!(
            "server: starts Minecraft {} with {} (lock {})",
            files.minecraft,
            plugins_of(&files),
            &files.lock[..8]
        ));
        if let Some(wrong) = mixture(&data, &files, &self.by_script.jars) {
            self.must(false, &format!("a server starts on a mixture of sets: {wrong}"));
        }
        let floor = Worlds::read(&data).expect("the worlds are readable").floor();
        let is_older = floor.is_some_and(|floor| Some(floor.data_version) > files.data_version);
        self.must(!is_older, "a world is opened by an older Minecraft");
        let layout = Layout::of(&files.minecraft);
        let is_elsewhere = layout == Layout::Beside && is_moved(&data);
        self.must(!is_elsewhere, "worlds that a newer Minecraft has begun to move are opened by an older one");
        let on_disk = read_marks(&data, layout);
        if self.check_found() {
            // The players gave up all builds since that backup.
            self.marks.saved.clone_from(&on_disk);
        }
        let lost: Vec<_> = self.marks.saved.iter().filter(|mark| !on_disk.contains(mark)).collect();
        let lost = (!lost.is_empty()).then(|| format!("a start finds {} blocks less than were saved", lost.len()));
        if let Some(lost) = lost {
            self.must(false, &lost);
        }
        self.take_worlds(&files, on_disk);
    }

    /// The process has checked the worlds, and opens them. A 26.1 server migrates older worlds, either at once or
    /// during its whole start.
    fn take_worlds(&mut self, files: &FileSet, on_disk: Vec<u64>) {
        let data = self.disks.data();
        let to_move = match Layout::of(&files.minecraft) {
            Layout::Beside => 0,
            Layout::Below => moves(&data).len(),
        };
        if to_move > 0 && is_half_moved(&data) {
            self.tell("server: refuses the worlds, whose move to the new layout did not end");
            // Each later start refuses them too.
            self.pod.as_mut().expect("a pod that starts its server").fate = SetBehaviour::Crashes;
            return;
        }
        (self.marks.in_memory, self.marks.is_open) = (on_disk, true);
        if to_move == 0 {
            return write_worlds(&data, files, &self.marks.in_memory);
        }
        self.marks.is_moving = true;
        let moves_for_long = self.pod.as_ref().is_some_and(|pod| matches!(pod.fate, SetBehaviour::MovesFor(_)));
        if !moves_for_long && (self.is_scripted() || self.dice.once_in(2)) {
            return self.end_move(files);
        }
        let moved = 1 + self.dice.below(to_move - 1);
        move_some(&data, moved);
        self.tell(format!("server: has moved {moved} of {to_move} world files to the new layout"));
    }

    /// Finishes the migration of the worlds. Only then the server writes the worlds that it has opened.
    pub(super) fn end_move(&mut self, files: &FileSet) {
        if std::mem::take(&mut self.marks.is_moving) {
            end_move(&self.disks.data());
            write_worlds(&self.disks.data(), files, &self.marks.in_memory);
            self.marks.moves += 1;
            self.tell("server: has moved all worlds to the new layout");
        }
    }

    /// Players join, build and leave.
    pub(super) fn play(&mut self) {
        let pause = self.seconds(20, 600);
        self.next_players = now() + pause;
        let is_up = self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up && !pod.hangs());
        if !is_up {
            self.nobody_is_on();
            return;
        }
        let before = self.players;
        if self.is_scripted() {
            return self.play_on();
        }
        self.players = match self.dice.below(4) {
            0 => 0,
            1 => before.saturating_sub(1),
            _ => before + 1,
        }
        .min(self.scenario.most_players);
        if self.players != before {
            let players = self.players;
            self.tell(format!("players: {players} online"));
        }
        if self.players > 0 {
            self.empty_since = None;
            self.played_since.get_or_insert_with(now);
            self.build();
            // The agent records the players, if it runs.
            if self.pod.as_ref().is_some_and(|pod| pod.agent.answers()) {
                note_players(&Volume::new(self.disks.data())).expect("a record on the volume");
            }
        } else {
            self.nobody_is_on();
        }
        // Minecraft saves by itself every five minutes.
        if self.dice.once_in(3) {
            self.save_world();
        }
    }

    /// The number of players stays the same. They build, and Minecraft saves.
    fn play_on(&mut self) {
        if self.players == 0 {
            return self.nobody_is_on();
        }
        self.build();
        if self.pod.as_ref().is_some_and(|pod| pod.agent.answers()) {
            note_players(&Volume::new(self.disks.data())).expect("a record on the volume");
        }
        self.save_world();
    }

    /// Players build something.
    pub(super) fn build(&mut self) {
        self.marks.last += 1;
        self.marks.in_memory.push(self.marks.last);
    }

    /// This many players join, and stay until then.
    pub(super) fn join(&mut self, players: u32, until: Timestamp) {
        (self.players, self.next_players) = (players, until);
        (self.empty_since, self.played_since) = (None, Some(now()));
    }

    /// Saves the worlds in memory to the disk.
    pub(super) fn save_world(&mut self) {
        let Some(files) = self.pod.as_ref().map(|pod| pod.files.clone()) else { return };
        self.save_as(&files);
    }

    /// Saves as a server that runs these files.
    pub(super) fn save_as(&mut self, files: &FileSet) {
        write_worlds(&self.disks.data(), files, &self.marks.in_memory);
        self.marks.saved = self.marks.in_memory.clone();
    }

    /// The process has ended. If a pod was deleted by force, its process still runs, and no other pod has one.
    pub(super) fn lose_unsaved(&mut self) {
        self.nobody_is_on();
        if self.forced.is_some() {
            return;
        }
        self.marks.in_memory.clear();
        self.marks.moves_broken_off += u32::from(std::mem::take(&mut self.marks.is_moving));
        if std::mem::take(&mut self.marks.is_open) {
            self.note_left();
        }
    }

    pub(super) fn nobody_is_on(&mut self) {
        self.players = 0;
        self.empty_since.get_or_insert_with(now);
        self.played_since = None;
    }

    /// The server does not answer for this time.
    pub(super) fn hang(&mut self, takes: SignedDuration) {
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.phase == Phase::Up) else { return };
        pod.hangs_until = Some(now() + takes);
        self.tell(format!("server: does not answer for {} s", takes.as_secs()));
        self.write_status();
        self.changed();
    }
}

/// The plugins of a version set, by their names and files: `ViaVersion-5.7.0.jar`.
fn plugins_of(files: &FileSet) -> String {
    let names = files.plugins.iter().map(|file| file.path.trim_start_matches("plugins/").to_owned());
    let names: Vec<String> = names.collect();
    if names.is_empty() { "no plugins".to_owned() } else { names.join(", ") }
}

/// The first file that differs from this version set, or that the server would load from another one.
fn mixture(data: &Path, files: &FileSet, unmanaged: &BTreeSet<String>) -> Option<String> {
    let wrong = |file: &File| {
        let hash = Hash::parse(&file.hash.0).expect("a hash");
        !hash.of_file(&data.join(&file.path)).unwrap_or(false)
    };
    if let Some(file) = scheduler::staging::all(files).find(|file| wrong(file)) {
        return Some(format!("{} is not as locked", file.path));
    }
    let loaded = fs::read_dir(data.join("plugins")).into_iter().flatten().flatten();
    let jars = loaded.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|of| of == "jar"));
    let mut names = jars.filter_map(|path| Some(format!("plugins/{}", path.file_name()?.display())));
    let is_ours = |name: &String| files.plugins.iter().any(|file| file.path == *name);
    names.find(|name| !is_ours(name) && !unmanaged.contains(name)).map(|name| format!("{name} is of another set"))
}
