//! Edge (writes). Checks faults in the middle of the work: power, disk, and malicious journals.

use super::*;

/// Simulates a power cut after `left` operations. Files that were written and not synced to disk by then are empty afterwards.
struct Power {
    left: usize,
    unsynced: Rc<RefCell<BTreeSet<PathBuf>>>,
    /// The current operation syncs this path to disk.
    syncing: Option<PathBuf>,
}

impl Power {
    fn off_after(left: usize) -> Self {
        Self { left, unsynced: Rc::default(), syncing: None }
    }
}

impl FsHook for Power {
    fn before(&mut self, what: &'static str, path: &Path) -> io::Result<()> {
        // The operation before this one has ended.
        if let Some(synced) = self.syncing.take() {
            self.unsynced.borrow_mut().retain(|path| !path.starts_with(&synced));
        }
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the power went"))?;
        match what {
            "create" | "write" => drop(self.unsynced.borrow_mut().insert(path.to_owned())),
            "bring all to the disk" => self.syncing = Some(path.to_owned()),
            "bring to the disk" if path.is_file() => self.syncing = Some(path.to_owned()),
            _ => {}
        }
        Ok(())
    }
}

/// Removes data that was only in memory, also under its later name: a published folder, or a record that was put in place.
fn lose(unsynced: &BTreeSet<PathBuf>) {
    for lost in unsynced {
        let published = PathBuf::from(lost.to_str().unwrap().replace(".partial-", ""));
        let name = lost.file_name().unwrap().to_str().unwrap();
        let record = lost.with_file_name(name.trim_start_matches('.').trim_end_matches(".nightshift"));
        for path in [lost.clone(), published, record] {
            if path.is_file() {
                fs::write(path, "").unwrap();
            }
        }
    }
}

#[test]
fn interrupted_plugin_data_save_publishes_only_whole_folders() {
    for lost in [false, true] {
        for left in 0.. {
            let server = Server::new();
            let power = Power::off_after(left);
            let unsynced = Rc::clone(&power.unsynced);
            let ended = keep(&server.volume, &b(), LIMIT, &mut Disk::new(power), at(0)).is_ok();
            if lost {
                lose(&unsynced.borrow());
            }
            assert_eq!(server.files(), files(&OLD), "after {left} operations");
            let whole = of_pieces(&OLD, &kept_before_b());
            for name in server.kept().iter().filter(|name| !name.starts_with('.')) {
                assert_eq!(below(&server.volume.kept_dir().join(name)), whole, "after {left} operations");
            }
            server.assert_settings_are_whole(&format!("after {left} operations"));
            let again = server.keep(&b(), 60).unwrap();
            assert_eq!(below(&server.path(again.place.as_deref().unwrap())), whole, "going on after {left} operations");
            let settings = again.settings.expect("they are kept by then");
            assert!(server.path(&settings.place).join("Same/same.yml").is_file(), "going on after {left} operations");
            server.assert_settings_are_whole(&format!("going on after {left} operations"));
            let mut remains = server.kept().into_iter().chain(server.kept_settings());
            assert!(remains.all(|name| !name.starts_with('.')), "no remains, after {left} operations");
            server.changed_by_b();
            server.put_back(120).unwrap();
            assert_eq!(server.files(), back(), "and it comes back, after {left} operations");
            if ended {
                assert!(left > 20, "only {left} operations: the test does not see them all");
                break;
            }
        }
    }
}

#[test]
fn interrupted_save_of_large_settings_folder_leaves_no_part() {
    for left in 0.. {
        let server = Server::new();
        let large = fs::File::create(server.path("plugins/My_Warps/large.db")).unwrap();
        large.set_len(LIMIT + 1).unwrap();
        let power = Power::off_after(left);
        let unsynced = Rc::clone(&power.unsynced);
        let ended = keep(&server.volume, &b(), LIMIT, &mut Disk::new(power), at(0)).is_ok();
        lose(&unsynced.borrow());
        let whole = BTreeMap::from([("warps.yml".to_owned(), "spawn: 0 64 0".to_owned())]);
        let at_settings = server.volume.kept_settings_dir();
        for name in directories(&at_settings).unwrap().iter().filter(|name| !name.starts_with('.')) {
            assert_eq!(below(&at_settings.join(name).join("My_Warps")), whole, "after {left} operations");
        }
        let again = server.keep(&b(), 60).unwrap();
        let settings = again.not_kept[0].settings.as_ref().expect("they are kept by then");
        assert_eq!(below(&server.path(&settings.place)), whole, "going on after {left} operations");
        assert!(directories(&at_settings).unwrap().iter().all(|name| !name.starts_with('.')), "no remains, {left}");
        if ended {
            assert!(left > 25, "only {left} operations: the test does not see them all");
            return;
        }
    }
}

