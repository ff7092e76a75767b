//! Edge (writes). Simulates faulty volumes: a small file system replaces the folder of a volume that no pod has
//! mounted.
//!
//! It has the same files, and is removed when it is dropped. It can be filled, and made read-only.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::json;

use super::node::state;
use super::server::Server;

/// A pod that is replaced releases its volume for less than a second.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Fields of `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).
const DEVICE: usize = 2;
const MOUNT_POINT: usize = 4;

/// A volume with little space, in place of the one whose size is not enforced.
pub(super) struct SmallVolume {
    folder: PathBuf,
}

impl SmallVolume {
    /// Puts it under the server, which is stopped for it and started again.
    pub(super) async fn mount_for(server: &Server<'_>, size: &str) -> Self {
        let folder = stop(server).await;
        let script = "set -e; old=$(mktemp -d); mount --bind \"$1\" \"$old\"; mount -t tmpfs -o \"size=$2\" test \"$1\"; \
                      cp -a \"$old\"/. \"$1\"; umount \"$old\"; rmdir \"$old\"";
        let output = Command::new("sh").args(["-c", script, "sh"]).arg(&folder).arg(size).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Before the start, so that it is removed also if the start fails.
        let volume = Self { folder };
        start(server).await;
        volume
    }

    /// Fills it completely.
    pub(super) fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        let error = io::copy(&mut io::repeat(0), &mut filler).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    /// Frees the space again.
    pub(super) fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Makes it read-only, like a disk with errors. Returns false if a file was open for writing as long as `patience`,
    /// because the kernel then refuses.
    pub(super) async fn become_read_only(&self, patience: Duration) -> bool {
        let start = Instant::now();
        // The file system, not the mount: a pod that starts at that moment would keep the option of the mount.
        while !self.remount("ro=fs") {
            if start.elapsed() > patience {
                return false;
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        true
    }

    /// Makes it writable, also where the kubelet has mounted it meanwhile, because such a mount stays read-only by
    /// itself.
    pub(super) fn become_writable(&self) {
        assert!(self.remount("rw"), "{} stays read-only", self.folder.display());
        let folder = self.folder.canonicalize().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
        let mounted = mounts.iter().find(|mount| Path::new(mount[MOUNT_POINT]) == folder).expect("a mounted folder");
        for mount in mounts.iter().filter(|mount| mount[DEVICE] == mounted[DEVICE]) {
            let mount_point = Path::new(mount[MOUNT_POINT]);
            assert!(remount(mount_point, "bind,rw"), "{} stays read-only", mount_point.display());
        }
    }

    fn remount(&self, options: &str) -> bool {
        remount(&self.folder, options)
    }
}

fn remount(mount_point: &Path, options: &str) -> bool {
    Command::new("mount")
        .args(["-o", &format!("remount,{options}")])
        .arg(mount_point)
        .output()
        .unwrap()
        .status
        .success()
}

impl Drop for SmallVolume {
    fn drop(&mut self) {
        // A pod may still use it, and keeps it until its end.
        let output = Command::new("umount").arg("-l").arg(&self.folder).output();
        if !output.as_ref().is_ok_and(|output| output.status.success()) {
            eprintln!("{} stays mounted: {output:?}", self.folder.display());
        }
    }
}

/// Stops the server, and returns the folder of its volume, which no pod uses any more.
pub(super) async fn stop(server: &Server<'_>) -> PathBuf {
    server.patch_spec(json!({"replicas": 0})).await;
    server.wait_until_pod_is_deleted().await;
    let claim = server.env.api::<PersistentVolumeClaim>().get(&format!("data-{}-0", server.name)).await.unwrap();
    state().join("volumes").join(claim.spec.and_then(|spec| spec.volume_name).expect("the claim has a volume"))
}

async fn start(server: &Server<'_>) {
    server.patch_spec(json!({"replicas": 1})).await;
    server.wait_until_stable().await;
}
