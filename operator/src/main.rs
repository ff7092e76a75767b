//! Edge (writes). Starts the operator's process with its flags and runs it until a signal.

use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let config = operator::Config::parse();
    operator::run(config).await
}
