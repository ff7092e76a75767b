//! Edge (writes). Wraps one server of a test: its object, its pod, and the fake server inside.

use std::collections::BTreeMap;
use std::time::Duration;

use crds::PaperMCServer;
use crds::paper_mc_server::{ObservedStop, PluginStateKind};
use fixtures::fake_paper::{CONTROL_PORT, send_control};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::eventually::{SHORT_LIMIT, START_LIMIT, UPDATE_LIMIT, wait_until};
use super::kubectl::{expect_stdout, try_run};
use super::observer::ServerObserver;
use super::test_env::{TestEnv, uid_of};

/// A server by its name.
pub(super) struct Server<'w> {
    pub(super) env: &'w TestEnv,
    pub(super) name: String,
}

/// The state that a rollback or restart must reproduce.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VersionSet {
    /// From the pod's template, without the fields that only name its StatefulSet.
    pub(super) image: String,
    pub(super) lock: String,
    pub(super) memory: Option<String>,
    /// The versions by name of the enabled plugins, as the server reports them.
    pub(super) plugins: BTreeMap<String, String>,
    /// The Paper version, as the server reports it.
    pub(super) paper: String,
}

impl<'w> Server<'w> {
    pub(super) fn new(env: &'w TestEnv, name: &str) -> Self {
        Self { env, name: name.to_owned() }
    }

    pub(super) async fn object(&self) -> PaperMCServer {
        self.env.api().get(&self.name).await.unwrap()
    }

    pub(super) async fn stateful_set(&self) -> StatefulSet {
        self.env.api().get(&self.name).await.unwrap()
    }

    /// The pod, if there is one that is not being deleted.
    pub(super) async fn pod(&self) -> Option<Pod> {
        let pod = self.env.api::<Pod>().get_opt(&self.pod_name()).await.unwrap()?;
        pod.metadata.deletion_timestamp.is_none().then_some(pod)
    }

    /// Waits until its pod is deleted completely.
    pub(super) async fn wait_until_pod_is_deleted(&self) {
        let api = self.env.api::<Pod>();
        wait_until("the pod is gone", SHORT_LIMIT + Duration::from_secs(30), async || {
            match api.get_opt(&self.pod_name()).await.unwrap() {
                None => Ok(()),
                Some(pod) => Err(format!("{:?}", pod.status.and_then(|status| status.phase))),
            }
        })
        .await;
    }

    pub(super) fn pod_name(&self) -> String {
        format!("{}-0", self.name)
    }

