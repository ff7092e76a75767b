//! Edge (reads). Checks the manifests of `examples` without an API server. A test in a cluster (`operator/tests`) checks that the API server
//! accepts the valid ones, and rejects the others with the field's name.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test panics on failure")]

use std::fs;
use std::path::{Path, PathBuf};

use crds::{PaperMCServer, Plugin};
use serde_json::Value;

fn manifests(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found: Vec<(PathBuf, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

fn objects(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn examples_round_trip_through_types_without_loss() {
    for (path, text) in manifests("examples") {
        for object in objects(&text) {
            let kind = object["kind"].as_str().unwrap();
            let read = match kind {
                "PaperMCServer" => {
                    serde_json::to_value(serde_json::from_value::<PaperMCServer>(object.clone()).unwrap()).unwrap()
                }
                "Plugin" => serde_json::to_value(serde_json::from_value::<Plugin>(object.clone()).unwrap()).unwrap(),
                // A namespace in the same file, which users need when they apply it.
                _ => continue,
            };
            assert_contains(&read["spec"], &object["spec"], &format!("{} {kind} spec", path.display()));
        }
    }
}

/// Checks that `large` contains everything in `small`. A field that the types do not know would be missing.
fn assert_contains(large: &Value, small: &Value, at: &str) {
    match (large, small) {
        (Value::Object(large), Value::Object(small)) => {
            for (key, value) in small {
                let found = large.get(key).unwrap_or_else(|| panic!("{at}.{key} is missing"));
                assert_contains(found, value, &format!("{at}.{key}"));
            }
        }
        (Value::Array(large), Value::Array(small)) => {
            assert_eq!(large.len(), small.len(), "{at}");
            for (large, small) in large.iter().zip(small) {
                assert_contains(large, small, at);
            }
        }
        // A quantity may be written as a number. It is read as a string.
        (Value::String(large), Value::Number(small)) => assert_eq!(*large, small.to_string(), "{at}"),
        (large, small) => assert_eq!(large, small, "{at}"),
    }
}

#[test]
fn refused_examples_state_api_server_answer_in_first_line() {
    let refused = manifests("examples/refused");
    for must in
        ["cron-minute-61", "unknown-strategy", "plugin-unknown-strategy", "plugin-http-url", "pin-without-version"]
    {
        assert!(refused.iter().any(|(path, _)| path.file_stem().is_some_and(|stem| stem == must)), "{must} is missing");
    }
    for (path, text) in refused {
        let first = text.lines().next().unwrap();
        let reason = first.strip_prefix("# refused: ").unwrap_or_else(|| panic!("{}: {first}", path.display()));
        assert!(
            reason.contains("spec.") || reason.contains("metadata.name"),
            "{}: no field in `{reason}`",
            path.display()
        );
        assert_eq!(objects(&text).len(), 1, "{}: each file must have one object", path.display());
    }
}
