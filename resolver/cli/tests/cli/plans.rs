//! Edge (reads). Tests `plan`: changes, their times, and waiting updates.

use std::fs;

use super::{Workspace, assert_snapshot, lobby, plugin, server};

#[test]
fn plan_starts_new_server_at_once() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    assert_snapshot("plan-new", &workspace.run(&["plan", "-f", "lobby.yaml"]));
}

#[test]
fn plan_takes_running_versions_from_lock() {
    let older = server("  updateStrategy: pin\n  version: 1.21.8\n")
        + &["viabackwards", "griefprevention", "discordsrv", "multiverse-core"].map(|name| plugin(name, "")).concat();
    let workspace = Workspace::new(&[("lobby.yaml", &lobby()), ("older.yaml", &older)]);
    let lock = workspace.command(&["lock", "-f", "older.yaml", "--at", "2025-11-01"]).output().unwrap();
    fs::write(workspace.path().join("running.lock.json"), &lock.stdout).unwrap();
    let plan = ["plan", "-f", "lobby.yaml", "--running", "running.lock.json"];
    assert_snapshot("plan", &workspace.run(&plan));
    assert_snapshot("plan-json", &workspace.run(&[&plan[..], &["--format", "json"]].concat()));
    // The planned version set is running, so there are no changes.
    let lock = workspace.command(&["lock", "-f", "lobby.yaml"]).output().unwrap();
    fs::write(workspace.path().join("new.lock.json"), &lock.stdout).unwrap();
    assert_snapshot("plan-nothing", &workspace.run(&["plan", "-f", "lobby.yaml", "--running", "new.lock.json"]));
    // The lock of another server is not accepted.
    let elsewhere = lobby().replace("name: lobby", "name: hub");
    fs::write(workspace.path().join("hub.yaml"), elsewhere).unwrap();
    assert_snapshot("plan-other", &workspace.run(&["plan", "-f", "hub.yaml", "--running", "new.lock.json"]));
}

/// GriefPrevention at this release, which lists up to 1.21.9 (16.18.4) or less (16.18.3).
fn griefprevention(release: &str, more: &str) -> String {
    plugin("griefprevention", &format!(", updateStrategy: pin, version: {release}{more}"))
}

#[test]
fn plan_notes_hotfix_sibling_list_for_unchanged_plugin() {
    let older = server("  updateStrategy: pin\n  version: 1.21.8\n") + &griefprevention("16.18.4", "");
    let lobby = server("  updateStrategy: auto\n") + &griefprevention("16.18.4", "");
    let workspace = Workspace::new(&[("lobby.yaml", &lobby), ("older.yaml", &older)]);
    let lock = workspace.command(&["lock", "-f", "older.yaml"]).output().unwrap();
    fs::write(workspace.path().join("running.lock.json"), &lock.stdout).unwrap();
    let plan = ["plan", "-f", "lobby.yaml", "--running", "running.lock.json"];
    assert_snapshot("plan-sibling", &workspace.run(&plan));
    assert_snapshot("plan-sibling-json", &workspace.run(&[&plan[..], &["--format", "json"]].concat()));
}

#[test]
fn plan_notes_hotfix_sibling_list_once_for_partial_update() {
    let override_field = ", compatibilityOverride: {enabled: true, mode: Add, minecraftVersions: [1.21.10]}";
    let auto = server("  updateStrategy: auto\n") + &plugin("discordsrv", "");
    let (before, after) = (griefprevention("16.18.3", override_field), griefprevention("16.18.4", ", urgent: true"));
    let (before, after) = (auto.clone() + &before, auto + &after);
    let workspace = Workspace::new(&[("before.yaml", &before), ("after.yaml", &after)]);
    let lock = workspace.command(&["lock", "-f", "before.yaml", "--at", "2026-01-11"]).output().unwrap();
    fs::write(workspace.path().join("running.lock.json"), &lock.stdout).unwrap();
    let plan = ["plan", "-f", "after.yaml", "--running", "running.lock.json"];
    assert_snapshot("plan-sibling-alone", &workspace.run(&plan));
    assert_snapshot("plan-sibling-alone-json", &workspace.run(&[&plan[..], &["--format", "json"]].concat()));
}

/// Plans these objects for a server that runs the version set of ten days before, and compares the plan as text and as
/// JSON.
fn plan_after_ten_days(name: &str, objects: &str) {
    let workspace = Workspace::new(&[("objects.yaml", objects)]);
    let lock = workspace.command(&["lock", "-f", "objects.yaml", "--at", "2026-01-11"]).output().unwrap();
    fs::write(workspace.path().join("running.lock.json"), &lock.stdout).unwrap();
    let plan = ["plan", "-f", "objects.yaml", "--running", "running.lock.json", "--save-problem", "problem.json"];
    let shown = workspace.run(&plan);
    assert_snapshot(name, &shown);
    let again = ["plan", "--problem", "problem.json", "--running", "running.lock.json"];
    assert_eq!(workspace.run(&again), shown, "a saved query gives the same plan");
    assert_snapshot(&format!("{name}-json"), &workspace.run(&[&plan[..], &["--format", "json"]].concat()));
}

#[test]
fn plan_lists_urgent_and_own_window_plugins_as_partial() {
    let objects = server("  updateStrategy: auto\n")
        + &plugin("viabackwards", ", urgent: true")
        + &plugin("discordsrv", ", windows: [{name: own, cron: \"0 3 * * 3\", timeZone: Europe/Berlin}]")
        + &plugin("griefprevention", "");
    plan_after_ten_days("plan-alone", &objects);
}

#[test]
fn plan_is_all_urgent_when_no_other_is_due() {
    let fixed = "  updateStrategy: build-pin\n  version: 1.21.10\n  build: 100\n  image: example.com/paper:1\n";
    let windows = ", windows: [{name: own, cron: \"0 3 * * 3\"}], updateDelay: 30d";
    let objects = server(fixed) + &plugin("viabackwards", ", urgent: true") + &plugin("discordsrv", windows);
    plan_after_ten_days("plan-urgent", &objects);
}
