//! Pure. Detects a crash loop: a stable server whose process exits with an error repeatedly, or hangs and is restarted. The kubelet restarts an
//! exited process each time, and nothing can stop the kubelet from that. This module counts the crashes. `constraints/crash_loop.rs` blocks
//! automatic updates meanwhile and, with `spec.onCrashLoop: Stop`, decides the stop. [`stopped`] reads that stop back.

use crds::paper_mc_server::CrashStatus;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::observe::{last_termination, server_status};

pub(crate) mod stopped;

/// Type of the condition. It is absent while the process does not crash.
pub(crate) const CRASH_LOOP: &str = "CrashLoop";
/// Number of crashes within [`CRASH_WINDOW`] that count as a loop.
const LOOP_THRESHOLD: usize = 3;
/// The kubelet waits 5 minutes at most between two starts, so a permanent loop has at least ten crashes in this time.
pub(crate) const CRASH_WINDOW: SignedDuration = SignedDuration::from_hours(1);
/// Maximum number of crashes in the status.
const MAX_CRASHES: usize = 10;

/// The crashes of the server's process in the current pod within the last hour. The kubelet remembers only the last one, so the earlier
/// ones come from the status. `None` if there was none.
pub(crate) fn next_crashes(before: Option<&CrashStatus>, pod: &Pod, now: Timestamp) -> Option<CrashStatus> {
    let uid = pod.metadata.uid.as_ref()?;
    let mut at: Vec<Timestamp> =
        before.filter(|before| before.pod == *uid).map(|crashes| crashes.at.clone()).unwrap_or_default();
    let ended = last_crash(pod).and_then(|ended| ended.finished_at.as_ref()).map(|ended| ended.0);
    at.extend(ended.filter(|ended| !at.contains(ended)));
    at.retain(|ended| now < *ended + CRASH_WINDOW);
    at.sort_unstable();
    at.drain(..at.len().saturating_sub(MAX_CRASHES));
    let hangs = remaining_hangs(before, now);
    (!at.is_empty() || !hangs.is_empty()).then(|| CrashStatus { pod: uid.clone(), at, hangs, stopped: None })
}

/// The same while no pod exists: the restarts for a hang count in every pod.
pub(crate) fn crashes_without_pod(before: Option<&CrashStatus>, now: Timestamp) -> Option<CrashStatus> {
    let (before, hangs) = (before?, remaining_hangs(before, now));
    (!hangs.is_empty()).then(|| CrashStatus { pod: before.pod.clone(), at: Vec::new(), hangs, stopped: None })
}

fn remaining_hangs(before: Option<&CrashStatus>, now: Timestamp) -> Vec<Timestamp> {
    let hangs = before.into_iter().flat_map(|before| &before.hangs).copied();
    hangs.filter(|since| now < *since + CRASH_WINDOW).collect()
}

/// The crashes after this pod was deleted because its server had hung since then.
pub(crate) fn with_hang(crashes: Option<CrashStatus>, pod: &str, since: Timestamp) -> CrashStatus {
    let none = || CrashStatus { pod: pod.to_owned(), at: Vec::new(), hangs: Vec::new(), stopped: None };
    let mut crashes = crashes.unwrap_or_else(none);
    if !crashes.hangs.contains(&since) {
        crashes.hangs.push(since);
    }
    crashes.hangs.drain(..crashes.hangs.len().saturating_sub(MAX_CRASHES));
    crashes
}

/// The last exit of the server's process, if it was a crash and the pod was not being deleted. After `/stop` the exit code is 0.
pub(crate) fn last_crash(pod: &Pod) -> Option<&ContainerStateTerminated> {
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    last_termination(server_status(pod)?).filter(|ended| ended.exit_code != 0)
}

/// Whether a server's process stays up, according to the kubelet. This needs no agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// It has not crashed, or has run for the settling time since.
    Running,
    /// It has been restarted, or is about to be. The result is known at `until`.
    Restarting { until: Timestamp },
    /// It has crashed and does not run. `times` is the total number of its exits.
    Exited { times: u32 },
}

/// The state of the process in this pod according to the kubelet.
pub(crate) fn process_state(pod: &Pod, settle: SignedDuration, now: Timestamp) -> ProcessState {
    let (Some(ended), Some(server)) = (last_crash(pod), server_status(pod)) else { return ProcessState::Running };
    let running = server.state.as_ref().and_then(|state| state.running.as_ref());
    let first = ended.finished_at.as_ref().filter(|_| server.restart_count == 0);
    let since = running.map_or(first, |running| running.started_at.as_ref());
    match since.map(|since| since.0 + settle) {
        Some(until) if now < until => ProcessState::Restarting { until },
        _ if running.is_some() => ProcessState::Running,
        _ => ProcessState::Exited { times: server.restart_count.unsigned_abs() + 1 },
    }
}

