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
            version: Some("5.7.1".to_owned()),
            api_version: Some("1.20".to_owned()),
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
fn plugin_yml_keeps_unquoted_numbers_as_written() {
    let yml = "\u{feff}name: Foo\nversion: 1.10\napi-version: 1.20\nmain: a.B\ndepend: Vault\nsoftdepend: []\nloadbefore:\nname: Bar\ncommands:\n  x: {aliases: [y]}\n";
    let facts = plugin_facts(&[Entry::new("plugin.yml", yml)]).unwrap();
    assert_eq!(facts.name, "Bar", "the last duplicate key wins, as in SnakeYAML");
    assert_eq!((facts.version.as_deref(), facts.api_version.as_deref()), (Some("1.10"), Some("1.20")));
    assert_eq!(facts.depend, ["Vault"]);
    assert_eq!((facts.java, facts.folia), (None, false));
    assert!(facts.soft_depend.is_empty() && facts.load_before.is_empty());
}

#[test]
fn paper_plugin_yml_takes_precedence() {
    let paper = "name: New\nversion: '2'\nmain: a.B\napi-version: '1.21'\ndependencies:\n  bootstrap:\n    Boot: {}\n  server:\n    \
                 Hard:\n      load: BEFORE\n      required: true\n    Soft:\n      required: false\n      load: AFTER\n    Bare:\n";
    let entries = [Entry::new("plugin.yml", "name: Old\nmain: a.B\n"), Entry::new("paper-plugin.yml", paper)];
    let facts = plugin_facts(&entries).unwrap();
    assert_eq!((facts.name.as_str(), facts.api_version.as_deref()), ("New", Some("1.21")));
    assert_eq!(facts.depend, ["Bare", "Boot", "Hard"]);
    assert_eq!((facts.soft_depend, facts.load_before), (vec!["Soft".to_owned()], vec!["Soft".to_owned()]));
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
    for bad in ["name: [", "version: 1", "name: 'a/b'", "name: ''", "- name", "name: \"x\\ny\""] {
        let error = plugin_facts(&[Entry::new("plugin.yml", bad)]).unwrap_err();
        assert!(matches!(&error, FactsError::InvalidDescriptor { entry: "plugin.yml", .. }), "{bad}: {error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
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
    assert!(matches!(error, FactsError::InvalidDescriptor { .. }), "{error}");
}
