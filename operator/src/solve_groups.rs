//! Pure. Keeps the request of each server from its last pass, and the groups that are solved together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use resolver::model::catalog::ProjectKey;
use resolver::model::request::{Request, VersionRequest};
use resolver::model::unmanaged_jar::UnmanagedJar;

use crate::caches::Key;

/// The requests that are solved together, by the servers' names. The `Arc` stays the same while none of them changes.
pub(crate) type Group = Arc<Vec<Request>>;

/// Shared by all passes and by the catalog, which must hold the requested projects.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<SolveGroupState>>);

#[derive(Default)]
struct SolveGroupState {
    /// `None`: the server has no readable request.
    requests: BTreeMap<Key, Option<Request>>,
    /// Per namespace, the groups of servers that share a plugin.
    groups: BTreeMap<String, Groups>,
    /// Servers whose pass ended early, because another server of their namespace has not had a pass yet.
    waiting: BTreeSet<Key>,
}

#[derive(Default)]
struct Groups {
    /// Whether a request of the namespace has changed since the groups were made.
    stale: bool,
    groups: Vec<Group>,
}

impl Requests {
    /// Records a server's request, or `None` if it could not be read. Returns whether it changed.
    pub(crate) fn record(&self, namespace: &str, server: &str, request: Option<&Request>) -> bool {
        let mut state = self.lock();
        let key = (namespace.to_owned(), server.to_owned());
        if state.requests.get(&key).is_some_and(|recorded| recorded.as_ref() == request) {
            return false;
        }
        state.requests.insert(key, request.cloned());
        state.mark_stale(namespace);
        true
    }

    /// Records a server whose request is unknown now. Its earlier request remains valid.
    pub(crate) fn record_unknown(&self, namespace: &str, server: &str) {
        self.lock().requests.entry((namespace.to_owned(), server.to_owned())).or_default();
    }

    /// Removes the servers of a namespace that are not in `existing`. A deleted server has no pass that could remove it.
    pub(crate) fn retain_servers(&self, namespace: &str, existing: &BTreeSet<String>) {
        let mut state = self.lock();
        let before = state.requests.len();
        state.requests.retain(|(request_namespace, name), _| request_namespace != namespace || existing.contains(name));
        state.waiting.retain(|(request_namespace, name)| request_namespace != namespace || existing.contains(name));
        if state.requests.len() != before {
            state.mark_stale(namespace);
        }
    }

    /// The number of servers with a recorded pass, in all namespaces.
    pub(crate) fn len(&self) -> usize {
        self.lock().requests.len()
    }

    /// The request of one server.
    pub(crate) fn of(&self, namespace: &str, server: &str) -> Option<Request> {
        self.lock().requests.get(&(namespace.to_owned(), server.to_owned())).cloned().flatten()
    }

