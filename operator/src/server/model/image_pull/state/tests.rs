//! Tests one pull request from the first pass to its result.

use super::*;
use crate::server::model::image_pull::request::tests::{goal, pod};

const NODE: &str = "on node `node-a`";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn new(policy: &str) -> Pull {
    let pod = serde_json::from_value(pod("game:1")).unwrap();
    Pull::new(PullRequest::from_goal(&goal(("game:2", policy), "agent:1"), &pod).unwrap())
}

fn owned(status: PullStatus) -> PullPod {
    PullPod::Owned { status, since: at(0) }
}

fn failed(why: &str) -> PullPod {
    owned(PullStatus::Failed { image: Some("game:2".to_owned()), why: why.to_owned() })
}

fn requested() -> Pull {
    let (requested, action) = new("IfNotPresent").next(PullPod::Missing, at(0));
    assert_eq!(action, PullAction::Create);
    requested
}

fn pause(pull: &Pull, now: i64) -> i64 {
    pull.next_check().unwrap().duration_since(at(now)).as_secs()
}

#[test]
fn pull_pod_is_deleted_after_its_answer() {
    let requested = requested();
    assert_eq!(
        (requested.images_on_node(), requested.is_current(true, at(1))),
        (ImagesOnNode::Pulling, false),
        "a running pull is checked in each pass"
    );
    let (requested, action) = requested.next(owned(PullStatus::Pending), at(5));
    assert_eq!((requested.images_on_node(), action), (ImagesOnNode::Pulling, PullAction::Nothing));
    assert_eq!(requested.next_check(), Some(at(3_600)));
    let (pulled, action) = requested.next(owned(PullStatus::Pulled), at(9));
    assert_eq!(
        (pulled.images_on_node(), action, pulled.next_check()),
        (ImagesOnNode::Present, PullAction::Delete, None)
    );
    assert!(!pulled.may_have_pod());
}

#[test]
fn pulled_image_expires_after_an_hour_or_ten_minutes() {
    for (policy, counts) in [("IfNotPresent", 3_600), ("Always", 600)] {
        let (pulled, _) = new(policy).next(owned(PullStatus::Pulled), at(0));
        assert!(pulled.is_current(false, at(86_400)), "far from a window, the result is not checked again");
        assert!(pulled.is_current(true, at(counts - 1)) && !pulled.is_current(true, at(counts)), "{policy}");
        assert!(!pulled.is_current(true, at(-1)), "a result from the future is not current");
        let (again, action) = pulled.next(PullPod::Missing, at(counts));
        assert_eq!((again.images_on_node(), action), (ImagesOnNode::Pulling, PullAction::Create));
    }
}

#[test]
fn failed_pull_is_retried_with_growing_pauses() {
    let mut pull = requested();
    let mut now = 0;
    for expected in [30, 60, 120, 240, 480, 900, 900] {
        let action;
        (pull, action) = pull.next(failed("ErrImagePull: not found"), at(now));
        assert_eq!(
            (pull.images_on_node(), action, pause(&pull, now)),
            (ImagesOnNode::Failed, PullAction::Delete, expected)
        );
        assert!(pull.is_current(true, at(now + expected - 1)) && !pull.is_current(true, at(now + expected)));
        now += expected;
        let (again, action) = pull.next(PullPod::Missing, at(now));
        assert_eq!(
            (again.images_on_node(), action),
            (ImagesOnNode::Failed, PullAction::Create),
            "the last result counts until the retry ends"
        );
        pull = again;
    }
    let problem = pull.problem.clone().unwrap();
    assert_eq!(
        (problem.subject.as_str(), problem.why.as_str()),
        ("The image `game:2` cannot be pulled on node `node-a`", "ErrImagePull: not found",)
    );
    let (pulled, _) = pull.next(owned(PullStatus::Pulled), at(now));
    assert_eq!((pulled.images_on_node(), &pulled.problem), (ImagesOnNode::Present, &None));
    let (once_more, _) = pulled.next(failed("ErrImagePull: not found"), at(now));
    assert_eq!(pause(&once_more, now), 30, "a success resets the pause");
}

fn refusal(message: &str) -> Status {
    serde_json::from_value(serde_json::json!({"code": 403, "message": message})).unwrap()
}

#[test]
fn silent_or_refused_pull_pod_backs_off() {
    let (taken, _) = requested().next(owned(PullStatus::Pending), at(3));
    let (late, action) = taken.next(owned(PullStatus::Pending), at(3_600));
    assert_eq!((late.images_on_node(), action, pause(&late, 3_600)), (ImagesOnNode::Failed, PullAction::Delete, 30));
    let (once, _) = late.next(PullPod::Foreign, at(3_630));
    assert_eq!(
        once.next(PullPod::Foreign, at(3_690)).0.images_on_node(),
        ImagesOnNode::Unknown,
        "an expired deadline does not count as an image failure"
    );
    let refused = requested().rejected(&refusal("admission webhook \"signed\" denied the request: not signed"), at(3));
    assert_eq!(
        (refused.images_on_node(), pause(&refused, 3)),
        (ImagesOnNode::Failed, 30),
        "the webhook would reject the server's pod as well"
    );
    assert_eq!(refused.problem.unwrap().subject, "Could not create a pod that has node `node-a` pull `game:2`");
    let whole = owned(PullStatus::Failed { image: None, why: "Evicted: disk full".to_owned() });
    let (whole, _) = requested().next(whole, at(3));
    assert_eq!(whole.problem.unwrap().subject, format!("Could not pull `game:2` {NODE}"));
}

