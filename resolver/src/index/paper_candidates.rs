//! Pure. Selects the Paper candidates of an index: one per Minecraft version, with its best usable build.

use jiff::Timestamp;

use super::bundled_build::ImageBundledBuild;
use super::index_set::IndexSet;
use super::java::{self, AvailableJava};
use super::rules::eligible_at;
use super::unmanaged_jars::{UnmanagedJarCompatibility, unmanaged_compatibility};
use crate::model::catalog::{Artifact, Build, BuildChannel, Catalog, PaperVersion};
use crate::model::request::{PaperRequest, Request};
use crate::model::software::Software;
use crate::model::unusable::Unusable;
use crate::model::unverified_build::announced_md5;
use crate::model::version::Minecraft;

/// One Minecraft version of Paper and its best build.
#[derive(Debug)]
pub(crate) struct PaperCandidate<'a> {
    /// The version as Fill describes it.
    pub(crate) version: &'a PaperVersion,
    /// The build to use. With `unusable` set, the build that would be used.
    pub(crate) build: Option<&'a Build>,
    /// The reason why the version may not be used.
    pub(crate) unusable: Option<Unusable>,
    /// A build newer than `build`, and why it was not chosen (`None` if another one is pinned).
    pub(crate) newer_build: Option<(u32, Option<Unusable>)>,
    /// The minimum Java version it starts on.
    pub(crate) java: u32,
    /// Publication time of its first build.
    pub(crate) since: Timestamp,
    /// The relation of unmanaged JARs to this version.
    pub(crate) unmanaged: UnmanagedJarCompatibility,
}

/// Every Minecraft version that had a build at `now`, oldest first.
pub(crate) fn candidates<'a>(catalog: &'a Catalog, request: &Request, now: Timestamp) -> Vec<PaperCandidate<'a>> {
    let available_java = AvailableJava::from_request(request, java::newest_published(catalog, now));
    let bundled = ImageBundledBuild::from_image(catalog, request);
    let mut versions: Vec<(&PaperVersion, Vec<&Build>)> = catalog
        .versions(request.software)
        .iter()
        .map(|version| (version, available_builds(request, version, now)))
        .filter(|(_, builds)| !builds.is_empty())
        .collect();
    versions.sort_by(|(a, _), (b, _)| a.minecraft.cmp(&b.minecraft));
    let papers: Vec<&PaperVersion> = versions.iter().map(|(version, _)| *version).collect();
    let unmanaged = unmanaged_compatibility(catalog, request, &papers, available_java, now);
    let candidate = |((version, builds), unmanaged)| {
        build_candidate(available_java, bundled.as_ref(), request, (version, builds), unmanaged, now)
    };
    versions.into_iter().zip(unmanaged).map(candidate).collect()
}

/// Its published builds, oldest first, and the one that runs.
fn available_builds<'a>(request: &Request, version: &'a PaperVersion, now: Timestamp) -> Vec<&'a Build> {
    let mut builds: Vec<&Build> =
        version.builds.iter().filter(|build| build.published <= now || is_running(request, version, build)).collect();
    builds.sort_by_key(|build| build.number);
    builds
}

fn is_running(request: &Request, version: &PaperVersion, build: &Build) -> bool {
    let running = request.running.as_ref();
    running.is_some_and(|running| running.is_build(request.software, &version.minecraft, build.number))
}

/// The Minecraft versions that Paper had built at `now`. They determine the meaning of lists, also for Purpur and
/// Folia. `versions` holds the versions of the software itself.
pub(super) fn built_versions<'a>(
    catalog: &'a Catalog,
    versions: impl Iterator<Item = &'a PaperVersion>,
    software: Software,
    now: Timestamp,
) -> Vec<&'a Minecraft> {
    let was_built = |version: &&PaperVersion| version.builds.iter().any(|build| build.published <= now);
    match software {
        Software::Paper => versions.map(|version| &version.minecraft).collect(),
        Software::Purpur | Software::Folia => {
            catalog.paper.iter().filter(was_built).map(|version| &version.minecraft).collect()
        }
        Software::Velocity => Vec::new(),
    }
}

