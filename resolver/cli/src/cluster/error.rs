//! Pure. Errors of reading a cluster, with what the user can do.

use std::io;
use std::path::PathBuf;

use crate::output::join::or_list;

/// Why a cluster could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error(
        "there is no kubeconfig ({searched}), and this is not a pod of a cluster: give manifests with `-f`, or a kubeconfig with `--kubeconfig`"
    )]
    NoKubeconfig { searched: String },
    #[error("could not read the kubeconfig `{}`", path.display())]
    NoFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("could not use the kubeconfig ({paths})")]
    Kubeconfig {
        paths: String,
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    #[error("could not use the service account of this pod")]
    ServiceAccount {
        #[source]
        source: Box<kube::config::InClusterError>,
    },
    #[error("the kubeconfig has no context `{name}`: {}", suggestion_or_list(suggestion.as_deref(), available))]
    NoContext { name: String, suggestion: Option<String>, available: Vec<String> },
    #[error(
        "the kubeconfig has no current context: {}",
        if available.is_empty() { "there is none: give another kubeconfig with `--kubeconfig`".to_owned() } else {
            format!("name one with `--context`: {}", or_list(available.iter().map(String::as_str)))
        }
    )]
    NoCurrentContext { available: Vec<String> },
    #[error("could not connect to the API server at {url}")]
    Client {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error(
        "could not reach the API server at {url}: check that it is running and that the context (`--context`) is right"
    )]
    Unreachable {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error(
        "could not get the credentials for the API server at {url}: log in again with the tool that your kubeconfig names"
    )]
    Credentials {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error(
        "the API server at {url} rejected your credentials ({message}): log in again, or name another context with `--context`"
    )]
    Unauthorized { url: String, message: String },
    #[error(
        "you may not `list` {resource} in {scope}: ask for a Role with `list` on papermcservers and plugins of nightshift.dev there ({message})"
    )]
    Forbidden { resource: String, scope: String, message: String },
    #[error(
        "the API server at {url} has no {resource}: Nightshift is not installed there (`helm install`, see docs/guides/install.md), or it is another cluster (`--context`)"
    )]
    NotInstalled { url: String, resource: String },
    #[error("the API server at {url} did not list {resource}: {message}")]
    Refused { url: String, resource: String, message: String },
    #[error("could not read the response of {url}: check that it is an API server")]
    Unreadable {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error(
        "could not annotate PaperMCServer `{name}`: {message}. You need `patch` on papermcservers of nightshift.dev in its namespace"
    )]
    NotPatched { name: String, message: String },
    #[error("there is no {searched} in {scope}{}", other_namespaces_hint(scope, searched))]
    NoServers { searched: String, scope: String },
    #[error("there is no PaperMCServer `{name}` in {scope}: {}", suggestion_or_list(suggestion.as_deref(), available))]
    NoSuchServer { name: String, scope: String, suggestion: Option<String>, available: Vec<String> },
    #[error(
        "`{name}` is the name of several servers ({}): name the namespace with `-n`",
        or_list(candidates.iter().map(String::as_str))
    )]
    Ambiguous { name: String, candidates: Vec<String> },
}

fn suggestion_or_list(suggestion: Option<&str>, available: &[String]) -> String {
    /// A longer list of names does not help the user.
    const MAX_NAMES: usize = 12;
    match suggestion {
        Some(suggestion) => format!("did you mean `{suggestion}`?"),
        None if available.is_empty() => "it has none".to_owned(),
        None if available.len() > MAX_NAMES => format!("there are {}", available.len()),
        None => format!("there is {}", or_list(available.iter().map(String::as_str))),
    }
}

fn other_namespaces_hint(scope: &str, searched: &str) -> &'static str {
    match (scope == "any namespace", searched.contains('`')) {
        (true, true) => ", nor any other",
        (true, false) => "",
        (false, true) => ", nor any other: name the namespace with `-n`, or use all with `-A`",
        (false, false) => ": name the namespace with `-n`, or use all with `-A`",
    }
}
