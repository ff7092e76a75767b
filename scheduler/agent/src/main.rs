//! Edge (writes). Runs the agent in each server pod: `agent init`, `agent sidecar`, `agent stop`.

use std::process::ExitCode;

use agent::{ErrorChain, config, init, pre_stop_hook, sidecar};
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

#[derive(Debug, Parser)]
#[command(name = "agent", version, about = "Nightshift's agent in a server pod")]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prepares the volume for one start of the server, or waits and reports the reason.
    Init(config::InitConfig),
    /// Monitors, stages, announces, saves and stops, beside the server.
    Sidecar(config::SidecarConfig),
    /// Makes the directory of the server's backups, of which the other containers see nothing else.
    BackupDirectory(config::BackupDirectoryConfig),
    /// Asks the sidecar to stop the server: the preStop hook.
    Stop(config::StopConfig),
}

/// The exit code when this lock must not open the world on the volume.
const REFUSED: u8 = 3;
/// The exit code that a shell reports for a process ended by SIGTERM.
const TERMINATED: u8 = 143;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_ansi(false).init();
    // As PID 1 of its container, a process without a handler ignores SIGTERM.
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(problem) => {
            error!("could not listen for SIGTERM: {problem}");
            return ExitCode::FAILURE;
        }
    };
    match Line::parse().command {
        Command::Init(settings) => tokio::select! {
            outcome = init::run_apart(settings) => match outcome {
                // The locks on the worlds are held until the process ends.
                init::InitResult::Ready(locks) => {
                    std::mem::forget(locks);
                    ExitCode::SUCCESS
                }
                init::InitResult::Refused(_) => ExitCode::from(REFUSED),
                init::InitResult::Retry(_) => ExitCode::FAILURE,
            },
            _ = terminate.recv() => ExitCode::from(TERMINATED),
        },
        Command::Sidecar(settings) => match sidecar::Sidecar::bind(settings).await {
            Ok(sidecar) => {
                let terminated = async move {
                    terminate.recv().await;
                };
                sidecar.run(terminated).await;
                ExitCode::SUCCESS
            }
            Err(problem) => {
                error!("{}", ErrorChain(&problem));
                ExitCode::FAILURE
            }
        },
        Command::BackupDirectory(settings) => {
            // `prepare` reports a volume that cannot be written, if a backup is due.
            if let Err(problem) = agent::backup::repository::create(&settings.backups) {
                warn!("could not make {}: {problem}", settings.backups.display());
            }
            ExitCode::SUCCESS
        }
        Command::Stop(settings) => {
            info!("{:?}", pre_stop_hook::run(&settings).await);
            ExitCode::SUCCESS
        }
    }
}
