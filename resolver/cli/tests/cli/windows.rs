//! Edge (reads). Tests when an answer or its hints would be applied.

use std::fs;

use super::cluster::{STATUS, lobby_in_cluster};
use super::{Workspace, lobby};

/// The operator's status about the next window.
const NEXT: &str = "  nextWindow: Sun 25 Jan 04:00 UTC\n  nextWindowAt: 2026-01-25T04:00:00Z\n";

/// The last line of an answer about these objects.
fn last_line(objects: &str, options: &[&str]) -> String {
    let workspace = Workspace::new(&[("objects.yaml", objects)]);
    let output =
        workspace.run(&[&["explain", "-f", "objects.yaml", "--save-problem", "problem.json"], options].concat());
    // The saved query has the same last line. JSON output has none.
    assert_eq!(workspace.run(&["explain", "--problem", "problem.json"]), output);
    let json = workspace
        .command(&[&["explain", "-f", "objects.yaml", "--format", "json"], options].concat())
        .output()
        .unwrap();
    serde_json::from_slice::<serde_json::Value>(&json.stdout).unwrap();
    output.lines().rfind(|line| !line.is_empty()).unwrap().to_owned()
}

/// A server whose worlds are backed up before a newer Minecraft opens them.
fn lobby_with_backups() -> String {
    lobby_in_cluster().replace("  eula: Accepted\n", "  eula: Accepted\n  backup: {}\n")
}

#[test]
fn answer_with_changes_ends_with_its_window() {
    let lobby_runs = lobby_with_backups().replace(STATUS, &format!("{STATUS}{NEXT}"));
    assert_eq!(
        last_line(&lobby_runs, &[]),
        "lobby is changed Sun 25 Jan 04:00 UTC. The same applies with one of these options."
    );
    assert_eq!(
        last_line(&lobby_runs, &["--why-not", "1.21.11"]),
        "With one of these options, lobby is changed Sun 25 Jan 04:00 UTC."
    );
    // The window of the status is over at the later time, and no line is printed for the past.
    let with_options = |when: &str| format!("lobby is changed {when}. The same applies with one of these options.");
    assert_eq!(last_line(&lobby_runs, &["--at", "2026-02-01"]), with_options("Sun 1 Feb 04:00 UTC"));
    assert_eq!(last_line(&lobby_with_backups(), &[]), with_options("Sun 25 Jan 04:00 UTC"));
    assert!(!last_line(&lobby_runs, &["--at", "2026-01-19"]).contains("is changed"));
    let manual = lobby_with_backups().replace("{cron: \"0 4 * * 0\"}", "{enabled: false}");
    assert_eq!(
        last_line(&manual, &["--without", "griefprevention"]),
        "lobby is changed on request (`nightshift.dev/apply-now`): no window is enabled."
    );
    // A first start waits for no window.
    assert!(!last_line(&lobby(), &[]).contains("is changed"));
}

#[test]
fn answer_warns_without_backup_before_newer_minecraft() {
    let warning = "No backup of the worlds is taken before a one-way step (`spec.backup`).";
    let disabled = lobby_with_backups().replace("backup: {}", "backup: {beforeUpdate: Never}");
    assert!(last_line(&disabled, &[]).ends_with(&format!("The same applies with one of these options. {warning}")));
    assert!(last_line(&disabled, &["--why-not", "1.21.11"]).ends_with(warning));
    assert!(
        last_line(&disabled, &["--without", "griefprevention"]).ends_with(warning),
        "the chosen versions get the warning too"
    );
    for with_backups in [lobby_with_backups(), lobby_in_cluster()] {
        assert!(!last_line(&with_backups, &["--without", "griefprevention"]).contains("is taken before"));
    }
}

#[test]
fn update_possible_after_window_comes_in_the_next_one() {
    let waits = lobby_with_backups()
        .replace(STATUS, &format!("{STATUS}{NEXT}"))
        .replace("updateStrategy: auto\n", "updateStrategy: auto\n  updateDelay: 720h\n");
    let with_next_window = last_line(&waits, &["--without", "griefprevention"]);
    let written = "(0 4 * * 0 UTC, for 1h)";
    let later =
        format!(" Updates that become possible by themselves are applied in the first window after that {written}.");
    assert!(with_next_window.ends_with(&later), "{with_next_window}");
    // The operator has not reported a window, so the windows are printed once already.
    let without_next_window = last_line(&waits.replace(NEXT, ""), &["--without", "griefprevention"]);
    assert_eq!(without_next_window.matches(written).count(), 1, "{without_next_window}");
}

#[test]
fn saved_query_without_windows_is_answered_without_them() {
    let workspace = Workspace::new(&[("objects.yaml", &lobby_in_cluster())]);
    workspace.run(&["explain", "-f", "objects.yaml", "--save-problem", "problem.json"]);
    let path = workspace.path().join("problem.json");
    let mut problem: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(problem.as_object_mut().unwrap().remove("schedules").is_some());
    fs::write(&path, problem.to_string()).unwrap();
    let output = workspace.run(&["explain", "--problem", "problem.json"]);
    assert!(output.starts_with("exit 0\n") && !output.contains("is changed"), "{output}");
}
