//! Pure. The request of a server with everything but a scope held at what runs, and the lock that its answer means.
//!
//! What somebody asks for is held as `spec.hold` holds it, so what goes with what is heeded. What nobody asks for any more is
//! in no request: it simply stays in the lock, file by file.

use jiff::SignedDuration;

use super::Scope;
use crate::catalog::{Channel, ProjectKey};
use crate::lock::{Lock, LockReason, LockedPlugin};
use crate::request::{Hold, ImagePolicy, PaperRequest, PluginRequest, Request, VersionRequest};
use crate::unmanaged_jar::UnmanagedPlugins;
use crate::version::Minecraft;

/// What runs, as far as it has to be known to be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// Paper's Minecraft version.
    pub minecraft: Minecraft,
    /// Paper's build.
    pub build: u32,
    /// The plugins.
    pub plugins: Vec<PresentPlugin>,
}

/// One plugin that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentPlugin {
    /// The name people know.
    pub name: String,
    /// Where it comes from.
    pub key: ProjectKey,
    /// The version as its authors write it.
    pub version: String,
    /// Why it is there.
    pub reason: LockReason,
}

impl Present {
    /// What a lock makes run, plugin by plugin in its order.
    pub fn of(lock: &Lock) -> Self {
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

/// How old a release must be that comes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delays {
    /// Of any age: somebody says that it shall come now.
    Skipped,
    /// As old as in every set.
    AsWritten,
}

/// A question about a scope alone.
pub struct Narrowed {
    /// To be asked alone, whoever shares a plugin with the server.
    pub request: Request,
    /// Which of the plugins that run may change, in their order.
    moves: Vec<bool>,
}

impl Narrowed {
    /// Whether a plugin of this name is among those that may change; `runs` is what was narrowed to.
    pub fn may_change(&self, runs: &Present, name: &str) -> bool {
        runs.plugins.iter().zip(&self.moves).any(|(plugin, moves)| *moves && plugin.name == name)
    }

