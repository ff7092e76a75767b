//! Pure. Fuzz tests for the file of compatibility facts.

use std::cell::Cell;

use fixtures::fuzz::mutate;
use serde_json::json;

use super::many;
use crate::mutate::{MAX_ERROR_LENGTH, edits, for_all, text, within_time_limit};
use upstream::format_chain;

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
fn check_read(text: &str) -> bool {
    match from_api::parse_facts(text) {
        Ok(facts) => {
            let again = json!({"facts": facts.all()}).to_string();
            assert_eq!(from_api::parse_facts(&again).unwrap_or_else(|error| panic!("{error}: {again}")), facts);
            true
        }
        Err(error) => {
            let message = format_chain(&error);
            assert!(
                message.len() < MAX_ERROR_LENGTH,
                "{} bytes: {}",
                message.len(),
                message.chars().take(400).collect::<String>()
            );
            let unprintable = |c: char| c.is_control() && c != '\n';
            assert!(!message.contains(unprintable), "{message:?}");
            false
        }
    }
}

#[test]
fn facts_text_is_read_or_refused_briefly() {
    assert!(check_read(GOOD));
    for_all(300, &text(), |text| {
        check_read(&text);
        Ok(())
    });
    let (read, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    for_all(500, &edits(), |edits| {
        let text = String::from_utf8_lossy(&mutate(GOOD.as_bytes(), GOOD.as_bytes(), &edits)).into_owned();
        let count = if check_read(&text) { &read } else { &refused };
        count.set(count.get() + 1);
        Ok(())
    });
    assert!(read.get() > 20 && refused.get() > 100, "{} were read, {} were refused", read.get(), refused.get());
}

#[test]
fn long_and_deep_facts_are_read_in_time() {
    let long = "x".repeat(1 << 18);
    let one = |plugin: &str, releases: &str, source: &str, date: &str| {
        format!(
            "- {{plugin: {plugin}, releases: '{releases}', requires: {{plugin: b, version: '*'}}, source: {source}, date: {date}}}\n"
        )
    };
    for (label, text) in [
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
        within_time_limit(label, || assert!(!check_read(&text), "{label}"));
    }
}
