//! Pure. Marks the goal as failed if its version set has failed on this server before.

use scheduler::observation::RecordedFacts;

use crate::caches::Rendered;
use crate::server::observe::Observed;
use crate::template_revision::set_of;

/// Returns the facts, with the goal marked as failed if the same version set failed with another agent version. The stable set is exempt:
/// there only Nightshift's own part of the template is new.
pub(super) fn with_what_failed(seen: &Observed, goal: &Rendered) -> RecordedFacts {
    let mut facts = seen.facts.clone();
    if facts.failed.is_empty() || facts.failed.contains(&goal.revision) {
        return facts;
    }
    let set = set_of(&goal.template);
    let has_settled = seen.settled.as_ref().is_some_and(|settled| set_of(&settled.template) == set);
    if facts.failed.contains(&set) && !has_settled {
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
    use crate::server::requested_restore::tests::way_back::on_trial;
    use crate::template_revision::revision_of;

    fn rendered(agent: &str, lock: &str) -> Rendered {
        let template: PodTemplateSpec = serde_json::from_value(json!({
            "metadata": {"annotations": {"nightshift.dev/lock-digest": lock}},
            "spec": {"containers": [{"name": "papermc"}], "initContainers": [{"name": "agent", "image": agent}]},
        }))
        .unwrap();
        Rendered { revision: revision_of(&template), template: Arc::new(template) }
    }

    fn is_held(seen: &Observed, goal: &Rendered) -> bool {
        with_what_failed(seen, goal).failed.contains(&goal.revision)
    }

    #[test]
    fn failed_lock_is_not_retried_for_newer_agent_only() {
        let (failed, newer_agent) = (rendered("nightshift:1", "a"), rendered("nightshift:2", "a"));
        let mut seen = on_trial(&json!(null));
        seen.facts.failed.clear();
        assert!(!is_held(&seen, &failed));
        seen.facts.mark_failed(failed.revision, Some(set_of(&failed.template)));
        assert!(is_held(&seen, &failed) && is_held(&seen, &newer_agent));
        assert!(!is_held(&seen, &rendered("nightshift:2", "b")));
    }

    #[test]
    fn stable_lock_gets_newer_agent_after_earlier_failure() {
        let (before, newer_agent) = (rendered("nightshift:1", "a"), rendered("nightshift:2", "a"));
        let mut seen = on_trial(&json!(null));
        seen.facts.failed = vec![Revision(1), set_of(&before.template)];
        assert!(is_held(&seen, &newer_agent));
        let settled = seen.settled.as_mut().map(Arc::make_mut).unwrap();
        settled.template = (*before.template).clone();
        assert!(!is_held(&seen, &newer_agent));
    }
}
