//! Pure. Reports the images that the server's node has to pull before the server is stopped.

use crds::PaperMCServerStatus;

use super::{LONGEST_MESSAGE, PassReport};
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::image_pull::state::PullError;

/// Type of the condition. It is absent while no pull failed and the node is available.
const IMAGES_PULLED: &str = "ImagesPulled";
/// The reason of the condition if it is false, and of the Event.
const PULL_FAILED: &str = "PullFailed";
/// The same if the state is unknown.
const NODE_NOT_ASKED: &str = "NodeUnavailable";

/// The possible action for a failed pull.
const WAY_OUT: &str = "Nobody is warned and nothing is stopped for it. Correct the image or `imagePullSecrets` in the spec, or what keeps \
                       the node from it; it is tried again by itself";
/// The same if the node was not available.
const NO_WAY_TO_ASK: &str = "The update comes all the same, and what is missing is pulled while the server is down. Make room for one \
                             small pod, or pull it on the node yourself; it is asked again by itself";

fn last<'a>(report: &PassReport<'a>) -> Option<&'a PullError> {
    report.plan.images.as_ref()?.problem.as_ref()
}

/// Why an image is missing, and the possible action.
pub(super) fn problem(report: &PassReport<'_>) -> Option<String> {
    last(report).filter(|problem| problem.is_of_an_image).map(in_words)
}

/// Type, status, reason and message of the condition.
pub(super) fn pulled(report: &PassReport<'_>) -> Option<(&'static str, Option<bool>, &'static str, String)> {
    let problem = last(report)?;
    Some((IMAGES_PULLED, problem.is_of_an_image.then_some(false), reason(problem), in_words(problem)))
}

fn reason(problem: &PullError) -> &'static str {
    if problem.is_of_an_image { PULL_FAILED } else { NODE_NOT_ASKED }
}

fn in_words(problem: &PullError) -> String {
    let PullError { is_of_an_image, what, why } = problem;
    let way_out = if *is_of_an_image { WAY_OUT } else { NO_WAY_TO_ASK };
    cut(&format!("{}: {}. {way_out}", cut(what, 300), why.trim_end_matches('.')), LONGEST_MESSAGE)
}

/// The image pull for which an update waits in an open window.
pub(super) fn awaited(report: &PassReport<'_>) -> String {
    let what = report.plan.images.as_ref().map_or_else(String::new, |pull| {
        format!(
            "node `{}` is asked whether it has {}, and pulls what it has not; ",
            pull.question.node,
            pull.question.in_words()
        )
    });
    cut(&format!("{what}nobody is warned before it is there"), LONGEST_MESSAGE)
}

/// The Event, once for each image and node, whatever the number of attempts and the later errors of the registry are.
pub(super) fn note(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let problem = last(report)?;
    let is_known = before.conditions.iter().any(|it| it.type_ == IMAGES_PULLED && is_about(&it.message, problem));
    (!is_known).then(|| EventText { reason: reason(problem), warning: true, text: in_words(problem) })
}

fn is_about(message: &str, problem: &PullError) -> bool {
    message.starts_with(&format!("{}: ", cut(&problem.what, 300)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_pull_message_names_image_node_and_remedy() {
        let problem = |why: &str| PullError {
            is_of_an_image: true,
            what: "the image `game:2` cannot be pulled on node `node-a`".to_owned(),
            why: why.to_owned(),
        };
        let said = in_words(&problem("ErrImagePull: not found."));
        assert!(
            said.starts_with(
                "the image `game:2` cannot be pulled on node `node-a`: ErrImagePull: not found. Nobody is warned"
            ),
            "{said}"
        );
        assert!(
            said.contains("`imagePullSecrets`")
                && said.ends_with("it is tried again by itself")
                && !said.contains("  "),
            "{said}"
        );
        let long = in_words(&problem(&"x".repeat(512)));
        assert!(
            long.len() <= LONGEST_MESSAGE && long.ends_with("it is tried again by itself"),
            "the way out is never cut"
        );
    }

    #[test]
    fn image_pull_event_is_sent_once_per_image() {
        let of = |image: &str, why: &str| PullError {
            is_of_an_image: true,
            what: format!("the image `{image}` cannot be pulled on node `node-a`"),
            why: why.to_owned(),
        };
        let said = in_words(&of("game:2", "ErrImagePull: read udp 10.0.0.5:41234: timeout"));
        assert!(is_about(&said, &of("game:2", "ErrImagePull: read udp 10.0.0.5:55555: timeout")));
        assert!(!is_about(&said, &of("game:20", "ErrImagePull: read udp 10.0.0.5:41234: timeout")));
    }
}
