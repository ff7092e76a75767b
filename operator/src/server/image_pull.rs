//! Edge (writes). Pulls the images of the next set before a server is stopped for it. A short-lived pod makes the kubelet of the server's
//! node pull them. The pod is read only while there is something to pull.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use tracing::info;

use super::apply::{ApplyError, delete_exactly_with};
use super::check::CheckedServer;
use super::observe::Observed;
use super::plan::Plan;
use super::render::pull_pod::{build_pull, pull_name};
use crate::context::Context;
use crate::k8s::labels;
use crate::requeue::Outcome;

pub(crate) mod pod_status;
mod rejection;
pub(crate) mod request;
mod schedule;
pub(crate) mod state;

use pod_status::answer;
use request::PullRequest;
use schedule::{is_announced, is_near, would_be_stopped};
use state::{GONE_WITHIN, Pull, PullAction, PullPod};

impl Plan {
    /// Requeues the server at the next attempt to pull images.
    pub(super) fn in_time_for_images(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        // An instant in the past is ignored: after an announcement there is no further attempt.
        let next = self.images.as_ref().and_then(Pull::next_look).filter(|next| *next > now);
        next.map_or(outcome, |next| outcome.no_later_than(next, now))
    }
}

/// Makes the node pull the images of the planned set, and records the progress in `plan`.
pub(super) async fn look(
    ctx: &Context,
    server: &CheckedServer,
    seen: &Observed,
    plan: &mut Plan,
    now: Timestamp,
) -> Result<(), ApplyError> {
    let key = (server.namespace.clone(), server.name.clone());
    let known = ctx.memory.pulls.get(&key);
    let pod = seen.pod.as_ref().filter(|_| would_be_stopped(&plan.goal, &plan.seen));
    let Some(question) = pod.and_then(|pod| PullRequest::of(&plan.rendered.template, pod)) else {
        if known.is_some_and(|known| known.may_have_a_pod()) {
            clear(ctx, server).await?;
        }
        ctx.memory.pulls.remove(&key);
        return Ok(());
    };
    // An update is announced only when the node has the images, and an announced update happens. Both hold even after the operator with
    // this knowledge has died.
    let told = is_announced(&plan.goal, &plan.seen);
    let near = !told && is_near(&plan.goal, &plan.seen, plan.gate, plan.comes_when_empty(server), now);
    let pull = match known.filter(|known| known.question == question) {
        Some(known) if is_kept(&known, told, near, now) => known,
        None if told => return Ok(()),
        known => ask(ctx, server, plan, known.unwrap_or_else(|| Pull::new(question)), now).await?,
    };
    ctx.memory.pulls.put(key, pull.clone());
    plan.seen.images = pull.seen();
    plan.images = Some(pull);
    Ok(())
}

/// Whether this pass does nothing about the images. After an announcement, a node whose state is unknown is not checked during the
/// countdown. A missing image would end the countdown in vain, and a pulled one would start the update unannounced.
fn is_kept(known: &Pull, told: bool, near: bool, now: Timestamp) -> bool {
    told || known.stands(near, now)
}

/// Reads the pull pod, creates it, or deletes it when its result is known.
async fn ask(
    ctx: &Context,
    server: &CheckedServer,
    plan: &Plan,
    pull: Pull,
    now: Timestamp,
) -> Result<Pull, ApplyError> {
    let (api, name) = (pods(ctx, server), pull_name(&server.name));
    let failed = |verb| failed(server, verb);
    let pod = api.get_opt(&name).await.map_err(failed("read"))?;
    let uid = pod.as_ref().and_then(Pod::uid);
    let found = found(pod.as_ref(), server, &pull.question, now);
    let (pull, deed) = pull.next(found, now);
    match deed {
        PullAction::Nothing => Ok(pull),
        PullAction::Delete => {
            info!(pod = name, "the pod that has a node pull images goes");
            delete_at_once(ctx, &api, &name, uid).await.map_err(failed("delete"))?;
            Ok(pull)
        }
        PullAction::Make => {
            let pod = build_pull(server, &plan.rendered.template, &pull.question, &ctx.config.agent_image);
            ctx.metrics.api_writes.inc();
            match api.create(&PostParams::default(), &pod).await {
                Ok(_) => Ok(pull),
                // The response to an earlier attempt was slow. The next pass reads the pod.
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(pull),
                Err(kube::Error::Api(status)) => Ok(pull.refused(&status, now)),
                Err(source) => Err(failed("create")(source)),
            }
        }
    }
}

