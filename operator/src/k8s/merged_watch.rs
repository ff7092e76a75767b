//! Edge (reads). Watches one kind in several namespaces, and gives the events of one watch.
//!
//! A reflector replaces its whole store when a list is complete. The lists of several namespaces must therefore reach it as one list.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use futures::stream::{self, select_all};
use futures::{Stream, StreamExt as _};
use kube::runtime::reflector::Store;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::caches::Key;
use crate::k8s::namespace_scope::Scoped;

/// The events of all these watches as the events of one. `known` is the store that they are written to.
///
/// Each watch waits alone after an error. An error of one namespace does not delay the others, and kube logs it.
pub(crate) fn watch_merged<K>(
    scopes: Vec<Scoped<K>>,
    known: Store<K>,
) -> impl Stream<Item = Result<Event<K>, watcher::Error>> + Send
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let mut merge = MergedLists::new(scopes.iter().map(|scope| scope.namespace.clone()));
    let watches = scopes.into_iter().enumerate().map(|(at, scope)| {
        let events = watcher(scope.api, watcher::Config::default()).default_backoff();
        events.filter_map(move |event| std::future::ready(event.ok().map(|event| (at, event)))).boxed()
    });
    select_all(watches).flat_map(move |(at, event)| stream::iter(merge.handle(at, event, || known.state()))).map(Ok)
}

/// The objects that are created, changed or deleted, from all these watches.
pub(crate) fn watch_touched<K>(
    scopes: Vec<Scoped<K>>,
    config: &watcher::Config,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let watches = scopes.into_iter().map(|scope| {
        let objects = watcher(scope.api, config.clone()).default_backoff().map(|event| event.map(deleted_as_change));
        objects.touched_objects().filter(|object| std::future::ready(object.is_ok())).boxed()
    });
    select_all(watches)
}

/// A deletion does not change the generation. This removes it, so that a predicate filter lets the deletion pass.
fn deleted_as_change<K: Resource>(event: Event<K>) -> Event<K> {
    match event {
        Event::Delete(mut deleted) => {
            deleted.meta_mut().generation = None;
            Event::Delete(deleted)
        }
        event @ (Event::Apply(_) | Event::Init | Event::InitApply(_) | Event::InitDone) => event,
    }
}

/// The lists of several watches of one kind.
struct MergedLists<K> {
    lists: Vec<List<K>>,
    /// Whether the first list of every watch was complete.
    are_complete: bool,
}

/// The list of one watch.
struct List<K> {
    namespace: Option<String>,
    /// The objects of the first list, until the first lists of all watches are complete.
    first: BTreeMap<Key, K>,
    is_complete: bool,
    /// The objects of a later list, until it is complete.
    later: BTreeSet<Key>,
}

impl<K> MergedLists<K>
where
    K: Resource<DynamicType = ()> + Clone,
{
    fn new(namespaces: impl Iterator<Item = Option<String>>) -> Self {
        let list = |namespace| List { namespace, first: BTreeMap::new(), is_complete: false, later: BTreeSet::new() };
        Self { lists: namespaces.map(list).collect(), are_complete: false }
    }

    /// Takes in an event of one watch, and returns the events of the merged watch. `known` returns the objects of the store.
    fn handle(&mut self, at: usize, event: Event<K>, known: impl Fn() -> Vec<Arc<K>>) -> Vec<Event<K>> {
        let Some(list) = self.lists.get_mut(at) else { return Vec::new() };
        if self.are_complete {
            return list.handle_later(event, known);
        }
        list.handle_first(event);
        if !self.lists.iter().all(|list| list.is_complete) {
            return Vec::new();
        }
        self.are_complete = true;
        let objects = self.lists.iter_mut().flat_map(|list| std::mem::take(&mut list.first).into_values());
        let applied: Vec<_> = objects.map(Event::InitApply).collect();
        [Event::Init].into_iter().chain(applied).chain([Event::InitDone]).collect()
    }
}

