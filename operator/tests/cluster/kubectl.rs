//! Edge (writes). Runs kubectl and helm as a user does.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The root of the repository.
pub(super) fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Runs a program at the root of the repository with this input, and returns its output, also after a failure.
pub(super) async fn try_run(program: &str, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(repository())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| {
            panic!("cannot run {program} ({error}); `eval \"$(dev/cluster env)\"` puts it on the PATH")
        });
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.ok(); // a program that does not read it reports that on stderr
    drop(stdin);
    child.wait_with_output().await.unwrap()
}

/// The same for a program that has to succeed. Returns its standard output.
pub(super) async fn run(program: &str, arguments: &[&str], input: &str) -> String {
    expect_stdout(program, arguments, try_run(program, arguments, input).await)
}

/// The standard output of a program that has to have succeeded.
pub(super) fn expect_stdout(program: &str, arguments: &[&str], output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {} failed: {stderr}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs kubectl in a namespace. It has to succeed.
pub(super) async fn kubectl(namespace: &str, arguments: &[&str], input: &str) -> String {
    run("kubectl", &[&["--namespace", namespace], arguments].concat(), input).await
}
