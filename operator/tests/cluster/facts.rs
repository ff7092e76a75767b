//! Edge (writes). What no page states: the cluster's facts, from the chart's values to the plan, and a Plugin that knows better.

use serde_json::json;

use super::impossible::explain;
use super::manifests::{AFTER, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::world::in_a_world_with;

#[tokio::test(flavor = "multi_thread")]
async fn a_fact_of_the_cluster_binds_the_plan_until_a_plugin_says_otherwise() {
    let fact = [
        "facts[0].plugin=ViaBackwards",
        "facts[0].releases=5.7.1",
        "facts[0].requires.plugin=ViaVersion",
        "facts[0].requires.version=<5.7.1",
        "facts[0].source=the staff channel",
        "facts[0].date=2026-01-18",
    ];
    in_a_world_with("facts", BEFORE, &fact, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER[..1]).await;
        let explained = explain(&world.namespace, true).await;
        let said = "ViaBackwards 5.7.1 needs ViaVersion <5.7.1 (a fact of your cluster, recorded 2026-01-18 from the staff channel)";
        assert!(explained.contains(said), "{explained}");

        let mut knows_better = viabackwards();
        knows_better["spec"]["requires"] = json!([{"plugin": "ViaVersion", "version": ">=5.7.1"}]);
        world.apply(&[knows_better]).await;
        lobby.planned(&TO_AFTER).await;
        let explained = explain(&world.namespace, true).await;
        assert!(explained.contains("needs ViaVersion 5.7.1 or newer (says your Plugin viabackwards)"), "{explained}");
        assert!(!explained.contains("the staff channel"), "{explained}");
    })
    .await;
}
