//! Edge (reads). Which set a server should run: what the solve chose, the one at which a person's word keeps it, or what comes
//! alone.

use std::sync::Arc;

use crds::Plugin;
use resolver::Unsolvable;
use resolver::catalog::Catalog;
use resolver::lock::{Lock, LockReason};
use resolver::partial::{Delays, Narrowed, Present, Scope, narrow};
use resolver::request::Request;

use super::artifacts;
use super::changes::changes;
use super::check::CheckedServer;
use super::follows::FollowState;
use super::partial::urgent::{PluginWindow, UrgentCandidates, UrgentUpdate};
use super::partial::{PartialSelection, not_alone, unknown, up_to_date};
use super::pinned_catalog::PinnedInputs;
use super::pinned_set::PinnedSet;
use super::plan::{self, WhatRuns, with_image_of};
use crate::context::Context;
use crate::solve_groups::Group;
use crate::solver::{SolveResult, Solver, SolverStopped};

/// What a server is decided about by, in one pass.
pub(super) struct ResolveInput<'a> {
    pub(super) solver: &'a Solver,
    /// What upstreams have published, and as of when.
    pub(super) from: &'a PinnedInputs,
    pub(super) request: &'a Request,
    /// The servers that share a plugin with it; its own request is among them.
    pub(super) together: Group,
    pub(super) runs: &'a WhatRuns,
    /// The server that goes first, if one does.
    pub(super) follows: Option<&'a FollowState>,
}

