//! Edge (reads). Measures what a copy would hold, so that a plan can say what it costs: after each start of the server, and once a day.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tracing::{info, warn};

use super::state::SidecarState;
use super::{Chain, clock};
use crate::backup::size::measure;

/// Worlds grow by what is explored in a day, not by what is explored in an hour.
const AGAIN: Duration = Duration::from_hours(24);
/// A hundred thousand files are looked at in a second or two; whoever needs longer has a disk that is busy with other things.
const WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// Measures for as long as this process of the server lives. A server without copies has nothing to measure for.
pub(super) async fn keep(shared: &Arc<SidecarState>) {
    let life = shared.state().life;
    while shared.settings.backups.is_some() && shared.state().life == life {
        let data = shared.settings.data.clone();
        match tokio::task::spawn_blocking(move || measure(&data, WITHIN, clock::now)).await {
            Ok(Ok(sizes)) => {
                info!("a copy would hold {} bytes of worlds and {} of the rest", sizes.worlds, sizes.server_files);
                shared.state().sizes = Some(sizes);
            }
            // What was known stands: a plan says "about".
            Ok(Err(error)) => warn!("what a copy would hold is not known: {}", Chain(&error)),
            Err(error) => warn!("{error}"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}
