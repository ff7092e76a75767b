//! Edge (reads). Tests that `dev/release` refuses an operator with a test feature.

use std::path::Path;
use std::process::Command;

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
