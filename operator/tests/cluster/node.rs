//! Edge (writes). The node from below, which only root on the same machine can reach: processes and firewall.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;

use super::kubectl::{repository, run};
use super::world::uid_of;

/// The processes of a pod whose program is called so.
pub(super) fn processes(pod_uid: &str, program: &str) -> Vec<u32> {
    let underscored = pod_uid.replace('-', "_"); // as systemd names a slice
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
pub(super) async fn kill_9(pod: &Pod, program: &str) {
    let found = processes(&uid_of(pod), program);
    assert!(
        !found.is_empty(),
        "no process {program} of pod {:?} on this machine: these tests need to run on the node",
        pod.metadata.name
    );
    for process in found {
        run("kill", &["-9", &process.to_string()], "").await;
    }
}

/// A rule of the node's firewall that drops what goes to some addresses. Ends when it is removed.
pub(super) struct Blocked {
    table: String,
}

/// Drops every connection to these addresses and ports, from wherever it comes.
pub(super) async fn block(name: &str, to: &[(String, u16)]) -> Blocked {
    let table = format!("test-{name}");
    let rules: String = to
        .iter()
        .map(|(address, port)| format!("ip daddr {address} tcp dport {port} drop\n"))
        .collect::<Vec<String>>()
        .concat();
    let text = format!(
        "table ip {table} {{\nchain out {{\ntype filter hook forward priority -10; policy accept;\n{rules}}}\n}}\n"
    );
    firewall(&["-f", "-"], &text).await;
    Blocked { table }
}

impl Blocked {
    /// Lets everything through again.
    pub(super) async fn remove(self) {
        firewall(&["delete", "table", "ip", &self.table], "").await;
    }
}

async fn firewall(arguments: &[&str], input: &str) {
    let state = std::env::var_os("NIGHTSHIFT_STATE").map_or_else(|| repository().join(".dev"), PathBuf::from);
    let network = format!("--net={}", state.join("run/network").display());
    run("nsenter", &[&[network.as_str(), "nft"], arguments].concat(), input).await;
}
