//! Edge (reads). Resolves the lock that a server should run: the solved one, the pinned set of a user, or a partial update.

use std::sync::Arc;

use crds::Plugin;
use resolver::Unsolvable;
use resolver::model::catalog::Catalog;
use resolver::model::lock::{Lock, LockReason};
use resolver::model::request::Request;
use resolver::partial::{Delays, Present, RestrictedRequest, Scope, restrict};

use super::approval::{is_approved_or_requested, is_requested};
use super::changes::diff_locks;
use super::error::PassError;
use super::follows::FollowState;
use super::lock_files;
use super::partial::urgent::{PluginWindow, UrgentCandidates, UrgentUpdate};
use super::partial::{PartialSelection, check_names, needs_others_message, requested_scope, up_to_date_message};
use super::pinned_catalog::PinnedInputs;
use super::pinned_set::PinnedSet;
use super::plan::{self, PassInput, RunningState, with_image_of};
use crate::context::Context;
use crate::k8s::ownership::Owner;
use crate::solve_groups::Group;
use crate::solver::{SolveResult, Solver, SolverStopped};
use validate::CheckedServer;

/// Chooses the lock to run: the solved one, the pinned set that a user requested, or a partial update.
pub(super) async fn choose_lock(
    ctx: &Context,
    pass: &PassInput<'_>,
    plugins: &[Arc<Plugin>],
    input: &ResolveInput<'_>,
    pinned_set: Option<PinnedSet>,
    is_manual: bool,
) -> Result<(plan::ResolvedLock, Option<PinnedSet>, PartialSelection), PassError> {
    let PassInput { server, checked, .. } = *pass;
    let mut resolved = plan::resolved_lock(input.solve_whole().await?, input.runs);
    if let Some(pinned_set) = pinned_set {
        let pinned_set = apply_pinned_set(ctx, checked, pinned_set, &mut resolved, input.runs).await?;
        let scope = requested_scope(server).filter(|_| is_manual);
        let partial = input.solve_partial(scope, Some(&pinned_set), &mut resolved).await?;
        return Ok((resolved, Some(pinned_set), partial));
    }
    let partial = if is_manual {
        input.solve_partial(requested_scope(server), None, &mut resolved).await?
    } else {
        let is_whole_requested = |whole: &Lock| is_requested(server, whole.digest().as_str());
        let waits = !resolved.lock.as_ref().is_some_and(is_whole_requested) && input.whole_has_to_wait(&resolved);
        let is_meant = |whole: &Lock| !waits && is_approved_or_requested(server, whole.digest().as_str());
        input.solve_urgent(checked, plugins, waits, is_meant, &mut resolved).await?
    };
    Ok((resolved, None, partial))
}

/// The inputs of the decision for one server in one pass.
pub(super) struct ResolveInput<'a> {
    pub(super) solver: &'a Solver,
    /// The catalog, and its instant.
    pub(super) from: &'a PinnedInputs,
    pub(super) request: &'a Request,
    /// The group of servers that share a plugin, including this server's own request.
    pub(super) group: Group,
    pub(super) runs: &'a RunningState,
    /// The followed server, if there is one.
    pub(super) follows: Option<&'a FollowState>,
}

