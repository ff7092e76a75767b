//! Pure. Flags and environment of the operator.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Parser, ValueEnum};
use jiff::SignedDuration;
use reqwest::Url;
use resolver::download;
use resolver::upstream::{Settings, Ttl, Upstreams};

use crate::server::plan::StartTimeout;
use crate::store;
use crate::update_slots::Limits;

/// Keeps `PaperMC` servers on the newest set of versions that works together.
#[derive(Debug, Clone, Parser)]
#[command(name = "operator", version, about)]
pub struct Config {
    /// The namespace to watch; empty: all of them.
    #[arg(long, env = "NIGHTSHIFT_WATCH_NAMESPACE", default_value = "")]
    pub watch_namespace: String,

    /// Watch the cluster's nodes, which needs the right to list and watch them: `spec.eviction: OnUpgrade` does.
    #[arg(long, env = "NIGHTSHIFT_WATCH_NODES", action = clap::ArgAction::Set, default_value_t = false)]
    pub watch_nodes: bool,

    /// The namespace the operator itself runs in: its Lease lives there.
    #[arg(long, env = "NIGHTSHIFT_NAMESPACE", default_value = "nightshift-system")]
    pub namespace: String,

    /// Who holds the Lease: the pod's name.
    #[arg(long, env = "NIGHTSHIFT_IDENTITY", default_value = "operator")]
    pub identity: String,

    /// Where `/livez`, `/readyz` and `/metrics` answer.
    #[arg(long, env = "NIGHTSHIFT_HEALTH_ADDRESS", default_value = "0.0.0.0:8081")]
    pub health_address: SocketAddr,

    /// Where the artifact store answers the agents.
    #[arg(long, env = "NIGHTSHIFT_STORE_ADDRESS", default_value = "0.0.0.0:8471")]
    pub store_address: SocketAddr,

    /// The store as agents reach it, such as `http://nightshift-store.nightshift-system.svc:8471`.
    #[arg(long, env = "NIGHTSHIFT_STORE_URL", default_value = "")]
    pub store_url: String,

    /// Where the store and the metadata cache keep their files.
    #[arg(long, env = "NIGHTSHIFT_CACHE_DIR", default_value = "/var/cache/nightshift")]
    pub cache_dir: PathBuf,

    /// The image that holds the agent; usually the operator's own.
    #[arg(long, env = "NIGHTSHIFT_AGENT_IMAGE", default_value = "ghcr.io/nightshift-mc/nightshift:latest")]
    pub agent_image: String,

    /// The server image for servers that name none; `{java}` becomes the Java version that the chosen Paper needs.
    #[arg(long, env = "NIGHTSHIFT_GAME_IMAGE", default_value = "docker.io/itzg/minecraft-server:java{java}")]
    pub game_image: String,

    /// A file with what is known about versions and stands on no page: `docs/reference/facts.md`. Read once, at the start.
    #[arg(long, env = "NIGHTSHIFT_FACTS", value_name = "FILE")]
    pub facts: Option<PathBuf>,

    /// A file with the channels that are told about all servers: `docs/guides/notify.md`. Their Secrets are in the operator's own
    /// namespace. Read once, at the start.
    #[arg(long, env = "NIGHTSHIFT_NOTIFY", value_name = "FILE")]
    pub notify: Option<PathBuf>,

    /// Origins (scheme, host, port) that webhooks may have beside public addresses over https, such as
    /// `http://mattermost.chat.svc:8065`; commas between them.
    #[arg(long, env = "NIGHTSHIFT_NOTIFY_ORIGINS", value_name = "URL", value_delimiter = ',')]
    pub notify_origins: Vec<String>,

    /// How often upstreams are asked for news, in seconds. Their own cache times are honoured on top.
    #[arg(long, env = "NIGHTSHIFT_REFRESH_SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub refresh_seconds: u32,

    /// How long a started server must stay well before its new set counts as proven, in seconds.
    #[arg(long, env = "NIGHTSHIFT_SETTLE_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub settle_seconds: u32,

    /// How long a start may go on without a sign of life (a line in the log, a change in the world) before its set is given up, in seconds.
    #[arg(long, env = "NIGHTSHIFT_START_SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(10..=7_200))]
    pub start_seconds: u32,

    /// The same for the first start of a newer Minecraft, which rewrites the world. Never less than `--start-seconds`: a smaller value counts as
    /// that.
    #[arg(long, env = "NIGHTSHIFT_FIRST_START_SECONDS", default_value_t = 1_800, value_parser = clap::value_parser!(u32).range(10..=86_400))]
    pub first_start_seconds: u32,

    /// Servers worked on at the same time.
    #[arg(long, env = "NIGHTSHIFT_CONCURRENCY", default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrency: u16,

    /// Servers that are updated at the same time; 0: as many as there are. The others wait for their turn in the window.
    #[arg(long, env = "NIGHTSHIFT_MAX_CONCURRENT_UPDATES", default_value_t = 0)]
    pub max_concurrent_updates: u16,

    /// The same for the servers on one node.
    #[arg(long, env = "NIGHTSHIFT_MAX_CONCURRENT_UPDATES_PER_NODE", default_value_t = 0)]
    pub max_concurrent_updates_per_node: u16,

    /// Lines of the log: for people or for machines.
    #[arg(long, env = "NIGHTSHIFT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// What is logged, as `tracing` filters write it.
    #[arg(long, env = "NIGHTSHIFT_LOG", default_value = "info,kube=warn")]
    pub log: String,

