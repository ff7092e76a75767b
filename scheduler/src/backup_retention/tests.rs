//! Pure. Checks the guarantees of retention for any set of backups.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hours * 3600).unwrap()
}

fn candidate(id: &str, hours: i64, contents: Contents, good: bool) -> RetentionCandidate {
    RetentionCandidate {
        id: id.into(),
        taken_at: at(hours),
        contents: Some(contents),
        before_update: false,
        data_version: None,
        after_damage: false,
        state: if good { BackupState::Good } else { BackupState::Bad },
        needed: false,
    }
}

fn rollback_candidate(id: &str, hours: i64, state: BackupState) -> RetentionCandidate {
    RetentionCandidate { before_update: true, state, ..candidate(id, hours, Contents::Worlds, true) }
}

const TWO: Retention = Retention { max_count: 2, max_age: None, keeps_older: true };

#[test]
fn oldest_backups_are_pruned_when_too_many() {
    let candidates =
        ["a", "b", "c", "d"].map(|id| candidate(id, i64::from(id.as_bytes()[0]), Contents::Everything, true));
    assert_eq!(to_remove(&candidates, TWO, at(500)), ["a", "b"]);
}

#[test]
fn last_good_world_backup_outlives_all_file_backups() {
    let mut candidates = vec![candidate("worlds", 0, Contents::Worlds, true)];
    candidates
        .extend(["x", "y", "z"].map(|id| candidate(id, i64::from(id.as_bytes()[0]), Contents::ServerFiles, true)));
    assert_eq!(to_remove(&candidates, TWO, at(500)), ["x"]);
}

#[test]
fn age_limit_prunes_all_but_last_good_backup() {
    let candidates = [candidate("old", 0, Contents::Worlds, true), candidate("older", -1, Contents::Worlds, true)];
    let retention = Retention { max_count: 9, max_age: Some(SignedDuration::from_hours(1)), keeps_older: true };
    assert_eq!(to_remove(&candidates, retention, at(100)), ["older"]);
}

#[test]
fn damaged_backup_is_pruned_before_any_good_one() {
    let candidates = [
        candidate("good", 0, Contents::Worlds, true),
        candidate("better", 1, Contents::Worlds, true),
        candidate("damaged", 2, Contents::Worlds, false),
    ];
    assert_eq!(to_remove(&candidates, TWO, at(3)), ["damaged"]);
}

#[test]
fn backup_needed_by_update_is_kept_beyond_retention() {
    let mut candidates = ["a", "b", "c"].map(|id| candidate(id, i64::from(id.as_bytes()[0]), Contents::Worlds, true));
    candidates[0].needed = true;
    let one = Retention { max_count: 0, max_age: Some(SignedDuration::ZERO), keeps_older: true };
    assert_eq!(to_remove(&candidates, one, at(500)), ["b"]);
}

#[test]
fn newest_rollback_backup_outlives_any_number_of_online_backups() {
    let mut candidates =
        ["a", "b"].map(|id| candidate(id, i64::from(id.as_bytes()[0]), Contents::Worlds, true)).to_vec();
    for candidate in &mut candidates {
        candidate.before_update = true;
    }
    candidates.extend(["x", "y", "z"].map(|id| candidate(id, i64::from(id.as_bytes()[0]), Contents::Everything, true)));
    assert_eq!(to_remove(&candidates, TWO, at(500)), ["a", "x"]);
}

#[test]
fn newest_backup_before_damage_is_kept_whatever_its_age() {
    let mut candidates =
        ["a", "b"].map(|id| candidate(id, i64::from(id.as_bytes()[0]), Contents::Worlds, true)).to_vec();
    candidates.extend(["w", "x", "y", "z"].map(|id| RetentionCandidate {
        after_damage: true,
        ..candidate(id, i64::from(id.as_bytes()[0]), Contents::Everything, true)
    }));
    let one_day = Some(SignedDuration::from_hours(24));
    assert_eq!(
        to_remove(&candidates, Retention { max_count: 1, max_age: one_day, keeps_older: true }, at(123)),
        ["a", "w", "x", "y"]
    );
    // A backup of settings alone displaces no backup with worlds, and a damaged backup displaces no good one.
    candidates.push(candidate("settings", 130, Contents::ServerFiles, true));
    candidates.push(candidate("spoilt", 131, Contents::Worlds, false));
    assert_eq!(to_remove(&candidates, TWO, at(140)), ["a", "w", "x", "y", "spoilt"]);
    // The next backup of an undamaged world replaces it.
    candidates.push(candidate("whole", 132, Contents::Everything, true));
    assert!(to_remove(&candidates, TWO, at(140)).contains(&"b".to_owned()));
}

