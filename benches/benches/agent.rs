//! Edge (writes). Measures memory and CPU of an idle agent beside a running server.
//!
//! The agent and the fake server are separate processes (this program again), so that the kernel counts each figure for one process. The reference is
//! the fake server: the lowest cost of any program that answers pings and RCON.

use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use agent::config;
use agent::sidecar::Sidecar;
use benches::budgets::Bounds;
use benches::measure::{self, print_line};
use clap::Parser as _;
use fixtures::fake_paper::{self, Config};
use fixtures::jar::{self, Minecraft};

/// The role of this process. Its other parameters are in the environment variables below.
const PART: &str = "NIGHTSHIFT_BENCH_PART";
const DATA: &str = "NIGHTSHIFT_DATA";
const SERVER_PORT: &str = "SERVER_PORT";
const RCON_PORT: &str = "NIGHTSHIFT_RCON_PORT";
const LISTEN: &str = "NIGHTSHIFT_BENCH_LISTEN";

const PASSWORD: &str = "bench";
const MINECRAFT: Minecraft<'_> = Minecraft { id: "1.21.10", world_version: 4556, protocol: Some(773), java: 21 };
const SERVER_JAR: &str = "paper.jar";

/// How long the processes are measured. This is long enough for several observations, pings and kubelet probes.
const MEASURED_FOR: Duration = Duration::from_mins(1);
/// How long both processes may take to start.
const STARTED_WITHIN: Duration = Duration::from_mins(1);
/// The limits of the design for the agent, in MiB and in percent of a core.
const MAX_MEMORY_MIB: f64 = 12.0;
const MAX_CPU_PERCENT: f64 = 0.1;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    sidecar: config::SidecarConfig,
}

fn main() -> ExitCode {
    let runtime = || tokio::runtime::Runtime::new().expect("the runtime can start");
    match env::var(PART).as_deref() {
        Ok("agent") => {
            runtime().block_on(async {
                let Line { sidecar } =
                    Line::parse_from(["agent", "--listen", &env::var(LISTEN).expect("set by the parent")]);
                let sidecar = Sidecar::bind(sidecar).await.expect("ports and directories are free");
                sidecar.run(std::future::pending()).await;
            });
            ExitCode::SUCCESS
        }
        Ok(_) => {
            let data = env::var(DATA).expect("set by the parent");
            let port = |name| env::var(name).expect("set by the parent");
            let config =
                Config::for_tests(Path::new(&data), &Path::new(&data).join(SERVER_JAR), MINECRAFT.id, PASSWORD)
                    .with("SERVER_PORT", &port(SERVER_PORT))
                    .with("RCON_PORT", &port(RCON_PORT))
                    .with("STAND_IN_PLAYERS", "20");
            runtime().block_on(fake_paper::run(config));
            ExitCode::SUCCESS
        }
        Err(_) => measure_both(),
    }
}

fn measure_both() -> ExitCode {
    let (data, shared) = (tempfile::tempdir().expect("temp directory"), tempfile::tempdir().expect("temp directory"));
    fs::write(data.path().join(SERVER_JAR), jar::paper(&MINECRAFT, 129, "http://127.0.0.1:1/server.jar"))
        .expect("a writable directory");
    fs::create_dir_all(data.path().join("cache")).expect("a writable directory");
    fs::write(data.path().join("cache/mojang_1.21.10.jar"), jar::mojang(&MINECRAFT)).expect("a writable directory");
    fs::write(shared.path().join("agent-key"), "ab".repeat(32)).expect("a writable directory");
    let (game, rcon, listen) = (free_address(), free_address(), free_address());
    let start = |part: &str| {
        let program = env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command.current_dir(data.path()).env(PART, part).env(DATA, data.path()).env("NIGHTSHIFT_SHARED", shared.path());
        command.env(SERVER_PORT, game.port().to_string()).env(RCON_PORT, rcon.port().to_string());
        command.env("NIGHTSHIFT_GAME_PORT", game.port().to_string()).env("NIGHTSHIFT_RCON_PASSWORD", PASSWORD);
        command.env("NIGHTSHIFT_AGENT_KEY_FILE", shared.path().join("agent-key")).env("NIGHTSHIFT_POD_UID", "bench");
        Part(command.env(LISTEN, listen.to_string()).spawn().expect("this program starts"))
    };
    let (server, agent) = (start("server"), start("agent"));
    let deadline = Instant::now() + STARTED_WITHIN;
    while !is_started(listen) {
        assert!(Instant::now() < deadline, "the agent did not see the server start");
        sleep(Duration::from_millis(200));
    }
    let before = [&server, &agent].map(Part::cpu);
    let measured_since = Instant::now();
    // A kubelet probes every five seconds.
    while measured_since.elapsed() < MEASURED_FOR {
        sleep(Duration::from_secs(5));
        assert!(is_started(listen), "the agent no longer sees the server");
    }
    let seconds = measured_since.elapsed().as_secs_f64();
    print_line(&format!("idle for {seconds:.0} s, 20 players on"));
    let report = |name: &str, part: &Part, before: Duration| {
        let share = 100.0 * part.cpu().saturating_sub(before).as_secs_f64() / seconds;
        let (now, peak) = (part.memory("VmRSS"), part.memory("VmHWM"));
        print_line(&format!("{name}: {now:.1} MiB, at most {peak:.1} MiB; {share:.3} % of a core"));
        (now, share)
    };
    report("reference: the fake-paper server", &server, before[0]);
    let (memory, share) = report("agent", &agent, before[1]);
    let mut bounds = Bounds::new("agent");
    bounds.check_max("memory of an idle agent", memory, MAX_MEMORY_MIB, "MiB");
    bounds.check_max("processor of an idle agent", share, MAX_CPU_PERCENT, "% of a core");
    bounds.finish()
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port is free")
}

/// The answer that a startup probe would get.
fn is_started(agent: SocketAddr) -> bool {
    let request = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(agent)?;
        stream.write_all(b"GET /started HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    };
    request().is_ok_and(|response| response.starts_with("HTTP/1.1 200"))
}

/// A child process. Dropping it kills the process.
struct Part(Child);

impl Part {
    /// The CPU time of all its threads, in the kernel's nanoseconds. Clock ticks are too coarse for a load of a thousandth of a core.
    fn cpu(&self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0.id())).expect("the process is running");
        let spent = threads.flatten().filter_map(|thread| {
            let schedstat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            schedstat.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(spent.sum())
    }

    /// A memory figure of the process, in MiB.
    #[expect(clippy::cast_precision_loss, reason = "the value is a few thousand at most")]
    fn memory(&self, field: &str) -> f64 {
        measure::status(&self.0.id().to_string(), field) as f64 / 1024.0
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
