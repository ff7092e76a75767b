//! Pure. Fuzz tests for manifests and saved queries with arbitrary text.

use std::cell::Cell;
use std::fmt::Write as _;

use fixtures::fuzz::mutate;
use proptest::prelude::*;
use serde_json::Value;

use super::query::Query;
use super::saved_query::SavedQuery;
use crate::input::files::InputFile;
use crate::input::manifests;
use crate::input::manifests::Manifests;
use crate::input::requests::check;
use crate::input::yaml;
use crate::mutate::{MAX_ERROR_LENGTH, bytes, edits, for_all, text, within_time_limit};
use resolver::model::lock::FormatVersion;

mod fuzz_facts;

/// An example with every kind of content that is read.
const GOOD: &str = r#"# A server and its plugins
apiVersion: nightshift.dev/v1alpha1
kind: PaperMCServer
metadata: {name: lobby, namespace: games, labels: {tier: survival}}
spec:
  eula: Accepted
  updateStrategy: pin
  version: "1.21.10"
  updateDelay: 72h
  channel: Beta
  jvm: {heap: 2Gi}
  updateSchedule:
    checkCron: '*/5 * * * *'
    maintenanceWindow: {cron: "0 4 * * sun"}
    windows:
    - {name: a, cron: '@daily'}
  podTemplate: {spec: {containers: [{name: papermc, resources: {limits: {memory: 6Gi, cpu: 2}}}]}}
---
{"apiVersion": "nightshift.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "via", "namespace": "games"},
 "spec": {"source": {"type": "modrinth", "project": "viaversion"}, "instanceSelector": {"matchLabels": {"tier": "survival"}},
 "compatibilityOverride": {"enabled": true, "mode": "Add", "minecraftVersions": ["1.21.x"], "releases": ["5.7.1"]}}}
---
apiVersion: v1
kind: List
items:
- &anchor
  apiVersion: nightshift.dev/v1alpha1
  kind: Plugin
  metadata: {name: maintenance}
  spec:
    source:
      type: hangar
      project: Maintenance
    instanceSelector: {}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: rules}, data: {a: "1"}}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: more}
  data:
    a: |
      two
      lines
"#;

fn read(text: &str) -> Manifests {
    manifests::read(&[InputFile { name: "f.yaml".to_owned(), text: text.to_owned() }])
}

/// Every violation names the file and one of its lines, and its length is limited.
fn checked(text: &str) -> Manifests {
    let manifests = read(text);
    let again = read(text);
    let violations = check(again, &mut Vec::new()).err().unwrap_or_default();
    for violation in manifests.violations.iter().chain(&violations) {
        let message = violation.to_string();
        let line =
            message.strip_prefix("f.yaml:").and_then(|rest| rest.split(':').next()).and_then(|line| line.parse().ok());
        let line: usize = line.unwrap_or_else(|| panic!("no line number: {message}"));
        assert!((1..=text.lines().count() + 1).contains(&line), "the text has no such line: {message}");
        assert!(message.len() < MAX_ERROR_LENGTH, "{} bytes: {}", message.len(), &message[..400]);
    }
    manifests
}

/// Accepted objects are unchanged after they are written and read again.
fn check_round_trip(manifests: &Manifests) {
    let values = |manifests: &Manifests| -> Vec<Value> {
        let servers = manifests.servers.iter().map(|placed| serde_json::to_value(&placed.object).unwrap());
        servers.chain(manifests.plugins.iter().map(|placed| serde_json::to_value(&placed.object).unwrap())).collect()
    };
    let good = values(manifests);
    let written: Vec<String> = good.iter().map(Value::to_string).collect();
    let again = read(&written.join("\n---\n"));
    assert_eq!(values(&again), good, "{:?}", again.violations);
}

#[test]
fn fuzz_seed_manifest_is_valid() {
    let good = checked(GOOD);
    assert!(good.violations.is_empty(), "{:?}", good.violations);
    assert_eq!((good.servers.len(), good.plugins.len()), (1, 2));
    check_round_trip(&good);
}

