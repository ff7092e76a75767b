//! Edge (reads). Tests `outdated` and `ready`.

use super::{Workspace, assert_snapshot, lobby, plugin, server};

#[test]
fn outdated_lists_lagging_versions_with_reason() {
    let slow = lobby().replace("updateStrategy: auto", "updateStrategy: auto\n  updateDelay: 30d");
    let newest =
        server("  updateStrategy: auto\n").replace("name: lobby, namespace: games", "name: hub, namespace: main");
    let workspace = Workspace::new(&[("lobby.yaml", &slow), ("hub.yaml", &newest)]);
    assert_snapshot("outdated", &workspace.run(&["outdated", "-f", "lobby.yaml", "-f", "hub.yaml"]));
    assert_snapshot("outdated-json", &workspace.run(&["outdated", "-f", "lobby.yaml", "--format", "json"]));
}

#[test]
fn outdated_shows_running_versions_from_status() {
    let status = "status:\n  currentVersion: 1.21.10\n  currentBuild: 100\n  plugins:\n  \
                  - {name: DiscordSRV, currentVersion: 1.30.3, state: PendingUpdate}\n  \
                  - {name: GriefPrevention, currentVersion: 16.18.5, state: Installed}\n";
    let plugins = ["discordsrv", "griefprevention"].map(|project| plugin(project, "")).concat();
    let workspace = Workspace::new(&[("lobby.yaml", &(server("  updateStrategy: auto\n") + status + &plugins))]);
    assert_snapshot("outdated-runs", &workspace.run(&["outdated", "-f", "lobby.yaml"]));
}

#[test]
fn outdated_explains_latest_strategy_and_pins_briefly() {
    let manifests = server("  updateStrategy: latest\n")
        + &plugin("griefprevention", "")
        + &plugin("discordsrv", ", updateStrategy: pin, version: 1.30.3");
    let workspace = Workspace::new(&[("lobby.yaml", &manifests)]);
    assert_snapshot("outdated-latest", &workspace.run(&["outdated", "-f", "lobby.yaml"]));
}

#[test]
fn ready_lists_ready_and_silent_plugins() {
    let arena = server("  updateStrategy: pin\n  version: 1.21.8\n").replace("name: lobby", "name: arena");
    let workspace = Workspace::new(&[("all.yaml", &(lobby() + "---\n" + &arena))]);
    assert_snapshot("ready", &workspace.run(&["ready", "1.21.11", "-f", "all.yaml"]));
    assert_snapshot("ready-all", &workspace.run(&["ready", "1.21.8", "-f", "all.yaml"]));
    assert_snapshot("ready-json", &workspace.run(&["ready", "1.21.11", "-f", "all.yaml", "--format", "json"]));
}

#[test]
fn ready_shows_row_for_each_wait_of_plugin() {
    let plugin_for = |tier: &str, object: &str, more: &str| {
        let plugin = plugin("griefprevention", more).replace("name: griefprevention,", &format!("name: {object},"));
        plugin.replace("instanceSelector: {}", &format!("instanceSelector: {{matchLabels: {{tier: {tier}}}}}"))
    };
    let server = server("  updateStrategy: auto\n");
    let arena = server.replace("name: lobby", "name: arena").replace("tier: survival", "tier: arena");
    let pinned = plugin_for("arena", "arena-griefprevention", ", updateStrategy: pin, version: 16.18.4");
    let all = server + "---\n" + &arena + &plugin_for("survival", "griefprevention", "") + &pinned;
    let workspace = Workspace::new(&[("all.yaml", &all)]);
    assert_snapshot("ready-for-two-reasons", &workspace.run(&["ready", "1.21.11", "-f", "all.yaml"]));
}

#[test]
fn ready_answers_unreleased_version_but_not_unknown_one() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    assert_snapshot("ready-to-come", &workspace.run(&["ready", "26.2", "-f", "lobby.yaml"]));
    assert_snapshot(
        "ready-before-it-was-out",
        &workspace.run(&["ready", "1.21.11", "-f", "lobby.yaml", "--at", "2025-10-20"]),
    );
    assert_snapshot("ready-never-was", &workspace.run(&["ready", "1.20.99", "-f", "lobby.yaml"]));
    assert_snapshot("ready-no-version", &workspace.run(&["ready", "", "-f", "lobby.yaml"]));
}