/// The indexes (position plus 1) of the candidates that a request allows, including unusable ones.
pub(crate) fn requested_indexes(papers: &[PaperCandidate<'_>], paper_request: &PaperRequest) -> IndexSet {
    let position = |found: Option<usize>| IndexSet::from_indexes(found.map(|position| position + 1));
    match paper_request {
        PaperRequest::Auto => IndexSet::from_indexes(1..=papers.len()),
        PaperRequest::Latest => match papers.iter().rposition(|paper| paper.unusable.is_none()) {
            Some(newest) => position(Some(newest)),
            None => IndexSet::from_indexes(1..=papers.len()),
        },
        PaperRequest::Pin { version } | PaperRequest::BuildPin { version, .. } => {
            position(papers.iter().position(|paper| paper.version.minecraft == *version))
        }
    }
}

/// `builds` holds at least one build, oldest first.
fn build_candidate<'a>(
    available_java: AvailableJava<'_>,
    bundled: Option<&ImageBundledBuild<'_>>,
    request: &Request,
    (version, builds): (&'a PaperVersion, Vec<&'a Build>),
    unmanaged: UnmanagedJarCompatibility,
    now: Timestamp,
) -> PaperCandidate<'a> {
    let since = builds.iter().map(|build| build.published).min().expect("a candidate has at least one build");
    let runs = |build: &Build| is_running(request, version, build);
    let pinned = match &request.paper {
        PaperRequest::BuildPin { version: pin, build } if *pin == version.minecraft => Some(*build),
        PaperRequest::BuildPin { .. } | PaperRequest::Latest | PaperRequest::Auto | PaperRequest::Pin { .. } => None,
    };
    let bundled_build = bundled.filter(|bundled| bundled.minecraft == version.minecraft).map(|bundled| bundled.build);
    let other_build =
        bundled.is_some() && (bundled_build.is_none() || pinned.is_some_and(|pinned| bundled_build != Some(pinned)));
    let unavailable =
        bundled_build.is_some_and(|bundled_build| builds.iter().all(|build| build.number != bundled_build));
    let pinned = bundled_build.filter(|_| !unavailable).or(pinned);
    let reason_for = |build: &&'a Build| build_reason(build, request, now, runs(build) || pinned == Some(build.number));
    let choice: Choice<'a> = match pinned {
        Some(number) => match builds.iter().find(|build| build.number == number) {
            Some(build) => Choice { build: Some(*build), unusable: reason_for(build) },
            None => Choice { build: None, unusable: Some(no_build(number, &builds)) },
        },
        None => match builds.iter().rev().find(|build| reason_for(build).is_none()) {
            Some(build) => Choice { build: Some(*build), unusable: None },
            None => best_unusable(&builds, request, now),
        },
    };
    let newer_build = builds.last().and_then(|newest| {
        let chosen = choice.build?;
        let bundled_reason = || bundled_build.and(bundled).map(ImageBundledBuild::unusable_reason);
        (newest.number > chosen.number && choice.unusable.is_none())
            .then(|| (newest.number, reason_for(newest).or_else(bundled_reason)))
    });
    let java = version.java.unwrap_or_else(|| request.software.default_java(&version.minecraft));
    // The version's own reasons come first, because users can read and change them.
    let other_paper = bundled.filter(|_| other_build || unavailable).map(ImageBundledBuild::unusable_reason);
    let held = unmanaged.blocking_reason(request.unmanaged_plugins);
    let unusable = version_reason(request, version)
        .or(other_paper)
        .or_else(|| available_java.unusable_for(java))
        .or(held)
        .or(choice.unusable);
    PaperCandidate { version, build: choice.build, unusable, newer_build, java, since, unmanaged }
}

struct Choice<'a> {
    build: Option<&'a Build>,
    unusable: Option<Unusable>,
}

