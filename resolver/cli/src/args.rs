//! Pure. Defines the arguments of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use reqwest::Url;

use super::what_if::{NamedRelease, WhyNotArg};
use crate::input::instant;
use crate::output::terminal::ColorWhen;
use resolver::model::version::Minecraft;
use upstream::Upstreams;

/// Choose the Paper and plugin versions of PaperMC servers, and explain what blocks newer ones
#[derive(Debug, Parser)]
#[command(name = "resolver", version, disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 yes, 1 no (no solution, not equal, not ready), 2 anything else. The answer is on stdout, all else on stderr."
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
    /// When to highlight headings. `auto` does so only on a terminal, and honors `NO_COLOR` and `CLICOLOR_FORCE`
    #[arg(long, value_name = "WHEN", global = true, value_enum, default_value_t = ColorWhen::Auto)]
    pub(super) color: ColorWhen,
}

impl Command {
    /// Whether the answer is text or a table for users, and not data for a program.
    pub(super) fn is_for_users(&self) -> bool {
        let format = match self {
            Self::Explain(explain) => return explain.format == ExplainFormat::Human,
            Self::Diff(diff) => diff.format,
            Self::Verify(verify) => verify.format,
            Self::Plan(plan) => plan.format,
            Self::Outdated(outdated) => outdated.format,
            Self::Ready(ready) => ready.format,
            Self::Adopt(_)
            | Self::Migrate(_)
            | Self::Trust(_)
            | Self::Restart(_)
            | Self::Refresh(_)
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
    /// Explain which versions the servers should run, and what blocks newer ones
    Explain(ExplainArgs),
    /// Write the lock of each server: exact builds, files and hashes
    Lock(LockArgs),
    /// Compare two locks. Exits with 0 if both run the same versions, with 1 if not
    Diff(DiffArgs),
    /// Check that a lock is still correct: its facts hold, it meets the request, and it would be chosen again. Exits
    /// with 0 if so
    Verify(VerifyArgs),
    /// Write manifests that reproduce exactly what an existing server directory runs. The directory is only read
    Adopt(AdoptArgs),
    /// Convert manifests of minecraft-operator (mc.k8s.lex.la). Comments say what has no counterpart
    Migrate(MigrateArgs),
    /// Show which changes are planned on which server, when they are applied, and which updates are waiting
    Plan(PlanArgs),
    /// Print the command that marks unmanaged JARs as tested on a Minecraft version
    Trust(TrustArgs),
    /// Restart a server of the cluster once, without an update. Players are warned first
    Restart(OneServerArgs),
    /// Have the operator look for new releases of a server of the cluster now. Nothing is restarted
    Refresh(OneServerArgs),
    /// List software that is not at its newest version, with the reason and since when
    Outdated(OutdatedArgs),
    /// Show which servers and plugins are ready for a Minecraft version. Exits with 0 if all are
    Ready(ReadyArgs),
    /// Manage the local catalog of Paper and plugin releases
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Print the JSON Schema of an output format
    Schema(SchemaArgs),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum CatalogCommand {
    /// Fetch all metadata that the servers need, for use with `--catalog`
    Fetch(FetchArgs),
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    pub(super) reading: CatalogArgs,
    /// Evaluate as of this time: a date (00:00 UTC) or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = instant::parse)]
    pub(super) at: Option<Timestamp>,
    /// Explain why a server does not run this Minecraft version, or this release of a plugin, for example
    /// `viaversion=5.6.0`. Exits with 0 if it can run the version or gets the release
    #[arg(long, value_name = "VERSION|PLUGIN=VERSION")]
    pub(super) why_not: Option<WhyNotArg>,
    /// Show which plugins are ready for this Minecraft version, which are not, and since when they have had no release.
    /// The version need not be released yet
    #[arg(long, value_name = "VERSION", conflicts_with = "why_not")]
    pub(super) target: Option<Minecraft>,
    /// Evaluate as if this plugin were not requested. Can be repeated
    #[arg(long, value_name = "PLUGIN")]
    pub(super) without: Vec<String>,
    /// Evaluate as if this plugin version were released now for every Minecraft version. Can be repeated
    #[arg(long, value_name = "PLUGIN=VERSION")]
    pub(super) assume: Vec<NamedRelease>,
    /// Output format. human is text, json is one JSON object per server, and svg is one diagram of all servers
    #[arg(long, value_enum, default_value_t = ExplainFormat::Human)]
    pub(super) format: ExplainFormat,
    /// Use only the data in this directory, as written by `catalog fetch`. No network is used
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
    /// Save all input of the answer to this file, so that it can be reproduced elsewhere
    #[arg(long, value_name = "FILE")]
    pub(super) save_problem: Option<PathBuf>,
    /// Answer a query that was saved with `--save-problem`. `--at`, `--why-not`, `--target`, `--without` and `--assume`
    /// modify it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["files", "catalog", "save_problem"])]
    pub(super) problem: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct FetchArgs {
    #[command(flatten)]
    pub(super) reading: CatalogArgs,
    /// The directory to write to. Defaults to the cache of `explain`
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct LockArgs {
    #[command(flatten)]
    pub(super) from: FromArgs,
    /// The server to lock, if there are several: `games/lobby`, or `lobby`
    #[arg(long, value_name = "NAME")]
    pub(super) server: Option<String>,
    /// Write one file per server to this directory, for example games.lobby.lock.json
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
    /// Output format. human is a table, and json is one JSON object
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
    /// The server to check the lock for, if it was made for another one
    #[arg(long, value_name = "NAME")]
    pub(super) server: Option<String>,
    /// Output format. human is text, and json is one JSON object
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct AdoptArgs {
    /// The server directory, which contains `server.properties` and `plugins`
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
    /// The name of the server. Defaults to the name of the directory
    #[arg(long)]
    pub(super) name: Option<String>,
    /// The namespace of the objects in the manifests
    #[arg(short, long)]
    pub(super) namespace: Option<String>,
    /// Use no network. Only projects that are in the cache are found
    #[arg(long)]
    pub(super) offline: bool,
    /// Like `--offline`, with the data that `catalog fetch` wrote to this directory
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
    #[command(flatten)]
    pub(super) sources: SourceArgs,
}

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// Manifests of minecraft-operator, as in kubectl: files, directories, or - for stdin
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", num_args = 1.., required = true)]
    pub(super) files: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    pub(super) from: FromArgs,
    /// The lock of the running version set: a file, or - for stdin. Defaults to the status of the server. Can be
    /// repeated for several servers
    #[arg(long, value_name = "LOCK")]
    pub(super) running: Vec<String>,
    /// Output format. human is text, and json is one JSON object per server
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// The server: games/lobby, lobby or server/lobby
    #[arg(value_name = "SERVER")]
    pub(super) server: String,
    /// File names of the JARs in `plugins`
    #[arg(value_name = "JAR", required = true)]
    pub(super) jars: Vec<String>,
    /// The Minecraft version that the JARs were tested on, or a glob such as 1.21.x
    #[arg(long, value_name = "VERSION")]
    pub(super) minecraft: String,
    /// The server as it is in the cluster, including its status: files, directories, or - for stdin
    #[arg(
        short,
        long = "filename",
        value_name = "FILE|DIR|-",
        num_args = 1,
        conflicts_with_all = super::cluster::SCOPE_ARGUMENTS
    )]
    pub(super) files: Vec<String>,
    /// Location of the server when no file is given
    #[command(flatten)]
    pub(super) place: super::cluster::ClusterScope,
}

#[derive(Debug, Args)]
pub(super) struct OneServerArgs {
    /// The server: games/lobby, lobby or server/lobby
    #[arg(value_name = "SERVER")]
    pub(super) server: String,
    #[command(flatten)]
    pub(super) place: super::cluster::ClusterScope,
}

#[derive(Debug, Args)]
pub(super) struct OutdatedArgs {
    #[command(flatten)]
    pub(super) from: FromArgs,
    /// Output format. human is one table per server, and json is one JSON object per server
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct ReadyArgs {
    /// The Minecraft version. It need not be released yet
    #[arg(value_name = "VERSION")]
    pub(super) target: Minecraft,
    #[command(flatten)]
    pub(super) from: FromArgs,
    /// Output format. human is a table, and json is one JSON object
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// The output format to describe
    #[arg(value_enum)]
    pub(super) of: SchemaName,
}

/// Output formats with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaName {
    /// The output of `lock`
    Lock,
    /// The output of `explain --format json` for each server
    Explanation,
    /// The output of `diff --format json`
    Difference,
    /// The output of `plan --format json` for each server
    Plan,
    /// The output of `outdated --format json` for each server
    Outdated,
    /// The output of `ready --format json`
    Ready,
    /// The output of `verify --format json`
    Verify,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(super) shell: ShellKind,
}

/// A shell with supported completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ShellKind {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write one page per command to this directory
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
}

/// Input of the commands that need no further options.
#[derive(Debug, Args)]
pub(super) struct FromArgs {
    #[command(flatten)]
    pub(super) reading: CatalogArgs,
    /// Evaluate as of this time: a date (00:00 UTC) or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = instant::parse)]
    pub(super) at: Option<Timestamp>,
    /// Use only the data in this directory, as written by `catalog fetch`. No network is used
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
    /// Save all input of the answer to this file, so that it can be reproduced elsewhere
    #[arg(long, value_name = "FILE")]
    pub(super) save_problem: Option<PathBuf>,
    /// Answer from a file that was saved with `--save-problem`, without manifests and network
    #[arg(long, value_name = "FILE", conflicts_with_all = ["files", "catalog", "save_problem"])]
    pub(super) problem: Option<PathBuf>,
}

/// Input that every query needs.
#[derive(Debug, Args)]
pub(super) struct CatalogArgs {
    /// Manifests to read, as in kubectl: files, directories, or - for stdin
    #[arg(
        short,
        long = "filename",
        value_name = "FILE|DIR|-",
        num_args = 1..,
        conflicts_with_all = super::cluster::SCOPE_ARGUMENTS
    )]
    pub(super) files: Vec<String>,
    /// Location of the objects when no file is given
    #[command(flatten)]
    pub(super) cluster: super::cluster::ClusterSelection,
    #[command(flatten)]
    pub(super) sources: SourceArgs,
}

