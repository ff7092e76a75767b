//! Pure. Checks a manifest against the schema of its kind as strictly as the API server, and suggests the nearest valid
//! word.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use regex::Regex;
use serde_json::Value;

use super::join::listed;
use super::yaml::{YamlNode, YamlValue};
use crate::did_you_mean::nearest;

mod expectation;
mod misplaced_field;

/// Up to this number of allowed fields, all are listed. A pod spec has more, and such a list does not help.
const MOST_NAMED: usize = 38;

/// A violation of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaViolation {
    /// The line, from 1.
    pub(super) line: u64,
    /// The field: `spec.updateSchedule.windows[0].cron`.
    pub(super) path: String,
    /// The problem, as a text that follows the field's name.
    pub(super) problem: String,
    /// The suggested fix.
    pub(super) fix: String,
}

/// All schema violations in `node`, in the order of the document. `document` is the whole text.
pub(super) fn check(node: &YamlNode, schema: &Value, document: &str) -> Vec<SchemaViolation> {
    let mut checker = Checker { document, root: schema, wrong: Vec::new() };
    checker.value(node, schema, "", node.line);
    if checker.is_full() {
        let (problem, fix) = (format!("has more mistakes than these {MOST}"), "correct these first".to_owned());
        checker.wrong.push(SchemaViolation { line: node.line, path: String::new(), problem, fix });
    }
    checker.wrong.sort_by_key(|wrong| wrong.line);
    checker.wrong
}

/// Maximum number of violations per object. Users read no more, and each one costs a search for the right word.
const MOST: usize = 100;

/// The pattern, compiled once for all objects, because that costs a thousand times as much as a match. `None` for a
/// pattern that does not compile here. The API server still checks it.
fn compiled(pattern: &str) -> Option<Regex> {
    static COMPILED: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = compiled.get(pattern) {
        return known.clone();
    }
    compiled.entry(pattern.to_owned()).or_insert(Regex::new(pattern).ok()).clone()
}

struct Checker<'a> {
    document: &'a str,
    /// The schema of the whole object, to find where a misplaced field belongs.
    root: &'a Value,
    wrong: Vec<SchemaViolation>,
}

