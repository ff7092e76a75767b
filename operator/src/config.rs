//! Pure. Defines the flags and environment variables of the operator.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use artifacts::download;
use clap::{Args, Command, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use jiff::SignedDuration;
use reqwest::Url;
use upstream::{Settings, Ttl, Upstreams};
use validate::pod_security::PodTemplatePolicy;

use crate::leader_election::LEASE;
use crate::server::plan::StartTimeout;
use crate::store;
use crate::update_slots::Limits;

/// The version. A program with a test feature says so, and `dev/release` refuses it by these words.
const VERSION: &str = if cfg!(feature = "wrong-clock") {
    concat!(env!("CARGO_PKG_VERSION"), " with the test feature wrong-clock")
} else {
    env!("CARGO_PKG_VERSION")
};

/// Keeps `PaperMC` servers on the newest set of versions that works together.
#[derive(Debug, Clone, Parser)]
#[command(name = "operator", version = VERSION, about)]
pub struct Config {
    /// The namespaces to watch, separated by commas. Without this flag the operator watches all namespaces.
    #[arg(long, env = "NIGHTSHIFT_WATCH_NAMESPACES", value_name = "NAME", value_delimiter = ',')]
    pub watch_namespaces: Vec<String>,

    /// Watch the cluster's nodes, which needs the permission to list and watch them. `spec.eviction: OnUpgrade` needs
    /// it.
    #[arg(long, env = "NIGHTSHIFT_WATCH_NODES", action = clap::ArgAction::Set, default_value_t = false)]
    pub watch_nodes: bool,

    /// The namespace the operator itself runs in, which also holds its Lease.
    #[arg(long, env = "NIGHTSHIFT_NAMESPACE", default_value = "nightshift-system")]
    pub namespace: String,

    /// The identity of the Lease holder: the pod's name.
    #[arg(long, env = "NIGHTSHIFT_IDENTITY", default_value = "operator")]
    pub identity: String,

    /// The name of the Lease. Two installations in one namespace need two names.
    #[arg(long, env = "NIGHTSHIFT_LEASE", default_value = LEASE)]
    pub lease: String,

    /// The address that serves `/livez` and `/readyz`.
    #[arg(long, env = "NIGHTSHIFT_HEALTH_ADDRESS", default_value = "0.0.0.0:8080")]
    pub health_address: SocketAddr,

    /// The address that serves `/metrics`.
    #[arg(long, env = "NIGHTSHIFT_METRICS_ADDRESS", default_value = "0.0.0.0:8081")]
    pub metrics_address: SocketAddr,

    /// The address that serves the artifact store to the agents.
    #[arg(long, env = "NIGHTSHIFT_STORE_ADDRESS", default_value = "0.0.0.0:8471")]
    pub store_address: SocketAddr,

    /// The URL of the store for agents, such as `http://nightshift-store.nightshift-system.svc:8471`.
    #[arg(long, env = "NIGHTSHIFT_STORE_URL", default_value = "")]
    pub store_url: String,

    /// The directory for the files of the store and of the metadata cache.
    #[arg(long, env = "NIGHTSHIFT_CACHE_DIR", default_value = "/var/cache/nightshift")]
    pub cache_dir: PathBuf,

    /// The image that contains the agent, usually the operator's own.
    #[arg(long, env = "NIGHTSHIFT_AGENT_IMAGE", default_value = "ghcr.io/nightshift-mc/nightshift:latest")]
    pub agent_image: String,

    /// The digest of the agent in that image. The pod of a server keeps its image as long as its agent has this digest. Set
    /// it only for an agent that is not of this build.
    #[arg(long, env = "NIGHTSHIFT_AGENT_DIGEST", default_value = env!("AGENT_DIGEST"))]
    pub agent_digest: String,

    /// The Secrets with which server pods pull the agent's image, separated by commas. They are in the namespace of each
    /// server.
    #[arg(long, env = "NIGHTSHIFT_IMAGE_PULL_SECRETS", value_name = "NAME", value_delimiter = ',')]
    pub image_pull_secrets: Vec<String>,

    /// What `spec.podTemplate` of a server may say: Restricted, Baseline (as the Pod Security Standards name the
    /// rules) or Any.
    #[arg(long, env = "NIGHTSHIFT_POD_TEMPLATE_POLICY", default_value_t = PodTemplatePolicy::Baseline)]
    pub pod_template_policy: PodTemplatePolicy,

    /// Use a Secret that a server names only if it has the label `nightshift.dev/allow-use: "true"`.
    #[arg(long, env = "NIGHTSHIFT_REQUIRE_SECRET_LABEL", action = clap::ArgAction::Set, default_value_t = true)]
    pub require_secret_label: bool,

    /// The server image for servers that name none. `{java}` becomes the Java version that the chosen Paper needs.
    #[arg(long, env = "NIGHTSHIFT_GAME_IMAGE", default_value = "docker.io/itzg/minecraft-server:java{java}")]
    pub game_image: String,

    /// A file with compatibility facts that no upstream page states: `docs/reference/facts.md`. Read once, at the
    /// start.
    #[arg(long, env = "NIGHTSHIFT_FACTS", value_name = "FILE")]
    pub facts: Option<PathBuf>,

    /// A file with the channels that are notified about all servers: `docs/guides/notify.md`. Their Secrets are in the
    /// operator's own namespace. Read once, at the start.
    #[arg(long, env = "NIGHTSHIFT_NOTIFY", value_name = "FILE")]
    pub notify: Option<PathBuf>,

    /// Origins (scheme, host, port) that webhooks may use in addition to public https addresses, such as
    /// `http://mattermost.chat.svc:8065`. Separated by commas.
    #[arg(long, env = "NIGHTSHIFT_NOTIFY_ORIGINS", value_name = "URL", value_delimiter = ',')]
    pub notify_origins: Vec<String>,

    /// How often the operator asks upstreams for news, in seconds. It also honours their cache times.
    #[arg(long, env = "NIGHTSHIFT_REFRESH_SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub refresh_seconds: u32,

    /// How long a started server must run without a failure before its new version set counts as verified, in seconds.
    #[arg(long, env = "NIGHTSHIFT_SETTLE_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub settle_seconds: u32,

    /// How long a start may go on without a sign of life before the operator gives up its version set, in seconds. A
    /// line in the log or a change in the world is a sign of life.
    #[arg(long, env = "NIGHTSHIFT_START_SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(10..=7_200))]
    pub start_seconds: u32,

    /// The same for the first start of a newer Minecraft, which rewrites the world. Never less than `--start-seconds`:
    /// a smaller value is raised to it.
    #[arg(long, env = "NIGHTSHIFT_FIRST_START_SECONDS", default_value_t = 1_800, value_parser = clap::value_parser!(u32).range(10..=86_400))]
    pub first_start_seconds: u32,

    /// The number of servers that the operator works on at the same time.
    #[arg(long, env = "NIGHTSHIFT_CONCURRENCY", default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrency: u16,

    /// The number of servers that are updated at the same time. 0 means no limit. The other servers wait for an update
    /// slot in their window.
    #[arg(long, env = "NIGHTSHIFT_MAX_CONCURRENT_UPDATES", default_value_t = 0)]
    pub max_concurrent_updates: u16,

    /// The same for the servers on one node.
    #[arg(long, env = "NIGHTSHIFT_MAX_CONCURRENT_UPDATES_PER_NODE", default_value_t = 0)]
    pub max_concurrent_updates_per_node: u16,

    /// The log format: text for a terminal or JSON for machines.
    #[arg(long, env = "NIGHTSHIFT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// The log filter, in the syntax of `tracing`.
    #[arg(long, env = "NIGHTSHIFT_LOG", default_value = "info,kube=warn,kube_client::client::builder=off")]
    pub log: String,

    /// The sources of metadata.
    #[command(flatten)]
    pub upstreams: UpstreamArgs,
}

/// Base URLs of the upstreams, or of mirrors. Plain http is accepted because an admin configured it.
#[derive(Debug, Clone, Args)]
pub struct UpstreamArgs {
    /// `PaperMC` Fill v3.
    #[arg(long, env = "NIGHTSHIFT_FILL_URL", default_value = "https://fill.papermc.io/v3")]
    pub fill_url: String,
    /// Hangar v1.
    #[arg(long, env = "NIGHTSHIFT_HANGAR_URL", default_value = "https://hangar.papermc.io/api/v1")]
    pub hangar_url: String,
    /// Modrinth v2.
    #[arg(long, env = "NIGHTSHIFT_MODRINTH_URL", default_value = "https://api.modrinth.com/v2")]
    pub modrinth_url: String,
    /// Docker Hub v2.
    #[arg(long, env = "NIGHTSHIFT_DOCKER_HUB_URL", default_value = "https://hub.docker.com/v2")]
    pub docker_hub_url: String,
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// Text for a terminal.
    Text,
}

impl Config {
    /// Reads flags and environment variables. Ends the process if one is wrong.
    pub fn from_flags_and_environment() -> Self {
        let command = ignore_empty_variables(Self::command(), |name| std::env::var_os(name));
        let read = Self::from_arg_matches(&command.get_matches());
        read.unwrap_or_else(|error| error.exit())
    }

    /// The namespaces to watch, each once. Empty means all.
    pub(crate) fn watched_namespaces(&self) -> BTreeSet<String> {
        names(&self.watch_namespaces)
    }

    /// The Secrets with which server pods pull the agent's image, each once.
    pub(crate) fn pull_secrets(&self) -> BTreeSet<String> {
        names(&self.image_pull_secrets)
    }

    /// The repository whose tags are read from Docker Hub: the game image without its tag. `None` if the image is not
    /// on Docker Hub or its tag has no `{java}`.
    pub(crate) fn image_repository(&self) -> Option<&str> {
        let (repository, tag) = self.game_image.rsplit_once(':')?;
        (tag.contains("{java}") && repository.starts_with("docker.io/")).then_some(repository)
    }

    /// The URLs of the upstream APIs.
    pub(crate) fn upstreams(&self) -> anyhow::Result<Upstreams> {
        let UpstreamArgs { fill_url, hangar_url, modrinth_url, docker_hub_url } = &self.upstreams;
        let url = |flag: &str, text: &str| Url::parse(text).with_context(|| format!("--{flag}: `{text}` is not a URL"));
        Ok(Upstreams {
            fill: url("fill-url", fill_url)?,
            // The operator never uses this one: servers run as Paper only.
            purpur: Upstreams::default().purpur,
            hangar: url("hangar-url", hangar_url)?,
            modrinth: url("modrinth-url", modrinth_url)?,
            docker_hub: url("docker-hub-url", docker_hub_url)?,
        })
    }

    /// Timeouts of the verification of a new version set.
    pub(crate) fn start_timeout(&self) -> StartTimeout {
        let seconds = |of: u32| SignedDuration::from_secs(i64::from(of));
        StartTimeout {
            settle: seconds(self.settle_seconds),
            start: seconds(self.start_seconds),
            first_start: seconds(self.first_start_seconds),
        }
    }

    /// Limits of concurrent updates.
    pub(crate) fn limits(&self) -> Limits {
        let limit = |most: u16| (most > 0).then_some(usize::from(most));
        Limits { total: limit(self.max_concurrent_updates), per_node: limit(self.max_concurrent_updates_per_node) }
    }

    /// Origins that webhooks may use in addition to public addresses. An empty environment variable gives one empty
    /// text, which is ignored.
    pub(crate) fn notify_origins(&self) -> anyhow::Result<Vec<Url>> {
        let given = self.notify_origins.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        given
            .map(|text| match Url::parse(text) {
                Ok(url) if matches!(url.scheme(), "http" | "https") && url.path() == "/" && url.query().is_none() => {
                    Ok(url)
                }
                Ok(_) | Err(_) => anyhow::bail!(
                    "--notify-origins: `{text}` is not an origin: write scheme, host and port, such as \
                    `http://mattermost.chat.svc:8065`"
                ),
            })
            .collect()
    }

    /// Settings of the metadata reader: the upstreams' own cache times, but at most `--refresh-seconds`.
    pub(crate) fn fetch_settings(&self) -> anyhow::Result<Settings> {
        let refresh = SignedDuration::from_secs(i64::from(self.refresh_seconds));
        let usual = Ttl::default();
        let ttl = Ttl { paper: usual.paper.min(refresh), releases: usual.releases.min(refresh), ..usual };
        let usual = Settings::new(self.cache_dir.join("catalog"));
        Ok(Settings { upstreams: self.upstreams()?, ttl, files: self.files_dir(), ..usual })
    }

    /// The directory of all downloaded files. The store and the reader of files by URL share it, so that no file is
    /// downloaded twice.
    pub(crate) fn files_dir(&self) -> PathBuf {
        self.cache_dir.join("files")
    }

    /// The download rules of the store: anything from a configured upstream, and https from public addresses.
    pub(crate) fn store_policy(&self) -> anyhow::Result<store::StorePolicy> {
        Ok(store::StorePolicy::new(download::DownloadPolicy::new(self.upstreams()?.all())))
    }
}

/// An empty environment variable counts as a missing one, because templates pass empty values. clap would parse it.
fn ignore_empty_variables(command: Command, value: impl Fn(&OsStr) -> Option<OsString>) -> Command {
    command.mut_args(|arg| {
        let is_empty = arg.get_env().and_then(&value).is_some_and(|value| value.to_string_lossy().trim().is_empty());
        if is_empty { arg.env(None::<&'static str>) } else { arg }
    })
}

/// The names of a list, each once and without empty ones.
fn names(list: &[String]) -> BTreeSet<String> {
    list.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_variables_never_end_operator() {
        let variables = |command: &Command| {
            command.get_arguments().filter_map(|arg| arg.get_env().map(OsStr::to_owned)).collect::<Vec<_>>()
        };
        let all = variables(&Config::command());
        assert!(all.len() > 25 && all.contains(&"NIGHTSHIFT_REFRESH_SECONDS".into()), "{all:?}");
        for empty in ["", " "] {
            let command = ignore_empty_variables(Config::command(), |_| Some(empty.into()));
            assert_eq!(variables(&command), [""; 0], "each variable is ignored, so its default counts");
        }
        let only_notify = |name: &OsStr| Some(if name == "NIGHTSHIFT_NOTIFY" { "" } else { "30" }.into());
        let rest = variables(&ignore_empty_variables(Config::command(), only_notify));
        assert_eq!(rest.len(), all.len() - 1);
        assert!(!rest.contains(&"NIGHTSHIFT_NOTIFY".into()));
    }

    #[test]
    fn watched_namespaces_are_listed_once_and_empty_means_all() {
        let watched = |flags: &[&str]| {
            Config::parse_from([&["operator"][..], flags].concat()).watched_namespaces().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(watched(&[]), [""; 0]);
        assert_eq!(watched(&["--watch-namespaces="]), [""; 0]);
        assert_eq!(watched(&["--watch-namespaces=games, lobby,games"]), ["games", "lobby"]);
    }

    #[test]
    fn pod_template_policy_defaults_to_baseline() {
        let policy = |flags: &[&str]| {
            Config::try_parse_from([&["operator"][..], flags].concat()).map(|config| config.pod_template_policy)
        };
        assert_eq!(policy(&[]).unwrap(), PodTemplatePolicy::Baseline);
        assert_eq!(policy(&["--pod-template-policy=Any"]).unwrap(), PodTemplatePolicy::Any);
        assert!(policy(&["--pod-template-policy=any"]).is_err());
    }

    #[test]
    fn notify_origins_accept_only_scheme_host_port() {
        let parse_origins = |text: &str| Config::parse_from(["operator", "--notify-origins", text]).notify_origins();
        assert_eq!(parse_origins("").unwrap(), Vec::<Url>::new(), "the chart passes an empty value");
        assert_eq!(parse_origins("http://a.chat.svc:8065, https://b.chat.svc").unwrap().len(), 2);
        for wrong in ["mattermost.chat.svc", "http://a.chat.svc/hooks/x", "ftp://a", "http://a?x"] {
            assert!(parse_origins(wrong).unwrap_err().to_string().contains("--notify-origins: `"), "{wrong}");
        }
    }

    #[test]
    fn start_timeout_flags_reach_their_fields() {
        let timeouts = |flags: &[&str]| {
            let StartTimeout { settle: settle_time, start, first_start } =
                Config::parse_from([&["operator"][..], flags].concat()).start_timeout();
            [settle_time, start, first_start].map(|duration| duration.as_secs())
        };
        assert_eq!(timeouts(&[]), [60, 600, 1_800]);
        assert_eq!(timeouts(&["--settle-seconds=5", "--start-seconds=20", "--first-start-seconds=70"]), [5, 20, 70]);
    }

    #[test]
    fn image_tags_are_read_only_for_default_repository() {
        let config = Config::parse_from(["operator"]);
        assert_eq!(config.image_repository(), Some("docker.io/itzg/minecraft-server"));
        let custom_image = Config::parse_from(["operator", "--game-image", "nightshift.dev/fake-paper:dev"]);
        assert_eq!(custom_image.image_repository(), None);
    }
}
