//! Edge (writes). Checks power cuts that lose all unsynced data: contents of files, and names in directories.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use super::*;

/// The files of each directory, as stored on the disk.
type Names = BTreeMap<PathBuf, BTreeMap<PathBuf, Vec<u8>>>;

/// The state that is only in memory.
#[derive(Default)]
struct Memory {
    /// Each directory as of the last sync of its names.
    on_disk: Names,
    /// Files with unsynced content, by inode, which stays the same after a rename.
    contents: BTreeSet<u64>,
}

/// The part that is lost.
#[derive(Debug, Clone)]
enum Lost {
    Contents,
    NamesOf(PathBuf),
    Everything,
}

impl Memory {
    fn lose(&self, root: &Path, loss: &Lost) {
        // First: files that are restored below are on disk, and may get the inode of one that is not.
        for path in paths_below(root).filter(|path| path.is_file()) {
            if self.contents.contains(&fs::metadata(&path).unwrap().ino()) {
                fs::File::options().write(true).truncate(true).open(&path).unwrap();
            }
        }
        for (directory, names) in &self.on_disk {
            let is_lost = match loss {
                Lost::Contents => false,
                Lost::NamesOf(one) => one == directory,
                Lost::Everything => true,
            };
            if is_lost {
                restore_names(directory, names);
            }
        }
    }
}

/// Restores the files of a directory.
fn restore_names(directory: &Path, names: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, content) in names_in(directory) {
        if names.get(&path) != Some(&content) {
            fs::remove_file(path).unwrap();
        }
    }
    for (path, content) in names {
        if !path.exists() {
            fs::write(path, content).unwrap();
        }
    }
}

fn names_in(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn paths_below(root: &Path) -> impl Iterator<Item = PathBuf> {
    walkdir::WalkDir::new(root).into_iter().map(|entry| entry.unwrap().into_path())
}

/// Allows `left` operations.
struct Power {
    left: usize,
    memory: Rc<RefCell<Memory>>,
    /// The current operation. It has ended when the next one is requested.
    last: Option<(&'static str, PathBuf)>,
}

impl Power {
    /// All existing data is on disk.
    fn fail_after(left: usize, server: &Server) -> Self {
        let directories = paths_below(server.volume.root()).filter(|path| path.is_dir());
        let on_disk = directories.map(|directory| (directory.clone(), names_in(&directory))).collect();
        Self { left, memory: Rc::new(RefCell::new(Memory { on_disk, contents: BTreeSet::new() })), last: None }
    }

    fn record_last(&mut self) {
        let Some((operation, path)) = self.last.take() else { return };
        let mut memory = self.memory.borrow_mut();
        let inode = fs::metadata(&path).map(|metadata| metadata.ino());
        match (operation, inode) {
            ("write" | "copy to", Ok(inode)) => drop(memory.contents.insert(inode)),
            ("flush", Ok(_)) if path.is_dir() => drop(memory.on_disk.insert(path.clone(), names_in(&path))),
            ("flush", Ok(inode)) => drop(memory.contents.remove(&inode)),
            // A new directory has no names on disk.
            ("create the directory", _) => drop(memory.on_disk.entry(path).or_default()),
            _ => {}
        }
    }
}

impl FsHook for Power {
    fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
        self.record_last();
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the power went"))?;
        self.last = Some((operation, path.to_owned()));
        Ok(())
    }
}

/// For each n and each kind of loss, stops after n operations, checks the files, and continues to either version set.
fn cut_everywhere(is_rollback: bool, links: bool) {
    for left in 0.. {
        let mut all_ended = true;
        for loss in ["", "plugins", ".nightshift", ".nightshift/server", "everything"] {
            let (server, old, new) = prepared();
            server.swap(&old.files);
            let power = Power::fail_after(left, &server);
            let memory = Rc::clone(&power.memory);
            let mut disk = if links { Disk::new(power) } else { Disk::without_links(power) };
            let ended = swap(&server.volume, &new.files, &mut HashCache::default(), &mut disk).is_ok();
            let loss = match loss {
                "" => Lost::Contents,
                "everything" => Lost::Everything,
                directory => Lost::NamesOf(server.volume.root().join(directory)),
            };
            memory.borrow().lose(server.volume.root(), &loss);

            let context = format!("after {left} operations, having lost {loss:?}");
            let (before, after) = (merged(&old, &unmanaged()), merged(&new, &unmanaged()));
            if ended {
                assert_eq!(server.files(), after, "a finished swap must be on the disk, {context}");
            }
            for (path, content) in server.files().into_iter().filter(|(path, _)| !path.ends_with(".nightshift")) {
                let is_known = before.get(&path) == Some(&content) || after.get(&path) == Some(&content);
                assert!(is_known, "{context} `{path}` is neither old nor new");
            }
            if server.volume.journal().unwrap().is_none() {
                let manifest = server.volume.manifest().unwrap().unwrap();
                let expected = if manifest.lock == old.files.lock { &before } else { &after };
                assert_eq!(&server.files(), expected, "without a journal the files match the manifest, {context}");
            }
            let goal = if is_rollback { &old } else { &new };
            server.swap(&goal.files);
            assert_eq!(server.files(), merged(goal, &unmanaged()), "resumed {context}");
            assert_eq!(server.displaced(), BTreeMap::new(), "no managed file is displaced, {context}");
            all_ended &= ended;
        }
        if all_ended {
            assert!(left > 20, "only {left} operations pass through the hook");
            return;
        }
    }
}

#[test]
fn power_cut_at_any_operation_leaves_lock_or_journal() {
    cut_everywhere(false, true);
    cut_everywhere(true, true);
}

#[test]
fn power_cuts_are_recovered_without_hard_links() {
    cut_everywhere(false, false);
    cut_everywhere(true, false);
}
