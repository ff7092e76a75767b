//! Edge (writes). A volume that was there before the server: its world is opened as it is, and it is nobody's to delete.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::json;

use super::manifests::{BEFORE, LOBBY, small_server, viabackwards};
use super::server::Server;
use super::world::{World, in_a_world};

const MARKER: &str = "/data/world/marker.txt";

/// Deletes a server, and waits until nobody has its volume any more.
async fn delete(world: &World, server: &Server<'_>) {
    world.kubectl(&["delete", "papermcserver", &server.name], "").await;
    server.gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_holds_a_world_is_taken_over_as_it_is_and_stays_when_its_server_is_deleted() {
    in_a_world("existing-claim", BEFORE, async |world| {
        let mut before = small_server("before");
        before["spec"]["storage"]["retain"] = json!(true);
        world.apply(&[before, viabackwards()]).await;
        let before = Server::new(world, "before");
        before.settled().await;
        before.order("build 1000").await;
        before.put_file(MARKER, b"years").await;
        delete(world, &before).await;

        let mut adopting = small_server(LOBBY);
        // Also with the word that a claim of its own would go with it.
        adopting["spec"]["storage"] = json!({"existingClaim": "data-before-0", "retain": false});
        let lobby = Server::new(world, LOBBY);
        for visit in ["first", "second"] {
            world.apply(&[adopting.clone()]).await;
            lobby.settled().await;
            assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "years", "{visit}");
            assert!(lobby.saved_blocks().await >= 1000, "{visit}: the world is opened, and not made anew");
            let claims = world.api::<PersistentVolumeClaim>();
            assert!(claims.get_opt("data-lobby-0").await.unwrap().is_none(), "{visit}: it needs none of its own");

            delete(world, &lobby).await;
            let claim = claims.get("data-before-0").await.unwrap();
            assert_eq!((claim.metadata.owner_references, claim.metadata.deletion_timestamp), (None, None), "{visit}");
        }
    })
    .await;
}