impl ResolveInput<'_> {
    /// Solves for all servers that share a plugin at once, and returns this server's result. Without a catalog the answer is "not known
    /// yet", and the running lock stays the goal.
    pub(super) async fn solve_whole(&self) -> Result<SolveResult, SolverStopped> {
        self.solve(self.request, Arc::clone(&self.group)).await
    }

    /// Replaces `resolved`, which is about the whole request, with the partial update that a user requested, if that is possible.
    async fn solve_partial(
        &self,
        requested_scope: Option<Result<Scope, String>>,
        pinned_set: Option<&PinnedSet>,
        resolved: &mut plan::ResolvedLock,
    ) -> Result<PartialSelection, SolverStopped> {
        // There is no partial first start, because no running packages could stay.
        let (Some(requested_scope), Some(record)) = (requested_scope, &self.runs.lock) else {
            return Ok(PartialSelection::Nothing);
        };
        let scope = match (requested_scope, pinned_set) {
            (Ok(_), Some(pinned_set)) => return Ok(PartialSelection::Refused(pinned_set.refusal().to_owned())),
            (Ok(scope), None) => scope,
            (Err(why), _) => return Ok(PartialSelection::Refused(why)),
        };
        let runs = &record.lock;
        if let Some(why) = check_names(&scope, self.request, runs) {
            return Ok(PartialSelection::Refused(why));
        }
        let group_lock = self.group_lock(resolved);
        let one = PartialSolver { input: self, request: self.request, runs, group_lock: group_lock.as_ref() };
        match one.newer_lock(&scope, Delays::Skipped).await? {
            Some(lock) => {
                resolved.lock = Some(with_image_of(lock, self.runs));
                Ok(PartialSelection::Requested(scope))
            }
            None => one.explain_unchanged(&scope).await,
        }
    }

    /// Replaces `resolved` with an update that waits for no window of the server, if a partial update is possible. `waits` is whether the
    /// whole update has to wait for the followed server. `is_meant` returns whether a user has requested the set of a lock: that set is
    /// then applied.
    async fn solve_urgent(
        &self,
        server: &CheckedServer,
        plugins: &[Arc<Plugin>],
        waits: bool,
        is_meant: impl Fn(&Lock) -> bool,
        resolved: &mut plan::ResolvedLock,
    ) -> Result<PartialSelection, SolverStopped> {
        let (Some(record), Some(whole)) = (&self.runs.lock, &resolved.lock) else {
            return Ok(PartialSelection::Nothing);
        };
        let runs = &record.lock;
        // If the whole solve has nothing newer, a partial one has neither. Without a solution of the whole, it may have.
        if resolved.solved && diff_locks(Some(runs), whole).is_empty() || is_meant(whole) {
            return Ok(PartialSelection::Nothing);
        }
        let is_due = |scope: &Scope| !resolved.solved || scope.differs(runs, whole);
        let candidates = UrgentCandidates::new(server, self.request, plugins, waits, is_due, self.from.now);
        // An opportunistic update is applied as a whole. A window that opens later is no reason to leave the rest behind.
        let may_be_planned = |lock: &Lock| server.updates.opportunistic.is_none() || lock.digest() == whole.digest();
        let group_lock = self.group_lock(resolved);
        let found = self.earliest(candidates, runs, group_lock.as_ref(), may_be_planned).await?;
        let Some((lock, urgent)) = found else { return Ok(PartialSelection::Nothing) };
        resolved.lock = Some(with_image_of(lock, self.runs));
        Ok(PartialSelection::Urgent(urgent))
    }

    /// The earliest of the candidates that wait for no window of the server. `may_be_planned` returns whether a lock may be planned before
    /// its window opens.
    async fn earliest(
        &self,
        candidates: UrgentCandidates,
        runs: &Lock,
        group_lock: Option<&Lock>,
        may_be_planned: impl Fn(&Lock) -> bool,
    ) -> Result<Option<(Lock, UrgentUpdate)>, SolverStopped> {
        let one = PartialSolver { input: self, request: self.request, runs, group_lock };
        let urgent = match candidates.urgent {
            Some(scope) => one.newer_lock(&scope, Delays::Skipped).await?.map(|lock| (lock, scope)),
            None => None,
        };
        if let Some((base, urgent)) = urgent {
            let Some(own_window) = candidates.own_windows.into_iter().find(PluginWindow::is_open) else {
                return Ok(Some((base, UrgentUpdate::Urgent(urgent))));
            };
            // An urgent release is selected whatever its age. Releases beside it must have their usual age.
            let running = Some(plan::running(&base, self.from.catalog()));
            let request = Request { running, ..self.request.clone() };
            let own_solver = PartialSolver { input: self, request: &request, runs: &base, group_lock };
            let both = own_solver.newer_lock(&own_window.scope.union(&urgent), Delays::AsWritten).await?;
            return Ok(Some(match both.filter(|both| !self.has_to_wait(&base, both)) {
                Some(both) => (both, UrgentUpdate::Both { urgent, own_window }),
                None => (base, UrgentUpdate::Urgent(urgent)),
            }));
        }
        for own_window in candidates.own_windows {
            let newer = one.newer_lock(&own_window.scope, Delays::AsWritten).await?;
            if let Some(lock) = newer.filter(|lock| own_window.is_open() || may_be_planned(lock)) {
                return Ok(Some((lock, UrgentUpdate::InOwnWindow(own_window))));
            }
        }
        Ok(None)
    }

    /// Whether the selected set has to wait for the followed server.
    fn whole_has_to_wait(&self, resolved: &plan::ResolvedLock) -> bool {
        let (Some(runs), Some(whole)) = (&self.runs.lock, &resolved.lock) else { return false };
        self.has_to_wait(&runs.lock, whole)
    }

    fn has_to_wait(&self, from: &Lock, to: &Lock) -> bool {
        self.follows.is_some_and(|follows| follows.wait_for_update(from, to, self.from.at).is_some())
    }

    /// The lock of the group solve. `None` if the server shares no plugin.
    fn group_lock(&self, resolved: &plan::ResolvedLock) -> Option<Lock> {
        resolved.lock.as_ref().filter(|_| resolved.solved && self.group.len() > 1).cloned()
    }

    async fn solve(&self, request: &Request, group: Group) -> Result<SolveResult, SolverStopped> {
        let at = self.from.at;
        match &self.from.snapshot {
            Some(snapshot) => self.solver.solve(Arc::clone(snapshot), group, &request.server, at).await,
            None => Ok(resolver::resolve(&Catalog::empty(at), request, at)),
        }
    }
}

/// Solves parts of a request.
struct PartialSolver<'a> {
    input: &'a ResolveInput<'a>,
    /// The request, with the running packages of `runs`.
    request: &'a Request,
    runs: &'a Lock,
    /// The lock of the group solve.
    group_lock: Option<&'a Lock>,
}