/// For example `exit code 137 (OOMKilled)`.
pub(crate) fn format_exit(ended: &ContainerStateTerminated) -> String {
    let why = ended.reason.as_deref().filter(|reason| *reason != "Error");
    why.map_or_else(|| format!("exit code {}", ended.exit_code), |why| format!("exit code {} ({why})", ended.exit_code))
}

/// Whether the server is in a crash loop. A loop ends after an hour without a crash. Otherwise a server that crashes every half an hour
/// would enter and leave it in turns. A server that is stopped for crashes has no new ones, and remains in the loop until it is started
/// again.
pub(crate) fn is_crash_loop(crashes: &CrashStatus, before: &[Condition]) -> bool {
    crashes.stopped.is_some() || crashes.at.len() + crashes.hangs.len() >= LOOP_THRESHOLD || has_crash_loop(before)
}

/// Whether these conditions contain a crash loop.
fn has_crash_loop(conditions: &[Condition]) -> bool {
    conditions.iter().any(|condition| condition.type_ == CRASH_LOOP)
}

/// For example `The server's process exited 3 times`.
pub(crate) fn format_crashes(crashes: &CrashStatus) -> String {
    let exits = format!("The server's process exited {}", format_times(crashes.at.len()));
    let hangs = format_times(crashes.hangs.len());
    match (crashes.at.is_empty(), crashes.hangs.is_empty()) {
        (_, true) => exits,
        (true, false) => format!("The server hung and was restarted {hangs}"),
        (false, false) => format!("{exits}, and it hung and was restarted {hangs}"),
    }
}

/// For example `3 times`.
fn format_times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        count if count == MAX_CRASHES => format!("at least {count} times"),
        count => format!("{count} times"),
    }
}

