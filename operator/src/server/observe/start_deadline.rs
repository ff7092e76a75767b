//! Pure. Determines the instant from which the start deadline counts. Time spent before the server's process could start does not count.

use crds::paper_mc_server::BeforeUpdate;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodSpec};

use super::{Observed, init_status, last_termination, mounts_volume, server_status};
use crate::server::template_variable::{has_variable, variable_of};
use validate::image_contract::{BACKUP_BEFORE, BACKUPS, PREPARE_CONTAINER, RESTORE_VOLUME};

/// Time for fetching the files, and for containers that run between `prepare` and the server, before the start deadline begins. The wait for a node, a
/// volume or an image is no part of it: see [`super::pending`].
const PREPARE_TIMEOUT: SignedDuration = SignedDuration::from_mins(20);

/// Additional time for a pod that can take a backup or restore one, once `prepare` is running. The agent is unreachable meanwhile, and an
/// aborted backup wastes the downtime. 100 GB in two hours are 14 MB a second, written and read back.
const BACKUP_TIMEOUT: SignedDuration = SignedDuration::from_hours(2);

/// After this many restarts of `prepare`, its first run is unknown, and the time counts from when a kubelet took the pod. Otherwise an init container
/// that ends again and again would never reach a deadline. It retries most errors without a restart.
const MAX_PREPARE_RESTARTS: i32 = 5;

/// Limit as a multiple of the estimate, where that is longer. A disk that does a third of its last throughput is rare, and a backup that
/// hangs still has an end.
const ESTIMATE_FACTOR: i32 = 3;

/// Whether `prepare` may take or restore a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackupTime {
    /// It does neither.
    None,
    /// It may. The estimate is from before the server was stopped.
    Possible { estimate: Option<SignedDuration> },
}

impl Observed {
    /// The time for a backup or restore before this pod's server starts. No backup is due before an update of the same Minecraft, unless every
    /// update has one, and such a set restores none.
    pub(super) fn backup_time(&self, pod: &Pod) -> BackupTime {
        let Some((stable, lock)) = self.facts.settled.zip(self.pod_lock.as_ref()) else {
            return BackupTime::Possible { estimate: self.backup_estimate() };
        };
        let backs_up_all = pod.spec.as_ref().and_then(|spec| variable_of(spec, PREPARE_CONTAINER, BACKUP_BEFORE))
            == Some(BeforeUpdate::Always.as_str());
        if self.runs_stable_files() || lock.world() > stable.world || backs_up_all {
            BackupTime::Possible { estimate: self.backup_estimate() }
        } else {
            BackupTime::None
        }
    }
}

/// Maximum time of a backup.
fn backup_timeout(time: BackupTime) -> SignedDuration {
    let BackupTime::Possible { estimate } = time else { return SignedDuration::ZERO };
    let longest = estimate.and_then(|estimate| estimate.checked_mul(ESTIMATE_FACTOR));
    longest.map_or(BACKUP_TIMEOUT, |longest| longest.max(BACKUP_TIMEOUT))
}

/// The instant from which the start of this pod's server counts. It is the start of its process. Without a running process it is the latest
/// instant at which the process could start, or the instant at which it ended. The kubelet starts an ended process again, and before its
/// end it may have converted its worlds for hours.
pub(super) fn start_counts_from(pod: &Pod, backup_time: BackupTime) -> Timestamp {
    let server = server_status(pod);
    let running = server.and_then(|server| server.state.as_ref()?.running.as_ref());
    if let Some(at) = running.and_then(|running| running.started_at.as_ref()) {
        return at.0;
    }
    let could_start = could_start_at(pod, backup_time);
    let ended = server.and_then(last_termination).and_then(|ended| ended.finished_at.as_ref());
    ended.map_or(could_start, |ended| ended.0.max(could_start))
}

/// The latest instant at which a server without a running process could start, by the work that precedes it.
fn could_start_at(pod: &Pod, backup_time: BackupTime) -> Timestamp {
    let status = pod.status.as_ref();
    let prepare = init_status(pod);
    if let Some(ended_at) = prepare.and_then(succeeded_at) {
        return ended_at + PREPARE_TIMEOUT;
    }
    let taken_at = status.and_then(|status| status.start_time.as_ref()).or(pod.metadata.creation_timestamp.as_ref());
    let taken_at = taken_at.map_or(Timestamp::UNIX_EPOCH, |at| at.0);
    let prepared_from = prepare.and_then(began_at).map_or(taken_at, |began_at| began_at.max(taken_at));
    let has_backups =
        |spec: &PodSpec| has_variable(spec, PREPARE_CONTAINER, BACKUPS) || mounts_volume(spec, RESTORE_VOLUME);
    if prepare.is_some_and(has_begun) && pod.spec.as_ref().is_some_and(has_backups) {
        return prepared_from + PREPARE_TIMEOUT + backup_timeout(backup_time);
    }
    prepared_from + PREPARE_TIMEOUT
}

/// When `prepare` began to run. The kubelet may have waited for its volumes or its image before.
fn began_at(prepare: &ContainerStatus) -> Option<Timestamp> {
    let running = prepare.state.as_ref().and_then(|state| state.running.as_ref());
    let began_at = match running {
        Some(running) => running.started_at.as_ref(),
        None => last_termination(prepare)?.started_at.as_ref(),
    };
    began_at.filter(|_| prepare.restart_count <= MAX_PREPARE_RESTARTS).map(|at| at.0)
}

