//! Pure. Checks a manifest against the schema of its kind as strictly as the API server, and suggests the nearest valid
//! word.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use regex::Regex;
use serde_json::Value;

use super::yaml::{YamlNode, YamlValue};
use crate::output::join::or_list;
use resolver::model::did_you_mean::nearest;

mod expectation;
mod misplaced_field;

use expectation::Mismatch;

/// Up to this number of allowed fields, all are listed. A pod spec has more, and such a list does not help.
const MAX_LISTED_FIELDS: usize = 38;

/// A violation of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaViolation {
    /// The line, from 1.
    pub(crate) line: u64,
    /// The field: `spec.updateSchedule.windows[0].cron`.
    pub(crate) path: String,
    /// The problem, as a text that follows the field's name. Without a fix: the words of the operator, which contain it.
    pub(crate) problem: String,
    /// The suggested fix. Empty where the problem contains it.
    pub(crate) fix: String,
}

/// All schema violations in `node`, in the order of the document. `document` is the whole text.
pub(crate) fn check(node: &YamlNode, schema: &Value, document: &str) -> Vec<SchemaViolation> {
    let mut checker = Checker { document, root: schema, violations: Vec::new() };
    checker.check_value(node, schema, "", node.line);
    if checker.is_full() {
        let (problem, fix) = (format!("has more errors than these {MAX_VIOLATIONS}"), "correct these first".to_owned());
        checker.violations.push(SchemaViolation { line: node.line, path: String::new(), problem, fix });
    }
    checker.violations.sort_by_key(|violation| violation.line);
    checker.violations
}

/// Maximum number of violations per object. Users read no more, and each one costs a search for the right word.
const MAX_VIOLATIONS: usize = 100;

/// The pattern, compiled once for all objects, because that costs a thousand times as much as a match. `None` for a
/// pattern that does not compile here. The API server still checks it.
fn compiled(pattern: &str) -> Option<Regex> {
    static COMPILED: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = compiled.get(pattern) {
        return regex.clone();
    }
    compiled.entry(pattern.to_owned()).or_insert(Regex::new(pattern).ok()).clone()
}

struct Checker<'a> {
    document: &'a str,
    /// The schema of the whole object, to find where a misplaced field belongs.
    root: &'a Value,
    violations: Vec<SchemaViolation>,
}

