//! Edge (writes). Checks the saved settings of plugins that are unchanged by an update.

use super::super::config_files::{self, ConfigCopied, CopyLimits};
use super::*;
use agent_api::restore::RESERVED_BYTES;

const SETTINGS_DIR: &str = ".nightshift/kept-settings/20270115T080000Z-aaaaaaaa";

/// The next build of Paper, with the plugins of `a`.
fn only_paper() -> FileSet {
    FileSet { lock: "c".repeat(64), build: 2, ..set_a() }
}

fn settings(files: usize, of: usize) -> Settings {
    Settings { files, of, place: SETTINGS_DIR.to_owned() }
}

/// The saved settings of an update that changes only Paper.
fn all_settings() -> BTreeMap<String, String> {
    files(&[
        ("LuckPerms/config.yml", "storage: h2"),
        ("LuckPerms/libs/empty.txt", ""),
        ("My_Warps/warps.yml", "spawn: 0 64 0"),
        ("Same/same.yml", "x: 1"),
    ])
}

#[test]
fn settings_of_unchanged_plugin_are_saved_but_never_restored() {
    let server = Server::new();
    server.put(&[
        ("plugins/Same/lang/en.yml", "hi: hello"),
        ("plugins/Same/data.db", "no settings"),
        ("plugins/By_Hand/config.yml", "of a JAR that is not managed"),
    ]);
    let saved = server.save(&set_b(), 0).unwrap();
    assert_eq!((&saved.settings, &saved.kept), (&Some(settings(2, 2)), &saved_before_b()));
    let whole = files(&[("Same/lang/en.yml", "hi: hello"), ("Same/same.yml", "x: 1")]);
    assert_eq!(files_below(&server.path(SETTINGS_DIR)), whole);

    server.run_b();
    let restored = server.restore(60).unwrap();
    assert_eq!(restored.settings, saved.settings, "the saved settings stay");
    assert_eq!(fs::read_to_string(server.path("plugins/Same/same.yml")).unwrap(), "x: 2", "it is not restored");
    assert_eq!(files_below(&server.path(SETTINGS_DIR)), whole);
}

#[test]
fn settings_of_all_plugins_are_saved_when_paper_changes() {
    let server = Server::new();
    let saved = server.save(&only_paper(), 0).unwrap();
    assert_eq!(saved.kept, pieces(&["./bukkit.yml", "./config", "./server.properties"]));
    assert_eq!((saved.settings, files_below(&server.path(SETTINGS_DIR))), (Some(settings(4, 4)), all_settings()));
}

#[test]
fn settings_removed_since_are_saved_again_by_second_try() {
    let server = Server::new();
    server.save(&only_paper(), 0).unwrap();
    fs::remove_dir_all(server.path(SETTINGS_DIR)).unwrap();
    let again = server.save(&only_paper(), 60).unwrap().settings.unwrap();
    assert_eq!(again.place, ".nightshift/kept-settings/20270115T080100Z-aaaaaaaa");
    assert_eq!(files_below(&server.path(&again.place)), all_settings());
}

#[test]
fn settings_of_last_two_updates_are_kept() {
    let server = Server::new();
    for (second, (to, hash)) in [(0, ('b', "2")), (60, ('c', "3")), (120, ('d', "4"))] {
        let next = set(to, &[("LuckPerms", hash), ("Same", "7")]);
        server.save(&next, second).unwrap();
        server.write_manifest(&next);
        prune_saved(&server.volume, &mut Disk::new(RealFs)).unwrap();
    }
    assert_eq!(server.saved_settings(), ["20270115T080100Z-bbbbbbbb", "20270115T080200Z-cccccccc"]);
    // The clock is set back.
    server.save(&set('e', &[("LuckPerms", "5"), ("Same", "7")]), -600).unwrap();
    prune_saved(&server.volume, &mut Disk::new(RealFs)).unwrap();
    assert_eq!(server.saved_settings(), ["20270115T075000Z-dddddddd", "20270115T080200Z-cccccccc"]);
}

#[test]
fn settings_behind_links_are_not_read() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("secret.yml"), "x").unwrap();
    let server = Server::new();
    symlink(elsewhere.path(), server.path("plugins/Same/folder")).unwrap();
    symlink(elsewhere.path().join("secret.yml"), server.path("plugins/Same/file.yml")).unwrap();
    fs::remove_dir_all(server.path("plugins/My_Warps")).unwrap();
    symlink(elsewhere.path(), server.path("plugins/My_Warps")).unwrap();
    let mut expected = all_settings();
    expected.remove("My_Warps/warps.yml");
    let saved = server.save(&only_paper(), 0).unwrap();
    assert_eq!((saved.settings, files_below(&server.path(SETTINGS_DIR))), (Some(settings(3, 3)), expected));

    let server = Server::new();
    let moved = server.path("all-plugins");
    fs::rename(server.path("plugins"), &moved).unwrap();
    symlink(&moved, server.path("plugins")).unwrap();
    assert_eq!(server.save(&only_paper(), 0).unwrap().settings, None);
    assert_eq!(server.saved_settings(), [""; 0]);
}

