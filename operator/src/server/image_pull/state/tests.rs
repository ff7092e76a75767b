//! Tests one pull request from the first pass to its result.

use super::*;
use crate::server::image_pull::request::tests::{goal, pod};

const NODE: &str = "on node `node-a`";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn new(policy: &str) -> Pull {
    let pod = serde_json::from_value(pod("game:1")).unwrap();
    Pull::new(PullRequest::of(&goal(("game:2", policy), "agent:1"), &pod).unwrap())
}

fn ours(answer: PullStatus) -> PullPod {
    PullPod::Ours { answer, since: at(0) }
}

fn no(why: &str) -> PullPod {
    ours(PullStatus::Failed { image: Some("game:2".to_owned()), why: why.to_owned() })
}

fn asked() -> Pull {
    let (asked, deed) = new("IfNotPresent").next(PullPod::Nothing, at(0));
    assert_eq!(deed, PullAction::Make);
    asked
}

fn pause(pull: &Pull, now: i64) -> i64 {
    pull.next_look().unwrap().duration_since(at(now)).as_secs()
}

#[test]
fn pull_pod_is_deleted_after_its_answer() {
    let asked = asked();
    assert_eq!(
        (asked.seen(), asked.stands(true, at(1))),
        (ImagesOnNode::OnTheirWay, false),
        "it is looked at in each pass"
    );
    let (asked, deed) = asked.next(ours(PullStatus::Pending), at(5));
    assert_eq!((asked.seen(), deed), (ImagesOnNode::OnTheirWay, PullAction::Nothing));
    assert_eq!(asked.next_look(), Some(at(3_600)));
    let (here, deed) = asked.next(ours(PullStatus::Here), at(9));
    assert_eq!((here.seen(), deed, here.next_look()), (ImagesOnNode::Here, PullAction::Delete, None));
    assert!(!here.may_have_a_pod());
}

#[test]
fn pulled_image_expires_after_an_hour_or_ten_minutes() {
    for (policy, counts) in [("IfNotPresent", 3_600), ("Always", 600)] {
        let (here, _) = new(policy).next(ours(PullStatus::Here), at(0));
        assert!(here.stands(false, at(86_400)), "nothing is asked for days before a window");
        assert!(here.stands(true, at(counts - 1)) && !here.stands(true, at(counts)), "{policy}");
        assert!(!here.stands(true, at(-1)), "nor from a future that a clock made up");
        let (again, deed) = here.next(PullPod::Nothing, at(counts));
        assert_eq!((again.seen(), deed), (ImagesOnNode::OnTheirWay, PullAction::Make));
    }
}

#[test]
fn failed_pull_is_retried_with_growing_pauses() {
    let mut pull = asked();
    let mut now = 0;
    for expected in [30, 60, 120, 240, 480, 900, 900] {
        let deed;
        (pull, deed) = pull.next(no("ErrImagePull: not found"), at(now));
        assert_eq!((pull.seen(), deed, pause(&pull, now)), (ImagesOnNode::Failed, PullAction::Delete, expected));
        assert!(pull.stands(true, at(now + expected - 1)) && !pull.stands(true, at(now + expected)));
        now += expected;
        let (again, deed) = pull.next(PullPod::Nothing, at(now));
        assert_eq!((again.seen(), deed), (ImagesOnNode::Failed, PullAction::Make), "what was said last stands");
        pull = again;
    }
    let problem = pull.problem.clone().unwrap();
    assert_eq!(
        (problem.what.as_str(), problem.why.as_str()),
        ("the image `game:2` cannot be pulled on node `node-a`", "ErrImagePull: not found",)
    );
    let (here, _) = pull.next(ours(PullStatus::Here), at(now));
    assert_eq!((here.seen(), &here.problem), (ImagesOnNode::Here, &None));
    let (once_more, _) = here.next(no("ErrImagePull: not found"), at(now));
    assert_eq!(pause(&once_more, now), 30, "counted from the start again");
}

fn refusal(message: &str) -> Status {
    serde_json::from_value(serde_json::json!({"code": 403, "message": message})).unwrap()
}

#[test]
fn silent_or_refused_pull_pod_backs_off() {
    let (taken, _) = asked().next(ours(PullStatus::Pending), at(3));
    let (late, deed) = taken.next(ours(PullStatus::Pending), at(3_600));
    assert_eq!((late.seen(), deed, pause(&late, 3_600)), (ImagesOnNode::Failed, PullAction::Delete, 30));
    let (once, _) = late.next(PullPod::Foreign, at(3_630));
    assert_eq!(
        once.next(PullPod::Foreign, at(3_690)).0.seen(),
        ImagesOnNode::Unknown,
        "the node was lost in the middle of it"
    );
    let refused = asked().refused(&refusal("admission webhook \"signed\" denied the request: not signed"), at(3));
    assert_eq!(
        (refused.seen(), pause(&refused, 3)),
        (ImagesOnNode::Failed, 30),
        "the server's pod would not be let in either"
    );
    assert_eq!(refused.problem.unwrap().what, "no pod can be made that has node `node-a` pull `game:2`");
    let whole = ours(PullStatus::Failed { image: None, why: "Evicted: disk full".to_owned() });
    let (whole, _) = asked().next(whole, at(3));
    assert_eq!(whole.problem.unwrap().what, format!("`game:2` could not be pulled {NODE}"));
}

