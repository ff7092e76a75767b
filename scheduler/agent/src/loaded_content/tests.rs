//! Pure. Checks the history of starts, and the reports derived from it.

use super::*;
use agent_api::loaded_content::AtStart::{ClosedBefore, NotAnyMore, NotOpened, Opened};

#[expect(clippy::unnecessary_wraps, reason = "callers need the type that a check returns")]
fn now(open: &[&str], shut: &[&str]) -> Now {
    let open = open.iter().map(|name| ((*name).to_owned(), Some(true)));
    Some(open.chain(shut.iter().map(|name| ((*name).to_owned(), Some(false)))).collect())
}

fn start_id(mark: Option<&str>, lock: &str, observed_stopped: bool) -> StartId {
    StartId { mark: mark.map(str::to_owned), lock: Some(lock.to_owned()), observed_stopped }
}

/// A start with this lock that the agent has observed.
fn start(record: &mut LoadedRecord, lock: &str, worlds: &Now) -> BTreeMap<String, AtStart> {
    record.begin(&start_id(None, lock, true), worlds, &None).worlds.unwrap()
}

#[test]
fn world_closed_while_running_is_not_reported_missing_later() {
    let mut record = LoadedRecord::default();
    let first = start(&mut record, "a", &now(&["overworld", "creative", "hub"], &["old"]));
    assert_eq!((first["creative"], first["old"]), (Opened, NotOpened));
    record.close(&now(&["overworld", "hub", "arena"], &["creative"]), &None);

    let second = start(&mut record, "a", &now(&["overworld"], &["creative", "hub"]));
    assert_eq!(second["creative"], ClosedBefore);
    assert_eq!(second["hub"], NotOpened, "`hub` was not closed");
    assert!(!second.contains_key("arena"), "no start has opened `arena`");
    let third = start(&mut record, "a", &now(&["overworld", "creative"], &[]));
    assert_eq!(third["creative"], Opened);
    let fourth = start(&mut record, "a", &now(&["overworld"], &["creative"]));
    assert_eq!(fourth["creative"], NotOpened);
}

