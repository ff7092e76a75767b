//! Pure. Paper's side of the shelf: one candidate per Minecraft version, the best build that may be used.

use jiff::Timestamp;

use super::carried::Carried;
use super::java::{self, Offer};
use super::ripe_at;
use crate::catalog::{Artifact, Build, BuildChannel, Catalog, PaperVersion};
use crate::request::{PaperWish, Request};
use crate::software::Software;
use crate::solve::set::IndexSet;
use crate::unmanaged::holding;
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// One Minecraft version that Paper has, with its best build.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    /// What Fill says about it.
    pub(crate) version: &'a PaperVersion,
    /// The build to use; with `unusable` set, the build that would be used.
    pub(crate) build: Option<&'a Build>,
    /// Why the version may not be used.
    pub(crate) unusable: Option<Unusable>,
    /// A newer build than `build`, and why it is not that one (`None`: another one is pinned).
    pub(crate) newer_build: Option<(u32, Option<Unusable>)>,
    /// The least Java it starts on.
    pub(crate) java: u32,
    /// When its first build came out.
    pub(crate) since: Timestamp,
}

/// Every Minecraft version that had a build at `now`, oldest first.
pub(crate) fn candidates<'a>(catalog: &'a Catalog, request: &Request, now: Timestamp) -> Vec<Candidate<'a>> {
    let offer = Offer::of(request, java::newest(catalog, now));
    let carried = Carried::of(catalog, request);
    let versions = catalog.versions(request.software).iter();
    let mut candidates: Vec<Candidate<'a>> =
        versions.filter_map(|version| candidate(offer, carried.as_ref(), request, version, now)).collect();
    candidates.sort_by(|a, b| a.version.minecraft.cmp(&b.version.minecraft));
    candidates
}

/// The Minecraft versions that Paper had built at `now`: they say what a list can mean, also one that Folia goes by.
pub(crate) fn built<'a>(
    catalog: &'a Catalog,
    candidates: &[Candidate<'a>],
    software: Software,
    now: Timestamp,
) -> Vec<&'a Minecraft> {
    let out = |version: &&PaperVersion| version.builds.iter().any(|build| build.published <= now);
    match software {
        Software::Paper => candidates.iter().map(|paper| &paper.version.minecraft).collect(),
        Software::Folia => catalog.paper.iter().filter(out).map(|version| &version.minecraft).collect(),
        Software::Velocity => Vec::new(),
    }
}

/// The indexes (place plus 1) of the candidates that a wish leaves open, unusable ones included.
pub(crate) fn wished(papers: &[Candidate<'_>], wish: &PaperWish) -> IndexSet {
    let place = |found: Option<usize>| IndexSet::of(found.map(|place| place + 1));
    match wish {
        PaperWish::Auto => IndexSet::of(1..=papers.len()),
        PaperWish::Latest => match papers.iter().rposition(|paper| paper.unusable.is_none()) {
            Some(newest) => place(Some(newest)),
            None => IndexSet::of(1..=papers.len()),
        },
        PaperWish::Pin { version } | PaperWish::BuildPin { version, .. } => {
            place(papers.iter().position(|paper| paper.version.minecraft == *version))
        }
    }
}

fn candidate<'a>(
    offer: Offer<'_>,
    carried: Option<&Carried<'_>>,
    request: &Request,
    version: &'a PaperVersion,
    now: Timestamp,
) -> Option<Candidate<'a>> {
    let running = request.running.as_ref();
    let runs =
        |build: &Build| running.is_some_and(|running| running.is(request.software, &version.minecraft, build.number));
    let mut builds: Vec<&Build> = version.builds.iter().filter(|build| build.published <= now || runs(build)).collect();
    builds.sort_by_key(|build| build.number);
    let since = builds.iter().map(|build| build.published).min()?;
    let pinned = match &request.paper {
        PaperWish::BuildPin { version: pin, build } if *pin == version.minecraft => Some(*build),
        PaperWish::BuildPin { .. } | PaperWish::Latest | PaperWish::Auto | PaperWish::Pin { .. } => None,
    };
    let own = carried.filter(|carried| carried.minecraft == version.minecraft).map(|carried| carried.build);
    let elsewhere = carried.is_some() && (own.is_none() || pinned.is_some_and(|pinned| own != Some(pinned)));
    let gone = own.is_some_and(|own| builds.iter().all(|build| build.number != own));
    let pinned = own.filter(|_| !gone).or(pinned);
    let judged = |build: &&'a Build| judge(build, request, now, runs(build) || pinned == Some(build.number));
    let choice: Choice<'a> = match pinned {
        Some(number) => match builds.iter().find(|build| build.number == number) {
            Some(build) => Choice { build: Some(*build), unusable: judged(build) },
            None => Choice { build: None, unusable: Some(no_build(number, &builds)) },
        },
        None => match builds.iter().rev().find(|build| judged(build).is_none()) {
            Some(build) => Choice { build: Some(*build), unusable: None },
            None => nothing_usable(&builds, request, now),
        },
    };
    let newer_build = builds.last().and_then(|newest| {
        let chosen = choice.build?;
        let fault = || own.and(carried).map(Carried::fault);
        (newest.number > chosen.number && choice.unusable.is_none())
            .then(|| (newest.number, judged(newest).or_else(fault)))
    });
    let java = version.java.unwrap_or_else(|| request.software.java_of(&version.minecraft));
    // The version's own faults come first: they are what a user can read and change.
    let other_paper = carried.filter(|_| elsewhere || gone).map(Carried::fault);
    let files = holding(request, &version.minecraft);
    let strangers = (!files.is_empty()).then_some(Unusable::Unmanaged { files });
    let unusable =
        version_fault(request, version).or(other_paper).or_else(|| offer.fault(java)).or(strangers).or(choice.unusable);
    Some(Candidate { version, build: choice.build, unusable, newer_build, java, since })
}

