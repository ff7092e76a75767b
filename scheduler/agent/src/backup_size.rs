//! Edge (reads). Measures how much data a backup would contain, after each start of the server and once a day.
//!
//! The plan uses the size to estimate the downtime.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tracing::{info, warn};

use super::state::SidecarState;
use super::{ErrorChain, clock};
use crate::backup::size::measure;

/// Worlds grow noticeably within a day of exploration, not within an hour.
const MEASURE_INTERVAL: Duration = Duration::from_hours(24);
/// Reading the metadata of a hundred thousand files takes a second or two. If it takes longer than this, the disk is busy with other work.
const MEASURE_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);

/// Measures for as long as this server process is running. A server without backups needs no measurement.
pub(super) async fn measure_periodically(shared: &Arc<SidecarState>) {
    let process_generation = shared.state().process_generation;
    while shared.settings.backups.is_some() && shared.state().process_generation == process_generation {
        let data = shared.settings.data.clone();
        match tokio::task::spawn_blocking(move || measure(&data, MEASURE_TIMEOUT, clock::now)).await {
            Ok(Ok(sizes)) => {
                info!(
                    "a backup would have {} bytes of worlds and {} bytes of other files",
                    sizes.worlds, sizes.server_files
                );
                shared.state().sizes = Some(sizes);
            }
            // The previous sizes stay, because a plan shows only an estimate.
            Ok(Err(error)) => warn!("the size of a backup is unknown: {}", ErrorChain(&error)),
            Err(error) => warn!("{error}"),
        }
        tokio::time::sleep(MEASURE_INTERVAL).await;
    }
}
