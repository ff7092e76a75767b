//! Edge (reads). Tests that Nightshift writes no lines into the log of an idle server.

use std::time::Duration;

use super::manifests::{BEFORE, FAR, LOBBY, server, viabackwards};
use super::server::Server;
use super::wait::all_the_while;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn server_log_at_rest_gets_no_line_of_nightshift() {
    in_a_world("at-rest", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;

        let before = lobby.log("papermc").await;
        // Long enough for every timer of an idle server. A slower timer would show only in a longer observation.
        let long = std::env::var_os("NIGHTSHIFT_LONG").is_some();
        all_the_while(Duration::from_secs(if long { 600 } else { 60 }), async || {}).await;
        assert_eq!(lobby.log("papermc").await, before);
    })
    .await;
}
