//! Pure. Errors of reading a cluster, with what the user can do.

use std::io;
use std::path::PathBuf;

use crate::cli::join::listed;

/// Why a cluster could not be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ClusterError {
    #[error(
        "there is no kubeconfig ({looked_for}), and this is no pod of a cluster; give manifests with `-f`, or a kubeconfig with `--kubeconfig`"
    )]
    NoKubeconfig { looked_for: String },
    #[error("could not read the kubeconfig `{}`", path.display())]
    NoFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("could not use the kubeconfig ({named})")]
    Kubeconfig {
        named: String,
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    #[error("could not use the service account of this pod")]
    ServiceAccount {
        #[source]
        source: Box<kube::config::InClusterError>,
    },
    #[error("the kubeconfig has no context `{name}`; {}", did_you_mean(meant.as_deref(), there))]
    NoContext { name: String, meant: Option<String>, there: Vec<String> },
    #[error(
        "the kubeconfig has no current context; {}",
        if there.is_empty() { "nor any other: give another with `--kubeconfig`".to_owned() } else {
            format!("name one with `--context`: {}", listed(there.iter().map(String::as_str)))
        }
    )]
    NoCurrentContext { there: Vec<String> },
    #[error("could not make a connection to the API server at {url}")]
    Client {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("could not reach the API server at {url}; is it up, and is this the right context (`--context`)?")]
    Unreachable {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("could not get the credentials for the API server at {url}; log in anew as your kubeconfig does it")]
    Credentials {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error(
        "the API server at {url} does not know you ({said}); log in anew, or name another context with `--context`"
    )]
    Unauthorized { url: String, said: String },
    #[error(
        "you may not `list` {resource} in {place}; ask for a Role with `list` on papermcservers and plugins of nightshift.dev there ({said})"
    )]
    Forbidden { resource: String, place: String, said: String },
    #[error(
        "the API server at {url} has no {resource}: Nightshift's definitions are not installed there (`kubectl apply --server-side -f crds/manifests`), or it is another cluster (`--context`)"
    )]
    NotInstalled { url: String, resource: String },
    #[error("the API server at {url} did not list {resource}: {said}")]
    Refused { url: String, resource: String, said: String },
    #[error("could not read what the API server at {url} says; is it one?")]
    Unreadable {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("there is no {looked_for} in {place}{}", nor_any_other(place, looked_for))]
    NoServers { looked_for: String, place: String },
    #[error("there is no PaperMCServer `{name}` in {place}; {}", did_you_mean(meant.as_deref(), there))]
    NoSuchServer { name: String, place: String, meant: Option<String>, there: Vec<String> },
    #[error(
        "`{name}` is the name of several servers: {}; name the namespace with `-n`",
        listed(meant.iter().map(String::as_str))
    )]
    Ambiguous { name: String, meant: Vec<String> },
}

fn did_you_mean(meant: Option<&str>, there: &[String]) -> String {
    /// A longer list of names does not help the user.
    const MOST: usize = 12;
    match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if there.is_empty() => "it has none at all".to_owned(),
        None if there.len() > MOST => format!("there are {}", there.len()),
        None => format!("there is {}", listed(there.iter().map(String::as_str))),
    }
}

fn nor_any_other(place: &str, looked_for: &str) -> &'static str {
    match (place == "any namespace", looked_for.contains('`')) {
        (true, true) => ", nor any other",
        (true, false) => "",
        (false, true) => ", nor any other; name the namespace with `-n`, or take all with `-A`",
        (false, false) => "; name the namespace with `-n`, or take all with `-A`",
    }
}
