//! Edge (writes). The copy of a server that goes on running: asked for by the operator, taken here, one at a time.
//!
//! Saving is off only while files are read, and for no longer than the request says: Paper unloads no chunk meanwhile. It is switched on
//! before the copy is read back, and the answer to that is also the proof that the server was not ending while it was read: a server that
//! stops answers nothing, and writes its worlds whatever `save-off` said.

mod autosave;
mod cancel;
mod job;
mod record;

use std::sync::Arc;

use tracing::{info, warn};

use super::clock;
use super::state::{MutableState, SidecarState};
use crate::backup::Trigger;
use crate::backup::repository::BackupRepository;
use crate::protocol::{HotCopy, HotCopyOutcome, HotCopySeen};
use autosave::AutosaveResult;
use cancel::CancellationToken;
use job::Job;
pub(super) use record::remembered;

/// The longest name of a request, in bytes. It goes into records and messages.
const LONGEST_NAME: usize = 64;

/// A request that is not served.
#[derive(Debug)]
pub(super) enum OnlineBackupRefused {
    /// It will never be: why, in words.
    Malformed(String),
    /// Not now.
    NotNow(String),
    /// It could not be noted.
    NotNoted(String),
}

/// What occupies the one place for copies of the running server, until saving is on again and nothing of it is left.
#[derive(Debug, Default)]
pub(super) struct Copying {
    halt: CancellationToken,
    stage: BackupStage,
}

/// How far a copy has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum BackupStage {
    /// The server was told nothing.
    #[default]
    Preparing,
    /// The server brings its worlds to the disk, and does nothing else meanwhile.
    Flushing,
    /// Its files are read, or the copy is given up.
    Reading,
    /// What the server writes from now on is not in it.
    AllRead,
}

impl Copying {
    /// Players are about to be told how long they have. A server that writes its worlds says nothing before it has, and then what it was told
    /// minutes ago: such a countdown has to wait, and a flush that was not sent yet is not sent. Answers why it has to wait.
    fn countdown_begins(&self) -> Result<(), &'static str> {
        match self.stage {
            BackupStage::Preparing => {
                self.halt.tell(
                    "players were to be told of a stop before its files were read, and nothing can be told to them while the worlds are \
                     brought to the disk: ask for another copy when that is over",
                );
                Ok(())
            }
            BackupStage::Flushing => Err(
                "the worlds are being brought to the disk for a copy of the running server, and players can be told nothing \
                 meanwhile: ask again in a moment",
            ),
            // The console is free. If it stops before all is read, the stop ends the copy.
            BackupStage::Reading | BackupStage::AllRead => Ok(()),
        }
    }
}

/// Begins a copy. The same request again is the same copy, whatever came of it.
pub(super) async fn begin(shared: &Arc<SidecarState>, asked: HotCopy) -> Result<(), OnlineBackupRefused> {
    let Some(backups) = shared.settings.backups.clone() else {
        return Err(OnlineBackupRefused::Malformed("this server takes no copies: switch on `spec.backup`".to_owned()));
    };
    check(&asked).map_err(OnlineBackupRefused::Malformed)?;
    let begun = HotCopySeen { request: asked.request.clone(), at: clock::now(), outcome: HotCopyOutcome::Running };
    let (job, before) = {
        // A stop that is under way holds its turn until `stop` was sent.
        let turn = shared.stop_turn.try_lock();
        let mut state = shared.state();
        if state.hot.as_ref().is_some_and(|last| last.request == asked.request) {
            return Ok(());
        }
        if turn.is_err() || !state.witness.is_up() || state.witness.is_stopping() || state.stop.is_some() {
            return Err(OnlineBackupRefused::NotNow(
                "the server does not run, or is stopping: ask again when it is up".to_owned(),
            ));
        }
        if state.copying.is_some() {
            return Err(OnlineBackupRefused::NotNow(
                "another copy of the running server is not over, or saving is not on again after one: ask again later"
                    .to_owned(),
            ));
        }
        let copying = Copying::default();
        let halt = copying.halt.clone();
        state.copying = Some(copying);
        let before = state.hot.replace(begun.clone());
        let shelf = BackupRepository::new(backups);
        (Job { shared: Arc::clone(shared), life: state.life, asked, shelf, halt }, before)
    };
    // On its own: whoever asked may hang up, and the place must not stay occupied.
    let noted = tokio::spawn(async move {
        if let Err(why) = record::write(&job.shared, &begun).await {
            let mut state = job.shared.state();
            (state.hot, state.copying) = (before, None);
            return Err(OnlineBackupRefused::NotNoted(why));
        }
        info!("taking a copy of the running server: {}", job.asked.request);
        tokio::spawn(job.run());
        Ok(())
    });
    noted.await.unwrap_or_else(|error| Err(OnlineBackupRefused::NotNoted(error.to_string())))
}