    /// The requests of all servers.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.lock().requests.values().flatten().cloned().collect()
    }

    /// Whether a request names a project or an unmanaged JAR that no other request has named.
    pub(crate) fn has_new_names(&self, request: &Request) -> bool {
        let state = self.lock();
        let recorded = || state.requests.values().flatten();
        let has_project =
            |key: &ProjectKey| recorded().any(|other| other.plugins.iter().any(|plugin| plugin.key == *key));
        let has_jar =
            |jar: &UnmanagedJar| recorded().any(|other| other.unmanaged.iter().any(|its| its.sha256 == jar.sha256));
        !request.plugins.iter().all(|plugin| has_project(&plugin.key))
            || !request.unmanaged.iter().all(|jar| jar.sha256.is_none() || has_jar(jar))
    }

    /// Whether a pass over this server has ended since the process started.
    pub(crate) fn contains(&self, namespace: &str, server: &str) -> bool {
        self.lock().requests.contains_key(&(namespace.to_owned(), server.to_owned()))
    }

    /// Records that a server waits for the first passes over all servers of its namespace.
    pub(crate) fn add_waiting(&self, namespace: &str, server: &str) {
        self.lock().waiting.insert((namespace.to_owned(), server.to_owned()));
    }

    /// Records that a server does not wait.
    pub(crate) fn remove_waiting(&self, namespace: &str, server: &str) {
        self.lock().waiting.remove(&(namespace.to_owned(), server.to_owned()));
    }

    /// Removes all waiting servers of the namespace, and returns whether there were any.
    pub(crate) fn clear_waiting(&self, namespace: &str) -> bool {
        let mut state = self.lock();
        let before = state.waiting.len();
        state.waiting.retain(|(request_namespace, _)| request_namespace != namespace);
        state.waiting.len() != before
    }

    /// Whether a server of the namespace waits.
    pub(crate) fn has_waiting(&self, namespace: &str) -> bool {
        self.lock().waiting.iter().any(|(request_namespace, _)| request_namespace == namespace)
    }

    /// The names of the servers of a namespace with a plugin that servers have to share.
    pub(crate) fn servers_with_shared_plugins(&self, namespace: &str) -> Vec<String> {
        let state = self.lock();
        let of_namespace = state.requests.iter().filter(|((request_namespace, _), _)| request_namespace == namespace);
        let sharing = of_namespace.filter(|(_, request)| request.as_ref().is_some_and(has_shared_plugin));
        sharing.map(|((_, name), _)| name.clone()).collect()
    }

    /// The group that a server is solved with, as far as it is known, including its own request. `None` if the server
    /// shares no plugin.
    pub(crate) fn group_of(&self, namespace: &str, server: &str) -> Option<Group> {
        let mut state = self.lock();
        state.regroup(namespace);
        let full = format!("{namespace}/{server}");
        let contains_server = |group: &&Group| group.iter().any(|request| request.server == full);
        state.groups[namespace].groups.iter().find(contains_server).cloned()
    }

    /// The requests that are solved together with this one, which has been recorded and is among them.
    pub(crate) fn group_for_request(&self, namespace: &str, server: &str, request: &Request) -> Group {
        if has_shared_plugin(request) {
            self.group_of(namespace, server).expect("a recorded request is in a group")
        } else {
            Arc::new(vec![request.clone()])
        }
    }

    fn lock(&self) -> MutexGuard<'_, SolveGroupState> {
        // A pass that panicked left the state consistent: each write is one insert or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SolveGroupState {
    fn mark_stale(&mut self, namespace: &str) {
        if let Some(groups) = self.groups.get_mut(namespace) {
            groups.stale = true;
        }
    }

    /// An unchanged group keeps its `Arc`, so that earlier decisions about it remain valid.
    fn regroup(&mut self, namespace: &str) {
        if self.groups.get(namespace).is_some_and(|groups| !groups.stale) {
            return;
        }
        let old = self.groups.remove(namespace).unwrap_or_default().groups;
        let of_namespace = self.requests.iter().filter(|((request_namespace, _), _)| request_namespace == namespace);
        let sharing =
            of_namespace.filter_map(|(_, request)| request.as_ref().filter(|recorded| has_shared_plugin(recorded)));
        let all: Vec<Request> = sharing.cloned().collect();
        let groups = resolver::groups(&all).into_iter().map(|indices| {
            let group: Vec<Request> = indices.into_iter().map(|index| all[index].clone()).collect();
            old.iter().find(|recorded| ***recorded == group).cloned().unwrap_or_else(|| Arc::new(group))
        });
        self.groups.insert(namespace.to_owned(), Groups { stale: false, groups: groups.collect() });
    }
}

/// The names of the other servers in a group.
pub(crate) fn peers<'g>(group: &'g Group, server: &'g str) -> impl Iterator<Item = &'g str> {
    let names = group.iter().filter_map(|request| request.server.rsplit_once('/')).map(|(_, name)| name);
    names.filter(move |name| *name != server)
}

