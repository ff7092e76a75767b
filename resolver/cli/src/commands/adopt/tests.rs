//! Pure. Tests the manifests for directories with several files of one release.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::finding::Because;
use super::*;
use artifacts::plugin_descriptor::PluginFacts;
use resolver::model::catalog::Catalog;

fn now() -> Timestamp {
    "2026-01-20T00:00:00Z".parse().unwrap()
}

/// The hash of a file depends only on its name.
fn sha512(name: &str) -> String {
    let mut hasher = artifacts::Hasher::new(artifacts::Algorithm::Sha512);
    hasher.update(name.as_bytes());
    hasher.finish().hex().to_owned()
}

fn release(id: &str, version: &str, names: &[&str]) -> Value {
    let file = |name: &str| json!({"name": name, "url": "https://cdn.example/a.jar", "hash": format!("sha512:{}", sha512(name))});
    json!({
        "id": id, "version": version, "published": "2026-01-01T00:00:00Z", "channel": "release", "minecraft": ["1.21.10"],
        "loaders": ["paper"], "file": file(names[0]),
        "further": names[1..].iter().map(|name| json!({"file": file(name)})).collect::<Vec<_>>(),
    })
}

/// Paper 1.21.10-129, and a project with three modules in each release.
fn catalog() -> Catalog {
    let modules = |version: &str| {
        let names = ["EssentialsX", "EssentialsXChat", "EssentialsXSpawn"].map(|name| format!("{name}-{version}.jar"));
        release(version, version, &names.each_ref().map(String::as_str))
    };
    serde_json::from_value(json!({
        "paper": [{"minecraft": "1.21.10", "builds": [{
            "number": 129, "channel": "STABLE", "published": "2026-01-01T00:00:00Z",
            "file": {"name": "paper.jar", "url": "https://cdn.example/paper.jar", "hash": format!("sha256:{}", "0".repeat(64))},
        }]}],
        "paperReadAt": now(),
        "projects": [{
            "key": {"source": "modrinth", "project": "essentialsx"}, "id": "E", "name": "EssentialsX", "readAt": now(),
            "releases": [modules("2.20.0"), modules("2.21.0")],
        }, {
            "key": {"source": "modrinth", "project": "lights"}, "id": "L", "name": "Lights", "readAt": now(),
            "releases": [release("l", "1.0", &["Lights-1.0.jar", "Lights-1.0-lite.jar"])],
        }],
    }))
    .unwrap()
}

/// The manifests for a server with these files, and the findings.
fn adopt_files(names: &[&str]) -> (String, Vec<AdoptFinding>) {
    let files: Vec<(&str, Option<&str>)> = names.iter().map(|name| (*name, None)).collect();
    adopt_versions(&files)
}

/// The same with the version in each description. The name in it is the beginning of the file's name.
fn adopt_versions(names: &[(&str, Option<&str>)]) -> (String, Vec<AdoptFinding>) {
    let plugin = |(name, version): &(&str, Option<&str>)| {
        let facts = PluginFacts {
            name: resolver::model::jar_pattern::stem(name),
            version: version.unwrap_or_default().to_owned(),
            main: "a.B".to_owned(),
            api_version: None,
            paper_plugin: false,
            depend: Vec::new(),
            soft_depend: Vec::new(),
            load_before: Vec::new(),
            provides: Vec::new(),
            libraries: Vec::new(),
            folia: false,
            java: None,
        };
        PluginFile { file: (*name).to_owned(), facts, sha256: String::new(), sha512: sha512(name) }
    };
    let files: Vec<PluginFile> = names.iter().map(plugin).collect();
    let found =
        identify::IdentifiedFiles { catalog: catalog(), owners: BTreeMap::new(), fallback_reason: Because::Unknown };
    let minecraft: Minecraft = "1.21.10".parse().unwrap();
    let origins = found.origins(&files, &minecraft);
    let mut findings = Vec::new();
    let Classified { managed, guesses, unmanaged } = classify_plugins("lobby", &files, &origins, &mut findings);
    let draft = Draft {
        name: "lobby".to_owned(),
        namespace: None,
        minecraft,
        build: Some(129),
        eula: true,
        rcon_port: None,
        managed,
        guesses,
        unmanaged,
        unread: Vec::new(),
    };
    let text = draft.render("lobby", now());
    let file = InputFile { name: "written".to_owned(), text: text.clone() };
    let checked = requests::check(manifests::read(&[file]), &mut Vec::new()).unwrap();
    for (_, result) in resolve_all(&found.catalog, &checked.requests, now()) {
        report_differences(&result.unwrap().lock, &files, &mut findings);
    }
    (text, findings)
}

