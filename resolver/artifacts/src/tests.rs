//! Edge (writes). Tests the descriptors read from plugins' JARs.

use std::fmt::Write as _;
use std::path::Path;

use fixtures::jar::{self, Entry, PluginYml};
use tempfile::NamedTempFile;

use super::{FactsError, plugin_descriptor};

fn write_jar(bytes: &[u8]) -> NamedTempFile {
    let jar = NamedTempFile::new().unwrap();
    std::fs::write(&jar, bytes).unwrap();
    jar
}

fn plugin_facts(entries: &[Entry]) -> Result<plugin_descriptor::PluginFacts, FactsError> {
    plugin_descriptor::facts(write_jar(&jar::archive(entries)).path())
}

#[test]
fn plugin_yml_is_read() {
    let mut yml = PluginYml::new("ViaBackwards", "5.7.1");
    yml.depend = vec!["ViaVersion".to_owned()];
    yml.soft_depend = vec!["Zed".to_owned(), "Alpha".to_owned()];
    yml.load_before = vec!["ProtocolLib".to_owned()];
    yml.provides = vec!["OldName".to_owned()];
    yml.libraries = vec!["org.x:y:1".to_owned()];
    yml.api_version = Some("1.20".to_owned());
    yml.folia_supported = true;
    let facts = plugin_descriptor::facts(write_jar(&jar::plugin_with(&yml, 21, &[])).path()).unwrap();
    assert_eq!(
        facts,
        plugin_descriptor::PluginFacts {
            name: "ViaBackwards".to_owned(),
            version: "5.7.1".to_owned(),
            main: "dev.nightshift.replay.viabackwards.ViaBackwards".to_owned(),
            api_version: Some("1.20".to_owned()),
            paper_plugin: false,
            depend: vec!["ViaVersion".to_owned()],
            soft_depend: vec!["Alpha".to_owned(), "Zed".to_owned()],
            load_before: vec!["ProtocolLib".to_owned()],
            provides: vec!["OldName".to_owned()],
            libraries: vec!["org.x:y:1".to_owned()],
            folia: true,
            java: Some(21),
        }
    );
}

#[test]
fn unquoted_numbers_are_read_as_the_server_reads_them() {
    let yml = "\u{feff}name: Foo\nversion: 2.10\napi-version: 1.20\nmain: a.B\nsoftdepend: []\nloadbefore:\nname: 1.10\ncommands:\n  x: {aliases: [y]}\n";
    let facts = plugin_facts(&[Entry::new("plugin.yml", yml)]).unwrap();
    assert_eq!(facts.name, "1.1", "the last duplicate key wins, as in SnakeYAML");
    assert_eq!((facts.version.as_str(), facts.api_version.as_deref()), ("2.1", Some("1.2")));
    assert_eq!((facts.java, facts.folia), (None, false));
    assert!(facts.soft_depend.is_empty() && facts.load_before.is_empty());
}

#[test]
fn paper_plugin_yml_takes_precedence() {
    let paper = "name: New\nversion: '2'\nmain: a.B\napi-version: '1.21'\nprovides: Old\ndependencies:\n  bootstrap:\n    Boot: {}\n  server:\n    \
                 Hard:\n      load: BEFORE\n      required: true\n    Soft:\n      required: false\n      load: AFTER\n    Bare:\n";
    let entries = [Entry::new("plugin.yml", "name: Old\nmain: a.B\n"), Entry::new("paper-plugin.yml", paper)];
    let facts = plugin_facts(&entries).unwrap();
    assert_eq!((facts.name.as_str(), facts.api_version.as_deref()), ("New", Some("1.21")));
    assert!(facts.paper_plugin);
    assert_eq!(facts.depend, ["Bare", "Boot", "Hard"]);
    assert_eq!((facts.soft_depend, facts.load_before), (vec!["Soft".to_owned()], vec!["Soft".to_owned()]));
    assert_eq!(facts.provides, ["Old"]);
}

#[test]
fn old_form_of_paper_dependencies_is_read() {
    let paper = "name: HomeBase\nversion: 4.1.1\nmain: a.B\napi-version: '1.19'\nload-before:\n  - name: Essentials\nload-after:\n  - name: Vault\n  - \
                 name: dynmap\n    bootstrap: false\ndependencies:\n  - name: Vault\n    required: true\n    bootstrap: false\n  - name: dynmap\n    \
                 required: false\n  - name: RegistryLib\n    required: true\n    bootstrap: true\n  - name: Unsaid\n";
    let facts = plugin_facts(&[Entry::new("paper-plugin.yml", paper)]).unwrap();
    assert_eq!(facts.depend, ["RegistryLib", "Vault"]);
    assert_eq!(facts.soft_depend, ["Essentials", "Unsaid", "dynmap"]);
    assert_eq!(facts.load_before, ["Essentials"]);
}

