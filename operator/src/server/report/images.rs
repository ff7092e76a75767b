//! Pure. What is said of the images that the server's node has to pull before the server is stopped.

use crds::PaperMCServerStatus;

use super::{LONGEST_MESSAGE, Report};
use crate::chain::cut;
use crate::k8s::events::Note;
use crate::server::images::pull::Problem;

/// Whether the node has the images of the next set; there is none while none of them failed.
pub(super) const IMAGES_PULLED: &str = "ImagesPulled";
/// Its reason, and that of the Event.
pub(super) const PULL_FAILED: &str = "PullFailed";

/// What nobody has to do anything about but who can mend it.
const WAY_OUT: &str = "Nobody is warned and nothing is stopped for it. Correct the image or `imagePullSecrets` in the spec, or what keeps \
                       the node from it; it is tried again by itself";

fn last<'a>(report: &Report<'a>) -> Option<&'a Problem> {
    report.plan.images.as_ref()?.problem.as_ref()
}

/// Why an image is not there, and the way out.
pub(super) fn problem(report: &Report<'_>) -> Option<String> {
    last(report).map(in_words)
}

fn in_words(Problem { what, why }: &Problem) -> String {
    cut(&format!("{}: {}. {WAY_OUT}", cut(what, 300), why.trim_end_matches('.')), LONGEST_MESSAGE)
}

/// What is waited for in an open window.
pub(super) fn awaited(report: &Report<'_>) -> String {
    let what = report.plan.images.as_ref().map_or_else(String::new, |pull| {
        format!(
            "node `{}` is asked whether it has {}, and pulls what it has not; ",
            pull.question.node,
            pull.question.in_words()
        )
    });
    cut(&format!("{what}nobody is warned before it is there"), LONGEST_MESSAGE)
}

/// Once for each image and node, however often it is tried, and whatever else the registry answers then.
pub(super) fn note(report: &Report<'_>, before: &PaperMCServerStatus) -> Option<Note> {
    let problem = last(report)?;
    let is_known = before.conditions.iter().any(|it| it.type_ == IMAGES_PULLED && is_about(&it.message, problem));
    (!is_known).then(|| Note { reason: PULL_FAILED, warning: true, text: in_words(problem) })
}

fn is_about(message: &str, problem: &Problem) -> bool {
    message.starts_with(&format!("{}: ", cut(&problem.what, 300)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_name_image_node_cause_and_way_out_and_fit_a_condition() {
        let problem = |why: &str| Problem {
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
    fn another_answer_about_the_same_image_is_no_news_and_another_image_is() {
        let of = |image: &str, why: &str| Problem {
            what: format!("the image `{image}` cannot be pulled on node `node-a`"),
            why: why.to_owned(),
        };
        let said = in_words(&of("game:2", "ErrImagePull: read udp 10.0.0.5:41234: timeout"));
        assert!(is_about(&said, &of("game:2", "ErrImagePull: read udp 10.0.0.5:55555: timeout")));
        assert!(!is_about(&said, &of("game:20", "ErrImagePull: read udp 10.0.0.5:41234: timeout")));
    }
}
