//! Edge (writes). Tests that a server without consent to the EULA does not start.

use super::manifests::{BEFORE_RELEASE, LOBBY, NEVER_OPEN, server};
use super::server::Server;
use super::test_env::in_test_env;

#[tokio::test(flavor = "multi_thread")]
async fn server_without_eula_does_not_start() {
    in_test_env("no-eula", BEFORE_RELEASE, async |env| {
        let mut object = server(LOBBY, NEVER_OPEN);
        object["spec"].as_object_mut().unwrap().remove("eula");
        env.apply(&[object]).await;
        let lobby = Server::new(env, LOBBY);
        let message = lobby.wait_for_condition("Resolved", "False", "EulaNotAccepted").await;
        assert!(message.contains("spec.eula: Accepted"), "{message}");
        assert!(lobby.pod().await.is_none());
    })
    .await;
}
