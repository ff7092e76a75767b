//! Edge (reads). Tests that Nightshift writes no lines into the log of an idle server.

use std::time::Duration;

use super::eventually::{check_throughout, wait_until};
use super::manifests::{BEFORE_RELEASE, LOBBY, NEVER_OPEN, server, viabackwards};
use super::server::Server;
use super::test_env::in_test_env;

#[tokio::test(flavor = "multi_thread")]
async fn server_log_at_rest_gets_no_line_of_nightshift() {
    in_test_env("at-rest", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        // The agent opens the connection that it keeps within half a minute of the start.
        wait_until("the agent keeps an RCON connection", Duration::from_mins(1), async || {
            let log = lobby.log("papermc").await;
            let lines = |end: &str| log.matches(&format!("Thread RCON Client /127.0.0.1 {end}")).count();
            if lines("started") > lines("shutting down") { Ok(()) } else { Err(log) }
        })
        .await;

        let before = lobby.log("papermc").await;
        // Long enough for every timer of an idle server. A slower timer would show only in a longer observation.
        let long = std::env::var_os("NIGHTSHIFT_LONG").is_some();
        check_throughout(Duration::from_secs(if long { 600 } else { 60 }), async || {}).await;
        assert_eq!(lobby.log("papermc").await, before);
    })
    .await;
}
