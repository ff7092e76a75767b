//! Edge (writes). Takes one online backup, from the request to the repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::SignedDuration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::super::prune::RetentionInput;
use super::super::state::SidecarState;
use super::super::{ErrorChain, clock};
use super::autosave::{self, AutosaveResult};
use super::cancel::CancellationToken;
use super::record;
use super::running::BackupStage;
use crate::backup::contents::holds_chunks;
use crate::backup::create::{self, BackupSpec, UnverifiedBackup};
use crate::backup::repository::BackupRepository;
use crate::backup::{Backup, LiveReads};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::world::Worlds;
use agent_api::{OnlineBackupOutcome, OnlineBackupReport, OnlineBackupRequest};

/// How long after its countdown a stop may follow. The world is saved in between.
const STOPS_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// A part of the work, on a thread that may wait for the disk.
type JobStage<T> = JoinHandle<Result<T, String>>;

async fn join<T>(part: JobStage<T>) -> Result<T, String> {
    part.await.unwrap_or_else(|error| Err(error.to_string()))
}

fn message(error: &create::Error) -> String {
    ErrorChain(error).to_string()
}

/// The backup in progress.
pub(super) struct Job {
    pub(super) shared: Arc<SidecarState>,
    pub(super) request: OnlineBackupRequest,
    pub(super) repository: BackupRepository,
    /// The server process that is backed up.
    pub(super) process_generation: u64,
    pub(super) cancellation: CancellationToken,
}

impl Job {
    /// Takes the backup and returns its result. It ends when autosave is on again and only the finished backup is left.
    pub(super) async fn run(self) {
        let outcome = match self.take_backup().await {
            Ok(backup) => {
                log_online_backup(&backup);
                self.prune(&backup.id).await;
                OnlineBackupOutcome::Taken { id: backup.id }
            }
            Err(why) => OnlineBackupOutcome::Failed { why },
        };
        self.record_outcome(outcome).await;
        self.shared.state().online_backup = None;
    }

    async fn take_backup(&self) -> Result<Backup, String> {
        // While autosave is still on: a full repository is no reason to switch it off.
        let retention = (!self.is_server_stopping()).then(|| self.retention_input());
        let make_ready = self.spawn_stage(move |spec, repository, disk| {
            // Otherwise a volume that is full of expired backups would never have space for another one.
            if let Some(retention) = retention {
                retention.prune(repository, None, disk);
            }
            create::prepare(spec, repository, disk)
        });
        let prepared = join(make_ready).await;
        if let Some(why) = self.cancellation.reason() {
            return Err(why);
        }
        prepared?;
        self.enter_stage(BackupStage::Flushing)?;
        // A stop does not wait for the answer to a command of the backup.
        let paused = tokio::select! {
            biased;
            why = self.cancellation.cancelled() => Err(why),
            paused = autosave::switch_off(&self.shared, &self.request) => paused,
        };
        let read = match self.enter_stage(BackupStage::Reading).and(paused) {
            Ok(until) => self.read(until).await,
            Err(why) => Err((why, None)),
        };
        let written = match read {
            Ok(written) => written,
            Err((why, reading)) => return Err(self.abandon(why, reading).await),
        };
        let switched_on = async {
            let problem = self.switch_autosave_on().await;
            if let Some(problem) = &problem {
                self.cancellation.cancel(problem);
            }
            problem
        };
        let cancellation = self.cancellation.clone();
        let verify = tokio::task::spawn_blocking(move || {
            written.verify(&mut Disk::new(cancellation)).map(|()| written).map_err(|error| message(&error))
        });
        let (problem, verified) = tokio::join!(switched_on, join(verify));
        let published = match (problem, verified) {
            (Some(problem), _) => Err(problem),
            (None, Err(why)) => Err(self.cancellation.reason().unwrap_or(why)),
            (None, Ok(written)) => {
                let (repository, cancellation, shared) =
                    (self.repository.clone(), self.cancellation.clone(), Arc::clone(&self.shared));
                let publish = move || {
                    let written = if shared.damage.may_be_damaged() { written.mark_after_damage() } else { written };
                    written
                        .publish(&repository, &mut Disk::new(cancellation), clock::now())
                        .map_err(|error| message(&error))
                };
                join(tokio::task::spawn_blocking(publish)).await
            }
        };
        if published.is_err() {
            self.remove_unfinished().await;
        }
        published
    }

