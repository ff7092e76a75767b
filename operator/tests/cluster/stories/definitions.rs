//! Edge (reads). Tests that the API server accepts every example and rejects every wrong manifest, before the operator
//! sees them.

use std::fs;
use std::path::{Path, PathBuf};

use futures::{StreamExt as _, stream};

use crate::cluster::kubectl::{repository, try_run};
use crate::cluster::test_env::client;

/// Start of the first line of a manifest that the API server must reject. The answer must contain each part of the rest
/// of that line. The rest is a field, `: ` and words about the field, or one sentence that names the field.
const REFUSED: &str = "# refused: ";

fn manifests(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = repository().join("crds/examples").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() > 1);
    files
        .into_iter()
        .map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            (file, text)
        })
        .collect()
}

/// The answer of `kubectl apply` to a manifest, or `Err` if it was rejected. The namespace is removed, because the
/// examples' namespaces do not exist here.
async fn apply(text: &str) -> Result<String, String> {
    let is_not_namespace = |line: &&str| !line.trim_start().starts_with("namespace:");
    let text = text.lines().filter(is_not_namespace).collect::<Vec<_>>().join("\n");
    let output = try_run("kubectl", &["--namespace", "default", "apply", "--dry-run=server", "-f", "-"], &text).await;
    let reply = if output.status.success() { &output.stdout } else { &output.stderr };
    let reply = String::from_utf8_lossy(reply).into_owned();
    if output.status.success() { Ok(reply) } else { Err(reply) }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap().to_string_lossy().into_owned()
}

/// Checks all manifests of a folder, so that one run shows every failure.
async fn assert_no_failure(folder: &str, check: impl AsyncFn(String, String) -> Option<String>) {
    client().await;
    let all = manifests(folder);
    let found: Vec<Option<String>> =
        stream::iter(all).map(|(file, text)| check(name(&file), text)).buffered(4).collect().await;
    let found: Vec<String> = found.into_iter().flatten().collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn api_server_accepts_every_example() {
    assert_no_failure(".", async |file, text| apply(&text).await.err().map(|reply| format!("{file}: {reply}"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn api_server_rejects_wrong_manifests_and_names_the_field() {
    assert_no_failure("refused", async |file, text| {
        let first = text.lines().next().unwrap_or_default();
        let Some(expected) = first.strip_prefix(REFUSED) else {
            return Some(format!("{file} does not say why it is refused"));
        };
        match apply(&text).await {
            Ok(_) => Some(format!("{file} was accepted")),
            Err(reply) if expected.split(": ").all(|part| reply.contains(part)) => None,
            Err(reply) => Some(format!("{file}: `{expected}` is not in: {reply}")),
        }
    })
    .await;
}
