//! Pure. Marks the goal as failed if its version set has failed on this server before.

use scheduler::observation::RecordedFacts;

use crate::caches::Rendered;
use crate::server::observe::Observed;
use crate::template_revision::revision_without_agent;

/// Returns the facts, with the goal marked as failed if the same version set failed with another agent version. The stable set is exempt:
/// there only Nightshift's own part of the template is new.
pub(crate) fn facts_with_failed_goal(observed: &Observed, goal: &Rendered) -> RecordedFacts {
    let mut facts = observed.facts.clone();
    if facts.failed.is_empty() || facts.failed.contains(&goal.revision) {
        return facts;
    }
    let version_set = revision_without_agent(&goal.template);
    let is_stable_set =
        observed.stable.as_ref().is_some_and(|stable| revision_without_agent(&stable.template) == version_set);
    if facts.failed.contains(&version_set) && !is_stable_set {
        facts.mark_failed(goal.revision, None);
    }
    facts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::PodTemplateSpec;
    use scheduler::observation::Revision;
    use serde_json::json;

    use super::*;
    use crate::server::requested_restore::tests::after_failed_update::rolling_out;
    use crate::template_revision::revision_of;

    fn rendered(agent: &str, lock: &str) -> Rendered {
        let template: PodTemplateSpec = serde_json::from_value(json!({
            "metadata": {"annotations": {"nightshift.dev/lock-digest": lock}},
            "spec": {"containers": [{"name": "papermc"}], "initContainers": [{"name": "agent", "image": agent}]},
        }))
        .unwrap();
        Rendered { revision: revision_of(&template), template: Arc::new(template), source: None }
    }

    fn is_marked_failed(observed: &Observed, goal: &Rendered) -> bool {
        facts_with_failed_goal(observed, goal).failed.contains(&goal.revision)
    }

    #[test]
    fn failed_lock_is_not_retried_for_newer_agent_only() {
        let (failed, newer_agent) = (rendered("nightshift:1", "a"), rendered("nightshift:2", "a"));
        let mut observed = rolling_out(&json!(null));
        observed.facts.failed.clear();
        assert!(!is_marked_failed(&observed, &failed));
        observed.facts.mark_failed(failed.revision, Some(revision_without_agent(&failed.template)));
        assert!(is_marked_failed(&observed, &failed) && is_marked_failed(&observed, &newer_agent));
        assert!(!is_marked_failed(&observed, &rendered("nightshift:2", "b")));
    }

    #[test]
    fn stable_lock_gets_newer_agent_after_earlier_failure() {
        let (before, newer_agent) = (rendered("nightshift:1", "a"), rendered("nightshift:2", "a"));
        let mut observed = rolling_out(&json!(null));
        observed.facts.failed = vec![Revision(1), revision_without_agent(&before.template)];
        assert!(is_marked_failed(&observed, &newer_agent));
        let stable = observed.stable.as_mut().map(Arc::make_mut).unwrap();
        stable.template = (*before.template).clone();
        assert!(!is_marked_failed(&observed, &newer_agent));
    }
}
