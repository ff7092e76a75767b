//! Pure. Keeps the servers that each Plugin matches, so that a change of a server wakes only the Plugins whose statuses it changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crds::paper_mc_server::PluginStateKind;
use crds::plugin::MatchedInstance;
use crds::{PaperMCServer, Plugin};
use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;

use crate::caches::Key;
use crate::error_chain::cut;

/// The matched servers of all Plugins that had a pass. All clones share them.
#[derive(Clone, Default)]
pub(crate) struct MatchedServers(Arc<Mutex<HashMap<Key, Matched>>>);

/// The servers of one Plugin.
struct Matched {
    /// UID and generation of the Plugin that they were matched with.
    plugin: (Option<String>, Option<i64>),
    servers: BTreeMap<String, MatchedInstance>,
}

impl MatchedServers {
    /// The servers that match, in the order of their names. After a change of the Plugin's spec they are looked for among all servers.
    pub(super) fn of(&self, plugin: &Plugin, servers: &Store<PaperMCServer>) -> Vec<MatchedInstance> {
        let mut all = self.lock();
        let version = (plugin.uid(), plugin.metadata.generation);
        let is_current = |matched: &&Matched| matched.plugin == version;
        if let Some(matched) = all.get(&key_of(plugin)).filter(is_current) {
            return matched.servers.values().cloned().collect();
        }
        let state = servers.state();
        let matching = state.iter().filter(|server| matches(plugin, server));
        let found: BTreeMap<_, _> = matching.map(|server| (server.name_any(), instance(plugin, server))).collect();
        let names = found.values().cloned().collect();
        all.insert(key_of(plugin), Matched { plugin: version, servers: found });
        names
    }

    /// Takes in an event of the watch of servers. Returns the Plugins whose statuses may have changed. The store of servers must have the
    /// event already.
    pub(crate) fn handle_event(&self, event: &Event<PaperMCServer>, plugins: &Store<Plugin>) -> Vec<ObjectRef<Plugin>> {
        match event {
            Event::Apply(server) | Event::InitApply(server) => self.update(server, true, plugins),
            Event::Delete(server) => self.update(server, false, plugins),
            Event::Init => Vec::new(),
            Event::InitDone => {
                // Deletions during a broken watch have no event.
                self.lock().clear();
                plugins.state().iter().map(|plugin| ObjectRef::from_obj(&**plugin)).collect()
            }
        }
    }

    /// Removes a deleted Plugin.
    pub(crate) fn remove(&self, plugin: &Key) {
        self.lock().remove(plugin);
    }

