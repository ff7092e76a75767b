//! Edge (writes). Reads servers and Plugins from a cluster, located as in kubectl: by kubeconfig, context, namespace and
//! name. It writes one annotation.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use crds::{PaperMCServer, Plugin};
use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::input::running;
use crate::output::terminal::Progress;
use from_api::server_name;
use resolver::model::did_you_mean::nearest;

mod error;
mod kubeconfig;
mod list;
mod server_name;

use error::ClusterError;
use server_name::ServerName;

/// The servers to read, and their cluster. All servers of the namespace if none is named.
#[derive(Debug, Args)]
pub(super) struct ClusterSelection {
    /// Servers in the cluster: server/lobby, papermcserver/lobby, pmc/lobby or lobby. Defaults to all servers of the
    /// namespace
    #[arg(value_name = "SERVER", conflicts_with = "files", value_parser = server_name::parse)]
    servers: Vec<ServerName>,
    #[command(flatten)]
    place: ClusterScope,
    /// Use the servers of all namespaces
    #[arg(
        short = 'A',
        long,
        help_heading = "Cluster",
        conflicts_with_all = ["files", "namespace"]
    )]
    all_namespaces: bool,
}

/// The arguments of [`ClusterScope`], which conflict with manifests.
pub(super) const SCOPE_ARGUMENTS: [&str; 3] = ["namespace", "kubeconfig", "context"];

/// Namespace and cluster.
#[derive(Debug, Args)]
pub(super) struct ClusterScope {
    /// The namespace of the servers. Defaults to that of the context
    #[arg(short, long, value_name = "NAME", help_heading = "Cluster")]
    pub(super) namespace: Option<String>,
    /// Path to the kubeconfig file. Defaults to $KUBECONFIG, ~/.kube/config or the service account of the pod
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig context to use. Defaults to the current context
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    context: Option<String>,
}

/// Objects of the cluster.
#[derive(Debug)]
pub(super) struct ClusterObjects {
    /// All servers of the namespace, because a server that is not part of the query may share a plugin with one that
    /// is.
    pub(super) servers: Vec<PaperMCServer>,
    /// All plugins of the namespace.
    pub(super) plugins: Vec<Plugin>,
    /// The names of the servers in the query. `None` means all.
    pub(super) queried: Option<BTreeSet<String>>,
    /// Objects that could not be read.
    pub(super) notes: Vec<String>,
}

/// Reads all objects that a query about these servers needs.
pub(super) async fn read(args: &ClusterSelection) -> Result<ClusterObjects, ClusterError> {
    let ClusterSelection { servers: names, place: scope, all_namespaces } = args;
    let Cluster { client, url, namespace } = connect(scope).await?;
    let namespace = (!all_namespaces).then_some(namespace.as_str());
    let _progress = Progress::show(&format!("asking the API server at {url}"));
    let mut notes = Vec::new();
    let servers = list_servers(&client, namespace, &url, &mut notes).await?;
    let queried = resolve_names(&servers, names, namespace)?;
    let objects = list::list::<Plugin>(&client, namespace, &url).await?;
    let plugins = list::deserialize_all(objects, serde_json::from_value, &mut notes);
    Ok(ClusterObjects { servers, plugins, queried, notes })
}

/// Reads one server: `server/lobby`, `lobby`, or `games/lobby`. Servers that could not be read are reported in `notes`.
pub(super) async fn read_one(
    scope: &ClusterScope,
    written: &str,
    notes: &mut Vec<String>,
) -> Result<PaperMCServer, ClusterError> {
    let (requested_namespace, name) = server_name::parse_with_namespace(written);
    let Cluster { client, url, namespace } = connect(scope).await?;
    let namespace = requested_namespace.unwrap_or(namespace);
    let _progress = Progress::show(&format!("asking the API server at {url}"));
    let servers = list_servers(&client, Some(&namespace), &url, notes).await?;
    let matched = resolve_names(&servers, std::slice::from_ref(&name), Some(&namespace))?.unwrap_or_default();
    Ok(servers.into_iter().find(|server| matched.contains(&server_name(server))).expect("the name is in the list"))
}

/// Annotates this server, written as for [`read_one`], with a request of this instant. Returns its full name.
pub(super) async fn annotate(
    scope: &ClusterScope,
    written: &str,
    (annotation, at): (&str, Timestamp),
    notes: &mut Vec<String>,
) -> Result<String, ClusterError> {
    let server = read_one(scope, written, notes).await?;
    let name = server_name(&server);
    let Cluster { client, url, namespace: _ } = connect(scope).await?;
    let api: Api<PaperMCServer> = Api::namespaced(client, &server.namespace().unwrap_or_default());
    let annotations = json!({"metadata": {"annotations": {annotation: at.as_second().to_string()}}});
    let patch = PatchParams { field_manager: Some("kubectl-nightshift".to_owned()), ..PatchParams::default() };
    match api.patch_metadata(&server.name_any(), &patch, &Patch::Merge(annotations)).await {
        Ok(_) => Ok(name),
        Err(kube::Error::Api(status)) => Err(ClusterError::NotPatched { name, message: status.message.clone() }),
        Err(source) => Err(ClusterError::Unreachable { url, source: Box::new(source) }),
    }
}

