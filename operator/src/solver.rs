//! Pure. The thread that solves. After a change of the catalog all servers of a group ask about the same set of requests:
//! they are read and decided about once, and each gets its own explanation.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use resolver::{Budget, Decided, Fleet, Resolution, Unsolvable};
use tokio::sync::oneshot;

use crate::catalog_keeper::Snapshot;
use crate::requests::Group;
use crate::telemetry::metrics::Solves;

/// How long a decision counts, and how long it is kept for somebody else to ask: delays end by the second, and the passes
/// of a group come within moments of each other.
const KEPT: Duration = Duration::from_secs(10);

/// What a server should run, or why there is no answer.
pub(crate) type Answer = Result<Resolution, Unsolvable>;

/// Asks the thread that solves.
pub(crate) struct Solver(Sender<Question>);

/// What one server should run.
struct Question {
    subject: Subject,
    server: String,
    reply: oneshot::Sender<Answer>,
}

/// What is decided about at once.
#[derive(Clone)]
struct Subject {
    snapshot: Arc<Snapshot>,
    group: Group,
    at: Timestamp,
}

/// The thread has ended, which it does only by a fault of ours.
#[derive(Debug, thiserror::Error)]
#[error("the solver is gone; the operator has to be started anew")]
pub(crate) struct Gone;

impl Solver {
    /// Starts the thread; it ends when nobody can ask any more.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(solves: Solves) -> std::io::Result<Self> {
        let (questions, asked) = channel();
        std::thread::Builder::new().name("solver".to_owned()).spawn(move || serve(&asked, &solves))?;
        Ok(Self(questions))
    }

    /// What this server of the group should run. `at` is now; the answer may be as old as [`KEPT`].
    ///
    /// # Errors
    /// When the thread has ended.
    pub(crate) async fn ask(
        &self,
        snapshot: Arc<Snapshot>,
        group: Group,
        server: &str,
        at: Timestamp,
    ) -> Result<Answer, Gone> {
        let (reply, answer) = oneshot::channel();
        let subject = Subject { snapshot, group, at };
        self.0.send(Question { subject, server: server.to_owned(), reply }).map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}

impl Subject {
    /// Whether what was decided about it counts for the other one too.
    fn counts_for(&self, other: &Self) -> bool {
        let age = other.at.duration_since(self.at).unsigned_abs();
        Arc::ptr_eq(&self.snapshot, &other.snapshot) && Arc::ptr_eq(&self.group, &other.group) && age < KEPT
    }
}

impl Question {
    fn reply(self, decided: &Decided<'_, '_>, solves: &Solves) {
        let started = Instant::now();
        let answer = decided.answer(&self.server).expect("a server is among those it is solved with");
        solves.answer_seconds.observe(started.elapsed().as_secs_f64());
        // A pass that was dropped wants no answer.
        drop(self.reply.send(answer));
    }
}

fn serve(asked: &Receiver<Question>, solves: &Solves) {
    // Questions about something else, which came while one was being answered.
    let mut others = VecDeque::new();
    while let Some(question) = others.pop_front().or_else(|| asked.recv().ok()) {
        answer_alike(question, asked, &mut others, solves);
    }
}

/// Decides once, and answers all who ask about the same for as long as nobody asks about something else.
fn answer_alike(first: Question, asked: &Receiver<Question>, others: &mut VecDeque<Question>, solves: &Solves) {
    let started = Instant::now();
    let subject = first.subject.clone();
    let fleet = Fleet::read(&subject.snapshot.catalog, &subject.group, subject.at);
    let decided = fleet.decide(Budget::default());
    solves.decide_seconds.observe(started.elapsed().as_secs_f64());
    let (alike, rest): (VecDeque<_>, VecDeque<_>) =
        others.drain(..).partition(|other: &Question| subject.counts_for(&other.subject));
    *others = rest;
    for question in std::iter::once(first).chain(alike) {
        question.reply(&decided, solves);
    }
    loop {
        let next = if others.is_empty() { asked.recv_timeout(KEPT).ok() } else { asked.try_recv().ok() };
        match next {
            Some(question) if subject.counts_for(&question.subject) => question.reply(&decided, solves),
            Some(question) => others.push_back(question),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;
