//! Edge (reads). What would be changed, when, and what waits.

use std::fs;

use super::{Desk, assert_shown, lobby, plugin, server};

#[test]
fn a_server_that_is_new_starts_at_once() {
    let desk = Desk::new(&[("lobby.yaml", &lobby())]);
    assert_shown("plan-new", &desk.run(&["plan", "-f", "lobby.yaml"]));
}

#[test]
fn what_runs_is_told_by_a_lock() {
    let older = server("  updateStrategy: pin\n  version: 1.21.8\n")
        + &["viabackwards", "griefprevention", "discordsrv", "multiverse-core"].map(|name| plugin(name, "")).concat();
    let desk = Desk::new(&[("lobby.yaml", &lobby()), ("older.yaml", &older)]);
    let lock = desk.command(&["lock", "-f", "older.yaml", "--at", "2025-11-01"]).output().unwrap();
    fs::write(desk.path().join("running.lock.json"), &lock.stdout).unwrap();
    let plan = ["plan", "-f", "lobby.yaml", "--running", "running.lock.json"];
    assert_shown("plan", &desk.run(&plan));
    assert_shown("plan-json", &desk.run(&[&plan[..], &["--format", "json"]].concat()));
    // What was planned runs: nothing is left to do.
    let lock = desk.command(&["lock", "-f", "lobby.yaml"]).output().unwrap();
    fs::write(desk.path().join("new.lock.json"), &lock.stdout).unwrap();
    assert_shown("plan-nothing", &desk.run(&["plan", "-f", "lobby.yaml", "--running", "new.lock.json"]));
    // A lock of another server is no witness.
    let elsewhere = lobby().replace("name: lobby", "name: hub");
    fs::write(desk.path().join("hub.yaml"), elsewhere).unwrap();
    assert_shown("plan-other", &desk.run(&["plan", "-f", "hub.yaml", "--running", "new.lock.json"]));
}