#[test]
fn folia_support_is_compared_as_folia_does() {
    for (written, is_supported) in [
        ("true", true),
        ("TRUE", true),
        ("yes", true),
        ("on", true),
        ("'true'", true),
        ("'True'", true),
        ("1", false),
        ("'yes'", false),
        ("supported", false),
        ("[true]", false),
        ("", false),
        ("no", false),
    ] {
        let yml = format!("name: A\nversion: 1\nmain: a.B\nfolia-supported: {written}\n");
        assert_eq!(plugin_facts(&[Entry::new("plugin.yml", yml)]).unwrap().folia, is_supported, "{written}");
    }
    let yml = "name: A\nversion: 1\nmain: a.B\napi-version: '1.20'\nfolia-supported: 'yes'\n";
    assert!(plugin_facts(&[Entry::new("paper-plugin.yml", yml)]).unwrap().folia, "Configurate reads this one");
}

/// The rule by which Paper refuses a descriptor that has these fields besides a name, a version and a main class.
fn refusal(entry: &str, fields: &str) -> String {
    let defaults = [("name", "Demo"), ("version", "'1'"), ("main", "a.B"), ("api-version", "'1.21'")];
    let missing =
        defaults.iter().filter(|(field, _)| !fields.lines().any(|line| line.starts_with(&format!("{field}:"))));
    let mut yml = String::new();
    for (field, value) in missing {
        writeln!(yml, "{field}: {value}").unwrap();
    }
    yml.push_str(fields);
    plugin_facts(&[Entry::new(entry, yml)]).map_or_else(|error| error.to_string(), |_| "loads".to_owned())
}

#[test]
fn paper_refuses_descriptors_by_its_own_rules() {
    let fields = |of: &str| format!("Paper refuses it: its `{of}` does not consist of fields such as `name: value`");
    let rule = |what: &str| format!("Paper refuses it: its {what}");
    for (yml, expected) in [
        ("", "loads".to_owned()),
        ("version:\n", rule("`plugin.yml` has no `version`")),
        ("name: ~\n", rule("`plugin.yml` has no `name`")),
        ("main:\n", rule("`plugin.yml` has no `main`")),
        ("name: Space Name\n", rule("name is `Space Name`, and only letters, digits, `_`, `.` and `-` are allowed")),
        ("name: ''\n", rule("name is ``, and only letters, digits, `_`, `.` and `-` are allowed")),
        ("name: \"x\\ny\"\n", rule("name is `x\\ny`, and only letters, digits, `_`, `.` and `-` are allowed")),
        ("name: pApEr\n", rule("name is `pApEr`, which is reserved")),
        ("main: org.bukkit.Foo\n", rule("`main` is in the package `org.bukkit`, which belongs to the server")),
        ("main: org.bukkitx.Foo\n", "loads".to_owned()),
        ("depend: Vault\n", rule("`depend` is not a list")),
        ("softdepend: none\n", rule("`softdepend` is not a list")),
        ("loadbefore: {a: b}\n", rule("`loadbefore` is not a list")),
        ("provides: 1\n", rule("`provides` is not a list")),
        ("depend:\n  - Vault\n  -\n", rule("`depend` has an empty entry")),
        ("depend: [1.10, yes]\n", "loads".to_owned()),
        ("libraries: a:b:1\n", rule("`libraries` is not a list")),
        ("authors: me\n", rule("`authors` is not a list")),
        ("author: [me, you]\n", "loads".to_owned()),
        ("commands: [a, b]\n", fields("commands")),
        ("commands: {a: , b: {}}\n", "loads".to_owned()),
        ("commands: {a: text}\n", fields("commands")),
        ("permissions: all\n", fields("permissions")),
        ("load: later\n", rule("`load` is neither STARTUP nor POSTWORLD")),
        ("load: post-world\n", "loads".to_owned()),
        ("load: on\n", rule("`load` is neither STARTUP nor POSTWORLD")),
        ("---\nname: Second\n", rule("`plugin.yml` contains more than one YAML document (`---`)")),
        ("api-version: [1]\nfolia-supported: 7\nwebsite: 1\n", "loads".to_owned()),
    ] {
        assert_eq!(refusal("plugin.yml", yml), expected, "{yml}");
    }
    let text_only = plugin_facts(&[Entry::new("plugin.yml", "- name")]).unwrap_err().to_string();
    assert_eq!(text_only, fields("plugin.yml"));
}

