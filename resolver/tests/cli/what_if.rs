//! Edge (reads). Tests hypothetical queries and saved queries.

use std::fs;

use resolver::explain::Explanation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cluster::{STATUS, lobby_in_cluster};
use super::{Desk, NOW, assert_shown, lobby, plugin, server};

const EXPLAIN: [&str; 3] = ["explain", "-f", "lobby.yaml"];

#[test]
fn assumed_release_unblocks_plugin_and_is_marked() {
    let desk = Desk::new(&[("lobby.yaml", &lobby())]);
    let assume = ["--assume", "griefprevention=17.0"];
    assert_shown("assume", &desk.run(&[&EXPLAIN[..], &assume].concat()));
    assert_shown(
        "assume-json",
        &desk.run(&[&EXPLAIN[..], &assume, &["--format", "json", "--why-not", "1.21.11"]].concat()),
    );
    // The release exists, and only its list is assumed.
    assert_shown("assume-listed", &desk.run(&[&EXPLAIN[..], &["--assume", "GriefPrevention=16.18.5"]].concat()));
}

/// An answer under assumptions, as its schema describes it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WhatIf {
    answer: String,
    supposed: Value,
    then: Explanation,
}

#[test]
fn hypothetical_answer_round_trips_through_json() {
    let desk = Desk::new(&[("lobby.yaml", &lobby())]);
    let suppose = ["--assume", "griefprevention=17.0", "--without", "discordsrv", "--format", "json"];
    let questions = [&[][..], &["--why-not", "1.21.11"], &["--why-not", "viabackwards=5.6.0"], &["--target", "26.9"]];
    for question in questions {
        let output = desk.command(&[&EXPLAIN[..], &suppose, question].concat()).output().unwrap();
        let written: Value = serde_json::from_slice(&output.stdout).unwrap();
        let read: WhatIf = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(read.answer, "whatIf", "{question:?}");
        assert_eq!(serde_json::to_value(&read).unwrap(), written, "{question:?}");
    }
}

#[test]
fn assumed_release_waits_for_update_delay() {
    let slow = lobby().replace("updateStrategy: auto", "updateStrategy: auto\n  updateDelay: 3d");
    let desk = Desk::new(&[("lobby.yaml", &slow)]);
    let assume = [&EXPLAIN[..], &["--assume", "griefprevention=17.0"]].concat();
    assert_shown("assume-waits", &desk.run(&assume));
    let later = desk.run(&[&assume[..], &["--at", "2026-01-25"]].concat());
    assert!(later.contains("lobby can run Paper 1.21.11"), "{later}");
}

#[test]
fn plugin_can_be_left_out_by_any_name() {
    let desk = Desk::new(&[("lobby.yaml", &lobby())]);
    let without = |name: &str| desk.run(&[&EXPLAIN[..], &["--without", name]].concat());
    assert_shown("without", &without("griefprevention"));
    assert_eq!(without("griefprevention"), without("GriefPrevention"));
    let both = ["--without", "viabackwards", "--without", "griefprevention", "--assume", "discordsrv=2.0"];
    assert_shown("without-several", &desk.run(&[&EXPLAIN[..], &both].concat()));
}

#[test]
fn unrequested_plugin_can_be_neither_left_out_nor_assumed() {
    let desk = Desk::new(&[("lobby.yaml", &lobby())]);
    // ViaVersion is only needed by ViaBackwards.
    let wrong = ["--without", "viaversion", "--without", "griefprevent", "--assume", "essentials=3", "--assume", "x"];
    assert_shown("what-if-format", &desk.run(&[&EXPLAIN[..], &wrong].concat()));
    assert_shown("what-if-unknown", &desk.run(&[&EXPLAIN[..], &wrong[..6]].concat()));
    let dependency = desk.run(&[&EXPLAIN[..], &["--assume", "viaversion=6.0"]].concat());
    assert!(dependency.contains("ViaVersion 6.0"), "{dependency}");
}

/// Answers a saved query in another environment: no manifests, no catalog, no upstream, another day.
fn elsewhere(problem: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    asked_elsewhere(problem, &[&["explain", "--problem", "problem.json"], arguments].concat())
}

fn asked_elsewhere(problem: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let desk = Desk::new(&[("problem.json", problem)]);
    let mut command = desk.command(arguments);
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
    let desk = Desk::new(&[("lobby.yaml", &(lobby() + "---\n" + &second))]);
    for arguments in [
        &[][..],
        &["--format", "json"],
        &["--why-not", "1.21.11"],
        &["--why-not", "griefprevention=16.18.4"],
        &["--target", "26.9"],
        &["--at", "2025-10-20"],
        &["--without", "griefprevention", "--assume", "discordsrv=2.0"],
    ] {
        let asked = [&EXPLAIN[..], arguments, &["--save-problem", "problem.json"]].concat();
        let here = desk.command(&asked).output().unwrap();
        let problem = fs::read_to_string(desk.path().join("problem.json")).unwrap();
        let format = if arguments.contains(&"json") { arguments } else { &[] };
        let (code, answer, notes) = elsewhere(&problem, format);
        assert_eq!(answer, String::from_utf8(here.stdout).unwrap(), "{arguments:?}");
        assert!(!answer.is_empty() && code == here.status.code(), "{arguments:?}");
        assert_eq!(notes, String::from_utf8(here.stderr).unwrap(), "{arguments:?}");
    }
}

