//! Edge (reads). Tests hypothetical queries and saved queries.

use std::fs;

use resolver::explanation::Explanation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cluster::{STATUS, lobby_in_cluster};
use super::{NOW, Workspace, assert_snapshot, lobby, plugin, server};

const EXPLAIN: [&str; 3] = ["explain", "-f", "lobby.yaml"];

#[test]
fn assumed_release_unblocks_plugin_and_is_marked() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let assume = ["--assume", "griefprevention=17.0"];
    assert_snapshot("assume", &workspace.run(&[&EXPLAIN[..], &assume].concat()));
    assert_snapshot(
        "assume-json",
        &workspace.run(&[&EXPLAIN[..], &assume, &["--format", "json", "--why-not", "1.21.11"]].concat()),
    );
    // The release exists, and only its list is assumed.
    assert_snapshot(
        "assume-listed",
        &workspace.run(&[&EXPLAIN[..], &["--assume", "GriefPrevention=16.18.5"]].concat()),
    );
}

/// An answer under assumptions, as its schema describes it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WhatIf {
    answer: String,
    assumptions: Value,
    then: Explanation,
}

#[test]
fn hypothetical_answer_round_trips_through_json() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let assumptions = ["--assume", "griefprevention=17.0", "--without", "discordsrv", "--format", "json"];
    let questions = [&[][..], &["--why-not", "1.21.11"], &["--why-not", "viabackwards=5.6.0"], &["--target", "26.9"]];
    for question in questions {
        let output = workspace.command(&[&EXPLAIN[..], &assumptions, question].concat()).output().unwrap();
        let written: Value = serde_json::from_slice(&output.stdout).unwrap();
        let read: WhatIf = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(read.answer, "whatIf", "{question:?}");
        assert_eq!(serde_json::to_value(&read).unwrap(), written, "{question:?}");
    }
}

#[test]
fn assumed_release_waits_for_update_delay() {
    let slow = lobby().replace("updateStrategy: auto", "updateStrategy: auto\n  updateDelay: 3d");
    let workspace = Workspace::new(&[("lobby.yaml", &slow)]);
    let assume = [&EXPLAIN[..], &["--assume", "griefprevention=17.0"]].concat();
    assert_snapshot("assume-waits", &workspace.run(&assume));
    let later = workspace.run(&[&assume[..], &["--at", "2026-01-25"]].concat());
    assert!(later.contains("lobby can run Paper 1.21.11"), "{later}");
}

#[test]
fn plugin_can_be_left_out_by_any_name() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let without = |name: &str| workspace.run(&[&EXPLAIN[..], &["--without", name]].concat());
    assert_snapshot("without", &without("griefprevention"));
    assert_eq!(without("griefprevention"), without("GriefPrevention"));
    let both = ["--without", "viabackwards", "--without", "griefprevention", "--assume", "discordsrv=2.0"];
    assert_snapshot("without-several", &workspace.run(&[&EXPLAIN[..], &both].concat()));
}

#[test]
fn unrequested_plugin_can_be_neither_left_out_nor_assumed() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    // ViaVersion is only needed by ViaBackwards.
    let wrong = ["--without", "viaversion", "--without", "griefprevent", "--assume", "essentials=3", "--assume", "x"];
    assert_snapshot("what-if-format", &workspace.run(&[&EXPLAIN[..], &wrong].concat()));
    assert_snapshot("what-if-unknown", &workspace.run(&[&EXPLAIN[..], &wrong[..6]].concat()));
    let dependency = workspace.run(&[&EXPLAIN[..], &["--assume", "viaversion=6.0"]].concat());
    assert!(dependency.contains("ViaVersion 6.0"), "{dependency}");
}

/// Answers a saved query in another environment: no manifests, no catalog, no upstream, another day.
fn explain_elsewhere(problem: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    run_elsewhere(problem, &[&["explain", "--problem", "problem.json"], arguments].concat())
}