#[test]
fn paper_refuses_paper_descriptors_by_its_own_rules() {
    let rule = |what: &str| format!("Paper refuses it: its {what}");
    for (yml, expected) in [
        ("", "loads".to_owned()),
        ("version:\n", rule("`paper-plugin.yml` has no `version`")),
        ("api-version:\n", rule("`paper-plugin.yml` has no `api-version`")),
        ("name: Space Name\n", rule("name is `Space Name`, and only letters, digits, `_`, `.` and `-` are allowed")),
        ("name: Minecraft\n", rule("name is `Minecraft`, which is reserved")),
        ("main: net.minecraft.A\n", rule("`main` is in the package `net.minecraft`, which belongs to the server")),
        (
            "bootstrapper: io.papermc.paper.A\n",
            rule("`bootstrapper` is in the package `io.papermc.paper`, which belongs to the server"),
        ),
        ("load: later\n", rule("`load` is neither STARTUP nor POSTWORLD")),
        ("depend: Vault\nauthors: me\n", "loads".to_owned()),
    ] {
        assert_eq!(refusal("paper-plugin.yml", yml), expected, "{yml}");
    }
}

#[test]
fn descriptor_that_only_nightshift_cannot_read_is_called_unreadable() {
    for bad in [&b"name: ["[..], b"name: \"a\nb: c", b"name: \xff\n", b"name: &a [*a]\n"] {
        let error = plugin_facts(&[Entry::new("plugin.yml", bad)]).unwrap_err();
        assert!(matches!(&error, FactsError::UnreadableDescriptor { entry: "plugin.yml", .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with("Nightshift could not read its `plugin.yml`: ") && text.lines().count() == 1,
            "{text}"
        );
    }
}

/// A JAR with one descriptor, of which some bytes are replaced.
fn jar_with(path: &str, replace: &[u8], by: &[u8]) -> Vec<u8> {
    let content = "name: Demo\nversion: 1\nmain: a.B\n";
    let mut bytes = jar::archive(&[Entry::new(path, content)]);
    let mut found = 0;
    for at in 0..bytes.len() - replace.len() {
        if !replace.is_empty() && bytes[at..].starts_with(replace) {
            bytes[at..at + by.len()].copy_from_slice(by);
            found += 1;
        }
    }
    assert!(found > 0 || replace.is_empty());
    bytes
}

#[test]
fn jar_is_read_as_java_reads_it() {
    let name = |bytes: &[u8]| plugin_descriptor::facts(write_jar(bytes).path()).map(|facts| facts.name);
    // The stored checksum no longer matches.
    assert_eq!(name(&jar_with("plugin.yml", b"Demo", b"Memo")).unwrap(), "Memo");
    assert_eq!(name(&jar_with("plugin.yml/", b"", b"")).unwrap(), "Demo");
    let both = [("plugin.yml/", "Slash"), ("plugin.yml", "Plain")]
        .map(|(path, name)| Entry::new(path, format!("name: {name}\nversion: 1\nmain: a.B\n")));
    assert_eq!(name(&jar::archive(&both)).unwrap(), "Plain");
    // Compression method 99.
    let unknown_method = name(&jar_with("plugin.yml", b"\0\0\0\0\x21\0", b"\x63\0\0\0\x21\0"));
    assert!(matches!(unknown_method, Err(FactsError::NotAJar(_))), "{unknown_method:?}");
}

#[test]
fn non_plugin_jars_are_distinguished() {
    assert!(matches!(plugin_descriptor::facts(write_jar(&jar::corrupt()).path()), Err(FactsError::NotAJar(_))));
    assert!(matches!(plugin_descriptor::facts(write_jar(b"<html>").path()), Err(FactsError::NotAJar(_))));
    assert!(matches!(plugin_facts(&[Entry::new("README", "")]), Err(FactsError::NoDescriptor)));
    for (entry, software) in [("velocity-plugin.json", "Velocity"), ("bungee.yml", "BungeeCord")] {
        let error = plugin_facts(&[Entry::new(entry, "{}")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("it is a plugin for {software}, not for Paper: it has {entry} and no plugin.yml")
        );
    }
    assert!(matches!(plugin_descriptor::facts(Path::new("/nowhere/x.jar")), Err(FactsError::Open(_))));
}

#[test]
fn oversized_jar_entry_is_not_unpacked() {
    let huge = "a".repeat((1 << 20) + 1);
    let error = plugin_facts(&[Entry::new("plugin.yml", huge)]).unwrap_err();
    assert!(matches!(error, FactsError::EntryTooLarge { .. }), "{error}");
}

#[test]
fn exploding_plugin_yml_is_refused() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (this, last) in ('b'..='j').zip('a'..) {
        let row = format!("*{last},").repeat(9);
        writeln!(bomb, "{this}: &{this} [{}]", row.trim_end_matches(',')).unwrap();
    }
    bomb.push_str("name: Bomb\ndepend: *j\n");
    let error = plugin_facts(&[Entry::new("plugin.yml", bomb)]).unwrap_err();
    assert!(matches!(error, FactsError::UnreadableDescriptor { .. }), "{error}");
}
