//! Pure. Reports the images that the server's node has to pull before the server is stopped for an update. Players are not warned before that.
//! `server/image_pull.rs` makes the node pull them.

use jiff::Timestamp;

use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::model::image_pull::state::{Pull, PullError};
use crate::server::plan::Plan;
use crate::server::plan::constraint::{ConditionSection, ConditionText, Constraint};
use crate::server::report::context::{MAX_MESSAGE_LENGTH, PassReport};

pub(super) struct ImagePull;

/// Type of the condition. It is absent while no pull failed and the node is available.
const IMAGES_PULLED: &str = "ImagesPulled";
/// The reason of the condition if it is false, and of the Event.
const PULL_FAILED: &str = "PullFailed";
/// The same if the state is unknown.
const NODE_UNAVAILABLE: &str = "NodeUnavailable";

/// The possible action for a failed pull.
const FIX_HINT: &str = "No players are warned and no server is stopped for it. Correct the image or \
`imagePullSecrets` in the spec, or the node's access to it. The pull is retried automatically.";
/// The same if the node was not available.
const UNAVAILABLE_HINT: &str = "The update is applied anyway, and missing images are pulled while the server is down. \
Make room for one small pod, or pull the images on the node. The check is retried automatically.";

impl Constraint for ImagePull {
    /// The next attempt to pull images. After an announcement there is none.
    fn next_check(&self, plan: &Plan, now: Timestamp) -> Option<Timestamp> {
        plan.constraints.images.as_ref().and_then(Pull::next_check).filter(|next| *next > now)
    }

    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let problem = last_error(report.plan)?;
        let status = problem.is_image_error.then_some(false);
        Some(ConditionText { type_: IMAGES_PULLED, status, reason: reason(problem), message: message(problem) })
    }

    fn section(&self) -> ConditionSection {
        ConditionSection::Files
    }

    /// One Event for each image and node, whatever the number of attempts and the later errors of the registry are.
    fn events(&self, report: &PassReport<'_>) -> Vec<EventText> {
        let is_reported = |problem: &PullError| {
            let mut conditions = report.pass.before.conditions.iter();
            conditions.any(|old| old.type_ == IMAGES_PULLED && is_about(&old.message, problem))
        };
        let news = last_error(report.plan).filter(|problem| !is_reported(problem));
        news.map(|problem| EventText { reason: reason(problem), warning: true, text: message(problem) })
            .into_iter()
            .collect()
    }
}

fn last_error(plan: &Plan) -> Option<&PullError> {
    plan.constraints.images.as_ref()?.problem.as_ref()
}

/// Why an image is missing, and the possible action.
pub(crate) fn problem(plan: &Plan) -> Option<String> {
    last_error(plan).filter(|problem| problem.is_image_error).map(message)
}

/// The image pull for which an update waits in an open window.
pub(crate) fn waiting_message(plan: &Plan) -> String {
    let images = plan.constraints.images.as_ref().map_or_else(String::new, |pull| {
        format!(
            "Node `{}` pulls those of these images that it does not have: {}. ",
            pull.request.node,
            pull.request.description()
        )
    });
    cut(&format!("{images}Players are not warned before that."), MAX_MESSAGE_LENGTH)
}

fn reason(problem: &PullError) -> &'static str {
    if problem.is_image_error { PULL_FAILED } else { NODE_UNAVAILABLE }
}

fn message(problem: &PullError) -> String {
    let PullError { is_image_error, subject, why } = problem;
    let hint = if *is_image_error { FIX_HINT } else { UNAVAILABLE_HINT };
    cut(&format!("{}: {}. {hint}", cut(subject, 300), why.trim_end_matches('.')), MAX_MESSAGE_LENGTH)
}

fn is_about(message: &str, problem: &PullError) -> bool {
    message.starts_with(&format!("{}: ", cut(&problem.subject, 300)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::constraints::next_checks;
    use crate::server::model::image_pull::request::PullRequest;
    use crate::server::model::image_pull::request::tests::{goal, pod};
    use crate::server::model::image_pull::state::PullPod;
    use crate::server::report::tests::Pass;

    #[test]
    fn image_pull_requeues_server_for_next_attempt() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let current = serde_json::from_value(pod("game:1")).unwrap();
        let request = PullRequest::from_goal(&goal(("game:2", "IfNotPresent"), "agent:1"), &current).unwrap();
        let (pull, _) = Pull::new(request).next(PullPod::Foreign, at(0));
        let mut pass = Pass::new();
        pass.plan.constraints.images = Some(pull);
        assert_eq!(next_checks(&pass.plan, at(29)).next(), Some(at(30)));
        assert_eq!(next_checks(&pass.plan, at(30)).next(), None, "the attempt is due in this pass");
    }

    #[test]
    fn image_pull_message_names_image_node_and_remedy() {
        let problem = |why: &str| PullError {
            is_image_error: true,
            subject: "The image `game:2` cannot be pulled on node `node-a`".to_owned(),
            why: why.to_owned(),
        };
        let text = message(&problem("ErrImagePull: not found."));
        assert!(
            text.starts_with(
                "The image `game:2` cannot be pulled on node `node-a`: ErrImagePull: not found. No players are warned"
            ),
            "{text}"
        );
        assert!(
            text.contains("`imagePullSecrets`")
                && text.ends_with("The pull is retried automatically.")
                && !text.contains("  "),
            "{text}"
        );
        let long = message(&problem(&"x".repeat(512)));
        assert!(
            long.len() <= MAX_MESSAGE_LENGTH && long.ends_with("The pull is retried automatically."),
            "the possible action is never cut"
        );
    }

    #[test]
    fn image_pull_event_is_sent_once_per_image() {
        let of = |image: &str, why: &str| PullError {
            is_image_error: true,
            subject: format!("The image `{image}` cannot be pulled on node `node-a`"),
            why: why.to_owned(),
        };
        let text = message(&of("game:2", "ErrImagePull: read udp 10.0.0.5:41234: timeout"));
        assert!(is_about(&text, &of("game:2", "ErrImagePull: read udp 10.0.0.5:55555: timeout")));
        assert!(!is_about(&text, &of("game:20", "ErrImagePull: read udp 10.0.0.5:41234: timeout")));
    }
}
