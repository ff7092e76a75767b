//! Edge (reads). Tests plugins that are named by a URL and a checksum.

use std::fs;

use fixtures::jar::{self, PluginYml};
use sha2::{Digest, Sha256};

use super::cluster::STATUS;
use super::{Desk, WORLD, assert_shown, plugin, server};

/// Stores a JAR in the cache as if it had been downloaded, because the replay does not support https. Returns its
/// sha256.
fn cached(yml: &PluginYml) -> String {
    let jar = jar::plugin(yml);
    let sha256 = hex::encode(Sha256::digest(&jar));
    let folder = WORLD.cache.path().join("nightshift/catalog/files/sha256");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(&sha256), jar).unwrap();
    sha256
}

/// A Plugin named `house-rules` with this source.
fn rules(source: &str) -> String {
    format!(
        "---\napiVersion: nightshift.dev/v1alpha1\nkind: Plugin\nmetadata: {{name: house-rules, namespace: games}}\n\
         spec:\n  source: {{{source}}}\n  instanceSelector: {{}}\n"
    )
}

fn file(sha256: &str) -> String {
    rules(&format!("type: url, url: \"https://example.org/HouseRules.jar\", checksum: \"{sha256}\""))
}

fn shown(name: &str, plugins: &str) {
    let desk = Desk::new(&[("lobby.yaml", &(server("  updateStrategy: auto\n") + plugins))]);
    assert_shown(name, &desk.run(&["explain", "-f", "lobby.yaml"]));
}

fn yml() -> PluginYml {
    let mut yml = PluginYml::new("HouseRules", "2.1");
    yml.api_version = Some("1.21".to_owned());
    yml
}

#[test]
fn file_plugin_resolves_with_dependency_from_site() {
    let mut yml = yml();
    yml.depend = vec!["GriefPrevention".to_owned()];
    shown("file", &(file(&cached(&yml)) + &plugin("griefprevention", "")));
}

#[test]
fn file_plugin_missing_dependency_is_named() {
    let mut yml = yml();
    yml.depend = vec!["Vault".to_owned()];
    shown("file-needs-vault", &file(&format!("sha256:{}", cached(&yml).to_uppercase())));
}

#[test]
fn file_plugin_over_http_is_refused() {
    let http = file(&"ab".repeat(32)).replace("https://", "http://");
    shown("file-http", &http);
}

#[test]
fn file_plugin_without_checksum_is_refused() {
    shown("file-without-checksum", &rules("type: url, url: \"https://example.org/HouseRules.jar\""));
}

#[test]
fn file_plugin_url_password_is_refused_and_not_printed() {
    let secret = file(&"ab".repeat(32)).replace("https://", "https://me:hunter2@");
    shown("file-with-password", &secret);
}

#[test]
fn file_plugin_errors_are_all_reported() {
    let wrong = rules("type: url, project: warps") + &plugin("viaversion", "");
    shown("file-many", &wrong);
    let wrong =
        file(&"ab".repeat(32)).replace("instanceSelector", "updateStrategy: pin\n  version: \"2\"\n  instanceSelector");
    let swapped = plugin("viaversion", "").replace("modrinth,", "modrinth, url: \"https://example.org/x.jar\",");
    shown("file-pinned", &(wrong + &swapped));
}

#[test]
fn file_plugin_unavailable_leaves_answer_open() {
    // Addresses in a private network are never downloaded, so no request is sent.
    let inside = file(&"cd".repeat(32)).replace("example.org", "10.0.0.1");
    shown("file-inside", &inside);
}

/// Plugins of two files that both have the name `HouseRules`. `more` is added to the spec of the second one.
fn both(more: &str) -> String {
    let mut later = yml();
    "2.2".clone_into(&mut later.version);
    let other = file(&cached(&later)).replace("name: house-rules", "name: more-rules");
    let other =
        other.replace("HouseRules", "MoreRules").replace("instanceSelector", &format!("{more}instanceSelector"));
    file(&cached(&yml())) + &other
}

