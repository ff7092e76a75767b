//! Pure. What can be written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use reqwest::Url;

use super::instant;
use crate::upstream::Upstreams;
use crate::version::Minecraft;

/// What should run on a PaperMC server, and why not something newer
#[derive(Debug, Parser)]
#[command(name = "resolver", version, disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 solved, 1 no solution, 2 anything else. The answer is on stdout, all else on stderr."
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Say what should run on the servers of some manifests, and what holds them back
    Explain(Explain),
    /// What is known of Paper and the plugins
    #[command(subcommand)]
    Catalog(CatalogCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum CatalogCommand {
    /// Read all that the servers of some manifests need, for `explain --catalog`
    Fetch(Fetch),
}

// With upstreams set by environment, clap would name those flags as if they were asked for.
#[derive(Debug, Args)]
#[command(override_usage = "resolver explain [OPTIONS] -f <FILE|DIR|->...")]
pub(super) struct Explain {
    #[command(flatten)]
    pub(super) reading: Reading,
    /// Decide as of another instant: a date (its first moment, UTC) or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = instant::parse)]
    pub(super) at: Option<Timestamp>,
    /// Ask why a server does not run this Minecraft version; exits with 0 if it can
    #[arg(long, value_name = "VERSION")]
    pub(super) why_not: Option<Minecraft>,
    /// Sentences, or one JSON object a server
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
    /// Answer from this directory alone, as `catalog fetch` filled it; no network is touched
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(override_usage = "resolver catalog fetch [OPTIONS] -f <FILE|DIR|->...")]
pub(super) struct Fetch {
    #[command(flatten)]
    pub(super) reading: Reading,
    /// The directory to fill; the cache of `explain` when absent
    #[arg(long, value_name = "DIR")]
    pub(super) catalog: Option<PathBuf>,
}

/// What every question needs.
#[derive(Debug, Args)]
pub(super) struct Reading {
    /// Manifests as kubectl takes them: files, directories, or - for stdin
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", required = true, num_args = 1..)]
    pub(super) files: Vec<String>,
    /// The image repository whose tags give each Paper its Java
    #[arg(
        long,
        value_name = "NAME",
        default_value = "itzg/minecraft-server",
        env = "NIGHTSHIFT_IMAGE",
        hide_env_values = true
    )]
    pub(super) image: String,
    #[command(flatten)]
    pub(super) upstreams: Addresses,
    /// Takes this for the present instant, for upstreams that replay the past
    #[arg(long, value_name = "TIME", value_parser = instant::parse, env = "NIGHTSHIFT_NOW", hide = true)]
    pub(super) now: Option<Timestamp>,
}

/// Where the upstreams are, when not at home.
#[derive(Debug, Args)]
pub(super) struct Addresses {
    /// Where PaperMC's Fill is
    #[arg(
        long = "fill-url",
        value_name = "URL",
        help_heading = "Upstreams",
        env = "NIGHTSHIFT_FILL_URL",
        hide_env_values = true
    )]
    fill: Option<Url>,
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

impl Addresses {
    pub(super) fn upstreams(&self) -> Upstreams {
        let Self { fill, hangar, modrinth, docker_hub } = self;
        let home = Upstreams::default();
        Upstreams {
            fill: fill.clone().unwrap_or(home.fill),
            hangar: hangar.clone().unwrap_or(home.hangar),
            modrinth: modrinth.clone().unwrap_or(home.modrinth),
            docker_hub: docker_hub.clone().unwrap_or(home.docker_hub),
        }
    }
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Human,
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_fit_together() {
        Arguments::command().debug_assert();
    }
}
