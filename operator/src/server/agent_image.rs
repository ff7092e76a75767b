//! Pure. Decides which image of the agent a pod template names. A new operator has another image, and a change of the template restarts the server. While
//! the agent itself is the same, a server keeps the image that its template has.

use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};

use super::changes::TemplateChange;
use super::observe::Observed;
use crate::caches::Rendered;
use crate::k8s::labels;
use crate::template_revision::{revision_of, revision_without_agent};
use validate::image_contract::AGENT_CONTAINERS;

/// The image of the agent in a template.
pub(crate) fn agent_image(template: &PodTemplateSpec) -> Option<&str> {
    let containers = template.spec.as_ref()?.init_containers.as_ref()?;
    containers.iter().find(|container| is_agent(container))?.image.as_deref()
}

/// The digest of the agent in a template. Earlier builds of the operator wrote none.
fn agent_digest(template: &PodTemplateSpec) -> Option<&str> {
    template.metadata.as_ref()?.annotations.as_ref()?.get(labels::AGENT_DIGEST).map(String::as_str)
}

fn is_agent(container: &Container) -> bool {
    AGENT_CONTAINERS.contains(&container.name.as_str())
}

/// The existing template of the server if this one differs from it only in the image of the same agent. A rollout in progress is considered first.
pub(super) fn keep_agent_image(rendered: Rendered, observed: &Observed) -> Rendered {
    let written = observed.stateful_set.as_ref().and_then(|stateful_set| stateful_set.spec.as_ref());
    let stable = observed.stable.as_ref().map(|stable| &stable.template);
    let existing = written.map(|spec| &spec.template).into_iter().chain(stable);
    match existing.into_iter().find(|template| has_same_agent_elsewhere(&rendered, template)) {
        Some(template) => {
            Rendered { revision: revision_of(template), template: template.clone().into(), source: rendered.source }
        }
        None => rendered,
    }
}

/// Whether the templates are equal except for the image of the agent, and the images are of one repository. A user who moves to another repository
/// may be about to close the old one.
fn has_same_agent_elsewhere(rendered: &Rendered, existing: &PodTemplateSpec) -> bool {
    let (Some(new), Some(old)) = (agent_image(&rendered.template), agent_image(existing)) else { return false };
    if new == old || repository_of(new) != repository_of(old) {
        return false;
    }
    let mut with_old_image = (*rendered.template).clone();
    let containers = with_old_image.spec.iter_mut().flat_map(|spec| spec.init_containers.iter_mut().flatten());
    containers.filter(|container| is_agent(container)).for_each(|container| container.image = Some(old.to_owned()));
    revision_of(&with_old_image) == revision_of(existing)
}

/// An image without its tag and its digest.
fn repository_of(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        Some(_) | None => image,
    }
}

/// Why the template of the goal differs from the stable one if the version set is the same.
pub(super) fn template_change(stable: Option<&PodTemplateSpec>, goal: &PodTemplateSpec) -> TemplateChange {
    let Some(stable) = stable else { return TemplateChange::Settings };
    let (Some(image), Some(old)) = (agent_image(goal), agent_image(stable)) else { return TemplateChange::Settings };
    let is_same_agent = agent_digest(stable) == agent_digest(goal);
    if is_same_agent && image == old || revision_without_agent(stable) != revision_without_agent(goal) {
        return TemplateChange::Settings;
    }
    let image = image.to_owned();
    if is_same_agent { TemplateChange::AgentImage { image } } else { TemplateChange::Agent { image } }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
    use serde_json::json;

    use super::*;
    use crate::server::online_backup::tests::observed;

    /// A template with this agent, the image of the server as a version, and a setting of the agent.
    fn template(image: &str, digest: &str, game: &str, text: &str) -> PodTemplateSpec {
        let agent = |name: &str| json!({"name": name, "image": image, "env": [{"name": "NIGHTSHIFT_KICK_TEXT", "value": text}]});
        serde_json::from_value(json!({
            "metadata": {"annotations": {"nightshift.dev/lock-digest": "a", "nightshift.dev/agent-digest": digest}},
            "spec": {"containers": [{"name": "papermc", "image": game}], "initContainers": [agent("prepare"), agent("agent")]},
        }))
        .unwrap()
    }

    fn rendered(template: PodTemplateSpec) -> Rendered {
        Rendered { revision: revision_of(&template), template: Arc::new(template), source: Some([1; 32]) }
    }

    fn kept(goal: &PodTemplateSpec, written: &PodTemplateSpec) -> PodTemplateSpec {
        let mut observed = observed(true, &json!({}));
        let spec = StatefulSetSpec { template: written.clone(), ..StatefulSetSpec::default() };
        observed.stateful_set = Some(StatefulSet { spec: Some(spec), ..StatefulSet::default() });
        let kept = keep_agent_image(rendered(goal.clone()), &observed);
        assert_eq!((kept.revision, kept.source), (revision_of(&kept.template), Some([1; 32])));
        (*kept.template).clone()
    }

    #[test]
    fn new_image_with_same_agent_changes_no_template() {
        let runs = template("r.example:5000/nightshift:1", "a", "game:1", "");
        for image in ["r.example:5000/nightshift:2", "r.example:5000/nightshift@sha256:00"] {
            assert_eq!(kept(&template(image, "a", "game:1", ""), &runs), runs, "{image}");
        }
        for other in [
            template("r.example:5000/nightshift:2", "b", "game:1", ""),
            template("mirror.example/nightshift:1", "a", "game:1", ""),
            template("r.example:5000/nightshift:2", "a", "game:2", ""),
            template("r.example:5000/nightshift:2", "a", "game:1", "Back soon"),
        ] {
            assert_eq!(kept(&other, &runs), other, "a restart is due, or follows for another reason");
        }
    }

    #[test]
    fn template_change_names_agent_only_if_it_differs() {
        let runs = template("nightshift:1", "a", "game:1", "");
        let change = |goal: PodTemplateSpec| template_change(Some(&runs), &goal);
        let image = |image: &str| image.to_owned();
        assert_eq!(
            change(template("nightshift:2", "b", "game:1", "")),
            TemplateChange::Agent { image: image("nightshift:2") }
        );
        assert_eq!(
            change(template("mirror/n:1", "a", "game:1", "")),
            TemplateChange::AgentImage { image: image("mirror/n:1") }
        );
        assert_eq!(change(template("nightshift:1", "a", "game:1", "Back soon")), TemplateChange::Settings);
        assert_eq!(change(template("nightshift:2", "b", "game:2", "")), TemplateChange::Settings);
        assert_eq!(template_change(None, &runs), TemplateChange::Settings);
    }
}
