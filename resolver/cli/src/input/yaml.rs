//! Pure. Parses YAML to a tree with the line of every value, so that a violation has a position.

use std::fmt;
use std::ops::Range;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use serde_saphyr::budget::BudgetBreach;

/// Maximum nesting of a manifest. A `podTemplate` with affinities has 14 levels. Each level takes 40 KiB of the stack
/// in a build that is not optimized, and some threads have 2 MiB.
const MAX_DEPTH: usize = 32;

/// Maximum number of YAML events that aliases (`*name`) may repeat: a thousand times as many as any manifest. Nine
/// aliases of nine aliases, ten levels deep, are three billion.
const MAX_REPEATED_EVENTS: usize = 50_000;

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlNode {
    /// Its line, from 1.
    pub(crate) line: u64,
    /// Its bytes in the text, because the value may have lost the spelling (`1.20` is the number 1.2).
    span: Range<usize>,
    /// The value.
    pub(crate) tree: YamlValue,
}

/// A YAML value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum YamlValue {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<YamlEntry>),
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlEntry {
    pub(crate) key: String,
    /// The line of the key.
    pub(crate) line: u64,
    pub(crate) value: YamlNode,
}

/// Text that is not YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotYaml {
    pub(crate) line: u64,
    /// The problem, as a text that follows the file's name.
    pub(crate) problem: String,
    /// The suggested fix.
    pub(crate) fix: &'static str,
}

/// The documents of a text, except empty ones. JSON is YAML.
pub(crate) fn read(text: &str) -> Result<Vec<YamlNode>, NotYaml> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED_EVENTS },
    };
    match serde_saphyr::from_multiple_with_options::<YamlNode>(text, options) {
        Ok(documents) => Ok(documents.into_iter().filter(|document| document.tree != YamlValue::Null).collect()),
        Err(error) => {
            let line = error.location().map_or(1, |location| location.line());
            if let serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } = error.without_snippet() {
                return Err(NotYaml {
                    line,
                    problem: format!("has the key `{key}` twice in one place"),
                    fix: "remove one of the two",
                });
            }
            if let serde_saphyr::Error::Budget { breach, .. } = error.without_snippet() {
                let problem = if matches!(breach, BudgetBreach::Depth { .. }) {
                    format!("is nested more than {MAX_DEPTH} deep")
                } else {
                    "is larger than a manifest can be".to_owned()
                };
                return Err(NotYaml { line, problem, fix: "give a manifest of `PaperMCServer` or `Plugin` objects" });
            }
            // The first line describes the error. The lines after it show the position, which is reported separately.
            let text = error.to_string();
            let problem = text.lines().next().unwrap_or_default().split(" at line ").next().unwrap_or_default();
            let fix = "correct the text there: tabs cannot indent, and `: ` in a text needs quotes";
            Err(NotYaml { line, problem: format!("is not YAML: {problem}"), fix })
        }
    }
}

impl YamlNode {
    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The keys and values. Empty when it is not a map.
    pub(crate) fn entries(&self) -> &[YamlEntry] {
        if let YamlValue::Map(entries) = &self.tree { entries } else { &[] }
    }

    /// The text, if it is a text.
    pub(crate) fn text(&self) -> Option<&str> {
        if let YamlValue::Text(text) = &self.tree { Some(text) } else { None }
    }

    /// The spelling in the document, for values of one line.
    pub(crate) fn source_text<'t>(&self, document: &'t str) -> Option<&'t str> {
        document.get(self.span.clone()).filter(|written| !written.is_empty() && !written.contains('\n'))
    }

    /// The line of the value at a path such as `spec.source.project` or `spec.windows[night].cron`, or of its nearest
    /// existing parent. Brackets contain the name of an item.
    pub(crate) fn line_of(&self, path: &str) -> u64 {
        let (mut line, mut node) = (self.line, self);
        for part in path.split('.') {
            let (key, name) = part.strip_suffix(']').and_then(|part| part.split_once('[')).unwrap_or((part, ""));
            let Some(entry) = node.entries().iter().find(|entry| entry.key == key) else { break };
            (line, node) = (entry.line, &entry.value);
            let YamlValue::List(items) = &node.tree else { continue };
            let is_named = |item: &&Self| item.get("name").and_then(Self::text) == Some(name);
            let Some(item) = items.iter().find(is_named) else { break };
            (line, node) = (item.line, item);
        }
        line
    }

    /// Converts to JSON. Null values are removed from maps, as the API server does with fields that are not nullable.
    pub(crate) fn to_json(&self) -> Value {
        match &self.tree {
            YamlValue::Null => Value::Null,
            YamlValue::Bool(value) => Value::Bool(*value),
            YamlValue::Number(value) => Value::Number(value.clone()),
            YamlValue::Text(value) => Value::String(value.clone()),
            YamlValue::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            YamlValue::Map(entries) => Value::Object(
                entries
                    .iter()
                    .filter(|entry| entry.value.tree != YamlValue::Null)
                    .map(|entry| (entry.key.clone(), entry.value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: tree, referenced, defined } = Spanned::<YamlValue>::deserialize(deserializer)?;
        let offset = |number: Option<u64>| number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
        let start = offset(defined.span().byte_offset());
        let span = start..start + offset(defined.span().byte_len());
        Ok(Self { line: referenced.line(), span, tree })
    }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlValue, D::Error> {
        YamlValue::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<YamlValue, E> {
        // JSON has no `.inf` and `.nan`. They become text, which a field of another type rejects.
        Ok(Number::from_f64(value).map_or_else(|| YamlValue::Text(value.to_string()), YamlValue::Number))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<YamlValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(Spanned { value: key, referenced, defined: _ }) = pairs.next_key::<Spanned<String>>()? {
            entries.push(YamlEntry { key, line: referenced.line(), value: pairs.next_value()? });
        }
        Ok(YamlValue::Map(entries))
    }
}

#[cfg(test)]
mod tests;
