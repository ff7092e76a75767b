//! Pure. Solves requests on a thread of its own.
//!
//! After a change of the catalog all servers of a group ask about the same requests. The thread reads and decides them
//! once and gives each server its own explanation, which is cached while it stays valid.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use resolver::model::checked_catalog::earliest_check;
use resolver::model::request::Request;
use resolver::{Budget, DecidedFleet, Fleet, Resolution, Unsolvable, next_change};
use tokio::sync::oneshot;

use crate::catalog::{Content, Snapshot};
use crate::solve_groups::Group;
use crate::telemetry::metrics::Solves;

/// How long a decision is valid, and how long it waits for more questions about the same group. Delays of releases end
/// at any second, and the passes of a group follow each other within moments.
const VALID_FOR: Duration = Duration::from_secs(10);

/// The version set for a server, or why there is none.
pub(crate) type SolveResult = Result<Resolution, Unsolvable>;

/// Number of cached answers per server. A pass may ask about all plugins and about a partial update.
const MAX_CACHED: usize = 4;

/// Sends questions to the solver thread unless the answer is cached.
pub(crate) struct Solver {
    sender: Sender<SolveRequest>,
    /// By server, the newest first.
    cache: Mutex<HashMap<String, VecDeque<CachedResult>>>,
}

/// A cached answer and its question.
struct CachedResult {
    /// The digest of the catalog, so that the cache does not keep the catalog itself.
    content: Content,
    solved_group: SolvedGroup,
    from: Timestamp,
    /// When time alone may change the answer. `None` if it never does.
    until: Option<Timestamp>,
    result: SolveResult,
}

/// The requests that were decided together.
enum SolvedGroup {
    Single(Group),
    /// [`crate::solve_groups::Requests`] keeps the group itself, and a cached answer does not. A pointer comparison is
    /// enough while the group exists.
    Several(Weak<Vec<Request>>),
}

impl SolvedGroup {
    fn new(group: &Group) -> Self {
        if group.len() > 1 { Self::Several(Arc::downgrade(group)) } else { Self::Single(group.clone()) }
    }

    fn matches(&self, group: &Group) -> bool {
        match self {
            Self::Single(one) => one == group,
            Self::Several(several) => several.upgrade().is_some_and(|several| Arc::ptr_eq(&several, group)),
        }
    }
}

/// The question for one server.
struct SolveRequest {
    subject: SolveSubject,
    server: String,
    reply: oneshot::Sender<(SolveResult, Option<Timestamp>)>,
}

/// The subject of one decision.
#[derive(Clone)]
struct SolveSubject {
    snapshot: Arc<Snapshot>,
    group: Group,
    now: Timestamp,
}

/// The thread has ended, which happens only after a bug.
#[derive(Debug, thiserror::Error)]
#[error("the solver has stopped: restart the operator")]
pub(crate) struct SolverStopped;

