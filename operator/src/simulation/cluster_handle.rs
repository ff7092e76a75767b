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
    Duplicated,
    /// The operator dies before the request arrives, or after.
    CrashBefore,
    CrashAfter,
}

/// The state of a pass that a fault interrupted.
#[derive(Debug)]
pub(super) enum InterruptedPass {
    Delayed(Delay),
    Crashed,
}

/// The operator sleeps before its request arrives.
#[derive(Debug)]
pub(super) struct Delay {
    pub(super) until: Timestamp,
    /// If this is dropped, the process has died meanwhile.
    pub(super) wake: oneshot::Sender<()>,
}

pub(super) struct ClusterHandle {
    cluster: Mutex<SimCluster>,
    interruptions: mpsc::UnboundedSender<InterruptedPass>,
}

impl ClusterHandle {
    pub(super) fn new(cluster: SimCluster) -> (Self, mpsc::UnboundedReceiver<InterruptedPass>) {
        let (interruptions, receiver) = mpsc::unbounded_channel();
        (Self { cluster: Mutex::new(cluster), interruptions }, receiver)
    }

    /// A simulated cluster of another server, whose passes report to the same driver.
    pub(super) fn for_other_server(&self, cluster: SimCluster) -> Self {
        Self { cluster: Mutex::new(cluster), interruptions: self.interruptions.clone() }
    }

    /// Locks the cluster. The guard is never held over an await.
    pub(super) fn cluster(&self) -> MutexGuard<'_, SimCluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of a request, after its delay.
    pub(super) async fn draw_fault(&self, writes: bool) -> Option<RequestFault> {
        let (fault, until) = self.cluster().draw_request_fault(writes);
        if fault == Some(RequestFault::CrashBefore) {
            self.crash_operator().await;
        }
        let Some(until) = until else { return fault };
        let (wake, woken) = oneshot::channel();
        // Sending fails only when the run is over.
        drop(self.interruptions.send(InterruptedPass::Delayed(Delay { until, wake })));
        // A pass that is never woken has died, and its request with it.
        woken.await.map_or(Some(RequestFault::RequestLost), |()| fault)
    }

    /// The operator that sent this request dies now.
    pub(super) async fn crash_operator(&self) {
        drop(self.interruptions.send(InterruptedPass::Crashed));
        std::future::pending::<()>().await;
    }
}
