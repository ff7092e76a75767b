//! Edge (reads). Tests compatibility facts (`--facts`): used by every answer, named in it, and rejected with their
//! position.

use std::fs;

use super::{Desk, assert_shown, lobby};

/// A fact about two plugins of the lobby.
pub(super) const FACTS: &str = "facts:\n- plugin: DiscordSRV\n  releases: '>=1.28'\n  \
                                requires: {plugin: GriefPrevention, version: '<=16.18.3'}\n  \
                                source: the staff channel\n  date: 2026-01-10\n";

fn desk(facts: &str) -> Desk {
    Desk::new(&[("lobby.yaml", &lobby()), ("facts.yaml", facts)])
}

const EXPLAIN: [&str; 5] = ["explain", "-f", "lobby.yaml", "--facts", "facts.yaml"];

#[test]
fn facts_bind_and_name_their_source() {
    let desk = desk(FACTS);
    let answer = desk.run(&EXPLAIN);
    assert_shown("facts", &answer);
    let mut by_environment = desk.command(&EXPLAIN[..3]);
    by_environment.env("NIGHTSHIFT_FACTS", "facts.yaml");
    assert_eq!(super::shown(&by_environment.output().unwrap()), answer);
    assert_ne!(desk.run(&EXPLAIN[..3]), answer, "without the file nobody knows it");
}

#[test]
fn facts_are_kept_in_saved_query_and_lock() {
    // The fact is about every release, so it constrains two chosen ones.
    let desk = desk(&FACTS.replace("  releases: '>=1.28'\n", ""));
    let answer = desk.run(&[&EXPLAIN[..], &["--save-problem", "problem.json"]].concat());
    desk.run(&["lock", "-f", "lobby.yaml", "--facts", "facts.yaml", "-o", "locks"]);
    let lock = fs::read_to_string(desk.path().join("locks/games.lobby.lock.json")).unwrap();
    assert!(lock.contains("the staff channel"), "{lock}");
    assert!(
        desk.run(&["verify", "locks/games.lobby.lock.json", "-f", "lobby.yaml", "--facts", "facts.yaml"])
            .starts_with("exit 0\n")
    );
    // Without the fact, another version set would be chosen.
    assert!(desk.run(&["verify", "locks/games.lobby.lock.json", "-f", "lobby.yaml"]).starts_with("exit 1\n"));
    fs::remove_file(desk.path().join("facts.yaml")).unwrap();
    assert_eq!(desk.run(&["explain", "--problem", "problem.json"]), answer);
}

#[test]
fn invalid_facts_are_refused_with_place() {
    assert_shown("facts-range", &desk(&FACTS.replace("<=16.18.3", ">=16, <<17")).run(&EXPLAIN));
    assert_shown("facts-form", &desk(&FACTS.replace("source:", "sauce:")).run(&EXPLAIN));
    assert_shown("facts-missing", &Desk::new(&[("lobby.yaml", &lobby())]).run(&EXPLAIN));
}
