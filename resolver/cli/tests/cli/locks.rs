//! Edge (reads). Tests writing and comparing locks.

use std::fs;

use resolver::model::lock::Lock;

use super::{Workspace, assert_snapshot, lobby, plugin, server};

/// `lobby`, and `arena`, which is pinned.
fn two_servers() -> String {
    let arena = server("  updateStrategy: pin\n  version: 1.21.8\n").replace("name: lobby", "name: arena");
    lobby() + "---\n" + &arena
}

fn lock_of(workspace: &Workspace, arguments: &[&str]) -> String {
    let output = workspace.command(&[&["lock"], arguments].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", super::output_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn lock_command_output_is_deterministic_and_round_trips() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let text = lock_of(&workspace, &["-f", "lobby.yaml"]);
    assert_eq!(text, lock_of(&workspace, &["-f", "lobby.yaml"]));
    let lock: Lock = serde_json::from_str(&text).unwrap();
    assert_eq!((lock.server.as_str(), lock.minecraft.as_str(), lock.plugins.len()), ("games/lobby", "1.21.10", 4));
    assert_eq!(lock.to_json(), text);
    assert_snapshot("lock", &workspace.run(&["lock", "-f", "lobby.yaml"]));
}

#[test]
fn lock_with_byte_order_mark_and_windows_line_ends_is_read() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let text = lock_of(&workspace, &["-f", "lobby.yaml"]);
    fs::write(workspace.path().join("plain.json"), &text).unwrap();
    fs::write(workspace.path().join("windows.json"), format!("\u{feff}{}", text.replace('\n', "\r\n"))).unwrap();
    let output = workspace.command(&["diff", "plain.json", "windows.json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", super::output_text(&output));
}

#[test]
fn lock_command_requires_server_name_among_several() {
    let workspace = Workspace::new(&[("all.yaml", &two_servers())]);
    assert_snapshot("lock-several", &workspace.run(&["lock", "-f", "all.yaml"]));
    assert_snapshot("lock-no-such-server", &workspace.run(&["lock", "-f", "all.yaml", "--server", "arenas"]));
    let lock: Lock = serde_json::from_str(&lock_of(&workspace, &["-f", "all.yaml", "--server", "arena"])).unwrap();
    assert_eq!((lock.server.as_str(), lock.minecraft.as_str()), ("games/arena", "1.21.8"));
    assert_eq!(
        lock_of(&workspace, &["-f", "all.yaml", "--server", "arena"]),
        lock_of(&workspace, &["-f", "all.yaml", "--server", "games/arena"])
    );
}

#[test]
fn lock_directory_keeps_file_of_unresolved_server() {
    let impossible = server("  updateStrategy: pin\n  version: 1.21.11\n").replace("name: lobby", "name: castle");
    let workspace = Workspace::new(&[
        ("all.yaml", &(two_servers() + "---\n" + &impossible)),
        ("locks/games.castle.lock.json", "{}"),
    ]);
    assert_snapshot("lock-directory", &workspace.run(&["lock", "-f", "all.yaml", "-o", "locks"]));
    let read = |name: &str| fs::read_to_string(workspace.path().join("locks").join(name)).unwrap();
    assert_eq!(read("games.lobby.lock.json"), lock_of(&workspace, &["-f", "all.yaml", "--server", "lobby"]));
    assert_eq!(read("games.castle.lock.json"), "{}");
    let names = fs::read_dir(workspace.path().join("locks")).unwrap().count();
    assert_eq!(names, 3, "no temporary file is left");
    fs::write(workspace.path().join("file"), "").unwrap();
    assert_snapshot(
        "lock-no-directory",
        &workspace.run(&["lock", "-f", "all.yaml", "-o", "file", "--server", "lobby"]),
    );
}

#[test]
fn lock_command_fails_for_impossible_request() {
    let manifests = server("  updateStrategy: pin\n  version: 1.21.11\n") + &plugin("griefprevention", "");
    let workspace = Workspace::new(&[("lobby.yaml", &manifests)]);
    assert_snapshot("lock-impossible", &workspace.run(&["lock", "-f", "lobby.yaml"]));
}

#[test]
fn lock_command_names_plugins_left_out() {
    let manifests = server("  updateStrategy: latest\n") + &plugin("griefprevention", "");
    let workspace = Workspace::new(&[("lobby.yaml", &manifests)]);
    let output = workspace.command(&["lock", "-f", "lobby.yaml"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "games/lobby: GriefPrevention has no release for 1.21.11: see `explain`\n");
}

#[test]
fn diff_lists_paper_first_then_plugins_by_name() {
    let old = lobby().replace("updateStrategy: auto", "updateStrategy: pin\n  version: 1.21.8")
        + &plugin("multiverse-core", "");
    let workspace = Workspace::new(&[("old.yaml", &old), ("new.yaml", &lobby())]);
    let at = ["-f", "old.yaml", "--at", "2025-10-20"];
    fs::write(workspace.path().join("old.lock.json"), lock_of(&workspace, &at)).unwrap();
    fs::write(workspace.path().join("new.lock.json"), lock_of(&workspace, &["-f", "new.yaml"])).unwrap();
    assert_snapshot("diff", &workspace.run(&["diff", "old.lock.json", "new.lock.json"]));
    assert_snapshot("diff-back", &workspace.run(&["diff", "new.lock.json", "old.lock.json"]));
    assert_snapshot("diff-equal", &workspace.run(&["diff", "new.lock.json", "new.lock.json"]));
    assert_snapshot("diff-json", &workspace.run(&["diff", "old.lock.json", "new.lock.json", "--format", "json"]));
    let piped = workspace.run_with_stdin(&["diff", "old.lock.json", "-"], &lock_of(&workspace, &["-f", "new.yaml"]));
    assert_eq!(piped, workspace.run(&["diff", "old.lock.json", "new.lock.json"]));
}

#[test]
fn diff_refuses_invalid_lock_file_with_line() {
    let workspace = Workspace::new(&[
        ("cut.json", "{\n  \"server\": \"lobby\",\n"),
        ("other.json", "{\"kind\": \"ConfigMap\"}"),
        ("newer.json", "{\n  \"formatVersion\": 3\n}"),
    ]);
    assert_snapshot("diff-no-locks", &workspace.run(&["diff", "cut.json", "other.json"]));
    assert_snapshot("diff-newer-format", &workspace.run(&["diff", "newer.json", "missing.json"]));
    assert_snapshot("diff-two-stdins", &workspace.run(&["diff", "-", "-"]));
}
