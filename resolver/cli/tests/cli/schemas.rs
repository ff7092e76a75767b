//! Edge (reads). Tests that the output of `--format json` matches the published schemas.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use resolver::explanation::Explanation;
use resolver::lock_check::{StaleFact, Unmet};
use resolver::model::lock::{Difference, Lock};
use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Value};

use super::{Workspace, lobby, plugin, server};

#[path = "../../../tests/support/future_format.rs"]
mod future_format;
#[path = "../../../tests/support/json_schema.rs"]
mod json_schema;

use future_format::with_further_fields;
use json_schema::{standard_violations, violations};

/// A published schema.
fn published(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/reference/schemas/{name}.schema.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The values that a command writes. Each one matches the schema.
fn validated_output(workspace: &Workspace, name: &str, arguments: &[&str]) -> Vec<Value> {
    let output = workspace.command(arguments).output().unwrap();
    let values: Vec<Value> = Deserializer::from_slice(&output.stdout).into_iter().collect::<Result<_, _>>().unwrap();
    assert!(!values.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let schema = published(name);
    for value in &values {
        assert_eq!(violations(&schema, value), [""; 0], "{arguments:?}\n{value:#}");
    }
    values
}

/// A workspace with a blocked server, one without a solution, two locks, and one modified lock.
fn workspace() -> Workspace {
    let slow = lobby().replace("updateStrategy: auto", "updateStrategy: auto\n  updateDelay: 30d");
    let status = "status:\n  currentVersion: 1.21.10\n  currentBuild: 100\n  plugins:\n  \
                  - {name: GriefPrevention, currentVersion: 16.18.4, state: Installed}\n";
    let runs = server("  updateStrategy: auto\n") + status + &plugin("griefprevention", "");
    let impossible = server("  updateStrategy: pin\n  version: 1.21.11\n") + &plugin("griefprevention", "");
    let latest = server("  updateStrategy: latest\n") + &plugin("griefprevention", "");
    let sibling =
        server("  updateStrategy: auto\n") + &plugin("griefprevention", ", updateStrategy: pin, version: 16.18.4");
    let files = [
        ("lobby.yaml", lobby()),
        ("sibling.yaml", sibling),
        ("slow.yaml", slow),
        ("runs.yaml", runs),
        ("no.yaml", impossible),
        ("latest.yaml", latest),
    ];
    let workspace = Workspace::new(&files.each_ref().map(|(name, text)| (*name, text.as_str())));
    for (from, to) in [("lobby.yaml", "new.lock.json"), ("slow.yaml", "old.lock.json")] {
        let lock = workspace.command(&["lock", "-f", from]).output().unwrap();
        fs::write(workspace.path().join(to), lock.stdout).unwrap();
    }
    let good = fs::read_to_string(workspace.path().join("new.lock.json")).unwrap();
    let broken =
        good.replace("\"java\": 21", "\"java\": 17").replace("16.18.5", "16.18.55").replacen("sha512:", "sha512:00", 1);
    assert_ne!(broken, good);
    fs::write(workspace.path().join("broken.lock.json"), broken).unwrap();
    workspace
}

/// Every kind of answer: the name of its schema, and the command.
const COMMANDS: [(&str, &str); 29] = [
    ("lock", "lock -f lobby.yaml"),
    ("explanation", "explain -f lobby.yaml"),
    ("explanation", "explain -f slow.yaml"),
    ("explanation", "explain -f runs.yaml"),
    ("explanation", "explain -f latest.yaml"),
    ("explanation", "explain -f no.yaml"),
    ("explanation", "explain -f lobby.yaml --why-not 1.21.11"),
    ("explanation", "explain -f lobby.yaml --why-not 1.20.99"),
    ("explanation", "explain -f lobby.yaml --why-not griefprevention=16.18.4"),
    ("explanation", "explain -f lobby.yaml --why-not griefprevention=17.0"),
    ("explanation", "explain -f lobby.yaml --without griefprevention"),
    ("explanation", "explain -f lobby.yaml --assume griefprevention=16.19"),
    ("difference", "diff old.lock.json new.lock.json"),
    ("difference", "diff new.lock.json new.lock.json"),
    ("plan", "plan -f lobby.yaml"),
    ("plan", "plan -f runs.yaml"),
    ("plan", "plan -f sibling.yaml"),
    ("plan", "plan -f lobby.yaml --running old.lock.json"),
    ("outdated", "outdated -f slow.yaml"),
    ("outdated", "outdated -f runs.yaml"),
    ("outdated", "outdated -f latest.yaml"),
    ("ready", "ready 1.21.11 -f lobby.yaml"),
    ("ready", "ready 1.21.8 -f lobby.yaml"),
    ("ready", "ready 26.2 -f lobby.yaml"),
    ("verify", "verify new.lock.json -f lobby.yaml"),
    ("verify", "verify old.lock.json -f lobby.yaml"),
    ("verify", "verify broken.lock.json -f lobby.yaml"),
    ("verify", "verify new.lock.json -f no.yaml"),
    ("verify", "verify new.lock.json -f latest.yaml"),
];

#[test]
fn json_answers_match_their_schemas() {
    let workspace = workspace();
    for (name, command) in COMMANDS {
        validated_output(&workspace, name, &command_arguments(name, command));
    }
}

/// The arguments of the command.
fn command_arguments<'a>(name: &str, command: &'a str) -> Vec<&'a str> {
    let format: &[&str] = if name == "lock" { &[] } else { &["--format", "json"] };
    command.split(' ').chain(format.iter().copied()).collect()
}

