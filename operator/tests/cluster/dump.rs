//! Edge (reads). Saves the state after a failed test for its analysis.

use std::fs;
use std::path::{Path, PathBuf};

use super::kubectl::try_run;

/// Writes objects, Events and logs of a namespace below `target/cluster-dumps`, and returns the folder.
pub(super) async fn write(test: &str, namespace: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder in `target`");
    let folder = target.join("cluster-dumps").join(test);
    fs::remove_dir_all(&folder).ok(); // of an earlier run
    fs::create_dir_all(&folder).unwrap();
    let kinds = "papermcservers,plugins,statefulsets,controllerrevisions,pods,persistentvolumeclaims,configmaps,services,deployments,leases";
    save(&folder, namespace, "objects.yaml", &["get", kinds, "-o", "yaml"]).await;
    save(&folder, namespace, "objects.txt", &["get", kinds, "-o", "wide"]).await;
    save(&folder, namespace, "events.txt", &["get", "events", "--sort-by=.metadata.creationTimestamp"]).await;
    let pods = try_run("kubectl", &["--namespace", namespace, "get", "pods", "-o", "name"], "").await.stdout;
    for pod in String::from_utf8_lossy(&pods).lines() {
        let file = format!("{}.log", pod.trim_start_matches("pod/"));
        save(&folder, namespace, &file, &["logs", pod, "--all-containers", "--prefix", "--ignore-errors"]).await;
        let file = format!("{}.previous.log", pod.trim_start_matches("pod/"));
        save(
            &folder,
            namespace,
            &file,
            &["logs", pod, "--all-containers", "--prefix", "--previous", "--ignore-errors"],
        )
        .await;
    }
    folder
}

async fn save(folder: &Path, namespace: &str, file: &str, arguments: &[&str]) {
    let output = try_run("kubectl", &[&["--namespace", namespace], arguments].concat(), "").await;
    if output.status.success() && !output.stdout.is_empty() {
        fs::write(folder.join(file), output.stdout).unwrap();
    }
}