#[test]
fn unreadable_backup_displaces_no_readable_rollback_backup() {
    let mut candidates = vec![
        rollback_candidate("readable", 0, BackupState::Good),
        rollback_candidate("unread", 1, BackupState::Unread),
    ];
    candidates.extend(["x", "y"].map(|id| candidate(id, i64::from(id.as_bytes()[0]), Contents::Everything, true)));
    assert_eq!(to_remove(&candidates, TWO, at(500)), ["unread"]);
    assert_eq!(
        to_remove(&candidates, Retention { max_count: 4, max_age: None, keeps_older: true }, at(500)),
        Vec::<String>::new()
    );
}

#[test]
fn newest_unreadable_rollback_backup_is_kept_without_good_one() {
    let mut candidates =
        vec![rollback_candidate("older", 0, BackupState::Unread), rollback_candidate("unread", 1, BackupState::Unread)];
    candidates.push(rollback_candidate("damaged", 2, BackupState::Bad));
    candidates.extend(["x", "y"].map(|id| candidate(id, i64::from(id.as_bytes()[0]), Contents::Everything, true)));
    assert_eq!(to_remove(&candidates, TWO, at(500)), ["older", "damaged"]);
}

#[test]
fn older_minecraft_backup_outlives_roll_forward_by_a_month() {
    let of = |id, hours, data_version| RetentionCandidate {
        data_version: Some(data_version),
        ..rollback_candidate(id, hours, BackupState::Good)
    };
    let mut candidates = vec![of("oldest", 0, 1), of("older", 1, 1), of("newer", 2, 2), of("newest", 3, 2)];
    candidates
        .extend(["x", "y"].map(|id| candidate(id, 200 + i64::from(id.as_bytes()[0]), Contents::Everything, true)));
    assert_eq!(to_remove(&candidates, TWO, at(500)), ["oldest", "newer"]);
    assert_eq!(to_remove(&candidates, TWO, at(1 + 30 * 24)), ["oldest", "older", "newer"], "a month later");
}

#[test]
fn failed_lock_backups_displace_no_recent_older_minecraft_backup() {
    let of = |id, hours, data_version| RetentionCandidate {
        data_version: Some(data_version),
        ..candidate(id, hours, Contents::Everything, true)
    };
    let mut candidates = vec![of("oldest", 0, 1), of("older", 1, 1)];
    candidates.extend([of("a", 2, 2), of("b", 3, 2), of("c", 4, 2)]);
    assert_eq!(to_remove(&candidates, TWO, at(500)), ["oldest", "a"]);
    candidates.extend([of("x", 5, 3), of("y", 6, 3), of("z", 7, 3)]);
    assert_eq!(
        to_remove(&candidates, TWO, at(500)),
        ["oldest", "a", "b", "x"],
        "another version set was tried and failed"
    );
    assert_eq!(to_remove(&candidates, TWO, at(1 + 30 * 24)), ["oldest", "older", "a", "b", "x"], "a month later");
}

#[test]
fn server_volume_keeps_one_backup_from_before_updates() {
    let candidates: Vec<RetentionCandidate> = [(1, 4_325), (2, 4_556), (3, 4_671)]
        .into_iter()
        .map(|(hours, data_version)| RetentionCandidate {
            data_version: Some(data_version),
            ..rollback_candidate(&hours.to_string(), hours, BackupState::Good)
        })
        .collect();
    let removed = |keeps_older| to_remove(&candidates, Retention { max_count: 1, max_age: None, keeps_older }, at(4));
    assert_eq!((removed(true), removed(false)), (Vec::new(), vec!["1".to_owned(), "2".to_owned()]));
}

