//! Edge (reads). Tests when an answer or its hints would be applied.

use std::fs;

use super::cluster::{STATUS, lobby_in_cluster};
use super::{Desk, lobby};

/// The operator's status about the next window.
const NEXT: &str = "  nextWindow: Sun 25 Jan 04:00 UTC\n  nextWindowAt: 2026-01-25T04:00:00Z\n";

/// The last line of an answer about these objects.
fn end(objects: &str, options: &[&str]) -> String {
    let desk = Desk::new(&[("objects.yaml", objects)]);
    let answer = desk.run(&[&["explain", "-f", "objects.yaml", "--save-problem", "problem.json"], options].concat());
    // The saved query has the same last line. JSON output has none.
    assert_eq!(desk.run(&["explain", "--problem", "problem.json"]), answer);
    let json =
        desk.command(&[&["explain", "-f", "objects.yaml", "--format", "json"], options].concat()).output().unwrap();
    serde_json::from_slice::<serde_json::Value>(&json.stdout).unwrap();
    answer.lines().rfind(|line| !line.is_empty()).unwrap().to_owned()
}

/// A server whose worlds are backed up before a newer Minecraft opens them.
fn lobby_with_copies() -> String {
    lobby_in_cluster().replace("  eula: Accepted\n", "  eula: Accepted\n  backup: {}\n")
}

#[test]
fn answer_with_changes_ends_with_its_window() {
    let lobby_runs = lobby_with_copies().replace(STATUS, &format!("{STATUS}{NEXT}"));
    assert_eq!(end(&lobby_runs, &[]), "lobby is changed Sun 25 Jan 04:00 UTC; with one of these, then too.");
    assert_eq!(end(&lobby_runs, &["--why-not", "1.21.11"]), "With one of these lobby is changed Sun 25 Jan 04:00 UTC.");
    // The window is over at the later time, and no line is printed for the past.
    let written = "lobby is changed in its next window (0 4 * * 0 UTC, for 1h); with one of these, then too.";
    assert_eq!(end(&lobby_runs, &["--at", "2026-02-01"]), written);
    assert_eq!(end(&lobby_with_copies(), &[]), written);
    assert!(!end(&lobby_runs, &["--at", "2026-01-19"]).contains("is changed"));
    let by_hand = lobby_with_copies().replace("{cron: \"0 4 * * 0\"}", "{enabled: false}");
    assert_eq!(
        end(&by_hand, &["--without", "griefprevention"]),
        "lobby is changed when somebody asks for it (`nightshift.dev/apply-now`): no window is switched on."
    );
    // A first start waits for no window.
    assert!(!end(&lobby(), &[]).contains("is changed"));
}

#[test]
fn answer_warns_without_backup_before_newer_minecraft() {
    let no_copy = "No copy of the worlds is taken before a one-way step (`spec.backup`).";
    assert!(end(&lobby_in_cluster(), &[]).ends_with(&format!("with one of these, then too. {no_copy}")));
    let never = lobby_with_copies().replace("backup: {}", "backup: {beforeUpdate: Never}");
    assert!(end(&never, &["--why-not", "1.21.11"]).ends_with(no_copy));
    assert!(end(&lobby_in_cluster(), &["--without", "griefprevention"]).ends_with(no_copy), "not by a hint alone");
    assert!(!end(&lobby_with_copies(), &["--without", "griefprevention"]).contains("is taken before"));
}

#[test]
fn update_possible_after_window_comes_in_the_next_one() {
    let waits = lobby_with_copies()
        .replace(STATUS, &format!("{STATUS}{NEXT}"))
        .replace("updateStrategy: auto\n", "updateStrategy: auto\n  updateDelay: 720h\n");
    let told = end(&waits, &["--without", "griefprevention"]);
    let written = "(0 4 * * 0 UTC, for 1h)";
    let later = format!(" What solves itself comes in the first window after that {written}.");
    assert!(told.ends_with(&later), "{told}");
    // The operator has not reported a window, so the windows are printed once already.
    let untold = end(&waits.replace(NEXT, ""), &["--without", "griefprevention"]);
    assert_eq!(untold.matches(written).count(), 1, "{untold}");
}

#[test]
fn saved_query_without_windows_is_answered_without_them() {
    let desk = Desk::new(&[("objects.yaml", &lobby_in_cluster())]);
    desk.run(&["explain", "-f", "objects.yaml", "--save-problem", "problem.json"]);
    let path = desk.path().join("problem.json");
    let mut problem: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(problem.as_object_mut().unwrap().remove("schedules").is_some());
    fs::write(&path, problem.to_string()).unwrap();
    let answer = desk.run(&["explain", "--problem", "problem.json"]);
    assert!(answer.starts_with("exit 0\n") && !answer.contains("is changed"), "{answer}");
}
