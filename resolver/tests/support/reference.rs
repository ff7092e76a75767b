//! Pure. Renders the reference page of reasons, warnings and hints, each with the shortest answer of a scenario as its
//! example.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::verify_findings::Finding;

/// An answer of a scenario.
pub(crate) struct Answer {
    /// The scenario's name.
    pub(crate) scenario: String,
    /// The answer as data.
    pub(crate) data: Value,
    /// The answer as text.
    pub(crate) text: String,
}

/// A closed set of words that an explanation may contain.
struct Set {
    /// The name of the set in the schema.
    name: &'static str,
    /// The field of the data that contains its values.
    field: &'static str,
    /// The tag field. Empty if the value itself is the word.
    tag: &'static str,
    /// The heading of the set on the page.
    heading: &'static str,
}

const SETS: [Set; 16] = [
    Set { name: "Unusable", field: "unusable", tag: "why", heading: "Why a version may not be used" },
    Set {
        name: "FileConflict",
        field: "apart",
        tag: "says",
        heading: "Why a release conflicts with a known unmanaged JAR",
    },
    Set { name: "WhyOlder", field: "because", tag: "why", heading: "Why a newer release was not chosen" },
    Set {
        name: "ReleaseState",
        field: "state",
        tag: "is",
        heading: "Whether a requested release is in the version set, and why not",
    },
    Set { name: "Pinned", field: "pinned", tag: "then", heading: "Results with the release pinned" },
    Set { name: "Reason", field: "reasons", tag: "reason", heading: "Why the request cannot be met" },
    Set { name: "Limit", field: "limit", tag: "", heading: "Search limits" },
    Set {
        name: "Listing",
        field: "listing",
        tag: "known",
        heading: "How a release is known to run on a Paper version",
    },
    Set { name: "FactSource", field: "says", tag: "who", heading: "Sources of compatibility facts" },
    Set { name: "ImageChoice", field: "choice", tag: "", heading: "How the image was chosen" },
    Set { name: "Warning", field: "warnings", tag: "warning", heading: "Warnings" },
    Set { name: "DowngradePermission", field: "reason", tag: "down", heading: "Why a plugin may be downgraded" },
    Set { name: "DelistedReason", field: "because", tag: "", heading: "Why a delisted release stays" },
    Set { name: "HintStep", field: "steps", tag: "do", heading: "Hints" },
    Set { name: "UpstreamAction", field: "waits", tag: "await", heading: "Actions of plugin authors" },
    Set { name: "HintsLeftOut", field: "hintsLeftOut", tag: "because", heading: "Why hints are left out" },
];

/// The sets that occur in the hint section of an answer.
const HINT_SETS: [&str; 3] = ["HintStep", "UpstreamAction", "HintsLeftOut"];

/// The sets that only answers about one release contain. Such an answer repeats content of other answers, and is no
/// example of another set.
const RELEASE_SETS: [&str; 2] = ["ReleaseState", "Pinned"];

/// Sets without examples: words of manifests and of pages, and the kinds of answers and of `resolver diff` lines.
const SETS_WITHOUT_EXAMPLES: [&str; 11] = [
    "ApiVersionRule",
    "BuildChannel",
    "ChangeKind",
    "Channel",
    "Explanation",
    "Hold",
    "ImagePolicy",
    "OverrideMode",
    "Software",
    "Source",
    "UnreadKind",
];

/// Fields of an answer that lacks metadata, and their heading on the page.
const MISSING: (&str, [&str; 3]) = ("Metadata missing", ["fetch", "unread", "unverified"]);

/// Findings of `resolver verify`: the set in its own schema, its tag, and its heading on the page.
const VERIFY_SETS: [(&str, &str, &str); 2] = [
    ("StaleFact", "fact", "Stale facts found by `resolver verify`"),
    ("Unmet", "unmet", "Unmet requests found by `resolver verify`"),
];

/// The start of the hint section.
const HINTS: &str = "\noptions\n";

