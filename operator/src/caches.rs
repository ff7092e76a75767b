//! Pure. What a process remembers between passes to spare requests: all of it is read again from the cluster when it is not there. But for
//! what an agent that is silent now has said before (`heard`), and what upstreams had published when players were told of an update
//! (`promises`), nothing in it decides anything that a restart of the process would decide otherwise.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use crds::PaperMCServerStatus;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::observation::Revision;
use scheduler::protocol::{AgentReport, signature};

use crate::server::image_pull::state::Pull;
use crate::server::pinned_catalog::PinnedCatalog;
use crate::server::records::{LockRecord, SettledRecord};

/// What is hardly ever changed by others is read again when it was seen so long ago: of hundreds of servers whose window opens at one
/// instant, each warns its players sooner by all that is not read first.
const SEEN_COUNTS: SignedDuration = SignedDuration::from_mins(2);

/// Whether what was seen then need not be read again. After a clock was set back nothing was seen lately.
pub(crate) fn was_lately(seen_at: Timestamp, now: Timestamp) -> bool {
    (SignedDuration::ZERO..SEEN_COUNTS).contains(&now.duration_since(seen_at))
}

/// A name within a namespace.
pub(crate) type Key = (String, String);

/// A map that many passes share.
pub(crate) struct SharedMap<K, V>(Mutex<HashMap<K, V>>);

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Eq + Hash, V: Clone> SharedMap<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.lock().get(key).cloned()
    }

    pub(crate) fn put(&self, key: K, value: V) {
        self.lock().insert(key, value);
    }

    pub(crate) fn remove(&self, key: &K) -> Option<V> {
        self.lock().remove(key)
    }

    /// The least of all values.
    pub(crate) fn least(&self) -> Option<V>
    where
        V: Ord,
    {
        self.lock().values().min().cloned()
    }

    /// The keys of the values that are meant.
    pub(crate) fn keys_of(&self, is_meant: impl Fn(&V) -> bool) -> Vec<K>
    where
        K: Clone,
    {
        self.lock().iter().filter(|(_, value)| is_meant(value)).map(|(key, _)| key.clone()).collect()
    }

    /// Drops what `keep` refuses.
    pub(crate) fn retain(&self, keep: impl Fn(&K) -> bool) {
        self.lock().retain(|key, _| keep(key));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<K, V>> {
        // A pass that panicked left a whole value behind: each write is one insert.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a rendered template became in the API server.
#[derive(Debug, Clone)]
pub(crate) struct Rendered {
    pub(crate) revision: Revision,
    /// With the API server's defaults filled in.
    pub(crate) template: Arc<PodTemplateSpec>,
}

/// What one entry of a `StatefulSet`'s history holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateHistoryEntry {
    pub(crate) revision: Revision,
    /// The lock `ConfigMap` its template mounts.
    pub(crate) lock_map: Option<String>,
}

/// What the agent of a pod said last.
#[derive(Debug, Clone)]
pub(crate) struct LastAgentReport {
    /// When it answered last, or when we first asked in vain.
    pub(crate) at: Timestamp,
    pub(crate) report: Option<Arc<AgentReport>>,
}

/// All of it.
#[derive(Default)]
pub(crate) struct Caches {
    /// `ControllerRevision`s are immutable: each is read once.
    pub(crate) history: SharedMap<Key, TemplateHistoryEntry>,
    /// Lock `ConfigMap`s are immutable too.
    pub(crate) locks: SharedMap<Key, Arc<LockRecord>>,
    /// And so are the records of settled revisions.
    pub(crate) settled: SharedMap<Key, Arc<SettledRecord>>,
    /// By the hash of what we rendered.
    pub(crate) rendered: SharedMap<[u8; 32], Rendered>,
    /// By pod UID.
    pub(crate) heard: SharedMap<String, LastAgentReport>,
    /// What we applied last and what the API server made of it, by `Kind/name`: an apply that would change nothing is
    /// not sent.
    pub(crate) applied: SharedMap<Key, Applied>,
    /// The keys of the agents, by the names of their Secrets.
    pub(crate) keys: SharedMap<Key, KnownKey>,
    /// The status we wrote last, with the UID of the server it is about.
    pub(crate) status: SharedMap<Key, (String, Arc<PaperMCServerStatus>)>,
    /// The settled revision after which unused `ConfigMap`s were deleted.
    pub(crate) cleaned: SharedMap<Key, Revision>,
    /// Pods, by UID, whose agent does not know of copies of a running server.
    pub(crate) too_old: SharedMap<String, ()>,
    /// When the newest good copy was taken, of each server that has a schedule and runs.
    pub(crate) copied: SharedMap<Key, Timestamp>,
    /// The node that each server was on when it was looked at last.
    pub(crate) placed: SharedMap<Key, String>,
    /// Servers of which no `PodDisruptionBudget` of ours is left.
    pub(crate) unbudgeted: SharedMap<Key, ()>,
    /// What the node of a server was asked to pull, and what came of it.
    pub(crate) pulls: SharedMap<Key, Pull>,
    /// What updates were planned from of which players were told. Only while they wait.
    pub(crate) promises: SharedMap<Key, PinnedCatalog>,
    /// Failures in a row, by server.
    pub(crate) attempts: SharedMap<Key, u32>,
}

/// One child as it was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) digest: [u8; 32],
    pub(crate) resource_version: Option<String>,
    /// When it was found to be so.
    pub(crate) at: Timestamp,
}

/// The key that a server's agent and the operator share.
#[derive(Clone)]
pub(crate) struct KnownKey {
    pub(crate) key: signature::Key,
    /// When it was read.
    pub(crate) at: Timestamp,
}

impl Caches {
    /// Forgets a server that is gone.
    pub(crate) fn forget(&self, namespace: &str, server: &str) {
        let prefix = format!("{server}-");
        let of = |key: &Key| key.0 == namespace && (key.1 == server || key.1.starts_with(&prefix));
        self.history.retain(|key| !of(key));
        self.locks.retain(|key| !of(key));
        self.settled.retain(|key| !of(key));
        self.attempts.retain(|key| !of(key));
        self.status.retain(|key| !of(key));
        self.cleaned.retain(|key| !of(key));
        self.copied.retain(|key| !of(key));
        self.placed.retain(|key| !of(key));
        self.unbudgeted.retain(|key| !of(key));
        self.keys.retain(|key| !of(key));
        self.pulls.retain(|key| !of(key));
        self.promises.retain(|key| !of(key));
        self.applied.retain(|key| {
            !(key.0 == namespace
                && key.1.split_once('/').is_some_and(|(_, name)| name == server || name.starts_with(&prefix)))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_counts_for_two_minutes_and_not_from_a_future_that_a_clock_made_up() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(was_lately(at(100), at(100)) && was_lately(at(100), at(219)));
        assert!(!was_lately(at(100), at(220)));
        assert!(!was_lately(at(86_500), at(100)));
    }
}