/// The reason why one build may not be used. `exempt` means that it runs now or is pinned by number. Then only a
/// verifiable file is required.
fn build_reason(build: &Build, request: &Request, now: Timestamp, exempt: bool) -> Option<Unusable> {
    if !can_be_verified(&build.file) {
        return Some(Unusable::NoChecksum);
    }
    if exempt {
        return None;
    }
    if build.channel < request.channel {
        return Some(Unusable::BuildChannel { best: build.channel, allowed: request.channel });
    }
    let eligible_at = eligible_at(build.published, request.delay);
    (eligible_at > now).then_some(Unusable::Delayed { eligible_at, delay: request.delay })
}

/// The reason for the whole version: the one that ends first.
fn best_unusable<'a>(builds: &[&'a Build], request: &Request, now: Timestamp) -> Choice<'a> {
    let reasons = || builds.iter().map(|build| (*build, build_reason(build, request, now, false)));
    let first_eligible = reasons()
        .filter_map(|(build, reason)| match reason {
            Some(Unusable::Delayed { eligible_at, delay }) => Some((eligible_at, delay, build)),
            _ => None,
        })
        .min_by_key(|&(eligible_at, _, build)| (eligible_at, build.number));
    if let Some((eligible_at, delay, build)) = first_eligible {
        return Choice { build: Some(build), unusable: Some(Unusable::Delayed { eligible_at, delay }) };
    }
    let best = builds.iter().filter(|build| can_be_verified(&build.file)).max_by_key(|b| (b.channel, b.number));
    match best {
        Some(build) => Choice {
            build: Some(*build),
            unusable: Some(Unusable::BuildChannel { best: build.channel, allowed: request.channel }),
        },
        None => Choice { build: builds.last().copied(), unusable: Some(Unusable::NoChecksum) },
    }
}

fn no_build(wanted: u32, builds: &[&Build]) -> Unusable {
    let mut nearest: Vec<u32> = builds.iter().map(|build| build.number).collect();
    nearest.sort_by_key(|number| (number.abs_diff(wanted), *number));
    nearest.truncate(3);
    nearest.sort_unstable_by(|a, b| b.cmp(a));
    Unusable::NoBuild { asked: Some(wanted), nearest }
}

fn version_reason(request: &Request, version: &PaperVersion) -> Option<Unusable> {
    let minecraft = &version.minecraft;
    // A proxy opens no world.
    let floor = request.floor.as_ref().filter(|_| request.software.is_minecraft());
    if let Some(floor) = floor.filter(|floor| minecraft < *floor) {
        return Some(Unusable::BelowFloor { floor: floor.clone() });
    }
    let wanted_by_name = match &request.paper {
        PaperRequest::Pin { version } | PaperRequest::BuildPin { version, .. } => version == minecraft,
        PaperRequest::Latest | PaperRequest::Auto => false,
    };
    let running = request.running.as_ref();
    let runs = running.is_some_and(|running| running.has_version(request.software, minecraft));
    let preview = !minecraft.is_release() && !wanted_by_name && !runs && request.channel > BuildChannel::Alpha;
    preview.then_some(Unusable::Preview)
}

/// Whether a build can be verified, even if only after a download. The builds that have to be downloaded are known when
/// one is chosen.
fn can_be_verified(file: &Artifact) -> bool {
    has_known_hash(file) || announced_md5(file).is_some()
}

/// Whether a file can be verified: its hash is `sha256:` or `sha512:` with the matching number of hex digits.
pub(crate) fn has_known_hash(file: &Artifact) -> bool {
    file.hash.as_deref().and_then(|hash| hash.split_once(':')).is_some_and(|(algorithm, digits)| {
        let length = match algorithm {
            "sha256" => 64,
            "sha512" => 128,
            _ => return false,
        };
        // The loop does not stop at the first invalid character, so that it can be vectorized. Almost all hashes are
        // valid.
        digits.len() == length && digits.bytes().fold(true, |all, b| all & b.is_ascii_hexdigit())
    })
}

/// Whether a Paper version has a usable build: no build can be used without a checksum.
pub(crate) fn is_built(paper: &PaperCandidate<'_>) -> bool {
    !matches!(paper.unusable, Some(Unusable::NoChecksum))
}