/// The message about the crash loop with the possible actions. `None` if the server is in no loop.
pub(crate) fn loop_message(crashes: Option<&CrashStatus>, before: &[Condition], pod: Option<&Pod>) -> Option<String> {
    let crashes = crashes.filter(|crashes| is_crash_loop(crashes, before))?;
    let ends = format_crashes(crashes);
    let last = pod.and_then(last_crash).map(|ended| format!(", last with {}", format_exit(ended))).unwrap_or_default();
    let restarts = if crashes.hangs.is_empty() {
        "The kubelet restarts it each time, up to 5 minutes later."
    } else {
        "If it hangs again before an hour has passed, it is not restarted."
    };
    Some(format!(
        "{ends} within an hour{last}. See the log of container `papermc`, also with `--previous`. {restarts} No update \
        starts automatically meanwhile. Annotate nightshift.dev/apply-now to apply one, or roll back with \
        nightshift.dev/rollback-to."
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(60 * minute).unwrap()
    }

    fn pod(uid: &str, terminated: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby-0", "uid": uid},
            "status": {"containerStatuses": [{
                "name": "papermc", "ready": false, "restartCount": 1, "image": "", "imageID": "",
                "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": terminated},
            }]},
        }))
        .unwrap()
    }

    #[test]
    fn process_exit_is_read_from_kubelet_without_agent() {
        let settle = SignedDuration::from_mins(1);
        let with = |restarts: u32, state: &Value, exit: i32| {
            let mut pod = serde_json::to_value(pod("a", &crashed(10))).unwrap();
            let server = &mut pod["status"]["containerStatuses"][0];
            (server["restartCount"], server["state"]) = (json!(restarts), state.clone());
            server["lastState"]["terminated"]["exitCode"] = json!(exit);
            serde_json::from_value::<Pod>(pod).unwrap()
        };
        let (waits, runs) = (json!({"waiting": {}}), json!({"running": {"startedAt": at(14).to_string()}}));
        let just_before = |minute| at(minute) - SignedDuration::from_secs(1);
        assert_eq!(process_state(&with(3, &waits, 1), settle, at(14)), ProcessState::Exited { times: 4 });
        assert_eq!(
            process_state(&with(4, &runs, 1), settle, just_before(15)),
            ProcessState::Restarting { until: at(15) }
        );
        assert_eq!(process_state(&with(4, &runs, 1), settle, at(15)), ProcessState::Running);
        assert_eq!(
            process_state(&with(0, &waits, 1), settle, just_before(11)),
            ProcessState::Restarting { until: at(11) }
        );
        assert_eq!(
            process_state(&with(0, &waits, 1), settle, at(11)),
            ProcessState::Exited { times: 1 },
            "the kubelet has not restarted it"
        );
        assert_eq!(process_state(&with(3, &waits, 0), settle, at(14)), ProcessState::Running, "stopped, not crashed");
    }

    fn crashed(minute: i64) -> Value {
        json!({"exitCode": 1, "reason": "Error", "finishedAt": at(minute).to_string()})
    }

    /// The crashes of pod `a` in these minutes, each observed twice.
    fn crashes_after(minutes: &[i64]) -> Option<CrashStatus> {
        minutes.iter().fold(None, |before, minute| {
            let pod = pod("a", &crashed(*minute));
            let once = next_crashes(before.as_ref(), &pod, at(*minute));
            next_crashes(once.as_ref(), &pod, at(*minute))
        })
    }

    #[test]
    fn crash_loop_needs_three_crashes_within_an_hour() {
        let message_for = |minutes: &[i64]| loop_message(crashes_after(minutes).as_ref(), &[], None);
        assert_eq!(message_for(&[0, 10]), None);
        assert!(
            message_for(&[0, 10, 59]).unwrap().starts_with("The server's process exited 3 times within an hour. See")
        );
        assert_eq!(message_for(&[0, 10, 60]), None, "the first crash is an hour old");
        assert!(message_for(&(0..50).collect::<Vec<_>>()).unwrap().contains("at least 10 times"));
    }

    #[test]
    fn crash_loop_ends_after_an_hour_without_exit() {
        let message_for =
            |before: &[Condition], minutes: &[i64]| loop_message(crashes_after(minutes).as_ref(), before, None);
        // A memory leak that ends the process every 25 minutes.
        assert_eq!(message_for(&[], &[0, 25, 65]), None);
        let before: [Condition; 1] = [serde_json::from_value(json!({
            "type": CRASH_LOOP, "status": "True", "reason": "", "message": "", "lastTransitionTime": at(50).to_string(),
        }))
        .unwrap()];
        assert!(message_for(&before, &[0, 25, 65]).unwrap().contains("exited 2 times within"));
        assert!(message_for(&before, &[65]).unwrap().contains("exited once within"));
        assert_eq!(message_for(&before, &[]), None);
    }

    #[test]
    fn crash_count_ignores_manual_stops_and_earlier_pods() {
        let before = crashes_after(&[0, 1, 2]).unwrap();
        let next = |pod: &Pod| next_crashes(Some(&before), pod, at(3)).map(|crashes| crashes.at.len());
        assert_eq!(next(&pod("a", &crashed(3))), Some(4));
        let stopped = json!({"exitCode": 0, "finishedAt": at(3).to_string()});
        assert_eq!(next(&pod("a", &stopped)), Some(3), "`/stop` is no crash");
        let mut deleted = serde_json::to_value(pod("a", &crashed(3))).unwrap();
        deleted["metadata"]["deletionTimestamp"] = json!(at(3).to_string());
        assert_eq!(next(&serde_json::from_value(deleted).unwrap()), Some(3), "the pod is being deleted");
        assert_eq!(next(&pod("b", &crashed(3))), Some(1));
        assert_eq!(next_crashes(Some(&before), &pod("a", &stopped), at(62)), None, "older crashes do not count");
    }

    #[test]
    fn crash_loop_message_gives_last_exit() {
        let killed = json!({"exitCode": 137, "reason": "OOMKilled", "finishedAt": at(3).to_string()});
        let message = loop_message(crashes_after(&[0, 1, 2]).as_ref(), &[], Some(&pod("a", &killed))).unwrap();
        assert!(message.contains("3 times within an hour, last with exit code 137 (OOMKilled). See"), "{message}");
    }

    #[test]
    fn restarts_for_hangs_count_in_every_pod_for_an_hour() {
        let twice = with_hang(Some(with_hang(None, "a", at(0))), "a", at(10));
        assert_eq!(with_hang(Some(twice.clone()), "a", at(10)), twice, "it is recorded once");
        let stopped = json!({"exitCode": 0, "finishedAt": at(3).to_string()});
        let moved = next_crashes(Some(&twice), &pod("b", &stopped), at(20)).unwrap();
        assert_eq!((moved.pod.as_str(), moved.hangs.len()), ("b", 2));
        assert_eq!(crashes_without_pod(Some(&twice), at(20)), Some(twice.clone()));
        assert_eq!(crashes_without_pod(Some(&twice), at(70)), None);
        let message = |crashes: &CrashStatus| loop_message(Some(crashes), &[], None);
        assert_eq!(message(&moved), None);
        let third = message(&with_hang(Some(twice.clone()), "a", at(30))).unwrap();
        assert!(third.starts_with("The server hung and was restarted 3 times within an hour. See"), "{third}");
        let crashed = next_crashes(Some(&twice), &pod("b", &crashed(20)), at(20)).unwrap();
        let both = message(&crashed).unwrap();
        assert!(both.starts_with("The server's process exited once, and it hung and was restarted 2 times"), "{both}");
    }
}
