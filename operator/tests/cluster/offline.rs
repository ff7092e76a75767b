//! Edge (writes). What is staged needs nobody: the update goes through with everything that could be asked cut off.

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, server, viabackwards};
use super::node::block;
use super::server::Server;
use super::update::updated;
use super::upstream;
use super::witness::Witness;
use super::world::in_a_world;

/// Port of the operator's artifact store.
const STORE: u16 = 8471;

#[tokio::test(flavor = "multi_thread")]
async fn an_update_whose_files_are_staged_needs_neither_the_store_nor_any_upstream() {
    in_a_world("offline", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned().await;
        let witness = Witness::of(&lobby).await;
        let address = |pod: k8s_openapi::api::core::v1::Pod| pod.status.and_then(|status| status.pod_ip).unwrap();
        // There is no way out of the node; these two are all that a server could ask.
        let to = [(address(world.operator().await), STORE), (address(world.upstream_pod().await), upstream::PORT)];
        let blocked = block("offline", &to).await;
        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        blocked.remove().await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
        witness.assert_order(&[(0, "Closing Server"), (1, "Done (")]);
    })
    .await;
}
