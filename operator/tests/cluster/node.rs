//! Edge (writes). Manipulates processes and firewall of the node, which needs root on the same machine.
//!
//! The module `volume` manipulates its disks.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::thread;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;

use super::kubectl::{repository, run};
use super::test_env::uid_of;

/// The processes of a pod with this program.
pub(super) fn processes(pod_uid: &str, program: &str) -> Vec<u32> {
    let underscored = pod_uid.replace('-', "_"); // the form in systemd's slice names
    let of_pod = |folder: &PathBuf| {
        let groups = fs::read_to_string(folder.join("cgroup")).unwrap_or_default();
        let command = fs::read(folder.join("cmdline")).unwrap_or_default();
        let first = command.split(|byte| *byte == 0).next().unwrap_or_default();
        (groups.contains(pod_uid) || groups.contains(&underscored)) && first == program.as_bytes()
    };
    let folders = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(of_pod);
    folders.filter_map(|folder| folder.file_name()?.to_str()?.parse().ok()).collect()
}

/// Kills the program of a pod as the kernel does when memory runs out.
pub(super) fn kill_9(pod: &Pod, program: &str) {
    assert!(
        try_kill_9(pod, program),
        "no process {program} of pod {:?} on this machine: these tests need to run on the node",
        pod.metadata.name
    );
}

/// The same, but returns false if there is no such process now.
pub(super) fn try_kill_9(pod: &Pod, program: &str) -> bool {
    let kill = |process: u32| Command::new("kill").args(["-9", &process.to_string()]).output();
    let killed =
        processes(&uid_of(pod), program).into_iter().filter(|process| kill(*process).unwrap().status.success());
    killed.count() > 0
}

/// Firewall rules that drop packets. They are removed when this is dropped, also by a test that fails.
pub(super) struct Blocked {
    /// Kept open, because the process of the network path may end before the rules do.
    network: fs::File,
    table: String,
}

/// Drops every connection that a pod of this node begins, to any target, except those of the pods with these addresses.
/// The pods can still answer requests.
pub(super) fn block_all_but(name: &str, pods: &str, free: &[String]) -> Blocked {
    let free = free.join(", ");
    // Before the addresses of Services are translated, and right after the connection is known.
    let chain = format!(
        "type filter hook prerouting priority -150; policy accept;\n\
         ip saddr {pods} ip saddr != {{ {free} }} ct state new drop"
    );
    Blocked::in_network(&state().join("run/network"), name, &chain)
        .expect("the cluster of dev/cluster has a network of its own")
}

/// Blocks the RCON port between a pod's agent and its server.
pub(super) fn cut_rcon(pod: &Pod) -> Blocked {
    try_cut_rcon(pod).expect("the agent runs on this machine")
}

/// The same, but returns `None` if there is no agent now.
pub(super) fn try_cut_rcon(pod: &Pod) -> Option<Blocked> {
    let agent = *processes(&uid_of(pod), "/agent").first()?;
    let chain = "type filter hook output priority 0; policy accept;\ntcp dport 25575 drop";
    Blocked::in_network(Path::new(&format!("/proc/{agent}/ns/net")), "rcon", chain)
}

impl Blocked {
    /// Returns `None` if there is no such network.
    fn in_network(network: &Path, name: &str, chain: &str) -> Option<Self> {
        let blocked = Self { network: fs::File::open(network).ok()?, table: format!("test-{name}") };
        let output = blocked.firewall(&[&format!("table ip {} {{\nchain out {{\n{chain}\n}}\n}}\n", blocked.table)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(blocked)
    }

    fn firewall(&self, arguments: &[&str]) -> Output {
        let network = format!("--net=/proc/{}/fd/{}", std::process::id(), self.network.as_raw_fd());
        Command::new("nsenter").args([&network, "nft"]).args(arguments).output().unwrap()
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let output = self.firewall(&["delete", "table", "ip", &self.table]);
        // A test that fails drops this while it panics, and a second panic would hide the first.
        if !output.status.success() {
            eprintln!("table {} stays: {}", self.table, String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// The state directory of `dev/cluster`.
pub(super) fn state() -> PathBuf {
    std::env::var_os("NIGHTSHIFT_STATE").map_or_else(|| repository().join(".dev"), PathBuf::from)
}

/// This taint makes Kubernetes delete the pods on a node, each after its toleration time.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable:NoExecute";

/// A node without its kubelet: it sends no reports, and its processes run on. Ends when this is dropped, so that a
/// failed test leaves a working cluster.
pub(super) struct Lost {
    node: String,
}

/// Kills a process of the cluster itself, as the kernel does when memory runs out, and waits until it has exited.
/// `dev/cluster up` would take an exiting process for a running one, and start no other. Its children stay alive.
fn kill_service(name: &str) {
    let file = state().join(format!("run/{name}.pid"));
    let process = fs::read_to_string(&file).unwrap_or_else(|error| {
        panic!("{} ({error}): this test needs the cluster of dev/cluster, on this machine", file.display())
    });
    let number = process.lines().next().expect("the first line is the process id");
    let ended = Command::new("kill").args(["-KILL", number]).status().unwrap();
    assert!(ended.success(), "{name} does not run");
    let start = Instant::now();
    while fs::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(start.elapsed() < Duration::from_secs(30), "{name} does not end");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Starts the missing parts of the cluster, and waits for them.
fn start_cluster() {
    let started = Command::new(repository().join("dev/cluster")).arg("up").status();
    // The caller may be about to panic, and a second panic would hide the first.
    if !started.as_ref().is_ok_and(ExitStatus::success) {
        eprintln!("the cluster does not come up again: {started:?}");
    }
}

/// A part of the cluster that was killed. It is started again when this is dropped.
pub(super) struct Killed;

/// Kills a part: `kubelet`, `containerd`, `kube-apiserver`, `etcd`.
pub(super) fn kill_part(name: &str) -> Killed {
    kill_service(name);
    Killed
}

impl Drop for Killed {
    fn drop(&mut self) {
        start_cluster();
    }
}

/// Kills the kubelet, which disconnects the node.
pub(super) fn disconnect_node(node: &str) -> Lost {
    kill_service("kubelet");
    Lost { node: node.to_owned() }
}

impl Lost {
    /// Adds the taint that Kubernetes adds in a cluster with other nodes. If all nodes are unreachable, Kubernetes
    /// assumes that it is disconnected itself, and usually waits.
    pub(super) async fn evict(&self) {
        run("kubectl", &["taint", "--overwrite", "node", &self.node, UNREACHABLE], "").await;
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        start_cluster();
        // Kubernetes also removes the taint some time after the node is back. Then this command fails, which is
        // ignored.
        let taint = format!("{UNREACHABLE}-");
        drop(Command::new("kubectl").args(["taint", "node", &self.node, &taint]).output());
    }
}
