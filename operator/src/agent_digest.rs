//! Pure. Tests what counts as a change of the agent. The build script of this crate computes the digest.

use include_sources::{AGENT_CRATES, Digest, code_of, declared_dependencies, declared_lines, locked_packages};

#[path = "../build/agent_sources.rs"]
mod include_sources;

#[test]
fn agent_digest_ignores_comments_and_tests() {
    let code =
        code_of("//! Pure.\n\nfn stop() {\n    // why\n    kill();\n}\n\n#[cfg(test)]\nmod tests {\n    use x;\n}\n");
    assert_eq!(code, "fn stop() {\nkill();\n}");
    let digest = |texts: &[&str]| {
        let mut digest = Digest::default();
        for text in texts {
            digest.add(text);
        }
        digest.to_hex()
    };
    assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]), "the end of a file counts");
    assert_eq!(digest(&[&code]).len(), 16);
}

#[test]
fn agent_digest_covers_packages_of_agent_only() {
    let manifest = include_str!("../../scheduler/agent/Cargo.toml");
    let names = declared_dependencies(manifest);
    assert!(names.contains(&"rcon".to_owned()) && !names.contains(&"proptest".to_owned()), "{names:?}");
    let lines = declared_lines(include_str!("../../Cargo.toml"), &names);
    assert!(lines.contains("tokio = {") && !lines.contains("kube = {"), "{lines}");
    let locked = locked_packages(include_str!("../../Cargo.lock"), &names);
    let has = |name: &str| locked.iter().any(|package| package.starts_with(&format!("{name} ")));
    assert!(has("rcon") && has("ring"), "reqwest needs ring");
    assert!(!has("kube") && !has("pubgrub") && !has("agent"), "{locked:?}");
    // Other crates of the workspace would bring their packages, and their code would not be read.
    let of_workspace: Vec<_> =
        names.iter().filter(|name| ["scheduler", "agent-api", "artifacts"].contains(&name.as_str())).collect();
    assert_eq!(of_workspace.len() + 1, AGENT_CRATES.len());
}

#[test]
fn agent_digest_of_build_has_sixteen_digits() {
    let digest = env!("AGENT_DIGEST");
    assert!(digest.len() == 16 && digest.bytes().all(|digit| digit.is_ascii_hexdigit()), "{digest}");
}
