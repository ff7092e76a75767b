//! Pure. Requeues a server whose node has to pull images.

use jiff::Timestamp;

use super::Plan;
use crate::requeue::Outcome;
use crate::server::model::image_pull::state::Pull;

impl Plan {
    /// Requeues the server at the next attempt to pull images.
    pub(crate) fn requeue_for_images(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        // An instant in the past is ignored: after an announcement there is no further attempt.
        let next = self.images.as_ref().and_then(Pull::next_check).filter(|next| *next > now);
        next.map_or(outcome, |next| outcome.no_later_than(next, now))
    }
}
