use super::*;

fn key(name: &str) -> Key {
    ("games".to_owned(), name.to_owned())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn turns(together: Option<usize>, on_a_node: Option<usize>) -> UpdateSlots {
    UpdateSlots::new(Limits { together, on_a_node }, metrics::UpdateSlotMetrics::default())
}

fn nobody() -> impl Iterator<Item = Key> {
    std::iter::empty()
}

/// `at_it` servers are being updated, and `before` come first.
fn not_yet(at_it: usize, before: &[&str]) -> Result<(), SlotUnavailable> {
    Err(SlotUnavailable { at_it, on_its_node: None, before: before.iter().map(|name| key(name)).collect() })
}

#[test]
fn update_slots_without_limit_admit_all_servers() {
    let turns = turns(None, None);
    assert!(!turns.are_bounded());
    for name in ["a", "b", "c"] {
        assert_eq!(turns.begin(&key(name), Some("n1"), at(0), nobody()), Ok(()));
    }
}

#[test]
fn update_slot_of_failing_server_is_released() {
    let turns = turns(Some(1), None);
    assert_eq!(turns.begin(&key("a"), None, at(5), nobody()), Ok(()));
    for name in ["b", "c"] {
        assert!(turns.begin(&key(name), None, at(5), nobody()).is_err());
    }
    assert_eq!(turns.failed(&key("a"), FAILS_FOR_LONG - 1), [], "it may be over at the next try");
    assert_eq!(turns.failed(&key("a"), FAILS_FOR_LONG), [key("b")]);
    assert_eq!(turns.failed(&key("b"), FAILS_FOR_LONG), [key("c")]);
    assert_eq!(turns.begin(&key("c"), None, at(5), nobody()), Ok(()));
}

#[test]
fn update_slot_goes_to_longest_waiting_then_by_name() {
    let turns = turns(Some(1), None);
    assert_eq!(turns.begin(&key("c"), None, at(5), nobody()), Ok(()));
    assert_eq!(turns.begin(&key("b"), None, at(5), nobody()), not_yet(1, &[]));
    assert_eq!(turns.begin(&key("a"), None, at(5), nobody()), not_yet(1, &[]));
    assert_eq!(turns.begin(&key("z"), None, at(1), nobody()), not_yet(1, &[]));
    assert_eq!(turns.rests(&key("c")), [key("z")], "it is woken, and nobody else");
    assert_eq!(turns.rests(&key("c")), [], "nothing has changed");
    assert_eq!(turns.begin(&key("b"), None, at(5), nobody()), not_yet(0, &["z", "a"]));
    assert_eq!(turns.begin(&key("a"), None, at(5), nobody()), not_yet(0, &["z"]));
    assert_eq!(turns.begin(&key("z"), None, at(1), nobody()), Ok(()));
    assert_eq!(turns.forget(&key("z")), [key("a")]);
    assert_eq!(turns.begin(&key("a"), None, at(5), nobody()), Ok(()));
}

#[test]
fn update_slot_is_kept_when_requested_again() {
    let turns = turns(Some(1), None);
    assert_eq!(turns.begin(&key("a"), None, at(0), nobody()), Ok(()));
    assert_eq!(turns.begin(&key("a"), None, at(0), nobody()), Ok(()));
    turns.is_at_it(&key("a"), Some("n1"));
    assert!(turns.begin(&key("b"), None, at(0), nobody()).is_err());
}

#[test]
fn update_slot_counts_node_of_replaced_pod() {
    let turns = turns(None, Some(1));
    let full_node = Err(SlotUnavailable { at_it: 1, on_its_node: Some(1), before: Vec::new() });
    assert_eq!(turns.begin(&key("a"), Some("n1"), at(0), nobody()), Ok(()));
    turns.is_at_it(&key("a"), None);
    assert_eq!(turns.begin(&key("b"), Some("n1"), at(0), nobody()), full_node);
    turns.is_at_it(&key("a"), Some("n2"));
    assert_eq!(turns.begin(&key("b"), Some("n1"), at(0), nobody()), Ok(()), "it has moved");
}

#[test]
fn full_node_blocks_only_its_own_servers() {
    let turns = turns(Some(3), Some(1));
    let full_node = Err(SlotUnavailable { at_it: 1, on_its_node: Some(1), before: Vec::new() });
    assert_eq!(turns.begin(&key("a"), Some("n1"), at(0), nobody()), Ok(()));
    assert_eq!(turns.begin(&key("b"), Some("n1"), at(0), nobody()), full_node);
    // b comes first, but cannot begin because its node is full.
    assert_eq!(turns.begin(&key("c"), Some("n2"), at(0), nobody()), Ok(()));
    assert_eq!(
        turns.begin(&key("d"), Some("n2"), at(0), nobody()),
        Err(SlotUnavailable { at_it: 2, on_its_node: Some(1), before: vec![key("b")] })
    );
    assert_eq!(turns.begin(&key("e"), None, at(0), nobody()), Ok(()), "a server without a node harms none");
    assert_eq!(turns.rests(&key("a")), [key("b")]);
    assert_eq!(turns.begin(&key("d"), Some("n2"), at(0), nobody()), not_yet(2, &["b"]));
    assert_eq!(turns.begin(&key("b"), Some("n1"), at(0), nobody()), Ok(()));
}

#[test]
fn new_leader_counts_unobserved_servers_in_update_slots() {
    let turns = turns(Some(1), None);
    let unseen = || [key("b")].into_iter();
    assert_eq!(turns.begin(&key("a"), None, at(0), unseen()), not_yet(1, &[]));
    assert_eq!(turns.rests(&key("b")), [key("a")]);
    assert_eq!(turns.begin(&key("a"), None, at(0), unseen()), Ok(()), "its status is older than our look");
}

#[test]
fn update_slot_metrics_match_used_and_waiting() {
    let gauges = metrics::UpdateSlotMetrics::default();
    let turns = UpdateSlots::new(Limits { together: Some(2), on_a_node: None }, gauges.clone());
    let counted = || (gauges.taken.get(), gauges.waiting.get());
    assert_eq!(turns.begin(&key("a"), None, at(5), nobody()), Ok(()));
    assert_eq!(turns.begin(&key("a"), None, at(5), nobody()), Ok(()));
    assert_eq!(counted(), (1, 0), "each once");
    let unseen = || [key("b")].into_iter();
    assert_eq!(turns.begin(&key("c"), None, at(5), unseen()), not_yet(2, &[]));
    assert_eq!(turns.begin(&key("d"), None, at(5), unseen()), not_yet(2, &["c"]));
    assert_eq!(counted(), (2, 2), "also whom nobody has looked at");

    assert_eq!(turns.rests(&key("b")), [key("c")]);
    assert_eq!(counted(), (1, 2));
    assert_eq!(turns.begin(&key("c"), None, at(5), nobody()), Ok(()));
    assert_eq!(counted(), (2, 1));
    assert_eq!(turns.forget(&key("d")), []);
    assert_eq!(counted(), (2, 0), "it is gone while it waits");
    assert_eq!(turns.failed(&key("a"), FAILS_FOR_LONG), []);
    assert_eq!(counted(), (1, 0));
    for _ in 0..2 {
        turns.is_at_it(&key("a"), Some("n1"));
        assert_eq!(counted(), (2, 0));
    }
}
