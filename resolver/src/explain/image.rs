//! Pure. Explains the chosen Java version and image.

use super::ExplainContext;
use crate::explanation::image::{ChosenImage, ImageChoice};
use crate::index::java::{choose_image, image_for};
use crate::model::image_tag::java_of_image;
use crate::model::request::ImagePolicy;
use crate::solve::Decision;
use crate::solve::build_lock::required_java;

/// Explains the image of a decision.
pub(super) fn explain(context: &ExplainContext<'_, '_>, decision: &Decision) -> ChosenImage {
    let candidates = context.candidates;
    let request = candidates.request;
    let java = required_java(candidates, decision);
    let image = image_for(context.catalog, request, java, candidates.now);
    let running = request.running.as_ref();
    let runs = running.and_then(|running| running.image.clone());
    let runs_some = running.is_some_and(|running| running.java.is_some());
    let choice = match (&request.image, request.image_policy) {
        (Some(_), _) if request.image_is_given => ImageChoice::Given,
        (Some(_), _) => ImageChoice::Pinned,
        (None, ImagePolicy::SameJava) if runs_some => ImageChoice::SameJava,
        (None, ImagePolicy::Keep) if runs_some => ImageChoice::Keep,
        (None, _) if image.is_some() => ImageChoice::Newest,
        (None, _) => ImageChoice::Unknown,
    };
    let is_held = matches!(choice, ImageChoice::SameJava | ImageChoice::Keep);
    let free = choose_image(&context.catalog.images, java, candidates.now);
    ChosenImage {
        needed_by: java_dependents(context, decision, java),
        has: image.as_deref().and_then(java_of_image),
        held: free.filter(|free| is_held && image.as_ref() != Some(free)),
        instead_of: runs.filter(|runs| image.as_ref().is_some_and(|image| image != runs)),
        choice,
        image,
        java,
    }
}

/// The plugins that need a newer Java version than Paper.
fn java_dependents(context: &ExplainContext<'_, '_>, decision: &Decision, java: u32) -> Vec<String> {
    let candidates = context.candidates;
    if candidates.papers[decision.chosen.paper].java == java {
        return Vec::new();
    }
    let chosen = decision.chosen.releases.iter().enumerate();
    let mut names: Vec<String> = chosen
        .filter_map(|(at, release)| {
            let (plugin, release) = (&candidates.plugins[at], candidates.plugins[at].releases[(*release)?].release);
            (plugin.rules.jars.java(release) == Some(java)).then(|| format!("{} {}", plugin.name(), release.version))
        })
        .collect();
    let unmanaged = &candidates.papers[decision.chosen.paper].unmanaged.java;
    names.extend(unmanaged.iter().filter(|(needs, _)| *needs == java).flat_map(|(_, files)| files.iter().cloned()));
    names.sort();
    names
}