    /// Where metadata comes from.
    #[command(flatten)]
    pub upstreams: UpstreamArgs,
}

/// Base URLs of the upstreams; mirrors are named here. Plain http is accepted because an admin wrote it.
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

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For a person at a terminal.
    Text,
}

impl Config {
    /// The repository whose tags Docker Hub is asked for: the game image without tag, when it is on Docker Hub and
    /// leaves the Java to us.
    pub(crate) fn image_repository(&self) -> Option<&str> {
        let (repository, tag) = self.game_image.rsplit_once(':')?;
        (tag.contains("{java}") && repository.starts_with("docker.io/")).then_some(repository)
    }

    /// Where the APIs are.
    pub(crate) fn upstreams(&self) -> anyhow::Result<Upstreams> {
        let UpstreamArgs { fill_url, hangar_url, modrinth_url, docker_hub_url } = &self.upstreams;
        let url = |flag: &str, text: &str| Url::parse(text).with_context(|| format!("--{flag}: `{text}` is not a URL"));
        Ok(Upstreams {
            fill: url("fill-url", fill_url)?,
            // Nobody asks there: servers run as Paper only.
            purpur: Upstreams::default().purpur,
            hangar: url("hangar-url", hangar_url)?,
            modrinth: url("modrinth-url", modrinth_url)?,
            docker_hub: url("docker-hub-url", docker_hub_url)?,
        })
    }

    /// How long a new set is waited for.
    pub(crate) fn pace(&self) -> StartTimeout {
        let seconds = |of: u32| SignedDuration::from_secs(i64::from(of));
        StartTimeout {
            settle: seconds(self.settle_seconds),
            start: seconds(self.start_seconds),
            first_start: seconds(self.first_start_seconds),
        }
    }

    /// How many servers are updated at the same time.
    pub(crate) fn limits(&self) -> Limits {
        let limit = |most: u16| (most > 0).then_some(usize::from(most));
        Limits { together: limit(self.max_concurrent_updates), on_a_node: limit(self.max_concurrent_updates_per_node) }
    }

    /// Where webhooks may lead besides; empty ones are what an empty variable gives.
    pub(crate) fn notify_origins(&self) -> anyhow::Result<Vec<Url>> {
        let given = self.notify_origins.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        given
            .map(|text| match Url::parse(text) {
                Ok(url) if matches!(url.scheme(), "http" | "https") && url.path() == "/" && url.query().is_none() => Ok(url),
                Ok(_) | Err(_) => anyhow::bail!(
                    "--notify-origins: `{text}` is no origin; write scheme, host and port, such as `http://mattermost.chat.svc:8065`"
                ),
            })
            .collect()
    }

    /// How metadata is read: as the upstreams wish, but not more rarely than `--refresh-seconds` says.
    pub(crate) fn fetch_settings(&self) -> anyhow::Result<Settings> {
        let refresh = SignedDuration::from_secs(i64::from(self.refresh_seconds));
        let usual = Ttl::default();
        let ttl = Ttl { paper: usual.paper.min(refresh), releases: usual.releases.min(refresh), ..usual };
        let usual = Settings::new(self.cache_dir.join("catalog"));
        Ok(Settings { upstreams: self.upstreams()?, ttl, files: self.files_dir(), ..usual })
    }

    /// Where all downloaded files lie: the store and the reader of files by URL share them, so that none comes twice.
    pub(crate) fn files_dir(&self) -> PathBuf {
        self.cache_dir.join("files")
    }

    /// What the store may download: whatever an upstream that an admin named gives, and https from public addresses.
    pub(crate) fn store_policy(&self) -> anyhow::Result<store::StorePolicy> {
        Ok(store::StorePolicy::new(download::DownloadPolicy::new(self.upstreams()?.all())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_for_webhooks_are_scheme_host_and_port_and_nothing_more() {
        let of = |text: &str| Config::parse_from(["operator", "--notify-origins", text]).notify_origins();
        assert_eq!(of("").unwrap(), Vec::<Url>::new(), "as the chart writes none");
        assert_eq!(of("http://a.chat.svc:8065, https://b.chat.svc").unwrap().len(), 2);
        for wrong in ["mattermost.chat.svc", "http://a.chat.svc/hooks/x", "ftp://a", "http://a?x"] {
            assert!(of(wrong).unwrap_err().to_string().contains("--notify-origins: `"), "{wrong}");
        }
    }

    #[test]
    fn each_flag_of_the_pace_goes_where_it_belongs_and_half_an_hour_is_given_to_a_newer_minecraft() {
        let of = |flags: &[&str]| {
            let StartTimeout { settle, start, first_start } =
                Config::parse_from([&["operator"][..], flags].concat()).pace();
            [settle, start, first_start].map(|it| it.as_secs())
        };
        assert_eq!(of(&[]), [60, 600, 1_800]);
        assert_eq!(of(&["--settle-seconds=5", "--start-seconds=20", "--first-start-seconds=70"]), [5, 20, 70]);
    }

    #[test]
    fn docker_hub_is_asked_only_when_the_java_is_ours_to_choose() {
        let config = Config::parse_from(["operator"]);
        assert_eq!(config.image_repository(), Some("docker.io/itzg/minecraft-server"));
        let own = Config::parse_from(["operator", "--game-image", "nightshift.dev/paper-stand-in:dev"]);
        assert_eq!(own.image_repository(), None);
    }
}
