//! Pure. Fuzz tests for the file of compatibility facts.

use std::cell::Cell;

use fixtures::fuzz::mutated;
use serde_json::json;

use super::many;
use crate::compatibility_facts::CompatibilityFacts;
use crate::fuzzed::{LONGEST_ERROR, always, edits, in_time, text};
use crate::upstream::in_words;

/// Facts in every accepted form.
const GOOD: &str = r#"# What nobody's page says
facts:
- plugin: WorldGuard
  releases: 7.0.x
  requires: {plugin: WorldEdit, version: ">=7.3, <7.4"}
  source: github.com/EngineHub/WorldGuard
  date: 2026-01-10
- {plugin: shop, requires: {plugin: Vault, version: '*'}, source: "tried at home", date: "2026-02-28"}
- plugin: shop
  releases: ">1.2-beta.3"
  requires:
    plugin: chat
    version: 3
  source: >-
    two
    lines
  date: 2025-12-31
"#;

/// Whether the text was read. Facts are unchanged after they are written and read again, and errors are short.
fn is_read(text: &str) -> bool {
    match CompatibilityFacts::read(text) {
        Ok(facts) => {
            let again = json!({"facts": facts.all()}).to_string();
            assert_eq!(CompatibilityFacts::read(&again).unwrap_or_else(|fault| panic!("{fault}: {again}")), facts);
            true
        }
        Err(fault) => {
            let said = in_words(&fault);
            assert!(said.len() < LONGEST_ERROR, "{} bytes: {}", said.len(), said.chars().take(400).collect::<String>());
            let spoiled = |c: char| c.is_control() && c != '\n';
            assert!(!said.contains(spoiled), "{said:?}");
            false
        }
    }
}

#[test]
fn facts_text_is_read_or_refused_briefly() {
    assert!(is_read(GOOD));
    always(300, &text(), |text| {
        is_read(&text);
        Ok(())
    });
    let (read, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    always(500, &edits(), |edits| {
        let text = String::from_utf8_lossy(&mutated(GOOD.as_bytes(), GOOD.as_bytes(), &edits)).into_owned();
        let count = if is_read(&text) { &read } else { &refused };
        count.set(count.get() + 1);
        Ok(())
    });
    assert!(read.get() > 20 && refused.get() > 100, "{} were read, {} were not", read.get(), refused.get());
}

#[test]
fn long_and_deep_facts_are_read_in_time() {
    let long = "x".repeat(1 << 18);
    let one = |plugin: &str, releases: &str, source: &str, date: &str| {
        format!(
            "- {{plugin: {plugin}, releases: '{releases}', requires: {{plugin: b, version: '*'}}, source: {source}, date: {date}}}\n"
        )
    };
    for (what, text) in [
        ("a long name", format!("facts:\n{}", one(&long, "*", "s", "2026-01-01"))),
        ("a long range", format!("facts:\n{}", one("a", &long, "s", "2026-01-01"))),
        ("many conditions", format!("facts:\n{}", one("a", &">=1, ".repeat(1 << 15), "s", "2026-01-01"))),
        ("a long source", format!("facts:\n{}", one("a", "*", &long, "2026-01-01"))),
        ("a long date", format!("facts:\n{}", one("a", "*", "s", &long))),
        ("a long field", format!("{long}: 1")),
        ("many facts", format!("facts:\n{}", many(5_000, |at| one(&format!("a{at}"), "*", "s", "2026-01-01")))),
        ("nested lists", "[".repeat(1 << 18)),
        ("nested maps", "{a: ".repeat(1 << 18)),
        ("nested items", "- ".repeat(1 << 18)),
        ("aliases", "*a ".repeat(1 << 16)),
        ("anchors", "&a ".repeat(1 << 16)),
    ] {
        in_time(what, || assert!(!is_read(&text), "{what}"));
    }
}
