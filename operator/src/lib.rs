//! Edge (writes). Runs the operator, the only part of Nightshift that writes to Kubernetes.
//!
//! It carries out and reports what `resolver` and `scheduler` decide.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::timer::Timer;
use anyhow::Context as _;
use artifacts::http_client::ClientError;
use artifacts::http_server;
use crds::{PaperMCServer, Plugin};
use kube::Client;
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use resolver::model::compatibility_facts::CompatibilityFacts;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tracing::{info, warn};
use upstream::Fetcher;

use crate::node_watch::watcher;

mod agent_client;
#[cfg(test)]
mod agent_digest;
mod caches;
mod catalog;
mod clock;
mod config;
mod context;
mod controller;
mod debounce;
mod error_chain;
mod k8s;
mod kubernetes_version;
mod leader_election;
mod node_watch;
mod notify;
mod plugin;
mod priority;
mod random_secret;
mod requeue;
mod schema_version;
mod server;
#[cfg(test)]
mod simulation;
mod solve_groups;
mod solver;
mod store;
mod telemetry;
mod template_revision;
mod timer;
mod update_slots;

use catalog::CatalogKeeper;
pub use config::{Config, LogFormat, UpstreamArgs};
use context::Context;
use controller::Controllers;
use k8s::client::limited_client;
use k8s::events::EventPublisher;
use k8s::namespace_scope::scoped;
use leader_election::LeaseHolder;
use node_watch::Nodes;
use notify::backend::KubeBackend;
use notify::{Channel, HttpSender, Notifier};
use priority::Priority;
use solver::Solver;
use store::Store;
use telemetry::health::{Readiness, ReadyGate};
use update_slots::UpdateSlots;

/// How often the operator checks for missing or outdated CRDs. It waits for them and does not exit.
const CRD_PAUSE: Duration = Duration::from_secs(2);

/// Runs until a signal or until the Lease is lost.
///
/// # Errors
/// When a port is taken, the cluster cannot be reached at all, its Kubernetes is too old, or the Lease was lost.
pub async fn run(config: Config) -> anyhow::Result<()> {
    telemetry::logs::start(&config)?;
    let facts = read_facts(config.facts.as_deref())?;
    let cluster_channels = read_channels(config.notify.as_deref(), &config.namespace)?;
    // Must be first: it also installs the crypto provider that the Kubernetes client needs.
    let http = agent_http()?;
    let cluster = kube::Config::infer().await.context(
        "could not find a Kubernetes cluster: set KUBECONFIG or run in a \
    cluster",
    )?;
    // The Lease is renewed by a client of its own, so that it never waits for other requests.
    let lease_client = Client::try_from(cluster.clone()).context("could not create the client for the Lease")?;
    let client = limited_client(cluster).context("could not create the client for the API server")?;
    let readiness = Readiness::default();
    let metrics = telemetry::metrics::Metrics::default();
    let health = listen(config.health_address).await?;
    tokio::spawn(http_server::serve(health, telemetry::health::router(readiness.clone()), telemetry::LIMITS));
    let metrics_listener = listen(config.metrics_address).await?;
    let metrics_router = telemetry::metrics::router(metrics.renderer());
    tokio::spawn(http_server::serve(metrics_listener, metrics_router, telemetry::LIMITS));
    let store = Arc::new(Store::new(&config.files_dir(), config.store_policy()?)?);
    let files = listen(config.store_address).await?;
    tokio::spawn(http_server::serve(files, store.clone().serve(), store::LIMITS));

    wait_for_crds(&client, &config).await;
    kubernetes_version::check(&client).await?;
    leader_election::mark_pod(client.clone(), config.clone(), false).await;
    readiness.open(ReadyGate::Crds);
    let lease = leader_election::lead(lease_client, &config).await?;
    readiness.open(ReadyGate::Leader);
    tokio::spawn(leader_election::mark_pod(client.clone(), config.clone(), true));
    info!(fence = lease.fence, "leading");

    let fetcher = Fetcher::new(config.fetch_settings()?).context("could not open the metadata cache")?;
    let catalog = CatalogKeeper::default();
    let (wake, woken) = mpsc::unbounded_channel();
    spawn_reader(&catalog, fetcher, &config, wake.clone());
    let (wake_debounced, woken_debounced) = mpsc::unbounded_channel();
    tokio::spawn(debounce::wake_debounced(woken_debounced, wake.clone()));
    let notifier = build_notifier(&client, &config, lease.fence, &metrics, wake.clone(), cluster_channels)?;
    notifier.watch_cluster();
    let controllers = Controllers::new(&client, &config);
    let ctx = Arc::new(Context {
        events: EventPublisher::new(client.clone(), config.identity.clone()),
        caches: caches::Caches::default(),
        plugins: controllers.plugins.store(),
        servers: controllers.servers.store(),
        matched_servers: controllers.matched_servers.clone(),
        timer: Timer::start(clock::now).await.context("could not start the timer")?,
        nodes: Nodes::new(config.watch_nodes),
        update_slots: UpdateSlots::new(config.limits(), metrics.update_slots.clone()),
        priority: Priority::for_passes(config.concurrency),
        fence: lease.fence,
        client,
        config,
        facts,
        http,
        solver: Solver::start(metrics.solves.clone()).context("could not start the solver's thread")?,
        catalog,
        store,
        notifier,
        metrics,
        wake,
        wake_debounced,
    });
    if ctx.nodes.are_watched() {
        tokio::spawn(watcher::watch(ctx.clone()));
    }
    tokio::select! {
        () = controllers.run(ctx, woken, readiness) => { info!("stopped by a signal"); Ok(()) }
        () = lease.lost => anyhow::bail!("lost the Lease: another replica leads, and two replicas must not write"),
    }
}

