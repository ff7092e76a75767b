//! Pure. Defines the scope of a partial update: the names that may change while everything else stays at the running
//! versions.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::lock::{Lock, LockReason};
use crate::model::request::Request;

mod restrict;

pub use restrict::{Delays, Present, PresentPlugin, RestrictedRequest, restrict};

/// The parts that may change. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Paper, with the Java version and the image that it needs.
    pub paper: bool,
    /// Names of Plugin objects.
    pub plugins: BTreeSet<String>,
}

impl Scope {
    /// A scope of these Plugins. `None` if there are none.
    pub fn from_plugins(plugins: BTreeSet<String>) -> Option<Self> {
        (!plugins.is_empty()).then_some(Self { paper: false, plugins })
    }

    /// Everything that a request names, and every Plugin object that requested a running plugin.
    pub fn everything(request: &Request, runs: &Lock) -> Self {
        let objects = request.plugins.iter().map(|plugin_request| &plugin_request.object);
        Self { paper: true, plugins: objects.chain(requested_objects(runs)).cloned().collect() }
    }

    /// Whether this Plugin may change.
    pub fn contains(&self, object: &str) -> bool {
        self.plugins.contains(object)
    }

    /// Its parts, each alone.
    pub fn parts(&self) -> Vec<Self> {
        let paper = self.paper.then(|| Self { paper: true, ..Self::default() });
        let plugin = |name: &String| Self { paper: false, plugins: BTreeSet::from([name.clone()]) };
        paper.into_iter().chain(self.plugins.iter().map(plugin)).collect()
    }

    /// The union of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self { paper: self.paper || other.paper, plugins: self.plugins.union(&other.plugins).cloned().collect() }
    }

    /// The parts that are not in the other scope.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self { paper: self.paper && !other.paper, plugins: self.plugins.difference(&other.plugins).cloned().collect() }
    }

    /// Whether the named parts differ between two version sets.
    pub fn differs(&self, a: &Lock, b: &Lock) -> bool {
        let named = |lock: &Lock| -> BTreeSet<(String, String)> {
            let plugins = lock.plugins.iter().filter(|plugin| match &plugin.reason {
                LockReason::RequestedBy(objects) => objects.iter().any(|object| self.contains(object)),
                LockReason::NeededBy(_) => false,
            });
            plugins.map(|plugin| (plugin.project_id.clone(), plugin.release_id.clone())).collect()
        };
        (self.paper && a.paper_name() != b.paper_name()) || named(a) != named(b)
    }
}

/// The format of a request to apply an update now.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paper = self.paper.then(|| "paper".to_owned());
        let names = paper.into_iter().chain(self.plugins.iter().map(|name| format!("plugin/{name}")));
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

/// The names of the Plugins that requested the running plugins.
fn requested_objects(runs: &Lock) -> impl Iterator<Item = &String> {
    runs.plugins.iter().flat_map(|plugin| match &plugin.reason {
        LockReason::RequestedBy(objects) => objects.as_slice(),
        LockReason::NeededBy(_) => &[],
    })
}
