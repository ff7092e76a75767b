//! Edge (reads). Tests `verify`: a correct lock, and each way in which a lock can be wrong.

use std::fs;

use serde_json::{Value, json};

use super::{Workspace, assert_snapshot, lobby, plugin, server};

/// A workspace with `lobby.yaml`, its lock, and a catalog for offline use.
fn workspace_with_lock(manifests: &str) -> Workspace {
    let workspace = Workspace::new(&[("lobby.yaml", manifests)]);
    workspace.run(&["catalog", "fetch", "-f", "lobby.yaml", "--catalog", "kept"]);
    let output = workspace.command(&["lock", "-f", "lobby.yaml", "--catalog", "kept"]).output().unwrap();
    fs::write(workspace.path().join("lobby.lock.json"), output.stdout).unwrap();
    workspace
}

/// Changes the lock.
fn edit_lock(workspace: &Workspace, change: impl Fn(&mut Value)) {
    let path = workspace.path().join("lobby.lock.json");
    let mut lock = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut lock);
    fs::write(path, lock.to_string()).unwrap();
}

/// Compares the output with the snapshot, and the findings as JSON with the snapshot beside it. The reference page of
/// all reasons is generated from both.
fn assert_findings(workspace: &Workspace, name: &str, arguments: &[&str]) {
    assert_snapshot(name, &workspace.run(arguments));
    let output = workspace.command(&[arguments, &["--format", "json"]].concat()).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = json!({"facts": report["facts"], "request": report["request"]});
    assert_snapshot(&format!("{name}-found"), &serde_json::to_string_pretty(&found).unwrap());
}

const VERIFY: [&str; 6] = ["verify", "lobby.lock.json", "-f", "lobby.yaml", "--catalog", "kept"];

#[test]
fn verify_accepts_fresh_lock() {
    let workspace = workspace_with_lock(&lobby());
    assert_snapshot("verify", &workspace.run(&VERIFY));
    assert_snapshot("verify-json", &workspace.run(&[&VERIFY[..], &["--format", "json"]].concat()));
}

#[test]
fn verify_names_changed_files() {
    let workspace = workspace_with_lock(&lobby());
    edit_lock(&workspace, |lock| {
        lock["paper"]["hash"] = "sha256:0000000000000000".into();
        lock["plugins"][0]["file"]["hash"] = "sha512:0000000000000000".into();
        lock["plugins"][1]["releaseId"] = "elsewhere".into();
        lock["java"] = 17.into();
    });
    assert_findings(&workspace, "verify-facts", &VERIFY);
    edit_lock(&workspace, |lock| lock["build"] = 999.into());
    assert_findings(&workspace, "verify-paper-gone", &VERIFY);
}

#[test]
fn verify_names_other_file_of_release_than_requested() {
    let workspace = workspace_with_lock(&lobby());
    edit_lock(&workspace, |lock| {
        lock["plugins"][0]["file"]["url"] = "https://example.org/DiscordSRV-light.jar".into();
        lock["plugins"][0]["file"]["hash"] = "sha512:0000000000000000".into();
    });
    assert_findings(&workspace, "verify-file", &VERIFY);
}

#[test]
fn verify_stops_at_lock_of_other_software() {
    let workspace = workspace_with_lock(&lobby());
    edit_lock(&workspace, |lock| lock["software"] = "Purpur".into());
    assert_findings(&workspace, "verify-software", &VERIFY);
}

#[test]
fn verify_misses_running_plugin_needed_only_by_unmanaged_jar() {
    let plugins = plugin("discordsrv", "") + &plugin("griefprevention", "");
    let auto = server("  updateStrategy: auto\n");
    let workspace = workspace_with_lock(&(auto.clone() + &plugins));
    let status = "status:\n  currentVersion: 1.21.10\n  basis: {floor: 1.21.10, version: 1.21.10, build: 129, unasked: [modrinth/viaversion]}\n  \
                  unmanaged: [{file: Shop.jar, name: Shop, depend: [ViaVersion]}]\n";
    fs::write(workspace.path().join("lobby.yaml"), auto + status + &plugins).unwrap();
    workspace.run(&["catalog", "fetch", "-f", "lobby.yaml", "--catalog", "kept"]);
    assert_findings(&workspace, "verify-own-jar", &VERIFY);
}

