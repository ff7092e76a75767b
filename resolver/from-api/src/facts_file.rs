//! Pure. Parses the facts file of a cluster strictly, and reports the position of an error.

use jiff::civil::Date;
use serde::Deserialize;
use serde_saphyr::Spanned;

use resolver::model::compatibility_facts::{CompatibilityFacts, Requirement, VersionFact};
use resolver::model::version::range::{NotARange, Range};

/// Limit of facts in a file. More would be a database, not manually recorded facts.
const MAX_FACTS: usize = 1_000;
/// Limit of text length, because locks and explanations contain facts.
const MAX_TEXT_LENGTH: usize = 256;

/// An error in a facts file.
#[derive(Debug, thiserror::Error)]
pub enum FactsFileError {
    /// It is no valid YAML, or does not have the expected form.
    #[error(
        "it does not have the form `facts: [{{plugin, releases, requires: {{plugin, version}}, source, date}}]` of \
         docs/reference/facts.md"
    )]
    Syntax(#[source] serde_saphyr::Error),
    /// An invalid range. The message ends with two lines that point to the error.
    #[error("line {line}: `facts[{at}].{field}`: {error}\n{}", .error.with_marker())]
    Range {
        /// The line, from 1.
        line: u64,
        /// Index of the fact, from 0.
        at: usize,
        /// The field.
        field: &'static str,
        /// The error in the range.
        error: NotARange,
    },
    /// More facts than could have been recorded manually.
    #[error("it has {0} facts, and at most {MAX_FACTS} are read: leave out those of plugins that you do not run")]
    TooMany(usize),
    /// A name or a source that is empty, or too long.
    #[error("`facts[{at}].{field}` has {length} characters: write between 1 and {MAX_TEXT_LENGTH}")]
    TextLength {
        /// Index of the fact, from 0.
        at: usize,
        /// The field.
        field: &'static str,
        /// Its length.
        length: usize,
    },
    /// A plugin that requires itself.
    #[error(
        "`facts[{at}].requires.plugin` is `{plugin}`, the same as `facts[{at}].plugin`: name the plugin that it needs"
    )]
    SelfRequirement {
        /// Index of the fact, from 0.
        at: usize,
        /// The plugin.
        plugin: String,
    },
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FactsFile {
    facts: Vec<RawFact>,
}

/// A [`VersionFact`] as written in the file: ranges with their positions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFact {
    plugin: String,
    releases: Option<Spanned<String>>,
    requires: RawRequirement,
    source: String,
    date: Date,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRequirement {
    plugin: String,
    version: Spanned<String>,
}

impl RawFact {
    fn into_fact(self, at: usize) -> Result<VersionFact, FactsFileError> {
        let range = |text: Spanned<String>, field| {
            let line = text.referenced.line();
            text.value.parse::<Range>().map_err(|error| FactsFileError::Range { line, at, field, error })
        };
        let Self { plugin, releases, requires: RawRequirement { plugin: other, version }, source, date } = self;
        Ok(VersionFact {
            plugin,
            releases: releases.map(|text| range(text, "releases")).transpose()?.unwrap_or_default(),
            requires: Requirement { plugin: other, version: range(version, "requires.version")? },
            source,
            date,
        })
    }
}

/// Parses the text of a file, YAML or JSON. `docs/reference/facts.md` describes the content.
pub fn parse_facts(text: &str) -> Result<CompatibilityFacts, FactsFileError> {
    let options = serde_saphyr::options! { with_snippet: false };
    let FactsFile { facts } = serde_saphyr::from_str_with_options(text, options).map_err(FactsFileError::Syntax)?;
    if facts.len() > MAX_FACTS {
        return Err(FactsFileError::TooMany(facts.len()));
    }
    let facts = facts.into_iter().enumerate().map(|(at, fact)| fact.into_fact(at)).collect::<Result<Vec<_>, _>>()?;
    for (at, fact) in facts.iter().enumerate() {
        let VersionFact { plugin, releases: _, requires, source, date: _ } = fact;
        for (field, text) in [("plugin", plugin), ("requires.plugin", &requires.plugin), ("source", source)] {
            let length = text.trim().chars().count();
            if !(1..=MAX_TEXT_LENGTH).contains(&length) {
                return Err(FactsFileError::TextLength { at, field, length });
            }
        }
        if plugin.eq_ignore_ascii_case(&requires.plugin) {
            return Err(FactsFileError::SelfRequirement { at, plugin: plugin.clone() });
        }
    }
    Ok(facts.into())
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    const SAMPLE: &str = "facts:
- plugin: WorldGuard
  releases: 7.0.x
  requires: {plugin: WorldEdit, version: \">=7.3, <7.4\"}
  source: github.com/EngineHub/WorldGuard
  date: 2026-01-10
";

    fn error_text(text: &str) -> String {
        let error = parse_facts(text).unwrap_err();
        error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
    }

    #[test]
    fn facts_file_is_read_whole_even_when_empty() {
        let facts = parse_facts(SAMPLE).unwrap();
        assert!(facts.all()[0].releases.contains("7.0.12") && !facts.all()[0].requires.version.contains("7.4"));
        assert_eq!(parse_facts("facts: []").unwrap(), CompatibilityFacts::default());
        assert_eq!(parse_facts(&serde_json::json!({"facts": facts.all()}).to_string()).unwrap(), facts);
    }

    #[test]
    fn facts_error_names_its_place() {
        for (from, to, expected) in [
            ("<7.4", "<<7.4", &["line 4: `facts[0].requires.version`", "    >=7.3, <<7.4\n            ^"][..]),
            ("releases", "release", &["unknown field", "release", "line 3"]),
            ("2026-01-10", "10 January", &["line 6"]),
            ("  source: github.com/EngineHub/WorldGuard\n", "", &["source"]),
            ("plugin: WorldGuard", "plugin: \" \"", &["`facts[0].plugin` has 0 characters"]),
            ("plugin: WorldGuard", "plugin: worldedit", &["`facts[0].requires.plugin` is `worldedit`"]),
            ("facts:", "fact:", &["unknown field"]),
        ] {
            let text = error_text(&SAMPLE.replacen(from, to, 1));
            for part in expected {
                assert!(text.contains(part), "{part} is not in:\n{text}");
            }
        }
        assert!(error_text("").contains("facts"));
    }
}
