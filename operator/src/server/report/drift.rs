//! Pure. Reports differences between the running server and its plan: its image, and files on its volume.

use super::context::{MAX_MESSAGE_LENGTH, PassReport};
use crate::error_chain::cut;
use crate::server::verify::other_image;

/// The reason and the message of the condition. `None` if there is no difference. The check of the image needs no agent.
pub(super) fn reason_and_message(report: &PassReport<'_>) -> Option<(&'static str, String)> {
    let image = other_image(report.pass.observed).map(|message| ("ImageDiffers", message));
    let agent = report.pass.observed.reply.report.as_deref().filter(|agent| !agent.drift.is_empty());
    let files =
        agent.map(|agent| ("FilesDiffer", format!("These files differ from the lock: {}", agent.drift.join(", "))));
    let both = image.into_iter().chain(files);
    let (reason, message) = both.reduce(|(reason, image), (_, files)| (reason, format!("{image}. {files}")))?;
    Some((reason, cut(&message, MAX_MESSAGE_LENGTH)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::report::tests::Pass;

    #[test]
    fn drift_names_changed_image_beside_files() {
        let pod = |image: &str| json!({"metadata": {}, "spec": {"containers": [{"name": "papermc", "image": image}]}});
        let stateful_set =
            json!({"metadata": {}, "spec": {"selector": {}, "serviceName": "lobby", "template": pod("game:1")}});
        let mut pass = Pass::new();
        pass.observed.stateful_set = Some(serde_json::from_value(stateful_set).unwrap());
        pass.observed.pod = Some(serde_json::from_value(pod("game:1")).unwrap());
        assert_eq!(reason_and_message(&pass.report()), None);

        pass.observed.pod = Some(serde_json::from_value(pod("game:2")).unwrap());
        let image = "the pod runs image `game:2`, not `game:1`";
        assert_eq!(reason_and_message(&pass.report()), Some(("ImageDiffers", image.to_owned())));
        pass.extend_agent_report(&json!({"drift": ["plugins/Shop.jar"]}));
        let both = format!("{image}. These files differ from the lock: plugins/Shop.jar");
        assert_eq!(reason_and_message(&pass.report()), Some(("ImageDiffers", both)));
        pass.observed.reply.report = None;
        assert_eq!(reason_and_message(&pass.report()), Some(("ImageDiffers", image.to_owned())));
    }
}
