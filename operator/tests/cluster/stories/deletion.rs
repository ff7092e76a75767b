//! Edge (writes). Deletes servers, with and without an operator: retained claims stay, and everything else is deleted.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::json;

use crate::cluster::deletes::{AT_ONCE, namespace_is_gone, nothing_is_left_of_lobby};
use crate::cluster::manifests::{BEFORE, LOBBY, small_server, viabackwards};
use crate::cluster::server::Server;
use crate::cluster::wait::{SOON, until};
use crate::cluster::world::{RELEASE, World, in_a_world};

/// A file in the world that identifies it.
const MARKER: &str = "/data/world/marker.txt";
/// The claim of the server `before`.
const CLAIM: &str = "data-before-0";

#[tokio::test(flavor = "multi_thread")]
async fn deleted_servers_keep_only_retained_and_adopted_claims() {
    in_a_world("deletes", BEFORE, async |world| {
        let mut before = small_server("before");
        before["spec"]["storage"]["retain"] = json!(true);
        world.apply(&[before, small_server("second"), viabackwards()]).await;
        let (before, second) = (Server::new(world, "before"), Server::new(world, "second"));
        before.settled().await;
        before.order("build 1000").await;
        before.put_file(MARKER, b"years").await;
        delete(world, &before).await;

        let lobby = Server::new(world, LOBBY);
        lobby_adopts_the_claim(world, &lobby).await;
        delete(world, &lobby).await;
        claim_is_kept(world).await;

        lobby_adopts_the_claim(world, &lobby).await;
        second.settled().await;
        operator_is_gone(world).await;
        world.kubectl(&["delete", "plugin", "viabackwards", AT_ONCE], "").await;
        delete(world, &lobby).await;
        claim_is_kept(world).await;
        nothing_is_left_of_lobby(world).await;

        assert!(second.pod().await.is_some(), "a server runs in the namespace");
        world.kubectl(&["delete", "namespace", &world.namespace, "--wait=false"], "").await;
        namespace_is_gone(world).await;
    })
    .await;
}

/// Deletes a server and waits until its pod has released the volume. `kubectl` waits for the deletion of the server.
async fn delete(world: &World, server: &Server<'_>) {
    world.kubectl(&["delete", "papermcserver", &server.name, AT_ONCE], "").await;
    server.gone().await;
}

/// `retain: false` applies to a claim of the server's own, not to an existing one.
async fn lobby_adopts_the_claim(world: &World, lobby: &Server<'_>) {
    let mut adopting = small_server(LOBBY);
    adopting["spec"]["storage"] = json!({"existingClaim": CLAIM, "retain": false});
    world.apply(&[adopting]).await;
    lobby.settled().await;
    assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "years");
    assert!(lobby.saved_blocks().await >= 1000, "the world is opened, not created again");
    let own = world.api::<PersistentVolumeClaim>().get_opt("data-lobby-0").await.unwrap();
    assert!(own.is_none(), "the server needs no claim of its own");
}

async fn claim_is_kept(world: &World) {
    let claim = world.api::<PersistentVolumeClaim>().get(CLAIM).await.unwrap();
    assert_eq!((claim.metadata.owner_references, claim.metadata.deletion_timestamp), (None, None));
}

async fn operator_is_gone(world: &World) {
    world.kubectl(&["scale", "deployment", RELEASE, "--replicas=0"], "").await;
    until("there is no operator", SOON, async || match world.operator_of_now().await {
        None => Ok(()),
        Some(pod) => Err(format!("{:?}", pod.metadata.name)),
    })
    .await;
}
