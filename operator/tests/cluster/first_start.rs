//! Edge (writes). Tests that a server without consent to the EULA does not start.

use super::manifests::{BEFORE, FAR, LOBBY, server};
use super::server::Server;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn server_without_eula_does_not_start() {
    in_a_world("no-eula", BEFORE, async |world| {
        let mut object = server(LOBBY, FAR);
        object["spec"].as_object_mut().unwrap().remove("eula");
        world.apply(&[object]).await;
        let lobby = Server::new(world, LOBBY);
        let message = lobby.condition_is("Resolved", "False", "EulaNotAccepted").await;
        assert!(message.contains("spec.eula: Accepted"), "{message}");
        assert!(lobby.pod().await.is_none());
    })
    .await;
}
