//! Edge (writes). Wakes servers a moment after a request, and once for all requests until then.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

use tokio::sync::mpsc;

/// How long the servers that share a plugin are not woken after one of them has changed.
const DEBOUNCE: Duration = Duration::from_secs(3);

/// Wakes each requested server once, a moment later. When two hundred servers share a plugin, each one that starts
/// changes the answers of all others.
pub(crate) async fn wake_debounced<K: Eq + Hash>(
    mut requests: mpsc::UnboundedReceiver<K>,
    wake: mpsc::UnboundedSender<K>,
) {
    while let Some(first) = requests.recv().await {
        tokio::time::sleep(DEBOUNCE).await;
        let mut all = HashSet::from([first]);
        while let Ok(next) = requests.try_recv() {
            all.insert(next);
        }
        // Sending fails only when the process ends.
        for key in all {
            drop(wake.send(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn debounce_wakes_each_key_once_per_period() {
        let (request, requests) = mpsc::unbounded_channel();
        let (wake, mut woken) = mpsc::unbounded_channel();
        tokio::spawn(wake_debounced(requests, wake));
        let began = tokio::time::Instant::now();
        for server in ["a", "b", "a", "b", "a"] {
            request.send(server).unwrap();
        }
        let mut first = [woken.recv().await.unwrap(), woken.recv().await.unwrap()];
        first.sort_unstable();
        assert_eq!((first, began.elapsed()), (["a", "b"], DEBOUNCE));
        request.send("a").unwrap();
        assert_eq!((woken.recv().await, began.elapsed()), (Some("a"), 2 * DEBOUNCE), "the next request wakes again");
    }
}
