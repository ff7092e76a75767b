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
    fn fail_after(left: usize) -> Self {
        Self { left, unsynced: Rc::default(), syncing: None }
    }
}

impl FsHook for Power {
    fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
        // The operation before this one has ended.
        if let Some(synced) = self.syncing.take() {
            self.unsynced.borrow_mut().retain(|path| !path.starts_with(&synced));
        }
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the power went"))?;
        match operation {
            "create" | "write" => drop(self.unsynced.borrow_mut().insert(path.to_owned())),
            "flush all of" => self.syncing = Some(path.to_owned()),
            "flush" if path.is_file() => self.syncing = Some(path.to_owned()),
            _ => {}
        }
        Ok(())
    }
}

/// Removes data that was only in memory, also under its later name: a published folder, or a record that was put in place.
fn lose(unsynced: &BTreeSet<PathBuf>) {
    for path_lost in unsynced {
        let published = PathBuf::from(path_lost.to_str().unwrap().replace(".partial-", ""));
        let name = path_lost.file_name().unwrap().to_str().unwrap();
        let record = path_lost.with_file_name(name.trim_start_matches('.').trim_end_matches(".nightshift"));
        for path in [path_lost.clone(), published, record] {
            if path.is_file() {
                fs::write(path, "").unwrap();
            }
        }
    }
}