/// The object that exists under the name of the pull pod.
fn found(pod: Option<&Pod>, server: &CheckedServer, question: &PullRequest, now: Timestamp) -> PullPod {
    let Some(pod) = pod else { return PullPod::Nothing };
    if !is_ours(pod, server) {
        return PullPod::Foreign;
    }
    // The API server has already added the grace period to this instant.
    if let Some(deleted_at) = &pod.metadata.deletion_timestamp {
        return PullPod::Going { by: deleted_at.0 + GONE_WITHIN };
    }
    if pod.annotations().get(labels::IMAGES) != Some(&question.digest) {
        return PullPod::OfAnother;
    }
    PullPod::Ours { answer: answer(pod), since: pod.metadata.creation_timestamp.as_ref().map_or(now, |at| at.0) }
}

fn is_ours(pod: &Pod, server: &CheckedServer) -> bool {
    pod.owner_references().iter().any(|owner| owner.uid == server.owner.uid)
        && pod.annotations().contains_key(labels::IMAGES)
}

/// Deletes the pull pod, whatever its request, if there is one.
pub(super) async fn clear(ctx: &Context, server: &CheckedServer) -> Result<(), ApplyError> {
    let (api, name) = (pods(ctx, server), pull_name(&server.name));
    let failed = |verb| failed(server, verb);
    let left = api.get_opt(&name).await.map_err(failed("read"))?.filter(|pod| is_ours(pod, server));
    match left {
        Some(pod) => delete_at_once(ctx, &api, &name, pod.uid()).await.map_err(failed("delete")),
        None => Ok(()),
    }
}

/// Deletes without a grace period, so that it also works on a node that does not answer. The pod runs no process that has to end first.
async fn delete_at_once(ctx: &Context, api: &Api<Pod>, name: &str, uid: Option<String>) -> Result<(), kube::Error> {
    delete_exactly_with(ctx, api, name, uid, DeleteParams::default().grace_period(0)).await
}

fn failed(server: &CheckedServer, verb: &'static str) -> impl Fn(kube::Error) -> ApplyError {
    move |source| ApplyError::Write { verb, kind: "Pod".to_owned(), name: pull_name(&server.name), source }
}

fn pods(ctx: &Context, server: &CheckedServer) -> Api<Pod> {
    Api::namespaced(ctx.client.clone(), &server.namespace)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::server::check::check;
    use crate::server::check::tests::server;
    use crate::server::image_pull::pod_status::PullStatus;
    use crate::server::image_pull::request::tests::{goal, pod};

    #[test]
    fn image_pull_is_retried_but_not_after_announcement() {
        let goal = goal(("game:2", "IfNotPresent"), "agent:1");
        let question = PullRequest::of(&goal, &serde_json::from_value(pod("game:1")).unwrap()).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        let (once, _) = Pull::new(question).next(PullPod::Foreign, at(0));
        let (pull, _) = once.next(PullPod::Foreign, at(30));
        assert_eq!((pull.seen(), pull.next_look()), (scheduler::observation::ImagesOnNode::Unknown, Some(at(90))));
        assert!(is_kept(&pull, false, true, at(89)) && !is_kept(&pull, false, true, at(90)));
        assert!(is_kept(&pull, true, false, at(90)), "the countdown goes on");
    }

    #[test]
    fn image_pull_accepts_only_own_pod_for_this_request() {
        let server = check(&server(json!({}))).unwrap();
        let goal = goal(("game:2", "IfNotPresent"), "agent:1");
        let question = PullRequest::of(&goal, &serde_json::from_value(pod("game:1")).unwrap()).unwrap();
        let ours = serde_json::to_value(build_pull(&server, &goal, &question, "agent:1")).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        let found = |pod: &Value| found(Some(&serde_json::from_value(pod.clone()).unwrap()), &server, &question, at(5));
        assert_eq!(super::found(None, &server, &question, at(5)), PullPod::Nothing);
        assert_eq!(found(&ours), PullPod::Ours { answer: PullStatus::Untaken, since: at(5) });
        let mut other = ours.clone();
        other["metadata"]["annotations"]["nightshift.dev/images"] = json!("00");
        assert_eq!(found(&other), PullPod::OfAnother);
        other["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:04Z");
        assert_eq!(found(&other), PullPod::Going { by: at(64) });
        for at in ["/metadata/ownerReferences", "/metadata/annotations"] {
            let mut foreign = ours.clone();
            *foreign.pointer_mut(at).unwrap() = Value::Null;
            assert_eq!(found(&foreign), PullPod::Foreign, "{at}");
        }
        let mut of_another_server = ours.clone();
        of_another_server["metadata"]["ownerReferences"][0]["uid"] = json!("another");
        assert_eq!(found(&of_another_server), PullPod::Foreign);
    }
}