/// The page, from the schemas of explanations and of findings, and the words without an example.
pub(crate) fn page(
    schema: &Value,
    of_verify: &Value,
    answers: &[Answer],
    findings: &[Finding],
) -> (String, Vec<String>) {
    let mut page = String::from(
        "# Every reason and every hint\n\n\
         `make generate` writes this page from the scenarios in `resolver/tests/scenarios`. The words in code are those of \
         `--format json` and are stable. Each example is the answer of the named scenario, which has a small fictional catalog. The findings of `resolver verify` are \
         shown by one printed line. The example names the file in `resolver/cli/tests/cli/snapshots` with the full output, where `[hex]` stands for \
         values that differ between runs. An example of several words is shown once.\n",
    );
    let mut missing = unlisted_sets(schema);
    missing.extend(unlisted_sets(of_verify));
    for set in &SETS {
        writeln!(page, "\n## {}", set.heading).unwrap();
        let shown = shortest_examples(set, answers);
        for variant in schema["$defs"][set.name]["oneOf"].as_array().unwrap() {
            let property = if set.tag.is_empty() { variant } else { &variant["properties"][set.tag] };
            let word = property["const"].as_str().unwrap();
            let example = shown.get(word).map(|answer| (excerpt(set, &answer.text), answer.scenario.as_str()));
            entry(&mut page, word, &variant["description"], example);
            missing.extend(example.is_none().then(|| format!("{} {word}", set.name)));
        }
    }
    let (heading, fields) = MISSING;
    writeln!(page, "\n## {heading}").unwrap();
    let described = &schema["$defs"]["Unanswerable"]["properties"];
    for field in fields {
        let has_field = |answer: &&Answer| answer.data["answer"] == "unanswerable" && answer.data[field].is_array();
        let shortest = answers.iter().filter(has_field).min_by_key(|answer| (answer.text.len(), &answer.scenario));
        let example = shortest.map(|answer| (answer.text.trim_end(), answer.scenario.as_str()));
        entry(&mut page, field, &described[field]["description"], example);
        missing.extend(example.is_none().then(|| format!("unanswerable {field}")));
    }
    for (name, tag, heading) in VERIFY_SETS {
        writeln!(page, "\n## {heading}").unwrap();
        for variant in of_verify["$defs"][name]["oneOf"].as_array().unwrap() {
            let word = variant["properties"][tag]["const"].as_str().unwrap();
            let shown = findings.iter().filter(|finding| finding.data[tag] == word);
            let shortest = shown.min_by_key(|finding| (finding.text.len(), &finding.snapshot));
            let example = shortest.map(|finding| (finding.text.as_str(), finding.snapshot.as_str()));
            entry(&mut page, word, &variant["description"], example);
            missing.extend(example.is_none().then(|| format!("{name} {word}")));
        }
    }
    (page, missing)
}

/// The closed sets of a schema that are not on the page.
fn unlisted_sets(schema: &Value) -> Vec<String> {
    let closed = schema["$defs"].as_object().unwrap().iter().filter(|(_, set)| set["oneOf"].is_array());
    let is_on_page = |name: &str| {
        SETS.iter().any(|set| set.name == name)
            || VERIFY_SETS.iter().any(|(found, ..)| *found == name)
            || SETS_WITHOUT_EXAMPLES.contains(&name)
    };
    closed.filter(|(name, _)| !is_on_page(name)).map(|(name, _)| format!("the whole set {name}")).collect()
}

/// A word with its meaning, and an example with its source. The page shows each example once.
fn entry(page: &mut String, word: &str, description: &Value, example: Option<(&str, &str)>) {
    writeln!(page, "\n### `{word}`\n\n{}", one_line(description)).unwrap();
    if let Some((text, shown_by)) = example {
        let example = format!("\n```text\n{text}\n```\n");
        if page.contains(&example) {
            writeln!(page, "\nAbove: `{shown_by}`").unwrap();
        } else {
            writeln!(page, "{example}\n`{shown_by}`").unwrap();
        }
    }
}

/// The shortest answer that contains each word.
fn shortest_examples<'a>(set: &Set, answers: &'a [Answer]) -> BTreeMap<String, &'a Answer> {
    let mut shown: BTreeMap<String, &Answer> = BTreeMap::new();
    let is_of_a_release = RELEASE_SETS.contains(&set.name);
    for answer in answers.iter().filter(|answer| (answer.data["answer"] == "whyNotRelease") == is_of_a_release) {
        let mut words = Vec::new();
        collect_words(&answer.data, set, &mut words);
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

/// The words of a set in an answer.
fn collect_words(data: &Value, set: &Set, words: &mut Vec<String>) {
    match data {
        Value::Object(fields) => {
            for (field, value) in fields {
                let values =
                    if let Value::Array(items) = value { items.as_slice() } else { std::slice::from_ref(value) };
                if field == set.field {
                    let word = |one: &Value| if set.tag.is_empty() { one.clone() } else { one[set.tag].clone() };
                    words.extend(values.iter().filter_map(|one| word(one).as_str().map(str::to_owned)));
                }
                collect_words(value, set, words);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_words(item, set, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The part of an answer that is about the set: the hint section, or everything before it.
fn excerpt<'a>(set: &Set, text: &'a str) -> &'a str {
    let (facts, hints) = text.find(HINTS).map_or((text, ""), |at| text.split_at(at));
    // An answer without a hint section also reports that the search for hints was incomplete.
    if HINT_SETS.contains(&set.name) && !hints.is_empty() { hints.trim() } else { facts.trim_end() }
}

fn one_line(description: &Value) -> String {
    description.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}
