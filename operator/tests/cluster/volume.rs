//! Edge (writes). Volumes that are worse than those of the cluster: one with little room, and one whose disk fails. Each takes the
//! place of the folder behind a volume that no pod has mounted, holds what that one held, and ends when it is dropped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::json;

use super::node::state;
use super::server::Server;
use super::wait::{SOON, until};

/// Puts what the folder `$1` holds into what is then mounted there by the words that follow.
const TAKE_ITS_PLACE: &str = "set -e; folder=$1; shift; old=$(mktemp -d); mount --bind \"$folder\" \"$old\"; mount \"$@\" \"$folder\"; \
                              cp -a \"$old\"/. \"$folder\"; umount \"$old\"; rmdir \"$old\"";

/// A volume with little room, in place of the one whose size nobody enforces.
pub(super) struct SmallVolume {
    folder: PathBuf,
}

impl SmallVolume {
    /// Under the server, which is stopped for it and started again.
    pub(super) async fn under(server: &Server<'_>, size: &str) -> Self {
        let folder = stop(server).await;
        take_its_place(&folder, &["-t", "tmpfs", "-o", &format!("size={size}"), "test"]);
        // Before the start, which may fail: then it ends, too.
        let volume = Self { folder };
        start(server).await;
        volume
    }
}

impl Drop for SmallVolume {
    fn drop(&mut self) {
        unmount(&self.folder);
    }
}

/// A disk of its own, which can fail: the file system is read-only then, as ext4 makes itself when the disk below it does not
/// write what it should.
pub(super) struct FailingDisk {
    folder: PathBuf,
    image: PathBuf,
}

impl FailingDisk {
    /// Under the server, which is stopped for it and started again.
    pub(super) async fn under(server: &Server<'_>) -> Self {
        let image = state().join(format!("{}-{}.ext4", server.world.namespace, server.name));
        let folder = stop(server).await;
        shell("set -e; truncate -s 256M \"$1\"; mkfs.ext4 -q -F \"$1\"", &[&image]);
        take_its_place(&folder, &["-o", "loop,errors=remount-ro", &image.display().to_string()]);
        let disk = Self { folder, image };
        start(server).await;
        disk
    }

    /// From now on nothing can be written any more; what is open can be read.
    pub(super) fn fail(&self) {
        shell(
            "set -e; echo 1 > \"/sys/fs/ext4/$(basename \"$(findmnt -no SOURCE \"$1\")\")/trigger_fs_error\"",
            &[&self.folder],
        );
    }

    /// What a person does while the server is stopped: looks the file system over, and mounts it again.
    pub(super) async fn mend(&self) {
        shell("umount \"$1\"", &[&self.folder]);
        until("nobody has the disk any more", SOON, async || {
            let said = Command::new("losetup").arg("-j").arg(&self.image).output().unwrap();
            if said.stdout.is_empty() { Ok(()) } else { Err(String::from_utf8_lossy(&said.stdout).into_owned()) }
        })
        .await;
        // 1: it found something, and mended it.
        let script = "{ fsck.ext4 -fp \"$2\" || [ $? -eq 1 ]; } && mount -o loop,errors=remount-ro \"$2\" \"$1\"";
        shell(script, &[&self.folder, &self.image]);
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        unmount(&self.folder);
        if let Err(error) = std::fs::remove_file(&self.image) {
            eprintln!("{} stays: {error}", self.image.display());
        }
    }
}

/// Stops the server, and returns the folder of its volume, which no pod has any more.
async fn stop(server: &Server<'_>) -> PathBuf {
    server.change(json!({"replicas": 0})).await;
    server.gone().await;
    let claim = server.world.api::<PersistentVolumeClaim>().get(&format!("data-{}-0", server.name)).await.unwrap();
    state().join("volumes").join(claim.spec.and_then(|spec| spec.volume_name).expect("it has a volume"))
}

async fn start(server: &Server<'_>) {
    server.change(json!({"replicas": 1})).await;
    server.settled().await;
}

fn take_its_place(folder: &Path, by: &[&str]) {
    let said = Command::new("sh").args(["-c", TAKE_ITS_PLACE, "sh"]).arg(folder).args(by).output().unwrap();
    assert_done(&said);
}

fn shell(script: &str, paths: &[&Path]) {
    assert_done(&Command::new("sh").args(["-c", script, "sh"]).args(paths).output().unwrap());
}

fn assert_done(said: &Output) {
    assert!(
        said.status.success(),
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
}

fn unmount(folder: &Path) {
    // A pod has it still: it keeps it to its end.
    let said = Command::new("umount").arg("-l").arg(folder).output();
    if !said.as_ref().is_ok_and(|said| said.status.success()) {
        eprintln!("{} stays mounted: {said:?}", folder.display());
    }
}
