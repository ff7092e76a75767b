//! Edge (writes). Tests that the init container ends with the path of a hostile item on its volume, and ends at once on SIGTERM.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;

use agent_api::termination_message::VolumeRejected;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::volume::{Init, level_dat, served_set};

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

fn directory(path: &Path) {
    fs::create_dir(path).unwrap();
}

fn link_to_environment(path: &Path) {
    symlink("/proc/self/environ", path).unwrap();
}

fn link_to_zeros(path: &Path) {
    symlink("/dev/zero", path).unwrap();
}

fn endless(path: &Path) {
    fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn init_container_names_hostile_item_and_does_not_open_it() {
    type Place = fn(&Path);
    let (_web, _, set) = served_set().await;
    for (path, place, problem) in [
        ("server.properties", pipe as Place, "is a named pipe"),
        ("server.properties", directory, "is a directory"),
        ("server.properties", link_to_environment, "is a link"),
        ("server.properties", link_to_zeros, "is a link"),
        ("server.properties", endless, "has more than 1048576 bytes"),
        (".nightshift/manifest.json", pipe, "is a named pipe"),
        (".nightshift/manifest.json", directory, "is a directory"),
        (".nightshift/manifest.json", link_to_zeros, "is a link"),
        (".nightshift/manifest.json", endless, "has more than 16777216 bytes"),
        ("world/session.lock", pipe, "is a named pipe"),
        ("world/session.lock", directory, "is a directory"),
        ("world/session.lock", link_to_zeros, "is a link"),
        ("plugins", link_to_environment, "is a link"),
        (".nightshift/store", link_to_environment, "is a link"),
        ("world_nether", link_to_environment, "is a link to a world"),
    ] {
        let init = Init::new(&set);
        init.put("world/level.dat", &level_dat(4556, "1.21.10"));
        let item = init.data.path().join(path);
        fs::create_dir_all(item.parent().unwrap()).unwrap();
        place(&item);
        let status = tokio::task::block_in_place(|| init.run());
        assert_eq!(status.code(), Some(1), "{path} {problem}");
        let message = fs::read_to_string(init.termination_log.path()).unwrap();
        let rejected = VolumeRejected { path: item.display().to_string(), problem: problem.to_owned() };
        assert_eq!(VolumeRejected::parse(&message), Some(rejected), "{message}");
        if path != "plugins" {
            assert!(!init.data.path().join("plugins/Demo.jar").exists(), "{path}: the start was not prepared further");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn init_container_continues_when_hostile_item_is_removed() {
    let (_web, _, set) = served_set().await;
    let init = Init::new(&set);
    symlink("/nowhere", init.data.path().join("plugins")).unwrap();
    assert_eq!(tokio::task::block_in_place(|| init.run()).code(), Some(1));
    // The next container of the pod does not end again, because the pod's status shows the path.
    let mut child = init.spawn();
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let waits = tokio::task::block_in_place(|| lines.find(|line| line.contains("VOLUME REJECTED")).unwrap());
    assert!(waits.contains("plugins is a link; retrying"), "{waits}");
    fs::remove_file(init.data.path().join("plugins")).unwrap();
    tokio::task::block_in_place(|| lines.for_each(drop));
    assert!(child.0.wait().unwrap().success());
    assert!(init.data.path().join("plugins/Demo.jar").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn init_container_ends_at_once_on_sigterm_while_a_disk_blocks_it() {
    let (_web, _, set) = served_set().await;
    let init = Init::new(&set);
    fs::remove_file(init.files.path()).unwrap();
    pipe(init.files.path());
    let mut child = init.spawn();
    // This waits until the agent has opened it. No data follows.
    let _writer = tokio::task::block_in_place(|| fs::File::options().write(true).open(init.files.path()).unwrap());
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    let status = tokio::task::block_in_place(|| child.0.wait().unwrap());
    assert_eq!(status.code(), Some(143));
}
