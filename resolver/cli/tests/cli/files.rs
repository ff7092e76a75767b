//! Edge (reads). Tests plugins that are named by a URL and a checksum.

use std::fs;

use fixtures::jar::{self, PluginYml};
use sha2::{Digest, Sha256};

use super::cluster::STATUS;
use super::{REPLAY, Workspace, assert_snapshot, plugin, server};

/// Stores a JAR in the cache as if it had been downloaded, because the replay does not support https. Returns its
/// sha256.
fn cache_jar(yml: &PluginYml) -> String {
    let jar = jar::plugin(yml);
    let sha256 = hex::encode(Sha256::digest(&jar));
    let folder = REPLAY.cache.path().join("nightshift/catalog/files/sha256");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(&sha256), jar).unwrap();
    sha256
}

/// A Plugin named `house-rules` with this source.
fn house_rules(source: &str) -> String {
    format!(
        "---\napiVersion: nightshift.dev/v1alpha1\nkind: Plugin\nmetadata: {{name: house-rules, namespace: games}}\n\
         spec:\n  source: {{{source}}}\n  instanceSelector: {{}}\n"
    )
}

fn file_plugin(sha256: &str) -> String {
    house_rules(&format!("type: url, url: \"https://example.org/HouseRules.jar\", checksum: \"{sha256}\""))
}

fn assert_explained(name: &str, plugins: &str) {
    let workspace = Workspace::new(&[("lobby.yaml", &(server("  updateStrategy: auto\n") + plugins))]);
    assert_snapshot(name, &workspace.run(&["explain", "-f", "lobby.yaml"]));
}

fn descriptor() -> PluginYml {
    let mut yml = PluginYml::new("HouseRules", "2.1");
    yml.api_version = Some("1.21".to_owned());
    yml
}

#[test]
fn file_plugin_resolves_with_dependency_from_site() {
    let mut yml = descriptor();
    yml.depend = vec!["GriefPrevention".to_owned()];
    assert_explained("file", &(file_plugin(&cache_jar(&yml)) + &plugin("griefprevention", "")));
}

#[test]
fn file_plugin_missing_dependency_is_named() {
    let mut yml = descriptor();
    yml.depend = vec!["Vault".to_owned()];
    assert_explained("file-needs-vault", &file_plugin(&format!("sha256:{}", cache_jar(&yml).to_uppercase())));
}

#[test]
fn file_plugin_over_http_is_refused() {
    let http = file_plugin(&"ab".repeat(32)).replace("https://", "http://");
    assert_explained("file-http", &http);
}

#[test]
fn file_plugin_without_checksum_is_refused() {
    assert_explained("file-without-checksum", &house_rules("type: url, url: \"https://example.org/HouseRules.jar\""));
}

#[test]
fn file_plugin_url_password_is_refused_and_not_printed() {
    let secret = file_plugin(&"ab".repeat(32)).replace("https://", "https://me:hunter2@");
    assert_explained("file-with-password", &secret);
}

#[test]
fn file_plugin_url_token_is_never_printed() {
    let unavailable = file_plugin(&"cd".repeat(32)).replace("example.org", "10.0.0.1");
    for plugin in [file_plugin(&cache_jar(&descriptor())), unavailable] {
        let plugin = plugin.replace("HouseRules.jar", "HouseRules.jar?token=hunter2");
        let workspace = Workspace::new(&[("lobby.yaml", &(server("  updateStrategy: auto\n") + &plugin))]);
        for format in ["human", "json", "svg"] {
            let printed = workspace.run(&["explain", "-f", "lobby.yaml", "--format", format]);
            assert!(printed.contains("HouseRules") && !printed.contains("hunter2"), "{format}: {printed}");
        }
        for command in ["outdated", "plan"] {
            for format in ["human", "json"] {
                let printed = workspace.run(&[command, "-f", "lobby.yaml", "--format", format]);
                assert!(!printed.contains("hunter2"), "{command} {format}: {printed}");
            }
        }
    }
}

#[test]
fn file_plugin_errors_are_all_reported() {
    let wrong = house_rules("type: url, project: warps") + &plugin("viaversion", "");
    assert_explained("file-many", &wrong);
    let wrong = file_plugin(&"ab".repeat(32))
        .replace("instanceSelector", "updateStrategy: pin\n  version: \"2\"\n  instanceSelector");
    let swapped = plugin("viaversion", "").replace("modrinth,", "modrinth, url: \"https://example.org/x.jar\",");
    assert_explained("file-pinned", &(wrong + &swapped));
}

#[test]
fn file_plugin_unavailable_leaves_answer_open() {
    // Addresses in a private network are never downloaded, so no request is sent.
    let inside = file_plugin(&"cd".repeat(32)).replace("example.org", "10.0.0.1");
    assert_explained("file-inside", &inside);
}

/// Plugins of two files that both have the name `HouseRules`. `more` is added to the spec of the second one.
fn two_files(more: &str) -> String {
    let mut later = descriptor();
    "2.2".clone_into(&mut later.version);
    let other = file_plugin(&cache_jar(&later)).replace("name: house-rules", "name: more-rules");
    let other =
        other.replace("HouseRules", "MoreRules").replace("instanceSelector", &format!("{more}instanceSelector"));
    file_plugin(&cache_jar(&descriptor())) + &other
}

