//! Edge (writes one note). An obstacle that is the same from try to try: it is told once to who looks at the pod from outside.
//!
//! The kubelet shows what a container has left behind only when it has ended. So `prepare` ends once with it, and is started again at once; that
//! container goes on trying, with the short waits, while the words of the one before stand in the status of the pod. What is mended is found as
//! soon as ever.

use std::fs;
use std::path::{Path, PathBuf};

use tracing::warn;

/// How often it is met until it is told, by the waits between a quarter of a minute: what is over by then (a store that starts, a network that
/// comes) is nobody's business.
const TRIES: u32 = 5;

/// What is in the way.
#[derive(Debug)]
pub(super) struct PersistentFailure {
    /// What was told last in this pod, beside the hook: it outlives the container, and goes with the pod.
    note: PathBuf,
    last: String,
    tries: u32,
}

impl PersistentFailure {
    /// Nothing yet. `shared` is the directory of the pod.
    pub(super) fn new(shared: &Path) -> Self {
        Self { note: shared.join("obstacle"), last: String::new(), tries: 0 }
    }

    /// Counts a try that ended with this, and answers whether it is to be told now: it stays, and was not told before.
    pub(super) fn is_to_be_told(&mut self, why: &str) -> bool {
        let words = without_figures(why);
        self.tries = if self.last == words { self.tries + 1 } else { 1 };
        self.last = words;
        self.tries >= TRIES && !self.was_told(why)
    }

    /// Whether this was told by a container of this pod before.
    pub(super) fn was_told(&self, why: &str) -> bool {
        fs::read_to_string(&self.note).ok() == Some(without_figures(why))
    }

    /// It is told. Where that cannot be put down, it is told again by the next container: often is better than never.
    pub(super) fn is_told(&self) {
        if let Err(error) = fs::write(&self.note, &self.last) {
            warn!("could not put down at {} what was told: {error}", self.note.display());
        }
    }
}

/// Bytes that are free change from look to look, and the obstacle does not.
fn without_figures(why: &str) -> String {
    why.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_told_once_in_a_pod_and_what_comes_then_is_told_too() {
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
    fn what_changes_from_try_to_try_is_not_told() {
        let pod = tempfile::tempdir().unwrap();
        let mut obstacle = PersistentFailure::new(pod.path());
        assert!((0..9).all(|_| !obstacle.is_to_be_told("refused") && !obstacle.is_to_be_told("not found")));
    }
}
