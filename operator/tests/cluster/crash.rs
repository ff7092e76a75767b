//! Edge (writes). Kills the operator at ten different moments of an update: it continues, and the server restarts once.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::Value;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::node::kill_9;
use super::server::{Server, is_ready};
use super::update::updated;
use super::wait::AN_UPDATE;
use super::witness::ServerObserver;
use super::world::{World, in_a_world, uid_of};

/// A moment of an update, at which a fault is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Planned,
    Staged,
    WindowOpens,
    Announced,
    Saved,
    TemplateWritten,
    DoorOpened,
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
        Self::DoorOpened,
        Self::PodStops,
        Self::NewPodStarts,
        Self::NewPodReady,
    ];

    /// Whether the moment has come. `before` is the pod from before the update.
    pub(super) async fn has_come(self, server: &Server<'_>, before: &Pod) -> bool {
        let api = server.world.api::<Pod>();
        let pod = async || api.get_opt(&server.pod_name()).await.unwrap();
        let other = |pod: &Pod| uid_of(pod) != uid_of(before);
        match self {
            Self::Planned => server.object().await.status.unwrap_or_default().available_update.is_some(),
            Self::Staged => {
                server.object().await.status.unwrap_or_default().available_update.is_some_and(|it| it.staged)
            }
            Self::WindowOpens => true,
            Self::Announced => fact(server, "announced").await,
            Self::Saved => fact(server, "saved").await,
            Self::TemplateWritten => {
                server.stateful_set().await.metadata.generation > Some(2) && !is_goal(server, before).await
            }
            Self::DoorOpened => partition(server).await == 0,
            Self::PodStops => pod().await.is_some_and(|pod| other(&pod) || pod.metadata.deletion_timestamp.is_some()),
            Self::NewPodStarts => pod().await.is_some_and(|pod| other(&pod)),
            Self::NewPodReady => pod().await.is_some_and(|pod| other(&pod) && is_ready(&pod)),
        }
    }
}

/// Whether the operator has recorded this on the StatefulSet.
async fn fact(server: &Server<'_>, name: &str) -> bool {
    let set = server.stateful_set().await;
    let facts = set.annotations().get("nightshift.dev/facts").cloned().unwrap_or_default();
    serde_json::from_str::<Value>(&facts).is_ok_and(|facts| !facts[name].is_null())
}

/// Whether the template is that of the earlier pod.
async fn is_goal(server: &Server<'_>, before: &Pod) -> bool {
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
        let test = in_a_world(&name, BEFORE, async |world| update_with_a_kill(world, moment).await);
        // A failing test must not stop the others halfway, because each removes its own namespace.
        AssertUnwindSafe(test).catch_unwind().await.err().map(|_| moment)
    });
    let failed: Vec<Option<Moment>> = all.buffer_unordered(at_once).collect().await;
    let failed: Vec<Moment> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "the update did not survive a kill at {failed:?}; the reasons are above");
}

async fn update_with_a_kill(world: &World, moment: Moment) {
    world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
    let lobby = Server::new(world, LOBBY);
    lobby.settled().await;
    let before = lobby.pod().await.unwrap();
    let witness = ServerObserver::of(&lobby).await;
    let operator = world.operator().await;
    world.upstream.set_now(AFTER).await;
    if matches!(moment, Moment::Planned | Moment::Staged) {
        until_it_comes(&lobby, &before, moment).await;
        kill_9(&operator, "/operator");
        lobby.planned(&TO_AFTER).await;
        lobby.set_window(ALWAYS).await;
    } else {
        lobby.planned(&TO_AFTER).await;
        lobby.set_window(ALWAYS).await;
        until_it_comes(&lobby, &before, moment).await;
        kill_9(&operator, "/operator");
    }
    updated(world, &lobby).await;
    let set = lobby.set().await;
    assert_eq!(set.plugins["ViaVersion"], "5.7.1", "{moment:?}");
    assert_eq!((witness.pods(), witness.runs()), (2, 2), "{moment:?}: the server restarts once\n{}", witness.console());
    witness.assert_order(&[(0, "All dimensions are saved"), (0, "Closing Server"), (1, "Done (")]);
}

/// Checks much more often than other waits, because some of these moments are short.
async fn until_it_comes(server: &Server<'_>, before: &Pod, moment: Moment) {
    let come = async {
        while !moment.has_come(server, before).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(AN_UPDATE, come).await.unwrap_or_else(|_| panic!("the moment {moment:?} did not come"));
}
