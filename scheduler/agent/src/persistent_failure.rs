//! Edge (writes one note). Detects a failure that stays the same over several attempts, and reports it once to the pod's status.
//!
//! The kubelet shows a container's termination message only after it has ended. So `prepare` ends once with the failure, and is restarted at
//! once. The new container retries with short waits, while the pod's status shows the message of the previous one. A fixed failure is therefore
//! noticed as fast as before.

use std::path::{Path, PathBuf};

use tracing::warn;

use crate::plain_fs;

/// How often the failure occurs before it is reported. The waits in between add up to a quarter of a minute. A failure that is over by then (a
/// store that starts, a network that comes up) needs no report.
const ATTEMPTS_UNTIL_REPORTED: u32 = 5;

/// The largest report that is read, in bytes.
const MAX_REPORT_BYTES: u64 = 1024 * 1024;

/// The current failure.
#[derive(Debug)]
pub(super) struct PersistentFailure {
    /// The last failure that was reported in this pod, stored beside the hook. The file outlives the container, and is removed with the pod.
    report_path: PathBuf,
    last: String,
    attempts: u32,
}

impl PersistentFailure {
    /// No failure yet. `shared` is the directory of the pod.
    pub(super) fn new(shared: &Path) -> Self {
        Self { report_path: shared.join("obstacle"), last: String::new(), attempts: 0 }
    }

    /// Counts an attempt that failed with this reason. Returns whether to report it now: it persists, and was not reported before.
    pub(super) fn count_attempt(&mut self, why: &str) -> bool {
        let text = without_digits(why);
        self.attempts = if self.last == text { self.attempts + 1 } else { 1 };
        self.last = text;
        self.attempts >= ATTEMPTS_UNTIL_REPORTED && !self.was_reported(why)
    }

    /// Whether a container of this pod has reported this before.
    pub(super) fn was_reported(&self, why: &str) -> bool {
        plain_fs::read(&self.report_path, MAX_REPORT_BYTES).ok() == Some(without_digits(why).into_bytes())
    }

    /// Records that it was reported. If that fails, the next container reports it again: too often is better than never.
    pub(super) fn mark_reported(&self) {
        if let Err(error) = plain_fs::write_anew(&self.report_path, self.last.as_bytes()) {
            warn!("could not record at {} which failure was reported: {error}", self.report_path.display());
        }
    }
}

/// Numbers such as free bytes change between attempts although the failure is the same.
fn without_digits(why: &str) -> String {
    why.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persistent_failure_is_reported_once_per_pod() {
        let pod = tempfile::tempdir().unwrap();
        let reported = |why: &str| {
            let mut failure = PersistentFailure::new(pod.path());
            let reported = (0..9).position(|_| failure.count_attempt(why));
            failure.mark_reported();
            assert!(failure.was_reported(why));
            reported
        };
        assert_eq!(reported("no room: 12 bytes free"), Some(4));
        assert_eq!(reported("no room: 9 bytes free"), None, "the next container has the same failure");
        assert_eq!(reported("not found"), Some(4));
        assert_eq!(reported("no room: 9 bytes free"), Some(4), "another failure was reported in between");
    }

    #[test]
    fn failure_that_changes_between_tries_is_not_reported() {
        let pod = tempfile::tempdir().unwrap();
        let mut failure = PersistentFailure::new(pod.path());
        assert!((0..9).all(|_| !failure.count_attempt("refused") && !failure.count_attempt("not found")));
    }
}
