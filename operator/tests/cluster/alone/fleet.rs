//! Edge (writes). Tests that fifty idle servers cause no writes and no requests.

use std::time::Duration;

use crds::PaperMCServer;
use kube::api::ListParams;

use crate::cluster::manifests::{BEFORE, small_server, viabackwards};
use crate::cluster::wait::{all_the_while, until};
use crate::cluster::world::alone_in_a_world;

const SERVERS: usize = 50;
/// Fifty starts on two cores.
const ALL_START: Duration = Duration::from_mins(8);

#[tokio::test(flavor = "multi_thread")]
async fn fifty_idle_servers_cause_no_write_or_upstream_request() {
    alone_in_a_world("fleet", BEFORE, &["refreshSeconds=1200"], async |world| {
        let servers = (0..SERVERS).map(|number| small_server(&format!("server-{number:02}")));
        // A server that is seen before its Plugin starts without it, and the Plugin waits for the window.
        world.apply(&[viabackwards()]).await;
        world.apply(&servers.collect::<Vec<_>>()).await;
        until("all of them are settled", ALL_START, async || {
            let list = world.api::<PaperMCServer>().list(&ListParams::default()).await.unwrap();
            let settled = list.items.iter().filter(|object| is_settled(object)).count();
            if settled == SERVERS { Ok(()) } else { Err(format!("{settled} of {SERVERS}")) }
        })
        .await;

        let (versions, requests) = world.at_rest().await;
        all_the_while(Duration::from_mins(1), async || {}).await;
        assert_eq!(world.versions().await, versions, "nothing was written");
        assert_eq!(world.upstream.requests().await, requests, "nobody was asked");
    })
    .await;
}

fn is_settled(object: &PaperMCServer) -> bool {
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let has = |of: &str, reason: &str| conditions.iter().any(|c| c.type_ == of && c.reason == reason);
    has("Ready", "Running") && has("Updating", "Stable") && has("UpdateAvailable", "UpToDate")
}
