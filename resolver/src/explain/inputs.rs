//! Pure. Describes the inputs of an answer: what the server runs, what it is pinned to, and when the data was read.

use super::ExplainContext;
use crate::explanation::{PaperPin, RunningNow};
use crate::index::CandidateIndex;
use crate::model::request::PaperRequest;

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

pub(crate) fn paper_pin(candidates: &CandidateIndex<'_>) -> Option<PaperPin> {
    match &candidates.request.paper {
        PaperRequest::Pin { version } => Some(PaperPin { version: version.clone(), build: None }),
        PaperRequest::BuildPin { version, build } => Some(PaperPin { version: version.clone(), build: Some(*build) }),
        PaperRequest::Latest | PaperRequest::Auto => None,
    }
}
