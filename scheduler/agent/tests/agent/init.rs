//! Edge (writes). Tests the changes that init makes to a volume, and staging before it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use agent_api::termination_message::LockRejected;
use agent_api::{AgentReport, FileSet};
use rustix::fs::{FlockOperation, fcntl_lock};

use crate::harness::Pod;
use crate::volume::{Init, file, jar, level_dat, serve, set};

#[tokio::test(flavor = "multi_thread")]
async fn lock_is_staged_from_store_but_not_from_plain_http() {
    let web = tempfile::tempdir().unwrap();
    let url = serve(web.path()).await;
    let pod = Pod::new(&url).await;
    let (set, server, demo) = set(&url, 'a');
    assert_eq!(pod.send("POST", "/v1/stage", &set).await.status(), 202);
    let failed = |report: &AgentReport| report.staging.as_ref().is_some_and(|staging| staging.error.is_some());
    let staging = pod.report_when("failed", failed).await.staging.unwrap();
    assert_eq!((staging.done, staging.of), (0, 2));
    let error = staging.error.unwrap();
    let refused = format!("{url}/paper.jar: it is neither https nor the operator's store");
    assert!(error.contains("/files/sha256/") && error.contains("404") && error.contains(&refused), "{error}");

    fs::write(web.path().join("paper.jar"), &server).unwrap();
    fs::write(web.path().join("demo.jar"), &demo).unwrap();
    assert_eq!(pod.send("POST", "/v1/stage", &set).await.status(), 202);
    let report = pod.report_when("staged", |report| !report.staged.is_empty()).await;
    assert_eq!(report.staged, [set.lock]);
    assert_eq!(report.staging, None);
    assert!(!pod.data.path().join("plugins").exists(), "staging must not change the server's directory");
}

#[tokio::test(flavor = "multi_thread")]
async fn init_container_prepares_empty_volume_and_fetches_once() {
    let web = tempfile::tempdir().unwrap();
    let (set, server, demo) = set(&serve(web.path()).await, 'a');
    fs::write(web.path().join("paper.jar"), &server).unwrap();
    fs::write(web.path().join("demo.jar"), &demo).unwrap();
    let init = Init::new(&set);
    for _ in 0..2 {
        let status = tokio::task::block_in_place(|| init.run());
        assert!(status.success(), "{status}");
        assert_eq!(fs::read(init.data.path().join("plugins/Demo.jar")).unwrap(), demo);
        assert_eq!(fs::read(init.data.path().join(&set.server.path)).unwrap(), server);
        let properties = fs::read_to_string(init.data.path().join("server.properties")).unwrap();
        assert!(properties.contains("rcon.password=right\n") && properties.contains("rcon.ip=127.0.0.1\n"));
        let agent = fs::metadata(init.shared.path().join("agent")).unwrap();
        assert_eq!(agent.permissions().mode() & 0o777, 0o555);
        // From here on the upstream is unavailable.
        let _ = fs::remove_file(web.path().join("paper.jar"));
        let _ = fs::remove_file(web.path().join("demo.jar"));
    }
}