#[test]
fn verify_names_unsupported_facts_and_guesses() {
    let workspace = workspace_with_lock(&lobby());
    edit_lock(&workspace, |lock| {
        lock["bounds"][0]["range"] = ">=5.6.0".into();
        lock["imageJava"]["has"] = 25.into();
        lock["guesses"] = json!([
            {"plugin": "DiscordSRV", "version": "1.30.4", "needs": "ViaVersion", "atLeast": "5.6.0"},
        ]);
    });
    assert_findings(&workspace, "verify-said", &VERIFY);
}

#[test]
fn verify_detects_changed_request() {
    let workspace = workspace_with_lock(&lobby());
    let manifests = server("  updateStrategy: pin\n  version: 1.21.8\n  image: example.org/paper:java21\n")
        + &plugin("viabackwards", ", updateStrategy: pin, version: 5.6.0")
        + &plugin(
            "griefprevention",
            ", compatibilityOverride: {enabled: true, mode: Remove, minecraftVersions: [1.21.10]}",
        )
        + &plugin("multiverse-core", "");
    fs::write(workspace.path().join("lobby.yaml"), manifests).unwrap();
    workspace.run(&["catalog", "fetch", "-f", "lobby.yaml", "--catalog", "kept"]);
    assert_findings(&workspace, "verify-request", &VERIFY);
}

#[test]
fn verify_detects_incompatible_releases() {
    let workspace = workspace_with_lock(&lobby());
    edit_lock(&workspace, |lock| {
        lock["plugins"].as_array_mut().unwrap().retain(|plugin| plugin["name"] != "ViaVersion");
    });
    assert_findings(&workspace, "verify-together", &VERIFY);
}

#[test]
fn verify_detects_release_not_yet_eligible() {
    let workspace = workspace_with_lock(&lobby());
    let slow = |days: &str| lobby().replace("Strategy: auto", &format!("Strategy: auto\n  updateDelay: {days}"));
    fs::write(workspace.path().join("slow.yaml"), slow("7d")).unwrap();
    let verify = ["verify", "lobby.lock.json", "-f", "slow.yaml", "--catalog", "kept"];
    assert_findings(&workspace, "verify-held-back", &verify);
    fs::write(workspace.path().join("slow.yaml"), slow("60d")).unwrap();
    assert_findings(&workspace, "verify-paper-held-back", &verify);
    assert_snapshot("verify-past", &workspace.run(&[&VERIFY[..], &["--at", "2026-01-10"]].concat()));
}

#[test]
fn verify_refuses_lock_of_unknown_server() {
    let workspace = workspace_with_lock(&lobby());
    edit_lock(&workspace, |lock| lock["server"] = "games/arena".into());
    assert_snapshot("verify-no-server", &workspace.run(&VERIFY));
    // The same server under another name.
    let named = workspace.run(&[&VERIFY[..], &["--server", "lobby"]].concat());
    assert!(named.starts_with("exit 0\n-- stdout\ngames/lobby: the lock holds\n"), "{named}");
}

#[test]
fn verify_reports_impossible_request_like_explain() {
    let workspace = workspace_with_lock(&lobby());
    let impossible = lobby().replace("updateStrategy: auto", "updateStrategy: pin\n  version: 1.21.11");
    fs::write(workspace.path().join("lobby.yaml"), impossible).unwrap();
    workspace.run(&["catalog", "fetch", "-f", "lobby.yaml", "--catalog", "kept"]);
    assert_snapshot("verify-impossible", &workspace.run(&VERIFY));
}