fn run_elsewhere(problem: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let workspace = Workspace::new(&[("problem.json", problem)]);
    let mut command = workspace.command(arguments);
    for upstream in ["FILL", "PURPUR", "HANGAR", "MODRINTH", "DOCKER_HUB"] {
        command.env(format!("NIGHTSHIFT_{upstream}_URL"), "http://127.0.0.1:1");
    }
    let output = command.env("NIGHTSHIFT_NOW", "2027-01-01T00:00:00Z").env_remove("XDG_CACHE_HOME").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn saved_query_gives_same_bytes_elsewhere() {
    let second = server("  updateStrategy: pin\n  version: 1.21.11\n").replace("name: lobby", "name: arena");
    let workspace = Workspace::new(&[("lobby.yaml", &(lobby() + "---\n" + &second))]);
    for arguments in [
        &[][..],
        &["--format", "json"],
        &["--why-not", "1.21.11"],
        &["--why-not", "griefprevention=16.18.4"],
        &["--target", "26.9"],
        &["--at", "2025-10-20"],
        &["--without", "griefprevention", "--assume", "discordsrv=2.0"],
    ] {
        let command_line = [&EXPLAIN[..], arguments, &["--save-problem", "problem.json"]].concat();
        let local_output = workspace.command(&command_line).output().unwrap();
        let problem = fs::read_to_string(workspace.path().join("problem.json")).unwrap();
        let format = if arguments.contains(&"json") { arguments } else { &[] };
        let (code, stdout, stderr) = explain_elsewhere(&problem, format);
        assert_eq!(stdout, String::from_utf8(local_output.stdout).unwrap(), "{arguments:?}");
        assert!(!stdout.is_empty() && code == local_output.status.code(), "{arguments:?}");
        assert_eq!(stderr, String::from_utf8(local_output.stderr).unwrap(), "{arguments:?}");
    }
}

#[test]
fn saved_query_of_every_command_gives_same_bytes_elsewhere() {
    let status = format!("{STATUS}  nextWindow: Sun 25 Jan 04:00 UTC\n  nextWindowAt: 2026-01-25T04:00:00Z\n");
    let second = server("  updateStrategy: pin\n  version: 1.21.11\n").replace("name: lobby", "name: arena");
    let manifests = lobby_in_cluster().replace(STATUS, &status) + "---\n" + &second;
    let workspace = Workspace::new(&[("lobby.yaml", &manifests)]);
    for arguments in [
        &["plan"][..],
        &["plan", "--format", "json", "--at", "2026-02-01"],
        &["outdated"],
        &["ready", "1.21.11"],
        &["lock", "--server", "lobby"],
    ] {
        let command_line = [arguments, &["-f", "lobby.yaml", "--save-problem", "problem.json"]].concat();
        let local_output = workspace.command(&command_line).output().unwrap();
        let problem = fs::read_to_string(workspace.path().join("problem.json")).unwrap();
        fs::remove_file(workspace.path().join("problem.json")).unwrap();
        let at = arguments.iter().position(|&argument| argument == "--at").unwrap_or(arguments.len());
        let (code, stdout, stderr) =
            run_elsewhere(&problem, &[&arguments[..at], &["--problem", "problem.json"]].concat());
        assert_eq!(stdout, String::from_utf8(local_output.stdout).unwrap(), "{arguments:?}");
        assert!(!stdout.is_empty() && code == local_output.status.code(), "{arguments:?}");
        assert_eq!(stderr, String::from_utf8(local_output.stderr).unwrap(), "{arguments:?}");
    }
    // Only `explain` answers a query with assumptions.
    workspace.run(&["explain", "-f", "lobby.yaml", "--without", "griefprevention", "--save-problem", "problem.json"]);
    assert_snapshot("problem-supposed", &workspace.run(&["outdated", "--problem", "problem.json"]));
    assert_snapshot(
        "problem-unsaved",
        &workspace.run(&["outdated", "-f", "lobby.yaml", "--save-problem", "lobby.yaml/problem.json"]),
    );
}

#[test]
fn saved_query_can_be_asked_differently() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    workspace.run(&[&EXPLAIN[..], &["--save-problem", "problem.json"]].concat());
    let problem = fs::read_to_string(workspace.path().join("problem.json")).unwrap();
    let (_, stdout, _) = explain_elsewhere(&problem, &["--why-not", "1.21.11", "--assume", "griefprevention=17.0"]);
    let command_line = [&EXPLAIN[..], &["--why-not", "1.21.11", "--assume", "griefprevention=17.0"]].concat();
    assert_eq!(stdout, String::from_utf8(workspace.command(&command_line).output().unwrap().stdout).unwrap());
}

#[test]
fn saved_query_holds_no_secret_and_only_used_data() {
    let manifests = server("  updateStrategy: auto\n  image: example.org/paper:java21\n") + &plugin("discordsrv", "");
    let workspace = Workspace::new(&[("lobby.yaml", &manifests), ("more.yaml", &lobby())]);
    // The cache contains more data than this query uses.
    workspace.run(&["catalog", "fetch", "-f", "more.yaml"]);
    let output = workspace
        .command(&[&EXPLAIN[..], &["--save-problem", "problem.json"]].concat())
        .env("NIGHTSHIFT_SOMETHING", "secret")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = fs::read_to_string(workspace.path().join("problem.json")).unwrap();
    let problem: serde_json::Value = serde_json::from_str(&text).unwrap();
    let projects = problem["catalog"]["projects"].as_array().unwrap();
    assert_eq!(projects.iter().map(|project| project["name"].as_str().unwrap()).collect::<Vec<_>>(), ["DiscordSRV"]);
    assert_eq!(problem["question"]["now"], NOW);
    assert!(!text.contains("secret") && !text.contains(workspace.path().to_str().unwrap()));
}

#[test]
fn invalid_saved_query_is_refused() {
    let workspace = Workspace::new(&[("lock.json", "{\n  \"server\": \"games/lobby\"\n}")]);
    assert_snapshot("problem-wrong", &workspace.run(&["explain", "--problem", "lock.json"]));
    assert_snapshot("problem-missing", &workspace.run(&["explain", "--problem", "none.json"]));
    assert_snapshot("problem-and-files", &workspace.run(&["explain", "--problem", "lock.json", "-f", "lobby.yaml"]));
}
