//! Edge (writes). The Minecraft server: it loads what lies in its directory, opens the world, keeps what players build, and brings it to the
//! disk when it saves.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use resolver::jar::Hash;
use scheduler::agent::on_volume::note_players;
use scheduler::protocol::{File, FileSet};
use scheduler::staging::Volume;
use scheduler::world::Worlds;

use super::pod::Phase;
use super::world::World;
use crate::clock::now;

/// Where the blocks of the players lie.
const REGION: &str = "world/region/r.0.0.mca";

/// What players have built: each of it is a number.
#[derive(Debug, Default)]
pub(super) struct Marks {
    last: u64,
    /// In the memory of the process that runs.
    in_memory: Vec<u64>,
    /// What must never be lost: it was on the disk once.
    saved: Vec<u64>,
    /// A process writes to the worlds.
    is_open: bool,
}

impl World {
    /// A start of the server opens what lies on the volume. This is where a mixture of sets, an older Minecraft or a lost block would show.
    pub(super) fn open_world(&mut self) {
        let pod = self.pod.as_ref().expect("a pod that starts its server");
        let (files, data) = (pod.files.clone(), self.disks.data());
        self.tell(format!("a server starts: Minecraft {} with lock {}", files.minecraft, &files.lock[..8]));
        if let Some(wrong) = mixture(&data, &files) {
            self.must(false, &format!("a server starts on a mixture of sets: {wrong}"));
        }
        let floor = Worlds::read(&data).expect("the worlds are readable").floor();
        let is_older = floor.is_some_and(|floor| Some(floor.data_version) > files.data_version);
        self.must(!is_older, "a world is opened by an older Minecraft");
        let on_disk = read_marks(&data);
        if self.check_found() {
            // What was built since that copy is what they gave away for it.
            self.marks.saved.clone_from(&on_disk);
        }
        let lost: Vec<_> = self.marks.saved.iter().filter(|mark| !on_disk.contains(mark)).collect();
        let lost = (!lost.is_empty()).then(|| format!("a start finds {} blocks less than were saved", lost.len()));
        if let Some(lost) = lost {
            self.must(false, &lost);
        }
        (self.marks.in_memory, self.marks.is_open) = (on_disk, true);
        write_world(&data, &files, &self.marks.in_memory);
    }

    /// Players come, build and go.
    pub(super) fn play(&mut self) {
        let pause = self.seconds(20, 600);
        self.next_players = now() + pause;
        let is_up = self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up && !pod.hangs());
        if !is_up {
            self.nobody_is_on();
            return;
        }
        let before = self.players;
        self.players = match self.dice.below(4) {
            0 => 0,
            1 => before.saturating_sub(1),
            _ => before + 1,
        }
        .min(self.scenario.most_players);
        if self.players != before {
            let players = self.players;
            self.tell(format!("{players} players are on"));
        }
        if self.players > 0 {
            self.empty_since = None;
            self.played_since.get_or_insert_with(now);
            self.marks.last += 1;
            self.marks.in_memory.push(self.marks.last);
            // By the agent, if there is one.
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

    /// So many join, and stay until then.
    pub(super) fn join(&mut self, players: u32, until: Timestamp) {
        (self.players, self.next_players) = (players, until);
        (self.empty_since, self.played_since) = (None, Some(now()));
    }

    /// All that is in memory goes to the disk.
    pub(super) fn save_world(&mut self) {
        let Some(pod) = &self.pod else { return };
        write_world(&self.disks.data(), &pod.files, &self.marks.in_memory);
        self.marks.saved = self.marks.in_memory.clone();
    }

    /// The process is gone.
    pub(super) fn lose_unsaved(&mut self) {
        self.nobody_is_on();
        self.marks.in_memory.clear();
        if std::mem::take(&mut self.marks.is_open) {
            self.note_left();
        }
    }

    fn nobody_is_on(&mut self) {
        self.players = 0;
        self.empty_since.get_or_insert_with(now);
        self.played_since = None;
    }

    /// For how long the server answers nobody.
    pub(super) fn hang(&mut self, takes: SignedDuration) {
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.phase == Phase::Up) else { return };
        pod.hangs_until = Some(now() + takes);
        self.tell(format!("the server answers nobody for {} s", takes.as_secs()));
        self.write_status();
        self.changed();
    }
}

/// What a server would load that is not of this set, or miss of it.
fn mixture(data: &Path, files: &FileSet) -> Option<String> {
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
    names.find(|name| !is_ours(name)).map(|name| format!("{name} is of another set"))
}

fn read_marks(data: &Path) -> Vec<u64> {
    let text = fs::read_to_string(data.join(REGION)).unwrap_or_default();
    text.lines().map(|line| line.parse().expect("a mark")).collect()
}

fn write_world(data: &Path, files: &FileSet, marks: &[u64]) {
    let region = data.join(REGION);
    fs::create_dir_all(region.parent().expect("a folder")).expect("the world's folder");
    let text: Vec<String> = marks.iter().map(ToString::to_string).collect();
    fs::write(region, text.join("\n")).expect("the region");
    if !marks.is_empty() {
        let player = data.join("world/playerdata/player.dat");
        fs::create_dir_all(player.parent().expect("a folder")).expect("a folder");
        // Minecraft writes it when a player has changed, not at each start.
        let text = marks.len().to_string();
        if fs::read_to_string(&player).ok().as_ref() != Some(&text) {
            fs::write(player, text).expect("a player's file");
        }
    }
    // Each Minecraft adds files that those before do not know.
    let added = data.join("world/data").join(&files.minecraft);
    fs::create_dir_all(added.parent().expect("a folder")).expect("a folder");
    fs::write(added, b"").expect("a file of this Minecraft");
    let format = files.data_version.expect("the stand-in for Paper says its format");
    fs::write(data.join("world/level.dat"), level_dat(format, &files.minecraft)).expect("level.dat");
}

fn level_dat(format: u32, name: &str) -> Vec<u8> {
    let version = BTreeMap::from([
        ("Id", fastnbt::Value::Int(i32::try_from(format).expect("a small number"))),
        ("Name", fastnbt::Value::String(name.into())),
    ]);
    let root = BTreeMap::from([("Data", BTreeMap::from([("Version", version)]))]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&fastnbt::to_bytes(&root).expect("a small tree")).expect("memory");
    gzip.finish().expect("memory")
}