    /// Reads the files until `until` at most. On failure, returns the reason and the part that may still be running.
    async fn read(&self, until: Instant) -> Result<UnverifiedBackup, (String, Option<JobStage<UnverifiedBackup>>)> {
        let mut reading =
            self.spawn_stage(|spec, repository, disk| create::write(spec, repository, disk, clock::now()));
        let read = tokio::select! {
            biased;
            why = self.cancellation.cancelled() => Err((why, Some(reading))),
            read = &mut reading => match read {
                Ok(read) => read.map_err(|why| (why, None)),
                Err(error) => Err((error.to_string(), None)),
            },
            () = sleep_until(until) => {
                let why = self.timeout_message();
                self.cancellation.cancel(&why);
                Err((why, Some(reading)))
            }
        };
        let written = read?;
        if let Err(why) = self.enter_stage(BackupStage::AllRead) {
            return Err((why, None));
        }
        match find_inconsistency(written.record()) {
            Some(why) => Err((why, None)),
            None => Ok(written),
        }
    }

    /// Moves to the next stage. If the backup was cancelled, it is abandoned instead, and the reason is returned. Tasks that cancel it by its
    /// stage hold the same state lock, so that neither side misses the other.
    fn enter_stage(&self, next: BackupStage) -> Result<(), String> {
        let mut state = self.shared.state();
        let cancelled = self.cancellation.reason();
        if let Some(in_progress) = &mut state.online_backup {
            in_progress.stage = if cancelled.is_some() { BackupStage::Reading } else { next };
        }
        cancelled.map_or(Ok(()), Err)
    }

    fn timeout_message(&self) -> String {
        let root = self.shared.volume.root();
        let at = self.cancellation.last_file();
        let at = at.strip_prefix(root).unwrap_or(&at);
        format!(
            "the files could not be read within the {} s for which saving may be disabled, the last one was `{}`: \
            back up the worlds only, or use faster disks",
            self.request.timeout_seconds,
            at.display()
        )
    }

    /// Switches autosave on. Returns the fault of the backup that the answer shows, if any.
    async fn switch_autosave_on(&self) -> Option<String> {
        match autosave::switch_on(&self.shared, self.process_generation).await {
            AutosaveResult::SwitchedOn => None,
            AutosaveResult::AlreadyOn => Some(
                "saving was enabled while the files were read, so the worlds in the backup may be inconsistent: let \
                no other tool send `save-on`"
                    .to_owned(),
            ),
            AutosaveResult::ServerExited => Some(
                "the server exited before it confirmed that saving is enabled again, so it may have written while its \
                files were read"
                    .to_owned(),
            ),
            AutosaveResult::Unclear(answer) => Some(autosave::still_off_message(&answer)),
        }
    }

    /// Abandons the backup: reports the failure, and tries to switch autosave on for as long as needed. Returns the reason.
    async fn abandon(&self, why: String, reading: Option<JobStage<UnverifiedBackup>>) -> String {
        // Both at once: the volume may hang, and the server must not wait for it.
        let report = self.record_outcome(OnlineBackupOutcome::Failed { why: why.clone() });
        let ((), on) = tokio::join!(report, autosave::switch_on(&self.shared, self.process_generation));
        if let Some(reading) = reading {
            // It ends at its next step. A hanging disk then blocks further backups, but no longer the server.
            let _ = reading.await;
        }
        self.remove_unfinished().await;
        match on {
            AutosaveResult::Unclear(answer) => format!("{why}, and {}", autosave::still_off_message(&answer)),
            AutosaveResult::SwitchedOn | AutosaveResult::AlreadyOn | AutosaveResult::ServerExited => why,
        }
    }

