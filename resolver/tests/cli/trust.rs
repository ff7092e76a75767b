//! Edge (reads). Tests unmanaged JARs: which updates they block, and the command that trusts them.

use super::{Desk, assert_shown, plugin, server};

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
    let alone = lobby("").replace("  - {file: \"it's own.jar\"}\n", "");
    let desk = Desk::new(&[("lobby.yaml", &alone)]);
    assert_shown("trust-held", &desk.run(&["explain", "-f", "lobby.yaml"]));
    let trust = ["trust", "games/lobby", "ShopGUIPlus.jar", "--minecraft", "1.21.11", "-f", "lobby.yaml"];
    let said = desk.run(&trust);
    assert_shown("trust", &said);
    // The printed spec, in the manifest.
    let line = said.lines().find(|line| line.contains("- {file")).unwrap().trim_start_matches("#   ");
    let spec = format!("  unmanaged:\n{line}\n");
    let vouched = lobby(&spec).replace("  - {file: \"it's own.jar\"}\n", "");
    std::fs::write(desk.path().join("lobby.yaml"), &vouched).unwrap();
    let then = desk.run(&["explain", "-f", "lobby.yaml"]);
    assert!(then.contains("lobby can run Paper 1.21.11"), "{then}");
    // The file changes, and the trust no longer applies.
    let changed = vouched.replacen("00aa, name", "00bb, name", 1);
    assert_ne!(changed, vouched);
    std::fs::write(desk.path().join("lobby.yaml"), changed).unwrap();
    let then = desk.run(&["explain", "-f", "lobby.yaml"]);
    assert!(then.contains("waits for ShopGUIPlus.jar"), "{then}");
}

#[test]
fn trust_refusal_explains_reason() {
    let desk = Desk::new(&[("lobby.yaml", &lobby(""))]);
    let runs = [
        vec!["trust", "lobby", "ShopGUI.jar", "--minecraft", "1.21.11", "-f", "lobby.yaml"],
        vec!["trust", "lobby", "it's own.jar", "--minecraft", "1.21.11", "-f", "lobby.yaml"],
        vec!["trust", "arena", "ShopGUIPlus.jar", "--minecraft", "1.21.11", "-f", "lobby.yaml"],
        vec!["trust", "lobby", "ShopGUIPlus.jar", "--minecraft", "newest", "-f", "lobby.yaml"],
    ];
    let shown: Vec<String> = runs.iter().map(|run| format!("$ {}\n{}", run.join(" "), desk.run(run))).collect();
    assert_shown("trust-refused", &shown.join("\n"));
}