fn candidates() -> impl Strategy<Value = Vec<RetentionCandidate>> {
    let contents = prop_oneof![
        Just(None),
        Just(Some(Contents::Worlds)),
        Just(Some(Contents::ServerFiles)),
        Just(Some(Contents::Everything))
    ];
    let state = prop_oneof![2 => Just(BackupState::Good), 1 => Just(BackupState::Unread), 1 => Just(BackupState::Bad)];
    let marks = (prop::bool::weighted(0.2), prop::bool::weighted(0.3), prop::bool::weighted(0.4));
    let one = (0_i64..200, contents, state, marks);
    prop::collection::vec(one, 0..12).prop_map(|candidates| {
        type One = (i64, Option<Contents>, BackupState, (bool, bool, bool));
        let candidate = |(number, (hours, contents, state, marks)): (usize, One)| RetentionCandidate {
            id: format!("c{number:02}"),
            taken_at: at(hours),
            contents,
            before_update: marks.1,
            data_version: contents.map(|_| u32::try_from(hours % 3).unwrap()),
            after_damage: marks.2,
            // The content of an unreadable record is unknown.
            state: if contents.is_some() { state } else { BackupState::Bad },
            needed: marks.0,
        };
        candidates.into_iter().enumerate().map(candidate).collect()
    })
}

proptest! {
    #[test]
    fn retention_never_prunes_last_good_or_needed_backup(
        candidates in candidates(), max_count in 0_u32..6, max_age in prop::option::of(0_i64..250),
        keeps_older in prop::bool::ANY,
    ) {
        let retention = Retention { max_count, max_age: max_age.map(SignedDuration::from_hours), keeps_older };
        let removed: BTreeSet<String> = to_remove(&candidates, retention, at(200)).into_iter().collect();
        let left: Vec<RetentionCandidate> = candidates.iter().filter(|candidate| !removed.contains(&candidate.id)).cloned().collect();
        let of_kinds: [fn(&RetentionCandidate) -> bool; 4] = [
            |candidate| candidate.contents.is_some_and(Contents::has_worlds),
            |candidate| candidate.contents.is_some_and(Contents::has_server_files),
            |candidate| candidate.contents.is_some_and(Contents::has_worlds) && candidate.before_update,
            |candidate| candidate.contents.is_some_and(Contents::has_worlds) && !candidate.after_damage,
        ];
        for fits in of_kinds {
            let newest = |of: &[RetentionCandidate]| {
                let good = of.iter().filter(|candidate| candidate.state == BackupState::Good && fits(candidate));
                good.max_by_key(|candidate| (candidate.taken_at, candidate.id.clone())).cloned()
            };
            prop_assert_eq!(newest(&candidates), newest(&left), "the newest good backup is kept");
        }
        prop_assert!(candidates.iter().all(|candidate| !candidate.needed || !removed.contains(&candidate.id)));

        let good_only: Vec<RetentionCandidate> = candidates.iter().filter(|candidate| candidate.state == BackupState::Good).cloned().collect();
        let removed_good: BTreeSet<String> = to_remove(&good_only, retention, at(200)).into_iter().collect();
        let same: BTreeSet<String> = removed.iter().filter(|id| good_only.iter().any(|candidate| candidate.id == **id)).cloned().collect();
        prop_assert_eq!(removed_good, same, "bad backups displace no good one");

        for candidate in good_only.iter().filter(|candidate| removed.contains(&candidate.id)) {
            let newer = good_only.iter().filter(|other| other.taken_at >= candidate.taken_at && other.id != candidate.id).count();
            let old = max_age.is_some_and(|hours| candidate.taken_at < at(200 - hours));
            prop_assert!(old || newer >= usize::try_from(max_count.max(1)).unwrap(), "{candidate:?} was within limits");
        }
        prop_assert_eq!(to_remove(&left, retention, at(200)), Vec::<String>::new(), "a second run removes nothing");
    }
}