fn succeeded_at(prepare: &ContainerStatus) -> Option<Timestamp> {
    let ended = prepare.state.as_ref()?.terminated.as_ref().filter(|ended| ended.exit_code == 0)?;
    ended.finished_at.as_ref().map(|at| at.0)
}

fn has_begun(prepare: &ContainerStatus) -> bool {
    let runs = prepare.state.as_ref().is_some_and(|state| state.running.is_some());
    runs || last_termination(prepare).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CREATED: &str = "2026-11-22T03:00:00Z";

    /// Minutes from the pod's creation to the instant from which the start counts.
    fn minutes(with_backups: bool, prepare: &Value, server: &Value) -> i64 {
        minutes_of(None, with_backups, prepare, server)
    }

    /// The same with an estimated time for the backup.
    fn minutes_of(estimate: Option<SignedDuration>, with_backups: bool, prepare: &Value, server: &Value) -> i64 {
        let env = if with_backups { json!([{"name": BACKUPS, "value": "/backups/lobby"}]) } else { json!([]) };
        let status = |name: &str, state: &Value| json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let pod = json!({
            "spec": {"containers": [], "initContainers": [{"name": PREPARE_CONTAINER, "env": env}]},
            "status": {
                "startTime": CREATED,
                "initContainerStatuses": [status("prepare", prepare)],
                "containerStatuses": [status("papermc", server)],
            },
        });
        let from = start_counts_from(&serde_json::from_value(pod).unwrap(), BackupTime::Possible { estimate });
        from.duration_since(CREATED.parse().unwrap()).as_mins()
    }

    fn waiting(reason: &str) -> Value {
        json!({"waiting": {"reason": reason}})
    }

    fn ended(code: i32) -> Value {
        json!({"terminated": {"exitCode": code, "finishedAt": "2026-11-22T03:07:00Z"}})
    }

    #[test]
    fn start_deadline_counts_from_process_start() {
        let running = json!({"running": {"startedAt": "2026-11-22T03:09:00Z"}});
        assert_eq!(minutes(true, &ended(0), &running), 9);
    }

    #[test]
    fn start_deadline_is_extended_after_crash_following_long_migration() {
        let crashed = |at: &str| json!({"terminated": {"exitCode": 1, "finishedAt": at}});
        assert_eq!(minutes(true, &ended(0), &crashed("2026-11-22T09:00:00Z")), 360);
        assert_eq!(minutes(true, &ended(0), &crashed("2026-11-22T03:10:00Z")), 7 + 20, "the usual minimum applies");
    }

    #[test]
    fn start_deadline_grants_backup_time_while_backup_can_run() {
        let (copying, waits) = (json!({"running": {"startedAt": CREATED}}), waiting("PodInitializing"));
        assert_eq!((minutes(true, &copying, &waits), minutes(false, &copying, &waits)), (140, 20));
        assert_eq!(minutes(true, &ended(1), &waits), 140, "`prepare` is retried");
        assert_eq!(minutes(true, &ended(0), &waits), 7 + 20, "`prepare` is done, only an image may be missing");
        assert_eq!(minutes(true, &waiting("PodInitializing"), &waits), 20, "`prepare` has not started");
    }

    #[test]
    fn start_deadline_grants_three_times_backup_estimate() {
        let (copying, waits) = (json!({"running": {"startedAt": CREATED}}), waiting("PodInitializing"));
        let of = |hours: i64| minutes_of(Some(SignedDuration::from_hours(hours)), true, &copying, &waits);
        assert_eq!([of(0), of(4)], [20 + 120, 20 + 12 * 60]);
        let pod_without = minutes_of(Some(SignedDuration::from_hours(4)), false, &copying, &waits);
        assert_eq!(pod_without, 20, "the pod can take no backup");
        let done = minutes_of(Some(SignedDuration::from_hours(4)), true, &ended(0), &waits);
        assert_eq!(done, 7 + 20, "the backup is done");
    }

    #[test]
    fn start_deadline_counts_from_first_run_of_prepare() {
        let began = json!({"startedAt": "2026-11-22T05:00:00Z"});
        let ended = json!({"exitCode": 1, "startedAt": "2026-11-22T05:00:00Z", "finishedAt": "2026-11-22T05:01:00Z"});
        let (runs, fails) = (json!({"running": began}), json!({"terminated": ended}));
        let waits = waiting("PodInitializing");
        assert_eq!(minutes(false, &runs, &waits), 120 + 20, "its volumes were mounted after two hours");
        assert_eq!(minutes(true, &fails, &waits), 120 + 20 + 120);
        let restarted = |count: i32| {
            let prepare = json!({"name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": count, "state": runs});
            began_at(&serde_json::from_value(prepare).unwrap()).is_some()
        };
        assert_eq!((restarted(5), restarted(6)), (true, false), "restarts do not delay the deadline for ever");
    }

    #[test]
    fn start_deadline_counts_from_pod_creation_without_status() {
        let pod = json!({"metadata": {"creationTimestamp": CREATED}, "spec": {"containers": []}});
        let from = start_counts_from(&serde_json::from_value(pod).unwrap(), BackupTime::None);
        assert_eq!(from.to_string(), "2026-11-22T03:20:00Z");
    }
}
