//! Pure. Restricts a server's request to a scope, with everything else held at the running versions, and completes the
//! resulting lock.
//!
//! Requested plugins are held like with `spec.hold`, so that compatibility is respected. Running plugins that no Plugin
//! object requests any more are in no request: they stay in the lock, file by file.

use jiff::SignedDuration;

use super::Scope;
use crate::model::catalog::{Channel, ProjectKey};
use crate::model::lock::{Lock, LockReason, LockedPlugin};
use crate::model::request::{Hold, ImagePolicy, PaperRequest, PluginRequest, Request, VersionRequest};
use crate::model::unmanaged_jar::UnmanagedPlugins;
use crate::model::version::Minecraft;

/// The running versions, as far as they are needed to be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// The Minecraft version of Paper.
    pub minecraft: Minecraft,
    /// The build of Paper.
    pub build: u32,
    /// The plugins.
    pub plugins: Vec<PresentPlugin>,
}

/// One running plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentPlugin {
    /// The display name.
    pub name: String,
    /// The project.
    pub key: ProjectKey,
    /// The version as its authors write it.
    pub version: String,
    /// The reason why it is installed.
    pub reason: LockReason,
}

impl Present {
    /// The running versions of a lock, with the plugins in its order.
    pub fn from_lock(lock: &Lock) -> Self {
        let plugin = |LockedPlugin { name, key, version, reason, .. }: &LockedPlugin| PresentPlugin {
            name: name.clone(),
            key: key.clone(),
            version: version.clone(),
            reason: reason.clone(),
        };
        Self {
            minecraft: lock.minecraft.clone(),
            build: lock.build,
            plugins: lock.plugins.iter().map(plugin).collect(),
        }
    }
}

/// Whether a partial update respects delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delays {
    /// Releases of any age are used: an urgent update was requested.
    Skipped,
    /// Delays apply as usual.
    AsWritten,
}

/// A request for a scope only.
pub struct RestrictedRequest {
    /// The request. It is solved alone, even if other servers share a plugin with this one.
    pub request: Request,
    /// Which of the running plugins may change, in their order.
    changeable: Vec<bool>,
}

impl RestrictedRequest {
    /// Whether a plugin of this name may change. `runs` holds the running versions that the request was restricted to.
    pub fn can_change(&self, runs: &Present, name: &str) -> bool {
        runs.plugins.iter().zip(&self.changeable).any(|(plugin, changeable)| *changeable && plugin.name == name)
    }

    /// Completes the solved lock: plugins outside the scope keep the files and the reason that they have in `runs`, the
    /// running lock.
    #[must_use]
    pub fn complete_lock(&self, runs: &Lock, mut solved: Lock) -> Lock {
        for (unchanged, _) in runs.plugins.iter().zip(&self.changeable).filter(|(_, changeable)| !**changeable) {
            match solved.plugins.iter_mut().find(|plugin| is_same(plugin, unchanged)) {
                Some(plugin) => plugin.clone_from(unchanged),
                None => solved.plugins.push(unchanged.clone()),
            }
        }
        solved.plugins.sort_by_key(|plugin| match &plugin.reason {
            LockReason::RequestedBy(objects) => (0, objects.clone()),
            LockReason::NeededBy(_) => (1, vec![plugin.name.clone()]),
        });
        solved
    }
}

/// Builds the request with everything but `scope` held at the running versions. Dependencies that only the scope needs
/// belong to it. `shared` is the decision for all servers that share a `latest` plugin: the scope allows only that
/// release of such a plugin. `None` if no plugin is shared.
pub fn restrict(
    request: &Request,
    runs: &Present,
    scope: &Scope,
    shared: Option<&Lock>,
    delays: Delays,
) -> RestrictedRequest {
    let changeable = changeable_plugins(request, runs, scope);
    let reached = needed_plugins(request, runs);
    let of = |plugin: &PresentPlugin, object: &str| match &plugin.reason {
        LockReason::RequestedBy(objects) => objects.iter().any(|name| name == object),
        LockReason::NeededBy(_) => false,
    };
    let at = |object: &str| runs.plugins.iter().position(|plugin| of(plugin, object));
    let mut plugin_requests = Vec::new();
    for plugin_request in &request.plugins {
        match at(&plugin_request.object) {
            // A plugin that is not installed yet and not named waits.
            None if !scope.contains(&plugin_request.object) => {}
            Some(at) if !changeable[at] => plugin_requests.push(with_hold(plugin_request)),
            None | Some(_) => plugin_requests.push(changeable_request(plugin_request, runs, shared, delays)),
        }
    }
    // A dependency that other plugins need, too.
    let needed = runs.plugins.iter().enumerate().filter(|(at, plugin)| {
        let is_needed = matches!(plugin.reason, LockReason::NeededBy(_));
        is_needed && !changeable[*at] && reached[*at]
    });
    plugin_requests.extend(needed.map(|(_, plugin)| held_dependency(plugin)));
    let delay = match delays {
        Delays::Skipped => SignedDuration::ZERO,
        Delays::AsWritten => request.delay,
    };
    let mut narrowed = Request { plugins: plugin_requests, delay, ..request.clone() };
    if !scope.paper {
        narrowed.paper = PaperRequest::BuildPin { version: runs.minecraft.clone(), build: runs.build };
        narrowed.image_policy = ImagePolicy::Keep;
    }
    RestrictedRequest { request: narrowed, changeable }
}

