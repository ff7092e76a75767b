//! Edge (reads). Tests that the API server accepts every example and rejects every wrong manifest, before the operator
//! sees them.

use std::fs;
use std::path::{Path, PathBuf};

use futures::{StreamExt as _, stream};

use crate::cluster::kubectl::{ask, repository};
use crate::cluster::world::client;

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
    let of_a_namespace = |line: &&str| !line.trim_start().starts_with("namespace:");
    let text = text.lines().filter(of_a_namespace).collect::<Vec<_>>().join("\n");
    let output = ask("kubectl", &["--namespace", "default", "apply", "--dry-run=server", "-f", "-"], &text).await;
    let said = if output.status.success() { &output.stdout } else { &output.stderr };
    let said = String::from_utf8_lossy(said).into_owned();
    if output.status.success() { Ok(said) } else { Err(said) }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap().to_string_lossy().into_owned()
}

/// Checks all manifests of a folder, so that one run shows every failure.
async fn complaints(folder: &str, check: impl AsyncFn(String, String) -> Option<String>) {
    client().await;
    let all = manifests(folder);
    let found: Vec<Option<String>> =
        stream::iter(all).map(|(file, text)| check(name(&file), text)).buffered(4).collect().await;
    let found: Vec<String> = found.into_iter().flatten().collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn api_server_accepts_every_example() {
    complaints(".", async |file, text| apply(&text).await.err().map(|said| format!("{file}: {said}"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn api_server_rejects_wrong_manifests_and_names_the_field() {
    complaints("refused", async |file, text| {
        let first = text.lines().next().unwrap_or_default();
        let Some(words) = first.strip_prefix(REFUSED) else {
            return Some(format!("{file} does not say why it is refused"));
        };
        match apply(&text).await {
            Ok(_) => Some(format!("{file} was accepted")),
            Err(said) if words.split(": ").all(|part| said.contains(part)) => None,
            Err(said) => Some(format!("{file}: `{words}` is not in: {said}")),
        }
    })
    .await;
}