/// Reads the upstreams while this process leads.
fn spawn_reader(
    catalog: &CatalogKeeper,
    fetcher: Fetcher,
    config: &Config,
    wake: mpsc::UnboundedSender<ObjectRef<PaperMCServer>>,
) {
    let pause = Duration::from_secs(u64::from(config.refresh_seconds));
    let wake = move |(namespace, name): caches::Key| {
        // Sending fails only when the process ends.
        drop(wake.send(ObjectRef::new(&name).within(&namespace)));
    };
    tokio::spawn(catalog.clone().run(fetcher, config.image_repository().map(str::to_owned), pause, wake));
}

/// Creates the notifier, which delivers notifications while this process leads. A pass records the results.
fn build_notifier(
    client: &Client,
    config: &Config,
    fence: u64,
    metrics: &telemetry::metrics::Metrics,
    wake: mpsc::UnboundedSender<ObjectRef<PaperMCServer>>,
    cluster: Vec<Channel>,
) -> anyhow::Result<Notifier<KubeBackend>> {
    let lease_holder = LeaseHolder::new(config, fence);
    let sender = HttpSender::new(config.notify_origins()?).context("could not create the client for webhooks")?;
    let wake = Box::new(move |(namespace, name): &caches::Key| {
        // Sending fails only when the process ends.
        drop(wake.send(ObjectRef::new(name).within(namespace)));
    });
    let backend = KubeBackend { client: client.clone(), lease_holder, requires_label: config.require_secret_label };
    Ok(Notifier::new(backend, sender, wake, metrics.notifications.clone(), cluster))
}

/// Reads the cluster's compatibility facts. Without them the operator would install what they rule out, so an error in
/// the file stops it.
fn read_facts(file: Option<&Path>) -> anyhow::Result<CompatibilityFacts> {
    let Some(file) = file else { return Ok(CompatibilityFacts::default()) };
    let facts = from_api::parse_facts(&read(file, "--facts")?);
    facts.with_context(|| format!("{} (--facts, `facts` of the chart)", file.display()))
}

/// Reads the channels that are notified about all servers. An error in the file stops the operator, because users do
/// not notice missing notifications.
fn read_channels(file: Option<&Path>, namespace: &str) -> anyhow::Result<Vec<Channel>> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let channels = notify::cluster_config::read(&read(file, "--notify")?, namespace);
    channels.with_context(|| format!("{} (--notify, `notify.channels` of the chart)", file.display()))
}

fn read(file: &Path, flag: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("could not read `{}` ({flag})", file.display()))
}

async fn wait_for_crds(client: &Client, config: &Config) {
    let one = ListParams::default().limit(1);
    for (servers, plugins) in scoped::<PaperMCServer>(client, config).into_iter().zip(scoped::<Plugin>(client, config))
    {
        let namespace = servers.namespace.as_deref().unwrap_or("(all)");
        loop {
            let problem = match (servers.api.list(&one).await, plugins.api.list(&one).await) {
                (Ok(_), Ok(_)) => break,
                (Err(problem), _) | (_, Err(problem)) => problem,
            };
            warn!(namespace, error = %error_chain::ErrorChain(&problem), "{}", list_problem(&problem));
            tokio::time::sleep(CRD_PAUSE).await;
        }
    }
    loop {
        match schema_version::outdated_crds(client).await {
            Ok(None) => return,
            Ok(Some(outdated)) => warn!("{outdated}"),
            Err(problem) => warn!(error = %error_chain::ErrorChain(&problem), "{}", list_problem(&problem)),
        }
        tokio::time::sleep(CRD_PAUSE).await;
    }
}

/// Why the objects of both kinds cannot be listed, and what to do.
fn list_problem(problem: &kube::Error) -> &'static str {
    let kube::Error::Api(answer) = problem else { return "the API server does not answer" };
    match answer.code {
        404 => {
            "the CRDs are not served yet; let the chart install them (`crds.install: true`), or apply `nightshift-VERSION-crds.yaml` of the release"
        }
        401 | 403 => "the operator may not list PaperMCServers and Plugins; install the roles of the chart (rbac)",
        _ => "the API server cannot list PaperMCServers and Plugins",
    }
}

/// The client for agents, which the operator reaches by pod address: without a proxy, and without redirects.
fn agent_http() -> Result<reqwest::Client, ClientError> {
    artifacts::http_client::client(None, |builder| {
        builder.no_proxy().redirect(reqwest::redirect::Policy::none()).connect_timeout(Duration::from_secs(3))
    })
}

async fn listen(address: std::net::SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("could not listen on {address}"))
}

#[cfg(test)]
mod tests {
    use kube::core::{Status, response::StatusSummary};

    use super::*;

    #[test]
    fn missing_crds_differ_from_missing_rights() {
        let problem = |code| {
            let status = Status { status: Some(StatusSummary::Failure), code, ..Status::default() };
            list_problem(&kube::Error::Api(Box::new(status)))
        };
        assert!(problem(404).contains("apply `nightshift-VERSION-crds.yaml`"));
        assert!(problem(403).contains("may not list"));
        assert!(!problem(500).contains("install"));
    }
}
