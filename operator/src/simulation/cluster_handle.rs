//! Edge (writes). What passes and the world share: the world itself, and the way by which a pass that falls asleep is known to who drives it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::cluster::SimCluster;

/// What becomes of a request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestFault {
    /// It does not arrive.
    RequestLost,
    /// It is carried out, and nobody learns it.
    AnswerLost,
    /// It arrives again; the second answer counts.
    Twice,
    /// Whoever has sent it dies before it arrives, or after.
    DeathBefore,
    DeathAfter,
}

/// What becomes of the pass whose request is on its way.
#[derive(Debug)]
pub(super) enum InterruptedPass {
    Asleep(Delay),
    Dead,
}

/// Whoever has sent a request sleeps before it arrives.
#[derive(Debug)]
pub(super) struct Delay {
    pub(super) until: Timestamp,
    /// Dropped: the process has died meanwhile.
    pub(super) wake: oneshot::Sender<()>,
}

pub(super) struct ClusterHandle {
    world: Mutex<SimCluster>,
    struck: mpsc::UnboundedSender<InterruptedPass>,
}

impl ClusterHandle {
    pub(super) fn new(world: SimCluster) -> (Self, mpsc::UnboundedReceiver<InterruptedPass>) {
        let (struck, told) = mpsc::unbounded_channel();
        (Self { world: Mutex::new(world), struck }, told)
    }

    /// A world in the same cluster: who drives it hears of the passes of both.
    pub(super) fn beside(&self, world: SimCluster) -> Self {
        Self { world: Mutex::new(world), struck: self.struck.clone() }
    }

    /// The world, for a moment: never held over a wait.
    pub(super) fn world(&self) -> MutexGuard<'_, SimCluster> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a request meets on its way.
    pub(super) async fn meet(&self, writes: bool) -> Option<RequestFault> {
        let (mishap, until) = self.world().draw_mishap(writes);
        if mishap == Some(RequestFault::DeathBefore) {
            self.die().await;
        }
        let Some(until) = until else { return mishap };
        let (wake, woken) = oneshot::channel();
        // Nobody listens any more only when the walk is over.
        drop(self.struck.send(InterruptedPass::Asleep(Delay { until, wake })));
        // Whoever is never woken has died, and so has its request.
        woken.await.map_or(Some(RequestFault::RequestLost), |()| mishap)
    }

    /// Whoever has sent the request that is looked at dies now.
    pub(super) async fn die(&self) {
        drop(self.struck.send(InterruptedPass::Dead));
        std::future::pending::<()>().await;
    }
}