#[test]
fn interrupted_plugin_data_save_publishes_only_whole_folders() {
    for loses_unsynced in [false, true] {
        for left in 0.. {
            let server = Server::new();
            let power = Power::fail_after(left);
            let unsynced = Rc::clone(&power.unsynced);
            let ended = save_data(&server.volume, &set_b(), LIMIT, &mut Disk::new(power), at(0)).is_ok();
            if loses_unsynced {
                lose(&unsynced.borrow());
            }
            assert_eq!(server.files(), files(&OLD), "after {left} operations");
            let whole = files_of_pieces(&OLD, &saved_before_b());
            for name in server.saved_names().iter().filter(|name| !name.starts_with('.')) {
                assert_eq!(files_below(&server.volume.saved_data_dir().join(name)), whole, "after {left} operations");
            }
            server.assert_settings_are_whole(&format!("after {left} operations"));
            let again = server.save(&set_b(), 60).unwrap();
            assert_eq!(
                files_below(&server.path(again.place.as_deref().unwrap())),
                whole,
                "resumed after {left} operations"
            );
            let settings = again.settings.expect("settings are saved by then");
            assert!(server.path(&settings.place).join("Same/same.yml").is_file(), "resumed after {left} operations");
            server.assert_settings_are_whole(&format!("resumed after {left} operations"));
            let mut remains = server.saved_names().into_iter().chain(server.saved_settings());
            assert!(remains.all(|name| !name.starts_with('.')), "no unfinished folders, after {left} operations");
            server.run_b();
            server.restore(120).unwrap();
            assert_eq!(server.files(), after_rollback(), "the data is restored, after {left} operations");
            if ended {
                assert!(left > 20, "only {left} operations pass through the hook");
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
        let power = Power::fail_after(left);
        let unsynced = Rc::clone(&power.unsynced);
        let ended = save_data(&server.volume, &set_b(), LIMIT, &mut Disk::new(power), at(0)).is_ok();
        lose(&unsynced.borrow());
        let whole = BTreeMap::from([("warps.yml".to_owned(), "spawn: 0 64 0".to_owned())]);
        let at_settings = server.volume.saved_settings_dir();
        for name in directories(&at_settings).unwrap().iter().filter(|name| !name.starts_with('.')) {
            assert_eq!(files_below(&at_settings.join(name).join("My_Warps")), whole, "after {left} operations");
        }
        let again = server.save(&set_b(), 60).unwrap();
        let settings = again.not_kept[0].settings.as_ref().expect("settings are saved by then");
        assert_eq!(files_below(&server.path(&settings.place)), whole, "resumed after {left} operations");
        assert!(directories(&at_settings).unwrap().iter().all(|name| !name.starts_with('.')), "no leftovers, {left}");
        if ended {
            assert!(left > 25, "only {left} operations pass through the hook");
            return;
        }
    }
}

#[test]
fn interrupted_plugin_data_restore_leaves_old_state_or_journal() {
    for loses_unsynced in [false, true] {
        for left in 0.. {
            let server = Server::new();
            server.save(&set_b(), 0).unwrap();
            server.run_b();
            let power = Power::fail_after(left);
            let unsynced = Rc::clone(&power.unsynced);
            let ended =
                restore_data(&server.volume, &set_a().lock, &set_b().lock, |_| false, &mut Disk::new(power), at(60))
                    .is_ok();
            if loses_unsynced {
                lose(&unsynced.borrow());
            }
            let found = server.files();
            if !server.volume.plugin_data_journal_path().exists() {
                assert!(
                    found == files(&NEW) || found == after_rollback(),
                    "mixed files without a journal, after {left} operations"
                );
            }
            // The next start finds the journal and is interrupted too. The one after it finishes the restore, and only then checks for further
            // work.
            let _ = finish(&server.volume, &mut Disk::new(Power::fail_after(left % 7)));
            finish(&server.volume, &mut Disk::new(RealFs)).unwrap();
            server.restore(120);
            assert_eq!(server.files(), after_rollback(), "resumed after {left} operations");
            let mut displaced = BTreeMap::new();
            for name in directories(&server.volume.failed_data_dir()).unwrap() {
                displaced.extend(files_below(&server.volume.failed_data_dir().join(name)));
            }
            assert_eq!(displaced, files_of_pieces(&NEW, &left_by_b()), "no file is lost, after {left}");
            assert!(matches!(server.record().unwrap().back, Some(PluginDataRestored::Done { .. })));
            assert!(!server.volume.plugin_data_journal_path().exists());
            if ended {
                assert!(left > 25, "only {left} operations pass through the hook");
                break;
            }
        }
    }
}

#[test]
fn folder_removed_by_failed_lock_is_restored() {
    for left in 0.. {
        let server = Server::new();
        server.save(&set_b(), 0).unwrap();
        server.run_b();
        fs::remove_dir_all(server.path("plugins/LuckPerms")).unwrap();
        let power = Disk::new(Power::fail_after(left));
        let ended =
            restore_data(&server.volume, &set_a().lock, &set_b().lock, |_| false, &mut { power }, at(60)).is_ok();
        finish(&server.volume, &mut Disk::new(RealFs)).unwrap();
        server.restore(120);
        assert_eq!(server.files(), after_rollback(), "after {left} operations");
        let displaced = files_below(&server.volume.failed_data_dir().join(set_b().lock));
        assert_eq!(displaced, files_of_pieces(&NEW, &left_by_b()[1..]), "after {left} operations");
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
            server.save(&next, second).unwrap();
            server.write_manifest(&next);
        }
        let ended = prune_saved(&server.volume, &mut Disk::new(Power::fail_after(left))).is_ok();
        for name in server.saved_names().iter().filter(|name| !name.starts_with('.')) {
            let found = files_below(&server.volume.saved_data_dir().join(name));
            assert!(
                files_of_pieces(&OLD, &pieces(&["LuckPerms"])).iter().all(|file| found.contains_key(file.0)),
                "{name}, {left}"
            );
        }
        prune_saved(&server.volume, &mut Disk::new(RealFs)).unwrap();
        assert_eq!(server.saved_names(), ["20270115T080100Z-bbbbbbbb", "20270115T080200Z-cccccccc"]);
        if ended {
            assert!(left > 2, "only {left} operations pass through the hook");
            return;
        }
    }
}

#[test]
fn single_disk_error_skips_one_folder_not_the_update() {
    struct NoOnce;
    impl FsHook for NoOnce {
        fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
            match operation {
                "write" if path.ends_with("luckperms.mv.db") => Err(io::Error::other("no space left on device")),
                _ => Ok(()),
            }
        }
    }
    let server = Server::new();
    let saved = save_data(&server.volume, &set_b(), LIMIT, &mut Disk::new(NoOnce), at(0)).unwrap().unwrap();
    assert_eq!(saved.kept, saved_before_b()[1..]);
    let message = saved.not_kept[0].to_string();
    assert!(
        message.starts_with("plugins/LuckPerms: could not write") && message.ends_with("no space left on device"),
        "{message}"
    );
    assert_eq!(
        files_below(&server.path(&saved.place.unwrap())),
        files_of_pieces(&OLD, &saved_before_b()[1..]),
        "no partial folder"
    );
}

#[test]
fn plugin_data_journal_with_outside_path_is_not_executed() {
    let server = Server::new();
    let good = server.save(&set_b(), 0).unwrap();
    server.run_b();
    let before = files_below(server.volume.root());
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
        assert_eq!(files_below(server.volume.root()), before);
    }
}