/// One pass, at this second.
type Look = Box<dyn Fn(Pull, i64) -> (Pull, PullAction)>;

/// Observations that give no information about images.
fn unknown_results() -> Vec<(&'static str, Look)> {
    let found = |found: PullPod| move |pull: Pull, now| pull.next(found.clone(), at(now));
    vec![
        ("no capacity", Box::new(found(owned(PullStatus::NoCapacity("OutOfpods: full".to_owned()))))),
        (
            "silent kubelet",
            Box::new(|pull, now| {
                pull.next(PullPod::Owned { status: PullStatus::Unnoticed, since: at(now - 120) }, at(now))
            }),
        ),
        ("a foreign pod", Box::new(found(PullPod::Foreign))),
        ("deleted", Box::new(found(PullPod::Missing))),
        (
            "deleted but not gone yet",
            Box::new(|pull, now| pull.next(PullPod::Terminating { gone_by: at(now + 9) }, at(now))),
        ),
        ("not gone in time", Box::new(|pull, now| pull.next(PullPod::Terminating { gone_by: at(now) }, at(now)))),
        (
            "a full quota",
            Box::new(|pull, now| (pull.rejected(&refusal("exceeded quota: games"), at(now)), PullAction::Nothing)),
        ),
    ]
}

#[test]
fn inconclusive_pull_blocks_update_only_once() {
    for (case, status) in unknown_results() {
        let (once, _) = status(requested(), 200);
        assert_eq!(
            (once.images_on_node(), &once.problem, pause(&once, 200)),
            (ImagesOnNode::Pulling, &None, 30),
            "{case}"
        );
        let twice = |before: Pull| status(before.requested(at(1_000)), 230).0;
        let reported = twice(once);
        assert_eq!((reported.images_on_node(), pause(&reported, 230)), (ImagesOnNode::Unknown, 60), "{case}");
        let problem = reported.problem.clone().unwrap();
        assert_eq!(problem.subject, "Node `node-a` could not be checked for `game:2`");
        assert!(!problem.is_image_error && !problem.why.is_empty(), "{case}");

        // A known failure overrides an unknown state, until the images are pulled.
        let (failed, _) = reported.requested(at(1_000)).next(failed("ErrImagePull: not found"), at(300));
        assert_eq!(failed.images_on_node(), ImagesOnNode::Failed, "{case}");
        let (once, _) = status(failed.requested(at(1_000)), 400);
        assert_eq!(once.images_on_node(), ImagesOnNode::Failed, "{case}: one attempt keeps the failure");
        let twice = twice(once.clone());
        assert_eq!(
            (twice.images_on_node(), &twice.problem),
            (ImagesOnNode::Failed, &once.problem),
            "{case}: two attempts keep the failure"
        );
        let (pulled, _) = once.next(owned(PullStatus::Pulled), at(500));
        assert_eq!((pulled.images_on_node(), pulled.unreachable_attempts), (ImagesOnNode::Present, 0), "{case}");
    }
}

#[test]
fn unresponsive_node_is_given_up_after_two_minutes() {
    let unnoticed = |since| PullPod::Owned { status: PullStatus::Unnoticed, since: at(since) };
    let (waits, action) = requested().next(unnoticed(0), at(119));
    assert_eq!((waits.next_check(), action), (Some(at(120)), PullAction::Nothing));
    let (once, action) = waits.next(unnoticed(0), at(120));
    assert_eq!((once.images_on_node(), action), (ImagesOnNode::Pulling, PullAction::Delete));
    let (requested, action) = once.next(PullPod::Missing, at(150));
    assert_eq!((requested.next_check(), action), (Some(at(270)), PullAction::Create));
    let (reported, action) = requested.next(unnoticed(150), at(270));
    assert_eq!((reported.images_on_node(), action), (ImagesOnNode::Unknown, PullAction::Delete));

    // A pod that somebody else deleted and that its kubelet does not release.
    let (waits, action) = new("IfNotPresent").next(PullPod::Terminating { gone_by: at(60) }, at(5));
    assert_eq!((waits.next_check(), action, waits.unreachable_attempts), (Some(at(60)), PullAction::Nothing, 0));
    let (unreachable, action) = waits.next(PullPod::Terminating { gone_by: at(60) }, at(60));
    assert_eq!(
        (action, pause(&unreachable, 60)),
        (PullAction::Delete, 30),
        "the next delete is not attempted in the same second"
    );
}

#[test]
fn pull_pod_of_earlier_process_is_adopted_or_deleted() {
    let (taken, action) = new("IfNotPresent").next(owned(PullStatus::Pending), at(5));
    assert_eq!(
        (taken.next_check(), action),
        (Some(at(3_600)), PullAction::Nothing),
        "the deadline counts from the creation of the pod"
    );
    let (waits, action) = new("IfNotPresent").next(PullPod::OtherRequest, at(5));
    assert_eq!((waits.images_on_node(), action), (ImagesOnNode::Pulling, PullAction::Delete));
    assert_eq!(waits.next(PullPod::Missing, at(7)).1, PullAction::Create);
    assert_eq!(new("IfNotPresent").next(PullPod::Foreign, at(5)).1, PullAction::Nothing);
}

#[test]
fn pull_error_text_is_cut() {
    let (failed, _) = requested().next(failed(&"x".repeat(9_000)), at(1));
    assert!(failed.problem.unwrap().why.len() <= MAX_REASON_LENGTH);
}