/// Which of the running plugins may change: those that the scope names, and dependencies that only they need.
fn changeable_plugins(request: &Request, runs: &Present, scope: &Scope) -> Vec<bool> {
    let is_named = |plugin: &PresentPlugin| match &plugin.reason {
        LockReason::RequestedBy(objects) => objects.iter().any(|object| scope.contains(object)),
        // It was installed as a dependency, and a Plugin object for it was created since.
        LockReason::NeededBy(_) => request
            .plugins
            .iter()
            .any(|plugin_request| scope.contains(&plugin_request.object) && plugin_request.key == plugin.key),
    };
    propagate(runs, is_named, |needers| !needers.is_empty() && needers.iter().all(|changeable| *changeable))
}

/// Which of the running plugins are still requested, or needed by requested ones. If unmanaged JARs count, any of them
/// may need a dependency, whatever it was installed for: such a file gets another name with each update of its own.
fn needed_plugins(request: &Request, runs: &Present) -> Vec<bool> {
    let may_need = request.unmanaged_plugins != UnmanagedPlugins::Ignore && !request.unmanaged.is_empty();
    let is_requested = |plugin: &PresentPlugin| match &plugin.reason {
        LockReason::RequestedBy(objects) => {
            request.plugins.iter().any(|plugin_request| objects.contains(&plugin_request.object))
        }
        LockReason::NeededBy(_) => may_need,
    };
    propagate(runs, is_requested, |needers| needers.contains(&true))
}

/// Marks the plugins for which `is_seed` is true, and their dependencies if enough of their dependents are marked,
/// according to `inherits`.
fn propagate(
    runs: &Present,
    is_seed: impl Fn(&PresentPlugin) -> bool,
    inherits: impl Fn(&[bool]) -> bool,
) -> Vec<bool> {
    let mut marked: Vec<bool> = runs.plugins.iter().map(is_seed).collect();
    loop {
        let next: Vec<bool> = (runs.plugins.iter().zip(&marked))
            .map(|(plugin, &is_marked)| match &plugin.reason {
                LockReason::NeededBy(names) if !is_marked => {
                    let needer = |name: &String| runs.plugins.iter().position(|other| other.name == *name);
                    let needers: Vec<bool> =
                        names.iter().map(|name| needer(name).is_some_and(|at| marked[at])).collect();
                    inherits(&needers)
                }
                LockReason::NeededBy(_) | LockReason::RequestedBy(_) => is_marked,
            })
            .collect();
        if next == marked {
            return marked;
        }
        marked = next;
    }
}

fn with_hold(plugin_request: &PluginRequest) -> PluginRequest {
    PluginRequest { hold: plugin_request.hold.or(Some(Hold::Server)), ..plugin_request.clone() }
}

fn changeable_request(
    plugin_request: &PluginRequest,
    runs: &Present,
    shared: Option<&Lock>,
    delays: Delays,
) -> PluginRequest {
    let delay = match delays {
        Delays::Skipped => SignedDuration::ZERO,
        Delays::AsWritten => plugin_request.delay,
    };
    let plugin_request = PluginRequest { delay, ..plugin_request.clone() };
    let Some(shared) = shared.filter(|_| plugin_request.version == VersionRequest::Latest) else {
        return plugin_request;
    };
    let is_requested = |reason: &LockReason| match reason {
        LockReason::RequestedBy(objects) => objects.contains(&plugin_request.object),
        LockReason::NeededBy(_) => false,
    };
    let decided = shared.plugins.iter().find(|plugin| is_requested(&plugin.reason)).map(|plugin| &plugin.version);
    let running = || runs.plugins.iter().find(|plugin| is_requested(&plugin.reason)).map(|plugin| &plugin.version);
    match decided.or_else(running) {
        Some(version) => PluginRequest { version: VersionRequest::Pin { version: version.clone() }, ..plugin_request },
        None => plugin_request,
    }
}

/// A request for a dependency without a Plugin object, so that it can be held.
fn held_dependency(plugin: &PresentPlugin) -> PluginRequest {
    PluginRequest {
        object: plugin.name.clone(),
        key: plugin.key.clone(),
        jars: Vec::new(),
        version: VersionRequest::Auto,
        delay: SignedDuration::ZERO,
        channel: Channel::Alpha,
        allow_downgrade: false,
        hold: Some(Hold::Server),
        compatibility: None,
        requires: Vec::new(),
        delay_together: Vec::new(),
        selector: None,
    }
}

fn is_same(a: &LockedPlugin, b: &LockedPlugin) -> bool {
    a.key.source == b.key.source && a.project_id == b.project_id
}
