//! Pure. Reports `ConfigMap`s that the operator did not write. They are ignored: by the init container, and by the operator itself.

use agent_api::FILES_KEY;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::context::PassReport;
use crate::k8s::events::EventText;
use crate::server::observe::Observed;
use crate::server::records::lock_map_of;
use crate::server::render::init_requests::init_requests_map_name;

/// Type of the condition. It is absent while no `ConfigMap` is ignored.
pub(crate) const LOCK_REJECTED: &str = "LockRejected";
/// Reason of the condition.
pub(super) const NOT_SIGNED: &str = "NotSigned";

/// The message of the condition. `None` if no `ConfigMap` was ignored by this pass, or at the start of this pod.
pub(super) fn message(report: &PassReport<'_>) -> Option<String> {
    let observed = report.pass.observed;
    let maps = rejected_maps(&report.pass.checked.name, observed);
    if maps.is_empty() {
        return None;
    }
    let maps = maps.iter().map(|map| format!("`{map}`")).collect::<Vec<_>>().join(", ");
    let effect = if observed.is_start_rejected() {
        "The server does not start without it."
    } else {
        "The server runs the version set that it had."
    };
    Some(format!(
        "Nightshift did not write the content of ConfigMap {maps}, and ignores it. {effect} Find out who may write \
        ConfigMaps in this namespace. Nightshift writes its own again, and the condition ends after the next start."
    ))
}

/// The Event about a rejection that the previous conditions do not name.
pub(super) fn event(report: &PassReport<'_>, before: &[Condition]) -> Option<EventText> {
    let text = message(report)?;
    let is_known = before.iter().any(|condition| condition.type_ == LOCK_REJECTED && condition.message == text);
    (!is_known).then_some(EventText { reason: LOCK_REJECTED, warning: true, text })
}

/// The ignored `ConfigMap`s, each once.
fn rejected_maps(server: &str, observed: &Observed) -> Vec<String> {
    let mut maps = observed.rejected_maps.clone();
    let template = observed.pod.as_ref().and_then(|pod| pod.spec.as_ref());
    for file in observed.lock_rejected().into_iter().flat_map(|rejected| rejected.files) {
        let lock = template.filter(|_| file == FILES_KEY).and_then(lock_map_of);
        maps.push(lock.map_or_else(|| init_requests_map_name(server), str::to_owned));
    }
    maps.sort();
    maps.dedup();
    maps
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::report::tests::Pass;

    /// A pod whose `prepare` ended with this exit code and message.
    fn pass(exit_code: i32, message: &str) -> Pass {
        let mut pass = Pass::new();
        pass.observed.pod = Some(
            serde_json::from_value(json!({
                "metadata": {"name": "lobby-0"},
                "spec": {"containers": [], "volumes": [{"name": "lock", "configMap": {"name": "lobby-lock-1"}}]},
                "status": {"initContainerStatuses": [{
                    "name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": exit_code, "message": message}},
                }]},
            }))
            .unwrap(),
        );
        pass
    }

    fn condition(pass: &Pass) -> Option<String> {
        let found = pass.status().conditions.into_iter().find(|condition| condition.type_ == LOCK_REJECTED);
        found.map(|condition| condition.message)
    }

    #[test]
    fn ignored_config_maps_are_named_once() {
        let files = "NOT SIGNED: files.json, restore.json, restore-from.json\nThese files";
        let mut pass = pass(0, files);
        pass.observed.rejected_maps = vec!["lobby-stable-1".to_owned(), "lobby-lock-1".to_owned()];
        let message = condition(&pass).unwrap();
        let maps = "ConfigMap `lobby-init-requests`, `lobby-lock-1`, `lobby-stable-1`, and ignores it. The server runs";
        assert!(message.contains(maps), "{message}");
        pass.observed.rejected_maps.clear();
        assert!(condition(&pass).is_some());
        assert_eq!(condition(&self::pass(0, "")), None);
    }

    #[test]
    fn refused_start_is_no_failure_of_the_worlds() {
        let pass = pass(3, "NOT SIGNED: files.json\nThese files");
        let message = condition(&pass).unwrap();
        assert!(message.contains("`lobby-lock-1`") && message.contains("does not start"), "{message}");
        assert_eq!(pass.observed.world_refused(), None);
    }
}
