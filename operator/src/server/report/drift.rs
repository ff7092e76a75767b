//! Pure. Reports differences between the running server and its plan: its image, and files on its volume.

use super::{LONGEST_MESSAGE, PassReport};
use crate::error_chain::cut;
use crate::server::verify::other_image;

/// The reason and the message of the condition. `None` if there is no difference. The check of the image needs no agent.
pub(super) fn in_words(report: &PassReport<'_>) -> Option<(&'static str, String)> {
    let image = other_image(report.seen).map(|words| ("ImageDiffers", words));
    let agent = report.seen.report.as_deref().filter(|agent| !agent.drift.is_empty());
    let files = agent.map(|agent| ("FilesDiffer", format!("not as locked: {}", agent.drift.join(", "))));
    let both = image.into_iter().chain(files);
    let (reason, message) = both.reduce(|(reason, image), (_, files)| (reason, format!("{image}; {files}")))?;
    Some((reason, cut(&message, LONGEST_MESSAGE)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::report::tests::Pass;

    #[test]
    fn drift_names_changed_image_beside_files() {
        let pod = |image: &str| json!({"metadata": {}, "spec": {"containers": [{"name": "papermc", "image": image}]}});
        let set = json!({"metadata": {}, "spec": {"selector": {}, "serviceName": "lobby", "template": pod("game:1")}});
        let mut pass = Pass::new();
        pass.seen.set = Some(serde_json::from_value(set).unwrap());
        pass.seen.pod = Some(serde_json::from_value(pod("game:1")).unwrap());
        assert_eq!(in_words(&pass.report()), None);

        pass.seen.pod = Some(serde_json::from_value(pod("game:2")).unwrap());
        let image = "the pod runs image `game:2`, not `game:1`";
        assert_eq!(in_words(&pass.report()), Some(("ImageDiffers", image.to_owned())));
        pass.agent_says(&json!({"drift": ["plugins/Shop.jar"]}));
        let both = format!("{image}; not as locked: plugins/Shop.jar");
        assert_eq!(in_words(&pass.report()), Some(("ImageDiffers", both)));
        pass.seen.report = None;
        assert_eq!(in_words(&pass.report()), Some(("ImageDiffers", image.to_owned())));
    }
}