/// An answer with an additional field in each object is read as without them.
fn assert_ignores_unknown_fields<T: DeserializeOwned + PartialEq + Debug>(answer: &Value) {
    let read = |value: Value| serde_json::from_value::<T>(value).unwrap();
    assert_eq!(read(with_further_fields(answer)), read(answer.clone()));
}

#[test]
fn json_answer_reader_ignores_additional_fields() {
    let workspace = workspace();
    for (name, command) in COMMANDS.into_iter().filter(|(name, _)| *name != "lock") {
        let schema = published(name);
        for answer in validated_output(&workspace, name, &command_arguments(name, command)) {
            let newer = with_further_fields(&answer);
            assert_eq!(standard_violations(&schema, &newer), [""; 0], "{command}\n{newer:#}");
            match name {
                "explanation" => assert_ignores_unknown_fields::<Explanation>(answer.get("then").unwrap_or(&answer)),
                "difference" => assert_ignores_unknown_fields::<Difference>(&answer),
                "verify" => {
                    assert_ignores_unknown_fields::<Vec<StaleFact>>(&answer["facts"]);
                    assert_ignores_unknown_fields::<Vec<Unmet>>(&answer["request"]);
                    answer.get("solve").into_iter().for_each(assert_ignores_unknown_fields::<Difference>);
                    answer.get("noSolution").into_iter().for_each(assert_ignores_unknown_fields::<Explanation>);
                }
                // No type reads the others.
                _ => {}
            }
        }
    }
}

#[test]
fn lock_reader_refuses_additional_fields_anywhere() {
    let workspace = workspace();
    let mut lock = validated_output(&workspace, "lock", &["lock", "-f", "lobby.yaml"]).remove(0);
    let names = [("plugin", "ViaBackwards"), ("version", "5.7.1"), ("needs", "ViaVersion"), ("atLeast", "5.7.1")];
    lock["guesses"] = Value::Array(vec![names.into_iter().collect()]);
    assert!(serde_json::from_value::<Lock>(lock.clone()).is_ok());
    for pointer in ["", "/paper", "/plugins/0", "/plugins/0/file", "/facts/0", "/bounds/0", "/guesses/0", "/imageJava"]
    {
        let mut newer = lock.clone();
        newer.pointer_mut(pointer).unwrap()["further"] = 1.into();
        assert_eq!(standard_violations(&published("lock"), &newer).len(), 1, "{pointer}");
        let refused = serde_json::from_value::<Lock>(newer).unwrap_err().to_string();
        assert!(refused.contains("unknown field `further`"), "{pointer}: {refused}");
    }
}

#[test]
fn schema_mismatch_of_answer_is_detected() {
    let workspace = workspace();
    let schema = published("verify");
    let answer = &validated_output(
        &workspace,
        "verify",
        &["verify", "broken.lock.json", "-f", "lobby.yaml", "--format", "json"],
    )[0];
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut answer = answer.clone();
        change(&mut answer);
        violations(&schema, &answer)
    };
    assert_eq!(changed(&|answer| drop(answer.as_object_mut().unwrap().remove("holds"))), ["`holds` is missing"]);
    assert_eq!(changed(&|answer| answer["holds"] = "no".into()), ["holds: is not of type boolean"]);
    assert_eq!(changed(&|answer| answer["further"] = 1.into()), ["`further` is not described"]);
    assert_eq!(
        changed(&|answer| answer["facts"][0]["fact"] = "invented".into()),
        ["facts[0]: matches no branch of `oneOf`"]
    );
}
