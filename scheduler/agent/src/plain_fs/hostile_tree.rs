//! Edge (writes). Builds volumes as a hostile plugin would leave them, beside a tree that nobody may read, write or delete.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

/// In every file beside the volume, and in none on it.
pub(crate) const CANARY: &str = "a secret of another server";

/// Numbers that depend only on the seed (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The tree beside the volume, as it was.
#[derive(Debug)]
pub(crate) struct Canary {
    root: PathBuf,
    before: BTreeMap<PathBuf, ItemState>,
}

/// Kind and mode, links, time of the last change, content.
type ItemState = (u32, u64, Option<SystemTime>, Option<Vec<u8>>);

impl Canary {
    /// Places the tree at `root`: a server with worlds, and its backups.
    pub(crate) fn new(root: PathBuf) -> Self {
        for path in [
            "secret.txt",
            "server.properties",
            "world/level.dat",
            "world/region/r.0.0.mca",
            "world/session.lock",
            "plugins/Demo.jar",
            "plugins/Demo/config.yml",
            "backups/other/20261122T030000Z-aaaaaaaa/archive.tar.gz",
            "backups/other/20261122T030000Z-aaaaaaaa/backup.json",
            "sha256/0000",
            "unfinished/0",
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{CANARY}\n")).unwrap();
        }
        let before = state_of(&root);
        Self { root, before }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// Nothing was written, deleted or created there.
    pub(crate) fn assert_untouched(&self, label: &str) {
        assert_eq!(state_of(&self.root), self.before, "{label}");
    }

    /// No plain file below has its content. A large one has none at all.
    pub(crate) fn assert_not_copied_to(below: &Path, label: &str) {
        for entry in walkdir::WalkDir::new(below).into_iter().filter_map(Result::ok) {
            let is_small = entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() < 1 << 20);
            let content = if is_small { fs::read(entry.path()).unwrap_or_default() } else { Vec::new() };
            assert!(!has_canary(&content), "{label}: {}", entry.path().display());
        }
    }
}

pub(crate) fn has_canary(content: &[u8]) -> bool {
    content.windows(CANARY.len()).any(|part| part == CANARY.as_bytes())
}

fn state_of(root: &Path) -> BTreeMap<PathBuf, ItemState> {
    let entries = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    let state = |entry: walkdir::DirEntry| {
        let metadata = entry.metadata().unwrap();
        let content = metadata.is_file().then(|| fs::read(entry.path()).unwrap());
        (entry.path().to_owned(), (metadata.mode(), metadata.nlink(), metadata.modified().ok(), content))
    };
    entries.map(state).collect()
}

/// Makes one item hostile, whatever it was. Returns what was done, for messages.
pub(crate) fn spoil(volume: &Path, path: &str, canary: &Canary, random: &mut Random) -> String {
    let target = volume.join(path);
    let parents = target.ancestors().skip(1).take_while(|parent| parent.starts_with(volume));
    if parents.into_iter().any(Path::is_symlink) || fs::create_dir_all(target.parent().unwrap()).is_err() {
        return format!("{path} stays: its parent is spoiled");
    }
    // It is kept beside, so that the volume stays a server's.
    let _ = fs::rename(&target, volume.join(format!("moved-{}", random.below(1 << 20))));
    let kind = *random.pick(&[
        "absolute link",
        "relative link",
        "link to a file",
        "link to itself",
        "link upwards",
        "link to nothing",
        "pipe",
        "device",
        "directory",
        "sparse file",
        "deep",
        "names",
        "link in a directory",
    ]);
    match kind {
        "absolute link" => symlink(canary.path(), &target).unwrap(),
        "relative link" => {
            let up = "../".repeat(path.split('/').count());
            symlink(format!("{up}{}", canary.path().file_name().unwrap().display()), &target).unwrap();
        }
        "link to a file" => {
            let file = random.pick(&[
                "secret.txt",
                "world/level.dat",
                "plugins/Demo.jar",
                "server.properties",
                "world/session.lock",
            ]);
            symlink(canary.path().join(file), &target).unwrap();
        }
        "link to itself" => symlink(target.file_name().unwrap(), &target).unwrap(),
        "link upwards" => symlink("..", &target).unwrap(),
        "link to nothing" => symlink(canary.path().join("missing"), &target).unwrap(),
        "pipe" => mknodat(CWD, &target, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap(),
        // Only root may do this. `/dev/zero`.
        "device" => drop(mknodat(CWD, &target, FileType::CharacterDevice, Mode::from_raw_mode(0o666), makedev(1, 5))),
        "directory" => {
            fs::create_dir(&target).unwrap();
            fs::write(target.join("level.dat"), "no world").unwrap();
        }
        "sparse file" => fs::File::create(&target).unwrap().set_len(1 << 40).unwrap(),
        "deep" => deep(&target, 40 + random.below(200)),
        "names" => {
            fs::create_dir(&target).unwrap();
            for name in names() {
                let _ = fs::write(target.join(name), "x");
            }
        }
        _ => {
            fs::create_dir(&target).unwrap();
            symlink(canary.path().join("world"), target.join("region")).unwrap();
            symlink(canary.path().join("secret.txt"), target.join("config.yml")).unwrap();
            symlink("/proc/self/environ", target.join("environ.yml")).unwrap();
        }
    }
    format!("{path}: {kind}")
}

/// Directories in directories, each with a link out of the volume, deeper than one path can name.
pub(crate) fn deep(top: &Path, levels: usize) {
    fs::create_dir(top).unwrap();
    let mut directory: std::os::fd::OwnedFd = fs::File::open(top).unwrap().into();
    let name = "d".repeat(200);
    for _ in 0..levels {
        rustix::fs::symlinkat("/proc/self/environ", &directory, "link").unwrap();
        rustix::fs::mkdirat(&directory, &name, Mode::from_raw_mode(0o755)).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY;
        directory = rustix::fs::openat(&directory, &name, flags, Mode::empty()).unwrap();
    }
}

fn names() -> Vec<OsString> {
    let mut names: Vec<OsString> =
        ["a\nb", "\u{1b}[31m", "..a", " ", "-rf", "%41", "\u{202e}gpj", "a\\b", ".nightshift", "world.jar"]
            .map(Into::into)
            .to_vec();
    names.push(OsStr::from_bytes(b"\xff\xfe").to_owned());
    names.push("n".repeat(255).into());
    names
}