/// One pass, at this second.
type Look = Box<dyn Fn(Pull, i64) -> (Pull, PullAction)>;

/// Observations that give no information about images.
fn says_nothing() -> Vec<(&'static str, Look)> {
    let found = |found: PullPod| move |pull: Pull, now| pull.next(found.clone(), at(now));
    vec![
        ("no room", Box::new(found(ours(PullStatus::NoRoom("OutOfpods: full".to_owned()))))),
        (
            "dead",
            Box::new(|pull, now| {
                pull.next(PullPod::Ours { answer: PullStatus::Untaken, since: at(now - 120) }, at(now))
            }),
        ),
        ("a stranger", Box::new(found(PullPod::Foreign))),
        ("deleted", Box::new(found(PullPod::Nothing))),
        ("deleted, and still there", Box::new(|pull, now| pull.next(PullPod::Going { by: at(now + 9) }, at(now)))),
        ("does not go", Box::new(|pull, now| pull.next(PullPod::Going { by: at(now) }, at(now)))),
        (
            "a quota",
            Box::new(|pull, now| (pull.refused(&refusal("exceeded quota: games"), at(now)), PullAction::Nothing)),
        ),
    ]
}

#[test]
fn inconclusive_pull_blocks_update_only_once() {
    for (what, answer) in says_nothing() {
        let (once, _) = answer(asked(), 200);
        assert_eq!((once.seen(), &once.problem, pause(&once, 200)), (ImagesOnNode::OnTheirWay, &None, 30), "{what}");
        let twice = |before: Pull| answer(before.asked(at(1_000)), 230).0;
        let told = twice(once);
        assert_eq!((told.seen(), pause(&told, 230)), (ImagesOnNode::Unknown, 60), "{what}");
        let problem = told.problem.clone().unwrap();
        assert_eq!(problem.what, "node `node-a` cannot be asked whether it has `game:2`");
        assert!(!problem.is_of_an_image && !problem.why.is_empty(), "{what}");

        // A known failure overrides an unknown state, until the images are pulled.
        let (failed, _) = told.asked(at(1_000)).next(no("ErrImagePull: not found"), at(300));
        assert_eq!(failed.seen(), ImagesOnNode::Failed, "{what}");
        let (once, _) = answer(failed.asked(at(1_000)), 400);
        assert_eq!(once.seen(), ImagesOnNode::Failed, "{what}: said once it is no answer");
        let twice = twice(once.clone());
        assert_eq!((twice.seen(), &twice.problem), (ImagesOnNode::Failed, &once.problem), "{what}: nor said twice");
        let (here, _) = once.next(ours(PullStatus::Here), at(500));
        assert_eq!((here.seen(), here.unasked), (ImagesOnNode::Here, 0), "{what}");
    }
}

#[test]
fn unresponsive_node_is_given_up_after_two_minutes() {
    let untaken = |since| PullPod::Ours { answer: PullStatus::Untaken, since: at(since) };
    let (waits, deed) = asked().next(untaken(0), at(119));
    assert_eq!((waits.next_look(), deed), (Some(at(120)), PullAction::Nothing));
    let (once, deed) = waits.next(untaken(0), at(120));
    assert_eq!((once.seen(), deed), (ImagesOnNode::OnTheirWay, PullAction::Delete));
    let (asked, deed) = once.next(PullPod::Nothing, at(150));
    assert_eq!((asked.next_look(), deed), (Some(at(270)), PullAction::Make));
    let (told, deed) = asked.next(untaken(150), at(270));
    assert_eq!((told.seen(), deed), (ImagesOnNode::Unknown, PullAction::Delete));

    // A pod that somebody else deleted and that its kubelet does not release.
    let (waits, deed) = new("IfNotPresent").next(PullPod::Going { by: at(60) }, at(5));
    assert_eq!((waits.next_look(), deed, waits.unasked), (Some(at(60)), PullAction::Nothing, 0));
    let (gone, deed) = waits.next(PullPod::Going { by: at(60) }, at(60));
    assert_eq!(
        (deed, pause(&gone, 60)),
        (PullAction::Delete, 30),
        "and not again in the same second, should somebody keep it"
    );
}

#[test]
fn pull_pod_of_earlier_process_is_adopted_or_deleted() {
    let (taken, deed) = new("IfNotPresent").next(ours(PullStatus::Pending), at(5));
    assert_eq!(
        (taken.next_look(), deed),
        (Some(at(3_600)), PullAction::Nothing),
        "its time counts from when it was made"
    );
    let (waits, deed) = new("IfNotPresent").next(PullPod::OfAnother, at(5));
    assert_eq!((waits.seen(), deed), (ImagesOnNode::OnTheirWay, PullAction::Delete));
    assert_eq!(waits.next(PullPod::Nothing, at(7)).1, PullAction::Make);
    assert_eq!(new("IfNotPresent").next(PullPod::Foreign, at(5)).1, PullAction::Nothing);
}

#[test]
fn pull_error_text_is_cut() {
    let (failed, _) = asked().next(no(&"x".repeat(9_000)), at(1));
    assert!(failed.problem.unwrap().why.len() <= LONGEST_WHY);
}
