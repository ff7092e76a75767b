use serde_json::{Value, json};

use super::*;

fn node(name: &str, spec: &Value) -> v1::Node {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

fn tainted(key: &str) -> Value {
    json!({"unschedulable": true, "taints": [{"key": key, "effect": "NoSchedule"}]})
}

fn on(names: &[&str]) -> Changed {
    Changed::On(names.iter().map(|name| (*name).to_owned()).collect())
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
    nodes.take(Event::Init);
    nodes.take(Event::InitApply(node("a", &json!({"unschedulable": true}))));
    assert_eq!(nodes.look(Some("a")), NodeObservation::Unknown);
    assert_eq!(nodes.take(Event::InitDone), Changed::All);
    assert_eq!(nodes.look(Some("a")), NodeObservation::Leaves(DrainMark::Cordoned));
    assert_eq!((nodes.look(Some("b")), nodes.look(None)), (NodeObservation::Stays, NodeObservation::Stays));
}

#[test]
fn node_mark_change_requeues_its_servers() {
    let mut known = MarkedNode { is_read: true, ..MarkedNode::default() };
    let cordoned = || node("a", &json!({"unschedulable": true}));
    assert_eq!(known.take(Event::Apply(node("a", &json!({})))), on(&[]));
    assert_eq!(known.take(Event::Apply(cordoned())), on(&["a"]));
    assert_eq!(known.take(Event::Apply(cordoned())), on(&[]));
    assert_eq!(known.take(Event::Apply(node("a", &tainted("karpenter.sh/disrupted")))), on(&["a"]));
    // The list is read again: `a` was uncordoned, and `b` was marked.
    known.take(Event::Init);
    known.take(Event::InitApply(node("a", &json!({}))));
    known.take(Event::InitApply(node("b", &json!({"unschedulable": true}))));
    assert_eq!(known.take(Event::InitDone), on(&["a", "b"]));
    assert_eq!(known.take(Event::Delete(node("b", &json!({"unschedulable": true})))), on(&["b"]));
    assert!(known.marked.is_empty());
}
