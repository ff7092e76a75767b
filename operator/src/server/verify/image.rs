//! Pure. Checks whether the server's container runs the image of its pod's template.
//!
//! The image of a pod can be changed in place (`kubectl set image pod/…`). The kubelet restarts the container with it, and the pod keeps
//! the name of its revision. The revision alone therefore does not tell which image runs.

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};

use crate::server::observe::Observed;
use validate::image_contract::SERVER_CONTAINER;

/// A message about the image that runs instead of the planned one. `None` if they are the same, or if the pod's template is unknown.
pub(crate) fn other_image(observed: &Observed) -> Option<String> {
    let runs = image_of(observed.pod.as_ref()?.spec.as_ref()?)?;
    let planned = image_of(template_of_pod(observed)?.spec.as_ref()?)?;
    (!is_same(runs, planned)).then(|| format!("the pod runs image `{runs}`, not `{planned}`"))
}

fn image_of(spec: &PodSpec) -> Option<&str> {
    spec.containers.iter().find(|container| container.name == SERVER_CONTAINER)?.image.as_deref()
}

/// The template of the `StatefulSet`, or the stable one. A pod of any other revision is about to be replaced.
fn template_of_pod(observed: &Observed) -> Option<&PodTemplateSpec> {
    let of_pod = observed.pod_revision?;
    let stateful_set = observed
        .stateful_set
        .as_ref()
        .filter(|_| observed.stateful_set_view.is_some_and(|stateful_set| stateful_set.template == of_pod));
    let template = stateful_set.and_then(|stateful_set| stateful_set.spec.as_ref()).map(|spec| &spec.template);
    let record =
        observed.stable.as_ref().filter(|_| observed.facts.settled.is_some_and(|stable| stable.revision == of_pod));
    template.or(record.map(|record| &record.template))
}

/// Whether both name the same image. A cluster's webhook may replace the registry by a mirror, or append the digest of a tag, which is
/// still the same image. Registries are therefore not compared, nor is any part that only one of the two names has.
fn is_same(runs: &str, planned: &str) -> bool {
    let (runs, planned) = (Reference::parse(runs), Reference::parse(planned));
    match planned.digest {
        Some(_) => runs.digest == planned.digest,
        None => runs.name == planned.name && (runs.tag.is_none() || runs.tag == planned.tag),
    }
}

/// An image name without its registry.
struct Reference<'a> {
    name: &'a str,
    /// `None` if only its digest is given.
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

impl<'a> Reference<'a> {
    fn parse(image: &'a str) -> Self {
        let (named, digest) = image.split_once('@').map_or((image, None), |(named, digest)| (named, Some(digest)));
        let last = named.rsplit_once('/').map_or(named, |(_, last)| last);
        let (name, tag) = last.split_once(':').map_or((last, None), |(name, tag)| (name, Some(tag)));
        Self { name, tag: tag.or(digest.is_none().then_some("latest")), digest }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::observation::Revision;
    use serde_json::json;

    use super::*;
    use crate::server::requested_restore::tests::after_failed_update::{FAILED, STABLE, rolling_out};

    #[test]
    fn image_matches_across_mirror_and_digest() {
        for (runs, planned) in [
            ("docker.io/itzg/minecraft-server:java21", "docker.io/itzg/minecraft-server:java21"),
            ("mirror:5000/hub/itzg/minecraft-server:java21", "docker.io/itzg/minecraft-server:java21"),
            ("docker.io/itzg/minecraft-server:java21@sha256:1", "docker.io/itzg/minecraft-server:java21"),
            ("docker.io/itzg/minecraft-server@sha256:1", "docker.io/itzg/minecraft-server:java21"),
            ("mirror/paper@sha256:1", "docker.io/itzg/minecraft-server:java21@sha256:1"),
            ("paper:latest", "paper"),
        ] {
            assert!(is_same(runs, planned), "{runs} for {planned}");
        }
        for (runs, planned) in [
            ("docker.io/itzg/minecraft-server:java17", "docker.io/itzg/minecraft-server:java21"),
            ("docker.io/itzg/minecraft-server:java17@sha256:1", "docker.io/itzg/minecraft-server:java21"),
            ("docker.io/itzg/mc-proxy:java21", "docker.io/itzg/minecraft-server:java21"),
            ("mirror/paper:java21@sha256:2", "mirror/paper:java21@sha256:1"),
            ("mirror/paper:java21", "mirror/paper:java21@sha256:1"),
            ("paper", "paper:1"),
        ] {
            assert!(!is_same(runs, planned), "{runs} for {planned}");
        }
    }

    #[test]
    fn image_is_compared_with_template_of_pod_revision() {
        let template = |image: &str| {
            let sidecar = json!({"name": "beside", "image": "x:1"});
            json!({"metadata": {}, "spec": {"containers": [sidecar, {"name": "papermc", "image": image}]}})
        };
        let stateful_set = json!({
            "metadata": {"name": "lobby"},
            "spec": {"selector": {}, "serviceName": "lobby", "template": template("game:2")},
        });
        let mut observed = rolling_out(&json!(null));
        observed.stateful_set = Some(serde_json::from_value(stateful_set).unwrap());
        let record = Arc::make_mut(observed.stable.as_mut().unwrap());
        record.template = serde_json::from_value(template("game:1")).unwrap();
        observed.pod = Some(serde_json::from_value(template("game:2")).unwrap());
        let mut image_after = |revision| {
            observed.pod_revision = revision;
            other_image(&observed)
        };
        assert_eq!(image_after(Some(FAILED)), None, "the template in rollout has this image");
        assert_eq!(image_after(Some(STABLE)).as_deref(), Some("the pod runs image `game:2`, not `game:1`"));
        assert_eq!((image_after(Some(Revision(7))), image_after(None)), (None, None));
    }
}
