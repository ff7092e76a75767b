//! Edge (reads). Checks that the version of Kubernetes is supported.

use anyhow::{Context as _, ensure};
use kube::Client;
use semver::Version;
use tracing::warn;

/// The oldest supported version. Native sidecars are stable since 1.33. The chart has the same limit (`kubeVersion`).
const OLDEST: Version = Version::new(1, 33, 0);

/// Reads the version of the API server.
///
/// # Errors
/// When it cannot be read, or is too old.
pub(crate) async fn check(client: &Client) -> anyhow::Result<()> {
    let text = client.apiserver_version().await.context("could not read the version of Kubernetes")?.git_version;
    let Some(version) = parse(&text) else {
        warn!(version = text, "unknown version of Kubernetes");
        return Ok(());
    };
    ensure!(
        version >= OLDEST,
        "Kubernetes {version} is too old: the agent runs as a native sidecar, which is stable since {OLDEST}. Upgrade the cluster to {OLDEST} or newer"
    );
    Ok(())
}

/// Without the suffix of a distribution. `v1.33.5-gke.1080000` is not an earlier version than 1.33.5, as semver would have it.
fn parse(text: &str) -> Option<Version> {
    let Version { major, minor, patch, .. } = text.trim_start_matches('v').parse().ok()?;
    Some(Version::new(major, minor, patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_version_is_read_from_all_distributions() {
        for (text, version) in [
            ("v1.34.4", Some(Version::new(1, 34, 4))),
            ("v1.33.1+k3s1", Some(Version::new(1, 33, 1))),
            ("v1.33.0-gke.1080000", Some(OLDEST)),
            ("v1.32.9-eks-113cf36", Some(Version::new(1, 32, 9))),
            ("unknown", None),
        ] {
            assert_eq!(parse(text), version, "{text}");
        }
        assert!(parse("v1.33.0-gke.1080000") >= Some(OLDEST) && parse("v1.32.9") < Some(OLDEST));
    }
}