#[test]
fn duplicate_plugin_name_is_first_error_and_prevents_lock() {
    let with_both = |more: &str| server(&format!("  updateStrategy: auto\n{more}")) + &two_files("");
    let manifests = [("lobby.yaml", with_both("")), ("runs.yaml", with_both(STATUS))];
    let [lobby, runs] = manifests.each_ref().map(|(name, text)| (*name, text.as_str()));
    let workspace = Workspace::new(&[lobby, runs, ("locks/games.lobby.lock.json", "{}")]);
    let ran = |arguments: &[&str]| {
        let output = workspace.command(arguments).output().unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), stdout, stderr)
    };
    let conflict = "HouseRules-2.1.jar and HouseRules-2.2.jar share the plugin name HouseRules, and a server loads only one of them: \
                 lobby is not started until one of them is removed.\n";
    let (status, stdout, _) = ran(&["explain", "-f", "lobby.yaml"]);
    assert!(status == Some(1) && stdout.starts_with(conflict), "{status:?} {stdout}");
    let (status, stdout, _) = ran(&["explain", "-f", "runs.yaml"]);
    assert!(
        status == Some(1) && stdout.contains("lobby keeps its running versions until one of them is removed."),
        "{stdout}"
    );
    assert!(!stdout.contains("is changed"), "no window is printed: {stdout}");
    let (status, stdout, stderr) = ran(&["lock", "-f", "lobby.yaml", "-o", "locks"]);
    assert_eq!((status, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.starts_with(conflict) && stderr.contains("games/lobby: no lock was written"), "{stderr}");
    assert_eq!(fs::read_to_string(workspace.path().join("locks/games.lobby.lock.json")).unwrap(), "{}");
    let (status, stdout, stderr) = ran(&["plan", "-f", "lobby.yaml"]);
    assert_eq!((status, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.starts_with(conflict), "{stderr}");
}

#[test]
fn duplicate_plugin_name_is_in_every_listing_with_fix() {
    let with_both = |more: &str| server(&format!("  updateStrategy: auto\n{more}")) + &two_files("");
    let manifests = [("lobby.yaml", with_both("")), ("runs.yaml", with_both(STATUS))];
    let workspace = Workspace::new(&manifests.each_ref().map(|(name, text)| (*name, text.as_str())));
    let shown =
        |name: &str, arguments: &[&str]| assert_snapshot(&format!("two-files-{name}"), &workspace.run(arguments));
    shown("outdated", &["outdated", "-f", "lobby.yaml"]);
    shown("outdated-runs", &["outdated", "-f", "runs.yaml"]);
    shown("outdated-json", &["outdated", "-f", "runs.yaml", "--format", "json"]);
    shown("ready", &["ready", "1.21.11", "-f", "runs.yaml"]);
    shown("why-not", &["explain", "--why-not", "1.21.11", "-f", "runs.yaml"]);
    shown("why-not-json", &["explain", "--why-not", "1.21.11", "-f", "runs.yaml", "--format", "json"]);
    // The running version can run.
    assert!(workspace.run(&["ready", "1.21.10", "-f", "runs.yaml"]).starts_with("exit 0\n"));
    assert!(workspace.run(&["explain", "--why-not", "1.21.10", "-f", "runs.yaml"]).starts_with("exit 0\n"));
    assert!(workspace.run(&["ready", "1.21.10", "-f", "lobby.yaml"]).starts_with("exit 1\n"));
}

#[test]
fn partial_update_is_planned_when_full_update_is_impossible() {
    let auto = server("  updateStrategy: auto\n");
    let urgent = plugin("discordsrv", ", urgent: true");
    let before = auto.clone() + &urgent + &file_plugin(&cache_jar(&descriptor()));
    let both_files = auto.clone() + &urgent + &two_files("");
    let none = auto.clone() + &urgent + &plugin("griefprevention", ", updateStrategy: pin, version: \"99\"");
    // The second file as a partial update would be installed beside the first.
    let no_part = auto + &plugin("discordsrv", "") + &two_files("urgent: true\n  ");
    let manifests =
        [("before.yaml", &before), ("two-files.yaml", &both_files), ("none.yaml", &none), ("no-part.yaml", &no_part)];
    let workspace = Workspace::new(&manifests.map(|(name, text)| (name, text.as_str())));
    let lock = workspace.command(&["lock", "-f", "before.yaml", "--at", "2026-01-11"]).output().unwrap();
    fs::write(workspace.path().join("running.lock.json"), &lock.stdout).unwrap();
    let plan = |file: &str, options: &[&str]| {
        workspace.run(&[&["plan", "-f", file, "--running", "running.lock.json"], options].concat())
    };
    assert_snapshot("plan-alone-two-files", &plan("two-files.yaml", &[]));
    assert_snapshot("plan-alone-two-files-json", &plan("two-files.yaml", &["--format", "json"]));
    assert_snapshot("plan-alone-no-solution", &plan("none.yaml", &[]));
    let nothing = plan("no-part.yaml", &[]);
    assert!(nothing.starts_with("exit 1\n-- stderr\n"), "{nothing}");
}
