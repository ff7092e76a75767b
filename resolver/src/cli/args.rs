//! Pure. What can be written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use reqwest::Url;

use super::instant;
use super::what_if::{NamedRelease, WhyNotArg};
use crate::upstream::Upstreams;
use crate::version::Minecraft;

/// What should run on a PaperMC server, and why not something newer
#[derive(Debug, Parser)]
#[command(name = "resolver", version, disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 yes, 1 no (no solution, not equal, not ready), 2 anything else. The answer is on stdout, all else on stderr."
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
    /// Whether headings stand out; by itself only on a terminal, and as `NO_COLOR` and `CLICOLOR_FORCE` say
    #[arg(long, value_name = "WHEN", global = true, value_enum, default_value_t = ColorWhen::Auto)]
    pub(super) color: ColorWhen,
}

/// Whether an answer is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorWhen {
    Auto,
    Always,
    Never,
}

impl Command {
    /// Whether the answer is sentences or a table, and not something for a program.
    pub(super) fn is_for_people(&self) -> bool {
        let format = match self {
            Self::Explain(explain) => return explain.format == ExplainFormat::Human,
            Self::Diff(diff) => diff.format,
            Self::Verify(verify) => verify.format,
            Self::Plan(plan) => plan.format,
            Self::Outdated(outdated) => outdated.format,
            Self::Ready(ready) => ready.format,
            Self::Adopt(_)
            | Self::Trust(_)
            | Self::Lock(_)
            | Self::Catalog(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::Man(_) => return false,
        };
        format == Format::Human
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Say what should run on the servers of some manifests, and what holds them back
    Explain(ExplainArgs),
    /// Write down exactly what should run: builds, files, hashes
    Lock(LockArgs),
    /// Compare two locks; exits with 0 if the same would run, with 1 if not
    Diff(DiffArgs),
    /// Check a lock: do its facts hold, is the request met, would it be chosen again? Exits with 0 if all is so
    Verify(VerifyArgs),
    /// Write the manifests that give exactly what runs in a server's directory; it is only read
    Adopt(AdoptArgs),
    /// Say what would be changed on which server, when, and what waits
    Plan(PlanArgs),
    /// Print the command that says of JARs of your own that you checked them on a Minecraft version
    Trust(TrustArgs),
    /// List what is not at its newest, why, and since when
    Outdated(OutdatedArgs),
    /// Say who is ready for a Minecraft version, over all servers; exits with 0 if all are
    Ready(ReadyArgs),
    /// What is known of Paper and the plugins
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Print the JSON Schema of what this command writes
    Schema(SchemaArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum CatalogCommand {
    /// Read all that the servers of some manifests need, for `explain --catalog`
    Fetch(FetchArgs),
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    pub(super) reading: CatalogArgs,
    /// Decide as of another instant: a date (its first moment, UTC) or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = instant::parse)]
    pub(super) at: Option<Timestamp>,
    /// Ask why a server does not run this Minecraft version (exits with 0 if it can), or does not get this release of a plugin, as
    /// `viaversion=5.6.0` (exits with 0 if it does)
    #[arg(long, value_name = "VERSION|PLUGIN=VERSION")]
    pub(super) why_not: Option<WhyNotArg>,
    /// Ask which plugins are ready for this Minecraft version, which are not, and since when they are silent; it need not be
    /// out yet
    #[arg(long, value_name = "VERSION", conflicts_with = "why_not")]
    pub(super) target: Option<Minecraft>,
    /// What if nobody asked for this plugin? Can be repeated
    #[arg(long, value_name = "PLUGIN")]
    pub(super) without: Vec<String>,
    /// What if its authors released this version now, listed for every Minecraft version? Can be repeated
    #[arg(long, value_name = "PLUGIN=VERSION")]
    pub(super) assume: Vec<NamedRelease>,
    /// Sentences, one JSON object a server, or one picture of all
    #[arg(long, value_enum, default_value_t = ExplainFormat::Human)]
    pub(super) format: ExplainFormat,
    /// Answer from this directory alone, as `catalog fetch` filled it; no network is touched
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
    /// Write all that the answer rests on into this file, for somebody else to replay
    #[arg(long, value_name = "FILE")]
    pub(super) save_problem: Option<PathBuf>,
    /// Answer a question that was saved; `--at`, `--why-not`, `--target`, `--without` and `--assume` change it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["files", "catalog", "save_problem"])]
    pub(super) problem: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct FetchArgs {
    #[command(flatten)]
    pub(super) reading: CatalogArgs,
    /// The directory to fill; the cache of `explain` when absent
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct LockArgs {
    #[command(flatten)]
    pub(super) from: FromArgs,
    /// The server, when there are several: `games/lobby`, or `lobby`
    #[arg(long, value_name = "NAME")]
    pub(super) server: Option<String>,
    /// Write a file for each server into this directory instead: games.lobby.lock.json
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The lock to compare with: a file, or - for stdin
    #[arg(value_name = "OLD.lock.json")]
    pub(super) old: String,
    /// The lock to compare: a file, or - for stdin
    #[arg(value_name = "NEW.lock.json")]
    pub(super) new: String,
    /// A table, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The lock: a file, or - for stdin
    #[arg(value_name = "LOCK")]
    pub(super) lock: String,
    #[command(flatten)]
    pub(super) from: FromArgs,
    /// The server to check it for, when it was made for another
    #[arg(long, value_name = "NAME")]
    pub(super) server: Option<String>,
    /// Sentences, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct AdoptArgs {
    /// The directory that has `server.properties` and `plugins`
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
    /// The server's name; what the directory is called when absent
    #[arg(long)]
    pub(super) name: Option<String>,
    /// The namespace to write into the manifests
    #[arg(short, long)]
    pub(super) namespace: Option<String>,
    /// Ask nobody: only projects that were read before are known
    #[arg(long)]
    pub(super) offline: bool,
    /// As `--offline`, with what `catalog fetch` put into this directory
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
    #[command(flatten)]
    pub(super) sources: SourceArgs,
}

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    pub(super) from: FromArgs,
    /// The lock of what runs: a file, or - for stdin; else the status tells. Can be repeated, for several servers
    #[arg(long, value_name = "LOCK")]
    pub(super) running: Vec<String>,
    /// Lines, or one JSON object a server
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// The server: games/lobby, lobby or server/lobby
    #[arg(value_name = "SERVER")]
    pub(super) server: String,
    /// Their names in `plugins`
    #[arg(value_name = "JAR", required = true)]
    pub(super) jars: Vec<String>,
    /// The Minecraft version that you checked them on, or a glob such as 1.21.x
    #[arg(long, value_name = "VERSION")]
    pub(super) minecraft: String,
    /// The server as it is in the cluster, with its status: files, directories, or - for stdin
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", required = cfg!(not(feature = "cluster")), num_args = 1)]
    pub(super) files: Vec<String>,
    /// Where the server is when it is in no file
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(super) place: super::cluster::ClusterScope,
}

#[derive(Debug, Args)]
pub(super) struct OutdatedArgs {
    #[command(flatten)]
    pub(super) from: FromArgs,
    /// A table a server, or one JSON object a server
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct ReadyArgs {
    /// The Minecraft version; it need not be out yet
    #[arg(value_name = "VERSION")]
    pub(super) target: Minecraft,
    #[command(flatten)]
    pub(super) from: FromArgs,
    /// A board, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Which
    #[arg(value_enum)]
    pub(super) of: SchemaName,
}

/// What has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaName {
    /// What `lock` writes
    Lock,
    /// What `explain --format json` writes for each server
    Explanation,
    /// What `diff --format json` writes
    Difference,
    /// What `plan --format json` writes for each server
    Plan,
    /// What `outdated --format json` writes for each server
    Outdated,
    /// What `ready --format json` writes
    Ready,
    /// What `verify --format json` writes
    Verify,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// Of which shell
    #[arg(value_enum)]
    pub(super) shell: ShellKind,
}

/// A shell whose completions are kept working.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ShellKind {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write a page for each command into this directory instead
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
}

/// What a question is about, when nothing else is to be said about it.
#[derive(Debug, Args)]
pub(super) struct FromArgs {
    #[command(flatten)]
    pub(super) reading: CatalogArgs,
    /// Decide as of another instant: a date (its first moment, UTC) or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = instant::parse)]
    pub(super) at: Option<Timestamp>,
    /// Answer from this directory alone, as `catalog fetch` filled it; no network is touched
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
    /// Write all that the answer rests on into this file, for somebody else to replay
    #[arg(long, value_name = "FILE")]
    pub(super) save_problem: Option<PathBuf>,
    /// Answer from what was saved so, without manifests and network
    #[arg(long, value_name = "FILE", conflicts_with_all = ["files", "catalog", "save_problem"])]
    pub(super) problem: Option<PathBuf>,
}

/// What every question needs.
#[derive(Debug, Args)]
pub(super) struct CatalogArgs {
    /// Manifests as kubectl takes them: files, directories, or - for stdin
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", required = cfg!(not(feature = "cluster")), num_args = 1..)]
    pub(super) files: Vec<String>,
    /// Where the objects are when they are in no file
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(super) cluster: super::cluster::InCluster,
    #[command(flatten)]
    pub(super) sources: SourceArgs,
}

/// What metadata is read of, and as of when.
#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// The image repository whose tags give each Paper its Java
    #[arg(
        long,
        value_name = "NAME",
        default_value = "itzg/minecraft-server",
        env = "NIGHTSHIFT_IMAGE",
        hide_env_values = true
    )]
    pub(super) image: String,
    /// What you know about versions beside what is built in: a file as docs/reference/facts.md describes it
    #[arg(long, value_name = "FILE", env = "NIGHTSHIFT_FACTS", hide_env_values = true)]
    pub(super) facts: Option<PathBuf>,
    #[command(flatten)]
    pub(super) upstreams: EndpointArgs,
    /// Takes this for the present instant, for upstreams that replay the past
    #[arg(long, value_name = "TIME", value_parser = instant::parse, env = "NIGHTSHIFT_NOW", hide = true)]
    pub(super) now: Option<Timestamp>,
}

/// Where the upstreams are, when not at home.
#[derive(Debug, Clone, Args)]
pub(super) struct EndpointArgs {
    /// Where PaperMC's Fill is
    #[arg(
        long = "fill-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_FILL_URL",
        hide_env_values = true
    )]
    fill: Option<Url>,
    /// Where PurpurMC is
    #[arg(
        long = "purpur-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_PURPUR_URL",
        hide_env_values = true
    )]
    purpur: Option<Url>,
    /// Where Hangar is
    #[arg(
        long = "hangar-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_HANGAR_URL",
        hide_env_values = true
    )]
    hangar: Option<Url>,
    /// Where Modrinth is
    #[arg(
        long = "modrinth-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_MODRINTH_URL",
        hide_env_values = true
    )]
    modrinth: Option<Url>,
    /// Where Docker Hub is
    #[arg(
        long = "docker-hub-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_DOCKER_HUB_URL",
        hide_env_values = true
    )]
    docker_hub: Option<Url>,
}

impl EndpointArgs {
    pub(super) fn upstreams(&self) -> Upstreams {
        let Self { fill, purpur, hangar, modrinth, docker_hub } = self;
        let home = Upstreams::default();
        Upstreams {
            fill: fill.clone().unwrap_or(home.fill),
            purpur: purpur.clone().unwrap_or(home.purpur),
            hangar: hangar.clone().unwrap_or(home.hangar),
            modrinth: modrinth.clone().unwrap_or(home.modrinth),
            docker_hub: docker_hub.clone().unwrap_or(home.docker_hub),
        }
    }
}

/// How an explanation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ExplainFormat {
    Human,
    Json,
    Svg,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Human,
    Json,
}
