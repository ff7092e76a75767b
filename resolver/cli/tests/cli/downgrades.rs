//! Edge (reads). Tests that plugins do not go below the running versions in the status of a manifest.

use super::{Workspace, assert_snapshot, plugin, server};

/// A status as an operator writes it: `GriefPrevention` 16.18.5 runs on 1.20.4, which its page does not list.
const STATUS: &str = "status:\n  currentVersion: 1.20.4\n  currentBuild: 499\n  basis:\n    floor: 1.20.4\n    \
                      version: 1.20.4\n    build: 499\n    releases: [iaJtn30B]\n";

#[test]
fn plugin_downgrade_requires_allow_downgrade() {
    let explain = |status: &str, more: &str| {
        let pinned = server("  updateStrategy: pin\n  version: 1.20.4\n");
        let all = format!("{pinned}{status}{}", plugin("griefprevention", more));
        Workspace::new(&[("lobby.yaml", &all)]).run(&["explain", "-f", "lobby.yaml"])
    };
    assert_snapshot("downgrade-waits", &explain(STATUS, ""));
    assert_snapshot("downgrade-allowed", &explain(STATUS, ", allowDowngrade: true"));
    // Without a running version there is no lower limit.
    let new = explain("", "");
    assert!(new.contains("GriefPrevention 16.18.3") && !new.contains("is downgraded"), "{new}");
    // An invalid value is reported with its field.
    let wrong = explain(STATUS, ", allowDowngrade: sometimes");
    assert!(wrong.contains("allowDowngrade"), "{wrong}");
}
