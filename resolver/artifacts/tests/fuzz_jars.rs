//! Edge (writes). Fuzz tests for JARs and the descriptors in them, and for files of a server.

#![expect(clippy::unwrap_used, reason = "a failed setup must fail the test")]

use std::cell::Cell;
use std::error::Error;
use std::path::Path;

use artifacts::java_properties;
use artifacts::plugin_descriptor::{PluginFacts, facts};
use artifacts::{Jar, update_folder_name};
use fixtures::fuzz::mutate;
use fixtures::jar::{Entry, PluginYml, archive, plugin_with};
use proptest::prelude::*;

#[path = "../../tests/support/mutate.rs"]
mod mutate;

use mutate::{MAX_ERROR_LENGTH, bytes, edits, for_all, fuzz_targets, text, within_time_limit};

// One line for each parser. `dev/fuzz` runs each for a minute and more. JARs have tests of their own below.
fuzz_targets! {
    fuzz_java_properties([b"#c\nlevel-name = my\\u0020world\\\n  more\r\nmotd:a\n".to_vec()], level_name_is_read);
    fuzz_bukkit_yml([b"settings:\n  update-folder: waiting\n  a: [b, {c: d}]\n".to_vec()], update_folder_is_read);
}

fn level_name_is_read(bytes: &[u8]) -> bool {
    java_properties::value(bytes, "level-name").is_some()
}

fn update_folder_is_read(bytes: &[u8]) -> bool {
    update_folder_name(&String::from_utf8_lossy(bytes)) != "update"
}

const BUKKIT: &str = "name: ViaBackwards\nversion: 5.7.1\nmain: a.b.Main\napi-version: '1.20'\ndepend: [ViaVersion]\nsoftdepend:\n- Geyser\nloadbefore: [ProtocolLib]\nprovides: [Old]\nlibraries: ['org.x:y:1']\nfolia-supported: true\ncommands:\n  via: {aliases: [v], description: \"it: does\"}\n";
const PAPER: &str = "name: New\nversion: '2'\nmain: a.B\napi-version: '1.21'\ndependencies:\n  bootstrap:\n    Boot: {}\n  server:\n    Hard: {load: BEFORE, required: true}\n    Soft:\n      required: false\n      load: AFTER\n    Bare:\n";

/// The metadata of a file. Errors are short enough to be displayed.
fn read_facts(path: &Path, bytes: &[u8]) -> Option<PluginFacts> {
    std::fs::write(path, bytes).unwrap();
    match facts(path) {
        Ok(facts) => {
            assert!(facts.name.len() <= 64 && facts.depend.is_sorted() && facts.soft_depend.is_sorted());
            let text = serde_json::to_string(&facts).unwrap();
            assert_eq!(serde_json::from_str::<PluginFacts>(&text).unwrap(), facts);
            Some(facts)
        }
        Err(error) => {
            let (mut message, mut cause) = (error.to_string(), error.source());
            while let Some(inner) = cause {
                message = format!("{message}: {inner}");
                cause = inner.source();
            }
            assert!(
                message.len() < MAX_ERROR_LENGTH && message.lines().count() == 1,
                "{} bytes: {message}",
                message.len()
            );
            None
        }
    }
}

#[test]
fn mutated_descriptor_is_read_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.jar");
    for (entry, good) in [("plugin.yml", BUKKIT), ("paper-plugin.yml", PAPER)] {
        let jar = |content: Vec<u8>| archive(&[Entry::new(entry, content)]);
        assert!(read_facts(&path, &jar(good.into())).is_some());
        let accepted = Cell::new(0_u32);
        for_all(300, &(edits(), text(), bytes()), |(edits, other, noise)| {
            let changed = mutate(good.as_bytes(), other.as_bytes(), &edits);
            accepted.set(accepted.get() + u32::from(read_facts(&path, &jar(changed)).is_some()));
            read_facts(&path, &jar(noise));
            Ok(())
        });
        assert!(accepted.get() > 25, "{entry}: only {} inputs were read", accepted.get());
    }
}