#[test]
fn saved_query_of_every_command_gives_same_bytes_elsewhere() {
    let told = format!("{STATUS}  nextWindow: Sun 25 Jan 04:00 UTC\n  nextWindowAt: 2026-01-25T04:00:00Z\n");
    let second = server("  updateStrategy: pin\n  version: 1.21.11\n").replace("name: lobby", "name: arena");
    let manifests = lobby_in_cluster().replace(STATUS, &told) + "---\n" + &second;
    let desk = Desk::new(&[("lobby.yaml", &manifests)]);
    for arguments in [
        &["plan"][..],
        &["plan", "--format", "json", "--at", "2026-02-01"],
        &["outdated"],
        &["ready", "1.21.11"],
        &["lock", "--server", "lobby"],
    ] {
        let asked = [arguments, &["-f", "lobby.yaml", "--save-problem", "problem.json"]].concat();
        let here = desk.command(&asked).output().unwrap();
        let problem = fs::read_to_string(desk.path().join("problem.json")).unwrap();
        fs::remove_file(desk.path().join("problem.json")).unwrap();
        let at = arguments.iter().position(|&argument| argument == "--at").unwrap_or(arguments.len());
        let (code, answer, notes) =
            asked_elsewhere(&problem, &[&arguments[..at], &["--problem", "problem.json"]].concat());
        assert_eq!(answer, String::from_utf8(here.stdout).unwrap(), "{arguments:?}");
        assert!(!answer.is_empty() && code == here.status.code(), "{arguments:?}");
        assert_eq!(notes, String::from_utf8(here.stderr).unwrap(), "{arguments:?}");
    }
    // Only `explain` answers a query with assumptions.
    desk.run(&["explain", "-f", "lobby.yaml", "--without", "griefprevention", "--save-problem", "problem.json"]);
    assert_shown("problem-supposed", &desk.run(&["outdated", "--problem", "problem.json"]));
    assert_shown(
        "problem-unsaved",
        &desk.run(&["outdated", "-f", "lobby.yaml", "--save-problem", "lobby.yaml/problem.json"]),
    );
}

#[test]
fn saved_query_can_be_asked_differently() {
    let desk = Desk::new(&[("lobby.yaml", &lobby())]);
    desk.run(&[&EXPLAIN[..], &["--save-problem", "problem.json"]].concat());
    let problem = fs::read_to_string(desk.path().join("problem.json")).unwrap();
    let (_, answer, _) = elsewhere(&problem, &["--why-not", "1.21.11", "--assume", "griefprevention=17.0"]);
    let here = [&EXPLAIN[..], &["--why-not", "1.21.11", "--assume", "griefprevention=17.0"]].concat();
    assert_eq!(answer, String::from_utf8(desk.command(&here).output().unwrap().stdout).unwrap());
}

#[test]
fn saved_query_holds_no_secret_and_only_used_data() {
    let manifests = server("  updateStrategy: auto\n  image: example.org/paper:java21\n") + &plugin("discordsrv", "");
    let desk = Desk::new(&[("lobby.yaml", &manifests), ("more.yaml", &lobby())]);
    // The cache contains more data than this query uses.
    desk.run(&["catalog", "fetch", "-f", "more.yaml"]);
    let output = desk
        .command(&[&EXPLAIN[..], &["--save-problem", "problem.json"]].concat())
        .env("NIGHTSHIFT_SOMETHING", "secret")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = fs::read_to_string(desk.path().join("problem.json")).unwrap();
    let problem: serde_json::Value = serde_json::from_str(&text).unwrap();
    let projects = problem["catalog"]["projects"].as_array().unwrap();
    assert_eq!(projects.iter().map(|project| project["name"].as_str().unwrap()).collect::<Vec<_>>(), ["DiscordSRV"]);
    assert_eq!(problem["question"]["now"], NOW);
    assert!(!text.contains("secret") && !text.contains(desk.path().to_str().unwrap()));
}

#[test]
fn invalid_saved_query_is_refused() {
    let desk = Desk::new(&[("lock.json", "{\n  \"server\": \"games/lobby\"\n}")]);
    assert_shown("problem-wrong", &desk.run(&["explain", "--problem", "lock.json"]));
    assert_shown("problem-missing", &desk.run(&["explain", "--problem", "none.json"]));
    assert_shown("problem-and-files", &desk.run(&["explain", "--problem", "lock.json", "-f", "lobby.yaml"]));
}