    /// Reads the volume again, because plugins create and remove worlds while a server runs.
    fn spawn_stage<T: Send + 'static>(
        &self,
        work: impl FnOnce(&BackupSpec<'_>, &BackupRepository, &mut Disk<CancellationToken>) -> Result<T, create::Error>
        + Send
        + 'static,
    ) -> JobStage<T> {
        let (volume, request) = (self.shared.volume.clone(), self.request.clone());
        let (repository, cancellation) = (self.repository.clone(), self.cancellation.clone());
        tokio::task::spawn_blocking(move || {
            let worlds = Worlds::read(volume.root())
                .map_err(|error| format!("could not look for worlds in `{}`: {error}", volume.root().display()))?;
            let manifest = volume.manifest().map_err(|error| ErrorChain(&error).to_string())?;
            let spec = BackupSpec {
                data: volume.root(),
                worlds: &worlds,
                reading: LiveReads::Online,
                contents: request.contents,
                trigger: request.trigger,
                lock: manifest.as_ref().map(|manifest| manifest.lock.as_str()),
                before: None,
                request: Some(&request.request),
                // This is checked when the backup is published, because autosave is off here.
                after_damage: false,
            };
            work(&spec, &repository, &mut Disk::new(cancellation)).map_err(|error| message(&error))
        })
    }

    async fn record_outcome(&self, outcome: OnlineBackupOutcome) {
        let record = OnlineBackupReport { request: self.request.request.clone(), at: clock::now(), outcome };
        if self.shared.state().last_online_backup.as_ref().is_some_and(|last| last.outcome == record.outcome) {
            return;
        }
        if let OnlineBackupOutcome::Failed { why } = &record.outcome {
            warn!("no backup for {}: {why}", record.request);
        }
        if let Err(why) = record::write(&self.shared, &record).await {
            warn!("{why}");
        }
        // Reported after it is on disk, not before.
        self.shared.state().last_online_backup = Some(record);
    }

    async fn remove_unfinished(&self) {
        let repository = self.repository.clone();
        match tokio::task::spawn_blocking(move || repository.remove_unfinished(&mut Disk::new(RealFs))).await {
            Ok(Ok(())) => {}
            // The next backup cleans up first.
            Ok(Err(error)) => warn!("{}", ErrorChain(&error)),
            Err(error) => warn!("{error}"),
        }
    }

    async fn prune(&self, id: &str) {
        if self.is_server_stopping() {
            // One of these backups may be restored before the next start, and that request is written when this agent no longer reads it. Excess
            // backups are pruned before the next backup.
            return;
        }
        let (retention, repository, id) = (self.retention_input(), self.repository.clone(), id.to_owned());
        let prune = move || retention.prune(&repository, Some(&id), &mut Disk::new(RealFs));
        if let Err(error) = tokio::task::spawn_blocking(prune).await {
            warn!("{error}");
        }
    }

    fn retention_input(&self) -> RetentionInput {
        let retained_backup = self.shared.state().retained_backup.clone();
        RetentionInput::from_sidecar_config(&self.shared.settings, retained_backup, &self.shared.volume)
    }

    /// Whether the process that is backed up will stop, is stopping, or has ended.
    fn is_server_stopping(&self) -> bool {
        // The preparation of a stop holds this lock.
        let stop_lock = self.shared.stop_lock.try_lock();
        let state = self.shared.state();
        let since = clock::now() - STOPS_WITHIN;
        let is_announced = state.announced.as_ref().is_some_and(|announced| since < announced.ends);
        stop_lock.is_err()
            || is_announced
            || state.monitor.is_stopping()
            || state.process_generation != self.process_generation
    }
}

fn log_online_backup(backup: &Backup) {
    create::log_backup(backup);
    for name in &backup.left_out {
        warn!("the backup lacks {name}: it was deleted before it was read, or is neither a file nor a directory");
    }
    for name in &backup.changed {
        info!("{name} was written to while it was read: it may be inconsistent in the backup");
    }
}

/// Why the worlds in the backup are inconsistent, if another process wrote to them while they were read. Paper itself writes no chunk while
/// autosave is off. It still writes a `level.dat` every five minutes, but replaces the old file, which is read to its end.
fn find_inconsistency(backup: &Backup) -> Option<String> {
    let name = backup.changed.iter().find(|name| is_world_file(backup, Path::new(name)))?;
    Some(format!(
        "`{name}` was written to while it was read, although saving was disabled, so the worlds in the backup would \
        be inconsistent: find out which other tool saves worlds (a plugin, a `save-all`), prevent that during \
        backups, and request another backup"
    ))
}

/// Whether the file holds chunks or identifies the world.
fn is_world_file(backup: &Backup, name: &Path) -> bool {
    let kind = holds_chunks(name) || name.file_name().is_some_and(|file| file == "level.dat");
    kind && backup.folders.iter().any(|folder| name.starts_with(PathBuf::from(folder)))
}
