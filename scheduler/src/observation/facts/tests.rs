//! Checks the stored forms of facts.
//!
//! They are an interface: an operator reads facts that another version of it wrote.

use super::*;

const UID: &str = "6f1c9f5e-0c3b-4c51-9a53-0b8f6c1f2d3e";

#[test]
fn facts_are_stored_as_readable_json() {
    let pod: PodUid = UID.parse().unwrap();
    let at: Timestamp = "2026-01-11T03:00:00Z".parse().unwrap();
    let disruption = Disruption::Update { goal: Revision(0xb), window_opened_at: at };
    let facts = RecordedFacts {
        settled: Some(StableSet { revision: Revision(u64::MAX), world: DataVersion(4556) }),
        failed: vec![Revision(0xc)],
        announced: Some(Announced { act: disruption, pod, ends: at }),
        saved: Some(SavedWorld { act: Disruption::RollBack { failed: Revision(0xc) }, pod, at, confirmed: false }),
        restarted: Some(RestartStarted { due: at, pod }),
        draining: Some(ObservedDrain { since: at, pod }),
        backup_estimate: Some(BackupEstimate { goal: Revision(0xb), seconds: 12_000 }),
    };
    let json = serde_json::to_string(&facts).unwrap();
    assert_eq!(
        json,
        format!(
            "{{\"settled\":{{\"revision\":\"ffffffffffffffff\",\"world\":4556}},\
             \"failed\":[\"000000000000000c\"],\
             \"announced\":{{\"act\":{{\"kind\":\"update\",\"goal\":\"000000000000000b\",\
             \"windowOpenedAt\":\"2026-01-11T03:00:00Z\"}},\"pod\":\"{UID}\",\"ends\":\"2026-01-11T03:00:00Z\"}},\
             \"saved\":{{\"act\":{{\"kind\":\"rollBack\",\"failed\":\"000000000000000c\"}},\"pod\":\"{UID}\",\
             \"at\":\"2026-01-11T03:00:00Z\",\"confirmed\":false}},\
             \"restarted\":{{\"due\":\"2026-01-11T03:00:00Z\",\"pod\":\"{UID}\"}},\
             \"draining\":{{\"since\":\"2026-01-11T03:00:00Z\",\"pod\":\"{UID}\"}},\
             \"backupEstimate\":{{\"goal\":\"000000000000000b\",\"seconds\":12000}}}}"
        )
    );
    assert_eq!(serde_json::from_str::<RecordedFacts>(&json).unwrap(), facts);
}

