//! Edge (writes). Tests partial updates of one plugin: by a request with a scope, as an urgent update, and in a window
//! of its own.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::eventually::{SHORT_LIMIT, UPDATE_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, plugin, server, viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};

/// Requests an update of `plugins`, and returns the whole value.
async fn request_update(env: &TestEnv, plugins: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "the request needs the cluster's time")]
    let value = format!("{};only={plugins}", Timestamp::now().as_second());
    let annotation = format!("nightshift.dev/apply-now={value}");
    env.annotate(LOBBY, &annotation).await;
    value
}

/// The running versions of ViaVersion and ViaBackwards.
async fn versions(lobby: &Server<'_>) -> (String, String) {
    let plugins = lobby.version_set().await.plugins;
    (plugins["ViaVersion"].clone(), plugins["ViaBackwards"].clone())
}

fn pair(viaversion: &str, viabackwards: &str) -> (String, String) {
    (viaversion.to_owned(), viabackwards.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_update_applies_requested_then_urgent_plugin() {
    in_test_env("scoped", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), plugin("viaversion"), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        assert_eq!(versions(&lobby).await, pair("5.7.0", "5.7.0"));
        let observer = ServerObserver::start(&lobby).await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;

        request_update(env, "plugin/viaversoin").await;
        let refused = env.wait_for_event_note(LOBBY, "RequestRefused").await;
        assert!(refused.contains("plugin/viaversoin") && refused.contains("plugin/viaversion"), "{refused}");
        lobby.wait_for_condition("PartialUpdate", "False", "Refused").await;

        let request = request_update(env, "plugin/viaversion").await;
        wait_until("the update is applied", UPDATE_LIMIT, async || {
            env.event_notes(LOBBY, "UpdateApplied").await.pop().ok_or_else(|| "no Event UpdateApplied".to_owned())
        })
        .await;
        assert_eq!(versions(&lobby).await, pair("5.7.1", "5.7.0"), "only ViaVersion is updated");
        let served = wait_until("the request is reported as handled", SHORT_LIMIT, async || {
            let handled = lobby.object().await.status.unwrap().last_handled.unwrap_or_default();
            handled.apply_now.clone().ok_or_else(|| format!("{handled:?}"))
        })
        .await;
        assert_eq!(served, request);
        lobby.wait_until_planned(&["ViaBackwards 5.7.0 -> 5.7.1"]).await;
        assert!(lobby.condition("PartialUpdate").await.is_none());
        env.trigger_passes(LOBBY).await;
        assert_eq!(observer.runs(), 2, "one restart:\n{}", observer.console());

        let urgent = Patch::Merge(json!({"spec": {"urgent": true}}));
        env.api::<crds::Plugin>().patch("viabackwards", &PatchParams::default(), &urgent).await.unwrap();
        lobby.wait_until_stable().await;
        assert_eq!(versions(&lobby).await, pair("5.7.1", "5.7.1"), "an urgent update needs no window");
        assert_eq!(observer.runs(), 3, "{}", observer.console());
    })
    .await;
}

/// A schedule that begins in three hours, and then every day.
fn in_three_hours() -> String {
    #[expect(clippy::disallowed_methods, reason = "windows follow the cluster's clock")]
    let opens = Timestamp::now() + SignedDuration::from_hours(3);
    opens.to_zoned(TimeZone::UTC).strftime("%-M %-H * * *").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_window_updates_that_plugin_alone() {
    in_test_env("own-window", BEFORE_RELEASE, async |env| {
        let window = async |cron: &str| {
            let windows = json!({"spec": {"windows": [{"name": "own", "cron": cron}]}});
            let api = env.api::<crds::Plugin>();
            api.patch("viaversion", &PatchParams::default(), &Patch::Merge(windows)).await.unwrap();
        };
        env.apply(&[server(LOBBY, NEVER_OPEN), plugin("viaversion"), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let observer = ServerObserver::start(&lobby).await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let far = lobby.object().await.status.unwrap().next_window_at.unwrap();

        window(&in_three_hours()).await;
        let message = lobby.wait_for_condition("PartialUpdate", "True", "OwnWindow").await;
        assert!(message.contains("plugin/viaversion is updated in its own window"), "{message}");
        lobby.wait_until_planned(&["ViaVersion 5.7.0 -> 5.7.1"]).await;
        let status = lobby.object().await.status.unwrap();
        assert!(status.next_window_at.is_some_and(|opens| opens < far), "{:?}", status.next_window);
        assert!(!status.available_update.unwrap().summary.contains("ViaBackwards"));
        let waits = lobby.wait_for_condition("Updating", "False", "WaitingForWindow").await;
        assert!(waits.contains("The window of plugin/viaversion opens at"), "{waits}");
        assert_eq!((versions(&lobby).await, observer.runs()), (pair("5.7.0", "5.7.0"), 1), "its window is closed");

        window(ALWAYS_OPEN).await;
        wait_until("the update is applied", UPDATE_LIMIT, async || {
            env.event_notes(LOBBY, "UpdateApplied").await.pop().ok_or_else(|| "no Event UpdateApplied".to_owned())
        })
        .await;
        assert_eq!(versions(&lobby).await, pair("5.7.1", "5.7.0"), "only ViaVersion is updated");
        lobby.wait_until_planned(&["ViaBackwards 5.7.0 -> 5.7.1"]).await;
        let status = lobby.object().await.status.unwrap();
        assert_eq!(status.next_window_at, Some(far), "the rest waits for the server's window");
        assert!(lobby.condition("PartialUpdate").await.is_none());
        assert_eq!(observer.runs(), 2, "one restart:\n{}", observer.console());
    })
    .await;
}
