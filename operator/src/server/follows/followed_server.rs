//! Edge (reads). Reads the state of the followed server and wakes its followers.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{FollowState, LeaderState, RanSet};
use crate::context::Context;
use crate::k8s::ownership::Owner;
use crate::server::last_status::status_before;
use crate::server::records::{RecordError, read_signed_lock, unless_rejected};
use validate::{CheckedFollows, CheckedServer};

/// The followed server and its state according to its status. `None` if the server follows no other.
pub(crate) async fn observe(
    ctx: &Context,
    server: &CheckedServer,
    now: Timestamp,
) -> Result<Option<FollowState>, RecordError> {
    let Some(spec) = &server.updates.follows else { return Ok(None) };
    let all: Vec<Arc<PaperMCServer>> = servers_in_namespace(ctx, &server.namespace).collect();
    let (state, was_rolled_back, history) = match all.iter().find(|other| other.name_any() == spec.server) {
        None => (LeaderState::Missing, false, Vec::new()),
        Some(followed) => {
            let status = status_before(ctx, followed);
            let circle = find_cycle(&server.name, &spec.server, |name| leader_of(&all, name)).map(LeaderState::Cycle);
            let history = leader_history(ctx, followed, &status, spec, now).await?;
            let was_rolled_back = status.last_update.as_ref().is_some_and(|last| !last.successful);
            (circle.unwrap_or_else(|| leader_state(followed, &status)), was_rolled_back, history)
        }
    };
    Ok(Some(FollowState { spec: spec.clone(), state, was_rolled_back, history }))
}

/// Requeues the servers that follow this one, because it was created, deleted or changed.
pub(crate) fn requeue_followers(ctx: &Context, namespace: &str, server: &str) {
    let follows = |other: &PaperMCServer| other.spec.follows.as_ref().is_some_and(|spec| spec.server == server);
    for follower in servers_in_namespace(ctx, namespace).filter(|other| follows(other)) {
        ctx.requeue(namespace, &follower.name_any());
    }
}

pub(crate) fn servers_in_namespace(ctx: &Context, namespace: &str) -> impl Iterator<Item = Arc<PaperMCServer>> {
    let is_in_namespace = move |server: &Arc<PaperMCServer>| {
        server.namespace().as_deref() == Some(namespace) && server.metadata.deletion_timestamp.is_none()
    };
    ctx.servers.state().into_iter().filter(is_in_namespace)
}

fn leader_of(all: &[Arc<PaperMCServer>], name: &str) -> Option<String> {
    let server = all.iter().find(|server| server.name_any() == name)?;
    server.spec.follows.as_ref().map(|spec| spec.server.clone())
}

/// The path from a server through the servers it follows back to itself. A circle without this server is reported on its own members.
pub(super) fn find_cycle(
    server: &str,
    followed: &str,
    follows: impl Fn(&str) -> Option<String>,
) -> Option<Vec<String>> {
    let (mut path, mut seen) = (vec![server.to_owned()], BTreeSet::new());
    let mut next = Some(followed.to_owned());
    while let Some(name) = next.filter(|name| seen.insert(name.clone())) {
        path.push(name.clone());
        if name == server {
            return Some(path);
        }
        next = follows(&name);
    }
    None
}

/// The state of the server according to its status.
pub(super) fn leader_state(server: &PaperMCServer, status: &PaperMCServerStatus) -> LeaderState {
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
    if server.spec.suspend {
        LeaderState::Suspended
    } else if server.spec.replicas == 0 {
        LeaderState::ScaledToZero
    } else if let Some(ready) = ready.filter(|ready| ready.status != "True") {
        LeaderState::Down(ready.reason.clone())
    } else if status.lock != status.history.first().map(|newest| newest.lock.clone()) {
        LeaderState::RolloutInProgress
    } else {
        LeaderState::Stable
    }
}

/// The sets in its history, back to a verified one that ran when the soak time would have had to begin.
async fn leader_history(
    ctx: &Context,
    server: &PaperMCServer,
    status: &PaperMCServerStatus,
    spec: &CheckedFollows,
    now: Timestamp,
) -> Result<Vec<RanSet>, RecordError> {
    let owner = Owner::from(server);
    let mut history = Vec::new();
    for past in &status.history {
        // A gap in the history: the sets before it did not run directly before the later ones.
        let record = read_signed_lock(ctx, &owner, &past.lock).await;
        let Some(record) = unless_rejected(record, &mut Vec::new())? else { break };
        history.push(RanSet { since: past.settled_at, unverified: past.unverified, record });
        if !past.unverified && past.settled_at.checked_add(spec.soak).is_ok_and(|soaked| soaked <= now) {
            break;
        }
    }
    Ok(history)
}