#[test]
fn empty_facts_are_empty_object_and_unknown_fields_accepted() {
    assert_eq!(serde_json::to_string(&RecordedFacts::default()).unwrap(), "{}");
    assert_eq!(serde_json::from_str::<RecordedFacts>(r#"{"paused":true}"#).unwrap(), RecordedFacts::default());
}

#[test]
fn backup_estimate_applies_only_to_goal_and_its_rollback() {
    let (goal, stable) = (Revision(0xb), Revision(0xa));
    let mut facts =
        RecordedFacts { backup_estimate: Some(BackupEstimate { goal, seconds: 60 }), ..RecordedFacts::default() };
    let duration = |facts: &RecordedFacts, runs| facts.backup_duration(runs).map(|duration| duration.as_secs());
    assert_eq!((duration(&facts, goal), duration(&facts, stable)), (Some(60), None));
    facts.mark_failed(goal, None);
    assert_eq!(duration(&facts, stable), Some(60), "it applies to the rollback of the goal");
}

#[test]
fn revision_has_one_spelling() {
    assert_eq!("00000000000000ab".parse(), Ok(Revision(0xab)));
    assert_eq!(Revision(0xab).to_string(), "00000000000000ab");
    for wrong in ["ab", "00000000000000AB", "0x000000000000ab", "+0000000000000ab", "00000000000000abc", ""] {
        let error = wrong.parse::<Revision>().unwrap_err();
        assert_eq!(error.to_string(), format!("`{wrong}` is not a revision: write its 16 hex digits, lower case"));
    }
}

#[test]
fn pod_uid_survives_conversion_to_number() {
    let uid: PodUid = UID.parse().unwrap();
    assert_eq!(uid.to_string(), UID);
    assert_eq!(PodUid(7).to_string(), "00000000-0000-0000-0000-000000000007");
    let shifted = "6f1c9f5e0-c3b-4c51-9a53-0b8f6c1f2d3e";
    for wrong in ["", "lobby-0", "6f1c9f5e0c3b4c519a530b8f6c1f2d3e", shifted, "+f1c9f5e-0c3b-4c51-9a53-0b8f6c1f2d3e"] {
        assert!(wrong.parse::<PodUid>().is_err(), "{wrong}");
    }
}

#[test]
fn announced_end_counts_only_for_same_disruption_and_pod() {
    let at: Timestamp = "2026-01-11T03:05:00Z".parse().unwrap();
    let sooner = at - jiff::SignedDuration::from_mins(4);
    let disruption = Disruption::RollBack { failed: Revision(0xb) };
    let recorded = RecordedFacts {
        announced: Some(Announced { act: disruption, pod: PodUid(7), ends: at }),
        ..RecordedFacts::default()
    };
    let announce = |disruption: Disruption| {
        serde_json::from_value(serde_json::json!({"act": disruption.to_string(), "ends": sooner, "text": ""}))
    };
    let ends = |disruption, pod| {
        recorded.clone().with_announced_end(&announce(disruption).unwrap(), PodUid(pod)).announced.unwrap().ends
    };
    assert_eq!(ends(disruption, 7), sooner);
    assert_eq!(ends(disruption, 8), at);
    assert_eq!(ends(Disruption::RollBack { failed: Revision(0xc) }, 7), at);
    assert_eq!(
        RecordedFacts::default().with_announced_end(&announce(disruption).unwrap(), PodUid(7)),
        RecordedFacts::default()
    );
}

#[test]
fn finished_countdown_cannot_be_cut_short() {
    let ends: Timestamp = "2026-01-11T03:05:00Z".parse().unwrap();
    let disruption = Disruption::RollBack { failed: Revision(0xb) };
    let facts = RecordedFacts {
        announced: Some(Announced { act: disruption, pod: PodUid(7), ends }),
        ..RecordedFacts::default()
    };
    let just_before = ends - jiff::SignedDuration::from_secs(1);
    assert!(facts.is_counting_down(disruption, PodUid(7), just_before));
    assert!(!facts.is_counting_down(disruption, PodUid(7), ends));
    assert!(!facts.is_counting_down(disruption, PodUid(8), just_before), "the announcement was to another pod");
    assert!(!facts.is_counting_down(Disruption::RollBack { failed: Revision(0xc) }, PodUid(7), just_before));
}

#[test]
fn agent_with_other_or_no_countdown_has_lost_announcement() {
    let ends: Timestamp = "2026-01-11T03:00:00Z".parse().unwrap();
    let disruption = Disruption::RollBack { failed: Revision(0xb) };
    let announced = Some(Announced { act: disruption, pod: PodUid(7), ends });
    let announce = |disruption: &str| {
        serde_json::from_value(serde_json::json!({"act": disruption, "ends": ends, "text": ""})).unwrap()
    };
    let forgotten = |announce: Option<&Announce>| {
        RecordedFacts { announced, ..RecordedFacts::default() }.agent_memory(announce) == AgentMemory::Forgotten
    };
    assert!(forgotten(None));
    assert!(forgotten(Some(&announce("drain/2026-01-11T03:00:00Z"))));
    assert!(!forgotten(Some(&announce("roll-back/000000000000000b"))));
    assert_eq!(RecordedFacts::default().agent_memory(None), AgentMemory::Known, "nothing was announced");
}

#[test]
fn last_ten_failures_are_remembered_once_per_lock() {
    let mut facts = RecordedFacts::default();
    for number in 1..=12 {
        facts.mark_failed(Revision(number), Some(Revision(100 + number)));
    }
    facts.mark_failed(Revision(5), Some(Revision(105)));
    let expected: Vec<Revision> = [3, 4, 6, 7, 8, 9, 10, 11, 12, 5]
        .into_iter()
        .flat_map(|number| [Revision(100 + number), Revision(number)])
        .collect();
    assert_eq!(facts.failed, expected);
}

#[test]
fn different_disruptions_have_different_names() {
    let at: Timestamp = "2026-01-11T03:00:00Z".parse().unwrap();
    let update = |goal, window_opened_at| Disruption::Update { goal: Revision(goal), window_opened_at }.to_string();
    assert_eq!(update(0xb, at), "update/000000000000000b/2026-01-11T03:00:00Z");
    assert_ne!(update(0xb, at), update(0xb, at + jiff::SignedDuration::from_hours(168)));
    assert_eq!(Disruption::RollBack { failed: Revision(0xb) }.to_string(), "roll-back/000000000000000b");
    assert_eq!(Disruption::Restart { due: at }.to_string(), "restart/2026-01-11T03:00:00Z");
    assert_eq!(Disruption::Drain { since: at }.to_string(), "drain/2026-01-11T03:00:00Z");
}
