//! Pure. Describes the patterns of the schema in words.

use crds::duration;
use serde_json::Value;

use super::last_segment;
use crate::output::join::or_list;
use from_api::{CHECKSUM_FORMAT, pasted_slug, range_error, url_error};
use resolver::model::version::range::Range;
use scheduler::maintenance::{WindowError, check_cron, check_zone};

/// Expected: a set of fields.
pub(super) const FIELDS: &str = "a set of fields";
/// Expected: a list.
pub(super) const LIST: &str = "a list";
/// Expected: a whole number.
pub(super) const WHOLE_NUMBER: &str = "a whole number";
/// Expected: a boolean.
pub(super) const BOOLEAN: &str = "`true` or `false`";

/// How a value of this type is written.
pub(super) fn hint_for_type(expected: &str) -> &'static str {
    match expected {
        FIELDS => "write its fields below it, further to the right",
        LIST => "write its items below it, each after a dash",
        BOOLEAN => "write one of the two, without quotes",
        WHOLE_NUMBER => "write digits, without quotes",
        _ => "see `kubectl explain` for what it takes",
    }
}

/// A text that does not match its pattern.
pub(super) enum Mismatch {
    /// The problem and the fix in words for the pattern.
    Pattern(String, String),
    /// The violation in the words of the operator, which checks the value too.
    Operator(String),
}

/// What is wrong with a text that does not match its pattern. `None` if the value is valid nevertheless.
pub(super) fn pattern_mismatch(path: &str, schema: &Value, text: &str) -> Option<Mismatch> {
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    let field = last_segment(path);
    let (noun, fix) = match field {
        "cron" | "checkCron" => return operator_words(check_cron(text)),
        "timeZone" => return operator_words(check_zone(text)),
        "version" if path.contains("requires[") => {
            let (problem, fix) = range_error(&text.parse::<Range>().err()?);
            return Some(Mismatch::Pattern(problem, fix));
        }
        _ if pattern == duration::PATTERN => {
            ("duration", "write numbers with d, h, m or s, such as `72h` or `1h30m`".to_owned())
        }
        _ if schema["format"] == "date-time" => {
            ("instant", "write it with its offset, such as `2026-12-20T00:00:00+01:00`".to_owned())
        }
        "heap" => ("heap size", "write `auto`, or a size such as `4Gi`".to_owned()),
        // A separate message: the URL may contain a password, which must not be printed.
        "url" if let Some((problem, fix)) = url_error(text) => {
            return Some(Mismatch::Pattern(problem, fix.to_owned()));
        }
        "checksum" => ("sha256", format!("write {CHECKSUM_FORMAT}")),
        "project" => (
            "project",
            pasted_slug(text).map_or_else(
                || "write its slug, the last part of the project page's address".to_owned(),
                |slug| format!("write its slug alone: `{slug}`"),
            ),
        ),
        // The patterns of Nightshift and of Kubernetes both contain the suffixes.
        _ if pattern.contains("Ki") || pattern.contains("[KMGTPE]i") => {
            ("quantity", "write a number with an optional unit, such as `2`, `500m` or `6Gi`".to_owned())
        }
        "version" => ("version", "write it as in `1.21.10`".to_owned()),
        _ => ("value", "see `kubectl explain` for its form".to_owned()),
    };
    Some(Mismatch::Pattern(format!("is `{text}`, which is not a valid {noun}"), fix))
}

fn operator_words(checked: Result<(), WindowError>) -> Option<Mismatch> {
    checked.err().map(|error| Mismatch::Operator(error.to_string()))
}

/// Suggested fix for a missing field.
pub(super) fn example(field: &str, schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        return format!("write {}", or_list(values.iter().filter_map(Value::as_str)));
    }
    match (field, schema["type"].as_str()) {
        ("cron", _) => "write five cron fields, such as `cron: \"0 4 * * 0\"`".to_owned(),
        ("project", _) => "write the slug, the last part of the project page's address".to_owned(),
        ("instanceSelector", _) => {
            "select its servers, such as `{matchLabels: {tier: survival}}`, or `{}` for all of its namespace".to_owned()
        }
        ("source", _) => "write its source, such as `{type: modrinth, project: viaversion}`".to_owned(),
        (_, Some("object")) => format!("write `{field}:` with its fields below it"),
        _ => format!("write `{field}: …`"),
    }
}