#[test]
fn settings_without_space_are_skipped_and_others_saved() {
    struct Full(u64);
    impl FsHook for Full {
        fn before_operation(&mut self, _operation: &'static str, _path: &Path) -> io::Result<()> {
            Ok(())
        }

        fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
            Ok(self.0)
        }
    }
    for (free, settings) in
        [(CopyLimits::one_folder().bytes - 1, None), (CopyLimits::one_folder().bytes, Some(settings(1, 1)))]
    {
        let server = Server::new();
        let saved = save_data(&server.volume, &set_b(), LIMIT, &mut Disk::new(Full(RESERVED_BYTES + free)), at(0))
            .unwrap()
            .unwrap();
        assert_eq!((saved.kept, &saved.settings), (saved_before_b(), &settings));
        assert_eq!(server.saved_settings().len(), usize::from(settings.is_some()), "no empty directory");
    }
}

#[test]
fn folder_with_failed_settings_write_is_skipped_entirely() {
    struct No;
    impl FsHook for No {
        fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
            match operation {
                "write" if path.ends_with("LuckPerms/libs/empty.txt") => Err(io::Error::other("input/output error")),
                _ => Ok(()),
            }
        }
    }
    let server = Server::new();
    let saved = save_data(&server.volume, &only_paper(), LIMIT, &mut Disk::new(No), at(0)).unwrap().unwrap();
    let mut expected = all_settings();
    expected.retain(|path, _| !path.starts_with("LuckPerms/"));
    assert_eq!((saved.settings, files_below(&server.path(SETTINGS_DIR))), (Some(settings(2, 4)), expected));
}

#[test]
fn settings_scan_is_bounded_and_takes_top_files_first() {
    let server = Server::new();
    for name in ["One", "Two"] {
        let (top, deep) = (format!("plugins/{name}/z.yml"), format!("plugins/{name}/a/b.yml"));
        server.put(&[(top.as_str(), "12345"), (deep.as_str(), "12345")]);
    }
    let partial = server.path("partial");
    let enough = CopyLimits { names: 100, files: 100, bytes: 100 };
    let (both, top, none): (&[&str], &[&str], &[&str]) = (&["a/b.yml", "z.yml"], &["z.yml"], &[]);
    // `a`, `z.yml` and `a/b.yml` are the names of one folder.
    for (mut left, one, two, remains) in [
        (enough, both, both, CopyLimits { names: 94, files: 96, bytes: 80 }),
        (CopyLimits { names: 5, ..enough }, both, top, CopyLimits { names: 0, files: 97, bytes: 85 }),
        (CopyLimits { files: 3, ..enough }, both, top, CopyLimits { names: 94, files: 0, bytes: 85 }),
        (CopyLimits { bytes: 19, ..enough }, both, top, CopyLimits { names: 94, files: 97, bytes: 4 }),
        (CopyLimits { names: 3, ..enough }, both, none, CopyLimits { names: 0, files: 98, bytes: 90 }),
    ] {
        let mut disk = Disk::new(RealFs);
        for (folder, expected) in [("One", one), ("Two", two)] {
            let ConfigCopied { files, total: _ } =
                config_files::copy_config_files(&server.volume, folder, &partial, &mut left, &mut disk).unwrap();
            let found: Vec<String> = files_below(&partial.join(folder)).into_keys().collect();
            assert_eq!(found, expected, "{folder}, {left:?}");
            assert_eq!(files, expected.len(), "{folder}, {left:?}");
        }
        assert_eq!(left, remains);
        fs::remove_dir_all(&partial).unwrap();
    }
}

#[test]
fn settings_limit_holds_for_a_hundred_unchanged_plugins() {
    let server = Server::new();
    let most = CopyLimits::unchanged_plugins().files;
    let plugins: Vec<String> =
        (0..=most / CopyLimits::one_folder().files).map(|number| format!("Many{number:03}")).collect();
    let of_one = CopyLimits::one_folder().files + 1;
    for plugin in &plugins {
        fs::create_dir_all(server.path("plugins").join(plugin)).unwrap();
        for number in 0..of_one {
            fs::write(server.path("plugins").join(plugin).join(format!("{number}.yml")), "").unwrap();
        }
    }
    let plugins: Vec<(&str, &str)> = plugins.iter().map(|plugin| (plugin.as_str(), "7")).collect();
    let before = set('a', &plugins);
    server.write_manifest(&before);
    let saved = server.save(&FileSet { lock: "c".repeat(64), build: 2, ..before }, 0).unwrap();
    assert_eq!(
        saved.settings,
        Some(settings(most, of_one * plugins.len())),
        "the record shows that settings are missing"
    );
    assert_eq!(files_below(&server.path(SETTINGS_DIR)).len(), most);
}
