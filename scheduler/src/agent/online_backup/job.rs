//! Edge (writes). Takes one online backup, from the request to the repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::SignedDuration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::super::prune::RetentionInput;
use super::super::state::SidecarState;
use super::super::{Chain, clock, pre_update_backup};
use super::autosave::{self, AutosaveResult};
use super::cancel::CancellationToken;
use super::{BackupStage, record};
use crate::backup::contents::holds_chunks;
use crate::backup::create::{self, BackupSpec, UnverifiedBackup};
use crate::backup::repository::BackupRepository;
use crate::backup::{Backup, LiveReads};
use crate::protocol::{HotCopy, HotCopyOutcome, HotCopySeen};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::world::Worlds;

/// How long after its countdown a stop may follow. The world is saved in between.
const STOPS_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// A part of the work, on a thread that may wait for the disk.
type JobStage<T> = JoinHandle<Result<T, String>>;

async fn joined<T>(part: JobStage<T>) -> Result<T, String> {
    part.await.unwrap_or_else(|error| Err(error.to_string()))
}

fn words(error: &create::Error) -> String {
    Chain(error).to_string()
}

/// The backup in progress.
pub(super) struct Job {
    pub(super) shared: Arc<SidecarState>,
    pub(super) asked: HotCopy,
    pub(super) shelf: BackupRepository,
    /// The server process that is backed up.
    pub(super) life: u64,
    pub(super) halt: CancellationToken,
}

impl Job {
    /// Takes the backup and returns its result. It ends when autosave is on again and only the finished backup is left.
    pub(super) async fn run(self) {
        let outcome = match self.copy().await {
            Ok(backup) => {
                say(&backup);
                self.prune(&backup.id).await;
                HotCopyOutcome::Taken { id: backup.id }
            }
            Err(why) => HotCopyOutcome::Failed { why },
        };
        self.note(outcome).await;
        self.shared.state().copying = None;
    }

    async fn copy(&self) -> Result<Backup, String> {
        // While autosave is still on: a full repository is no reason to switch it off.
        let keeping = (!self.server_goes()).then(|| self.keeping());
        let make_ready = self.part(move |order, shelf, disk| {
            // Otherwise a volume that is full of expired backups would never have space for another one.
            if let Some(keeping) = keeping {
                keeping.prune(shelf, None, disk);
            }
            create::prepare(order, shelf, disk)
        });
        let prepared = joined(make_ready).await;
        if let Some(why) = self.halt.why() {
            return Err(why);
        }
        prepared?;
        self.comes_to(BackupStage::Flushing)?;
        // A stop does not wait for the answer to a command of the backup.
        let paused = tokio::select! {
            biased;
            why = self.halt.told() => Err(why),
            paused = autosave::off(&self.shared, &self.asked) => paused,
        };
        let read = match self.comes_to(BackupStage::Reading).and(paused) {
            Ok(until) => self.read(until).await,
            Err(why) => Err((why, None)),
        };
        let written = match read {
            Ok(written) => written,
            Err((why, reading)) => return Err(self.give_up(why, reading).await),
        };
        let switched_on = async {
            let problem = self.switch_on().await;
            if let Some(problem) = &problem {
                self.halt.tell(problem);
            }
            problem
        };
        let halt = self.halt.clone();
        let read_back = tokio::task::spawn_blocking(move || {
            written.read_back(&mut Disk::new(halt)).map(|()| written).map_err(|error| words(&error))
        });
        let (problem, verified) = tokio::join!(switched_on, joined(read_back));
        let published = match (problem, verified) {
            (Some(problem), _) => Err(problem),
            (None, Err(why)) => Err(self.halt.why().unwrap_or(why)),
            (None, Ok(written)) => {
                let (place, halt, shared) = (self.shelf.clone(), self.halt.clone(), Arc::clone(&self.shared));
                let publish = move || {
                    let written = if shared.may_be_damaged() { written.after_damage() } else { written };
                    written.publish(&place, &mut Disk::new(halt), clock::now()).map_err(|error| words(&error))
                };
                joined(tokio::task::spawn_blocking(publish)).await
            }
        };
        if published.is_err() {
            self.tidy().await;
        }
        published
    }

