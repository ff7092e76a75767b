//! Pure. The request of a server with everything but a scope held at what runs, and the lock that its answer means.
//!
//! What somebody asks for is held as `spec.hold` holds it, so what goes with what is heeded. What nobody asks for any more is
//! in no request: it simply stays in the lock, file by file.

use jiff::SignedDuration;
use resolver::catalog::Channel;
use resolver::lock::{Lock, LockReason, LockedPlugin};
use resolver::request::{Hold, ImagePolicy, PaperWish, PluginWish, Request, VersionWish};

use super::Scope;

/// A question about a scope alone.
pub(crate) struct Narrowed {
    /// To be asked alone, whoever shares a plugin with the server.
    pub(crate) request: Request,
    /// What stays, as it runs.
    stays: Vec<LockedPlugin>,
}

impl Narrowed {
    /// The set that an answer means: what stays is file by file what runs, and there for the reason that it was.
    pub(crate) fn lock(&self, mut solved: Lock) -> Lock {
        for stays in &self.stays {
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

/// The request with everything but `scope` held at what runs, and without delays. What the scope needs and nobody else does
/// belongs to it. `shared` is what was decided for all servers that have a `latest` plugin in common: of such a plugin the
/// scope lets that release come and no other. None: nobody shares one.
pub(crate) fn narrow(request: &Request, runs: &Lock, scope: &Scope, shared: Option<&Lock>) -> Narrowed {
    let moves = moving(request, runs, scope);
    let reached = reached(request, runs);
    let of = |plugin: &LockedPlugin, object: &str| match &plugin.reason {
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
            None | Some(_) => wishes.push(free(wish, runs, shared)),
        }
    }
    // A dependency that others need, too.
    let needed = runs.plugins.iter().enumerate().filter(|(at, plugin)| {
        let is_needed = matches!(plugin.reason, LockReason::NeededBy(_));
        is_needed && !moves[*at] && reached[*at]
    });
    wishes.extend(needed.map(|(_, plugin)| stand_in(plugin)));
    let stays = runs.plugins.iter().enumerate().filter(|(at, _)| !moves[*at]).map(|(_, plugin)| plugin.clone());
    let mut narrowed = Request { plugins: wishes, delay: SignedDuration::ZERO, ..request.clone() };
    if !scope.paper {
        narrowed.paper = PaperWish::BuildPin { version: runs.minecraft.clone(), build: runs.build };
        narrowed.image_policy = ImagePolicy::Keep;
    }
    Narrowed { request: narrowed, stays: stays.collect() }
}

/// Which of the plugins that run may change: those that the scope names, and what only they need.
fn moving(request: &Request, runs: &Lock, scope: &Scope) -> Vec<bool> {
    let is_named = |plugin: &LockedPlugin| match &plugin.reason {
        LockReason::RequestedBy(objects) => objects.iter().any(|object| scope.has(object)),
        // It came as a dependency, and somebody has written a Plugin for it since.
        LockReason::NeededBy(_) => request.plugins.iter().any(|wish| scope.has(&wish.object) && wish.key == plugin.key),
    };
    spread(runs, is_named, |needers| !needers.is_empty() && needers.iter().all(|moves| *moves))
}

/// Which of the plugins that run somebody still asks for, or needs for what is asked for.
fn reached(request: &Request, runs: &Lock) -> Vec<bool> {
    let is_asked_for = |plugin: &LockedPlugin| match &plugin.reason {
        LockReason::RequestedBy(objects) => request.plugins.iter().any(|wish| objects.contains(&wish.object)),
        LockReason::NeededBy(_) => false,
    };
    spread(runs, is_asked_for, |needers| needers.contains(&true))
}

/// What holds for some plugins, and for what they need where that holds for as many of those who need it as `inherits` wants.
fn spread(runs: &Lock, holds: impl Fn(&LockedPlugin) -> bool, inherits: impl Fn(&[bool]) -> bool) -> Vec<bool> {
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

fn held(wish: &PluginWish) -> PluginWish {
    PluginWish { hold: wish.hold.or(Some(Hold::Server)), ..wish.clone() }
}

fn free(wish: &PluginWish, runs: &Lock, shared: Option<&Lock>) -> PluginWish {
    let wish = PluginWish { delay: SignedDuration::ZERO, ..wish.clone() };
    let Some(shared) = shared.filter(|_| wish.version == VersionWish::Latest) else { return wish };
    let asked = |lock: &Lock| {
        let of = |plugin: &&LockedPlugin| match &plugin.reason {
            LockReason::RequestedBy(objects) => objects.contains(&wish.object),
            LockReason::NeededBy(_) => false,
        };
        lock.plugins.iter().find(of).map(|plugin| plugin.version.clone())
    };
    match asked(shared).or_else(|| asked(runs)) {
        Some(version) => PluginWish { version: VersionWish::Pin { version }, ..wish },
        None => wish,
    }
}

/// A wish for a dependency that nobody asks for, so that it can be held.
fn stand_in(plugin: &LockedPlugin) -> PluginWish {
    PluginWish {
        object: plugin.name.clone(),
        key: plugin.key.clone(),
        jars: Vec::new(),
        version: VersionWish::Auto,
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
