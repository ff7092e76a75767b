//! Pure. The page that shows every reason, warning and hint by an example: the shortest answer of a scenario that has it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// An answer of a scenario.
pub(crate) struct Answer {
    /// The scenario's name.
    pub(crate) scenario: String,
    /// The answer as data.
    pub(crate) data: Value,
    /// The answer as people read it.
    pub(crate) text: String,
}

/// A closed set of the explanation.
struct Set {
    /// Its name in the schema.
    name: &'static str,
    /// The field of the data that holds one of it.
    field: &'static str,
    /// The field that tells which; empty where the word itself stands there.
    tag: &'static str,
    /// What the page says of it.
    heading: &'static str,
}

const SETS: [Set; 9] = [
    Set { name: "Unusable", field: "unusable", tag: "why", heading: "Why something exists and may not be used" },
    Set {
        name: "Apart",
        field: "apart",
        tag: "says",
        heading: "Why a release does not go with a JAR of one's own whose release is known",
    },
    Set {
        name: "Because",
        field: "because",
        tag: "why",
        heading: "Why a newer release was not chosen although the plugin was",
    },
    Set { name: "Reason", field: "reasons", tag: "reason", heading: "Why nothing meets the request" },
    Set { name: "Limit", field: "limit", tag: "", heading: "Given up" },
    Set { name: "Listing", field: "listing", tag: "known", heading: "How it is known that a release runs on a Paper" },
    Set { name: "Warning", field: "warnings", tag: "warning", heading: "What was assumed, or should be known" },
    Set { name: "HintStep", field: "steps", tag: "do", heading: "What can be done" },
    Set { name: "Awaited", field: "waits", tag: "await", heading: "Who would have to release or list what" },
];

/// What an answer lists that could not be made for lack of metadata, and what the page says of that.
const MISSING: (&str, [&str; 2]) = ("Metadata missing", ["fetch", "unread"]);

/// What `resolver verify` finds in a lock: the set in its own schema, its tag, and what the page says of it. How it reads is shown
/// with the command.
const FOUND_IN_A_LOCK: [(&str, &str, &str); 2] = [
    ("Broken", "fact", "What `resolver verify` finds that holds no longer"),
    ("Unmet", "unmet", "What `resolver verify` finds that is asked for and not met"),
];

/// Where the part with the hints begins.
const HINTS: &str = "what you can do";

/// The page, by the schemas of explanations and of what is found in locks, and what no scenario shows.
pub(crate) fn page(schema: &Value, of_verify: &Value, answers: &[Answer]) -> (String, Vec<String>) {
    let mut page = String::from(
        "# Every reason and every hint\n\n\
         Made by the tests out of the scenarios in `resolver/tests/scenarios`; `make generate` writes it anew. The words in code are those of \
         `--format json`, and stay. Each example is the answer of the scenario that it names: a small made-up world.\n",
    );
    let mut missing = Vec::new();
    for set in &SETS {
        writeln!(page, "\n## {}", set.heading).unwrap();
        let shown = shortest(set, answers);
        for variant in schema["$defs"][set.name]["oneOf"].as_array().unwrap() {
            let holds_it = if set.tag.is_empty() { variant } else { &variant["properties"][set.tag] };
            let word = holds_it["const"].as_str().unwrap();
            let example = shown.get(word).map(|answer| (excerpt(set, &answer.text), *answer));
            entry(&mut page, word, &variant["description"], example);
            missing.extend(example.is_none().then(|| format!("{} {word}", set.name)));
        }
    }
    let (heading, fields) = MISSING;
    writeln!(page, "\n## {heading}").unwrap();
    let described = &schema["$defs"]["Unanswerable"]["properties"];
    for field in fields {
        let has_it = |answer: &&Answer| answer.data["answer"] == "unanswerable" && answer.data[field].is_array();
        let shortest = answers.iter().filter(has_it).min_by_key(|answer| (answer.text.len(), &answer.scenario));
        let example = shortest.map(|answer| (answer.text.trim_end(), answer));
        entry(&mut page, field, &described[field]["description"], example);
        missing.extend(example.is_none().then(|| format!("unanswerable {field}")));
    }
    for (name, tag, heading) in FOUND_IN_A_LOCK {
        writeln!(page, "\n## {heading}").unwrap();
        for variant in of_verify["$defs"][name]["oneOf"].as_array().unwrap() {
            entry(&mut page, variant["properties"][tag]["const"].as_str().unwrap(), &variant["description"], None);
        }
    }
    (page, missing)
}

/// A word with what it means and an example.
fn entry(page: &mut String, word: &str, description: &Value, example: Option<(&str, &Answer)>) {
    writeln!(page, "\n### `{word}`\n\n{}", one_line(description)).unwrap();
    if let Some((text, Answer { scenario, .. })) = example {
        writeln!(page, "\n```text\n{text}\n```\n\n`{scenario}`").unwrap();
    }
}

/// Per word the answer that shows it with the fewest letters.
fn shortest<'a>(set: &Set, answers: &'a [Answer]) -> BTreeMap<String, &'a Answer> {
    let mut shown: BTreeMap<String, &Answer> = BTreeMap::new();
    for answer in answers {
        let mut words = Vec::new();
        find(&answer.data, set, &mut words);
        for word in words {
            let best = shown.entry(word).or_insert(answer);
            let size = |answer: &Answer| (excerpt(set, &answer.text).len(), answer.scenario.clone());
            if size(answer) < size(best) {
                *best = answer;
            }
        }
    }
    shown
}

/// The words of a set that stand in an answer.
fn find(data: &Value, set: &Set, words: &mut Vec<String>) {
    match data {
        Value::Object(fields) => {
            for (field, value) in fields {
                let held = if let Value::Array(items) = value { items.as_slice() } else { std::slice::from_ref(value) };
                if field == set.field {
                    let word = |one: &Value| if set.tag.is_empty() { one.clone() } else { one[set.tag].clone() };
                    words.extend(held.iter().filter_map(|one| word(one).as_str().map(str::to_owned)));
                }
                find(value, set, words);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find(item, set, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The part of an answer that is about the set: hints, or all but the hints.
fn excerpt<'a>(set: &Set, text: &'a str) -> &'a str {
    let (facts, hints) = text.find(HINTS).map_or((text, ""), |at| text.split_at(at));
    if ["HintStep", "Awaited"].contains(&set.name) { hints.trim_end() } else { facts.trim_end() }
}

fn one_line(description: &Value) -> String {
    description.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}