    /// Reads the files until `until` at most. On failure, returns the reason and the part that may still be running.
    async fn read(&self, until: Instant) -> Result<UnverifiedBackup, (String, Option<JobStage<UnverifiedBackup>>)> {
        let mut reading = self.part(|order, shelf, disk| create::write(order, shelf, disk, clock::now()));
        let read = tokio::select! {
            biased;
            why = self.halt.told() => Err((why, Some(reading))),
            read = &mut reading => match read {
                Ok(read) => read.map_err(|why| (why, None)),
                Err(error) => Err((error.to_string(), None)),
            },
            () = sleep_until(until) => {
                let why = self.too_late();
                self.halt.tell(&why);
                Err((why, Some(reading)))
            }
        };
        let written = read?;
        if let Err(why) = self.comes_to(BackupStage::AllRead) {
            return Err((why, None));
        }
        match of_two_moments(written.record()) {
            Some(why) => Err((why, None)),
            None => Ok(written),
        }
    }

    /// Moves to the next stage. If the backup was cancelled, it is abandoned instead, and the reason is returned. Tasks that cancel it by its
    /// stage hold the same state lock, so that neither side misses the other.
    fn comes_to(&self, stage: BackupStage) -> Result<(), String> {
        let mut shared = self.shared.state();
        let told = self.halt.why();
        if let Some(copying) = &mut shared.copying {
            copying.stage = if told.is_some() { BackupStage::Reading } else { stage };
        }
        told.map_or(Ok(()), Err)
    }

    fn too_late(&self) -> String {
        let root = self.shared.volume.root();
        let at = self.halt.reached();
        let at = at.strip_prefix(root).unwrap_or(&at);
        format!(
            "the files could not be read in the {} s for which saving may be off, the last was `{}`: \
             copy the worlds only, or give the volumes a faster disk",
            self.asked.timeout_seconds,
            at.display()
        )
    }

    /// Switches autosave on. Returns the fault of the backup that the answer shows, if any.
    async fn switch_on(&self) -> Option<String> {
        match autosave::on(&self.shared, self.life).await {
            AutosaveResult::Now => None,
            AutosaveResult::Before => Some(
                "somebody switched saving on while the files were read, so the worlds in it may be of two minds: \
                 let nothing else send `save-on`"
                    .to_owned(),
            ),
            AutosaveResult::Gone => Some(
                "the server ended before it had said that saving is on again, so it may have written while its files were read"
                    .to_owned(),
            ),
            AutosaveResult::Unclear(answer) => Some(autosave::still_off(&answer)),
        }
    }

    /// Abandons the backup: reports the failure, and tries to switch autosave on for as long as needed. Returns the reason.
    async fn give_up(&self, why: String, reading: Option<JobStage<UnverifiedBackup>>) -> String {
        // Both at once: the volume may hang, and the server must not wait for it.
        let told = self.note(HotCopyOutcome::Failed { why: why.clone() });
        let ((), on) = tokio::join!(told, autosave::on(&self.shared, self.life));
        if let Some(reading) = reading {
            // It ends at its next step. A hanging disk then blocks further backups, but no longer the server.
            let _ = reading.await;
        }
        self.tidy().await;
        match on {
            AutosaveResult::Unclear(answer) => format!("{why}; and {}", autosave::still_off(&answer)),
            AutosaveResult::Now | AutosaveResult::Before | AutosaveResult::Gone => why,
        }
    }

    /// Reads the volume again, because plugins create and remove worlds while a server runs.
    fn part<T: Send + 'static>(
        &self,
        act: impl FnOnce(&BackupSpec<'_>, &BackupRepository, &mut Disk<CancellationToken>) -> Result<T, create::Error>
        + Send
        + 'static,
    ) -> JobStage<T> {
        let (volume, asked) = (self.shared.volume.clone(), self.asked.clone());
        let (place, halt) = (self.shelf.clone(), self.halt.clone());
        tokio::task::spawn_blocking(move || {
            let worlds = Worlds::read(volume.root())
                .map_err(|error| format!("could not look for worlds in `{}`: {error}", volume.root().display()))?;
            let manifest = volume.manifest().map_err(|error| Chain(&error).to_string())?;
            let order = BackupSpec {
                data: volume.root(),
                worlds: &worlds,
                reading: LiveReads::Live,
                contents: asked.contents,
                trigger: asked.trigger,
                lock: manifest.as_ref().map(|manifest| manifest.lock.as_str()),
                before: None,
                request: Some(&asked.request),
                // This is checked when the backup is published, because autosave is off here.
                after_damage: false,
            };
            act(&order, &place, &mut Disk::new(halt)).map_err(|error| words(&error))
        })
    }