#[test]
fn last_observation_begins_early_enough_to_end_in_time() {
    let pause = |check_began, now| pause_after(secs(check_began), secs(now), ENDS_WITHIN);
    assert_eq!(pause(0, 1), Some(PAUSE));
    assert_eq!(pause(20, 38), Some(secs(7)));
    assert_eq!(pause(0, 46), Some(secs(0)), "little time is left, so it begins at once");
    assert_eq!(pause(46, 47), None, "the last check was late enough");
    assert_eq!(pause(0, 55), None, "no other check could end in time");
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn world_opened_by_three_consecutive_starts_is_expected() {
    let (both, less) = (now(&["overworld", "hub"], &[]), now(&["overworld"], &["hub"]));
    let after = |starts: &[(&str, &Now)]| {
        let mut record = LoadedRecord::default();
        for (lock, worlds) in starts {
            record.begin(&start_id(None, lock, true), worlds, &None);
            // All open worlds are still open when the server is saved for its stop.
            record.close(worlds, &None);
        }
        start(&mut record, "z", &less)["hub"]
    };
    let steady = [("a", &both), ("a", &both), ("a", &both)];
    let then = |more: &[(&str, &Now)]| after(&[&steady, more].concat());
    assert_eq!(after(&steady[..1]), NotOpened, "one start is not enough");
    assert_eq!(after(&steady[..2]), NotOpened, "two starts can be chance");
    assert_eq!(then(&[]), NotAnyMore);
    assert_eq!(after(&[("a", &both), ("b", &both), ("c", &both)]), NotAnyMore, "the version sets may differ");
    assert_eq!(
        after(&[("a", &both), ("a", &both), ("a", &None), ("a", &both)]),
        NotAnyMore,
        "a start that was not read is skipped"
    );
    assert_eq!(then(&[("a", &None)]), NotOpened, "it may have been closed after the unread start");
    assert_eq!(then(&[("a", &less)]), NotOpened, "a start with the same files did not open it");
    assert_eq!(then(&[("a", &less), ("a", &both), ("a", &both), ("a", &both)]), NotOpened, "it is opened by chance");
    assert_eq!(then(&[("z", &less)]), NotAnyMore, "a second start of the new version set reports it too");
    assert_eq!(then(&[("b", &less)]), NotOpened, "the version set before did not open it either");
    assert_eq!(then(&[("b", &less), ("b", &less), ("c", &less)]), NotOpened);
    assert_eq!(then(&[("z", &less), ("a", &both)]), NotAnyMore, "the row continues after a rollback from `z`");
    assert_eq!(then(&[("b", &less), ("c", &both)]), NotOpened, "the starts are not consecutive");
    let mut record = LoadedRecord::default();
    start(&mut record, "a", &both);
    assert_eq!(start(&mut record, "b", &now(&[], &["overworld"]))["overworld"], NotAnyMore, "each server has a level");
}

#[test]
fn world_possibly_closed_before_crash_is_not_expected() {
    let (both, less) = (now(&["overworld", "hub"], &[]), now(&["overworld"], &["hub"]));
    let after_stop_check = |at_the_stop: &Now| {
        let mut record = LoadedRecord::default();
        for _ in 0..3 {
            start(&mut record, "a", &both);
            record.close(&both, &None);
        }
        start(&mut record, "a", &both);
        record.close(at_the_stop, &None);
        start(&mut record, "z", &less)["hub"]
    };
    let mut unasked = both.clone().unwrap();
    unasked.insert("hub".to_owned(), None);
    assert_eq!(after_stop_check(&both), NotAnyMore);
    assert_eq!(after_stop_check(&None), NotOpened, "the server crashed, or its console did not answer");
    assert_eq!(after_stop_check(&Some(unasked)), NotOpened);
    assert_eq!(after_stop_check(&less), ClosedBefore);
}

#[test]
fn map_drawn_at_each_start_is_never_expected() {
    let mut record = LoadedRecord::default();
    for (lock, map) in [("a", 1), ("a", 2), ("a", 2), ("b", 1), ("b", 1), ("b", 1), ("c", 3), ("c", 2), ("d", 1)] {
        let maps: Vec<String> = (1..=3).map(|number| format!("map{number}")).collect();
        let (open, shut): (Vec<&str>, Vec<&str>) =
            maps.iter().map(String::as_str).partition(|name| *name == format!("map{map}"));
        let observed = now(&open, &shut);
        let report = start(&mut record, lock, &observed);
        record.close(&observed, &None);
        assert!(report.values().all(|at| *at != NotAnyMore), "{lock} {map}: {report:?}");
    }
}

#[test]
fn deleted_world_counts_as_closed_but_unqueried_one_stays() {
    let mut record = LoadedRecord::default();
    start(&mut record, "a", &now(&["overworld", "creative", "hub", "the_nether"], &[]));
    let untouched = record.clone();
    record.close(&None, &None);
    assert_eq!(record, untouched);
    let mut worlds = now(&["overworld"], &[]).unwrap();
    worlds.insert("hub".to_owned(), None);
    record.close(&Some(worlds), &None);
    let second = start(&mut record, "a", &now(&["overworld"], &["hub", "the_nether"]));
    assert_eq!(second["creative"], ClosedBefore);
    assert_eq!(second["hub"], NotOpened, "`hub` was not queried");
    assert_eq!(second["the_nether"], NotOpened, "the server's own worlds are never closed");
}

#[test]
fn restarted_agent_does_not_count_its_observation_as_start() {
    for mark in [Some("first"), None] {
        let mut record = LoadedRecord::default();
        let all = now(&["overworld", "creative", "hub"], &[]);
        record.begin(&start_id(Some("first"), "a", true), &all, &None);
        let again = record.begin(&start_id(mark, "a", false), &now(&["overworld", "hub"], &["creative"]), &None);
        assert_eq!(again.worlds.unwrap()["creative"], Opened);
        let next = start(&mut record, "b", &now(&["overworld"], &["creative", "hub"]));
        assert_eq!(next["creative"], ClosedBefore);
        assert_eq!(next["hub"], NotOpened, "the agent observed one start twice");
    }
}

#[test]
fn start_observed_by_agent_is_new_despite_same_log() {
    for mark in [Some("first"), None] {
        let mut record = LoadedRecord::default();
        record.begin(&start_id(Some("first"), "a", true), &now(&["overworld", "creative"], &[]), &None);
        let next = record.begin(&start_id(mark, "b", true), &now(&["overworld"], &["creative"]), &None);
        assert_eq!(next.worlds.unwrap()["creative"], NotOpened, "it was neither opened nor closed");
    }
}

#[test]
fn world_open_at_any_observation_counts_as_opened() {
    let both = merge(now(&["overworld"], &["late"]), now(&["late"], &["other"]));
    assert_eq!(both, now(&["overworld", "late"], &["other"]));
    assert_eq!(merge(None, now(&["overworld"], &[])), now(&["overworld"], &[]));
    assert_eq!(merge(now(&["overworld"], &[]), None), now(&["overworld"], &[]), "a failed check removes no result");
}

#[test]
fn observations_end_once_expected_worlds_are_open() {
    let expected = ["hub".to_owned()].into();
    let read = |worlds: &Now, is_conclusive| is_complete(worlds.as_ref(), is_conclusive, &expected);
    assert!(read(&now(&["overworld", "hub"], &[]), false), "all worlds are open");
    assert!(!read(&now(&["overworld", "hub"], &["old"]), false), "the check was too early");
    assert!(read(&now(&["overworld", "hub"], &["old"]), true));
    assert!(!read(&now(&["overworld"], &["hub"]), true), "`hub` is expected and may open late");
    assert!(!read(&None, false));
}

#[test]
fn worlds_beyond_limit_are_not_reported() {
    let names: Vec<String> = (0..=MAX_TRACKED).map(|number| format!("island{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut record = LoadedRecord::default();
    let all = now(&names, &[]);
    let report = record.begin(&start_id(None, "a", true), &all, &now(&[], &[]));
    assert_eq!((report.worlds, report.too_many_worlds, report.too_many_datapacks), (None, true, false));
    assert!(is_complete(all.as_ref(), false, &BTreeSet::new()) && record.expected_worlds().is_empty());
    record.close(&now(&[], &[]), &None);
    let (one_world, many) = (now(&["overworld"], &[]), record.begin(&start_id(None, "a", true), &None, &None));
    assert_eq!((many.worlds, many.too_many_worlds), (None, false), "unread worlds are not too many");
    let report = start(&mut record, "a", &one_world);
    assert_eq!(report.len(), MAX_TRACKED, "closed worlds are listed only up to the limit");
}
