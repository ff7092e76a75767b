//! Edge (writes). Starts the operator's process with its flags and runs it until a signal.

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let config = operator::Config::from_flags_and_environment();
    operator::run(config).await
}
