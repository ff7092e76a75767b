//! Edge (reads). Tests what a release is made of, and what its guide says.

use std::path::Path;
use std::process::Command;

use fixtures::document::console_blocks;

#[test]
fn release_refuses_program_with_test_feature() {
    let operator = Path::new(env!("CARGO_BIN_EXE_operator"));
    let version = Command::new(operator).arg("--version").output().unwrap();
    let has_feature = String::from_utf8_lossy(&version.stdout).contains("wrong-clock");
    assert_eq!(has_feature, cfg!(feature = "wrong-clock"), "the version names the feature");

    let release = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dev/release");
    let check = |program: &Path| Command::new(&release).arg("check-program").arg(program).output().unwrap();
    let answer = check(operator);
    assert_eq!(answer.status.success(), !has_feature, "{}", String::from_utf8_lossy(&answer.stderr));
    assert!(check(&release.with_file_name("README.md")).status.success(), "a file without the words");
}

/// The cluster test `install_guide_works_word_for_word` runs these commands.
#[test]
fn install_guide_has_commands_for_each_step() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/install.md");
    let page = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> = console_blocks(&page).collect();
    for step in ["kubectl create namespace", "helm install", "rollout status", "helm uninstall"] {
        assert!(blocks.iter().any(|block| block.contains(step)), "no block has `{step}`");
    }
}
