//! Edge (reads). Tests queries that have an answer.

use resolver::explanation::Explanation;

use super::{Workspace, assert_snapshot, lobby, plugin, server};

#[test]
fn explain_shows_versions_blockers_and_hints() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    assert_snapshot("yes", &workspace.run(&["explain", "-f", "lobby.yaml"]));
}

#[test]
fn explain_json_is_deterministic() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let once = workspace.run(&["explain", "-f", "lobby.yaml", "--format", "json"]);
    assert_eq!(once, workspace.run(&["explain", "-f", "lobby.yaml", "--format", "json"]));
}

#[test]
fn explain_json_contains_only_explanation() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let output = workspace.command(&["explain", "-f", "lobby.yaml", "--format", "json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let explanation: Explanation = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(explanation.blocked_by(), ["GriefPrevention"]);
    let Explanation::Solved(solved) = explanation else { panic!("{explanation:?}") };
    assert_eq!((solved.server.as_str(), solved.paper.minecraft.as_str()), ("games/lobby", "1.21.10"));
}

#[test]
fn why_not_names_blockers_and_exits_with_1() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    assert_snapshot("why-not", &workspace.run(&["explain", "-f", "lobby.yaml", "--why-not", "1.21.11"]));
}

#[test]
fn why_not_possible_version_exits_with_0() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    assert_snapshot("why-not-possible", &workspace.run(&["explain", "-f", "lobby.yaml", "--why-not", "1.21.10"]));
}

#[test]
fn why_not_accepts_release_of_plugin() {
    let slow = lobby().replace("updateStrategy: auto", "updateStrategy: auto\n  updateDelay: 72h");
    let workspace = Workspace::new(&[("lobby.yaml", &lobby()), ("slow.yaml", &slow)]);
    let why = |file: &str, missed: &str| workspace.run(&["explain", "-f", file, "--why-not", missed]);
    assert_snapshot("why-not-release", &why("slow.yaml", "viabackwards=5.7.1"));
    assert_snapshot("why-not-release-older", &why("lobby.yaml", "GriefPrevention=16.18.4"));
    assert_snapshot("why-not-release-unknown", &why("lobby.yaml", "griefprevention=17.0"));
    // ViaVersion is only needed by ViaBackwards.
    assert_snapshot("why-not-release-of-nobody", &why("lobby.yaml", "viaversion=5.6.0"));
    assert_snapshot("why-not-release-unwritten", &why("lobby.yaml", "griefprevention="));
    assert!(why("lobby.yaml", "griefprevention=v16.18.5").starts_with("exit 0\n"), "the release is chosen");
}

#[test]
fn target_shows_readiness_of_each_plugin() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let target = |version: &str, more: &[&str]| {
        workspace.run(&[&["explain", "-f", "lobby.yaml", "--target", version], more].concat())
    };
    assert_snapshot("target", &target("1.21.11", &[]));
    assert_snapshot("target-json", &target("1.21.11", &["--format", "json"]));
    assert_snapshot("target-possible", &target("1.21.10", &[]));
    // A version that is not released at the time of the query, and one that never was.
    assert_snapshot("target-to-come", &target("26.9", &[]));
    assert_snapshot("target-to-come-svg", &target("26.9", &["--format", "svg"]));
    assert_snapshot("target-unknown", &target("1.20.9", &[]));
    assert_snapshot("target-and-why-not", &target("1.21.11", &["--why-not", "1.21.11"]));
}

#[test]
fn past_instant_is_answered_from_later_lists_with_note() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    assert_snapshot("at-past", &workspace.run(&["explain", "-f", "lobby.yaml", "--at", "2025-10-20"]));
}

#[test]
fn future_instant_shows_releases_after_delay() {
    let slow = lobby().replace("updateStrategy: auto", "updateStrategy: auto\n  updateDelay: 30d");
    let workspace = Workspace::new(&[("lobby.yaml", &slow)]);
    assert_snapshot("delayed", &workspace.run(&["explain", "-f", "lobby.yaml"]));
    assert_snapshot("at-coming", &workspace.run(&["explain", "-f", "lobby.yaml", "--at", "2026-02-19T12:00:00+01:00"]));
}

