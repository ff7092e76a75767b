//! Pure. Solves requests on a thread of its own.
//!
//! After a change of the catalog all servers of a group ask about the same requests. The thread reads and decides them
//! once and gives each server its own explanation, which is cached while it stays valid.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use resolver::request::Request;
use resolver::{Budget, Decided, Fleet, Resolution, Unsolvable, next_change};
use tokio::sync::oneshot;

use crate::catalog::{Content, Snapshot};
use crate::solve_groups::Group;
use crate::telemetry::metrics::Solves;

/// How long a decision is valid, and how long it waits for more questions about the same group. Delays of releases end
/// at any second, and the passes of a group follow each other within moments.
const KEPT: Duration = Duration::from_secs(10);

/// The version set for a server, or why there is none.
pub(crate) type SolveResult = Result<Resolution, Unsolvable>;

/// Number of cached answers per server. A pass may ask about all plugins and about a partial update.
const MOST_KEPT: usize = 4;

/// Sends questions to the solver thread unless the answer is cached.
pub(crate) struct Solver {
    questions: Sender<SolveRequest>,
    /// By server, the newest first.
    kept: Mutex<HashMap<String, VecDeque<CachedResult>>>,
}

/// A cached answer and its question.
struct CachedResult {
    /// The digest of the catalog, so that the cache does not keep the catalog itself.
    content: Content,
    asked: SolvedGroup,
    from: Timestamp,
    /// When time alone may change the answer. `None` if it never does.
    until: Option<Timestamp>,
    answer: SolveResult,
}

/// The requests that were decided together.
enum SolvedGroup {
    Alone(Group),
    /// [`crate::solve_groups::Requests`] keeps the group itself, and a cached answer does not. A pointer comparison is
    /// enough while the group exists.
    Together(Weak<Vec<Request>>),
}

impl SolvedGroup {
    fn of(group: &Group) -> Self {
        if group.len() > 1 { Self::Together(Arc::downgrade(group)) } else { Self::Alone(group.clone()) }
    }

    fn is(&self, group: &Group) -> bool {
        match self {
            Self::Alone(one) => one == group,
            Self::Together(several) => several.upgrade().is_some_and(|several| Arc::ptr_eq(&several, group)),
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
    at: Timestamp,
}

/// The thread has ended, which happens only after a bug.
#[derive(Debug, thiserror::Error)]
#[error("the solver is gone; the operator has to be started anew")]
pub(crate) struct SolverStopped;

impl Solver {
    /// Starts the thread. It ends when the `Solver` is dropped.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(solves: Solves) -> std::io::Result<Self> {
        let (questions, asked) = channel();
        std::thread::Builder::new().name("solver".to_owned()).spawn(move || serve(&asked, &solves))?;
        Ok(Self { questions, kept: Mutex::default() })
    }

    /// Returns the version set of this server of the group. `at` is now. The decision about the group may be as old as
    /// [`KEPT`].
    ///
    /// # Errors
    /// When the thread has ended.
    pub(crate) async fn ask(
        &self,
        snapshot: Arc<Snapshot>,
        group: Group,
        server: &str,
        at: Timestamp,
    ) -> Result<SolveResult, SolverStopped> {
        let content = snapshot.content;
        if let Some(answer) = self.kept(server, content, &group, at) {
            return Ok(answer);
        }
        let (reply, answer) = oneshot::channel();
        let subject = SolveSubject { snapshot, group: group.clone(), at };
        let question = SolveRequest { subject, server: server.to_owned(), reply };
        self.questions.send(question).map_err(|_| SolverStopped)?;
        let (answer, until) = answer.await.map_err(|_| SolverStopped)?;
        // A solve that gave up may get further the next time, so its answer is not cached.
        if !matches!(answer, Err(Unsolvable::GaveUp(_))) {
            let mut kept = self.lock();
            let known = kept.entry(server.to_owned()).or_default();
            known.retain(|known| known.content == content && !known.asked.is(&group));
            known.truncate(MOST_KEPT - 1);
            let asked = SolvedGroup::of(&group);
            known.push_front(CachedResult { content, asked, from: at, until, answer: answer.clone() });
        }
        Ok(answer)
    }

    /// Removes the answers of a deleted server.
    pub(crate) fn forget(&self, server: &str) {
        self.lock().remove(server);
    }

    fn kept(&self, server: &str, content: Content, group: &Group, at: Timestamp) -> Option<SolveResult> {
        let kept = self.lock();
        let counts = |known: &&CachedResult| {
            let is_now = known.from <= at && known.until.is_none_or(|until| at < until);
            is_now && known.content == content && known.asked.is(group)
        };
        kept.get(server)?.iter().find(counts).map(|known| known.answer.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, VecDeque<CachedResult>>> {
        // A thread that panicked here left the map consistent.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SolveSubject {
    /// Whether a decision about this subject is valid for the other one too.
    fn counts_for(&self, other: &Self) -> bool {
        let age = other.at.duration_since(self.at).unsigned_abs();
        Arc::ptr_eq(&self.snapshot, &other.snapshot) && Arc::ptr_eq(&self.group, &other.group) && age < KEPT
    }
}

impl SolveRequest {
    fn reply(self, decided: &Decided<'_, '_>, until: Option<Timestamp>, solves: &Solves) {
        let started = Instant::now();
        let answer = decided.answer(&self.server).expect("a server is among those it is solved with");
        solves.explain_seconds.observe(started.elapsed().as_secs_f64());
        // The receiver may be gone because its pass was dropped.
        drop(self.reply.send((answer, until)));
    }
}

fn serve(asked: &Receiver<SolveRequest>, solves: &Solves) {
    // Questions about other subjects that arrived while one was being answered.
    let mut others = VecDeque::new();
    while let Some(question) = others.pop_front().or_else(|| asked.recv().ok()) {
        answer_alike(question, asked, &mut others, solves);
    }
}

/// Decides once, and answers all questions about the same subject until one about another subject arrives.
fn answer_alike(
    first: SolveRequest,
    asked: &Receiver<SolveRequest>,
    others: &mut VecDeque<SolveRequest>,
    solves: &Solves,
) {
    let started = Instant::now();
    let subject = first.subject.clone();
    let fleet = Fleet::read(&subject.snapshot.catalog, &subject.group, subject.at);
    let decided = fleet.decide(Budget::default());
    let until = next_change(&subject.snapshot.catalog, &subject.group, subject.at);
    solves.solve_seconds.observe(started.elapsed().as_secs_f64());
    let (alike, rest): (VecDeque<_>, VecDeque<_>) =
        others.drain(..).partition(|other: &SolveRequest| subject.counts_for(&other.subject));
    *others = rest;
    for question in std::iter::once(first).chain(alike) {
        question.reply(&decided, until, solves);
    }
    loop {
        let next = if others.is_empty() { asked.recv_timeout(KEPT).ok() } else { asked.try_recv().ok() };
        match next {
            Some(question) if subject.counts_for(&question.subject) => question.reply(&decided, until, solves),
            Some(question) => others.push_back(question),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;
