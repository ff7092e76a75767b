//! Edge (writes). Runs the commands of `docs/guides/install.md` on the files of a release, as a new user does.

use fixtures::document::console_blocks;

use super::kubectl::{repository, run, try_run};
use super::test_env::client;

/// The files of `make release`.
const FILES: &str = "target/dist";
/// The namespaces of the page.
const NAMESPACES: [&str; 2] = ["nightshift-system", "games"];

/// Removes what the page creates when the test ends, in any way.
struct Installation;

impl Drop for Installation {
    fn drop(&mut self) {
        let arguments = [&["delete", "namespace", "--ignore-not-found", "--wait=false"][..], &NAMESPACES].concat();
        drop(std::process::Command::new("kubectl").args(arguments).output());
    }
}

/// The node cannot pull, so the image of the release is loaded under its own name.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the files of a release: `make release`, then run it with `-- --ignored install_guide`"]
async fn install_guide_works_word_for_word() {
    client().await;
    let _installation = Installation;
    let load = format!("dev/cluster load {FILES}/nightshift-*-image.tar");
    run("bash", &["-ec", &load], "").await;
    let page = std::fs::read_to_string(repository().join("docs/guides/install.md")).unwrap();
    for block in console_blocks(&page) {
        let script = format!("cd {FILES}\n{block}");
        let output = try_run("timeout", &["300", "bash", "-ec", &script], "").await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the guide says:\n{block}\nand it fails: {stderr}");
    }
}