#[test]
fn duplicate_plugin_name_is_first_error_and_prevents_lock() {
    let with_both = |more: &str| server(&format!("  updateStrategy: auto\n{more}")) + &both("");
    let manifests = [("lobby.yaml", with_both("")), ("runs.yaml", with_both(STATUS))];
    let [lobby, runs] = manifests.each_ref().map(|(name, text)| (*name, text.as_str()));
    let desk = Desk::new(&[lobby, runs, ("locks/games.lobby.lock.json", "{}")]);
    let ran = |arguments: &[&str]| {
        let output = desk.command(arguments).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), out, err)
    };
    let clash = "HouseRules-2.1.jar and HouseRules-2.2.jar are both HouseRules, and a server loads only one of them: \
                 lobby is not started until one of them goes.\n";
    let (end, answer, _) = ran(&["explain", "-f", "lobby.yaml"]);
    assert!(end == Some(1) && answer.starts_with(clash), "{end:?} {answer}");
    let (end, answer, _) = ran(&["explain", "-f", "runs.yaml"]);
    assert!(end == Some(1) && answer.contains("lobby keeps running as it is until one of them goes."), "{answer}");
    assert!(!answer.contains("is changed"), "it comes in no window: {answer}");
    let (end, answer, said) = ran(&["lock", "-f", "lobby.yaml", "-o", "locks"]);
    assert_eq!((end, answer.as_str()), (Some(1), ""), "{said}");
    assert!(said.starts_with(clash) && said.contains("games/lobby: no lock was written"), "{said}");
    assert_eq!(fs::read_to_string(desk.path().join("locks/games.lobby.lock.json")).unwrap(), "{}");
    let (end, answer, said) = ran(&["plan", "-f", "lobby.yaml"]);
    assert_eq!((end, answer.as_str()), (Some(1), ""), "{said}");
    assert!(said.starts_with(clash), "{said}");
}

#[test]
fn duplicate_plugin_name_is_in_every_listing_with_fix() {
    let with_both = |more: &str| server(&format!("  updateStrategy: auto\n{more}")) + &both("");
    let manifests = [("lobby.yaml", with_both("")), ("runs.yaml", with_both(STATUS))];
    let desk = Desk::new(&manifests.each_ref().map(|(name, text)| (*name, text.as_str())));
    let shown = |name: &str, arguments: &[&str]| assert_shown(&format!("two-files-{name}"), &desk.run(arguments));
    shown("outdated", &["outdated", "-f", "lobby.yaml"]);
    shown("outdated-runs", &["outdated", "-f", "runs.yaml"]);
    shown("outdated-json", &["outdated", "-f", "runs.yaml", "--format", "json"]);
    shown("ready", &["ready", "1.21.11", "-f", "runs.yaml"]);
    shown("why-not", &["explain", "--why-not", "1.21.11", "-f", "runs.yaml"]);
    shown("why-not-json", &["explain", "--why-not", "1.21.11", "-f", "runs.yaml", "--format", "json"]);
    // The running version can run.
    assert!(desk.run(&["ready", "1.21.10", "-f", "runs.yaml"]).starts_with("exit 0\n"));
    assert!(desk.run(&["explain", "--why-not", "1.21.10", "-f", "runs.yaml"]).starts_with("exit 0\n"));
    assert!(desk.run(&["ready", "1.21.10", "-f", "lobby.yaml"]).starts_with("exit 1\n"));
}

#[test]
fn partial_update_is_planned_when_full_update_is_impossible() {
    let auto = server("  updateStrategy: auto\n");
    let urgent = plugin("discordsrv", ", urgent: true");
    let before = auto.clone() + &urgent + &file(&cached(&yml()));
    let two_files = auto.clone() + &urgent + &both("");
    let none = auto.clone() + &urgent + &plugin("griefprevention", ", updateStrategy: pin, version: \"99\"");
    // The second file as a partial update would be installed beside the first.
    let no_part = auto + &plugin("discordsrv", "") + &both("urgent: true\n  ");
    let manifests =
        [("before.yaml", &before), ("two-files.yaml", &two_files), ("none.yaml", &none), ("no-part.yaml", &no_part)];
    let desk = Desk::new(&manifests.map(|(name, text)| (name, text.as_str())));
    let lock = desk.command(&["lock", "-f", "before.yaml", "--at", "2026-01-11"]).output().unwrap();
    fs::write(desk.path().join("running.lock.json"), &lock.stdout).unwrap();
    let plan = |file: &str, options: &[&str]| {
        desk.run(&[&["plan", "-f", file, "--running", "running.lock.json"], options].concat())
    };
    assert_shown("plan-alone-two-files", &plan("two-files.yaml", &[]));
    assert_shown("plan-alone-two-files-json", &plan("two-files.yaml", &["--format", "json"]));
    assert_shown("plan-alone-no-solution", &plan("none.yaml", &[]));
    let nothing = plan("no-part.yaml", &[]);
    assert!(nothing.starts_with("exit 1\n-- stderr\n"), "{nothing}");
}
