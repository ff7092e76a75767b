//! Pure. Tests what counts as a change of the agent. The build script of this crate computes the digest.

use std::collections::BTreeSet;

use include_sources::{AGENT_CRATES, code_of, declared_dependencies, declared_lines, locked_packages};
use toml::Table;

#[path = "../build/agent_sources.rs"]
mod include_sources;

#[test]
fn agent_digest_ignores_comments_and_tests() {
    let code =
        code_of("//! Pure.\n\nfn stop() {\n    // why\n    kill();\n}\n\n#[cfg(test)]\nmod tests {\n    use x;\n}\n");
    assert_eq!(code, "fn stop() {\nkill();\n}");
}

#[test]
fn agent_digest_covers_packages_of_agent_only() {
    let table = |text: &str| text.parse::<Table>().unwrap();
    let manifest = table(include_str!("../../scheduler/agent/Cargo.toml"));
    let names: BTreeSet<String> = declared_dependencies(&manifest).into_iter().collect();
    assert!(names.contains("rcon") && !names.contains("proptest"), "{names:?}");
    let lines = declared_lines(&table(include_str!("../../Cargo.toml")), &names);
    assert!(lines.contains("tokio = {") && !lines.contains("kube = {"), "{lines}");
    let locked = locked_packages(&table(include_str!("../../Cargo.lock")), &names);
    let has = |name: &str| locked.iter().any(|package| package.starts_with(&format!("{name} ")));
    assert!(has("rcon") && has("ring"), "reqwest needs ring");
    assert!(!has("kube") && !has("pubgrub") && !has("agent"), "{locked:?}");
    // Other crates of the workspace would bring their packages, and their code would not be read.
    let of_workspace = ["scheduler", "agent-api", "artifacts"].iter().filter(|name| names.contains(**name));
    assert_eq!(of_workspace.count() + 1, AGENT_CRATES.len());
}

#[test]
fn agent_digest_of_build_has_sixteen_digits() {
    let digest = env!("AGENT_DIGEST");
    assert!(digest.len() == 16 && digest.bytes().all(|digit| digit.is_ascii_hexdigit()), "{digest}");
}
