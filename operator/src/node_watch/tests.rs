use serde_json::{Value, json};

use super::*;

fn node(name: &str, spec: &Value) -> v1::Node {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

fn tainted(key: &str) -> Value {
    json!({"unschedulable": true, "taints": [{"key": key, "effect": "NoSchedule"}]})
}

fn changed_nodes(names: &[&str]) -> Changed {
    Changed::Nodes(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn node_is_marked_when_cordoned_or_drained_by_autoscaler() {
    let mark = |spec| mark_of(&node("a", &spec));
    assert_eq!(mark(json!({})), None);
    assert_eq!(mark(json!({"unschedulable": false})), None);
    assert_eq!(mark(json!({"unschedulable": true})), Some(DrainMark::Cordoned));
    assert_eq!(mark(tainted("ToBeDeletedByClusterAutoscaler")), Some(DrainMark::ClusterAutoscaler));
    assert_eq!(mark(tainted("karpenter.sh/disrupted")), Some(DrainMark::Karpenter));
    assert_eq!(mark(tainted("karpenter.sh/disruption")), Some(DrainMark::Karpenter));
    // An autoscaler only considers it, and may not drain it.
    let candidate = json!({"taints": [{"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}]});
    assert_eq!(mark(candidate), None);
}

#[test]
fn node_state_is_unknown_until_list_is_complete() {
    let nodes = Nodes::new(true);
    nodes.handle_event(Event::Init);
    nodes.handle_event(Event::InitApply(node("a", &json!({"unschedulable": true}))));
    assert_eq!(nodes.observe(Some("a")), NodeObservation::Unknown);
    assert_eq!(nodes.handle_event(Event::InitDone), Changed::All);
    assert_eq!(nodes.observe(Some("a")), NodeObservation::Marked(DrainMark::Cordoned));
    assert_eq!((nodes.observe(Some("b")), nodes.observe(None)), (NodeObservation::Unmarked, NodeObservation::Unmarked));
}

#[test]
fn node_mark_change_requeues_its_servers() {
    let mut state = MarkedNodes { is_read: true, ..MarkedNodes::default() };
    let cordoned = || node("a", &json!({"unschedulable": true}));
    assert_eq!(state.handle_event(Event::Apply(node("a", &json!({})))), changed_nodes(&[]));
    assert_eq!(state.handle_event(Event::Apply(cordoned())), changed_nodes(&["a"]));
    assert_eq!(state.handle_event(Event::Apply(cordoned())), changed_nodes(&[]));
    assert_eq!(state.handle_event(Event::Apply(node("a", &tainted("karpenter.sh/disrupted")))), changed_nodes(&["a"]));
    // The list is read again: `a` was uncordoned, and `b` was marked.
    state.handle_event(Event::Init);
    state.handle_event(Event::InitApply(node("a", &json!({}))));
    state.handle_event(Event::InitApply(node("b", &json!({"unschedulable": true}))));
    assert_eq!(state.handle_event(Event::InitDone), changed_nodes(&["a", "b"]));
    assert_eq!(state.handle_event(Event::Delete(node("b", &json!({"unschedulable": true})))), changed_nodes(&["b"]));
    assert!(state.marked.is_empty());
}