    /// The set that an answer means: what stays is file by file what `runs`, which is the lock that was narrowed to, and there for the reason
    /// that it was.
    #[must_use]
    pub fn lock(&self, runs: &Lock, mut solved: Lock) -> Lock {
        for (stays, _) in runs.plugins.iter().zip(&self.moves).filter(|(_, moves)| !**moves) {
            match solved.plugins.iter_mut().find(|plugin| is_same(plugin, stays)) {
                Some(plugin) => plugin.clone_from(stays),
                None => solved.plugins.push(stays.clone()),
            }
        }
        solved.plugins.sort_by_key(|plugin| match &plugin.reason {
            LockReason::RequestedBy(objects) => (0, objects.clone()),
            LockReason::NeededBy(_) => (1, vec![plugin.name.clone()]),
        });
        solved
    }
}

/// The request with everything but `scope` held at what runs. What the scope needs and nobody else does belongs to it. `shared` is what was
/// decided for all servers that have a `latest` plugin in common: of such a plugin the scope lets that release come and no other. None: nobody
/// shares one.
pub fn narrow(request: &Request, runs: &Present, scope: &Scope, shared: Option<&Lock>, delays: Delays) -> Narrowed {
    let moves = moving(request, runs, scope);
    let reached = reached(request, runs);
    let of = |plugin: &PresentPlugin, object: &str| match &plugin.reason {
        LockReason::RequestedBy(objects) => objects.iter().any(|asks| asks == object),
        LockReason::NeededBy(_) => false,
    };
    let at = |object: &str| runs.plugins.iter().position(|plugin| of(plugin, object));
    let mut wishes = Vec::new();
    for wish in &request.plugins {
        match at(&wish.object) {
            // A first install that nobody named waits.
            None if !scope.has(&wish.object) => {}
            Some(at) if !moves[at] => wishes.push(held(wish)),
            None | Some(_) => wishes.push(free(wish, runs, shared, delays)),
        }
    }
    // A dependency that others need, too.
    let needed = runs.plugins.iter().enumerate().filter(|(at, plugin)| {
        let is_needed = matches!(plugin.reason, LockReason::NeededBy(_));
        is_needed && !moves[*at] && reached[*at]
    });
    wishes.extend(needed.map(|(_, plugin)| stand_in(plugin)));
    let delay = match delays {
        Delays::Skipped => SignedDuration::ZERO,
        Delays::AsWritten => request.delay,
    };
    let mut narrowed = Request { plugins: wishes, delay, ..request.clone() };
    if !scope.paper {
        narrowed.paper = PaperRequest::BuildPin { version: runs.minecraft.clone(), build: runs.build };
        narrowed.image_policy = ImagePolicy::Keep;
    }
    Narrowed { request: narrowed, moves }
}

/// Which of the plugins that run may change: those that the scope names, and what only they need.
fn moving(request: &Request, runs: &Present, scope: &Scope) -> Vec<bool> {
    let is_named = |plugin: &PresentPlugin| match &plugin.reason {
        LockReason::RequestedBy(objects) => objects.iter().any(|object| scope.has(object)),
        // It came as a dependency, and somebody has written a Plugin for it since.
        LockReason::NeededBy(_) => request.plugins.iter().any(|wish| scope.has(&wish.object) && wish.key == plugin.key),
    };
    spread(runs, is_named, |needers| !needers.is_empty() && needers.iter().all(|moves| *moves))
}

/// Which of the plugins that run somebody still asks for, or needs for what is asked for. Where JARs of people's own count, any may be needed by
/// one of them, whatever it once came for: such a file has another name after each update of its own.
fn reached(request: &Request, runs: &Present) -> Vec<bool> {
    let may_need = request.unmanaged_plugins != UnmanagedPlugins::Ignore && !request.unmanaged.is_empty();
    let is_asked_for = |plugin: &PresentPlugin| match &plugin.reason {
        LockReason::RequestedBy(objects) => request.plugins.iter().any(|wish| objects.contains(&wish.object)),
        LockReason::NeededBy(_) => may_need,
    };
    spread(runs, is_asked_for, |needers| needers.contains(&true))
}

/// What holds for some plugins, and for what they need where that holds for as many of those who need it as `inherits` wants.
fn spread(runs: &Present, holds: impl Fn(&PresentPlugin) -> bool, inherits: impl Fn(&[bool]) -> bool) -> Vec<bool> {
    let mut marked: Vec<bool> = runs.plugins.iter().map(holds).collect();
    loop {
        let next: Vec<bool> = (runs.plugins.iter().zip(&marked))
            .map(|(plugin, &known)| match &plugin.reason {
                LockReason::NeededBy(names) if !known => {
                    let needer = |name: &String| runs.plugins.iter().position(|other| other.name == *name);
                    let needers: Vec<bool> =
                        names.iter().map(|name| needer(name).is_some_and(|at| marked[at])).collect();
                    inherits(&needers)
                }
                LockReason::NeededBy(_) | LockReason::RequestedBy(_) => known,
            })
            .collect();
        if next == marked {
            return marked;
        }
        marked = next;
    }
}

fn held(wish: &PluginRequest) -> PluginRequest {
    PluginRequest { hold: wish.hold.or(Some(Hold::Server)), ..wish.clone() }
}

fn free(wish: &PluginRequest, runs: &Present, shared: Option<&Lock>, delays: Delays) -> PluginRequest {
    let delay = match delays {
        Delays::Skipped => SignedDuration::ZERO,
        Delays::AsWritten => wish.delay,
    };
    let wish = PluginRequest { delay, ..wish.clone() };
    let Some(shared) = shared.filter(|_| wish.version == VersionRequest::Latest) else { return wish };
    let asks = |reason: &LockReason| match reason {
        LockReason::RequestedBy(objects) => objects.contains(&wish.object),
        LockReason::NeededBy(_) => false,
    };
    let decided = shared.plugins.iter().find(|plugin| asks(&plugin.reason)).map(|plugin| &plugin.version);
    let ran = || runs.plugins.iter().find(|plugin| asks(&plugin.reason)).map(|plugin| &plugin.version);
    match decided.or_else(ran) {
        Some(version) => PluginRequest { version: VersionRequest::Pin { version: version.clone() }, ..wish },
        None => wish,
    }
}

/// A wish for a dependency that nobody asks for, so that it can be held.
fn stand_in(plugin: &PresentPlugin) -> PluginRequest {
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
