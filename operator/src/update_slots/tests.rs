use super::*;

fn key(name: &str) -> Key {
    ("games".to_owned(), name.to_owned())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn update_slots(total: Option<usize>, per_node: Option<usize>) -> UpdateSlots {
    UpdateSlots::new(Limits { total, per_node }, metrics::UpdateSlotMetrics::default())
}

fn none_unobserved() -> impl Iterator<Item = Key> {
    std::iter::empty()
}

/// `updating` servers are being updated, and `before` come first.
fn unavailable(updating: usize, queued_before: &[&str]) -> Result<(), SlotUnavailable> {
    Err(SlotUnavailable {
        updating,
        updating_on_node: None,
        queued_before: queued_before.iter().map(|name| key(name)).collect(),
    })
}

#[test]
fn update_slots_without_limit_admit_all_servers() {
    let slots = update_slots(None, None);
    assert!(!slots.has_limit());
    for name in ["a", "b", "c"] {
        assert_eq!(slots.acquire(&key(name), Some("n1"), at(0), none_unobserved()), Ok(()));
    }
}

#[test]
fn update_slot_of_failing_server_is_released() {
    let slots = update_slots(Some(1), None);
    assert_eq!(slots.acquire(&key("a"), None, at(5), none_unobserved()), Ok(()));
    for name in ["b", "c"] {
        assert!(slots.acquire(&key(name), None, at(5), none_unobserved()).is_err());
    }
    assert_eq!(slots.record_failures(&key("a"), RELEASE_AFTER_FAILURES - 1), [], "fewer failures keep the slot");
    assert_eq!(slots.record_failures(&key("a"), RELEASE_AFTER_FAILURES), [key("b")]);
    assert_eq!(slots.record_failures(&key("b"), RELEASE_AFTER_FAILURES), [key("c")]);
    assert_eq!(slots.acquire(&key("c"), None, at(5), none_unobserved()), Ok(()));
}

#[test]
fn update_slot_goes_to_longest_waiting_then_by_name() {
    let slots = update_slots(Some(1), None);
    assert_eq!(slots.acquire(&key("c"), None, at(5), none_unobserved()), Ok(()));
    assert_eq!(slots.acquire(&key("b"), None, at(5), none_unobserved()), unavailable(1, &[]));
    assert_eq!(slots.acquire(&key("a"), None, at(5), none_unobserved()), unavailable(1, &[]));
    assert_eq!(slots.acquire(&key("z"), None, at(1), none_unobserved()), unavailable(1, &[]));
    assert_eq!(slots.release(&key("c")), [key("z")], "only the next server is woken");
    assert_eq!(slots.release(&key("c")), [], "a second release changes nothing");
    assert_eq!(slots.acquire(&key("b"), None, at(5), none_unobserved()), unavailable(0, &["z", "a"]));
    assert_eq!(slots.acquire(&key("a"), None, at(5), none_unobserved()), unavailable(0, &["z"]));
    assert_eq!(slots.acquire(&key("z"), None, at(1), none_unobserved()), Ok(()));
    assert_eq!(slots.remove(&key("z")), [key("a")]);
    assert_eq!(slots.acquire(&key("a"), None, at(5), none_unobserved()), Ok(()));
}

#[test]
fn update_slot_is_kept_when_requested_again() {
    let slots = update_slots(Some(1), None);
    assert_eq!(slots.acquire(&key("a"), None, at(0), none_unobserved()), Ok(()));
    assert_eq!(slots.acquire(&key("a"), None, at(0), none_unobserved()), Ok(()));
    slots.occupy(&key("a"), Some("n1"));
    assert!(slots.acquire(&key("b"), None, at(0), none_unobserved()).is_err());
}

#[test]
fn update_slot_counts_node_of_replaced_pod() {
    let slots = update_slots(None, Some(1));
    let full_node = Err(SlotUnavailable { updating: 1, updating_on_node: Some(1), queued_before: Vec::new() });
    assert_eq!(slots.acquire(&key("a"), Some("n1"), at(0), none_unobserved()), Ok(()));
    slots.occupy(&key("a"), None);
    assert_eq!(slots.acquire(&key("b"), Some("n1"), at(0), none_unobserved()), full_node);
    slots.occupy(&key("a"), Some("n2"));
    assert_eq!(slots.acquire(&key("b"), Some("n1"), at(0), none_unobserved()), Ok(()), "the other server has moved");
}

#[test]
fn full_node_blocks_only_its_own_servers() {
    let slots = update_slots(Some(3), Some(1));
    let full_node = Err(SlotUnavailable { updating: 1, updating_on_node: Some(1), queued_before: Vec::new() });
    assert_eq!(slots.acquire(&key("a"), Some("n1"), at(0), none_unobserved()), Ok(()));
    assert_eq!(slots.acquire(&key("b"), Some("n1"), at(0), none_unobserved()), full_node);
    // b comes first, but cannot begin because its node is full.
    assert_eq!(slots.acquire(&key("c"), Some("n2"), at(0), none_unobserved()), Ok(()));
    assert_eq!(
        slots.acquire(&key("d"), Some("n2"), at(0), none_unobserved()),
        Err(SlotUnavailable { updating: 2, updating_on_node: Some(1), queued_before: vec![key("b")] })
    );
    assert_eq!(slots.acquire(&key("e"), None, at(0), none_unobserved()), Ok(()), "no node limit without a node");
    assert_eq!(slots.release(&key("a")), [key("b")]);
    assert_eq!(slots.acquire(&key("d"), Some("n2"), at(0), none_unobserved()), unavailable(2, &["b"]));
    assert_eq!(slots.acquire(&key("b"), Some("n1"), at(0), none_unobserved()), Ok(()));
}

#[test]
fn new_leader_counts_unobserved_servers_in_update_slots() {
    let slots = update_slots(Some(1), None);
    let unobserved = || [key("b")].into_iter();
    assert_eq!(slots.acquire(&key("a"), None, at(0), unobserved()), unavailable(1, &[]));
    assert_eq!(slots.release(&key("b")), [key("a")]);
    assert_eq!(slots.acquire(&key("a"), None, at(0), unobserved()), Ok(()), "its pass counts, not its status");
}

#[test]
fn update_slot_metrics_match_used_and_waiting() {
    let gauges = metrics::UpdateSlotMetrics::default();
    let slots = UpdateSlots::new(Limits { total: Some(2), per_node: None }, gauges.clone());
    let gauge_values = || (gauges.in_use.get(), gauges.waiting.get());
    assert_eq!(slots.acquire(&key("a"), None, at(5), none_unobserved()), Ok(()));
    assert_eq!(slots.acquire(&key("a"), None, at(5), none_unobserved()), Ok(()));
    assert_eq!(gauge_values(), (1, 0), "a server counts once");
    let unobserved = || [key("b")].into_iter();
    assert_eq!(slots.acquire(&key("c"), None, at(5), unobserved()), unavailable(2, &[]));
    assert_eq!(slots.acquire(&key("d"), None, at(5), unobserved()), unavailable(2, &["c"]));
    assert_eq!(gauge_values(), (2, 2), "servers without a pass count too");

    assert_eq!(slots.release(&key("b")), [key("c")]);
    assert_eq!(gauge_values(), (1, 2));
    assert_eq!(slots.acquire(&key("c"), None, at(5), none_unobserved()), Ok(()));
    assert_eq!(gauge_values(), (2, 1));
    assert_eq!(slots.remove(&key("d")), []);
    assert_eq!(gauge_values(), (2, 0), "a deleted server does not wait");
    assert_eq!(slots.record_failures(&key("a"), RELEASE_AFTER_FAILURES), []);
    assert_eq!(gauge_values(), (1, 0));
    for _ in 0..2 {
        slots.occupy(&key("a"), Some("n1"));
        assert_eq!(gauge_values(), (2, 0));
    }
}
