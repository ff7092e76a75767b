use serde_json::json;

use super::*;

#[test]
fn yaml_value_knows_its_line_and_source_text() {
    let text =
        "# first\nkind: A\nspec:\n  version: 1.20\n  list:\n  - x: yes\n    1: two\n---\n---\nkind: B # second\n";
    let documents = read(text).unwrap();
    assert_eq!(documents.len(), 2, "an empty document is skipped");
    let version = documents[0].get("spec").unwrap().get("version").unwrap();
    assert_eq!((version.line, version.source_text(text)), (4, Some("1.20")));
    assert_eq!(documents[0].line_of("spec.list"), 5);
    assert_eq!(documents[0].line_of("spec.absent.further"), 3);
    assert_eq!(documents[1].line_of("kind"), 10);
    assert_eq!(documents[0].to_json()["spec"]["list"], json!([{"x": true, "1": "two"}]));
}

#[test]
fn yaml_anchors_and_merges_resolve_like_kubectl() {
    let text = "a: &a {x: '1', y: '2'}\nb:\n  <<: *a\n  y: '3'\nc: *a\n";
    let json = read(text).unwrap()[0].to_json();
    assert_eq!(json["b"], json!({"x": "1", "y": "3"}));
    assert_eq!(json["c"], json!({"x": "1", "y": "2"}));
}

#[test]
fn invalid_yaml_is_refused_with_its_line() {
    let refused = read("kind: A\nspec: {a: 1\nmetadata: b\n").unwrap_err();
    assert!(refused.line >= 2, "{refused:?}");
    assert!(!refused.problem.is_empty());
    let twice = read("kind: A\nkind: B\n").unwrap_err();
    assert_eq!(twice.line, 2, "{twice:?}");
}