/// A connection to a cluster.
struct Cluster {
    client: Client,
    url: String,
    namespace: String,
}

async fn connect(ClusterScope { namespace, kubeconfig, context }: &ClusterScope) -> Result<Cluster, ClusterError> {
    let config = kubeconfig::config(kubeconfig.as_deref(), context.as_deref()).await?;
    let namespace = namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let url = config.cluster_url.to_string();
    let client = Client::try_from(config).map_err(|source| {
        // The kubeconfig's login program runs here.
        let is_login = matches!(source, kube::Error::Auth(_));
        let (url, source) = (url.clone(), Box::new(source));
        if is_login { ClusterError::Credentials { url, source } } else { ClusterError::Client { url, source } }
    })?;
    Ok(Cluster { client, url, namespace })
}

async fn list_servers(
    client: &Client,
    namespace: Option<&str>,
    url: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<PaperMCServer>, ClusterError> {
    let objects = list::list::<PaperMCServer>(client, namespace, url).await?;
    let read_server = |mut object: serde_json::Value| {
        let status = object["status"].take();
        serde_json::from_value::<PaperMCServer>(object).map(|mut server| {
            server.status = Some(running::parse_status(status));
            server
        })
    };
    Ok(list::deserialize_all(objects, read_server, notes))
}

/// Resolves the names to full names of servers.
fn resolve_names(
    servers: &[PaperMCServer],
    names: &[ServerName],
    namespace: Option<&str>,
) -> Result<Option<BTreeSet<String>>, ClusterError> {
    let scope_text = || namespace.map_or_else(|| "any namespace".to_owned(), |name| format!("namespace `{name}`"));
    if servers.is_empty() {
        let searched =
            names.first().map_or_else(|| "PaperMCServer".to_owned(), |name| format!("PaperMCServer `{}`", name.0));
        return Err(ClusterError::NoServers { searched, scope: scope_text() });
    }
    if names.is_empty() {
        return Ok(None);
    }
    let mut chosen = BTreeSet::new();
    for ServerName(name) in names {
        let short_name = |server: &PaperMCServer| server.metadata.name.clone().unwrap_or_default();
        let matched: Vec<String> =
            servers.iter().filter(|server| short_name(server) == *name).map(server_name).collect();
        match matched.as_slice() {
            [one] => {
                chosen.insert(one.clone());
            }
            [] => {
                let mut available: Vec<String> = servers.iter().map(short_name).collect();
                available.sort();
                let suggestion = nearest(name, available.iter().map(String::as_str)).next().map(str::to_owned);
                return Err(ClusterError::NoSuchServer {
                    name: name.clone(),
                    scope: scope_text(),
                    suggestion,
                    available,
                });
            }
            several => {
                return Err(ClusterError::Ambiguous { name: name.clone(), candidates: several.to_vec() });
            }
        }
    }
    Ok(Some(chosen))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(names: &[&str]) -> Vec<PaperMCServer> {
        let server = |name: &&str| {
            let (namespace, name) = name.split_once('/').unwrap();
            serde_json::from_value(serde_json::json!({
                "metadata": {"name": name, "namespace": namespace}, "spec": {"updateStrategy": "auto"},
            }))
            .unwrap()
        };
        names.iter().map(server).collect()
    }

    fn resolve(servers: &[PaperMCServer], name: &str, namespace: Option<&str>) -> String {
        match resolve_names(servers, &[ServerName(name.to_owned())], namespace) {
            Ok(chosen) => format!("{:?}", chosen.unwrap()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn server_name_matches_one_server_or_suggests_nearest() {
        let servers = servers(&["games/arena", "games/lobby"]);
        assert_eq!(resolve(&servers, "lobby", Some("games")), r#"{"games/lobby"}"#);
        assert_eq!(
            resolve(&servers, "loby", Some("games")),
            "there is no PaperMCServer `loby` in namespace `games`: did you mean `lobby`?"
        );
        assert_eq!(
            resolve(&servers, "survival", Some("games")),
            "there is no PaperMCServer `survival` in namespace `games`: there is `arena` or `lobby`"
        );
        assert_eq!(
            resolve(&[], "lobby", Some("gmaes")),
            "there is no PaperMCServer `lobby` in namespace `gmaes`, nor any other: name the namespace with `-n`, or use all with `-A`"
        );
    }

    #[test]
    fn server_name_in_two_namespaces_is_ambiguous() {
        let all = servers(&["games/lobby", "test/lobby"]);
        assert_eq!(
            resolve(&all, "lobby", None),
            "`lobby` is the name of several servers (`games/lobby` or `test/lobby`): name the namespace with `-n`"
        );
    }
}
