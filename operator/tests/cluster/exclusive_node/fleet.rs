//! Edge (writes). Tests that fifty idle servers cause no writes and no requests.

use std::time::Duration;

use crds::PaperMCServer;
use kube::api::ListParams;

use crate::cluster::eventually::{check_throughout, wait_until};
use crate::cluster::manifests::{BEFORE_RELEASE, small_server, viabackwards};
use crate::cluster::test_env::in_exclusive_test_env;

const SERVERS: usize = 50;
/// Fifty starts on two cores.
const ALL_STARTS_LIMIT: Duration = Duration::from_mins(8);

#[tokio::test(flavor = "multi_thread")]
async fn fifty_idle_servers_cause_no_write_or_upstream_request() {
    in_exclusive_test_env("fleet", BEFORE_RELEASE, &["refreshSeconds=1200"], async |env| {
        let servers = (0..SERVERS).map(|number| small_server(&format!("server-{number:02}")));
        // A server that is seen before its Plugin starts without it, and the Plugin waits for the window.
        env.apply(&[viabackwards()]).await;
        env.apply(&servers.collect::<Vec<_>>()).await;
        wait_until("all servers are stable", ALL_STARTS_LIMIT, async || {
            let list = env.api::<PaperMCServer>().list(&ListParams::default()).await.unwrap();
            let stable = list.items.iter().filter(|object| is_stable(object)).count();
            if stable == SERVERS { Ok(()) } else { Err(format!("{stable} of {SERVERS}")) }
        })
        .await;

        let (versions, requests) = env.wait_until_idle().await;
        check_throughout(Duration::from_mins(1), async || {}).await;
        assert_eq!(env.versions().await, versions, "no object was written");
        assert_eq!(env.upstream.requests().await, requests, "no upstream was requested");
    })
    .await;
}

fn is_stable(object: &PaperMCServer) -> bool {
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let has =
        |condition_type: &str, reason: &str| conditions.iter().any(|c| c.type_ == condition_type && c.reason == reason);
    has("Ready", "Running") && has("Updating", "Stable") && has("UpdateAvailable", "UpToDate")
}
