//! Pure. What the volume remembers of starts, and what is told of it.

use super::*;

fn now(open: &[&str], shut: &[&str]) -> Now {
    let open = open.iter().map(|name| ((*name).to_owned(), true));
    Some(open.chain(shut.iter().map(|name| ((*name).to_owned(), false))).collect())
}

fn start(record: &mut Record, mark: &str, worlds: Option<&BTreeMap<String, bool>>) -> BTreeMap<String, AtStart> {
    record.begin(Some(mark.to_owned()), worlds, None);
    record.of_worlds(worlds).unwrap()
}

#[test]
fn a_world_that_somebody_closes_while_the_server_runs_is_missed_by_no_later_start_until_one_opens_it() {
    let mut record = Record::default();
    let first = start(&mut record, "first", now(&["overworld", "creative", "hub"], &["old"]).as_ref());
    assert_eq!((first["creative"], first["old"]), (AtStart::Opened, AtStart::NotOpened));
    record.close(now(&["overworld", "hub", "arena"], &["creative"]).as_ref(), None);

    let second = start(&mut record, "second", now(&["overworld"], &["creative", "hub"]).as_ref());
    assert_eq!(second["creative"], AtStart::ClosedBefore);
    assert_eq!(second["hub"], AtStart::NotOpened, "nobody closed that one");
    assert!(!second.contains_key("arena"), "no start has opened it");
    let third = start(&mut record, "third", now(&["overworld", "creative"], &[]).as_ref());
    assert_eq!(third["creative"], AtStart::Opened);
    let fourth = start(&mut record, "fourth", now(&["overworld"], &["creative"]).as_ref());
    assert_eq!(fourth["creative"], AtStart::NotOpened);
}

#[test]
fn a_world_that_was_deleted_while_the_server_ran_was_closed_and_one_that_could_not_be_read_was_not() {
    let mut record = Record::default();
    start(&mut record, "first", now(&["overworld", "creative", "the_nether"], &[]).as_ref());
    record.close(None, None);
    assert_eq!(record.closed, Names::default());
    record.close(now(&["overworld"], &[]).as_ref(), None);
    assert_eq!(record.closed.worlds, ["creative".to_owned()].into(), "nobody closes the server's own");
    let second = start(&mut record, "second", now(&["overworld"], &[]).as_ref());
    assert_eq!(second["creative"], AtStart::ClosedBefore);
}

#[test]
fn an_agent_that_is_started_again_beside_the_server_takes_its_look_for_no_start() {
    for mark in [Some("first".to_owned()), None] {
        let mut record = Record::default();
        start(&mut record, "first", now(&["overworld", "creative"], &[]).as_ref());
        let worlds = now(&["overworld"], &["creative"]);
        record.begin(mark, worlds.as_ref(), None);
        assert_eq!(record.of_worlds(worlds.as_ref()).unwrap()["creative"], AtStart::Opened);
        let next = start(&mut record, "second", worlds.as_ref());
        assert_eq!(next["creative"], AtStart::ClosedBefore);
    }
}

#[test]
fn what_was_open_at_any_look_after_the_start_was_opened_by_it() {
    let both = united(now(&["overworld"], &["late"]), now(&["late"], &["other"]));
    assert_eq!(both, now(&["overworld", "late"], &["other"]));
    assert_eq!(united(None, now(&["overworld"], &[])), now(&["overworld"], &[]));
    assert_eq!(united(now(&["overworld"], &[]), None), now(&["overworld"], &[]), "one that failed takes nothing back");
}

#[test]
fn more_worlds_than_are_told_apart_are_not_told() {
    let names: Vec<String> = (0..=MOST).map(|number| format!("island{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut record = Record::default();
    let all = now(&names, &[]);
    record.begin(Some("first".to_owned()), all.as_ref(), None);
    assert_eq!(record.of_worlds(all.as_ref()), None);
    record.close(now(&[], &[]).as_ref(), None);
    assert_eq!(record.closed.worlds.len(), MOST, "nor remembered for ever");
}