impl PartialSolver<'_> {
    async fn solve(&self, scope: &Scope, delays: Delays) -> Result<Result<Lock, Unsolvable>, SolverStopped> {
        let narrowed: RestrictedRequest =
            restrict(self.request, &Present::from_lock(self.runs), scope, self.group_lock, delays);
        let solved = self.input.solve(&narrowed.request, Arc::new(vec![narrowed.request.clone()])).await?;
        Ok(solved.map(|resolution| narrowed.complete_lock(self.runs, resolution.lock)))
    }

    /// The lock in which only the scope changes. `None` if there is none, or if nothing changes in it.
    async fn newer_lock(&self, scope: &Scope, delays: Delays) -> Result<Option<Lock>, SolverStopped> {
        let solved = self.solve(scope, delays).await?;
        Ok(solved.ok().filter(|lock| !diff_locks(Some(self.runs), lock).is_empty()))
    }

    /// Why nothing of a scope can change on its own: it is up to date, or other packages have to change with it.
    async fn explain_unchanged(&self, scope: &Scope) -> Result<PartialSelection, SolverStopped> {
        let everything = Scope::everything(self.request, self.runs);
        match self.solve(&everything, Delays::Skipped).await? {
            Ok(newest) if scope.differs(self.runs, &newest) => {
                let with = self.companions(scope, &newest).await?;
                Ok(PartialSelection::Refused(needs_others_message(scope, with.as_ref())))
            }
            Ok(_) => Ok(PartialSelection::UpToDate(up_to_date_message(scope))),
            Err(Unsolvable::Unanswerable(_)) => {
                Ok(PartialSelection::Refused("not all metadata has been read yet; the request is repeated".to_owned()))
            }
            Err(Unsolvable::NoSolution(_) | Unsolvable::GaveUp(_)) => {
                Ok(PartialSelection::Refused(needs_others_message(scope, None)))
            }
        }
    }

    /// The smallest set of other packages that have to change with the scope. It starts with everything that differs in `newest` and drops
    /// each part that is not needed. `None` if even all of them are not enough.
    async fn companions(&self, scope: &Scope, newest: &Lock) -> Result<Option<Scope>, SolverStopped> {
        let mut with = changed_scope(self.runs, newest).difference(scope);
        if !self.can_change(&scope.union(&with), scope).await? {
            return Ok(None);
        }
        for part in with.parts() {
            let fewer = with.difference(&part);
            if self.can_change(&scope.union(&fewer), scope).await? {
                with = fewer;
            }
        }
        Ok(Some(with))
    }

    /// Whether something of `scope` changes when only `may_change` may change.
    async fn can_change(&self, may_change: &Scope, scope: &Scope) -> Result<bool, SolverStopped> {
        Ok(self.solve(may_change, Delays::Skipped).await?.is_ok_and(|lock| scope.differs(self.runs, &lock)))
    }
}

/// The scope that covers all differences of two locks. For a dependency that no Plugin requests, it names the Plugins that need it.
fn changed_scope(from: &Lock, to: &Lock) -> Scope {
    let differs = |name: &str| diff_locks(Some(from), to).iter().any(|change| change.package == name);
    let mut scope = Scope { paper: from.paper_name() != to.paper_name(), ..Scope::default() };
    let plugins = || from.plugins.iter().chain(&to.plugins);
    for plugin in plugins().filter(|plugin| differs(&plugin.name)) {
        let needers = match &plugin.reason {
            LockReason::RequestedBy(objects) => {
                scope.plugins.extend(objects.iter().cloned());
                continue;
            }
            LockReason::NeededBy(names) => names,
        };
        for needer in plugins().filter(|other| needers.contains(&other.name)) {
            if let LockReason::RequestedBy(objects) = &needer.reason {
                scope.plugins.extend(objects.iter().cloned());
            }
        }
    }
    scope
}

/// Replaces the solved lock with the pinned set. A set whose lock is no longer kept becomes [`PinnedSet::Unknown`].
async fn apply_pinned_set(
    ctx: &Context,
    server: &CheckedServer,
    pinned_set: PinnedSet,
    resolved: &mut plan::ResolvedLock,
    runs: &RunningState,
) -> Result<PinnedSet, lock_files::FilesError> {
    let (pinned_set, record) = match pinned_set {
        PinnedSet::RollbackTo { digest, since } => {
            match lock_files::stored_record(ctx, &Owner::from(server), &digest)
                .await
                .map_err(lock_files::FilesError::Record)?
            {
                Some(record) => (PinnedSet::RollbackTo { digest, since }, Some(record)),
                None => (PinnedSet::Unknown { requested: digest }, runs.lock.clone()),
            }
        }
        stays @ (PinnedSet::Unknown { .. } | PinnedSet::Held { .. }) => (stays, runs.lock.clone()),
    };
    resolved.lock = record.map(|record| record.lock.clone());
    Ok(pinned_set)
}

#[cfg(test)]
mod tests;