struct Choice<'a> {
    build: Option<&'a Build>,
    unusable: Option<Unusable>,
}

/// Why one build may not be used. `exempt`: it runs now, or is pinned by number; only a file to verify is asked of it.
fn judge(build: &Build, request: &Request, now: Timestamp, exempt: bool) -> Option<Unusable> {
    if !has_known_hash(&build.file) {
        return Some(Unusable::NoChecksum);
    }
    if exempt {
        return None;
    }
    if build.channel < request.channel {
        return Some(Unusable::BuildChannel { best: build.channel, allowed: request.channel });
    }
    let ripe_at = ripe_at(build.published, request.delay);
    (ripe_at > now).then_some(Unusable::HeldBack { ripe_at, delay: request.delay })
}

/// The reason for the whole version: the one that goes away first.
fn nothing_usable<'a>(builds: &[&'a Build], request: &Request, now: Timestamp) -> Choice<'a> {
    let verdicts = || builds.iter().map(|build| (*build, judge(build, request, now, false)));
    let first_ripe = verdicts()
        .filter_map(|(build, verdict)| match verdict {
            Some(Unusable::HeldBack { ripe_at, delay }) => Some((ripe_at, delay, build)),
            _ => None,
        })
        .min_by_key(|&(ripe_at, _, build)| (ripe_at, build.number));
    if let Some((ripe_at, delay, build)) = first_ripe {
        return Choice { build: Some(build), unusable: Some(Unusable::HeldBack { ripe_at, delay }) };
    }
    let best = builds.iter().filter(|build| has_known_hash(&build.file)).max_by_key(|b| (b.channel, b.number));
    match best {
        Some(build) => Choice {
            build: Some(*build),
            unusable: Some(Unusable::BuildChannel { best: build.channel, allowed: request.channel }),
        },
        None => Choice { build: builds.last().copied(), unusable: Some(Unusable::NoChecksum) },
    }
}

fn no_build(asked: u32, builds: &[&Build]) -> Unusable {
    let mut nearest: Vec<u32> = builds.iter().map(|build| build.number).collect();
    nearest.sort_by_key(|number| (number.abs_diff(asked), *number));
    nearest.truncate(3);
    nearest.sort_unstable_by(|a, b| b.cmp(a));
    Unusable::NoBuild { asked: Some(asked), nearest }
}

fn version_fault(request: &Request, version: &PaperVersion) -> Option<Unusable> {
    let minecraft = &version.minecraft;
    // A proxy opens no world.
    let floor = request.floor.as_ref().filter(|_| request.software.is_minecraft());
    if let Some(floor) = floor.filter(|floor| minecraft < *floor) {
        return Some(Unusable::BelowFloor { floor: floor.clone() });
    }
    let wanted_by_name = match &request.paper {
        PaperWish::Pin { version } | PaperWish::BuildPin { version, .. } => version == minecraft,
        PaperWish::Latest | PaperWish::Auto => false,
    };
    let running = request.running.as_ref();
    let runs = running.is_some_and(|running| running.has_version(request.software, minecraft));
    let preview = !minecraft.is_release() && !wanted_by_name && !runs && request.channel > BuildChannel::Alpha;
    preview.then_some(Unusable::Preview)
}

/// Whether a file can be verified: with `sha256:` or `sha512:` and as many hex digits as that has.
pub(crate) fn has_known_hash(file: &Artifact) -> bool {
    file.hash.as_deref().and_then(|hash| hash.split_once(':')).is_some_and(|(algorithm, digits)| {
        let length = match algorithm {
            "sha256" => 64,
            "sha512" => 128,
            _ => return false,
        };
        digits.len() == length && digits.bytes().all(|b| b.is_ascii_hexdigit())
    })
}
