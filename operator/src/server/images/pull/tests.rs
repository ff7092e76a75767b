//! One question from the first look to its end.

use super::*;
use crate::server::images::question::tests::{goal, pod};

const NODE: &str = "on node `node-a`";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn new(policy: &str) -> Pull {
    let pod = serde_json::from_value(pod("game:1")).unwrap();
    Pull::new(Question::of(&goal(("game:2", policy), "agent:1"), &pod).unwrap())
}

fn ours(answer: Answer) -> Found {
    Found::Ours { answer, since: at(0) }
}

fn no(why: &str) -> Found {
    ours(Answer::Failed { image: Some("game:2".to_owned()), why: why.to_owned() })
}

fn asked() -> Pull {
    let (asked, deed) = new("IfNotPresent").next(Found::Nothing, at(0));
    assert_eq!(deed, Deed::Make);
    asked
}

fn pause(pull: &Pull, now: i64) -> i64 {
    pull.next_look().unwrap().duration_since(at(now)).as_secs()
}

#[test]
fn a_node_is_asked_by_one_pod_which_goes_when_it_has_answered() {
    let asked = asked();
    assert_eq!((asked.seen(), asked.stands(true, at(1))), (Images::OnTheirWay, false), "it is looked at in each pass");
    let (asked, deed) = asked.next(ours(Answer::Pending), at(5));
    assert_eq!((asked.seen(), deed), (Images::OnTheirWay, Deed::Nothing));
    assert_eq!(asked.next_look(), Some(at(3_600)));
    let (here, deed) = asked.next(ours(Answer::Here), at(9));
    assert_eq!((here.seen(), deed, here.next_look()), (Images::Here, Deed::Delete, None));
    assert!(!here.may_have_a_pod());
}

#[test]
fn what_was_pulled_counts_until_the_window_is_near_and_then_for_an_hour_or_for_ten_minutes_where_each_start_asks() {
    for (policy, counts) in [("IfNotPresent", 3_600), ("Always", 600)] {
        let (here, _) = new(policy).next(ours(Answer::Here), at(0));
        assert!(here.stands(false, at(86_400)), "nothing is asked for days before a window");
        assert!(here.stands(true, at(counts - 1)) && !here.stands(true, at(counts)), "{policy}");
        assert!(!here.stands(true, at(-1)), "nor from a future that a clock made up");
        let (again, deed) = here.next(Found::Nothing, at(counts));
        assert_eq!((again.seen(), deed), (Images::OnTheirWay, Deed::Make));
    }
}

#[test]
fn what_could_not_be_pulled_is_tried_again_ever_more_seldom_and_stands_until_it_could() {
    let mut pull = asked();
    let mut now = 0;
    for expected in [30, 60, 120, 240, 480, 900, 900] {
        let deed;
        (pull, deed) = pull.next(no("ErrImagePull: not found"), at(now));
        assert_eq!((pull.seen(), deed, pause(&pull, now)), (Images::Failed, Deed::Delete, expected));
        assert!(pull.stands(true, at(now + expected - 1)) && !pull.stands(true, at(now + expected)));
        now += expected;
        let (again, deed) = pull.next(Found::Nothing, at(now));
        assert_eq!((again.seen(), deed), (Images::Failed, Deed::Make), "what was said last stands");
        pull = again;
    }
    let problem = pull.problem.clone().unwrap();
    assert_eq!(
        (problem.what.as_str(), problem.why.as_str()),
        ("the image `game:2` cannot be pulled on node `node-a`", "ErrImagePull: not found",)
    );
    let (here, _) = pull.next(ours(Answer::Here), at(now));
    assert_eq!((here.seen(), &here.problem), (Images::Here, &None));
    let (once_more, _) = here.next(no("ErrImagePull: not found"), at(now));
    assert_eq!(pause(&once_more, now), 30, "counted from the start again");
}

#[test]
fn a_pod_that_never_answers_is_deleted_by_others_or_cannot_be_made_is_no_answer_and_no_loop() {
    let (late, deed) = asked().next(ours(Answer::Pending), at(3_600));
    assert_eq!((late.seen(), deed, pause(&late, 3_600)), (Images::Failed, Deed::Delete, 30));
    let (deleted, deed) = asked().next(Found::Nothing, at(3));
    assert_eq!((deleted.seen(), deed, pause(&deleted, 3)), (Images::Failed, Deed::Nothing, 30));
    let refused = asked().refused("exceeded quota: games", at(3));
    assert_eq!((refused.seen(), pause(&refused, 3)), (Images::Failed, 30));
    assert_eq!(refused.problem.unwrap().what, "no pod can be made that has node `node-a` pull `game:2`");
    let whole = ours(Answer::Failed { image: None, why: "OutOfpods: full".to_owned() });
    let (whole, _) = asked().next(whole, at(3));
    assert_eq!(whole.problem.unwrap().what, format!("`game:2` could not be pulled {NODE}"));
}

#[test]
fn what_an_earlier_process_left_is_taken_over_or_goes_and_what_is_not_ours_stays() {
    let (taken, deed) = new("IfNotPresent").next(ours(Answer::Pending), at(5));
    assert_eq!((taken.next_look(), deed), (Some(at(3_600)), Deed::Nothing), "its time counts from when it was made");
    let (waits, deed) = new("IfNotPresent").next(Found::OfAnother, at(5));
    assert_eq!((waits.seen(), deed), (Images::OnTheirWay, Deed::Delete));
    let (waits, deed) = waits.next(Found::Going, at(6));
    assert_eq!(deed, Deed::Nothing);
    assert_eq!(waits.next(Found::Nothing, at(7)).1, Deed::Make);
    let (foreign, deed) = new("IfNotPresent").next(Found::Foreign, at(5));
    assert_eq!((foreign.seen(), deed), (Images::Failed, Deed::Nothing));
}

#[test]
fn a_page_of_a_registry_is_cut() {
    let (failed, _) = asked().next(no(&"x".repeat(9_000)), at(1));
    assert!(failed.problem.unwrap().why.len() <= LONGEST_WHY);
}