/// Whether a plugin of the server must have one release on all servers that match it.
pub(crate) fn has_shared_plugin(request: &Request) -> bool {
    request.plugins.iter().any(|plugin| plugin.version == VersionRequest::Latest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(server: &str, plugins: &[(&str, &str)]) -> Request {
        let plugins: Vec<_> = plugins
            .iter()
            .map(|(object, strategy)| {
                json!({
                    "object": object, "key": {"source": "modrinth", "project": object}, "version": {"strategy": strategy},
                    "delay": "PT0S", "channel": "release",
                })
            })
            .collect();
        serde_json::from_value(json!({
            "server": server, "paper": {"strategy": "auto"}, "delay": "PT0S", "channel": "STABLE", "plugins": plugins,
        }))
        .unwrap()
    }

    fn names(requests: &[Request]) -> Vec<&str> {
        requests.iter().map(|request| request.server.as_str()).collect()
    }

    #[test]
    fn request_with_unknown_project_or_hashed_jar_adds_names() {
        let requests = Requests::default();
        let jar = |sha256: Option<&str>| serde_json::from_value(json!({"file": "shop.jar", "sha256": sha256})).unwrap();
        let with = |jars: Vec<UnmanagedJar>| Request { unmanaged: jars, ..request("games/a", &[("via", "auto")]) };
        assert!(requests.has_new_names(&with(vec![])), "an unknown project is new");
        requests.record("games", "b", Some(&with(vec![])));
        assert!(!requests.has_new_names(&with(vec![])));
        assert!(!requests.has_new_names(&with(vec![jar(None)])));
        assert!(requests.has_new_names(&with(vec![jar(None), jar(Some("aa"))])));
        requests.record("games", "b", Some(&with(vec![jar(Some("aa"))])));
        assert!(!requests.has_new_names(&with(vec![jar(Some("aa"))])));
        assert!(requests.has_new_names(&with(vec![jar(Some("bb"))])), "a file with another hash is new");
    }

    #[test]
    fn servers_sharing_latest_plugin_form_one_group() {
        let requests = Requests::default();
        let all = [
            ("games", request("games/a", &[("via", "latest")])),
            ("games", request("games/b", &[("via", "latest"), ("chat", "latest")])),
            ("games", request("games/c", &[("chat", "latest")])),
            ("games", request("games/d", &[("via", "auto")])),
            ("test", request("test/a", &[("via", "latest")])),
        ];
        for (namespace, request) in &all {
            let name = request.server.split_once('/').unwrap().1;
            assert!(requests.record(namespace, name, Some(request)));
            assert!(!requests.record(namespace, name, Some(request)), "the same request is no change");
        }
        assert_eq!(names(&requests.group_for_request("games", "a", &all[0].1)), ["games/a", "games/b", "games/c"]);
        assert_eq!(names(&requests.group_for_request("games", "d", &all[3].1)), ["games/d"]);
        assert_eq!(names(&requests.group_for_request("test", "a", &all[4].1)), ["test/a"]);
        requests.retain_servers("games", &["a", "c", "d"].map(str::to_owned).into());
        assert_eq!(
            names(&requests.group_for_request("games", "a", &all[0].1)),
            ["games/a"],
            "a deleted server leaves its group"
        );
        assert_eq!(
            names(&requests.group_for_request("test", "a", &all[4].1)),
            ["test/a"],
            "another namespace is not affected"
        );
    }

    #[test]
    fn unreadable_request_counts_only_as_known() {
        let requests = Requests::default();
        requests.record("games", "a", Some(&request("games/a", &[])));
        assert!(!requests.contains("games", "b"));
        requests.record_unknown("games", "b");
        assert!(requests.contains("games", "b"));
        let now = request("games/a", &[("via", "latest")]);
        requests.record("games", "a", Some(&now));
        assert_eq!(*requests.group_for_request("games", "a", &now), [now]);
        requests.record_unknown("games", "a");
        assert_eq!(requests.all().len(), 1, "its earlier request remains valid");
    }

    #[test]
    fn request_change_affects_only_its_own_group() {
        let requests = Requests::default();
        let (a, b) = (request("games/a", &[("via", "latest")]), request("games/b", &[("via", "latest")]));
        let (c, d) = (request("games/c", &[("chat", "latest")]), request("games/d", &[("chat", "latest")]));
        for (name, request) in [("a", &a), ("b", &b), ("c", &c), ("d", &d)] {
            requests.record("games", name, Some(request));
        }
        let (one, other) = (requests.group_for_request("games", "a", &a), requests.group_for_request("games", "c", &c));
        let changed = request("games/b", &[("via", "latest"), ("map", "auto")]);
        requests.record("games", "b", Some(&changed));
        assert!(Arc::ptr_eq(&requests.group_for_request("games", "c", &c), &other), "the other group is unchanged");
        let group = requests.group_of("games", "a").unwrap();
        assert_eq!(peers(&group, "a").collect::<Vec<_>>(), ["b"]);
        assert_eq!(requests.group_of("test", "a"), None);
        assert!(!Arc::ptr_eq(&requests.group_for_request("games", "a", &a), &one));
        assert_eq!(*requests.group_for_request("games", "a", &a), [a, changed]);
    }

    #[test]
    fn wait_for_unknown_server_ends_once() {
        let requests = Requests::default();
        requests.record("games", "a", Some(&request("games/a", &[("via", "latest")])));
        requests.record("games", "b", Some(&request("games/b", &[("via", "auto")])));
        assert!(!requests.has_waiting("games"));
        requests.add_waiting("games", "a");
        assert!(requests.has_waiting("games") && !requests.has_waiting("test"));
        assert_eq!(requests.servers_with_shared_plugins("games"), ["a"]);
        assert!(requests.clear_waiting("games"));
        assert!(!requests.clear_waiting("games"));
    }
}
