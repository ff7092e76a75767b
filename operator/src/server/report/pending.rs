//! Pure. Reports a server that is down because the cluster does not run its pod: it has no node, no volume or no image.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::PodPhase;

use super::context::PassReport;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::observe::Observed;
use crate::server::observe::pending::{Lack, PendingPod};
use crate::server::plan::Plan;
use crate::server::plan::constraint::APPLY_NOW_HINT;

/// How long the cluster may take without an Event and a notification. An autoscaler adds a node within minutes.
const TOLERATED: SignedDuration = SignedDuration::from_mins(5);
/// Maximum length of the message of the Kubernetes scheduler or the kubelet.
const MAX_PROBLEM_LENGTH: usize = 512;

fn pending_pod(plan: &Plan, observed: &Observed) -> Option<PendingPod> {
    plan.observation.pod.filter(|pod| pod.phase == PodPhase::Pending)?;
    observed.pod.as_ref().and_then(PendingPod::from_pod)
}

fn overdue_pod(report: &PassReport<'_>) -> Option<PendingPod> {
    pending_pod(report.plan, report.pass.observed).filter(|pod| pod.since + TOLERATED <= report.pass.now)
}

/// Whether the cluster has not run the pod for so long that Event and notification report it.
pub(super) fn is_overdue(report: &PassReport<'_>) -> bool {
    overdue_pod(report).is_some()
}

/// When a wait that is still tolerated would be reported.
pub(crate) fn reported_at(plan: &Plan, observed: &Observed, now: Timestamp) -> Option<Timestamp> {
    pending_pod(plan, observed).map(|pod| pod.since + TOLERATED).filter(|at| now < *at)
}

/// Reason and message of `Ready` and `Updating`. Without a reported problem, the first minutes are a normal start.
pub(super) fn reason_and_message(report: &PassReport<'_>) -> (&'static str, String) {
    let pod = pending_pod(report.plan, report.pass.observed);
    match pod.filter(|pod| pod.problem.is_some() || is_overdue(report)) {
        Some(pod) => (reason(pod.lack), message(&pod, pod.problem.as_deref(), report)),
        None => ("Starting", "The server is starting.".to_owned()),
    }
}

/// The Event about a wait that lasts too long. The problem is left out, because its text changes with each node.
pub(super) fn event(report: &PassReport<'_>) -> Option<EventText> {
    overdue_pod(report).map(|pod| EventText {
        reason: reason(pod.lack),
        warning: true,
        text: message(&pod, None, report),
    })
}

const fn reason(lack: Lack) -> &'static str {
    match lack {
        Lack::Node => "WaitingForNode",
        Lack::Volumes => "WaitingForVolumes",
        Lack::Image => "WaitingForImage",
    }
}

fn message(pod: &PendingPod, problem: Option<&str>, report: &PassReport<'_>) -> String {
    let PendingPod { lack, since, problem: _ } = pod;
    let (namespace, name) = (&report.pass.checked.namespace, &report.pass.checked.name);
    let lack = match lack {
        Lack::Node => "it has had no node",
        Lack::Volumes => "its volumes have not been mounted",
        Lack::Image => "its image has not been pulled",
    };
    let problem = problem.map_or_else(String::new, |problem| {
        format!(" ({})", cut(problem.trim_end_matches(['.', ' ']), MAX_PROBLEM_LENGTH))
    });
    let update = if report.pass.observed.is_rollout_in_progress() {
        " The update waits, and is not rolled back for this."
    } else {
        ""
    };
    let runs_goal = report.plan.observation.pod.is_some_and(|pod| pod.revision == report.plan.goal.revision);
    let hint = if runs_goal || report.plan.gate.is_open() {
        String::new()
    } else {
        format!(" Another version set, or other settings, are planned by now. {APPLY_NOW_HINT}")
    };
    format!(
        "The server is down, and starts as soon as the cluster runs its pod: {lack} since {since}{problem}.{update} See \
        `kubectl -n {namespace} describe pod {name}-0`.{hint}"
    )
}

#[cfg(test)]
mod tests {
    use scheduler::observation::{PodView, Revision};
    use scheduler::rollout::{Step, WaitingOn};
    use serde_json::json;

    use super::*;
    use crate::server::report::tests::{Pass, message as condition};

    /// A pod that has had no node for this many minutes.
    fn without_node(minutes: i64, problem: Option<&str>) -> Pass {
        let mut pass = Pass::new();
        let since = pass.report().pass.now - SignedDuration::from_mins(minutes);
        let scheduled = json!({
            "type": "PodScheduled", "status": "False", "message": problem, "lastTransitionTime": since.to_string(),
        });
        let pod = json!({"metadata": {"name": "lobby-0"}, "status": {"phase": "Pending", "conditions": [scheduled]}});
        pass.observed.pod = Some(serde_json::from_value(pod).unwrap());
        pass.plan.observation.pod = pass.plan.observation.pod.map(|pod| PodView { phase: PodPhase::Pending, ..pod });
        pass.step = Step::Wait(WaitingOn::Cluster);
        pass
    }

    #[test]
    fn pending_pod_is_reported_in_words_of_scheduler_at_once() {
        let pass = without_node(1, Some("0/3 nodes are available: 3 Insufficient memory."));
        let status = pass.status();
        for of_type in ["Ready", "Updating"] {
            let (reason, message) = condition(&status, of_type).unwrap();
            assert_eq!(reason, "WaitingForNode");
            let words =
                "it has had no node since 2026-11-22T11:59:00Z (0/3 nodes are available: 3 Insufficient memory).";
            assert!(message.contains(words), "{message}");
        }
        assert_eq!(pass.event_texts("WaitingForNode"), Vec::<String>::new());
        assert!(!is_overdue(&pass.report()));
    }

    #[test]
    fn pending_pod_has_event_after_five_minutes_without_changing_words() {
        let pass = without_node(5, Some("0/3 nodes are available"));
        let texts = pass.event_texts("WaitingForNode");
        assert!(texts.len() == 1 && !texts[0].contains("0/3"), "{texts:?}");
        assert!(is_overdue(&pass.report()));
        let now = pass.report().pass.now;
        assert_eq!(reported_at(&pass.plan, &pass.observed, now), None);
        let early = without_node(2, None);
        assert_eq!(reported_at(&early.plan, &early.observed, now), Some(now + SignedDuration::from_mins(3)));
    }

    #[test]
    fn pending_pod_without_problem_is_starting_at_first() {
        let mut pass = without_node(4, None);
        let now = pass.report().pass.now;
        let mut pod = pass.observed.pod.take().unwrap();
        pod.status.as_mut().unwrap().conditions = None;
        pod.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        pass.observed.pod = Some(pod);
        assert_eq!(condition(&pass.status(), "Ready"), Some(("Starting", "The server is starting.")));
    }

    #[test]
    fn pending_pod_of_other_goal_names_request() {
        let mut pass = without_node(6, None);
        assert!(!reason_and_message(&pass.report()).1.contains("apply-now"));
        pass.plan.goal.revision = Revision(9);
        assert!(reason_and_message(&pass.report()).1.ends_with(APPLY_NOW_HINT));
    }
}
