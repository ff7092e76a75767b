//! Pure. Checks the guarantees of retention for any set of backups.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hours * 3600).unwrap()
}

fn copy(id: &str, hours: i64, contents: Contents, good: bool) -> RetentionCandidate {
    RetentionCandidate {
        id: id.into(),
        taken_at: at(hours),
        contents: Some(contents),
        before_update: false,
        data_version: None,
        after_damage: false,
        standing: if good { Standing::Good } else { Standing::Bad },
        needed: false,
    }
}

fn way_back(id: &str, hours: i64, standing: Standing) -> RetentionCandidate {
    RetentionCandidate { before_update: true, standing, ..copy(id, hours, Contents::Worlds, true) }
}

const TWO: Retention = Retention { max_count: 2, max_age: None };

#[test]
fn oldest_backups_are_pruned_when_too_many() {
    let copies = ["a", "b", "c", "d"].map(|id| copy(id, i64::from(id.as_bytes()[0]), Contents::Everything, true));
    assert_eq!(to_remove(&copies, TWO, at(500)), ["a", "b"]);
}

#[test]
fn last_good_world_backup_outlives_all_file_backups() {
    let mut copies = vec![copy("worlds", 0, Contents::Worlds, true)];
    copies.extend(["x", "y", "z"].map(|id| copy(id, i64::from(id.as_bytes()[0]), Contents::ServerFiles, true)));
    assert_eq!(to_remove(&copies, TWO, at(500)), ["x"]);
}

#[test]
fn age_limit_prunes_all_but_last_good_backup() {
    let copies = [copy("old", 0, Contents::Worlds, true), copy("older", -1, Contents::Worlds, true)];
    let retention = Retention { max_count: 9, max_age: Some(SignedDuration::from_hours(1)) };
    assert_eq!(to_remove(&copies, retention, at(100)), ["older"]);
}

#[test]
fn damaged_backup_is_pruned_before_any_good_one() {
    let copies = [
        copy("good", 0, Contents::Worlds, true),
        copy("better", 1, Contents::Worlds, true),
        copy("damaged", 2, Contents::Worlds, false),
    ];
    assert_eq!(to_remove(&copies, TWO, at(3)), ["damaged"]);
}

#[test]
fn backup_needed_by_update_is_kept_beyond_retention() {
    let mut copies = ["a", "b", "c"].map(|id| copy(id, i64::from(id.as_bytes()[0]), Contents::Worlds, true));
    copies[0].needed = true;
    let one = Retention { max_count: 0, max_age: Some(SignedDuration::ZERO) };
    assert_eq!(to_remove(&copies, one, at(500)), ["b"]);
}

#[test]
fn newest_rollback_backup_outlives_any_number_of_online_backups() {
    let mut copies = ["a", "b"].map(|id| copy(id, i64::from(id.as_bytes()[0]), Contents::Worlds, true)).to_vec();
    for copy in &mut copies {
        copy.before_update = true;
    }
    copies.extend(["x", "y", "z"].map(|id| copy(id, i64::from(id.as_bytes()[0]), Contents::Everything, true)));
    assert_eq!(to_remove(&copies, TWO, at(500)), ["a", "x"]);
}

#[test]
fn newest_backup_before_damage_is_kept_whatever_its_age() {
    let mut copies = ["a", "b"].map(|id| copy(id, i64::from(id.as_bytes()[0]), Contents::Worlds, true)).to_vec();
    copies.extend(["w", "x", "y", "z"].map(|id| RetentionCandidate {
        after_damage: true,
        ..copy(id, i64::from(id.as_bytes()[0]), Contents::Everything, true)
    }));
    let one_day = Some(SignedDuration::from_hours(24));
    assert_eq!(to_remove(&copies, Retention { max_count: 1, max_age: one_day }, at(123)), ["a", "w", "x", "y"]);
    // A backup of settings alone takes no place from one with worlds, and a damaged one takes none from a good one.
    copies.push(copy("settings", 130, Contents::ServerFiles, true));
    copies.push(copy("spoilt", 131, Contents::Worlds, false));
    assert_eq!(to_remove(&copies, TWO, at(140)), ["a", "w", "x", "y", "spoilt"]);
    // The next backup of an undamaged world replaces it.
    copies.push(copy("whole", 132, Contents::Everything, true));
    assert!(to_remove(&copies, TWO, at(140)).contains(&"b".to_owned()));
}

#[test]
fn unreadable_backup_displaces_no_readable_rollback_backup() {
    let mut copies = vec![way_back("readable", 0, Standing::Good), way_back("unread", 1, Standing::Unread)];
    copies.extend(["x", "y"].map(|id| copy(id, i64::from(id.as_bytes()[0]), Contents::Everything, true)));
    assert_eq!(to_remove(&copies, TWO, at(500)), ["unread"]);
    assert_eq!(to_remove(&copies, Retention { max_count: 4, max_age: None }, at(500)), Vec::<String>::new());
}

#[test]
fn newest_unreadable_rollback_backup_is_kept_without_good_one() {
    let mut copies = vec![way_back("older", 0, Standing::Unread), way_back("unread", 1, Standing::Unread)];
    copies.push(way_back("damaged", 2, Standing::Bad));
    copies.extend(["x", "y"].map(|id| copy(id, i64::from(id.as_bytes()[0]), Contents::Everything, true)));
    assert_eq!(to_remove(&copies, TWO, at(500)), ["older", "damaged"]);
}