#[test]
fn manifest_text_is_read_or_refused_with_its_place() {
    for_all(300, &text(), |text| {
        check_round_trip(&checked(&text));
        Ok(())
    });
    let (read, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    for_all(400, &edits(), |edits| {
        let text = String::from_utf8_lossy(&mutate(GOOD.as_bytes(), GOOD.as_bytes(), &edits)).into_owned();
        let manifests = checked(&text);
        check_round_trip(&manifests);
        let count = if manifests.violations.is_empty() { &read } else { &refused };
        count.set(count.get() + 1);
        Ok(())
    });
    assert!(read.get() > 20 && refused.get() > 100, "{} were read, {} were refused", read.get(), refused.get());
}

#[test]
fn yaml_round_trips_through_json() {
    for_all(500, &(text(), edits()), |(other, edits)| {
        let text = String::from_utf8_lossy(&mutate(GOOD.as_bytes(), other.as_bytes(), &edits)).into_owned();
        for text in [text, other] {
            for node in yaml::read(&text).unwrap_or_default() {
                let value = node.to_json();
                let again = yaml::read(&value.to_string()).unwrap();
                prop_assert_eq!(again.first().map_or(Value::Null, yaml::YamlNode::to_json), value);
            }
        }
        Ok(())
    });
}

/// Concatenates `count` results of `part`, which receives the index.
fn many(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect()
}

fn server(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: nightshift.dev/v1alpha1\nkind: PaperMCServer\nmetadata: {{name: {name}}}\nspec: {{updateStrategy: auto{spec}}}\n"
    )
}

#[test]
fn long_and_deep_manifests_are_read_in_time() {
    let long = "x".repeat(1 << 18);
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (this, last) in ('b'..='j').zip('a'..) {
        let row = format!("*{last},").repeat(9);
        writeln!(bomb, "{this}: &{this} [{}]", row.trim_end_matches(',')).unwrap();
    }
    let mut texts: Vec<(&str, String)> = vec![
        ("a long word of an enum", server("a", &format!(", channel: {long}"))),
        ("a long text against a pattern", server("a", &format!(", updateDelay: {long}"))),
        ("a long cron", server("a", &format!(", updateSchedule: {{checkCron: \"{}\"}}", "1 ".repeat(1 << 17)))),
        (
            "a long list in a cron",
            server("a", &format!(", updateSchedule: {{checkCron: \"{}1 * * * *\"}}", "1,".repeat(1 << 15))),
        ),
        ("a long field", server("a", &format!(", {long}: 1"))),
        ("a long name", server(&long, "")),
        ("a long kind", format!("apiVersion: nightshift.dev/v1alpha1\nkind: {long}\n")),
        ("a long group", format!("apiVersion: {long}\nkind: Plugin\n")),
        ("a long number", server("a", &format!(", version: {}", "1".repeat(1 << 18)))),
        ("many servers", many(1_500, |at| server(&format!("s{at}"), ""))),
        ("one server many times", many(1_500, |_| server("a", ""))),
        ("many unknown fields", server("a", &many(5_000, |at| format!(", field{at}: 1")))),
        (
            "many windows",
            server(
                "a",
                &format!(
                    ", updateSchedule: {{windows: [{}]}}",
                    many(5_000, |at| format!("{{name: n{at}, cron: '@daily'}},"))
                ),
            ),
        ),
        (
            "many containers",
            server(
                "a",
                &format!(
                    ", podTemplate: {{spec: {{containers: [{}]}}}}",
                    many(5_000, |at| format!("{{name: n{at}}},"))
                ),
            ),
        ),
        (
            "many labels",
            server(
                "a",
                &format!(", podTemplate: {{metadata: {{labels: {{{}}}}}}}", many(5_000, |at| format!("l{at}: x,"))),
            ),
        ),
        ("an explosion", bomb),
        ("nested lists", "[".repeat(1 << 18)),
        ("nested maps", "{a: ".repeat(1 << 18)),
        ("nested items", "- ".repeat(1 << 18)),
        ("nested Lists", "{apiVersion: v1, kind: List, items: [".repeat(1 << 14)),
        ("nested fields of a pod", server("a", &format!(", podTemplate: {}{}", "{spec: ".repeat(50), "}".repeat(50)))),
    ];
    for (label, part) in [
        ("quotes", "\""),
        ("anchors", "&a "),
        ("aliases", "*a "),
        ("tags", "! "),
        ("keys", "? "),
        ("directives", "%YAML 1.2\n"),
        ("documents", "--- a\n"),
        ("empty documents", "---\n"),
        ("blocks", "|\n"),
        ("comments", "#\n"),
        ("returns", "\r"),
        ("tabs", "\t"),
        ("colons", "a:\n "),
        ("commas", "[,"),
        ("ends", "...\n"),
        ("plain lines", "a\n"),
        ("marks", "\u{feff}"),
        ("zeros", "\0"),
        ("folds", ">-\n\n"),
    ] {
        texts.push((label, part.repeat((1 << 17) / part.len())));
    }
    for (label, text) in texts {
        within_time_limit(label, || drop(checked(&text)));
    }
}

fn violations(text: &str) -> Vec<String> {
    read(text).violations.iter().map(ToString::to_string).collect()
}

