use serde_json::json;

use super::*;

fn requested_as(value: &str) -> Option<Result<Scope, String>> {
    let server: crds::PaperMCServer = serde_json::from_value(json!({
        "metadata": {"name": "lobby", "annotations": {"nightshift.dev/apply-now": value}},
        "spec": {"updateStrategy": "auto"},
    }))
    .unwrap();
    requested_scope(&server)
}

#[test]
fn partial_request_names_plugins_and_paper() {
    assert_eq!(requested_as("1767225600"), None);
    let scope = requested_as("1767225600;only=plugin/vault, paper,plugin/luckperms").unwrap().unwrap();
    assert_eq!((scope.paper, scope.to_string()), (true, "paper,plugin/luckperms,plugin/vault".to_owned()));
}

#[test]
fn partial_request_parse_error_names_place_and_remedy() {
    for (options, problem) in [
        ("onyl=plugin/vault", "`onyl=plugin/vault` is unknown"),
        ("", "`` is unknown"),
        ("only=", "`` is neither `paper` nor `plugin/` and a name"),
        ("only=plugin/", "`plugin/` is neither"),
        ("only=plugin/vault,luckperms", "`luckperms` is neither"),
    ] {
        let why = requested_as(&format!("1767225600;{options}")).unwrap().unwrap_err();
        assert!(why.starts_with("`nightshift.dev/apply-now`: ") && why.contains(problem), "{why}");
        assert!(why.contains("write `<unix>;only=plugin/NAME`"), "{why}");
    }
    let why = requested_as(&format!("1767225600;only=plugin/{}", "x".repeat(1_024))).unwrap().unwrap_err();
    assert!(why.contains("longer than 1024 characters"), "{why}");
}

#[test]
fn refused_partial_request_opens_no_gate() {
    let (requested, refused) =
        (PartialSelection::Requested(Scope::default()), PartialSelection::Refused("why".to_owned()));
    assert!(PartialSelection::Nothing.can_open_gate() && requested.can_open_gate());
    assert!(!refused.can_open_gate() && !PartialSelection::UpToDate(String::new()).can_open_gate());
    let at = |second| Timestamp::from_second(second).unwrap();
    for partial in [requested, refused] {
        assert_eq!(partial.ends_at(Some(at(60))), Some(at(60)));
    }
    assert_eq!(PartialSelection::Nothing.ends_at(Some(at(60))), None);
}
