//! Edge (writes). The agent in each server pod: `agent init`, `agent sidecar`, `agent stop`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use scheduler::agent::{Chain, config, init, pre_stop_hook, sidecar};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info};

#[derive(Debug, Parser)]
#[command(name = "agent", version, about = "Nightshift's hands in a server pod")]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes the volume ready for one start of the server, or waits and says why.
    Init(config::InitConfig),
    /// Watches, stages, announces, saves and stops, beside the server.
    Sidecar(config::SidecarConfig),
    /// Asks the sidecar to stop the server: the preStop hook.
    Stop(config::StopConfig),
}

/// The world on the volume must not be opened by this lock.
const REFUSED: u8 = 3;
/// As a shell says it of a process that SIGTERM ended.
const TERMINATED: u8 = 143;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_ansi(false).init();
    // As PID 1 of its container a process without a handler ignores SIGTERM.
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(problem) => {
            error!("could not listen for SIGTERM: {problem}");
            return ExitCode::FAILURE;
        }
    };
    match Line::parse().command {
        Command::Init(settings) => tokio::select! {
            outcome = init::run(&settings) => match outcome {
                // The locks on the worlds go with the process, and not before.
                init::InitResult::Ready(locks) => {
                    std::mem::forget(locks);
                    ExitCode::SUCCESS
                }
                init::InitResult::Refused(_) => ExitCode::from(REFUSED),
                init::InitResult::TryAnew(_) => ExitCode::FAILURE,
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
                error!("{}", Chain(&problem));
                ExitCode::FAILURE
            }
        },
        Command::Stop(settings) => {
            info!("{:?}", pre_stop_hook::run(&settings).await);
            ExitCode::SUCCESS
        }
    }
}
