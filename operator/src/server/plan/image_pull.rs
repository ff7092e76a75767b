//! Pure. Determines when a server whose node has to pull images is reconciled again.

use jiff::Timestamp;

use super::Plan;
use crate::server::model::image_pull::state::Pull;

impl Plan {
    /// The next attempt to pull images. After an announcement there is none.
    pub(crate) fn next_pull_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.constraints.images.as_ref().and_then(Pull::next_check).filter(|next| *next > now)
    }
}