impl Solver {
    /// Starts the thread. It ends when the `Solver` is dropped.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(solves: Solves) -> std::io::Result<Self> {
        let (sender, requests) = channel();
        std::thread::Builder::new().name("solver".to_owned()).spawn(move || serve_requests(&requests, &solves))?;
        Ok(Self { sender, cache: Mutex::default() })
    }

    /// Returns the version set of this server of the group. `now` is the current instant. The decision about the group may
    /// be as old as [`VALID_FOR`].
    ///
    /// # Errors
    /// When the thread has ended.
    pub(crate) async fn solve(
        &self,
        snapshot: Arc<Snapshot>,
        group: Group,
        server: &str,
        now: Timestamp,
    ) -> Result<SolveResult, SolverStopped> {
        let content = snapshot.content;
        if let Some(result) = self.cached(server, content, &group, now) {
            return Ok(result);
        }
        let (reply, result) = oneshot::channel();
        let subject = SolveSubject { snapshot, group: group.clone(), now };
        let request = SolveRequest { subject, server: server.to_owned(), reply };
        self.sender.send(request).map_err(|_| SolverStopped)?;
        let (result, until) = result.await.map_err(|_| SolverStopped)?;
        // A solve that gave up may get further the next time, so its answer is not cached.
        if !matches!(result, Err(Unsolvable::GaveUp(_))) {
            let mut cache = self.lock();
            let cached = cache.entry(server.to_owned()).or_default();
            cached.retain(|cached| cached.content == content && !cached.solved_group.matches(&group));
            cached.truncate(MAX_CACHED - 1);
            let solved_group = SolvedGroup::new(&group);
            cached.push_front(CachedResult { content, solved_group, from: now, until, result: result.clone() });
        }
        Ok(result)
    }

    /// Removes the answers of a deleted server.
    pub(crate) fn evict(&self, server: &str) {
        self.lock().remove(server);
    }

    fn cached(&self, server: &str, content: Content, group: &Group, now: Timestamp) -> Option<SolveResult> {
        let cache = self.lock();
        let is_valid = |cached: &&CachedResult| {
            let is_now = cached.from <= now && cached.until.is_none_or(|until| now < until);
            is_now && cached.content == content && cached.solved_group.matches(group)
        };
        cache.get(server)?.iter().find(is_valid).map(|cached| cached.result.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, VecDeque<CachedResult>>> {
        // A thread that panicked here left the map consistent.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SolveSubject {
    /// Whether a decision about this subject is valid for the other one too.
    fn is_valid_for(&self, other: &Self) -> bool {
        let age = other.now.duration_since(self.now).unsigned_abs();
        Arc::ptr_eq(&self.snapshot, &other.snapshot) && Arc::ptr_eq(&self.group, &other.group) && age < VALID_FOR
    }
}

impl SolveRequest {
    fn reply(self, decided: &DecidedFleet<'_, '_>, until: Option<Timestamp>, solves: &Solves) {
        let started = Instant::now();
        let result = decided.resolution(&self.server).expect("a server is in its own solve group");
        solves.explain_seconds.observe(started.elapsed().as_secs_f64());
        // The receiver may be gone because its pass was dropped.
        drop(self.reply.send((result, until)));
    }
}

fn serve_requests(requests: &Receiver<SolveRequest>, solves: &Solves) {
    // Questions about other subjects that arrived while one was being answered.
    let mut others = VecDeque::new();
    while let Some(request) = others.pop_front().or_else(|| requests.recv().ok()) {
        solve_subject(request, requests, &mut others, solves);
    }
}

/// Decides once, and answers all questions about the same subject until one about another subject arrives. A server that looks for releases at
/// certain times is solved with those of the last time. If they have no solution, a user has asked for a newer one, and all count.
fn solve_subject(
    first: SolveRequest,
    requests: &Receiver<SolveRequest>,
    others: &mut VecDeque<SolveRequest>,
    solves: &Solves,
) {
    let started = Instant::now();
    let subject = first.subject.clone();
    let catalog = subject.snapshot.catalog.with_unread_projects(subject.group.iter());
    if let (Some(checked_at), Cow::Owned(checked)) =
        (earliest_check(&*subject.group), catalog.as_checked(&subject.group))
    {
        // Between two checks, time changes nothing either.
        let fleet = Fleet::read(&checked, &subject.group, subject.now.min(checked_at));
        let decided = fleet.decide(Budget::default());
        if has_solution(&decided, &subject.group) {
            solves.solve_seconds.observe(started.elapsed().as_secs_f64());
            return answer_all(&decided, None, (first, &subject), requests, others, solves);
        }
    }
    let fleet = Fleet::read(&catalog, &subject.group, subject.now);
    let decided = fleet.decide(Budget::default());
    let until = next_change(&subject.snapshot.catalog, &subject.group, subject.now);
    solves.solve_seconds.observe(started.elapsed().as_secs_f64());
    answer_all(&decided, until, (first, &subject), requests, others, solves);
}

/// Whether every server of the group has a version set.
fn has_solution(decided: &DecidedFleet<'_, '_>, group: &Group) -> bool {
    match group.as_slice() {
        [one] => decided.resolution(&one.server).is_some_and(|result| result.is_ok()),
        several => decided.solved_together().len() == several.len(),
    }
}

/// Answers the questions about a subject that has been decided.
fn answer_all(
    decided: &DecidedFleet<'_, '_>,
    until: Option<Timestamp>,
    (first, subject): (SolveRequest, &SolveSubject),
    requests: &Receiver<SolveRequest>,
    others: &mut VecDeque<SolveRequest>,
    solves: &Solves,
) {
    let (same_subject, rest): (VecDeque<_>, VecDeque<_>) =
        others.drain(..).partition(|other: &SolveRequest| subject.is_valid_for(&other.subject));
    *others = rest;
    for request in std::iter::once(first).chain(same_subject) {
        request.reply(decided, until, solves);
    }
    loop {
        let next = if others.is_empty() { requests.recv_timeout(VALID_FOR).ok() } else { requests.try_recv().ok() };
        match next {
            Some(request) if subject.is_valid_for(&request.subject) => request.reply(decided, until, solves),
            Some(request) => others.push_back(request),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;