impl<K> List<K>
where
    K: Resource<DynamicType = ()> + Clone,
{
    fn handle_first(&mut self, event: Event<K>) {
        match event {
            Event::Init => {
                self.first.clear();
                self.is_complete = false;
            }
            Event::InitApply(object) | Event::Apply(object) => drop(self.first.insert(key(&object), object)),
            Event::Delete(object) => drop(self.first.remove(&key(&object))),
            Event::InitDone => self.is_complete = true,
        }
    }

    /// A later list replaces only the objects of its own namespace: they are applied, and missing ones are deleted.
    fn handle_later(&mut self, event: Event<K>, known: impl Fn() -> Vec<Arc<K>>) -> Vec<Event<K>> {
        match event {
            Event::Init => {
                self.later.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                self.later.insert(key(&object));
                vec![Event::Apply(object)]
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.later);
                let is_missing = |object: &Arc<K>| self.contains(object) && !listed.contains(&key(&**object));
                known().into_iter().filter(is_missing).map(|object| Event::Delete((*object).clone())).collect()
            }
            event @ (Event::Apply(_) | Event::Delete(_)) => vec![event],
        }
    }

    fn contains(&self, object: &K) -> bool {
        self.namespace.is_none() || object.namespace() == self.namespace
    }
}

fn key<K: Resource>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::reflector::store::Writer;
    use serde_json::json;

    use super::*;

    fn object(namespace: &str, name: &str) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"namespace": namespace, "name": name}})).unwrap()
    }

    /// A reflector behind merged watches of the namespaces `a` and `b`.
    struct Reflected {
        merge: MergedLists<ConfigMap>,
        writer: Writer<ConfigMap>,
    }

    impl Reflected {
        fn new() -> Self {
            let namespaces = ["a", "b"].map(|name| Some(name.to_owned()));
            Self { merge: MergedLists::new(namespaces.into_iter()), writer: Writer::default() }
        }

        fn take(&mut self, at: usize, events: impl IntoIterator<Item = Event<ConfigMap>>) {
            for event in events {
                let store = self.writer.as_reader();
                for merged in self.merge.handle(at, event, || store.state()) {
                    self.writer.apply_watcher_event(&merged);
                }
            }
        }

        fn list(&mut self, at: usize, objects: &[(&str, &str)]) {
            let objects = objects.iter().map(|(namespace, name)| Event::InitApply(object(namespace, name)));
            self.take(at, [Event::Init].into_iter().chain(objects).chain([Event::InitDone]));
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<_> = self
                .writer
                .as_reader()
                .state()
                .iter()
                .map(|object| key(&**object))
                .map(|of| of.0 + "/" + &of.1)
                .collect();
            names.sort();
            names
        }
    }

    #[test]
    fn store_is_filled_when_all_namespaces_are_listed() {
        let mut reflected = Reflected::new();
        reflected.list(0, &[("a", "one"), ("a", "two")]);
        reflected.take(0, [Event::Delete(object("a", "two")), Event::Apply(object("a", "three"))]);
        assert_eq!(reflected.names(), [""; 0], "the second namespace is not listed yet");
        reflected.take(1, [Event::Init, Event::InitApply(object("b", "gone"))]);
        reflected.list(1, &[("b", "one")]);
        assert_eq!(reflected.names(), ["a/one", "a/three", "b/one"]);
    }

    #[test]
    fn later_list_replaces_only_its_namespace() {
        let mut reflected = Reflected::new();
        reflected.list(0, &[("a", "one"), ("a", "two")]);
        reflected.list(1, &[("b", "one")]);
        reflected.list(0, &[("a", "two"), ("a", "three")]);
        assert_eq!(reflected.names(), ["a/three", "a/two", "b/one"]);
        reflected.take(1, [Event::Apply(object("b", "two")), Event::Delete(object("b", "one"))]);
        assert_eq!(reflected.names(), ["a/three", "a/two", "b/two"]);
    }

    #[test]
    fn single_watch_of_all_namespaces_deletes_missing_objects() {
        let mut merge = MergedLists::new(std::iter::once(None));
        let mut names = Vec::new();
        let known = || vec![Arc::new(object("a", "one")), Arc::new(object("b", "one"))];
        for event in
            [Event::Init, Event::InitApply(object("a", "one")), Event::InitApply(object("b", "one")), Event::InitDone]
        {
            merge.handle(0, event, known);
        }
        for event in [Event::Init, Event::InitApply(object("b", "one")), Event::InitDone] {
            for merged in merge.handle(0, event, known) {
                if let Event::Delete(deleted) = merged {
                    names.push(key(&deleted));
                }
            }
        }
        assert_eq!(names, [("a".to_owned(), "one".to_owned())]);
    }

    #[test]
    fn deletion_counts_as_change() {
        let mut deleted = object("a", "one");
        deleted.metadata.generation = Some(3);
        let Event::Delete(deleted) = deleted_as_change(Event::Delete(deleted)) else { panic!("still a deletion") };
        assert_eq!(deleted.metadata.generation, None);
    }
}
