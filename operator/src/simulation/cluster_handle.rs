//! Edge (writes). Shares the simulated cluster with the passes, and tells the driver of a run about passes that sleep
//! or die.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::cluster::SimCluster;

/// The fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestFault {
    /// It does not arrive.
    RequestLost,
    /// It is carried out, and its answer is lost.
    AnswerLost,
    /// It arrives again, and the second answer counts.
    Twice,
    /// The operator dies before the request arrives, or after.
    DeathBefore,
    DeathAfter,
}

/// The state of a pass that a fault interrupted.
#[derive(Debug)]
pub(super) enum InterruptedPass {
    Asleep(Delay),
    Dead,
}

/// The operator sleeps before its request arrives.
#[derive(Debug)]
pub(super) struct Delay {
    pub(super) until: Timestamp,
    /// If this is dropped, the process has died meanwhile.
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

    /// A simulated cluster of another server, whose passes report to the same driver.
    pub(super) fn beside(&self, world: SimCluster) -> Self {
        Self { world: Mutex::new(world), struck: self.struck.clone() }
    }

    /// Locks the cluster. The guard is never held over an await.
    pub(super) fn world(&self) -> MutexGuard<'_, SimCluster> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of a request, after its delay.
    pub(super) async fn meet(&self, writes: bool) -> Option<RequestFault> {
        let (mishap, until) = self.world().draw_mishap(writes);
        if mishap == Some(RequestFault::DeathBefore) {
            self.die().await;
        }
        let Some(until) = until else { return mishap };
        let (wake, woken) = oneshot::channel();
        // Sending fails only when the run is over.
        drop(self.struck.send(InterruptedPass::Asleep(Delay { until, wake })));
        // A pass that is never woken has died, and its request with it.
        woken.await.map_or(Some(RequestFault::RequestLost), |()| mishap)
    }

    /// The operator that sent this request dies now.
    pub(super) async fn die(&self) {
        drop(self.struck.send(InterruptedPass::Dead));
        std::future::pending::<()>().await;
    }
}