#[test]
fn interrupted_plugin_data_restore_leaves_old_state_or_journal() {
    for lost in [false, true] {
        for left in 0.. {
            let server = Server::new();
            server.keep(&b(), 0).unwrap();
            server.changed_by_b();
            let power = Power::off_after(left);
            let unsynced = Rc::clone(&power.unsynced);
            let ended =
                put_back(&server.volume, &a().lock, &b().lock, |_| false, &mut Disk::new(power), at(60)).is_ok();
            if lost {
                lose(&unsynced.borrow());
            }
            let found = server.files();
            if !server.volume.plugin_data_journal_path().exists() {
                assert!(
                    found == files(&NEW) || found == back(),
                    "without a journal it is whole, after {left} operations"
                );
            }
            // The next start finds the journal and is interrupted too. The one after it finishes the restore, and only then checks for further
            // work.
            let _ = finish(&server.volume, &mut Disk::new(Power::off_after(left % 7)));
            finish(&server.volume, &mut Disk::new(RealFs)).unwrap();
            server.put_back(120);
            assert_eq!(server.files(), back(), "going on after {left} operations");
            let mut aside = BTreeMap::new();
            for place in directories(&server.volume.failed_dir()).unwrap() {
                aside.extend(below(&server.volume.failed_dir().join(place)));
            }
            assert_eq!(aside, of_pieces(&NEW, &left_by_b()), "nothing is lost, after {left}");
            assert!(matches!(server.record().unwrap().back, Some(PluginDataRestored::Done { .. })));
            assert!(!server.volume.plugin_data_journal_path().exists());
            if ended {
                assert!(left > 25, "only {left} operations: the test does not see them all");
                break;
            }
        }
    }
}

#[test]
fn folder_removed_by_failed_lock_is_restored() {
    for left in 0.. {
        let server = Server::new();
        server.keep(&b(), 0).unwrap();
        server.changed_by_b();
        fs::remove_dir_all(server.path("plugins/LuckPerms")).unwrap();
        let power = Disk::new(Power::off_after(left));
        let ended = put_back(&server.volume, &a().lock, &b().lock, |_| false, &mut { power }, at(60)).is_ok();
        finish(&server.volume, &mut Disk::new(RealFs)).unwrap();
        server.put_back(120);
        assert_eq!(server.files(), back(), "after {left} operations");
        let aside = below(&server.volume.failed_dir().join(b().lock));
        assert_eq!(aside, of_pieces(&NEW, &left_by_b()[1..]), "after {left} operations");
        if ended {
            return;
        }
    }
}

#[test]
fn interrupted_plugin_data_prune_leaves_only_whole_folders() {
    for left in 0.. {
        let server = Server::new();
        for second in [0, 60, 120] {
            let next = set(if second == 60 { 'c' } else { 'b' }, &[("LuckPerms", &second.to_string())]);
            server.keep(&next, second).unwrap();
            server.runs(&next);
        }
        let ended = forget_old(&server.volume, &mut Disk::new(Power::off_after(left))).is_ok();
        for name in server.kept().iter().filter(|name| !name.starts_with('.')) {
            let found = below(&server.volume.kept_dir().join(name));
            assert!(
                of_pieces(&OLD, &pieces(&["LuckPerms"])).iter().all(|file| found.contains_key(file.0)),
                "{name}, {left}"
            );
        }
        forget_old(&server.volume, &mut Disk::new(RealFs)).unwrap();
        assert_eq!(server.kept(), ["20270115T080100Z-bbbbbbbb", "20270115T080200Z-cccccccc"]);
        if ended {
            assert!(left > 3, "only {left} operations: the test does not see them all");
            return;
        }
    }
}

#[test]
fn single_disk_error_skips_one_folder_not_the_update() {
    struct NoOnce;
    impl FsHook for NoOnce {
        fn before(&mut self, what: &'static str, path: &Path) -> io::Result<()> {
            match what {
                "write" if path.ends_with("luckperms.mv.db") => Err(io::Error::other("no space left on device")),
                _ => Ok(()),
            }
        }
    }
    let server = Server::new();
    let kept = keep(&server.volume, &b(), LIMIT, &mut Disk::new(NoOnce), at(0)).unwrap().unwrap();
    assert_eq!(kept.kept, kept_before_b()[1..]);
    let told = kept.not_kept[0].to_string();
    assert!(
        told.starts_with("plugins/LuckPerms: could not write") && told.ends_with("no space left on device"),
        "{told}"
    );
    assert_eq!(below(&server.path(&kept.place.unwrap())), of_pieces(&OLD, &kept_before_b()[1..]), "no half of one");
}

#[test]
fn plugin_data_journal_with_outside_path_is_not_executed() {
    let server = Server::new();
    let good = server.keep(&b(), 0).unwrap();
    server.changed_by_b();
    let before = below(server.volume.root());
    let journal = |folder: &str, place: &str, to: &str| {
        let done = PluginData { kept: pieces(&[folder]), place: Some(place.to_owned()), ..good.clone() };
        json!({"done": done, "to": to, "aside": [folder]})
    };
    let place = good.place.clone().unwrap();
    for (folder, place, to) in [
        ("../world", place.as_str(), ".nightshift/failed/x"),
        ("./../x", place.as_str(), ".nightshift/failed/x"),
        ("./world", place.as_str(), ".nightshift/failed/x"),
        ("LuckPerms", "world", ".nightshift/failed/x"),
        ("LuckPerms", ".nightshift/kept/../store", ".nightshift/failed/x"),
        ("LuckPerms", ".nightshift/kept", ".nightshift/failed/x"),
        ("LuckPerms", place.as_str(), "/tmp"),
        ("LuckPerms", place.as_str(), ".nightshift/failed/../../world"),
    ] {
        fs::write(server.volume.plugin_data_journal_path(), journal(folder, place, to).to_string()).unwrap();
        let refused = finish(&server.volume, &mut Disk::new(RealFs)).unwrap_err();
        assert!(matches!(refused, Error::Journal { .. }), "{refused:?}");
        fs::remove_file(server.volume.plugin_data_journal_path()).unwrap();
        assert_eq!(below(server.volume.root()), before);
    }
}