#[test]
fn init_container_refuses_world_of_newer_minecraft_without_changes() {
    let (set, _, _) = set("http://127.0.0.1:1", 'a');
    let init = Init::new(&set);
    init.put("world/level.dat", &level_dat(4671, "1.21.11"));
    assert_eq!(init.run().code(), Some(3));
    let message = fs::read_to_string(init.termination_log.path()).unwrap();
    assert!(message.starts_with("REFUSED: Minecraft 1.21.10 must not open this world"), "{message}");
    assert!(!init.data.path().join("plugins").exists());
    assert!(!init.data.path().join("server.properties").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn init_container_waits_for_locked_world_with_one_message() {
    let web = tempfile::tempdir().unwrap();
    let (set, server, demo) = set(&serve(web.path()).await, 'a');
    fs::write(web.path().join("paper.jar"), &server).unwrap();
    fs::write(web.path().join("demo.jar"), &demo).unwrap();
    let init = Init::new(&set);
    init.put("world/level.dat", &level_dat(4556, "1.21.10"));
    init.put("world/session.lock", "☃".as_bytes());
    let lock = fs::File::options().write(true).open(init.data.path().join("world/session.lock")).unwrap();
    fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut child = init.spawn();
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let line = tokio::task::block_in_place(|| lines.next().unwrap().unwrap());
    assert!(line.contains("another server has this world open") && line.contains("session.lock"), "{line}");
    assert!(!init.data.path().join("plugins").exists());
    assert!(child.0.try_wait().unwrap().is_none());
    tokio::task::block_in_place(|| lines.for_each(drop));
    assert_eq!(child.0.wait().unwrap().code(), Some(1), "the kubelet restarts it and shows its termination message");
    let message = fs::read_to_string(init.termination_log.path()).unwrap();
    assert!(message.starts_with("another server has this world open") && message.contains("session.lock"), "{message}");

    let mut child = init.spawn();
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let line = tokio::task::block_in_place(|| lines.next().unwrap().unwrap());
    assert!(line.contains("waiting: another server has this world open"), "{line}");
    drop(lock);
    tokio::task::block_in_place(|| lines.for_each(drop));
    assert!(child.0.wait().unwrap().success());
    assert!(init.data.path().join("plugins/Demo.jar").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn init_container_writes_persistent_failure_to_termination_message_once() {
    let web = tempfile::tempdir().unwrap();
    let (set, server, demo) = set(&serve(web.path()).await, 'a');
    fs::write(web.path().join("paper.jar"), &server).unwrap();
    fs::write(web.path().join("demo.jar"), &demo).unwrap();
    let init = Init::new(&set);
    init.put(".nightshift/manifest.json", b"{");
    assert_eq!(tokio::task::block_in_place(|| init.run()).code(), Some(1), "the kubelet restarts it");
    let message = fs::read_to_string(init.termination_log.path()).unwrap();
    assert!(message.contains("manifest.json` was changed by another program"), "{message}");

    let mut child = init.spawn();
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    tokio::task::block_in_place(|| {
        // The third attempt, after which the previous container has ended.
        let mut lines = lines.skip_while(|line| !line.contains("retrying in 4 s"));
        assert!(lines.next().is_some());
        fs::remove_file(init.data.path().join(".nightshift/manifest.json")).unwrap();
        lines.for_each(drop);
    });
    assert!(child.0.wait().unwrap().success(), "a fixed cause is noticed in the same container");
}

#[test]
fn init_container_reports_missing_files_and_keeps_trying() {
    let (set, _, _) = set("http://127.0.0.1:1", 'a');
    let init = Init::new(&set);
    let mut child = init.spawn();
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines().take(2);
    let lines: Vec<String> = lines.map(Result::unwrap).collect();
    for (line, wait) in lines.iter().zip(["in 1 s", "in 2 s"]) {
        assert!(line.contains("could not fetch `.nightshift/server/paper-1.21.10-130.jar`"), "{line}");
        assert!(line.contains("http://127.0.0.1:1/paper.jar") && line.contains(wait), "{line}");
    }
    assert!(child.0.try_wait().unwrap().is_none());
}

/// A server that has run lock `a`, with a foreign plugin in the `ConfigMap` of that lock.
async fn replaced_lock(web: &Path) -> (Init, FileSet) {
    let url = serve(web).await;
    let (set, server, demo) = set(&url, 'a');
    let foreign = jar("plugin.yml", "name: Foreign\nversion: 1\nmain: a.B\n");
    for (name, content) in [("paper.jar", &server), ("demo.jar", &demo), ("foreign.jar", &foreign)] {
        fs::write(web.join(name), content).unwrap();
    }
    let mut init = Init::new(&set);
    assert!(tokio::task::block_in_place(|| init.run()).success());
    init.files_digest = Some(set.digest());
    let foreign = file("plugins/Foreign.jar", Some("Foreign"), &foreign, format!("{url}/foreign.jar"));
    let replaced = FileSet { plugins: vec![foreign], ..set.clone() };
    fs::write(init.files.path(), serde_json::to_vec(&replaced).unwrap()).unwrap();
    (init, set)
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_lock_starts_what_ran_and_says_so() {
    let web = tempfile::tempdir().unwrap();
    let (init, _) = replaced_lock(web.path()).await;
    for garbage in [None, Some("{"), Some("")] {
        if let Some(garbage) = garbage {
            fs::write(init.files.path(), garbage).unwrap();
        }
        // A plugin has removed itself, so this start has to know the right files.
        fs::remove_file(init.data.path().join("plugins/Demo.jar")).unwrap();
        assert!(tokio::task::block_in_place(|| init.run()).success(), "{garbage:?}");
        assert!(init.data.path().join("plugins/Demo.jar").exists());
        assert!(!init.data.path().join("plugins/Foreign.jar").exists());
        let message = fs::read_to_string(init.termination_log.path()).unwrap();
        assert_eq!(LockRejected::parse(&message).unwrap().files, ["files.json"]);
        fs::write(init.termination_log.path(), "").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_lock_of_update_is_refused_without_changes() {
    let web = tempfile::tempdir().unwrap();
    let (mut init, set) = replaced_lock(web.path()).await;
    let before = fs::read(init.data.path().join(".nightshift/manifest.json")).unwrap();
    let next = FileSet { lock: "b".repeat(64), ..set.clone() };
    init.files_digest = Some(next.digest());
    // Neither the foreign files nor those of an earlier lock of this server count.
    for mounted in [None, Some(set)] {
        if let Some(mounted) = mounted {
            fs::write(init.files.path(), serde_json::to_vec(&mounted).unwrap()).unwrap();
        }
        assert_eq!(tokio::task::block_in_place(|| init.run()).code(), Some(3));
        let message = fs::read_to_string(init.termination_log.path()).unwrap();
        assert_eq!(LockRejected::parse(&message).unwrap().files, ["files.json"]);
        assert_eq!(fs::read(init.data.path().join(".nightshift/manifest.json")).unwrap(), before);
        assert!(!init.data.path().join("plugins/Foreign.jar").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_lock_that_a_plugin_changed_does_not_count() {
    let web = tempfile::tempdir().unwrap();
    let (init, _) = replaced_lock(web.path()).await;
    let copy = init.data.path().join(".nightshift/files.json");
    fs::copy(init.files.path(), &copy).unwrap();
    assert_eq!(tokio::task::block_in_place(|| init.run()).code(), Some(3));
    assert!(!init.data.path().join("plugins/Foreign.jar").exists());
}
