//! Pure. From when on a proof is patient: from when the server of its pod could first be asked.
//!
//! What lies before that is no fault of the set, and may take a day: an image that is pulled, a copy of the worlds, and their move by the server
//! itself. Only what the kubelet says of the pod counts here, so the death of an operator moves nothing; and what moves with a container that ends
//! again and again, the agent's among them, is counted.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

use super::{ENDS_AFTER, ENDS_WITHIN};
use crate::server::in_game_stop::or_last_stop;
use crate::server::observe::{last_end, prepare_of, server_of};
use crate::server::render::pod::AGENT_CONTAINER;

/// No first answer comes later after the start of its pod: 20 minutes for files and images and two hours for a copy, and then the 24 hours
/// that the start-up probe waits. A node that begins the pod anew again and again is not waited for without end.
const ANSWERS_WITHIN: SignedDuration = SignedDuration::from_hours(27);

/// When the server of this pod could first be asked, or when somebody stopped it in its place, by the clock of its node. None: the pod is on no
/// node.
pub(crate) fn asked_from(pod: &Pod) -> Option<Timestamp> {
    let made = pod.status.as_ref()?.start_time.as_ref()?.0;
    let latest = made + ANSWERS_WITHIN;
    let prepared = prepared_at(pod).map_or(made, |at| at.clamp(made, latest));
    let answered = answered_at(pod, prepared).map_or(prepared, |at| at.clamp(prepared, latest));
    Some(answered.max(or_last_stop(pod, prepared)))
}

/// When all was done that comes before the server's own container: its image is all that can be missing.
fn prepared_at(pod: &Pod) -> Option<Timestamp> {
    let initialized = condition(pod, "Initialized").filter(|condition| condition.status == "True").and_then(turned_at);
    // A container that is gone from its node tells of no end any more; and one that a node ran once more has ended later.
    let ended = prepare_of(pod)
        .and_then(last_end)
        .filter(|ended| ended.exit_code == 0)
        .and_then(|ended| ended.finished_at.as_ref());
    initialized.max(ended.map(|at| at.0))
}

/// When its server answered first, as far as the kubelet shows that. A process that was started again shows it only where it began so late that a
/// set which had not stayed up would have failed by then: the answer before it came late, too. One that has ended as often as a set may shows
/// nothing.
fn answered_at(pod: &Pod, prepared: Timestamp) -> Option<Timestamp> {
    let server = server_of(pod)?;
    if ends_of(server) >= ENDS_AFTER {
        return None;
    }
    // It turns once more whenever a container falls ill, and people may have their own in the pod.
    let is_calm = server.started == Some(true) && restarts_beside(pod) < ENDS_AFTER;
    let ready = condition(pod, "ContainersReady").filter(|_| is_calm).and_then(turned_at);
    let shown = began_at(server).max(ready)?;
    (server.restart_count == 0 || prepared + ENDS_WITHIN < shown).then_some(shown)
}

/// When the newest process of the server began.
fn began_at(server: &ContainerStatus) -> Option<Timestamp> {
    let running = server.state.as_ref().and_then(|state| state.running.as_ref());
    let at = match running {
        Some(running) => running.started_at.as_ref(),
        None => last_end(server)?.started_at.as_ref(),
    };
    at.map(|at| at.0)
}

fn ends_of(container: &ContainerStatus) -> u32 {
    let runs = container.state.as_ref().is_some_and(|state| state.running.is_some());
    container.restart_count.unsigned_abs() + u32::from(!runs && last_end(container).is_some())
}

/// How often containers beside the server's were started again: the agent's, and people's own.
fn restarts_beside(pod: &Pod) -> u32 {
    let Some(status) = pod.status.as_ref() else { return 0 };
    let init = status.init_container_statuses.iter().flatten();
    let agent = init.filter(|container| container.name == AGENT_CONTAINER);
    let server = server_of(pod).map(|server| server.name.as_str());
    let others = status.container_statuses.iter().flatten().filter(|other| Some(other.name.as_str()) != server);
    agent.chain(others).map(|container| container.restart_count.unsigned_abs()).sum()
}

