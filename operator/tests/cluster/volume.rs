//! Edge (writes). A volume that is worse than those of the cluster: it has little room. It takes the place of the folder behind a volume that
//! no pod has mounted, holds what that one held, and ends when it is dropped. While it is there it can be filled, and become read-only.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::json;

use super::node::state;
use super::server::Server;

/// A pod that is replaced leaves its volume alone for less than a second.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Fields of `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).
const DEVICE: usize = 2;
const PLACE: usize = 4;

/// A volume with little room, in place of the one whose size nobody enforces.
pub(super) struct SmallVolume {
    folder: PathBuf,
}

impl SmallVolume {
    /// Under the server, which is stopped for it and started again.
    pub(super) async fn under(server: &Server<'_>, size: &str) -> Self {
        let folder = stop(server).await;
        let script = "set -e; old=$(mktemp -d); mount --bind \"$1\" \"$old\"; mount -t tmpfs -o \"size=$2\" test \"$1\"; \
                      cp -a \"$old\"/. \"$1\"; umount \"$old\"; rmdir \"$old\"";
        let said = Command::new("sh").args(["-c", script, "sh"]).arg(&folder).arg(size).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        // Before the start, which may fail: then it ends, too.
        let volume = Self { folder };
        start(server).await;
        volume
    }

    /// Leaves no room on it.
    pub(super) fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        let error = io::copy(&mut io::repeat(0), &mut filler).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    /// Gives the room back.
    pub(super) fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Nobody writes to it any more, as to a disk that had errors. No: as long as `patience` somebody had a file open for that, and then the
    /// kernel does not.
    pub(super) async fn become_read_only(&self, patience: Duration) -> bool {
        let start = Instant::now();
        // The file system, and not the place where it is mounted: a pod that comes just then would keep what is said of the place.
        while !self.remount("ro=fs") {
            if start.elapsed() > patience {
                return false;
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
        true
    }

    /// It is as it was, also where the kubelet has mounted it meanwhile: such a place stays read-only by itself.
    pub(super) fn become_writable(&self) {
        assert!(self.remount("rw"), "{} stays read-only", self.folder.display());
        let folder = self.folder.canonicalize().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
        let own = mounts.iter().find(|mount| Path::new(mount[PLACE]) == folder).expect("it is mounted");
        for mount in mounts.iter().filter(|mount| mount[DEVICE] == own[DEVICE]) {
            let place = Path::new(mount[PLACE]);
            assert!(remount(place, "bind,rw"), "{} stays read-only", place.display());
        }
    }

    fn remount(&self, how: &str) -> bool {
        remount(&self.folder, how)
    }
}

fn remount(place: &Path, how: &str) -> bool {
    Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(place).output().unwrap().status.success()
}

impl Drop for SmallVolume {
    fn drop(&mut self) {
        // A pod has it still: it keeps it to its end.
        let said = Command::new("umount").arg("-l").arg(&self.folder).output();
        if !said.as_ref().is_ok_and(|said| said.status.success()) {
            eprintln!("{} stays mounted: {said:?}", self.folder.display());
        }
    }
}

/// Stops the server, and returns the folder of its volume, which no pod has any more.
pub(super) async fn stop(server: &Server<'_>) -> PathBuf {
    server.change(json!({"replicas": 0})).await;
    server.gone().await;
    let claim = server.world.api::<PersistentVolumeClaim>().get(&format!("data-{}-0", server.name)).await.unwrap();
    state().join("volumes").join(claim.spec.and_then(|spec| spec.volume_name).expect("it has a volume"))
}

async fn start(server: &Server<'_>) {
    server.change(json!({"replicas": 1})).await;
    server.settled().await;
}