impl ResolveInput<'_> {
    /// What the solve chooses for the server, decided about all servers that share a plugin at once. Without any catalog its
    /// answer is "not known yet", and what runs stays the goal.
    pub(super) async fn whole(&self) -> Result<SolveResult, SolverStopped> {
        self.ask(self.request, Arc::clone(&self.together)).await
    }

    /// Puts into the place of `answer`, which is about the whole request, what a person asks for alone, if it can come.
    pub(super) async fn alone(
        &self,
        asked: Option<Result<Scope, String>>,
        undo: Option<&PinnedSet>,
        answer: &mut plan::ResolvedLock,
    ) -> Result<PartialSelection, SolverStopped> {
        // A first start is one: nothing runs that could stay.
        let (Some(asked), Some(record)) = (asked, &self.runs.lock) else { return Ok(PartialSelection::Nothing) };
        let scope = match (asked, undo) {
            (Ok(_), Some(undo)) => return Ok(PartialSelection::Refused(undo.refusal().to_owned())),
            (Ok(scope), None) => scope,
            (Err(why), _) => return Ok(PartialSelection::Refused(why)),
        };
        let runs = &record.lock;
        if let Some(why) = unknown(&scope, self.request, runs) {
            return Ok(PartialSelection::Refused(why));
        }
        let shared = self.shared(answer);
        let one = PartialSolver { question: self, request: self.request, runs, shared: shared.as_ref() };
        match one.newer(&scope, Delays::Skipped).await? {
            Some(lock) => {
                answer.lock = Some(with_image_of(lock, self.runs));
                Ok(PartialSelection::Asked(scope))
            }
            None => one.why_not(&scope).await,
        }
    }

    /// Puts into the place of `answer` what waits for no window of the server, if it can come alone. `waits`: all that is planned has to wait for
    /// the server that is followed. `is_meant` says whether a person has spoken for the set of a lock: then that one comes.
    pub(super) async fn early(
        &self,
        server: &CheckedServer,
        plugins: &[Arc<Plugin>],
        waits: bool,
        is_meant: impl Fn(&Lock) -> bool,
        answer: &mut plan::ResolvedLock,
    ) -> Result<PartialSelection, SolverStopped> {
        let (Some(record), Some(whole)) = (&self.runs.lock, &answer.lock) else { return Ok(PartialSelection::Nothing) };
        let runs = &record.lock;
        // Nothing newer comes alone where nothing newer comes at all. Without a solution of the whole it may.
        if answer.solved && changes(Some(runs), whole).is_empty() || is_meant(whole) {
            return Ok(PartialSelection::Nothing);
        }
        let is_due = |scope: &Scope| !answer.solved || scope.differs(runs, whole);
        let candidates = UrgentCandidates::of(server, self.request, plugins, waits, is_due, self.from.now);
        // What may come when nobody is on comes whole: a window that only opens later is no reason to leave the rest behind.
        let may_be_planned = |lock: &Lock| server.opportunistic.is_none() || lock.digest() == whole.digest();
        let shared = self.shared(answer);
        let found = self.earliest(candidates, runs, shared.as_ref(), may_be_planned).await?;
        let Some((lock, early)) = found else { return Ok(PartialSelection::Nothing) };
        answer.lock = Some(with_image_of(lock, self.runs));
        Ok(PartialSelection::Early(early))
    }

    /// What comes first of those that wait for no window of the server. `may_be_planned`: before its window opens.
    async fn earliest(
        &self,
        candidates: UrgentCandidates,
        runs: &Lock,
        shared: Option<&Lock>,
        may_be_planned: impl Fn(&Lock) -> bool,
    ) -> Result<Option<(Lock, UrgentUpdate)>, SolverStopped> {
        let one = PartialSolver { question: self, request: self.request, runs, shared };
        let urgent = match candidates.urgent {
            Some(scope) => one.newer(&scope, Delays::Skipped).await?.map(|lock| (lock, scope)),
            None => None,
        };
        if let Some((base, urgent)) = urgent {
            let Some(own) = candidates.own.into_iter().find(PluginWindow::is_open) else {
                return Ok(Some((base, UrgentUpdate::Urgent(urgent))));
            };
            // What may not wait is there whatever its age, and what comes beside it is as old as in every set.
            let running = Some(plan::running(&base, self.from.catalog()));
            let request = Request { running, ..self.request.clone() };
            let beside = PartialSolver { question: self, request: &request, runs: &base, shared };
            let both = beside.newer(&own.scope.and(&urgent), Delays::AsWritten).await?;
            return Ok(Some(match both.filter(|both| !self.has_to_wait(&base, both)) {
                Some(both) => (both, UrgentUpdate::Both { urgent, own }),
                None => (base, UrgentUpdate::Urgent(urgent)),
            }));
        }
        for own in candidates.own {
            let newer = one.newer(&own.scope, Delays::AsWritten).await?;
            if let Some(lock) = newer.filter(|lock| own.is_open() || may_be_planned(lock)) {
                return Ok(Some((lock, UrgentUpdate::InOwnWindow(own))));
            }
        }
        Ok(None)
    }

    /// Whether the set that was chosen has to wait for the server that is followed.
    pub(super) fn whole_has_to_wait(&self, answer: &plan::ResolvedLock) -> bool {
        let (Some(runs), Some(whole)) = (&self.runs.lock, &answer.lock) else { return false };
        self.has_to_wait(&runs.lock, whole)
    }

    fn has_to_wait(&self, from: &Lock, to: &Lock) -> bool {
        self.follows.is_some_and(|follows| follows.waits(from, to, self.from.at).is_some())
    }

    /// What was decided for all servers that share a plugin.
    fn shared(&self, answer: &plan::ResolvedLock) -> Option<Lock> {
        answer.lock.as_ref().filter(|_| answer.solved && self.together.len() > 1).cloned()
    }

    async fn ask(&self, request: &Request, together: Group) -> Result<SolveResult, SolverStopped> {
        let at = self.from.at;
        match &self.from.snapshot {
            Some(snapshot) => self.solver.ask(Arc::clone(snapshot), together, &request.server, at).await,
            None => Ok(resolver::resolve(&Catalog::unread_at(at), request, at)),
        }
    }
}

/// Asks about parts of a request.
struct PartialSolver<'a> {
    question: &'a ResolveInput<'a>,
    /// With what runs for it.
    request: &'a Request,
    runs: &'a Lock,
    /// What was decided for all servers that share a plugin.
    shared: Option<&'a Lock>,
}

