//! Pure. Reports an item on the volume that the init container does not open, as a condition and an Event.

use agent_api::termination_message::VolumeRejected;
use crds::PaperMCServerStatus;

use super::context::PassReport;
use crate::error_chain::cut;
use crate::k8s::events::EventText;

/// Type of the condition, reason of `Ready` meanwhile, and reason of the Event.
pub(super) const VOLUME_REJECTED: &str = "VolumeRejected";
/// Reason of the condition.
pub(super) const UNSAFE_ITEM: &str = "UnsafeItem";

/// The message of the condition. `None` if the last init container of the pod refused nothing.
pub(super) fn message(report: &PassReport<'_>) -> Option<String> {
    describe(report.pass.observed.termination_message()?)
}

/// The message for users in a termination message of that kind.
pub(super) fn describe(termination_message: &str) -> Option<String> {
    let VolumeRejected { path, problem } = VolumeRejected::parse(termination_message)?;
    // The path is in backticks, and a plugin can choose it.
    let path = path.replace('`', "");
    let text = format!(
        "`{path}` {problem}. The agent opens only plain files and directories on the volume, and follows no link, because a \
        plugin can create them. Remove it, or move the file or directory itself to this path. `prepare` retries automatically."
    );
    Some(cut(&text, 1_024))
}

/// The Event, once for each item.
pub(super) fn event(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let text = message(report)?;
    let is_reported = before.conditions.iter().any(|old| old.type_ == VOLUME_REJECTED && old.message == text);
    (!is_reported).then_some(EventText { reason: VOLUME_REJECTED, warning: true, text })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use scheduler::observation::{PodPhase, PodView};
    use serde_json::json;

    use super::*;
    use crate::server::report::tests::Pass;

    #[test]
    fn rejected_item_is_a_condition_with_path_and_way_out() {
        let rejected = VolumeRejected { path: "/data/plugins".to_owned(), problem: "is a link".to_owned() };
        let mut pass = Pass::new();
        let phase = PodPhase::Starting { deadline: Timestamp::UNIX_EPOCH };
        pass.plan.observation.pod = pass.plan.observation.pod.map(|pod| PodView { phase, ..pod });
        let pod = |state| {
            let prepare = json!({"name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 1, "state": state,
                "lastState": {"terminated": {"exitCode": 1, "message": rejected.to_string()}}});
            let pod = json!({"metadata": {"name": "lobby-0"}, "status": {"initContainerStatuses": [prepare]}});
            serde_json::from_value(pod).unwrap()
        };
        pass.observed.pod = Some(pod(json!({"running": {}})));
        let conditions = pass.status().conditions;
        let find = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
        let condition = find(VOLUME_REJECTED).unwrap();
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", UNSAFE_ITEM));
        assert!(
            condition.message.starts_with("`/data/plugins` is a link. ") && condition.message.contains("Remove it")
        );
        let ready = find("Ready").unwrap();
        assert_eq!((ready.reason.as_str(), &ready.message), (VOLUME_REJECTED, &condition.message));
        let before = PaperMCServerStatus { conditions: conditions.clone(), ..PaperMCServerStatus::default() };
        assert_eq!(event(&pass.report(), &before), None, "one Event for one item");
        assert!(event(&pass.report(), &PaperMCServerStatus::default()).is_some());

        pass.observed.pod = Some(pod(json!({"terminated": {"exitCode": 0}})));
        assert!(!pass.status().conditions.iter().any(|condition| condition.type_ == VOLUME_REJECTED));
    }
}