fn condition<'a>(pod: &'a Pod, name: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == name)
}

fn turned_at(condition: &PodCondition) -> Option<Timestamp> {
    condition.last_transition_time.as_ref().map(|at| at.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(60 * minute).unwrap()
    }

    fn turned(name: &str, status: bool, minute: i64) -> Value {
        let status = if status { "True" } else { "False" };
        json!({"type": name, "status": status, "lastTransitionTime": at(minute).to_string()})
    }

    fn container(name: &str, restarts: u32, state: &Value) -> Value {
        json!({
            "name": name, "image": "", "imageID": "", "ready": false, "restartCount": restarts, "started": true,
            "state": state,
        })
    }

    fn since(minute: i64) -> Value {
        json!({"running": {"startedAt": at(minute).to_string()}})
    }

    fn ended(exit_code: i32, minute: i64) -> Value {
        json!({"terminated": {"exitCode": exit_code, "finishedAt": at(minute).to_string()}})
    }

    /// The minute from which on the proof of a pod is patient that started at minute 0.
    fn from(conditions: &[Value], init: &[Value], containers: &[Value]) -> i64 {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "lobby-0"},
            "status": {
                "startTime": at(0).to_string(), "conditions": conditions,
                "initContainerStatuses": init, "containerStatuses": containers,
            },
        }))
        .unwrap();
        asked_from(&pod).unwrap().as_second() / 60
    }

    #[test]
    fn what_is_done_before_the_server_starts_is_told_by_the_pod_or_by_its_init_container() {
        let prepare = |state: &Value| [container("prepare", 0, state)];
        assert_eq!(from(&[turned("Initialized", true, 16)], &[], &[]), 16);
        assert_eq!(from(&[turned("Initialized", false, 1)], &prepare(&ended(0, 17)), &[]), 17);
        assert_eq!(from(&[turned("Initialized", true, 16)], &prepare(&ended(0, 40)), &[]), 40, "the node ran it anew");
        assert_eq!(from(&[turned("Initialized", false, 1)], &prepare(&ended(1, 17)), &[]), 0, "it is tried again");
        assert_eq!(from(&[turned("Initialized", true, -9)], &[], &[]), 0, "the clock of the node was put back");
    }

    #[test]
    fn the_first_answer_of_the_first_process_is_the_last_of_what_came_before() {
        let prepared = turned("Initialized", true, 2);
        let first = [container("papermc", 0, &since(3))];
        assert_eq!(from(std::slice::from_ref(&prepared), &[], &first), 3, "an image was pulled");
        let moved = [prepared, turned("ContainersReady", true, 600)];
        assert_eq!(from(&moved, &[], &first), 600, "its worlds were moved");
        let starts = json!({
            "name": "papermc", "image": "", "imageID": "", "ready": false, "restartCount": 0, "started": false,
            "state": since(3),
        });
        assert_eq!(from(&moved, &[], &[starts]), 3, "it has not answered");
    }

    #[test]
    fn what_falls_ill_again_and_again_beside_the_server_moves_no_proof() {
        let conditions = [turned("Initialized", true, 2), turned("ContainersReady", false, 600)];
        let server = container("papermc", 0, &since(3));
        let of = |agent: u32, map: u32| {
            let containers = [server.clone(), container("map", map, &since(590))];
            from(&conditions, &[container("agent", agent, &since(590))], &containers)
        };
        assert_eq!((of(2, 2), of(5, 0), of(0, 5)), (600, 3, 3));
    }

    #[test]
    fn a_node_that_begins_a_pod_anew_again_and_again_is_not_waited_for_without_end() {
        let late = |name| turned(name, true, 60 * 40);
        let server = [container("papermc", 0, &since(60 * 40))];
        assert_eq!(from(&[late("Initialized"), late("ContainersReady")], &[], &server), 60 * 27);
    }
}
