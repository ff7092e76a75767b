//! Edge (writes). Simulates the deletion of a pod by force.
//!
//! Its object is deleted at once, but its server runs until the node ends it, which takes seconds
//! (`kubernetes-notes.md` of the design, 2f and 10). Meanwhile a new pod starts on the same volume.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use scheduler::agent::{config, init};
use scheduler::protocol::FileSet;
use scheduler::world::Worlds;
use walkdir::WalkDir;

use super::cluster::SimCluster;
use super::fake_kubelet::{Phase, Pod};
use crate::clock::now;

/// An init container that ignored the locks would be done with a few files by then. This is real time.
const WOULD_BE_DONE: Duration = Duration::from_millis(400);
/// How often the init container tries to take the locks.
const LOOK: SignedDuration = SignedDuration::from_secs(1);

/// The variable that names the locks for the other process of this program, and the line that confirms them.
const LOCKS: &str = "NIGHTSHIFT_LOCKS_TO_HOLD";
const HOLDS: &str = "the locks are held";

/// A server whose pod was deleted by force.
#[derive(Debug)]
pub(super) struct Forced {
    files: FileSet,
    pub(super) ends_at: Timestamp,
    /// Whether it is up and answers.
    is_up: bool,
    /// Whether it is told to end, and has enough time for that.
    ends_well: bool,
}

/// An init container that finds a running server on its volume, and the contents of that volume before.
pub(super) struct SurvivingServer {
    settings: config::InitConfig,
    before: Files,
    _holder: Holder,
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

impl SimCluster {
    /// A user deletes the pod by force.
    pub(super) fn force_pod(&mut self) {
        let takes = self.seconds(0, 20);
        let ends_well = self.is_scripted() || self.dice.once_in(2);
        let has_process = |pod: &Pod| matches!(pod.phase, Phase::Booting | Phase::Up);
        let Some(pod) = self.pod.as_ref().filter(|pod| !takes.is_zero() && has_process(pod)) else {
            return self.pod_is_gone();
        };
        let is_up = pod.phase == Phase::Up && !pod.hangs();
        self.forced = Some(Forced { files: pod.files.clone(), ends_at: now() + takes, is_up, ends_well });
        if is_up && self.players > 0 {
            self.build();
        }
        self.pod = None;
        self.nobody_is_on();
        self.objects.remove(&self.key_of_pod());
        self.tell(format!("API server: the pod is gone at once, and its server runs on for {} s", takes.as_secs()));
        self.changed();
    }

    /// Ends the server of the pod that was deleted by force, if its time has come.
    pub(super) fn see_end_of_forced(&mut self) {
        let Some(Forced { files, ends_at: _, is_up, ends_well }) =
            self.forced.take_if(|forced| forced.ends_at <= now())
        else {
            return;
        };
        match (ends_well, is_up) {
            (true, true) => self.save_as(&files),
            // Its start continues for as long.
            (true, false) => self.end_move(&files),
            (false, _) => {}
        }
        self.lose_unsaved();
        self.tell("server: that of the force-deleted pod has ended");
    }

    /// Prepares the new pod while the old server runs. If only one pod may use the volume, the kubelet delays it
    /// (`None`). Otherwise its init container starts.
    pub(super) fn prepare_beside(&mut self, ends_at: Timestamp) -> Option<SurvivingServer> {
        let is_let_in = self.scenario.shares_volume;
        self.pod.as_mut().expect("a pod that is being prepared").due = Some(ends_at + LOOK);
        if !is_let_in {
            return None;
        }
        let data = self.disks.data();
        let locks = Worlds::read(&data).expect("the worlds are readable").session_locks();
        let settings = self.mount();
        Some(SurvivingServer { settings, before: self.all_files(), _holder: Holder::of(&locks) })
    }

    /// Checks that the init container has changed no files. Swapping, copying or restoring files of a running server
    /// would lose worlds and JARs.
    pub(super) fn check_beside(&mut self, beside: &SurvivingServer, is_done: bool) {
        self.tell("init container: waits, since another server still runs on the volume");
        self.must(!is_done, "an init container is done beside a server that still runs on its volume");
        let is_untouched = self.all_files() == beside.before;
        self.must(is_untouched, "an init container changes something below a server that still runs");
    }

    /// All files on the volumes of the server, except the locks themselves.
    fn all_files(&self) -> Files {
        let volumes = [self.disks.data(), self.disks.copies()];
        let entries = volumes.iter().flat_map(WalkDir::new).filter_map(Result::ok);
        let files = entries.filter(|entry| entry.file_type().is_file() && entry.file_name() != "session.lock");
        let read = |path: &Path| std::fs::read(path).expect("a file of a volume");
        files.map(|entry| (entry.path().to_owned(), read(entry.path()))).collect()
    }
}

impl SurvivingServer {
    /// Runs the init container for a while. Returns whether it has ended.
    pub(super) async fn run(&self) -> bool {
        tokio::time::timeout(WOULD_BE_DONE, init::run(&self.settings)).await.is_ok()
    }
}

/// Another process that holds the locks of worlds, as a server does. Locks within one process would not exclude each
/// other.
struct Holder(Child);

impl Holder {
    fn of(locks: &[PathBuf]) -> Self {
        let this = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(this)
            .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .arg("simulation::forced_deletion::session_locks_are_held_until_input_ends")
            .env(LOCKS, std::env::join_paths(locks).expect("paths without a colon"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program can be started once more");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let holds = said.lines().map_while(Result::ok).any(|line| line.contains(HOLDS));
        assert!(holds, "the locks of {locks:?} are not held by another process");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // The process ends with its input, and its exit code does not matter.
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "the other process of a walk: it does nothing by itself"]
fn session_locks_are_held_until_input_ends() {
    let Some(paths) = std::env::var_os(LOCKS) else { return };
    let paths: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let mut locks = scheduler::world::session_lock::SessionLocks::default();
    let busy = locks.take(&paths).expect("locks on the volume");
    assert_eq!(busy, Vec::<PathBuf>::new());
    println!("{HOLDS}");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("an end of the input");
}
