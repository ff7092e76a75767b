//! Edge (reads). Tests invalid input: the position, the problem and the suggested fix.

use std::fs;
use std::path::Path;

use super::{Desk, assert_shown, lobby, plugin, server};

fn refused(name: &str, text: &str) {
    let desk = Desk::new(&[("lobby.yaml", text)]);
    assert_shown(name, &desk.run(&["explain", "-f", "lobby.yaml"]));
}

#[test]
fn misspelt_field_gets_nearest_suggestion() {
    refused("misspelt-field", &server("  updateStrateg: auto\n  updateStrategy: auto\n"));
}

#[test]
fn unknown_strategy_gets_nearest_suggestion() {
    refused("unknown-strategy", &server("  updateStrategy: latset\n"));
}

#[test]
fn misspelt_project_gets_nearest_suggestion() {
    let manifests = server("  updateStrategy: auto\n") + &plugin("viabackward", "");
    refused("misspelt-project", &manifests);
}

#[test]
fn numeric_yaml_version_must_be_quoted() {
    refused("version-number", &server("  updateStrategy: pin\n  version: 1.20\n"));
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
    refused("many", &manifests);
}

#[test]
fn pin_errors_are_reported_once_schema_is_valid() {
    let manifests = server("  updateStrategy: build-pin\n") + &plugin("discordsrv", ", updateStrategy: pin");
    refused("pins", &manifests);
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
    refused("jars", &manifests);
}

#[test]
fn jar_of_no_release_is_named_with_available_ones() {
    let manifests = lobby().replace("project: discordsrv}", "project: discordsrv, jars: [DiscordSRV, DiscordSRVChat]}");
    refused("no-such-jar", &manifests);
}

#[test]
fn unknown_nightshift_kind_differs_from_foreign_kind() {
    let wrong = lobby().replace("kind: PaperMCServer", "kind: PaperMcServers").replacen(
        "v1alpha1\nkind: Plugin",
        "v1\nkind: Plugin",
        1,
    );
    refused("kinds", &wrong);
}

#[test]
fn duplicate_object_is_refused() {
    refused("twice", &(lobby() + "---\n" + &lobby()));
}

#[test]
fn invalid_manifest_yaml_is_refused_with_line() {
    refused("no-yaml", "kind: PaperMCServer\nspec: {a: [1\nmetadata:\n");
    refused("two-keys", &server("  updateStrategy: auto\n  updateStrategy: pin\n"));
}

#[test]
fn empty_input_is_an_error() {
    refused("empty", "");
    refused("no-server", &plugin("discordsrv", ""));
    let desk = Desk::new(&[("none/readme.txt", "")]);
    assert_shown("empty-directory", &desk.run(&["explain", "-f", "none"]));
    assert_shown("no-file", &desk.run(&["explain", "-f", "lobby.yaml"]));
    assert_shown("empty-stdin", &desk.run_with_stdin(&["explain", "-f", "-"], "# nothing\n---\n"));
}

#[test]
fn invalid_arguments_exit_with_2() {
    let desk = Desk::new(&[]);
    assert_shown("no-filename", &desk.run(&["explain"]));
    assert_shown("wrong-at", &desk.run(&["explain", "-f", "x", "--at", "tomorrow"]));
}

/// The API server's decision on each of these files is checked against a real one (crds/examples). This command must
/// agree.
#[test]
fn cli_and_api_server_refuse_same_manifests() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/examples");
    let of = |folder: &Path| {
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
        paths.sort();
        paths
    };
    let desk = Desk::new(&[]);
    // The catalog is empty: violations are found before anything is read.
    fs::create_dir(desk.path().join("empty")).unwrap();
    let said = |path: &Path| desk.run(&["explain", "--catalog", "empty", "-f", path.to_str().unwrap()]);
    let wrong = of(&examples.join("refused"));
    assert!(wrong.len() >= 20, "{} examples", wrong.len());
    for path in wrong {
        let name = path.display().to_string();
        assert!(said(&path).contains(&format!("{name}:")), "{name} is not refused:\n{}", said(&path));
    }
    for path in of(&examples) {
        let name = path.display().to_string();
        let problem = format!("{name}:");
        let complaints: Vec<String> = said(&path)
            .lines()
            .filter(|line| line.starts_with(&problem) && !line.contains("is left aside"))
            .map(str::to_owned)
            .collect();
        assert_eq!(complaints, Vec::<String>::new(), "{name}");
    }
}