    /// Changes fields of the spec.
    pub(super) async fn patch_spec(&self, spec: Value) {
        let api = self.env.api::<PaperMCServer>();
        api.patch(&self.name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.unwrap();
    }

    /// Moves the window.
    pub(super) async fn set_window(&self, cron: &str) {
        self.patch_spec(json!({"updateSchedule": {"maintenanceWindow": {"cron": cron}}})).await;
    }

    /// A condition, if it is about the current spec.
    pub(super) async fn condition(&self, condition_type: &str) -> Option<Condition> {
        let object = self.object().await;
        let generation = object.metadata.generation;
        let conditions = object.status.unwrap_or_default().conditions;
        conditions
            .into_iter()
            .find(|condition| condition.type_ == condition_type && condition.observed_generation == generation)
    }

    /// Waits until a condition has this status and reason, and returns its message.
    pub(super) async fn wait_for_condition(&self, condition_type: &str, status: &str, reason: &str) -> String {
        wait_until(
            &format!("condition {condition_type} of {} is {status} ({reason})", self.name),
            START_LIMIT,
            async || match self.condition(condition_type).await {
                Some(found) if found.status == status && found.reason == reason => Ok(found.message),
                other => Err(format!("{other:?}")),
            },
        )
        .await
    }

    /// Waits until a stop without a confirmed save is reported: first by an Event, and then in the status.
    pub(super) async fn wait_for_unsaved_stop(&self) -> (String, ObservedStop) {
        wait_until("an Event StoppedUnsaved, and the same in the status", START_LIMIT, async || {
            let note = self.env.event_notes(&self.name, "StoppedUnsaved").await.pop();
            let last = self.object().await.status.and_then(|status| status.last_stop);
            match (note, last) {
                (Some(note), Some(last)) if note.contains(&last.why) => Ok((note, last)),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    }

    /// Waits until the server is up to date and stable, with no update in progress. The server itself must report the
    /// same.
    pub(super) async fn wait_until_stable(&self) {
        wait_until(&format!("{} is stable", self.name), START_LIMIT, async || {
            let object = self.object().await;
            let generation = object.metadata.generation;
            let status = object.status.unwrap_or_default();
            let has_status = |condition_type: &str, wanted: &str| {
                let found = status.conditions.iter().find(|condition| condition.type_ == condition_type);
                found.is_some_and(|found| found.status == wanted && found.observed_generation == generation)
            };
            let at_rest = status.conditions.iter().any(|c| c.type_ == "Updating" && c.reason == "Stable");
            let all = status.plugins.iter().all(|plugin| plugin.state == PluginStateKind::Installed);
            if has_status("Ready", "True") && has_status("UpdateAvailable", "False") && at_rest && all {
                return Ok(());
            }
            Err(format_conditions(&status.conditions))
        })
        .await;
    }

    /// Waits until a restart that the observer saw is verified: players were warned, the world was saved, and then the
    /// server stopped.
    pub(super) async fn wait_until_restarted(&self, observer: &ServerObserver) {
        wait_until("the restart is verified", UPDATE_LIMIT, async || {
            let restarted = self.env.event_notes(&self.name, "Restarted").await;
            if restarted.is_empty() { Err(observer.console()) } else { Ok(()) }
        })
        .await;
        observer.assert_order(&[
            (0, "shown: "),
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (0, "Closing Server"),
            (1, "Done ("),
        ]);
    }

    /// Waits until a pod other than `before` is ready, and returns it.
    pub(super) async fn wait_for_new_pod(&self, before: &Pod) -> Pod {
        wait_until(&format!("another pod of {} is ready", self.name), START_LIMIT, async || {
            let pod = self.pod().await.ok_or("there is no pod")?;
            if uid_of(&pod) == uid_of(before) {
                return Err("the old pod still exists".to_owned());
            }
            if is_ready(&pod) { Ok(pod) } else { Err(format!("{:?}", pod.status.map(|status| status.phase))) }
        })
        .await
    }

    /// Waits until an update with all of these changes is planned and its files are on the volume. The operator may
    /// read the upstreams while the day changes, and then plans less at first.
    pub(super) async fn wait_until_planned(&self, all: &[&str]) {
        wait_until(&format!("{all:?} is planned and staged for {}", self.name), SHORT_LIMIT, async || {
            let status = self.object().await.status.unwrap_or_default();
            match status.available_update {
                Some(update) if update.staged && all.iter().all(|one| update.summary.contains(one)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Waits until this is the blocker of a newer version.
    pub(super) async fn wait_for_blocker(&self, wanted: &str) {
        wait_until(&format!("{wanted} blocks a newer Minecraft"), SHORT_LIMIT, async || {
            let blocker = self.object().await.status.unwrap_or_default().held_by.unwrap_or_default();
            if blocker == wanted { Ok(()) } else { Err(blocker) }
        })
        .await;
    }

    /// Sends a command to the fake server.
    pub(super) async fn send_command(&self, line: &str) -> String {
        let pod = self.pod().await.expect("the server has a pod");
        let address = pod.status.and_then(|status| status.pod_ip).expect("the pod has an address");
        let answer = send_control(&format!("{address}:{CONTROL_PORT}"), line).await.unwrap();
        assert!(!answer.starts_with("error: "), "{line}: {answer}");
        answer
    }

    /// Sends a command to the fake server, if it can be reached.
    pub(super) async fn try_send_command(&self, line: &str) -> bool {
        let address = async || self.pod().await?.status?.pod_ip;
        let Some(address) = address().await else { return false };
        send_control(&format!("{address}:{CONTROL_PORT}"), line)
            .await
            .is_ok_and(|answer| !answer.starts_with("error: "))
    }

    /// Whether the fake server is reachable and reports that it runs.
    pub(super) async fn is_running(&self) -> bool {
        let address = async || self.pod().await?.status?.pod_ip;
        let Some(address) = address().await else { return false };
        let reply = send_control(&format!("{address}:{CONTROL_PORT}"), "status").await.unwrap_or_default();
        serde_json::from_str::<Value>(&reply).is_ok_and(|state| state["state"] == "running")
    }

    /// The fake server's report of its own state.
    pub(super) async fn reported_state(&self) -> Value {
        serde_json::from_str(&self.send_command("status").await).unwrap()
    }

    /// The number of blocks in the world on the disk.
    pub(super) async fn saved_blocks(&self) -> u64 {
        self.reported_state().await["savedBlocks"].as_u64().unwrap()
    }

    /// Seven players join.
    pub(super) async fn join_seven_players(&self) {
        for number in 1..=7 {
            self.send_command(&format!("join Player{number:02}")).await;
        }
    }

    /// Seven players join, and the operator has counted them.
    pub(super) async fn join_seven_counted_players(&self) {
        self.join_seven_players().await;
        self.wait_for_player_count(Some(7)).await;
    }

    /// Waits until the operator has this number of players, or no number. The agent counts every few seconds. The
    /// operator never writes the number alone, so the test changes the spec.
    pub(super) async fn wait_for_player_count(&self, players: Option<u32>) {
        let mut minutes = 0..;
        wait_until(&format!("the player count is {players:?}"), SHORT_LIMIT, async || {
            let deadline = format!("{}m", minutes.next().unwrap_or(0) + 60);
            self.patch_spec(json!({"players": {"deadline": deadline}})).await;
            let counted = self.object().await.status.and_then(|status| status.players);
            if counted == players { Ok(()) } else { Err(format!("{counted:?}")) }
        })
        .await;
    }

    /// The running version set.
    pub(super) async fn version_set(&self) -> VersionSet {
        let pod = self.pod().await.expect("the server has a pod");
        let state = self.reported_state().await;
        let plugins = state["plugins"].as_object().unwrap().iter().filter(|(_, plugin)| plugin["enabled"] == true);
        let lock = pod.annotations().get("nightshift.dev/lock-digest").cloned().unwrap_or_default();
        let container = pod.spec.unwrap().containers.into_iter().find(|container| container.name == "papermc").unwrap();
        let limits = container.resources.and_then(|resources| resources.limits).unwrap_or_default();
        VersionSet {
            image: container.image.unwrap_or_default(),
            lock,
            memory: limits.get("memory").map(|quantity| quantity.0.clone()),
            plugins: plugins
                .map(|(name, plugin)| (name.clone(), plugin["version"].as_str().unwrap().to_owned()))
                .collect(),
            paper: format!("{}-{}", state["minecraft"].as_str().unwrap(), state["build"]),
        }
    }

    /// Runs a command in the server's container. A kubelet that has just restarted finds no pods for a moment, and then
    /// the command has not run.
    pub(super) async fn shell(&self, script: &str) -> String {
        let pod = self.pod_name();
        let arguments = ["--namespace", &self.env.namespace, "exec", &pod, "-c", "papermc", "--", "sh", "-c", script];
        wait_until(&format!("the kubelet knows {pod}"), SHORT_LIMIT, async || {
            let output = try_run("kubectl", &arguments, "").await;
            let error = String::from_utf8_lossy(&output.stderr);
            if error.contains("unable to upgrade connection: pod does not exist") {
                return Err(error.into_owned());
            }
            Ok(expect_stdout("kubectl", &arguments, output))
        })
        .await
    }

    /// Writes a file as a user would copy it. Its content is an argument, because the standard input of
    /// `kubectl exec -i` does not always arrive. On a busy machine 1 of 60 files of 700 bytes was empty.
    pub(super) async fn put_file(&self, path: &str, content: &[u8]) {
        let escaped = content.iter().fold(String::new(), |text, byte| format!("{text}\\{byte:03o}"));
        self.shell(&format!("mkdir -p \"$(dirname '{path}')\" && printf '{escaped}' > '{path}'")).await;
    }

    /// The log of a container so far.
    pub(super) async fn log(&self, container: &str) -> String {
        self.env.kubectl(&["logs", &self.pod_name(), "-c", container], "").await
    }
}

/// Conditions for a message.
pub(super) fn format_conditions(conditions: &[Condition]) -> String {
    let parts = conditions.iter().map(|c| format!("{}={} ({}: {})", c.type_, c.status, c.reason, c.message));
    parts.collect::<Vec<_>>().join("; ")
}

/// Whether a pod's condition Ready is True.
pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