    fn update(&self, server: &PaperMCServer, exists: bool, plugins: &Store<Plugin>) -> Vec<ObjectRef<Plugin>> {
        let mut all = self.lock();
        let name = server.name_any();
        let mut changed = Vec::new();
        for plugin in plugins.state_filter(|plugin| plugin.namespace() == server.namespace()) {
            // The first pass over a Plugin looks for its servers itself.
            let Some(matched) = all.get_mut(&key_of(&plugin)) else { continue };
            let found = (exists && matches(&plugin, server)).then(|| instance(&plugin, server));
            if matched.servers.get(&name) == found.as_ref() {
                continue;
            }
            match found {
                Some(found) => drop(matched.servers.insert(name.clone(), found)),
                None => drop(matched.servers.remove(&name)),
            }
            changed.push(ObjectRef::from_obj(&*plugin));
        }
        changed
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Matched>> {
        // A panic leaves the map consistent: each change is one insert or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key_of(plugin: &Plugin) -> Key {
    (plugin.namespace().unwrap_or_default(), plugin.name_any())
}

fn matches(plugin: &Plugin, server: &PaperMCServer) -> bool {
    plugin.namespace() == server.namespace() && from_api::matches(&plugin.spec.instance_selector, server.labels())
}

/// One server that gets this plugin, with the release that the server's own status plans for it.
fn instance(plugin: &Plugin, server: &PaperMCServer) -> MatchedInstance {
    let name = plugin.name_any();
    let planned =
        server.status.iter().flat_map(|status| &status.plugins).find(|state| {
            state.plugin.as_deref().is_some_and(|objects| objects.split(", ").any(|object| object == name))
        });
    let version = planned.and_then(|state| state.desired_version.clone());
    let not_enabled = planned.is_some_and(|planned| planned.state == PluginStateKind::NotEnabled);
    let decided_by = planned.and_then(|state| state.decided_by.as_deref().map(|object| cut(object, 64)));
    let compatible = planned.map(|_| version.is_some());
    MatchedInstance { name: server.name_any(), compatible, version, not_enabled, decided_by }
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::store::Writer;
    use serde_json::{Value, json};

    use super::*;

    fn server(name: &str, tier: &str, planned: Option<&str>) -> PaperMCServer {
        let plugins: Vec<Value> = planned
            .map(|version| json!({"name": "Via", "plugin": "via", "state": "Installed", "desiredVersion": version}))
            .into_iter()
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer",
            "metadata": {"name": name, "namespace": "games", "labels": {"tier": tier}},
            "spec": {"updateStrategy": "latest"}, "status": {"plugins": plugins},
        }))
        .unwrap()
    }

    fn plugin(name: &str, tier: &str, generation: i64) -> Plugin {
        serde_json::from_value(json!({
            "apiVersion": "nightshift.dev/v1alpha1", "kind": "Plugin",
            "metadata": {"name": name, "namespace": "games", "uid": name, "generation": generation},
            "spec": {
                "source": {"type": "modrinth", "project": name}, "instanceSelector": {"matchLabels": {"tier": tier}},
            },
        }))
        .unwrap()
    }

    fn names(instances: &[MatchedInstance]) -> Vec<&str> {
        instances.iter().map(|instance| instance.name.as_str()).collect()
    }

    #[test]
    fn server_event_wakes_only_plugins_that_it_concerns() {
        let (mut servers, mut plugins) = (Writer::default(), Writer::default());
        for plugin in [plugin("via", "a", 1), plugin("map", "b", 1)] {
            plugins.apply_watcher_event(&Event::Apply(plugin));
        }
        let (known_servers, known_plugins) = (servers.as_reader(), plugins.as_reader());
        let matched = MatchedServers::default();
        let mut woken = |event: Event<PaperMCServer>| {
            servers.apply_watcher_event(&event);
            let woken = matched.handle_event(&event, &known_plugins);
            woken.into_iter().map(|plugin| plugin.name).collect::<Vec<_>>()
        };
        assert!(woken(Event::Apply(server("lobby", "a", None))).is_empty(), "no Plugin had a pass");
        let of = |plugin: &Plugin| matched.of(plugin, &known_servers);
        assert_eq!((names(&of(&plugin("via", "a", 1))), of(&plugin("map", "b", 1)).len()), (vec!["lobby"], 0));
        assert!(woken(Event::Apply(server("lobby", "a", None))).is_empty(), "the rest of its status does not count");
        assert_eq!(woken(Event::Apply(server("lobby", "a", Some("2")))), ["via"]);
        assert_eq!(of(&plugin("via", "a", 1))[0].version.as_deref(), Some("2"));
        let mut shared = server("lobby", "a", Some("2"));
        shared.status.as_mut().unwrap().plugins[0].decided_by = Some("via-lobby".to_owned());
        assert_eq!(woken(Event::Apply(shared)), ["via"], "another Plugin applies there now");
        let mut both = woken(Event::Apply(server("lobby", "b", None)));
        both.sort();
        assert_eq!(both, ["map", "via"], "the Plugin that matched before and the one that matches now");
        assert_eq!(names(&of(&plugin("via", "b", 2))), ["lobby"], "a changed selector is matched anew");
        assert_eq!(woken(Event::Delete(server("lobby", "b", None))).len(), 2);
        assert!(of(&plugin("map", "b", 1)).is_empty());
        assert_eq!(woken(Event::InitDone).len(), 2, "after a broken watch all are matched anew");
    }

    #[test]
    fn plugin_matches_no_server_of_another_namespace() {
        let mut servers = Writer::default();
        let mut elsewhere = server("lobby", "a", None);
        elsewhere.metadata.namespace = Some("shop".to_owned());
        servers.apply_watcher_event(&Event::Apply(elsewhere));
        assert!(MatchedServers::default().of(&plugin("via", "a", 1), &servers.as_reader()).is_empty());
    }

    #[test]
    fn server_that_did_not_enable_plugin_is_marked() {
        let mut lobby = server("lobby", "a", Some("2"));
        assert!(!instance(&plugin("via", "a", 1), &lobby).not_enabled);
        lobby.status.as_mut().unwrap().plugins[0].state = PluginStateKind::NotEnabled;
        assert!(instance(&plugin("via", "a", 1), &lobby).not_enabled);
        assert!(!instance(&plugin("map", "a", 1), &lobby).not_enabled);
    }
}
