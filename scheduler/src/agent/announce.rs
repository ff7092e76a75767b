//! Edge (writes). Tells the players how long they have, with true times.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::shared::Shared;
use super::{Chain, clock};
use crate::countdown;
use crate::protocol::Announce;

/// How long one line may take. A tick stall must not eat the lines behind it.
const LINE: Duration = Duration::from_secs(5);

/// Begins a countdown. The same act with the same end is not announced twice; the same act with another end is announced anew.
pub(super) fn begin(shared: &Arc<Shared>, announce: Announce) {
    let mut state = shared.state();
    if state.announced.as_ref().is_some_and(|known| known.act == announce.act && known.ends == announce.ends) {
        return;
    }
    if let Some(task) = state.announcing.take() {
        task.abort();
    }
    info!("announcing {}, which ends at {}", announce.act, announce.ends);
    state.announced = Some(announce.clone());
    let task = Arc::clone(shared);
    state.announcing = Some(tokio::spawn(async move { count_down(&task, &announce).await }));
}

async fn count_down(shared: &Arc<Shared>, announce: &Announce) {
    let act = shared.desk.act();
    let mut last_said = None;
    while let Some(line) = countdown::next_line(announce.ends, last_said, clock::now()) {
        let wait = line.at.duration_since(clock::now());
        tokio::time::sleep(wait.try_into().unwrap_or(Duration::ZERO)).await;
        let text = announce.text.replace("{in}", &countdown::in_words(line.left));
        // A line that fails never stops the countdown: the next one may be heard.
        if let Err(error) = act.console().await.tellraw_all(&text, LINE).await {
            warn!("a line was not said: {}", Chain(&error));
        }
        last_said = Some(line.left);
    }
}
