//! Edge (writes one note). Detects a failure that stays the same over several attempts, and reports it once to the pod's status.
//!
//! The kubelet shows a container's termination message only after it has ended. So `prepare` ends once with the failure, and is restarted at
//! once. The new container retries with short waits, while the pod's status shows the message of the previous one. A fixed failure is therefore
//! noticed as fast as before.

use std::fs;
use std::path::{Path, PathBuf};

use tracing::warn;

/// How often the failure occurs before it is reported. The waits in between add up to a quarter of a minute. A failure that is over by then (a
/// store that starts, a network that comes up) needs no report.
const TRIES: u32 = 5;

/// The current failure.
#[derive(Debug)]
pub(super) struct PersistentFailure {
    /// The last failure that was reported in this pod, stored beside the hook. The file outlives the container, and is removed with the pod.
    note: PathBuf,
    last: String,
    tries: u32,
}

impl PersistentFailure {
    /// No failure yet. `shared` is the directory of the pod.
    pub(super) fn new(shared: &Path) -> Self {
        Self { note: shared.join("obstacle"), last: String::new(), tries: 0 }
    }

    /// Counts an attempt that failed with this reason. Returns whether to report it now: it persists, and was not reported before.
    pub(super) fn is_to_be_told(&mut self, why: &str) -> bool {
        let words = without_figures(why);
        self.tries = if self.last == words { self.tries + 1 } else { 1 };
        self.last = words;
        self.tries >= TRIES && !self.was_told(why)
    }

    /// Whether a container of this pod has reported this before.
    pub(super) fn was_told(&self, why: &str) -> bool {
        fs::read_to_string(&self.note).ok() == Some(without_figures(why))
    }

    /// Records that it was reported. If that fails, the next container reports it again: too often is better than never.
    pub(super) fn is_told(&self) {
        if let Err(error) = fs::write(&self.note, &self.last) {
            warn!("could not put down at {} what was told: {error}", self.note.display());
        }
    }
}

/// Numbers such as free bytes change between attempts although the failure is the same.
fn without_figures(why: &str) -> String {
    why.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persistent_failure_is_reported_once_per_pod() {
        let pod = tempfile::tempdir().unwrap();
        let told = |why: &str| {
            let mut obstacle = PersistentFailure::new(pod.path());
            let told = (0..9).position(|_| obstacle.is_to_be_told(why));
            obstacle.is_told();
            assert!(obstacle.was_told(why));
            told
        };
        assert_eq!(told("no room: 12 bytes free"), Some(4));
        assert_eq!(told("no room: 9 bytes free"), None, "the next container, of the same obstacle");
        assert_eq!(told("not found"), Some(4));
        assert_eq!(told("no room: 9 bytes free"), Some(4), "it was another one meanwhile");
    }

    #[test]
    fn failure_that_changes_between_tries_is_not_reported() {
        let pod = tempfile::tempdir().unwrap();
        let mut obstacle = PersistentFailure::new(pod.path());
        assert!((0..9).all(|_| !obstacle.is_to_be_told("refused") && !obstacle.is_to_be_told("not found")));
    }
}
