//! Edge (writes). Tests partial updates of one plugin: by a request with a scope, as an urgent update, and in a window
//! of its own.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, plugin, server, viabackwards};
use super::server::Server;
use super::wait::{AN_UPDATE, SOON, until};
use super::witness::ServerObserver;
use super::world::{World, in_a_world};

/// Requests an update of `only`, and returns the whole value.
async fn ask(world: &World, only: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "a person asks by the cluster's clock")]
    let value = format!("{};only={only}", Timestamp::now().as_second());
    let annotation = format!("nightshift.dev/apply-now={value}");
    world.annotate(LOBBY, &annotation).await;
    value
}

/// The running versions of ViaVersion and ViaBackwards.
async fn versions(lobby: &Server<'_>) -> (String, String) {
    let plugins = lobby.set().await.plugins;
    (plugins["ViaVersion"].clone(), plugins["ViaBackwards"].clone())
}

fn pair(viaversion: &str, viabackwards: &str) -> (String, String) {
    (viaversion.to_owned(), viabackwards.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_update_applies_requested_then_urgent_plugin() {
    in_a_world("scoped", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), plugin("viaversion"), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        assert_eq!(versions(&lobby).await, pair("5.7.0", "5.7.0"));
        let witness = ServerObserver::of(&lobby).await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;

        ask(world, "plugin/viaversoin").await;
        let refused = world.note(LOBBY, "RequestRefused").await;
        assert!(refused.contains("plugin/viaversoin") && refused.contains("plugin/viaversion"), "{refused}");
        lobby.condition_is("Scoped", "False", "Refused").await;

        let asked = ask(world, "plugin/viaversion").await;
        until("the update is applied", AN_UPDATE, async || {
            world.notes(LOBBY, "UpdateApplied").await.pop().ok_or_else(|| "no Event UpdateApplied".to_owned())
        })
        .await;
        assert_eq!(versions(&lobby).await, pair("5.7.1", "5.7.0"), "everything else stays");
        let served = until("the request is noted as served", SOON, async || {
            let handled = lobby.object().await.status.unwrap().last_handled.unwrap_or_default();
            handled.apply_now.clone().ok_or_else(|| format!("{handled:?}"))
        })
        .await;
        assert_eq!(served, asked);
        lobby.planned(&["ViaBackwards 5.7.0 -> 5.7.1"]).await;
        assert!(lobby.condition("Scoped").await.is_none());
        world.look_again(LOBBY).await;
        assert_eq!(witness.runs(), 2, "once:\n{}", witness.console());

        let urgent = Patch::Merge(json!({"spec": {"urgent": true}}));
        world.api::<crds::Plugin>().patch("viabackwards", &PatchParams::default(), &urgent).await.unwrap();
        lobby.settled().await;
        assert_eq!(versions(&lobby).await, pair("5.7.1", "5.7.1"), "the window is far");
        assert_eq!(witness.runs(), 3, "{}", witness.console());
    })
    .await;
}

/// A schedule that begins in three hours, and then every day.
fn in_three_hours() -> String {
    #[expect(clippy::disallowed_methods, reason = "a window opens by the cluster's clock")]
    let opens = Timestamp::now() + SignedDuration::from_hours(3);
    opens.to_zoned(TimeZone::UTC).strftime("%-M %-H * * *").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_window_updates_that_plugin_alone() {
    in_a_world("own-window", BEFORE, async |world| {
        let window = async |cron: &str| {
            let windows = json!({"spec": {"windows": [{"name": "own", "cron": cron}]}});
            let api = world.api::<crds::Plugin>();
            api.patch("viaversion", &PatchParams::default(), &Patch::Merge(windows)).await.unwrap();
        };
        world.apply(&[server(LOBBY, FAR), plugin("viaversion"), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let witness = ServerObserver::of(&lobby).await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let far = lobby.object().await.status.unwrap().next_window_at.unwrap();

        window(&in_three_hours()).await;
        let said = lobby.condition_is("Scoped", "True", "OwnWindow").await;
        assert!(said.contains("plugin/viaversion comes in its own window"), "{said}");
        lobby.planned(&["ViaVersion 5.7.0 -> 5.7.1"]).await;
        let status = lobby.object().await.status.unwrap();
        assert!(status.next_window_at.is_some_and(|opens| opens < far), "{:?}", status.next_window);
        assert!(!status.available_update.unwrap().summary.contains("ViaBackwards"));
        let waits = lobby.condition_is("Updating", "False", "WaitingForWindow").await;
        assert!(waits.contains("the window of plugin/viaversion opens at"), "{waits}");
        assert_eq!((versions(&lobby).await, witness.runs()), (pair("5.7.0", "5.7.0"), 1), "it is not open");

        window(ALWAYS).await;
        until("the update is applied", AN_UPDATE, async || {
            world.notes(LOBBY, "UpdateApplied").await.pop().ok_or_else(|| "no Event UpdateApplied".to_owned())
        })
        .await;
        assert_eq!(versions(&lobby).await, pair("5.7.1", "5.7.0"), "everything else stays");
        lobby.planned(&["ViaBackwards 5.7.0 -> 5.7.1"]).await;
        let status = lobby.object().await.status.unwrap();
        assert_eq!(status.next_window_at, Some(far), "the rest waits for the window of the server");
        assert!(lobby.condition("Scoped").await.is_none());
        assert_eq!(witness.runs(), 2, "once:\n{}", witness.console());
    })
    .await;
}
