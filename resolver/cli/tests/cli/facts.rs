//! Edge (reads). Tests compatibility facts (`--facts`): used by every answer, named in it, and rejected with their
//! position.

use std::fs;

use super::{Workspace, assert_snapshot, lobby};

/// A fact about two plugins of the lobby.
pub(super) const FACTS: &str = "facts:\n- plugin: DiscordSRV\n  releases: '>=1.28'\n  \
                                requires: {plugin: GriefPrevention, version: '<=16.18.3'}\n  \
                                source: the staff channel\n  date: 2026-01-10\n";

fn workspace_with_facts(facts: &str) -> Workspace {
    Workspace::new(&[("lobby.yaml", &lobby()), ("facts.yaml", facts)])
}

const EXPLAIN: [&str; 5] = ["explain", "-f", "lobby.yaml", "--facts", "facts.yaml"];

#[test]
fn facts_bind_and_name_their_source() {
    let workspace = workspace_with_facts(FACTS);
    let output = workspace.run(&EXPLAIN);
    assert_snapshot("facts", &output);
    let mut by_environment = workspace.command(&EXPLAIN[..3]);
    by_environment.env("NIGHTSHIFT_FACTS", "facts.yaml");
    assert_eq!(super::output_text(&by_environment.output().unwrap()), output);
    assert_ne!(workspace.run(&EXPLAIN[..3]), output, "the fact applies only with the file");
}

#[test]
fn facts_are_kept_in_saved_query_and_lock() {
    // The fact is about every release, so it constrains two chosen ones.
    let workspace = workspace_with_facts(&FACTS.replace("  releases: '>=1.28'\n", ""));
    let output = workspace.run(&[&EXPLAIN[..], &["--save-problem", "problem.json"]].concat());
    workspace.run(&["lock", "-f", "lobby.yaml", "--facts", "facts.yaml", "-o", "locks"]);
    let lock = fs::read_to_string(workspace.path().join("locks/games.lobby.lock.json")).unwrap();
    assert!(lock.contains("the staff channel"), "{lock}");
    assert!(
        workspace
            .run(&["verify", "locks/games.lobby.lock.json", "-f", "lobby.yaml", "--facts", "facts.yaml"])
            .starts_with("exit 0\n")
    );
    // Without the fact, another version set would be chosen.
    assert!(workspace.run(&["verify", "locks/games.lobby.lock.json", "-f", "lobby.yaml"]).starts_with("exit 1\n"));
    fs::remove_file(workspace.path().join("facts.yaml")).unwrap();
    assert_eq!(workspace.run(&["explain", "--problem", "problem.json"]), output);
}

#[test]
fn invalid_facts_are_refused_with_place() {
    assert_snapshot("facts-range", &workspace_with_facts(&FACTS.replace("<=16.18.3", ">=16, <<17")).run(&EXPLAIN));
    assert_snapshot("facts-form", &workspace_with_facts(&FACTS.replace("source:", "sauce:")).run(&EXPLAIN));
    assert_snapshot("facts-missing", &Workspace::new(&[("lobby.yaml", &lobby())]).run(&EXPLAIN));
}