/// Sources of metadata, and the time at which they are read.
#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// The image repository whose tags determine the Java version of each Paper version
    #[arg(
        long,
        value_name = "NAME",
        default_value = "itzg/minecraft-server",
        env = "NIGHTSHIFT_IMAGE",
        hide_env_values = true
    )]
    pub(super) image: String,
    /// A file with additional compatibility facts, in the format of docs/reference/facts.md
    #[arg(long, value_name = "FILE", env = "NIGHTSHIFT_FACTS", hide_env_values = true)]
    pub(super) facts: Option<PathBuf>,
    #[command(flatten)]
    pub(super) upstreams: EndpointArgs,
    /// The current time, for upstreams that replay recorded responses
    #[arg(long, value_name = "TIME", value_parser = instant::parse, env = "NIGHTSHIFT_NOW", hide = true)]
    pub(super) now: Option<Timestamp>,
}

/// URLs of the upstreams, where they are not the default endpoints.
#[derive(Debug, Clone, Args)]
pub(super) struct EndpointArgs {
    /// Base URL of PaperMC's Fill API
    #[arg(
        long = "fill-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_FILL_URL",
        hide_env_values = true
    )]
    fill: Option<Url>,
    /// Base URL of the PurpurMC API
    #[arg(
        long = "purpur-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_PURPUR_URL",
        hide_env_values = true
    )]
    purpur: Option<Url>,
    /// Base URL of the Hangar API
    #[arg(
        long = "hangar-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_HANGAR_URL",
        hide_env_values = true
    )]
    hangar: Option<Url>,
    /// Base URL of the Modrinth API
    #[arg(
        long = "modrinth-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_MODRINTH_URL",
        hide_env_values = true
    )]
    modrinth: Option<Url>,
    /// Base URL of the Docker Hub API
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
        let defaults = Upstreams::default();
        Upstreams {
            fill: fill.clone().unwrap_or(defaults.fill),
            purpur: purpur.clone().unwrap_or(defaults.purpur),
            hangar: hangar.clone().unwrap_or(defaults.hangar),
            modrinth: modrinth.clone().unwrap_or(defaults.modrinth),
            docker_hub: docker_hub.clone().unwrap_or(defaults.docker_hub),
        }
    }
}

/// Output format of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ExplainFormat {
    Human,
    Json,
    Svg,
}

/// Output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Human,
    Json,
}
