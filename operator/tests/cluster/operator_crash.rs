//! Edge (writes). Kills the operator at ten different moments of an update: it continues, and the server restarts once.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::Value;

use super::eventually::UPDATE_LIMIT;
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::node::kill_9;
use super::observer::ServerObserver;
use super::server::{Server, is_ready};
use super::test_env::{TestEnv, in_test_env, uid_of};
use super::update::wait_until_updated;

/// A moment of an update, at which a fault is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Planned,
    Staged,
    WindowOpens,
    Announced,
    Saved,
    TemplateWritten,
    PartitionLowered,
    PodStops,
    NewPodStarts,
    NewPodReady,
}

impl Moment {
    pub(super) const ALL: [Self; 10] = [
        Self::Planned,
        Self::Staged,
        Self::WindowOpens,
        Self::Announced,
        Self::Saved,
        Self::TemplateWritten,
        Self::PartitionLowered,
        Self::PodStops,
        Self::NewPodStarts,
        Self::NewPodReady,
    ];

    /// Whether the moment has come. `before` is the pod from before the update.
    pub(super) async fn is_reached(self, server: &Server<'_>, before: &Pod) -> bool {
        let api = server.env.api::<Pod>();
        let pod = async || api.get_opt(&server.pod_name()).await.unwrap();
        let is_new = |pod: &Pod| uid_of(pod) != uid_of(before);
        match self {
            Self::Planned => server.object().await.status.unwrap_or_default().available_update.is_some(),
            Self::Staged => {
                server.object().await.status.unwrap_or_default().available_update.is_some_and(|update| update.staged)
            }
            Self::WindowOpens => true,
            Self::Announced => has_fact(server, "announced").await,
            Self::Saved => has_fact(server, "saved").await,
            Self::TemplateWritten => {
                server.stateful_set().await.metadata.generation > Some(2) && !has_earlier_template(server, before).await
            }
            Self::PartitionLowered => partition(server).await == 0,
            Self::PodStops => pod().await.is_some_and(|pod| is_new(&pod) || pod.metadata.deletion_timestamp.is_some()),
            Self::NewPodStarts => pod().await.is_some_and(|pod| is_new(&pod)),
            Self::NewPodReady => pod().await.is_some_and(|pod| is_new(&pod) && is_ready(&pod)),
        }
    }
}

/// Whether the operator has recorded this on the StatefulSet.
async fn has_fact(server: &Server<'_>, name: &str) -> bool {
    let stateful_set = server.stateful_set().await;
    let facts = stateful_set.annotations().get("nightshift.dev/facts").cloned().unwrap_or_default();
    serde_json::from_str::<Value>(&facts).is_ok_and(|facts| !facts[name].is_null())
}

/// Whether the template is that of the earlier pod.
async fn has_earlier_template(server: &Server<'_>, before: &Pod) -> bool {
    let digest = |annotations: Option<&std::collections::BTreeMap<String, String>>| {
        annotations.and_then(|all| all.get("nightshift.dev/lock-digest").cloned())
    };
    let template = server.stateful_set().await.spec.unwrap().template.metadata.unwrap_or_default();
    digest(template.annotations.as_ref()) == digest(before.metadata.annotations.as_ref())
}

async fn partition(server: &Server<'_>) -> i32 {
    let strategy = server.stateful_set().await.spec.and_then(|spec| spec.update_strategy);
    strategy.and_then(|strategy| strategy.rolling_update?.partition).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_operator_completes_update_with_one_restart() {
    let at_once = 3; // servers that start at the same time on two cores slow each other down
    let all = stream::iter(Moment::ALL).map(|moment| async move {
        let name = format!("killed-{moment:?}").to_lowercase();
        let test = in_test_env(&name, BEFORE_RELEASE, async |env| update_with_kill_at(env, moment).await);
        // A failing test must not stop the others halfway, because each removes its own namespace.
        AssertUnwindSafe(test).catch_unwind().await.err().map(|_| moment)
    });
    let failed: Vec<Option<Moment>> = all.buffer_unordered(at_once).collect().await;
    let failed: Vec<Moment> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "the update did not survive a kill at {failed:?}; the reasons are above");
}

async fn update_with_kill_at(env: &TestEnv, moment: Moment) {
    env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
    let lobby = Server::new(env, LOBBY);
    lobby.wait_until_stable().await;
    let before = lobby.pod().await.unwrap();
    let observer = ServerObserver::start(&lobby).await;
    let operator = env.operator().await;
    env.upstream.set_now(AFTER_RELEASE).await;
    if matches!(moment, Moment::Planned | Moment::Staged) {
        wait_for_moment(&lobby, &before, moment).await;
        kill_9(&operator, "/operator");
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        lobby.set_window(ALWAYS_OPEN).await;
    } else {
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        lobby.set_window(ALWAYS_OPEN).await;
        wait_for_moment(&lobby, &before, moment).await;
        kill_9(&operator, "/operator");
    }
    wait_until_updated(env, &lobby).await;
    let version_set = lobby.version_set().await;
    assert_eq!(version_set.plugins["ViaVersion"], "5.7.1", "{moment:?}");
    assert_eq!(
        (observer.pods(), observer.runs()),
        (2, 2),
        "{moment:?}: the server restarts once\n{}",
        observer.console()
    );
    observer.assert_order(&[(0, "All dimensions are saved"), (0, "Closing Server"), (1, "Done (")]);
}

/// Checks much more often than other waits, because some of these moments are short.
async fn wait_for_moment(server: &Server<'_>, before: &Pod, moment: Moment) {
    let reached = async {
        while !moment.is_reached(server, before).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(UPDATE_LIMIT, reached).await.unwrap_or_else(|_| panic!("the moment {moment:?} was missed"));
}
