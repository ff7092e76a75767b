//! Pure. Determines from when the deadline of a verification counts: from when the pod's server could first be reached.
//!
//! The time before that is no fault of the set, and may be a day. It includes an image pull, a backup of the worlds, and their conversion
//! by the server. Only the pod status counts here, so a restart of the operator changes nothing. Containers that exit repeatedly could
//! delay the deadline, the agent's included, so their exits are counted.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

use super::{MAX_EXITS, VERIFICATION_TIMEOUT};
use crate::server::in_game_stop::start_or_last_stop;
use crate::server::observe::{init_status, last_termination, pod_condition, server_status};
use validate::image_contract::AGENT_CONTAINER;

/// Maximum time from the start of the pod to the first answer. It is the sum of 20 minutes for files and images, two hours for a backup,
/// and the 24 hours of the start-up probe. It bounds the wait for a node that restarts the pod repeatedly.
const ANSWER_TIMEOUT: SignedDuration = SignedDuration::from_hours(27);

/// When the server of this pod could first be reached, or when a user stopped it in the game, by the clock of its node. `None` if the pod
/// is on no node.
pub(crate) fn reachable_from(pod: &Pod) -> Option<Timestamp> {
    let made = pod.status.as_ref()?.start_time.as_ref()?.0;
    let latest = made + ANSWER_TIMEOUT;
    let prepared = prepared_at(pod).map_or(made, |at| at.clamp(made, latest));
    let answered = answered_at(pod, prepared).map_or(prepared, |at| at.clamp(prepared, latest));
    Some(answered.max(start_or_last_stop(pod, prepared)))
}

/// When all work before the server's container was done. Only its image can be missing then.
fn prepared_at(pod: &Pod) -> Option<Timestamp> {
    let initialized =
        pod_condition(pod, "Initialized").filter(|condition| condition.status == "True").and_then(transitioned_at);
    // The status of a container that its node has removed shows no exit. A container that a node ran again has exited later.
    let ended = init_status(pod)
        .and_then(last_termination)
        .filter(|ended| ended.exit_code == 0)
        .and_then(|ended| ended.finished_at.as_ref());
    initialized.max(ended.map(|at| at.0))
}

/// When its server first answered, as far as the pod status shows it. A restarted process counts only if it started after the time in which
/// a set that does not stay up would have failed. Its first answer was late as well then. A process that has reached the limit of exits
/// does not count.
fn answered_at(pod: &Pod, prepared: Timestamp) -> Option<Timestamp> {
    let server = server_status(pod)?;
    if exit_count(server) >= MAX_EXITS {
        return None;
    }
    // The condition changes whenever a container becomes unready, and users may add containers to the pod.
    let is_calm = server.started == Some(true) && other_restarts(pod) < MAX_EXITS;
    let ready = pod_condition(pod, "ContainersReady").filter(|_| is_calm).and_then(transitioned_at);
    let shown = began_at(server).max(ready)?;
    (server.restart_count == 0 || prepared + VERIFICATION_TIMEOUT < shown).then_some(shown)
}

/// When the newest process of the server started.
fn began_at(server: &ContainerStatus) -> Option<Timestamp> {
    let running = server.state.as_ref().and_then(|state| state.running.as_ref());
    let at = match running {
        Some(running) => running.started_at.as_ref(),
        None => last_termination(server)?.started_at.as_ref(),
    };
    at.map(|at| at.0)
}

fn exit_count(container: &ContainerStatus) -> u32 {
    let runs = container.state.as_ref().is_some_and(|state| state.running.is_some());
    container.restart_count.unsigned_abs() + u32::from(!runs && last_termination(container).is_some())
}

/// How often the other containers were restarted: the agent's, and those that users added.
fn other_restarts(pod: &Pod) -> u32 {
    let Some(status) = pod.status.as_ref() else { return 0 };
    let init = status.init_container_statuses.iter().flatten();
    let agent = init.filter(|container| container.name == AGENT_CONTAINER);
    let server = server_status(pod).map(|server| server.name.as_str());
    let others = status.container_statuses.iter().flatten().filter(|other| Some(other.name.as_str()) != server);
    agent.chain(others).map(|container| container.restart_count.unsigned_abs()).sum()
}

fn transitioned_at(condition: &PodCondition) -> Option<Timestamp> {
    condition.last_transition_time.as_ref().map(|at| at.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(60 * minute).unwrap()
    }

    fn transitioned(name: &str, status: bool, minute: i64) -> Value {
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

    /// The minute from which the deadline counts for a pod that started at minute 0.
    fn from(conditions: &[Value], init: &[Value], containers: &[Value]) -> i64 {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "lobby-0"},
            "status": {
                "startTime": at(0).to_string(), "conditions": conditions,
                "initContainerStatuses": init, "containerStatuses": containers,
            },
        }))
        .unwrap();
        reachable_from(&pod).unwrap().as_second() / 60
    }

    #[test]
    fn verification_starts_when_init_container_ends() {
        let prepare = |state: &Value| [container("prepare", 0, state)];
        assert_eq!(from(&[transitioned("Initialized", true, 16)], &[], &[]), 16);
        assert_eq!(from(&[transitioned("Initialized", false, 1)], &prepare(&ended(0, 17)), &[]), 17);
        assert_eq!(
            from(&[transitioned("Initialized", true, 16)], &prepare(&ended(0, 40)), &[]),
            40,
            "the node ran `prepare` again"
        );
        assert_eq!(
            from(&[transitioned("Initialized", false, 1)], &prepare(&ended(1, 17)), &[]),
            0,
            "`prepare` is retried"
        );
        assert_eq!(from(&[transitioned("Initialized", true, -9)], &[], &[]), 0, "the clock of the node was set back");
    }

    #[test]
    fn verification_starts_at_first_answer_of_first_process() {
        let prepared = transitioned("Initialized", true, 2);
        let first = [container("papermc", 0, &since(3))];
        assert_eq!(from(std::slice::from_ref(&prepared), &[], &first), 3, "an image pull delayed the start");
        let moved = [prepared, transitioned("ContainersReady", true, 600)];
        assert_eq!(from(&moved, &[], &first), 600, "a migration delayed the answer");
        let starts = json!({
            "name": "papermc", "image": "", "imageID": "", "ready": false, "restartCount": 0, "started": false,
            "state": since(3),
        });
        assert_eq!(from(&moved, &[], &[starts]), 3, "the server has not answered yet");
    }

    #[test]
    fn verification_start_ignores_sidecar_restarts() {
        let conditions = [transitioned("Initialized", true, 2), transitioned("ContainersReady", false, 600)];
        let server = container("papermc", 0, &since(3));
        let of = |agent: u32, map: u32| {
            let containers = [server.clone(), container("map", map, &since(590))];
            from(&conditions, &[container("agent", agent, &since(590))], &containers)
        };
        assert_eq!((of(2, 2), of(5, 0), of(0, 5)), (600, 3, 3));
    }

    #[test]
    fn verification_start_is_capped_for_recreated_pod() {
        let late = |name| transitioned(name, true, 60 * 40);
        let server = [container("papermc", 0, &since(60 * 40))];
        assert_eq!(from(&[late("Initialized"), late("ContainersReady")], &[], &server), 60 * 27);
    }
}