#[test]
fn older_minecraft_backup_outlives_roll_forward_by_a_month() {
    let of = |id, hours, data_version| RetentionCandidate {
        data_version: Some(data_version),
        ..way_back(id, hours, Standing::Good)
    };
    let mut copies = vec![of("oldest", 0, 1), of("older", 1, 1), of("newer", 2, 2), of("newest", 3, 2)];
    copies.extend(["x", "y"].map(|id| copy(id, 200 + i64::from(id.as_bytes()[0]), Contents::Everything, true)));
    assert_eq!(to_remove(&copies, TWO, at(500)), ["oldest", "newer"]);
    assert_eq!(to_remove(&copies, TWO, at(1 + 30 * 24)), ["oldest", "older", "newer"], "a month is over");
}

#[test]
fn failed_lock_backups_displace_no_recent_older_minecraft_backup() {
    let of = |id, hours, data_version| RetentionCandidate {
        data_version: Some(data_version),
        ..copy(id, hours, Contents::Everything, true)
    };
    let mut copies = vec![of("oldest", 0, 1), of("older", 1, 1)];
    copies.extend([of("a", 2, 2), of("b", 3, 2), of("c", 4, 2)]);
    assert_eq!(to_remove(&copies, TWO, at(500)), ["oldest", "a"]);
    copies.extend([of("x", 5, 3), of("y", 6, 3), of("z", 7, 3)]);
    assert_eq!(to_remove(&copies, TWO, at(500)), ["oldest", "a", "b", "x"], "another set came forward, and failed too");
    assert_eq!(to_remove(&copies, TWO, at(1 + 30 * 24)), ["oldest", "older", "a", "b", "x"], "a month is over");
}

fn shelf() -> impl Strategy<Value = Vec<RetentionCandidate>> {
    let contents = prop_oneof![
        Just(None),
        Just(Some(Contents::Worlds)),
        Just(Some(Contents::ServerFiles)),
        Just(Some(Contents::Everything))
    ];
    let standing = prop_oneof![2 => Just(Standing::Good), 1 => Just(Standing::Unread), 1 => Just(Standing::Bad)];
    let marks = (prop::bool::weighted(0.2), prop::bool::weighted(0.3), prop::bool::weighted(0.4));
    let one = (0_i64..200, contents, standing, marks);
    prop::collection::vec(one, 0..12).prop_map(|copies| {
        type One = (i64, Option<Contents>, Standing, (bool, bool, bool));
        let candidate = |(number, (hours, contents, standing, marks)): (usize, One)| RetentionCandidate {
            id: format!("c{number:02}"),
            taken_at: at(hours),
            contents,
            before_update: marks.1,
            data_version: contents.map(|_| u32::try_from(hours % 3).unwrap()),
            after_damage: marks.2,
            // The content of an unreadable record is unknown.
            standing: if contents.is_some() { standing } else { Standing::Bad },
            needed: marks.0,
        };
        copies.into_iter().enumerate().map(candidate).collect()
    })
}

proptest! {
    #[test]
    fn retention_never_prunes_last_good_or_needed_backup(
        copies in shelf(), max_count in 0_u32..6, max_age in prop::option::of(0_i64..250),
    ) {
        let retention = Retention { max_count, max_age: max_age.map(SignedDuration::from_hours) };
        let gone: BTreeSet<String> = to_remove(&copies, retention, at(200)).into_iter().collect();
        let left: Vec<RetentionCandidate> = copies.iter().filter(|copy| !gone.contains(&copy.id)).cloned().collect();
        let of_kinds: [fn(&RetentionCandidate) -> bool; 4] = [
            |copy| copy.contents.is_some_and(Contents::has_worlds),
            |copy| copy.contents.is_some_and(Contents::has_server_files),
            |copy| copy.contents.is_some_and(Contents::has_worlds) && copy.before_update,
            |copy| copy.contents.is_some_and(Contents::has_worlds) && !copy.after_damage,
        ];
        for fits in of_kinds {
            let newest = |of: &[RetentionCandidate]| {
                let good = of.iter().filter(|copy| copy.standing == Standing::Good && fits(copy));
                good.max_by_key(|copy| (copy.taken_at, copy.id.clone())).cloned()
            };
            prop_assert_eq!(newest(&copies), newest(&left), "the newest good one stays");
        }
        prop_assert!(copies.iter().all(|copy| !copy.needed || !gone.contains(&copy.id)));

        let good_only: Vec<RetentionCandidate> = copies.iter().filter(|copy| copy.standing == Standing::Good).cloned().collect();
        let gone_good: BTreeSet<String> = to_remove(&good_only, retention, at(200)).into_iter().collect();
        let same: BTreeSet<String> = gone.iter().filter(|id| good_only.iter().any(|copy| copy.id == **id)).cloned().collect();
        prop_assert_eq!(gone_good, same, "bad ones make no good one go");

        for copy in good_only.iter().filter(|copy| gone.contains(&copy.id)) {
            let newer = good_only.iter().filter(|other| other.taken_at >= copy.taken_at && other.id != copy.id).count();
            let old = max_age.is_some_and(|hours| copy.taken_at < at(200 - hours));
            prop_assert!(old || newer >= usize::try_from(max_count.max(1)).unwrap(), "{copy:?} had its place");
        }
        prop_assert_eq!(to_remove(&left, retention, at(200)), Vec::<String>::new(), "once is enough");
    }
}
