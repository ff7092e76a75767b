//! Edge (reads). Tests writing and comparing locks (row F03).

use std::fs;

use resolver::lock::Lock;

use super::{Desk, assert_shown, lobby, plugin, server};

/// `lobby`, and `arena`, which is pinned.
fn two() -> String {
    let arena = server("  updateStrategy: pin\n  version: 1.21.8\n").replace("name: lobby", "name: arena");
    lobby() + "---\n" + &arena
}

fn lock_of(desk: &Desk, arguments: &[&str]) -> String {
    let output = desk.command(&[&["lock"], arguments].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", super::shown(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn lock_command_output_is_deterministic_and_round_trips() {
    let desk = Desk::new(&[("lobby.yaml", &lobby())]);
    let text = lock_of(&desk, &["-f", "lobby.yaml"]);
    assert_eq!(text, lock_of(&desk, &["-f", "lobby.yaml"]));
    let lock: Lock = serde_json::from_str(&text).unwrap();
    assert_eq!((lock.server.as_str(), lock.minecraft.as_str(), lock.plugins.len()), ("games/lobby", "1.21.10", 4));
    assert_eq!(lock.to_json(), text);
    assert_shown("lock", &desk.run(&["lock", "-f", "lobby.yaml"]));
}

#[test]
fn lock_command_requires_server_name_among_several() {
    let desk = Desk::new(&[("all.yaml", &two())]);
    assert_shown("lock-several", &desk.run(&["lock", "-f", "all.yaml"]));
    assert_shown("lock-no-such-server", &desk.run(&["lock", "-f", "all.yaml", "--server", "arenas"]));
    let lock: Lock = serde_json::from_str(&lock_of(&desk, &["-f", "all.yaml", "--server", "arena"])).unwrap();
    assert_eq!((lock.server.as_str(), lock.minecraft.as_str()), ("games/arena", "1.21.8"));
    assert_eq!(
        lock_of(&desk, &["-f", "all.yaml", "--server", "arena"]),
        lock_of(&desk, &["-f", "all.yaml", "--server", "games/arena"])
    );
}

#[test]
fn lock_directory_keeps_file_of_unresolved_server() {
    let impossible = server("  updateStrategy: pin\n  version: 1.21.11\n").replace("name: lobby", "name: castle");
    let desk = Desk::new(&[("all.yaml", &(two() + "---\n" + &impossible)), ("locks/games.castle.lock.json", "{}")]);
    assert_shown("lock-directory", &desk.run(&["lock", "-f", "all.yaml", "-o", "locks"]));
    let read = |name: &str| fs::read_to_string(desk.path().join("locks").join(name)).unwrap();
    assert_eq!(read("games.lobby.lock.json"), lock_of(&desk, &["-f", "all.yaml", "--server", "lobby"]));
    assert_eq!(read("games.castle.lock.json"), "{}");
    let names = fs::read_dir(desk.path().join("locks")).unwrap().count();
    assert_eq!(names, 3, "no part of a file is left");
    fs::write(desk.path().join("file"), "").unwrap();
    assert_shown("lock-no-directory", &desk.run(&["lock", "-f", "all.yaml", "-o", "file", "--server", "lobby"]));
}

#[test]
fn lock_command_fails_for_impossible_request() {
    let manifests = server("  updateStrategy: pin\n  version: 1.21.11\n") + &plugin("griefprevention", "");
    let desk = Desk::new(&[("lobby.yaml", &manifests)]);
    assert_shown("lock-impossible", &desk.run(&["lock", "-f", "lobby.yaml"]));
}

#[test]
fn lock_command_names_plugins_left_out() {
    let manifests = server("  updateStrategy: latest\n") + &plugin("griefprevention", "");
    let desk = Desk::new(&[("lobby.yaml", &manifests)]);
    let output = desk.command(&["lock", "-f", "lobby.yaml"]).output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(notes, "games/lobby: GriefPrevention has nothing for 1.21.11; see `explain`\n");
}

#[test]
fn diff_lists_paper_first_then_plugins_by_name() {
    let old = lobby().replace("updateStrategy: auto", "updateStrategy: pin\n  version: 1.21.8")
        + &plugin("multiverse-core", "");
    let desk = Desk::new(&[("old.yaml", &old), ("new.yaml", &lobby())]);
    let at = ["-f", "old.yaml", "--at", "2025-10-20"];
    fs::write(desk.path().join("old.lock.json"), lock_of(&desk, &at)).unwrap();
    fs::write(desk.path().join("new.lock.json"), lock_of(&desk, &["-f", "new.yaml"])).unwrap();
    assert_shown("diff", &desk.run(&["diff", "old.lock.json", "new.lock.json"]));
    assert_shown("diff-back", &desk.run(&["diff", "new.lock.json", "old.lock.json"]));
    assert_shown("diff-equal", &desk.run(&["diff", "new.lock.json", "new.lock.json"]));
    assert_shown("diff-json", &desk.run(&["diff", "old.lock.json", "new.lock.json", "--format", "json"]));
    let piped = desk.run_with_stdin(&["diff", "old.lock.json", "-"], &lock_of(&desk, &["-f", "new.yaml"]));
    assert_eq!(piped, desk.run(&["diff", "old.lock.json", "new.lock.json"]));
}

#[test]
fn diff_refuses_invalid_lock_file_with_line() {
    let desk = Desk::new(&[
        ("cut.json", "{\n  \"server\": \"lobby\",\n"),
        ("other.json", "{\"kind\": \"ConfigMap\"}"),
        ("newer.json", "{\n  \"formatVersion\": 3\n}"),
    ]);
    assert_shown("diff-no-locks", &desk.run(&["diff", "cut.json", "other.json"]));
    assert_shown("diff-newer-format", &desk.run(&["diff", "newer.json", "missing.json"]));
    assert_shown("diff-two-stdins", &desk.run(&["diff", "-", "-"]));
}
