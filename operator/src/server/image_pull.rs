//! Edge (writes). Pulls the images of the next set before a server is stopped for it. A short-lived pod makes the kubelet of the server's
//! node pull them. The pod is read only while there is something to pull.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use tracing::info;

use super::agent_image::agent_image;
use super::apply::{ApplyError, delete_exactly_with};
use super::observe::Observed;
use super::plan::Plan;
use super::render::pull_pod::{build_pull, pull_name};
use crate::context::Context;
use crate::k8s::labels;
use validate::CheckedServer;

mod schedule;

use super::model::image_pull::pod_status::pull_status;
use super::model::image_pull::request::PullRequest;
use super::model::image_pull::state::{DELETION_TIMEOUT, Pull, PullAction, PullPod};
use schedule::is_near;
pub(crate) use schedule::{is_announced, would_be_stopped};

/// Makes the node pull the images of the planned set, and records the progress in `plan`.
pub(super) async fn pull_images(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    plan: &mut Plan,
    now: Timestamp,
) -> Result<(), ApplyError> {
    let key = (server.namespace.clone(), server.name.clone());
    let cached = ctx.caches.pulls.get(&key);
    let pod = observed.pod.as_ref().filter(|_| would_be_stopped(&plan.goal, &plan.observation));
    let Some(request) = pod.and_then(|pod| PullRequest::from_goal(&plan.target.rendered.template, pod)) else {
        if cached.is_some_and(|cached| cached.may_have_pod()) {
            delete_pull_pod(ctx, server).await?;
        }
        ctx.caches.pulls.remove(&key);
        return Ok(());
    };
    // An update is announced only when the node has the images, and an announced update happens. Both hold even after the operator with
    // this knowledge has died.
    let is_announced = is_announced(&plan.goal, &plan.observation);
    let is_near =
        !is_announced && is_near(&plan.goal, &plan.observation, plan.gate, plan.waits_for_empty_server(server), now);
    let pull = match cached.filter(|cached| cached.request == request) {
        Some(cached) if needs_no_check(&cached, is_announced, is_near, now) => cached,
        None if is_announced => return Ok(()),
        cached => reconcile_pull_pod(ctx, server, plan, cached.unwrap_or_else(|| Pull::new(request)), now).await?,
    };
    ctx.caches.pulls.put(key, pull.clone());
    plan.observation.images = pull.images_on_node();
    plan.constraints.images = Some(pull);
    Ok(())
}

/// Whether this pass does nothing about the images. After an announcement, a node whose state is unknown is not checked during the
/// countdown. A missing image would end the countdown in vain, and a pulled one would start the update unannounced.
fn needs_no_check(cached: &Pull, is_announced: bool, is_near: bool, now: Timestamp) -> bool {
    is_announced || cached.is_current(is_near, now)
}

/// Reads the pull pod, creates it, or deletes it when its result is known.
async fn reconcile_pull_pod(
    ctx: &Context,
    server: &CheckedServer,
    plan: &Plan,
    pull: Pull,
    now: Timestamp,
) -> Result<Pull, ApplyError> {
    let (api, name) = (pod_api(ctx, server), pull_name(&server.name));
    let failed = |verb| failed(server, verb);
    let pod = api.get_opt(&name).await.map_err(failed("read"))?;
    let uid = pod.as_ref().and_then(Pod::uid);
    let found = classify_pod(pod.as_ref(), server, &pull.request, now);
    let (pull, action) = pull.next(found, now);
    match action {
        PullAction::Nothing => Ok(pull),
        PullAction::Delete => {
            info!(pod = name, "deleting the pod that makes a node pull images");
            delete_without_grace(ctx, &api, &name, uid).await.map_err(failed("delete"))?;
            Ok(pull)
        }
        PullAction::Create => {
            let template = &plan.target.rendered.template;
            let agent = agent_image(template).unwrap_or(&ctx.config.agent_image);
            let pod = build_pull(server, template, &pull.request, agent);
            ctx.metrics.api_writes.inc();
            match api.create(&PostParams::default(), &pod).await {
                Ok(_) => Ok(pull),
                // The response to an earlier attempt was slow. The next pass reads the pod.
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(pull),
                Err(kube::Error::Api(status)) => Ok(pull.rejected(&status, now)),
                Err(source) => Err(failed("create")(source)),
            }
        }
    }
}

