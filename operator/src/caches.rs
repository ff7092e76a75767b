//! Pure. Caches what a process has read, to spare requests. After a restart the operator reads all of it again from the
//! cluster.
//!
//! Two caches can change a decision. `agent_reports` has the last report of an agent that is unreachable now, and `pinned_catalogs`
//! has the pinned catalogs of announced updates. No other cache makes the operator decide differently after a restart.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use agent_api::AgentReport;
use crds::PaperMCServerStatus;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::observation::Revision;

use crate::server::model::image_pull::state::Pull;
use crate::server::model::keys::ServerKeys;
use crate::server::model::pinned_catalog::PinnedCatalog;
use crate::server::model::records::{LockRecord, MountedLock, StableRecord};

/// How long a cached object that others hardly ever change is used without a read. When the windows of hundreds of
/// servers open at the same moment, each skipped read makes the warnings to players earlier.
const FRESH_FOR: SignedDuration = SignedDuration::from_mins(2);

/// Whether an object read at `read_at` need not be read again. False after a clock was set back.
pub(crate) fn is_fresh(read_at: Timestamp, now: Timestamp) -> bool {
    (SignedDuration::ZERO..FRESH_FOR).contains(&now.duration_since(read_at))
}

/// A name within a namespace.
pub(crate) type Key = (String, String);

/// A map that concurrent passes share.
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
    pub(crate) fn min_value(&self) -> Option<V>
    where
        V: Ord,
    {
        self.lock().values().min().cloned()
    }

    /// The number of values.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// The keys of the values that `matches` accepts.
    pub(crate) fn keys_where(&self, matches: impl Fn(&V) -> bool) -> Vec<K>
    where
        K: Clone,
    {
        self.lock().iter().filter(|(_, value)| matches(value)).map(|(key, _)| key.clone()).collect()
    }

    /// Removes each key for which `keep` returns false.
    pub(crate) fn retain(&self, keep: impl Fn(&K) -> bool) {
        self.lock().retain(|key, _| keep(key));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<K, V>> {
        // A pass that panicked left the map consistent: each write is one insert.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A rendered template as the API server stored it.
#[derive(Debug, Clone)]
pub(crate) struct Rendered {
    pub(crate) revision: Revision,
    /// With the API server's defaults filled in.
    pub(crate) template: Arc<PodTemplateSpec>,
    /// The digest of the template before that. `None` if this process did not render it.
    pub(crate) source: Option<[u8; 32]>,
}

/// One entry of a `StatefulSet`'s history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateHistoryEntry {
    pub(crate) revision: Revision,
    /// The lock that its template mounts.
    pub(crate) lock: Option<MountedLock>,
}

/// The last report of a pod's agent.
#[derive(Debug, Clone)]
pub(crate) struct LastAgentReport {
    /// When the agent last replied, or when the first request was sent.
    pub(crate) replied_at: Timestamp,
    /// When the first request without a reply since then was sent.
    pub(crate) silent_since: Option<Timestamp>,
    pub(crate) report: Option<Arc<AgentReport>>,
}

/// All caches of the process.
#[derive(Default)]
pub(crate) struct Caches {
    /// `ControllerRevision`s are immutable: each is read once.
    pub(crate) history: SharedMap<Key, TemplateHistoryEntry>,
    /// Lock `ConfigMap`s are immutable too.
    pub(crate) locks: SharedMap<Key, Arc<LockRecord>>,
    /// Records of stable revisions, which are immutable too.
    pub(crate) stable: SharedMap<Key, Arc<StableRecord>>,
    /// By the hash of the rendered template.
    pub(crate) rendered: SharedMap<[u8; 32], Rendered>,
    /// Templates with the API server's defaults, and with placeholders ([`crate::server::render::template_defaults`]), by
    /// the digest of the template without defaults.
    pub(crate) defaults: SharedMap<[u8; 32], Arc<serde_json::Value>>,
    /// By pod UID.
    pub(crate) agent_reports: SharedMap<String, LastAgentReport>,
    /// The children as they were applied or found, by `Kind/name`. An apply that would change nothing is not sent.
    pub(crate) applied: SharedMap<Key, AppliedObject>,
    /// The keys of the servers, by the names of their Secrets.
    pub(crate) keys: SharedMap<Key, KnownKeys>,
    /// The Secrets that a server may name.
    pub(crate) allowed_secrets: SharedMap<Key, AllowedSecrets>,
    /// The status that was written last, with the UID of its server.
    pub(crate) status: SharedMap<Key, (String, Arc<PaperMCServerStatus>)>,
    /// Servers with a new stable revision, whose unused `ConfigMap`s are not deleted yet.
    pub(crate) uncleaned: SharedMap<Key, ()>,
    /// Pods, by UID, whose agent is too old for online backups.
    pub(crate) without_online_backup: SharedMap<String, ()>,
    /// When the newest good backup was taken, for each running server with a schedule.
    pub(crate) last_backups: SharedMap<Key, Timestamp>,
    /// Servers that did not answer in their last pass (`NotResponding`).
    pub(crate) not_responding: SharedMap<Key, ()>,
    /// The node that each server was on in its last pass.
    pub(crate) server_nodes: SharedMap<Key, String>,
    /// Servers whose `PodDisruptionBudget` is deleted.
    pub(crate) without_budget: SharedMap<Key, ()>,
    /// The image pull requested on a server's node, and its result.
    pub(crate) pulls: SharedMap<Key, Pull>,
    /// The pinned catalogs of announced updates. An entry exists only while its update waits.
    pub(crate) pinned_catalogs: SharedMap<Key, PinnedCatalog>,
    /// Failures in a row, by server.
    pub(crate) attempts: SharedMap<Key, u32>,
    /// Namespaces that are being deleted, with the creation time of their newest server. A later server is in a new
    /// namespace of the same name.
    pub(crate) terminating: SharedMap<String, Timestamp>,
}

/// One child as it was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppliedObject {
    pub(crate) digest: [u8; 32],
    pub(crate) resource_version: Option<String>,
    /// When the child was last found in this state.
    pub(crate) verified_at: Timestamp,
}