impl Checker<'_> {
    fn complain(&mut self, line: u64, path: &str, problem: impl Into<String>, fix: impl Into<String>) {
        let (problem, fix) = (problem.into(), fix.into());
        if !self.is_full() {
            self.wrong.push(SchemaViolation { line, path: path.to_owned(), problem, fix });
        }
    }

    fn is_full(&self) -> bool {
        self.wrong.len() >= MOST
    }

    fn value(&mut self, node: &YamlNode, schema: &Value, path: &str, line: u64) {
        if schema["x-kubernetes-int-or-string"] == true {
            match &node.tree {
                YamlValue::Number(_) => {}
                YamlValue::Text(text) => self.text(text, schema, path, line),
                YamlValue::Null | YamlValue::Bool(_) | YamlValue::List(_) | YamlValue::Map(_) => {
                    self.wrong_type(node, "a number or text", path, line);
                }
            }
            return;
        }
        match (schema["type"].as_str(), &node.tree) {
            (Some("object"), YamlValue::Map(_)) => self.object(node, schema, path, line),
            (Some("array"), YamlValue::List(items)) => self.list(items, schema, path, line),
            (Some("string"), YamlValue::Text(text)) => self.text(text, schema, path, line),
            (Some("integer"), YamlValue::Number(number)) if number.is_i64() || number.is_u64() => {
                self.number(number.as_f64().unwrap_or(f64::NAN), schema, path, line);
            }
            (Some("number"), YamlValue::Number(number)) => {
                self.number(number.as_f64().unwrap_or(f64::NAN), schema, path, line);
            }
            (Some("boolean"), YamlValue::Bool(_)) => {}
            (Some("object"), _) => self.wrong_type(node, expectation::FIELDS, path, line),
            (Some("array"), _) => self.wrong_type(node, expectation::LIST, path, line),
            (Some("string"), _) => self.wrong_type(node, "text", path, line),
            (Some("integer"), _) => self.wrong_type(node, expectation::WHOLE, path, line),
            (Some("number"), _) => self.wrong_type(node, "a number", path, line),
            (Some("boolean"), _) => self.wrong_type(node, expectation::TRUTH, path, line),
            // Without a type, the schema allows any value.
            _ => {}
        }
    }

    fn wrong_type(&mut self, node: &YamlNode, wanted: &str, path: &str, line: u64) {
        let written = node.written(self.document).map(|written| format!(" {written}")).unwrap_or_default();
        let is = match &node.tree {
            YamlValue::Null => "nothing".to_owned(),
            YamlValue::Bool(_) => format!("the truth value{written}"),
            YamlValue::Number(_) => format!("the number{written}"),
            YamlValue::Text(text) => format!("the text `{text}`"),
            YamlValue::List(_) => "a list".to_owned(),
            YamlValue::Map(_) => "a set of fields".to_owned(),
        };
        let fix = match &node.tree {
            YamlValue::Bool(_) | YamlValue::Number(_) if wanted == "text" && !written.is_empty() => {
                format!("put it into quotes: `{}: \"{}\"`", last(path), written.trim())
            }
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Number(_)
            | YamlValue::Text(_)
            | YamlValue::List(_)
            | YamlValue::Map(_) => expectation::of_type(wanted).to_owned(),
        };
        self.complain(line, path, format!("is {is}, and should be {wanted}"), fix);
    }

    fn object(&mut self, node: &YamlNode, schema: &Value, path: &str, line: u64) {
        let properties = schema["properties"].as_object();
        let further = schema.get("additionalProperties").filter(|further| **further != Value::Bool(false));
        for entry in node.entries() {
            if self.is_full() {
                return;
            }
            let inner = join(path, &entry.key);
            match properties.and_then(|properties| properties.get(&entry.key)).or(further) {
                // The API server removes a null before validation, so the field counts as absent.
                Some(_) if entry.value.tree == YamlValue::Null => {}
                Some(schema) => self.value(&entry.value, schema, &inner, entry.line),
                None => {
                    if let Some(properties) = properties {
                        let names = properties.keys().map(String::as_str);
                        let fix = self.fix_unknown(&entry.key, names);
                        self.complain(entry.line, &inner, "does not exist", fix);
                    }
                }
            }
        }
        let missing = |name: &str| node.get(name).is_none_or(|value| value.tree == YamlValue::Null);
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if missing(name) {
                let fix = expectation::example(name, &schema["properties"][name]);
                self.complain(line, &join(path, name), "is missing", fix);
            }
        }
    }

    fn fix_unknown<'s>(&self, key: &str, names: impl Iterator<Item = &'s str> + Clone) -> String {
        let homes = misplaced_field::homes(key, self.root);
        if !homes.is_empty() {
            return format!("it belongs into {}", listed(homes.iter().map(String::as_str)));
        }
        if let Some(meant) = nearest(key, names.clone()).next() {
            return format!("did you mean `{meant}`?");
        }
        if names.clone().count() > MOST_NAMED {
            return "remove it".to_owned();
        }
        format!("what can stand here: {}", listed(names))
    }

    fn list(&mut self, items: &[YamlNode], schema: &Value, path: &str, line: u64) {
        let most = schema["maxItems"].as_u64().and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        if items.len() > most {
            self.complain(line, path, format!("has {} items", items.len()), format!("write at most {most}"));
        }
        let keys: Vec<&str> =
            schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut seen: BTreeSet<Vec<Option<String>>> = BTreeSet::new();
        for (at, item) in items.iter().take(most).enumerate() {
            if self.is_full() {
                return;
            }
            let inner = format!("{path}[{at}]");
            self.value(item, &schema["items"], &inner, item.line);
            let key: Vec<Option<String>> =
                keys.iter().map(|key| item.get(key).map(|value| value.to_json().to_string())).collect();
            // The `required` check reports containers without a name.
            if key.iter().any(Option::is_some) && !seen.insert(key) {
                let fix = format!("give each item another {}", listed(keys.iter().copied()));
                self.complain(item.line, &inner, "is there twice", fix);
            }
        }
    }

    fn text(&mut self, text: &str, schema: &Value, path: &str, line: u64) {
        if let Some(words) = schema["enum"].as_array() {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            if !words.contains(&text) {
                let all = listed(words.iter().copied());
                let fix = match nearest(text, words).next() {
                    Some(meant) => format!("did you mean `{meant}`? It can be {all}"),
                    None => format!("it can be {all}"),
                };
                self.complain(line, path, format!("cannot be `{text}`"), fix);
            }
            return;
        }
        let pattern = schema["pattern"].as_str().and_then(compiled);
        if pattern.is_some_and(|pattern| !pattern.is_match(text)) {
            let (problem, fix) = if text.is_empty() {
                ("is empty".to_owned(), "write something, or leave the field out".to_owned())
            } else {
                expectation::words(last(path), schema, text)
            };
            self.complain(line, path, problem, fix);
            return;
        }
        let length = text.chars().count() as u64;
        if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
            self.complain(line, path, format!("has {length} characters"), format!("write at most {most}"));
        }
        if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
            let problem = if length == 0 { "is empty".to_owned() } else { format!("has {length} characters") };
            self.complain(line, path, problem, format!("write at least {least}, or leave the field out"));
        }
    }

    fn number(&mut self, number: f64, schema: &Value, path: &str, line: u64) {
        let (least, most) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
        if least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most) {
            let fix = match (least, most) {
                (Some(least), Some(most)) => format!("write a number from {least} to {most}"),
                (Some(least), None) => format!("write {least} or more"),
                (None, Some(most)) => format!("write {most} or less"),
                (None, None) => String::new(),
            };
            self.complain(line, path, format!("cannot be {number}"), fix);
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