    async fn note(&self, outcome: HotCopyOutcome) {
        let seen = HotCopySeen { request: self.asked.request.clone(), at: clock::now(), outcome };
        if self.shared.state().hot.as_ref().is_some_and(|noted| noted.outcome == seen.outcome) {
            return;
        }
        if let HotCopyOutcome::Failed { why } = &seen.outcome {
            warn!("no copy for {}: {why}", seen.request);
        }
        if let Err(why) = record::write(&self.shared, &seen).await {
            warn!("{why}");
        }
        // Reported after it is on disk, not before.
        self.shared.state().hot = Some(seen);
    }

    async fn tidy(&self) {
        let place = self.shelf.clone();
        match tokio::task::spawn_blocking(move || place.tidy(&mut Disk::new(RealFs))).await {
            Ok(Ok(())) => {}
            // The next backup cleans up first.
            Ok(Err(error)) => warn!("{}", Chain(&error)),
            Err(error) => warn!("{error}"),
        }
    }

    async fn prune(&self, id: &str) {
        if self.server_goes() {
            // One of these backups may be restored before the next start, and that request is written when this agent no longer reads it. Excess
            // backups are pruned before the next backup.
            return;
        }
        let (keeping, place, id) = (self.keeping(), self.shelf.clone(), id.to_owned());
        let prune = move || keeping.prune(&place, Some(&id), &mut Disk::new(RealFs));
        if let Err(error) = tokio::task::spawn_blocking(prune).await {
            warn!("{error}");
        }
    }

    fn keeping(&self) -> RetentionInput {
        let kept = self.shared.state().kept.clone();
        RetentionInput::of_sidecar(&self.shared.settings, kept, &self.shared.volume)
    }

    /// Whether the process that is backed up will stop, is stopping, or has ended.
    fn server_goes(&self) -> bool {
        // A stop in progress holds this lock until `stop` was sent.
        let turn = self.shared.stop_turn.try_lock();
        let state = self.shared.state();
        let since = clock::now() - STOPS_WITHIN;
        let is_announced = state.announced.as_ref().is_some_and(|announced| since < announced.ends);
        turn.is_err() || is_announced || state.witness.is_stopping() || state.life != self.life
    }
}

fn say(backup: &Backup) {
    pre_update_backup::say(backup);
    for name in &backup.left_out {
        warn!("{name} is not in it: it was gone before it was read, or is neither a file nor a directory");
    }
    for name in &backup.changed {
        info!("{name} was written to while it was read: what is in the copy may be of two minds");
    }
}

/// Why the worlds in the backup are inconsistent, if another process wrote to them while they were read. Paper itself writes no chunk while
/// autosave is off. It still writes a `level.dat` every five minutes, but replaces the old file, which is read to its end.
fn of_two_moments(backup: &Backup) -> Option<String> {
    let name = backup.changed.iter().find(|name| is_of_a_world(backup, Path::new(name)))?;
    Some(format!(
        "`{name}` was written to while it was read, although saving was off, so the worlds in the copy would be of two moments: find what \
         saves worlds besides the server (a plugin, a `save-all` of another tool), keep it from that while copies are taken, and ask for \
         another copy"
    ))
}

/// Whether the file holds chunks or identifies the world.
fn is_of_a_world(backup: &Backup, name: &Path) -> bool {
    let kind = holds_chunks(name) || name.file_name().is_some_and(|file| file == "level.dat");
    kind && backup.folders.iter().any(|folder| name.starts_with(PathBuf::from(folder)))
}
