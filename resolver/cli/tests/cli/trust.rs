//! Edge (reads). Tests unmanaged JARs: which updates they block, and the command that trusts them.

use super::{Workspace, assert_snapshot, plugin, server};

const SHA256: &str = "00000000000000000000000000000000000000000000000000000000000000aa";

/// A server as it is in the cluster, with an unmanaged JAR, and these lines of its spec.
fn lobby(spec: &str) -> String {
    let status = format!(
        "status:\n  currentVersion: 1.21.10\n  unmanaged:\n  - {{file: ShopGUIPlus.jar, sha256: {SHA256}, name: ShopGUIPlus}}\n  \
         - {{file: \"it's own.jar\"}}\n"
    );
    server("  updateStrategy: auto\n") + spec + &status + &plugin("viabackwards", "")
}

#[test]
fn unmanaged_jar_blocks_new_minecraft_until_trusted() {
    let manifests = lobby("").replace("  - {file: \"it's own.jar\"}\n", "");
    let workspace = Workspace::new(&[("lobby.yaml", &manifests)]);
    assert_snapshot("trust-held", &workspace.run(&["explain", "-f", "lobby.yaml"]));
    let trust = ["trust", "games/lobby", "ShopGUIPlus.jar", "--minecraft", "1.21.11", "-f", "lobby.yaml"];
    let output = workspace.run(&trust);
    assert_snapshot("trust", &output);
    // The printed spec, in the manifest.
    let line = output.lines().find(|line| line.contains("- {file")).unwrap().trim_start_matches("#   ");
    let spec = format!("  unmanaged:\n{line}\n");
    let trusted = lobby(&spec).replace("  - {file: \"it's own.jar\"}\n", "");
    std::fs::write(workspace.path().join("lobby.yaml"), &trusted).unwrap();
    let then = workspace.run(&["explain", "-f", "lobby.yaml"]);
    assert!(then.contains("lobby can run Paper 1.21.11"), "{then}");
    // The file changes, and the trust no longer applies.
    let changed = trusted.replacen("00aa, name", "00bb, name", 1);
    assert_ne!(changed, trusted);
    std::fs::write(workspace.path().join("lobby.yaml"), changed).unwrap();
    let then = workspace.run(&["explain", "-f", "lobby.yaml"]);
    assert!(then.contains("waits for ShopGUIPlus.jar"), "{then}");
}

#[test]
fn trust_refusal_explains_reason() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby(""))]);
    let runs = [
        vec!["trust", "lobby", "ShopGUI.jar", "--minecraft", "1.21.11", "-f", "lobby.yaml"],
        vec!["trust", "lobby", "it's own.jar", "--minecraft", "1.21.11", "-f", "lobby.yaml"],
        vec!["trust", "arena", "ShopGUIPlus.jar", "--minecraft", "1.21.11", "-f", "lobby.yaml"],
        vec!["trust", "lobby", "ShopGUIPlus.jar", "--minecraft", "newest", "-f", "lobby.yaml"],
    ];
    let shown: Vec<String> = runs.iter().map(|run| format!("$ {}\n{}", run.join(" "), workspace.run(run))).collect();
    assert_snapshot("trust-refused", &shown.join("\n"));
}