/// The object that exists under the name of the pull pod.
fn classify_pod(pod: Option<&Pod>, server: &CheckedServer, request: &PullRequest, now: Timestamp) -> PullPod {
    let Some(pod) = pod else { return PullPod::Missing };
    if !is_owned(pod, server) {
        return PullPod::Foreign;
    }
    // The API server has already added the grace period to this instant.
    if let Some(deleted_at) = &pod.metadata.deletion_timestamp {
        return PullPod::Terminating { gone_by: deleted_at.0 + DELETION_TIMEOUT };
    }
    if pod.annotations().get(labels::IMAGES) != Some(&request.digest) {
        return PullPod::OtherRequest;
    }
    PullPod::Owned { status: pull_status(pod), since: pod.metadata.creation_timestamp.as_ref().map_or(now, |at| at.0) }
}

fn is_owned(pod: &Pod, server: &CheckedServer) -> bool {
    pod.owner_references().iter().any(|owner| Some(owner) == server.owner.as_ref())
        && pod.annotations().contains_key(labels::IMAGES)
}

/// Deletes the pull pod, whatever its request, if there is one.
pub(super) async fn delete_pull_pod(ctx: &Context, server: &CheckedServer) -> Result<(), ApplyError> {
    let (api, name) = (pod_api(ctx, server), pull_name(&server.name));
    let failed = |verb| failed(server, verb);
    let left = api.get_opt(&name).await.map_err(failed("read"))?.filter(|pod| is_owned(pod, server));
    match left {
        Some(pod) => delete_without_grace(ctx, &api, &name, pod.uid()).await.map_err(failed("delete")),
        None => Ok(()),
    }
}

/// Deletes without a grace period, so that it also works on a node that does not answer. The pod runs no process that has to end first.
async fn delete_without_grace(
    ctx: &Context,
    api: &Api<Pod>,
    name: &str,
    uid: Option<String>,
) -> Result<(), kube::Error> {
    delete_exactly_with(ctx, api, name, uid, DeleteParams::default().grace_period(0)).await
}

fn failed(server: &CheckedServer, verb: &'static str) -> impl Fn(kube::Error) -> ApplyError {
    move |source| ApplyError::Write { verb, kind: "Pod".to_owned(), name: pull_name(&server.name), source }
}

fn pod_api(ctx: &Context, server: &CheckedServer) -> Api<Pod> {
    Api::namespaced(ctx.client.clone(), &server.namespace)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::server::model::image_pull::pod_status::PullStatus;
    use crate::server::model::image_pull::request::tests::goal;
    use crate::server::model::image_pull::request::tests::pod;
    use crate::server::test_server::server;
    use validate::check;

    #[test]
    fn image_pull_is_retried_but_not_after_announcement() {
        let goal = goal(("game:2", "IfNotPresent"), "agent:1");
        let request = PullRequest::from_goal(&goal, &serde_json::from_value(pod("game:1")).unwrap()).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        let (once, _) = Pull::new(request).next(PullPod::Foreign, at(0));
        let (pull, _) = once.next(PullPod::Foreign, at(30));
        assert_eq!(
            (pull.images_on_node(), pull.next_check()),
            (scheduler::observation::ImagesOnNode::Unknown, Some(at(90)))
        );
        assert!(needs_no_check(&pull, false, true, at(89)) && !needs_no_check(&pull, false, true, at(90)));
        assert!(needs_no_check(&pull, true, false, at(90)), "no check is made during a countdown");
    }

    #[test]
    fn image_pull_accepts_only_own_pod_for_this_request() {
        let server = check(&server(json!({}))).unwrap();
        let goal = goal(("game:2", "IfNotPresent"), "agent:1");
        let request = PullRequest::from_goal(&goal, &serde_json::from_value(pod("game:1")).unwrap()).unwrap();
        let owned = serde_json::to_value(build_pull(&server, &goal, &request, "agent:1")).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        let found =
            |pod: &Value| classify_pod(Some(&serde_json::from_value(pod.clone()).unwrap()), &server, &request, at(5));
        assert_eq!(super::classify_pod(None, &server, &request, at(5)), PullPod::Missing);
        assert_eq!(found(&owned), PullPod::Owned { status: PullStatus::Unnoticed, since: at(5) });
        let mut other = owned.clone();
        other["metadata"]["annotations"]["nightshift.dev/images"] = json!("00");
        assert_eq!(found(&other), PullPod::OtherRequest);
        other["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:04Z");
        assert_eq!(found(&other), PullPod::Terminating { gone_by: at(64) });
        for at in ["/metadata/ownerReferences", "/metadata/annotations"] {
            let mut foreign = owned.clone();
            *foreign.pointer_mut(at).unwrap() = Value::Null;
            assert_eq!(found(&foreign), PullPod::Foreign, "{at}");
        }
        let mut of_another_server = owned.clone();
        of_another_server["metadata"]["ownerReferences"][0]["uid"] = json!("another");
        assert_eq!(found(&of_another_server), PullPod::Foreign);
    }
}