#[test]
fn mutated_jar_is_read_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.jar");
    let mut yml = PluginYml::new("ViaBackwards", "5.7.1");
    yml.depend = vec!["ViaVersion".to_owned()];
    let good = plugin_with(&yml, 21, &[]);
    let other = archive(&[Entry::new("paper-plugin.yml", PAPER), Entry::new("plugin.yml", BUKKIT.repeat(9))]);
    assert!(read_facts(&path, &good).is_some() && read_facts(&path, &other).is_some());
    let accepted = Cell::new(0_u32);
    for_all(400, &(edits(), bytes(), any::<bool>()), |(edits, noise, first)| {
        let (jar, from) = if first { (&good, &other) } else { (&other, &good) };
        accepted.set(accepted.get() + u32::from(read_facts(&path, &mutate(jar, from, &edits)).is_some()));
        prop_assert!(read_facts(&path, &noise).is_none());
        Ok(())
    });
    assert!(accepted.get() > 30, "only {} inputs were read", accepted.get());
}

#[test]
fn long_and_deep_descriptors_are_read_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.jar");
    let long = "x".repeat(900_000);
    let list = |key: &str| format!("name: A\nmain: a.B\n{key}: [{}]\n", "x, ".repeat(60_000));
    let many: Vec<String> = (0..15_000).map(|at| format!("n{at}: {{}}")).collect();
    let texts = [
        format!("name: {long}\n"),
        format!("name: \"{}\"\n", "\\0".repeat(400_000)),
        format!("name: A\nmain: {long}\n"),
        format!("name: A\nversion: {long}\nfolia-supported: {long}\n"),
        format!("{long}: A\n"),
        format!("name: A\nfolia-supported: \"{long}\"\n"),
        list("depend"),
        list("commands"),
        format!("name: A\ndependencies: {{server: {{{}}}}}\n", many.join(", ")),
        "[".repeat(1 << 17),
        format!("name: A\ncommands: {}{}\n", "{a: ".repeat(60), "}".repeat(60)),
        "{a: ".repeat(1 << 16),
        "- ".repeat(1 << 17),
        "name: A\n".repeat(20_000),
        "&a ".repeat(1 << 16),
        "? ".repeat(1 << 17),
        "\"".repeat(1 << 17),
        "\t".repeat(1 << 17),
        "#\n".repeat(1 << 17),
    ];
    for text in texts {
        for entry in ["plugin.yml", "paper-plugin.yml"] {
            let jar = archive(&[Entry::new(entry, text.as_str())]);
            within_time_limit(&format!("{entry}: {}", &text[..20]), || read_facts(&path, &jar));
        }
    }
}

#[test]
fn endless_plugin_name_is_not_repeated_in_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.jar");
    std::fs::write(&path, archive(&[Entry::new("plugin.yml", format!("name: {}/\n", "x".repeat(900_000)))])).unwrap();
    let message = facts(&path).unwrap_err().to_string();
    assert!(message.len() < 500, "{} bytes", message.len());
}

#[test]
fn crafted_slow_archives_are_read_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.jar");
    let good = archive(&[Entry::new("plugin.yml", BUKKIT)]);
    let (start, end) = good.split_at(good.len() - 22);
    // The end-of-archive marker, repeated. The archive might end at each of them.
    let ends = [start, &end.repeat(50_000)[..]].concat();
    let marks = b"PK\x05\x06".repeat(1 << 18);
    let large = b"PK\x06\x07".repeat(1 << 18);
    let mut many = end.to_vec();
    // The header claims 65,535 entries.
    many[8..12].fill(0xff);
    for (label, bytes) in [("ends", ends), ("marks", marks), ("large marks", large), ("many", [start, &many].concat())]
    {
        within_time_limit(label, || read_facts(&path, &bytes));
        within_time_limit(label, || Jar::open(&path).is_ok());
    }
}