/// The keys of a server.
#[derive(Clone)]
pub(crate) struct KnownKeys {
    pub(crate) keys: ServerKeys,
    /// When they were read.
    pub(crate) read_at: Timestamp,
}

/// The Secrets that a spec names, all of which allowed that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedSecrets {
    pub(crate) names: BTreeSet<String>,
    /// When their labels were read.
    pub(crate) read_at: Timestamp,
}

impl Caches {
    /// Removes the entries of a deleted server.
    pub(crate) fn evict(&self, namespace: &str, server: &str) {
        let prefix = format!("{server}-");
        let belongs_to_server = |key: &Key| key.0 == namespace && (key.1 == server || key.1.starts_with(&prefix));
        self.history.retain(|key| !belongs_to_server(key));
        self.locks.retain(|key| !belongs_to_server(key));
        self.stable.retain(|key| !belongs_to_server(key));
        self.attempts.retain(|key| !belongs_to_server(key));
        self.status.retain(|key| !belongs_to_server(key));
        self.uncleaned.retain(|key| !belongs_to_server(key));
        self.last_backups.retain(|key| !belongs_to_server(key));
        self.not_responding.retain(|key| !belongs_to_server(key));
        self.server_nodes.retain(|key| !belongs_to_server(key));
        self.without_budget.retain(|key| !belongs_to_server(key));
        self.keys.retain(|key| !belongs_to_server(key));
        self.allowed_secrets.retain(|key| !belongs_to_server(key));
        self.pulls.retain(|key| !belongs_to_server(key));
        self.pinned_catalogs.retain(|key| !belongs_to_server(key));
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
    fn cache_entry_counts_two_minutes_and_never_from_future() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(is_fresh(at(100), at(100)) && is_fresh(at(100), at(219)));
        assert!(!is_fresh(at(100), at(220)));
        assert!(!is_fresh(at(86_500), at(100)));
    }
}
