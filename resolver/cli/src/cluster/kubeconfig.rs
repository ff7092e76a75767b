//! Edge (reads). Finds the kubeconfig and its context as kubectl does, or the service account inside a pod.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::error::ClusterError;
use resolver::model::did_you_mean::nearest;

/// Timeout of the connection to the API server. A distant server takes a second. With a missing one the user would
/// otherwise wait for the two minutes of the system.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest pause within a response.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// The configuration of the cluster to connect to.
pub(super) async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, ClusterError> {
    let mut config = match find_kubeconfig(kubeconfig)? {
        Some((kubeconfig, paths)) => config_from_kubeconfig(kubeconfig, paths, context).await?,
        None => Config::incluster().map_err(|source| ClusterError::ServiceAccount { source: Box::new(source) })?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    Ok(config)
}

/// The kubeconfig and its name for messages. `None` inside a pod without a kubeconfig.
fn find_kubeconfig(flag: Option<&Path>) -> Result<Option<(Kubeconfig, String)>, ClusterError> {
    let paths: Vec<PathBuf> = match (flag, std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty())) {
        (Some(path), _) => vec![path.to_owned()],
        (None, Some(list)) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        (None, None) => {
            std::env::var_os("HOME").map(|home| Path::new(&home).join(".kube").join("config")).into_iter().collect()
        }
    };
    let quoted =
        |paths: &[PathBuf]| paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
    // As in kubectl, missing files are skipped, except one that is named by the flag.
    let existing: Vec<&PathBuf> = paths.iter().filter(|path| flag.is_some() || path.exists()).collect();
    let mut merged: Option<Kubeconfig> = None;
    for path in existing {
        let failed = |error| {
            if let KubeconfigError::ReadConfig(source, path) = error {
                ClusterError::NoFile { path, source }
            } else {
                ClusterError::Kubeconfig { paths: quoted(std::slice::from_ref(path)), source: Box::new(error) }
            }
        };
        let next = Kubeconfig::read_from(path).map_err(failed)?;
        merged = Some(match merged {
            Some(first) => first.merge(next).map_err(failed)?,
            None => next,
        });
    }
    match merged {
        Some(kubeconfig) => Ok(Some((kubeconfig, quoted(&paths)))),
        None if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => Ok(None),
        None => {
            let searched =
                if paths.is_empty() { "HOME is not set".to_owned() } else { format!("looked for {}", quoted(&paths)) };
            Err(ClusterError::NoKubeconfig { searched })
        }
    }
}

async fn config_from_kubeconfig(
    kubeconfig: Kubeconfig,
    paths: String,
    context: Option<&str>,
) -> Result<Config, ClusterError> {
    let available: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    match context.or(kubeconfig.current_context.as_deref().filter(|name| !name.is_empty())) {
        None => return Err(ClusterError::NoCurrentContext { available }),
        Some(name) if !available.iter().any(|available_name| available_name == name) => {
            let suggestion = nearest(name, available.iter().map(String::as_str)).next().map(str::to_owned);
            return Err(ClusterError::NoContext { name: name.to_owned(), suggestion, available });
        }
        Some(_) => {}
    }
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|source| ClusterError::Kubeconfig { paths, source: Box::new(source) })
}
