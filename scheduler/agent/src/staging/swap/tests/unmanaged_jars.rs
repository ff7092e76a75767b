//! Edge (writes). Checks unmanaged JARs that conflict with managed ones, or were managed before.

use super::*;

#[test]
fn unmanaged_jar_at_managed_path_is_adopted_or_displaced() {
    let (server, old) = (Server::new(), old());
    old.store_on(&server);
    server.put("plugins/Claims-1.jar", &plugin_jar("Claims", "1"));
    server.put("plugins/Warps.jar", &plugin_jar("Warps", "hand made"));
    let done = server.swap(&old.files);
    assert_eq!(done.adopted, ["plugins/Claims-1.jar"]);
    assert_eq!(done.displaced, [("plugins/Warps.jar".into(), ".nightshift/replaced/Warps.jar".into())]);
    assert_eq!(server.files(), old.by_path());
    assert_eq!(server.displaced(), BTreeMap::from([("Warps.jar".into(), plugin_jar("Warps", "hand made"))]));
    assert_eq!(server.reported(), [("plugins/Warps.jar".into(), ".nightshift/replaced/Warps.jar".into())]);
}

#[test]
fn displaced_jar_is_reported_until_removed_despite_broken_record() {
    let (server, old) = (Server::new(), old());
    old.store_on(&server);
    for number in 1..=25 {
        server.put(&format!("plugins/Warps by hand {number}.jar"), &plugin_jar("Warps", "hand made"));
        server.swap(&old.files);
    }
    let reported = server.reported();
    assert_eq!(reported.len(), 20);
    let (file, path) = &reported[0];
    assert_eq!(file, "plugins/Warps by hand 25.jar", "the latest is listed first");
    fs::remove_file(server.volume.root().join(path)).unwrap();
    assert_eq!(server.reported(), reported[1..]);

    server.put(".nightshift/replaced.json", b"[{");
    assert_eq!(server.reported(), []);
    server.put("plugins/Warps.jar", &plugin_jar("Warps", "again"));
    server.swap(&old.files);
    assert_eq!(server.reported(), [("plugins/Warps.jar".into(), ".nightshift/replaced/Warps.jar".into())]);
}

#[test]
fn displaced_jar_is_reported_after_crash_at_any_operation() {
    for left in 0.. {
        let (server, old) = (Server::new(), old());
        old.store_on(&server);
        server.put("plugins/Warps.jar", &plugin_jar("Warps", "hand made"));
        let crashed =
            swap(&server.volume, &old.files, &mut HashCache::default(), &mut Disk::new(Crash { left })).is_err();
        let is_displaced = !server.displaced().is_empty();
        assert_eq!(server.reported().len(), usize::from(is_displaced), "after {left} operations");
        server.swap(&old.files);
        assert_eq!(
            server.reported(),
            [("plugins/Warps.jar".into(), ".nightshift/replaced/Warps.jar".into())],
            "after {left} operations"
        );
        if !crashed {
            return;
        }
    }
}

#[test]
fn unmanaged_jar_declaring_managed_name_is_displaced() {
    let server = Server::new();
    let old = old();
    old.store_on(&server);
    server.put("plugins/claims by hand.jar", &plugin_jar("Claims", "1"));
    server.put("plugins/Warps (2).jar", &plugin_jar("Warps", "0.9"));
    server.put("plugins/update/Warps.jar", &plugin_jar("Warps", "3"));
    let done = server.swap(&old.files);
    assert_eq!(done.adopted, ["plugins/Claims-1.jar"], "same content: only its name changes");
    assert_eq!(server.files(), old.by_path());
    let expected = [("Warps (2).jar", "0.9"), ("Warps.jar", "3")];
    let expected = expected.map(|(name, version)| (name.to_owned(), plugin_jar("Warps", version)));
    assert_eq!(server.displaced(), expected.into());
}

#[test]
fn update_folder_jar_is_reported_as_drift_until_displaced() {
    let server = Server::new();
    let old = old();
    old.store_on(&server);
    server.swap(&old.files);
    server.put("bukkit.yml", b"settings:\n  update-folder: ../waiting\n");
    server.put("waiting/W.jar", &plugin_jar("Warps", "3"));
    server.put("plugins/update/Claims.jar", &plugin_jar("Claims", "4"));
    let manifest = server.volume.manifest().unwrap().unwrap();
    assert_eq!(drift(&server.volume, &manifest).unwrap().changed, ["waiting/W.jar"]);
    server.swap(&old.files);
    assert_eq!(server.displaced(), [("W.jar".to_owned(), plugin_jar("Warps", "3"))].into());
    server.put("bukkit.yml", b"settings:\n  update-folder: ../bukkit.yml\n");
    assert_eq!(drift(&server.volume, &manifest).unwrap().changed, [""; 0]);
}

#[test]
fn two_displaced_files_of_same_name_are_both_kept() {
    let server = Server::new();
    let old = old();
    old.store_on(&server);
    for version in ["first", "second"] {
        server.put("plugins/Warps.jar", &plugin_jar("Warps", version));
        server.swap(&old.files);
    }
    assert_eq!(server.displaced().keys().collect::<Vec<_>>(), ["Warps.jar", "Warps.jar.2"]);
}

#[test]
fn overwritten_managed_jar_is_kept_when_leaving_the_lock() {
    let (server, old, new) = prepared();
    server.swap(&old.files);
    server.put("plugins/Leaves.jar", &plugin_jar("Leaves", "mine"));
    server.swap(&new.files);
    assert_eq!(server.files().get("plugins/Leaves.jar"), Some(&plugin_jar("Leaves", "mine")));
}
