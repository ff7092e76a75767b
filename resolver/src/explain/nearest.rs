//! Pure. Finds the existing versions that are closest to one that does not exist.

use crate::index::CandidateIndex;
use crate::index::paper_candidates::is_built;
use crate::model::version::{Minecraft, lenient};

/// Up to three existing versions close to one that does not exist or has no usable build. Versions of its own line come
/// first, closest first.
pub(crate) fn nearest_existing(candidates: &CandidateIndex<'_>, wanted: &Minecraft) -> Vec<Minecraft> {
    let real = candidates.papers.iter().filter(|paper| is_built(paper)).map(|paper| &paper.version.minecraft);
    let mut versions: Vec<&Minecraft> = real.filter(|version| version.is_release() || !wanted.is_release()).collect();
    versions.sort();
    let split = versions.partition_point(|version| *version < wanted);
    let line = |version: &Minecraft| version.parts().map(|[major, minor, _]| (major, minor));
    let mut near: Vec<(bool, usize, &Minecraft)> = versions
        .iter()
        .enumerate()
        .map(|(position, version)| {
            let distance = if position < split { split - position } else { position + 1 - split };
            (line(version) != line(wanted), distance, *version)
        })
        .collect();
    near.sort_by_key(|(other_line, distance, version)| (*other_line, *distance, std::cmp::Reverse(*version)));
    near.into_iter().take(3).map(|(_, _, version)| version.clone()).collect()
}

/// Up to three existing versions close to a nonexistent one.
pub(crate) fn nearest_releases(candidates: &CandidateIndex<'_>, at: usize, pin: &str) -> Vec<String> {
    let plugin_candidates = &candidates.plugins[at];
    let mut versions: Vec<&str> =
        plugin_candidates.releases.iter().map(|candidate| candidate.release.version.as_str()).collect();
    let on_channel = |version: &&str| {
        plugin_candidates
            .releases
            .iter()
            .any(|s| s.release.version == **version && s.release.channel >= plugin_candidates.channel)
    };
    if versions.iter().any(on_channel) {
        versions.retain(|version| on_channel(version));
    }
    versions.sort_by(|a, b| lenient::compare(a, b).then_with(|| a.cmp(b)));
    versions.dedup();
    let split = versions.partition_point(|version| lenient::compare(version, pin).is_lt());
    let mut near: Vec<(usize, &str)> = versions
        .iter()
        .enumerate()
        .map(|(position, version)| (if position < split { split - position } else { position + 1 - split }, *version))
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(3).map(|(_, version)| version.to_owned()).collect()
}
