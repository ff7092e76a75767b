//! Edge (writes). Checks unmanaged JARs that conflict with managed ones, or were managed before.

use super::*;

#[test]
fn a_jar_of_somebody_else_at_our_place_is_adopted_if_equal_and_set_aside_if_not() {
    let (server, old) = (Server::new(), old());
    old.store_on(&server);
    server.put("plugins/Claims-1.jar", &plugin_jar("Claims", "1"));
    server.put("plugins/Warps.jar", &plugin_jar("Warps", "hand made"));
    let done = server.swap(&old.files);
    assert_eq!(done.adopted, ["plugins/Claims-1.jar"]);
    assert_eq!(done.set_aside, [("plugins/Warps.jar".into(), ".nightshift/replaced/Warps.jar".into())]);
    assert_eq!(server.files(), old.by_path());
    assert_eq!(server.replaced(), BTreeMap::from([("Warps.jar".into(), plugin_jar("Warps", "hand made"))]));
    assert_eq!(server.told(), [("plugins/Warps.jar".into(), ".nightshift/replaced/Warps.jar".into())]);
}

#[test]
fn what_made_room_is_told_until_somebody_takes_it_away_and_a_record_that_is_broken_keeps_nothing_from_starting() {
    let (server, old) = (Server::new(), old());
    old.store_on(&server);
    for number in 1..=25 {
        server.put(&format!("plugins/Warps by hand {number}.jar"), &plugin_jar("Warps", "hand made"));
        server.swap(&old.files);
    }
    let told = server.told();
    assert_eq!(told.len(), 20);
    let (file, place) = &told[0];
    assert_eq!(file, "plugins/Warps by hand 25.jar", "the last one first");
    fs::remove_file(server.volume.root().join(place)).unwrap();
    assert_eq!(server.told(), told[1..]);

    server.put(".nightshift/replaced.json", b"[{");
    assert_eq!(server.told(), []);
    server.put("plugins/Warps.jar", &plugin_jar("Warps", "again"));
    server.swap(&old.files);
    assert_eq!(server.told(), [("plugins/Warps.jar".into(), ".nightshift/replaced/Warps.jar".into())]);
}

#[test]
fn a_jar_that_made_room_is_told_whatever_operation_the_crash_comes_after() {
    for left in 0.. {
        let (server, old) = (Server::new(), old());
        old.store_on(&server);
        server.put("plugins/Warps.jar", &plugin_jar("Warps", "hand made"));
        let crashed =
            swap(&server.volume, &old.files, &mut HashCache::default(), &mut Disk::new(Crash { left })).is_err();
        let lies_there = !server.replaced().is_empty();
        assert_eq!(server.told().len(), usize::from(lies_there), "after {left} operations");
        server.swap(&old.files);
        assert_eq!(
            server.told(),
            [("plugins/Warps.jar".into(), ".nightshift/replaced/Warps.jar".into())],
            "after {left} operations"
        );
        if !crashed {
            return;
        }
    }
}

#[test]
fn a_jar_of_somebody_else_that_declares_a_managed_name_makes_room_under_any_file_name() {
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
    assert_eq!(server.replaced(), expected.into());
}

#[test]
fn what_waits_in_the_folder_that_bukkit_yml_names_makes_room_too_and_is_a_difference_until_then() {
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
    assert_eq!(server.replaced(), [("W.jar".to_owned(), plugin_jar("Warps", "3"))].into());
    server.put("bukkit.yml", b"settings:\n  update-folder: ../bukkit.yml\n");
    assert_eq!(drift(&server.volume, &manifest).unwrap().changed, [""; 0]);
}

#[test]
fn two_files_of_one_name_are_both_kept_aside() {
    let server = Server::new();
    let old = old();
    old.store_on(&server);
    for version in ["first", "second"] {
        server.put("plugins/Warps.jar", &plugin_jar("Warps", version));
        server.swap(&old.files);
    }
    assert_eq!(server.replaced().keys().collect::<Vec<_>>(), ["Warps.jar", "Warps.jar.2"]);
}

#[test]
fn a_managed_jar_that_somebody_wrote_over_is_theirs_when_it_leaves_the_lock() {
    let (server, old, new) = prepared();
    server.swap(&old.files);
    server.put("plugins/Leaves.jar", &plugin_jar("Leaves", "mine"));
    server.swap(&new.files);
    assert_eq!(server.files().get("plugins/Leaves.jar"), Some(&plugin_jar("Leaves", "mine")));
}
