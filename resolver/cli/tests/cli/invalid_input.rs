//! Edge (reads). Tests invalid input: the position, the problem and the suggested fix.

use std::fs;
use std::path::Path;

use super::{Workspace, assert_snapshot, lobby, plugin, server};

fn assert_refused(name: &str, text: &str) {
    let workspace = Workspace::new(&[("lobby.yaml", text)]);
    assert_snapshot(name, &workspace.run(&["explain", "-f", "lobby.yaml"]));
}

#[test]
fn misspelt_field_gets_nearest_suggestion() {
    assert_refused("misspelt-field", &server("  updateStrateg: auto\n  updateStrategy: auto\n"));
}

#[test]
fn unknown_strategy_gets_nearest_suggestion() {
    assert_refused("unknown-strategy", &server("  updateStrategy: latset\n"));
}

#[test]
fn misspelt_project_gets_nearest_suggestion() {
    let manifests = server("  updateStrategy: auto\n") + &plugin("viabackward", "");
    assert_refused("misspelt-project", &manifests);
}

#[test]
fn numeric_yaml_version_must_be_quoted() {
    assert_refused("version-number", &server("  updateStrategy: pin\n  version: 1.20\n"));
}

#[test]
fn errors_of_several_objects_are_reported_in_file_order() {
    let manifests = lobby()
        .replace(
            "updateStrategy: auto",
            "updateStrategy: build-pin\n  updateDelay: 5 minutes\n  timeZone: Europe/Berlim",
        )
        .replace("project: discordsrv", "projekt: discordsrv")
        .replace("project: griefprevention", "project: 'https://modrinth.com/plugin/griefprevention'");
    assert_refused("many", &manifests);
}

#[test]
fn pin_errors_are_reported_once_schema_is_valid() {
    let manifests = server("  updateStrategy: build-pin\n") + &plugin("discordsrv", ", updateStrategy: pin");
    assert_refused("pins", &manifests);
}

#[test]
fn invalid_jar_names_are_refused_with_advice() {
    let jars = |project: &str, jars: &str| {
        plugin(project, "").replace(&format!("project: {project}}}"), &format!("project: {project}, jars: [{jars}]}}"))
    };
    let manifests = server("  updateStrategy: auto\n")
        + &jars("discordsrv", "a/b, ''")
        + &jars("viabackwards", "ViaBackwards, viabackwards, ViaBackwards-5.6.0.jar")
        + &jars("griefprevention", "GriefPrevention").replace("type: modrinth", "type: hangar");
    assert_refused("jars", &manifests);
}

#[test]
fn jar_of_no_release_is_named_with_available_ones() {
    let manifests = lobby().replace("project: discordsrv}", "project: discordsrv, jars: [DiscordSRV, DiscordSRVChat]}");
    assert_refused("no-such-jar", &manifests);
}

#[test]
fn unknown_nightshift_kind_differs_from_foreign_kind() {
    let wrong = lobby().replace("kind: PaperMCServer", "kind: PaperMcServers").replacen(
        "v1alpha1\nkind: Plugin",
        "v1\nkind: Plugin",
        1,
    );
    assert_refused("kinds", &wrong);
}

#[test]
fn duplicate_object_is_refused() {
    assert_refused("twice", &(lobby() + "---\n" + &lobby()));
}

#[test]
fn invalid_manifest_yaml_is_refused_with_line() {
    assert_refused("no-yaml", "kind: PaperMCServer\nspec: {a: [1\nmetadata:\n");
    assert_refused("two-keys", &server("  updateStrategy: auto\n  updateStrategy: pin\n"));
}

#[test]
fn empty_input_is_an_error() {
    assert_refused("empty", "");
    assert_refused("no-server", &plugin("discordsrv", ""));
    let workspace = Workspace::new(&[("none/readme.txt", "")]);
    assert_snapshot("empty-directory", &workspace.run(&["explain", "-f", "none"]));
    assert_snapshot("no-file", &workspace.run(&["explain", "-f", "lobby.yaml"]));
    assert_snapshot("empty-stdin", &workspace.run_with_stdin(&["explain", "-f", "-"], "# nothing\n---\n"));
}

#[test]
fn invalid_arguments_exit_with_2() {
    let workspace = Workspace::new(&[]);
    assert_snapshot("no-filename", &workspace.run(&["explain"]));
    assert_snapshot("wrong-at", &workspace.run(&["explain", "-f", "x", "--at", "tomorrow"]));
}

/// The API server's decision on each of these files is checked against a real one (crds/examples). This command must
/// agree.
#[test]
fn cli_and_api_server_refuse_same_manifests() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds/examples");
    let of = |folder: &Path| {
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
        paths.sort();
        paths
    };
    let workspace = Workspace::new(&[]);
    // The catalog is empty: violations are found before anything is read.
    fs::create_dir(workspace.path().join("empty")).unwrap();
    let explain = |path: &Path| workspace.run(&["explain", "--catalog", "empty", "-f", path.to_str().unwrap()]);
    let wrong = of(&examples.join("refused"));
    assert!(wrong.len() >= 20, "{} examples", wrong.len());
    for path in wrong {
        let name = path.display().to_string();
        assert!(explain(&path).contains(&format!("{name}:")), "{name} is not refused:\n{}", explain(&path));
    }
    for path in of(&examples) {
        let name = path.display().to_string();
        let problem = format!("{name}:");
        let violations: Vec<String> = explain(&path)
            .lines()
            .filter(|line| line.starts_with(&problem) && !line.contains("is ignored"))
            .map(str::to_owned)
            .collect();
        assert_eq!(violations, Vec::<String>::new(), "{name}");
    }
}