#[test]
fn manifest_nested_too_deep_is_refused_before_stack_overflow() {
    let nested = |depth: usize| format!("kind: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(
        violations(&nested(60)),
        ["f.yaml:1: is nested more than 32 deep. Give a manifest of `PaperMCServer` or `Plugin` objects"]
    );
    assert!(violations(&nested(31))[0].contains("`kind` is missing"));
}

#[test]
fn manifest_error_truncates_megabyte_field() {
    let long = "x".repeat(1 << 20);
    let messages = violations(&server("a", &format!(", channel: {long}")));
    let shown = format!(
        "`spec.channel` cannot be `{}…{}`. It can be `Stable`, `Beta` or `Alpha`",
        "x".repeat(289),
        "x".repeat(99)
    );
    assert_eq!(messages, [format!("f.yaml:5: PaperMCServer a: {shown}")]);
}

#[test]
fn manifest_errors_per_object_stop_at_hundred() {
    let messages = violations(&server("a", &many(5_000, |at| format!(", field{at}: 1"))));
    assert_eq!(messages.len(), 101);
    assert!(
        messages.iter().any(|message| message.ends_with("has more errors than these 100. Correct these first")),
        "{messages:?}"
    );
}

#[test]
fn manifest_list_beyond_maximum_is_checked_up_to_it() {
    let windows = many(50, |at| format!("{{name: n{at}, cron: nonsense}},"));
    let messages = violations(&server("a", &format!(", updateSchedule: {{windows: [{windows}]}}")));
    let most =
        manifests::schemas()[0].pointer("/properties/spec/properties/updateSchedule/properties/windows/maxItems");
    let most = usize::try_from(most.and_then(Value::as_u64).unwrap()).unwrap();
    assert_eq!(messages.len(), 1 + most, "{messages:?}");
    assert!(messages.iter().any(|message| message.contains("has 50 items. Write at most")), "{messages:?}");
}

#[test]
fn yaml_aliases_that_multiply_are_refused_at_once() {
    let mut rows = String::new();
    for (this, last) in ('b'..='j').zip('a'..) {
        writeln!(rows, "{this}: &{this} [*{last}, *{last}, *{last}, *{last}, *{last}, *{last}]").unwrap();
    }
    let messages = violations(&format!("a: &a [x, x, x]\n{rows}"));
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("alias"), "{messages:?}");
}

fn saved_query() -> String {
    let at = "2026-01-20T18:00:00Z".parse().unwrap();
    let catalog = resolver::model::catalog::Catalog::empty(at);
    let question = Query {
        now: at,
        at,
        why_not: Some("1.21.11".parse().unwrap()),
        why_not_release: Some("viaversion=5.6.0".parse().unwrap()),
        target: None,
        servers: vec!["games/lobby".to_owned()],
        without: Vec::new(),
        assume: Vec::new(),
    };
    let checked = check(read(GOOD), &mut Vec::new()).unwrap();
    serde_json::to_string_pretty(&serde_json::json!({
        "formatVersion": FormatVersion::<1>::default(), "question": question, "requests": checked.requests, "running": checked.running,
        "schedules": checked.schedules, "catalog": catalog,
    }))
    .unwrap()
}

#[test]
fn saved_query_file_is_read_or_refused_with_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("problem.json");
    let good = saved_query();
    let try_one = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        match SavedQuery::read(&path) {
            Ok(problem) => {
                let SavedQuery { question, requests, catalog, .. } = &problem;
                question.answer(catalog, requests);
                let text = serde_json::to_string(&problem).unwrap();
                let again: SavedQuery = serde_json::from_str(&text).unwrap();
                assert_eq!(serde_json::to_string(&again).unwrap(), text);
                true
            }
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("problem.json"), "no file name: {message}");
                assert!(message.len() < MAX_ERROR_LENGTH, "{message}");
                false
            }
        }
    };
    assert!(try_one(good.as_bytes()));
    let read = Cell::new(0_u32);
    for_all(500, &(edits(), bytes()), |(edits, other)| {
        read.set(read.get() + u32::from(try_one(&mutate(good.as_bytes(), &other, &edits))));
        try_one(&other);
        Ok(())
    });
    assert!(read.get() > 10, "only {} inputs were read", read.get());
    let long = "x".repeat(1 << 18);
    for bad in [
        "[".repeat(1 << 18),
        format!("{{\"{long}\": 1}}"),
        good.replace("games/lobby", &long),
        good.replace("1.21.11", &long),
    ] {
        within_time_limit("a long problem", || try_one(bad.as_bytes()));
    }
}
