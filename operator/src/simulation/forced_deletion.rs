//! Edge (writes). Simulates the deletion of a pod by force.
//!
//! Its object is deleted at once, but its server runs until the node ends it, which takes seconds
//! (`kubernetes-notes.md` of the design, 2f and 10). Meanwhile a new pod starts on the same volume.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agent::world::Worlds;
use agent::{config, init};
use agent_api::FileSet;
use jiff::{SignedDuration, Timestamp};
use walkdir::WalkDir;

use super::cluster::SimCluster;
use super::fake_kubelet::{Phase, Pod};
use crate::clock::now;

/// An init container that ignored the locks would be done with a few files by then. This is real time.
const OBSERVED_FOR: Duration = Duration::from_millis(400);
/// How often the init container tries to take the locks.
const LOCK_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// The variable that names the locks for the other process of this program, and the line that confirms them.
const LOCKS_VARIABLE: &str = "NIGHTSHIFT_LOCKS_TO_HOLD";
const CONFIRMATION: &str = "the locks are held";

/// A server whose pod was deleted by force.
#[derive(Debug)]
pub(super) struct ForcedDeletion {
    files: FileSet,
    pub(super) ends_at: Timestamp,
    /// Whether it is up and answers.
    is_up: bool,
    /// Whether it is told to end, and has enough time for that.
    saves_at_end: bool,
}

/// An init container that finds a running server on its volume, and the contents of that volume before.
pub(super) struct SurvivingServer {
    settings: config::InitConfig,
    files_before: Files,
    _lock_holder: LockHolder,
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

impl SimCluster {
    /// A user deletes the pod by force.
    pub(super) fn force_delete_pod(&mut self) {
        let duration = self.seconds(0, 20);
        let saves_at_end = self.is_scripted() || self.rng.one_in(2);
        let has_process = |pod: &Pod| matches!(pod.phase, Phase::Booting | Phase::Up);
        let Some(pod) = self.pod.as_ref().filter(|pod| !duration.is_zero() && has_process(pod)) else {
            return self.remove_pod();
        };
        let is_up = pod.phase == Phase::Up && !pod.is_hanging();
        self.forced = Some(ForcedDeletion { files: pod.files.clone(), ends_at: now() + duration, is_up, saves_at_end });
        if is_up && self.players > 0 {
            self.build();
        }
        self.pod = None;
        self.clear_players();
        self.objects.remove(&self.pod_key());
        self.trace(format!(
            "API server: the pod is deleted at once, and its server keeps running for {} s",
            duration.as_secs()
        ));
        self.mark_changed();
    }

    /// Ends the server of the pod that was deleted by force, if its time has come.
    pub(super) fn end_forced_if_due(&mut self) {
        let Some(ForcedDeletion { files, ends_at: _, is_up, saves_at_end }) =
            self.forced.take_if(|forced| forced.ends_at <= now())
        else {
            return;
        };
        match (saves_at_end, is_up) {
            (true, true) => self.save_with_files(&files),
            // Its start continues for as long.
            (true, false) => self.finish_migration(&files),
            (false, _) => {}
        }
        self.lose_unsaved();
        self.trace("server: the one of the force-deleted pod has exited");
    }

    /// Prepares the new pod while the old server runs. If only one pod may use the volume, the kubelet delays it
    /// (`None`). Otherwise its init container starts.
    pub(super) fn prepare_while_running(&mut self, ends_at: Timestamp) -> Option<SurvivingServer> {
        let shares_volume = self.scenario.shares_volume;
        self.pod.as_mut().expect("a pod that is being prepared").due = Some(ends_at + LOCK_RETRY_INTERVAL);
        if !shares_volume {
            return None;
        }
        let data = self.disks.data();
        let locks = Worlds::read(&data).expect("the worlds are readable").session_locks();
        let settings = self.prepare_init_config();
        Some(SurvivingServer { settings, files_before: self.all_files(), _lock_holder: LockHolder::spawn(&locks) })
    }

    /// Checks that the init container has changed no files. Swapping, copying or restoring files of a running server
    /// would lose worlds and JARs.
    pub(super) fn check_files_unchanged(&mut self, surviving: &SurvivingServer, is_done: bool) {
        self.trace("init container: waits, since another server still runs on the volume");
        self.check(!is_done, "no init container ends while another server uses its volume");
        let is_untouched = self.all_files() == surviving.files_before;
        self.check(is_untouched, "no init container changes files of a running server");
    }

    /// All files on the volumes of the server, except the locks themselves.
    fn all_files(&self) -> Files {
        let volumes = [self.disks.data(), self.disks.backups()];
        let entries = volumes.iter().flat_map(WalkDir::new).filter_map(Result::ok);
        let files = entries.filter(|entry| entry.file_type().is_file() && entry.file_name() != "session.lock");
        let read = |path: &Path| std::fs::read(path).expect("a file of a volume");
        files.map(|entry| (entry.path().to_owned(), read(entry.path()))).collect()
    }
}

impl SurvivingServer {
    /// Runs the init container for a while. Returns whether it has ended.
    pub(super) async fn run(&self) -> bool {
        tokio::time::timeout(OBSERVED_FOR, init::run(&self.settings)).await.is_ok()
    }
}

/// Another process that holds the locks of worlds, as a server does. Locks within one process would not exclude each
/// other.
struct LockHolder(Child);

impl LockHolder {
    fn spawn(locks: &[PathBuf]) -> Self {
        let this = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(this)
            .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .arg("simulation::forced_deletion::session_locks_are_held_until_input_ends")
            .env(LOCKS_VARIABLE, std::env::join_paths(locks).expect("paths without a colon"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test program can be started");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let is_confirmed = output.lines().map_while(Result::ok).any(|line| line.contains(CONFIRMATION));
        assert!(is_confirmed, "the locks of {locks:?} are not held by another process");
        Self(child)
    }
}

impl Drop for LockHolder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // The process ends with its input, and its exit code does not matter.
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "a helper process that other tests start"]
fn session_locks_are_held_until_input_ends() {
    let Some(paths) = std::env::var_os(LOCKS_VARIABLE) else { return };
    let paths: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let mut locks = agent::world::session_lock::SessionLocks::default();
    let busy = locks.acquire(&paths).expect("locks on the volume");
    assert_eq!(busy, Vec::<PathBuf>::new());
    println!("{CONFIRMATION}");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("readable input");
}
