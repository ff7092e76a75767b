//! Edge (reads). Records every pod of a server, and every line of its console, in their order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::task::JoinHandle;

use super::eventually::{SHORT_LIMIT, wait_until};
use super::server::Server;
use super::test_env::uid_of;

/// One line of a console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The run of the server that wrote it: 0 is the one that ran when the observer started.
    pub(super) run: usize,
    /// When the container's runtime read it.
    pub(super) timestamp: Timestamp,
    pub(super) text: String,
}

#[derive(Default)]
struct Observation {
    /// UIDs of pods, in the order of their appearance.
    pods: Vec<String>,
    /// Container ids of server processes, in the same order.
    runs: Vec<String>,
    lines: Vec<Line>,
}

/// Watches until it is dropped.
pub(super) struct ServerObserver {
    observed: Arc<Mutex<Observation>>,
    task: JoinHandle<()>,
}

impl Drop for ServerObserver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(observed: &Mutex<Observation>) -> MutexGuard<'_, Observation> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerObserver {
    /// An observer that has the current pod, and all lines of its server so far.
    pub(super) async fn start(server: &Server<'_>) -> Self {
        let api = server.env.api::<Pod>();
        let observed = Arc::<Mutex<Observation>>::default();
        let task = tokio::spawn(watch(api, server.name.clone(), Arc::clone(&observed)));
        let started = Self { observed, task };
        wait_until("the observer reads the console", SHORT_LIMIT, async || {
            if lock(&started.observed).lines.is_empty() { Err("no line yet".to_owned()) } else { Ok(()) }
        })
        .await;
        started
    }

    /// The number of pods so far.
    pub(super) fn pods(&self) -> usize {
        lock(&self.observed).pods.len()
    }

    /// The number of server processes so far.
    pub(super) fn runs(&self) -> usize {
        lock(&self.observed).runs.len()
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        lock(&self.observed).lines.clone()
    }

    /// The whole console, for messages.
    pub(super) fn console(&self) -> String {
        self.lines().iter().map(|line| format!("{}| {}\n", line.run, line.text)).collect::<Vec<String>>().concat()
    }

    /// Asserts that lines with these words appear in this order, each in the run given. Returns the text of each.
    pub(super) fn assert_order(&self, wanted: &[(usize, &str)]) -> Vec<String> {
        let lines = self.lines();
        let mut rest = lines.iter();
        let mut found = Vec::new();
        for (run, text) in wanted {
            let line = rest.find(|line| line.run == *run && line.text.contains(text));
            let line =
                line.unwrap_or_else(|| panic!("`{text}` of run {run} is missing or misplaced:\n{}", self.console()));
            found.push(line.text.clone());
        }
        found
    }

    /// The time from the first line with the words of `from` to the first with those of `to`.
    pub(super) fn time_between(&self, from: (usize, &str), to: (usize, &str)) -> SignedDuration {
        let lines = self.lines();
        let time_of = |(run, text): (usize, &str)| {
            let line = lines.iter().find(|line| line.run == run && line.text.contains(text));
            line.unwrap_or_else(|| panic!("`{text}` of run {run} is missing:\n{}", self.console())).timestamp
        };
        time_of(to).duration_since(time_of(from))
    }

    /// The time from the last line of a run to the first of the next.
    pub(super) fn gap(&self, run: usize) -> SignedDuration {
        let lines = self.lines();
        let times_of = |run: usize| lines.iter().filter(move |line| line.run == run).map(|line| line.timestamp);
        let (last, first) = (times_of(run).max(), times_of(run + 1).min());
        last.zip(first).map(|(last, first)| first.duration_since(last)).expect("both runs have lines")
    }
}

async fn watch(api: Api<Pod>, server: String, observed: Arc<Mutex<Observation>>) {
    // Excludes the pod that pulls images.
    let labels = format!("app.kubernetes.io/name=papermc,nightshift.dev/server={server}");
    let selector = watcher::Config::default().labels(&labels);
    let mut pods = Box::pin(watcher(api.clone(), selector).default_backoff().applied_objects());
    while let Some(next) = pods.next().await {
        let Ok(pod) = next else { continue };
        let uid = uid_of(&pod);
        let running = running_server(&pod);
        let run = {
            let mut observed = lock(&observed);
            if !observed.pods.contains(&uid) {
                observed.pods.push(uid);
            }
            let Some(container) = running.filter(|id| !observed.runs.contains(id)) else { continue };
            observed.runs.push(container);
            observed.runs.len() - 1
        };
        // The task ends with the container. Its lines are kept.
        tokio::spawn(follow(api.clone(), pod, run, Arc::clone(&observed)));
    }
}

fn running_server(pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let server = statuses.iter().find(|container| container.name == "papermc")?;
    server.state.as_ref()?.running.as_ref()?;
    server.container_id.clone()
}

async fn follow(api: Api<Pod>, pod: Pod, run: usize, observed: Arc<Mutex<Observation>>) {
    let wanted =
        LogParams { container: Some("papermc".to_owned()), follow: true, timestamps: true, ..LogParams::default() };
    let name = pod.metadata.name.unwrap_or_default();
    let Ok(stream) = api.log_stream(&name, &wanted).await else { return };
    let mut lines = stream.lines();
    while let Ok(Some(text)) = lines.try_next().await {
        let Some((Ok(timestamp), text)) = text.split_once(' ').map(|(timestamp, text)| (timestamp.parse(), text))
        else {
            continue;
        };
        lock(&observed).lines.push(Line { run, timestamp, text: text.trim_end().to_owned() });
    }
}
