//! Pure. What every server asks for, as its last pass found it, and who has to be solved together with whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use resolver::catalog::ProjectKey;
use resolver::request::{Request, VersionWish};

use crate::memory::Key;

/// Shared by all passes and by the catalog, which has to hold what is asked for.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<BTreeMap<Key, Option<Request>>>>);

impl Requests {
    /// Notes what a server asks for; `None`: nothing that could be read. Whether that is something new.
    pub(crate) fn note(&self, namespace: &str, server: &str, request: Option<&Request>) -> bool {
        let key = (namespace.to_owned(), server.to_owned());
        let mut requests = self.lock();
        if requests.get(&key).is_some_and(|known| known.as_ref() == request) {
            return false;
        }
        requests.insert(key, request.cloned());
        true
    }

    /// Notes a server of which nothing can be learned now. What it asked for before still counts.
    pub(crate) fn note_silent(&self, namespace: &str, server: &str) {
        self.lock().entry((namespace.to_owned(), server.to_owned())).or_default();
    }

    /// Forgets a server that is gone.
    pub(crate) fn forget(&self, namespace: &str, server: &str) {
        self.lock().remove(&(namespace.to_owned(), server.to_owned()));
    }

    /// All that is asked for.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.lock().values().flatten().cloned().collect()
    }

    /// The projects that are asked for.
    pub(crate) fn projects(&self) -> BTreeSet<ProjectKey> {
        let requests = self.lock();
        requests.values().flatten().flat_map(|request| request.plugins.iter().map(|wish| wish.key.clone())).collect()
    }

    /// Whether a pass over this server has ended since the process started.
    pub(crate) fn knows(&self, namespace: &str, server: &str) -> bool {
        self.lock().contains_key(&(namespace.to_owned(), server.to_owned()))
    }

    /// The requests that are solved together with this one, which is among them; by the servers' names.
    pub(crate) fn together(&self, namespace: &str, request: &Request) -> Vec<Request> {
        if !shares(request) {
            return vec![request.clone()];
        }
        let mut of_namespace: Vec<Request> = {
            let requests = self.lock();
            let all = requests.iter().filter(|((of, _), _)| of == namespace);
            all.filter_map(|(_, known)| known.clone()).filter(|known| known.server != request.server).collect()
        };
        of_namespace.push(request.clone());
        let mine = of_namespace.len() - 1;
        let groups = resolver::groups(&of_namespace);
        let group = groups.into_iter().find(|group| group.contains(&mine)).expect("every request is in a group");
        group.into_iter().map(|place| of_namespace[place].clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Option<Request>>> {
        // A pass that panicked left a whole map behind: each write is one insert or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether some plugin of a server has to be one release on all servers that match it.
pub(crate) fn shares(request: &Request) -> bool {
    request.plugins.iter().any(|wish| wish.version == VersionWish::Latest)
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
    fn servers_of_one_namespace_that_share_a_latest_plugin_are_together_directly_or_through_others() {
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
            assert!(requests.note(namespace, name, Some(request)));
            assert!(!requests.note(namespace, name, Some(request)), "nothing new");
        }
        assert_eq!(names(&requests.together("games", &all[0].1)), ["games/a", "games/b", "games/c"]);
        assert_eq!(names(&requests.together("games", &all[3].1)), ["games/d"]);
        assert_eq!(names(&requests.together("test", &all[4].1)), ["test/a"]);
        requests.forget("games", "b");
        assert_eq!(names(&requests.together("games", &all[0].1)), ["games/a"]);
    }

    #[test]
    fn a_request_counts_as_it_is_now_and_one_that_cannot_be_read_only_as_known() {
        let requests = Requests::default();
        requests.note("games", "a", Some(&request("games/a", &[])));
        assert!(!requests.knows("games", "b"));
        requests.note_silent("games", "b");
        assert!(requests.knows("games", "b"));
        let now = request("games/a", &[("via", "latest")]);
        assert_eq!(requests.together("games", &now), std::slice::from_ref(&now));
        requests.note_silent("games", "a");
        assert_eq!(requests.all().len(), 1, "what it asked for still counts");
    }
}
