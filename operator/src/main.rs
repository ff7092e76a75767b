//! Edge (writes). The operator's process: flags in, controllers until a signal.

use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let config = operator::Config::parse();
    operator::run(config).await
}