#[test]
fn impossible_request_is_explained_and_exits_with_1() {
    let manifests = server("  updateStrategy: pin\n  version: 1.21.11\n") + &plugin("griefprevention", "");
    let workspace = Workspace::new(&[("lobby.yaml", &manifests)]);
    assert_snapshot("impossible", &workspace.run(&["explain", "-f", "lobby.yaml"]));
}

#[test]
fn directory_is_read_like_kubectl_for_every_server() {
    let second = server("  updateStrategy: pin\n  version: 1.21.8\n").replace("name: lobby", "name: arena");
    let json = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd"}}"#;
    let workspace = Workspace::new(&[
        ("all/b.yaml", &lobby()),
        ("all/a.yml", &second),
        ("all/c.json", json),
        ("all/notes.txt", "not: [yaml"),
        ("all/deeper/d.yaml", "not: [yaml"),
    ]);
    assert_snapshot("directory", &workspace.run(&["explain", "-f", "all"]));
}

#[test]
fn stdin_accepts_kubectl_list() {
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer",
         "metadata": {"name": "lobby", "namespace": "games", "uid": "1", "managedFields": [{"manager": "kubectl"}]},
         "spec": {"updateStrategy": "auto", "updateSchedule": {"maintenanceWindow": {"cron": "@daily"}}},
         "status": {"currentVersion": "1.21.11", "unheardOf": 1}},
        {"apiVersion": "nightshift.dev/v1alpha1", "kind": "Plugin",
         "metadata": {"name": "griefprevention", "namespace": "games"},
         "spec": {"source": {"type": "modrinth", "project": "griefprevention"}, "instanceSelector": {}}}]}"#;
    let workspace = Workspace::new(&[]);
    // Its world was opened by 1.21.11, so the 1.21.10 that GriefPrevention lists is not allowed.
    assert_snapshot("stdin-list", &workspace.run_with_stdin(&["explain", "-f", "-"], list));
}

#[test]
fn plugin_matching_no_server_is_noted() {
    let elsewhere = plugin("discordsrv", "").replace("namespace: games", "namespace: shop");
    let workspace = Workspace::new(&[("lobby.yaml", &(server("  updateStrategy: auto\n") + &elsewhere))]);
    assert_snapshot("no-match", &workspace.run(&["explain", "-f", "lobby.yaml"]));
}

#[test]
fn help_is_short_and_exits_with_0() {
    let workspace = Workspace::new(&[]);
    assert_snapshot("help", &workspace.run(&["--help"]));
    assert_snapshot("help-explain", &workspace.run(&["explain", "--help"]));
    assert_snapshot("help-fetch", &workspace.run(&["catalog", "fetch", "--help"]));
}

#[test]
fn colour_is_optional_and_never_in_json() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let run = |arguments: &[&str], variable: Option<(&str, &str)>| {
        let mut command = workspace.command(&[&["explain", "-f", "lobby.yaml"], arguments].concat());
        command.envs(variable);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let plain = run(&[], None);
    assert!(!plain.contains('\u{1b}'), "no color in a pipe: {plain}");
    let colored = run(&["--color", "always"], Some(("NO_COLOR", "1")));
    assert!(colored.starts_with("\u{1b}[1mlobby can run"), "{colored}");
    assert_eq!(colored.replace("\u{1b}[1m", "").replace("\u{1b}[0m", ""), plain);
    assert_eq!(run(&[], Some(("CLICOLOR_FORCE", "1"))), colored);
    assert_eq!(run(&["--color", "never"], Some(("CLICOLOR_FORCE", "1"))), plain);
    assert!(!run(&["--format", "json", "--color", "always"], None).contains('\u{1b}'));
}
