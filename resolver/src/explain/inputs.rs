//! Pure. Describes the inputs of an answer: what the server runs, what it is pinned to, and when the data was read.

use super::ExplainContext;
use crate::explanation::{PaperPin, RunningNow, UnreadKind, UnreadPart};
use crate::index::CandidateIndex;
use crate::index::candidates::PluginCandidates;
use crate::model::request::PaperRequest;
use crate::model::version::Minecraft;

/// The running versions, by name.
pub(crate) fn running(candidates: &CandidateIndex<'_>) -> Option<RunningNow> {
    let running = candidates.request.running.as_ref()?;
    let mut plugins: Vec<(String, String)> = candidates
        .plugins
        .iter()
        .flat_map(|plugin| {
            let on_page = |release| candidates.is_running(release) && !candidates.is_delisted(plugin.project, release);
            let runs = plugin.releases.iter().filter(move |candidate| on_page(candidate.release));
            let runs = runs
                .map(|candidate| candidate.release.version.as_str())
                .chain(candidates.delisted_version(plugin.project));
            runs.map(|version| (plugin.name().to_owned(), version.to_owned()))
        })
        .collect();
    plugins.sort();
    Some(RunningNow { paper: running.paper_name(), plugins })
}

/// The latest read time, if it is after the instant of the request.
pub(crate) fn lists_read_later(context: &ExplainContext<'_, '_>) -> Option<jiff::Timestamp> {
    let projects = context.candidates.plugins.iter().map(|plugin| plugin.project.read_at);
    projects
        .chain([context.catalog.read_at(context.candidates.request.software)])
        .max()
        .filter(|read| *read > context.candidates.now)
}

/// The parts that could not be read, and without which a better answer may exist: builds of versions newer than
/// `chosen`, releases of these plugins, the tags of the image, and pages of plugins.
pub(crate) fn unread_parts(context: &ExplainContext<'_, '_>, chosen: Option<&Minecraft>) -> Vec<UnreadPart> {
    let ExplainContext { catalog, candidates, .. } = context;
    let request = candidates.request;
    let list = format!("{}/", request.software.list_name());
    let chooses_image = request.image.is_none() && request.software.is_minecraft() && catalog.images.is_empty();
    let part = |(name, because): (&String, &String)| {
        let (kind, what) = if let Some(version) = name.strip_prefix(&list) {
            let version: Minecraft = version.parse().ok()?;
            let is_newer = chosen.is_none_or(|chosen| version > *chosen);
            (UnreadKind::Builds, is_newer.then(|| format!("{} {version}", request.software))?)
        } else if name.starts_with("docker.io/") {
            (UnreadKind::Image, chooses_image.then(|| name.clone())?)
        } else {
            let of_plugin = |plugin: &PluginCandidates<'_>| {
                let release = name.strip_prefix(&plugin.project.key.to_string())?.strip_prefix('/')?;
                Some(format!("{} {release}", plugin.name()))
            };
            (UnreadKind::Release, candidates.plugins.iter().find_map(|plugin| of_plugin(plugin))?)
        };
        Some(UnreadPart { kind, what, because: because.clone() })
    };
    let stays = candidates.plugins.iter().filter_map(|plugin| {
        let because = candidates.unread_page(plugin.project)?.to_owned();
        let runs = plugin.releases.iter().find(|candidate| candidates.is_running(candidate.release))?;
        let what = format!("{} {}", plugin.name(), runs.release.version);
        Some(UnreadPart { kind: UnreadKind::RunningPlugin, what, because })
    });
    let waits = request.plugins.iter().filter(|plugin_request| catalog.project(&plugin_request.key).is_none());
    let waits = waits.filter_map(|plugin_request| {
        let because = catalog.unread_reason(&plugin_request.key)?.to_owned();
        Some(UnreadPart { kind: UnreadKind::NewPlugin, what: plugin_request.key.to_display(), because })
    });
    catalog.unread.iter().filter_map(part).chain(stays).chain(waits).collect()
}

pub(crate) fn paper_pin(candidates: &CandidateIndex<'_>) -> Option<PaperPin> {
    match &candidates.request.paper {
        PaperRequest::Pin { version } => Some(PaperPin { version: version.clone(), build: None }),
        PaperRequest::BuildPin { version, build } => Some(PaperPin { version: version.clone(), build: Some(*build) }),
        PaperRequest::Latest | PaperRequest::Auto => None,
    }
}