impl Checker<'_> {
    fn add(&mut self, line: u64, path: &str, problem: impl Into<String>, fix: impl Into<String>) {
        let (problem, fix) = (problem.into(), fix.into());
        if !self.is_full() {
            self.violations.push(SchemaViolation { line, path: path.to_owned(), problem, fix });
        }
    }

    fn is_full(&self) -> bool {
        self.violations.len() >= MAX_VIOLATIONS
    }

    fn check_value(&mut self, node: &YamlNode, schema: &Value, path: &str, line: u64) {
        if schema["x-kubernetes-int-or-string"] == true {
            match &node.tree {
                YamlValue::Number(_) => {}
                YamlValue::Text(text) => self.check_text(text, schema, path, line),
                YamlValue::Null | YamlValue::Bool(_) | YamlValue::List(_) | YamlValue::Map(_) => {
                    self.report_wrong_type(node, "a number or text", path, line);
                }
            }
            return;
        }
        match (schema["type"].as_str(), &node.tree) {
            (Some("object"), YamlValue::Map(_)) => self.check_object(node, schema, path, line),
            (Some("array"), YamlValue::List(items)) => self.check_list(items, schema, path, line),
            (Some("string"), YamlValue::Text(text)) => self.check_text(text, schema, path, line),
            (Some("integer"), YamlValue::Number(number)) if number.is_i64() || number.is_u64() => {
                self.check_number(number.as_f64().unwrap_or(f64::NAN), schema, path, line);
            }
            (Some("number"), YamlValue::Number(number)) => {
                self.check_number(number.as_f64().unwrap_or(f64::NAN), schema, path, line);
            }
            (Some("boolean"), YamlValue::Bool(_)) => {}
            (Some("object"), _) => self.report_wrong_type(node, expectation::FIELDS, path, line),
            (Some("array"), _) => self.report_wrong_type(node, expectation::LIST, path, line),
            (Some("string"), _) => self.report_wrong_type(node, "text", path, line),
            (Some("integer"), _) => self.report_wrong_type(node, expectation::WHOLE_NUMBER, path, line),
            (Some("number"), _) => self.report_wrong_type(node, "a number", path, line),
            (Some("boolean"), _) => self.report_wrong_type(node, expectation::BOOLEAN, path, line),
            // Without a type, the schema allows any value.
            _ => {}
        }
    }

    fn report_wrong_type(&mut self, node: &YamlNode, expected: &str, path: &str, line: u64) {
        let written = node.source_text(self.document).map(|written| format!(" {written}")).unwrap_or_default();
        let is = match &node.tree {
            YamlValue::Null => "nothing".to_owned(),
            YamlValue::Bool(_) => format!("the truth value{written}"),
            YamlValue::Number(_) => format!("the number{written}"),
            YamlValue::Text(text) => format!("the text `{text}`"),
            YamlValue::List(_) => "a list".to_owned(),
            YamlValue::Map(_) => "a set of fields".to_owned(),
        };
        let fix = match &node.tree {
            YamlValue::Bool(_) | YamlValue::Number(_) if expected == "text" && !written.is_empty() => {
                format!("put it into quotes: `{}: \"{}\"`", last_segment(path), written.trim())
            }
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Number(_)
            | YamlValue::Text(_)
            | YamlValue::List(_)
            | YamlValue::Map(_) => expectation::hint_for_type(expected).to_owned(),
        };
        self.add(line, path, format!("is {is}, and should be {expected}"), fix);
    }

    fn check_object(&mut self, node: &YamlNode, schema: &Value, path: &str, line: u64) {
        let properties = schema["properties"].as_object();
        let additional = schema.get("additionalProperties").filter(|additional| **additional != Value::Bool(false));
        for entry in node.entries() {
            if self.is_full() {
                return;
            }
            let inner = join_path(path, &entry.key);
            match properties.and_then(|properties| properties.get(&entry.key)).or(additional) {
                // The API server removes a null before validation, so the field counts as absent.
                Some(_) if entry.value.tree == YamlValue::Null => {}
                Some(schema) => self.check_value(&entry.value, schema, &inner, entry.line),
                None => {
                    if let Some(properties) = properties {
                        let names = properties.keys().map(String::as_str);
                        let fix = self.suggest_field(&entry.key, names);
                        self.add(entry.line, &inner, "does not exist", fix);
                    }
                }
            }
        }
        let missing = |name: &str| node.get(name).is_none_or(|value| value.tree == YamlValue::Null);
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if missing(name) {
                let fix = expectation::example(name, &schema["properties"][name]);
                self.add(line, &join_path(path, name), "is missing", fix);
            }
        }
    }

    fn suggest_field<'s>(&self, key: &str, names: impl Iterator<Item = &'s str> + Clone) -> String {
        let parents = misplaced_field::parents_with_field(key, self.root);
        if !parents.is_empty() {
            return format!("it belongs in {}", or_list(parents.iter().map(String::as_str)));
        }
        if let Some(suggestion) = nearest(key, names.clone()).next() {
            return format!("did you mean `{suggestion}`?");
        }
        if names.clone().count() > MAX_LISTED_FIELDS {
            return "remove it".to_owned();
        }
        format!("allowed here: {}", or_list(names))
    }

    fn check_list(&mut self, items: &[YamlNode], schema: &Value, path: &str, line: u64) {
        let max = schema["maxItems"].as_u64().and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
        if items.len() > max {
            self.add(line, path, format!("has {} items", items.len()), format!("write at most {max}"));
        }
        let keys: Vec<&str> =
            schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut seen: BTreeSet<Vec<Option<String>>> = BTreeSet::new();
        for (at, item) in items.iter().take(max).enumerate() {
            if self.is_full() {
                return;
            }
            let inner = format!("{path}[{at}]");
            self.check_value(item, &schema["items"], &inner, item.line);
            let key: Vec<Option<String>> =
                keys.iter().map(|key| item.get(key).map(|value| value.to_json().to_string())).collect();
            // The `required` check reports containers without a name.
            if key.iter().any(Option::is_some) && !seen.insert(key) {
                let fix = format!("give each item another {}", or_list(keys.iter().copied()));
                self.add(item.line, &inner, "exists twice", fix);
            }
        }
    }

    fn check_text(&mut self, text: &str, schema: &Value, path: &str, line: u64) {
        if let Some(values) = schema["enum"].as_array() {
            let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            if !values.contains(&text) {
                let all = or_list(values.iter().copied());
                let fix = match nearest(text, values).next() {
                    Some(suggestion) => format!("did you mean `{suggestion}`? It can be {all}"),
                    None => format!("it can be {all}"),
                };
                self.add(line, path, format!("cannot be `{text}`"), fix);
            }
            return;
        }
        let pattern = schema["pattern"].as_str().and_then(compiled);
        if pattern.is_some_and(|pattern| !pattern.is_match(text)) {
            if text.is_empty() {
                self.add(line, path, "is empty", "write something, or leave the field out");
                return;
            }
            match expectation::pattern_mismatch(path, schema, text) {
                Some(Mismatch::Pattern(problem, fix)) => self.add(line, path, problem, fix),
                Some(Mismatch::Operator(problem)) => self.add(line, path, problem, ""),
                None => {}
            }
            return;
        }
        let length = text.chars().count() as u64;
        if let Some(max) = schema["maxLength"].as_u64().filter(|max| length > *max) {
            self.add(line, path, format!("has {length} characters"), format!("write at most {max}"));
        }
        if let Some(min) = schema["minLength"].as_u64().filter(|min| length < *min) {
            let problem = if length == 0 { "is empty".to_owned() } else { format!("has {length} characters") };
            self.add(line, path, problem, format!("write at least {min}, or leave the field out"));
        }
    }

    fn check_number(&mut self, number: f64, schema: &Value, path: &str, line: u64) {
        let (min, max) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
        if min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max) {
            let fix = match (min, max) {
                (Some(min), Some(max)) => format!("write a number from {min} to {max}"),
                (Some(min), None) => format!("write {min} or more"),
                (None, Some(max)) => format!("write {max} or less"),
                (None, None) => String::new(),
            };
            self.add(line, path, format!("cannot be {number}"), fix);
        }
    }
}

fn join_path(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn last_segment(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
