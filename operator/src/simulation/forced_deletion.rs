//! Edge (writes). A pod that is deleted by force: its object is gone at once, and its server goes on for as long as the node needs to end it
//! (`kubernetes-notes.md` of the design, 2f and 10: seconds). Beside it a new pod comes, to the same volume.

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

/// An init container that took no care would be done with a few files by then. This is real time.
const WOULD_BE_DONE: Duration = Duration::from_millis(400);
/// The init container asks for the locks this often.
const LOOK: SignedDuration = SignedDuration::from_secs(1);

/// Where another process of this program learns which locks to hold, and how it says that it does.
const LOCKS: &str = "NIGHTSHIFT_LOCKS_TO_HOLD";
const HOLDS: &str = "the locks are held";

/// A server whose pod is gone.
#[derive(Debug)]
pub(super) struct Forced {
    files: FileSet,
    pub(super) ends_at: Timestamp,
    /// It had come up, and answers.
    is_up: bool,
    /// It is asked to end, and has the time for it.
    ends_well: bool,
}

/// An init container that finds a server which still runs on its volume, and that volume as it was before.
pub(super) struct SurvivingServer {
    settings: config::InitConfig,
    before: Files,
    _holder: Holder,
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

impl SimCluster {
    /// Somebody deletes the pod by force.
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

    /// The server of the pod that was forced ends, if its time has come.
    pub(super) fn see_end_of_forced(&mut self) {
        let Some(Forced { files, ends_at: _, is_up, ends_well }) =
            self.forced.take_if(|forced| forced.ends_at <= now())
        else {
            return;
        };
        match (ends_well, is_up) {
            (true, true) => self.save_as(&files),
            // It goes on with its start for as long.
            (true, false) => self.end_move(&files),
            (false, _) => {}
        }
        self.lose_unsaved();
        self.tell("server: that of the force-deleted pod has ended");
    }

    /// What the new pod does beside it. Where only one pod may have the volume the kubelet lets it wait (None); else its init container begins.
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

    /// Swapped, copied or put back below a server that runs, worlds and JARs would be lost.
    pub(super) fn check_beside(&mut self, beside: &SurvivingServer, is_done: bool) {
        self.tell("init container: waits, since another server still runs on the volume");
        self.must(!is_done, "an init container is done beside a server that still runs on its volume");
        let is_untouched = self.all_files() == beside.before;
        self.must(is_untouched, "an init container changes something below a server that still runs");
    }

    /// What lies on the volumes of the server, but for the locks themselves.
    fn all_files(&self) -> Files {
        let volumes = [self.disks.data(), self.disks.copies()];
        let entries = volumes.iter().flat_map(WalkDir::new).filter_map(Result::ok);
        let files = entries.filter(|entry| entry.file_type().is_file() && entry.file_name() != "session.lock");
        let read = |path: &Path| std::fs::read(path).expect("a file of a volume");
        files.map(|entry| (entry.path().to_owned(), read(entry.path()))).collect()
    }
}

impl SurvivingServer {
    /// Lets the init container try. Whether it has come to an end.
    pub(super) async fn run(&self) -> bool {
        tokio::time::timeout(WOULD_BE_DONE, init::run(&self.settings)).await.is_ok()
    }
}

/// Another process that holds the locks of worlds, as a server does. Within one process they would keep nobody out.
struct Holder(Child);

impl Holder {
    fn of(locks: &[PathBuf]) -> Self {
        let this = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(this)
            .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .arg("simulation::forced_deletion::locks_are_held_until_the_input_ends")
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
        // It ends with its input, well or not.
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "the other process of a walk: it does nothing by itself"]
fn locks_are_held_until_the_input_ends() {
    let Some(paths) = std::env::var_os(LOCKS) else { return };
    let paths: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let mut locks = scheduler::world::session_lock::SessionLocks::default();
    let busy = locks.take(&paths).expect("locks on the volume");
    assert_eq!(busy, Vec::<PathBuf>::new());
    println!("{HOLDS}");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("an end of the input");
}