fn check(asked: &HotCopy) -> Result<(), String> {
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-:.".contains(&letter);
    let name = &asked.request;
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(plain) {
        return Err(format!(
            "`request` must have 1 to {LONGEST_NAME} letters, digits, `-`, `:` and `.`, and has {} bytes",
            name.len()
        ));
    }
    if asked.timeout_seconds == 0 {
        return Err("`timeoutSeconds` must be 1 or more: no file can be read in no time".to_owned());
    }
    match asked.trigger {
        Trigger::Scheduled | Trigger::OnDemand => Ok(()),
        Trigger::BeforeUpdate => {
            Err("a copy before an update is taken of a server that does not run: `trigger` must be another".to_owned())
        }
    }
}

/// The server is about to stop: what was not read by now would be read of worlds that are written.
pub(super) fn server_stops(shared: &SidecarState) {
    halt_reading(shared, "the server was stopped while its files were read");
}

/// A process is gone. The next one begins with saving switched on.
pub(super) async fn server_ended(shared: &SidecarState) {
    halt_reading(shared, "the server ended while its files were read");
    autosave::forget(shared).await;
}

/// A process answers. If an agent before this one left word that saving may be off, it is switched on before anything else.
pub(super) async fn server_began(shared: &Arc<SidecarState>) {
    if !autosave::is_noted(shared).await {
        return;
    }
    let life = {
        let mut state = shared.state();
        if state.copying.is_some() {
            // Whoever left the word is still there, and sees to it.
            return;
        }
        state.copying = Some(Copying::default());
        state.life
    };
    warn!("a copy broke off with saving switched off, so it is switched on again");
    if let AutosaveResult::Unclear(answer) = autosave::on(shared, life).await {
        warn!("{}", autosave::still_off(&answer));
    }
    shared.state().copying = None;
}

/// The agent ends. Nothing may keep it, so what is not on the shelf yet does not go there.
pub(super) fn agent_ends(shared: &SidecarState) {
    if let Some(copying) = &shared.state().copying {
        copying.halt.tell("the agent ended before it was read back");
    }
}

/// We are about to have the worlds written for another reason: `save-all` does that whatever `save-off` said.
pub(super) fn worlds_are_saved(shared: &SidecarState) {
    halt_reading(
        shared,
        "the worlds were saved for a stop or a drain before all files were read, which writes to them although saving is off: \
         ask for another copy when that is over",
    );
}

/// A countdown is about to begin; `state` stays in hand until it has. Answers why it cannot begin yet.
pub(super) fn countdown_begins(state: &MutableState) -> Result<(), &'static str> {
    state.copying.as_ref().map_or(Ok(()), Copying::countdown_begins)
}

fn halt_reading(shared: &SidecarState, why: &str) {
    if let Some(copying) = shared.state().copying.as_ref().filter(|copying| copying.stage != BackupStage::AllRead) {
        copying.halt.tell(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_countdown_ends_a_copy_before_its_flush_waits_for_the_flush_and_lets_the_files_be_read() {
        for (stage, begins, goes_on) in [
            (BackupStage::Preparing, true, false),
            (BackupStage::Flushing, false, true),
            (BackupStage::Reading, true, true),
            (BackupStage::AllRead, true, true),
        ] {
            let copying = Copying { stage, ..Copying::default() };
            assert_eq!(copying.countdown_begins().is_ok(), begins, "{stage:?}");
            assert_eq!(copying.halt.why().is_none(), goes_on, "{stage:?}");
        }
    }
}