impl PartialSolver<'_> {
    async fn solve(&self, scope: &Scope, delays: Delays) -> Result<Result<Lock, Unsolvable>, SolverStopped> {
        let narrowed: Narrowed = narrow(self.request, &Present::of(self.runs), scope, self.shared, delays);
        let answer = self.question.ask(&narrowed.request, Arc::new(vec![narrowed.request.clone()])).await?;
        Ok(answer.map(|resolution| narrowed.lock(self.runs, resolution.lock)))
    }

    /// The set in which only a scope has changed; None: there is none, or nothing in it would change.
    async fn newer(&self, scope: &Scope, delays: Delays) -> Result<Option<Lock>, SolverStopped> {
        let solved = self.solve(scope, delays).await?;
        Ok(solved.ok().filter(|lock| !changes(Some(self.runs), lock).is_empty()))
    }

    /// Why nothing of a scope comes alone: it is as new as it may be, or something has to come along.
    async fn why_not(&self, scope: &Scope) -> Result<PartialSelection, SolverStopped> {
        let everything = Scope::everything(self.request, self.runs);
        match self.solve(&everything, Delays::Skipped).await? {
            Ok(newest) if scope.differs(self.runs, &newest) => {
                let with = self.companions(scope, &newest).await?;
                Ok(PartialSelection::Refused(not_alone(scope, with.as_ref())))
            }
            Ok(_) => Ok(PartialSelection::UpToDate(up_to_date(scope))),
            Err(Unsolvable::Unanswerable(_)) => Ok(PartialSelection::Refused(
                "not all that an answer needs has been read yet; it is asked again".to_owned(),
            )),
            Err(Unsolvable::NoSolution(_) | Unsolvable::GaveUp(_)) => {
                Ok(PartialSelection::Refused(not_alone(scope, None)))
            }
        }
    }

    /// The least that has to come along: of what differs in `newest`, nothing can be left out. None: even all of it is not enough.
    async fn companions(&self, scope: &Scope, newest: &Lock) -> Result<Option<Scope>, SolverStopped> {
        let mut with = changed(self.runs, newest).without(scope);
        if !self.comes(&scope.and(&with), scope).await? {
            return Ok(None);
        }
        for part in with.parts() {
            let fewer = with.without(&part);
            if self.comes(&scope.and(&fewer), scope).await? {
                with = fewer;
            }
        }
        Ok(Some(with))
    }

    /// Whether something of `scope` changes when nothing but `may_change` does.
    async fn comes(&self, may_change: &Scope, scope: &Scope) -> Result<bool, SolverStopped> {
        Ok(self.solve(may_change, Delays::Skipped).await?.is_ok_and(|lock| scope.differs(self.runs, &lock)))
    }
}

/// Who would have to be named for all that differs between two sets: of a dependency that nobody asks for, those who need it.
fn changed(from: &Lock, to: &Lock) -> Scope {
    let differs = |name: &str| changes(Some(from), to).iter().any(|change| change.what == name);
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

/// Puts the set at which a person's word keeps the server in the place of what the solve chose. One whose lock is gone is not known any more.
pub(super) async fn bring_back(
    ctx: &Context,
    server: &CheckedServer,
    undo: PinnedSet,
    answer: &mut plan::ResolvedLock,
    runs: &WhatRuns,
) -> Result<PinnedSet, artifacts::FilesError> {
    let (undo, record) = match undo {
        PinnedSet::To { digest, since } => {
            match artifacts::kept(ctx, &server.namespace, &server.name, &digest)
                .await
                .map_err(artifacts::FilesError::Record)?
            {
                Some(record) => (PinnedSet::To { digest, since }, Some(record)),
                None => (PinnedSet::Unknown { asked: digest }, runs.lock.clone()),
            }
        }
        stays @ (PinnedSet::Unknown { .. } | PinnedSet::Held { .. }) => (stays, runs.lock.clone()),
    };
    answer.lock = record.map(|record| record.lock.clone());
    Ok(undo)
}

#[cfg(test)]
mod tests;
