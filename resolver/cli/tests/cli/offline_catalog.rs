//! Edge (reads). Tests catalogs in directories, and queries that the known data cannot answer.

use fixtures::upstream::{Failure, Upstream};

use super::{NOW, Workspace, assert_snapshot, lobby, plugin, server};

#[test]
fn fetched_catalog_answers_offline_with_same_text() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    assert_snapshot("fetch", &workspace.run(&["catalog", "fetch", "-f", "lobby.yaml", "--catalog", "kept"]));
    let online = workspace.command(&["explain", "-f", "lobby.yaml"]).output().unwrap();
    let offline = workspace
        .command(&["explain", "-f", "lobby.yaml", "--catalog", "kept"])
        // No process listens there, so every request would fail.
        .env("NIGHTSHIFT_MODRINTH_URL", "http://127.0.0.1:1")
        .env("NIGHTSHIFT_FILL_URL", "http://127.0.0.1:1")
        .output()
        .unwrap();
    assert_eq!(offline.status.code(), Some(0));
    assert_eq!(String::from_utf8(offline.stdout), String::from_utf8(online.stdout));
    assert_eq!(String::from_utf8(offline.stderr), Ok(String::new()));
}

#[test]
fn catalog_without_project_cannot_answer() {
    let bare = server("  updateStrategy: auto\n");
    let workspace =
        Workspace::new(&[("bare.yaml", &bare), ("more.yaml", &(bare.clone() + &plugin("clickvillagers", "")))]);
    workspace.run(&["catalog", "fetch", "-f", "bare.yaml", "--catalog", "kept"]);
    assert_snapshot("offline-lacking", &workspace.run(&["explain", "-f", "more.yaml", "--catalog", "kept"]));
    assert_snapshot("offline-no-directory", &workspace.run(&["explain", "-f", "more.yaml", "--catalog", "none"]));
    assert!(!workspace.path().join("none").exists(), "an offline query creates no directory");
}

#[test]
fn upstream_outage_is_named_and_leaves_answer_open() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (upstream, _task) = runtime.block_on(fixtures::upstream::spawn(NOW.parse().unwrap())).unwrap();
    upstream.fail(Upstream::Modrinth, Some(Failure::Status(500)));
    // Pinned, so that few pages are read.
    let manifests = server("  updateStrategy: pin\n  version: 1.21.10\n") + &plugin("griefprevention", "");
    let workspace = Workspace::new(&[("lobby.yaml", &manifests)]);
    let base = upstream.public_url();
    let output = workspace
        .command(&["explain", "-f", "lobby.yaml", "--modrinth-url", &format!("{base}/modrinth/v2")])
        .env("XDG_CACHE_HOME", workspace.path().join("cache"))
        .output()
        .unwrap();
    assert_snapshot("upstream-down", &super::output_text(&output));
}