#[test]
fn adopt_groups_files_of_one_release_in_one_plugin() {
    let (text, findings) = adopt_files(&["EssentialsX-2.20.0.jar", "EssentialsXChat-2.20.0.jar"]);
    assert!(findings.is_empty(), "{findings:?}");
    assert!(text.contains("# EssentialsX-2.20.0.jar and EssentialsXChat-2.20.0.jar, by their hashes\n"), "{text}");
    let source = "  source: {type: modrinth, project: essentialsx, jars: [EssentialsX, EssentialsXChat]}\n";
    assert!(text.contains(source), "{text}");
    assert_eq!(text.matches("kind: Plugin").count(), 1);
}

#[test]
fn adopt_names_module_alone_but_not_main_file_alone() {
    let (text, findings) = adopt_files(&["EssentialsXSpawn-2.20.0.jar"]);
    assert!(findings.is_empty(), "{findings:?}");
    assert!(text.contains("jars: [EssentialsXSpawn]}"), "{text}");
    let (text, findings) = adopt_files(&["EssentialsX-2.20.0.jar"]);
    assert!(findings.is_empty(), "{findings:?}");
    assert!(!text.contains("jars:"), "{text}");
}

#[test]
fn adopt_leaves_module_of_other_release_unmanaged() {
    let (text, findings) = adopt_files(&["EssentialsXChat-2.20.0.jar", "EssentialsX-2.21.0.jar"]);
    let [AdoptFinding::Unmanaged { file, reason: Because::DifferentRelease { project }, .. }] = findings.as_slice()
    else {
        panic!("{findings:?}")
    };
    assert_eq!((file.as_str(), project.as_str()), ("EssentialsXChat-2.20.0.jar", "modrinth/essentialsx"));
    assert!(text.contains("version: \"2.21.0\"") && !text.contains("jars:"), "{text}");
}

#[test]
fn adopt_names_file_in_full_when_it_prefixes_another() {
    let (text, findings) = adopt_files(&["Lights-1.0.jar", "Lights-1.0-lite.jar"]);
    assert!(findings.is_empty(), "{findings:?}\n{text}");
    assert!(text.contains("jars: [\"Lights-1.0\", \"Lights-1.0-lite\"]}"), "{text}");
}

#[test]
fn adopt_writes_guess_as_comment_only() {
    // The name and the version of a release, but other bytes.
    let (text, findings) = adopt_versions(&[("Lights-9.jar", Some("1.0"))]);
    let [AdoptFinding::Guess { file, project, .. }] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((file.as_str(), project.as_str()), ("Lights-9.jar", "modrinth/lights"));
    assert!(text.contains("  #   Lights-9.jar (Lights 1.0)\n"), "the file stays unmanaged: {text}");
    assert!(text.contains("# kind: Plugin\n") && !text.contains("\nkind: Plugin"), "{text}");
    let restored: Vec<&str> = text.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
    let restored = restored.join("\n");
    assert!(restored.contains("\n---\napiVersion: nightshift.dev/v1alpha1\nkind: Plugin\n"), "{restored}");
}

#[test]
fn adopt_never_guesses_project_that_is_identified() {
    let (text, findings) = adopt_versions(&[("Lights-1.0.jar", None), ("Lights-9.jar", Some("1.0"))]);
    assert!(matches!(findings.as_slice(), [AdoptFinding::Guess { .. }]), "{findings:?}");
    assert_eq!(text.matches("kind: Plugin").count(), 1, "{text}");
    assert!(text.contains("# Lights-1.0.jar, by its hash\n"), "{text}");
}

#[test]
fn directory_name_becomes_object_name() {
    assert_eq!(object_name("My Server_(old)", 40), "my-server-old");
    assert_eq!(object_name("ViaVersion", 63), "viaversion");
    assert_eq!(object_name("--", 40), "");
    assert_eq!(object_name("aaaa-bbbb", 5), "aaaa");
}
