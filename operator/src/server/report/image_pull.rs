//! Pure. Reports the images that the server's node has to pull before the server is stopped.

use crds::PaperMCServerStatus;

use super::context::{MAX_MESSAGE_LENGTH, PassReport};
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::model::image_pull::state::PullError;

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

fn last_error<'a>(report: &PassReport<'a>) -> Option<&'a PullError> {
    report.plan.constraints.images.as_ref()?.problem.as_ref()
}

/// Why an image is missing, and the possible action.
pub(super) fn problem(report: &PassReport<'_>) -> Option<String> {
    last_error(report).filter(|problem| problem.is_image_error).map(message)
}

/// Type, status, reason and message of the condition.
pub(super) fn condition_parts(report: &PassReport<'_>) -> Option<(&'static str, Option<bool>, &'static str, String)> {
    let problem = last_error(report)?;
    Some((IMAGES_PULLED, problem.is_image_error.then_some(false), reason(problem), message(problem)))
}

fn reason(problem: &PullError) -> &'static str {
    if problem.is_image_error { PULL_FAILED } else { NODE_UNAVAILABLE }
}

fn message(problem: &PullError) -> String {
    let PullError { is_image_error, subject, why } = problem;
    let hint = if *is_image_error { FIX_HINT } else { UNAVAILABLE_HINT };
    cut(&format!("{}: {}. {hint}", cut(subject, 300), why.trim_end_matches('.')), MAX_MESSAGE_LENGTH)
}

/// The image pull for which an update waits in an open window.
pub(super) fn waiting_message(report: &PassReport<'_>) -> String {
    let images = report.plan.constraints.images.as_ref().map_or_else(String::new, |pull| {
        format!(
            "Node `{}` pulls those of these images that it does not have: {}. ",
            pull.request.node,
            pull.request.description()
        )
    });
    cut(&format!("{images}Players are not warned before that."), MAX_MESSAGE_LENGTH)
}

/// The Event, once for each image and node, whatever the number of attempts and the later errors of the registry are.
pub(super) fn event(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let problem = last_error(report)?;
    let is_reported = before
        .conditions
        .iter()
        .any(|condition| condition.type_ == IMAGES_PULLED && is_about(&condition.message, problem));
    (!is_reported).then(|| EventText { reason: reason(problem), warning: true, text: message(problem) })
}

fn is_about(message: &str, problem: &PullError) -> bool {
    message.starts_with(&format!("{}: ", cut(&problem.subject, 300)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
