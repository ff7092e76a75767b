//! Pure. Derives candidate steps against blockers: one field to set, or an instant to wait for. Their effect is not
//! verified here.

use super::super::{
    Blocker, ExplainContext, HintStep, IneligibleCandidate, ListOverride, ListedRelease, OneVersion, ProposedManifest,
    Reason, UnmetNeed,
};
use crate::catalog::{BuildChannel, Channel, ProjectKey};
use crate::compatibility_facts::{FactSource, UsedFact};
use crate::index::EdgeKind;
use crate::index::java::sibling_image;
use crate::request::{CompatibilityOverride, OverrideMode, PaperRequest, Request};
use crate::unusable::{GroupSplit, Unusable};
use crate::version::{Minecraft, glob};

/// Steps against shared plugins that are one version on several servers: any of them alone is a candidate.
pub(super) fn against_one_version(asked: &ExplainContext<'_, '_>, one_version: &OneVersion) -> Vec<HintStep> {
    let objects = || one_version.plugins.iter().map(|plugin| plugin.object.clone());
    let mut steps: Vec<HintStep> = objects().map(|object| HintStep::PluginPerServer { object }).collect();
    // Each costs a solver run of the group. If no server runs yet, downgrades are not blocked.
    if asked.company.is_some_and(|company| company.seats.iter().any(|seat| seat.request.running.is_some())) {
        steps.extend(objects().map(|object| HintStep::AllowDowngrade { object }));
    }
    steps
}

/// Steps against a constraint of a Plugin: remove the entry.
fn without(asked: &ExplainContext<'_, '_>, fact: &UsedFact) -> Vec<HintStep> {
    let FactSource::Plugin { object } = &fact.says else { return Vec::new() };
    let wishes = asked.world.request.plugins.iter().filter(|wish| wish.object == *object);
    let lines = wishes.flat_map(|wish| &wish.requires).filter(|line| line.version == fact.range);
    lines.map(|line| HintStep::DropRequirement { object: object.clone(), plugin: line.plugin.clone() }).collect()
}

/// The steps against each unmet need of a blocker. With at most one need, a single list with the steps against all its
/// reasons.
pub(super) fn blockers_of(
    asked: &ExplainContext<'_, '_>,
    holder: &Blocker,
    minecraft: &Minecraft,
) -> Vec<Vec<HintStep>> {
    match holder.lacks.as_slice() {
        lacks @ [_, _, ..] => lacks.iter().map(|lack| against_lack(asked, lack, minecraft)).collect(),
        [_] | [] => match (&holder.object, &holder.both) {
            (Some(object), Some(both)) => against_both(asked, object, both, minecraft),
            _ => vec![against_holder(asked, holder, minecraft)],
        },
    }
}

/// Steps for a release that is blocked by a reason of its own and by its list: one list of steps for each.
fn against_both(
    asked: &ExplainContext<'_, '_>,
    object: &str,
    both: &IneligibleCandidate,
    minecraft: &Minecraft,
) -> Vec<Vec<HintStep>> {
    let listed = allow(asked.world.request, object, minecraft, &both.version);
    vec![against_release(asked, object, &both.unusable), listed.into_iter().collect()]
}

/// Steps against each blocker in a fact of an unsolvable request. Returns at least one list.
pub(super) fn blockers_of_reason(asked: &ExplainContext<'_, '_>, reason: &Reason) -> Vec<Vec<HintStep>> {
    if let Reason::NotListed { object: Some(object), both: Some(both), papers, .. } = reason
        && let Some(span) = papers.last()
    {
        return against_both(asked, object, both, &span.to);
    }
    vec![against_reason(asked, reason)]
}

/// Steps against a blocker, lowest risk first.
pub(super) fn against_holder(asked: &ExplainContext<'_, '_>, holder: &Blocker, minecraft: &Minecraft) -> Vec<HintStep> {
    let down = |nearly: &IneligibleCandidate| matches!(nearly.unusable, Unusable::Older { .. });
    let Some(object) = holder.object.as_deref() else {
        let newest = holder.newest.as_ref().filter(|_| holder.waits_for_a_list());
        let mut steps = match (&holder.nearly, newest) {
            (Some(nearly), _) => against_needed(asked, &holder.name, &nearly.unusable),
            (None, Some(newest)) => against_list(asked, None, &holder.name, minecraft, newest),
            (None, None) => Vec::new(),
        };
        steps.extend(holder.lacks.iter().flat_map(|lack| against_lack(asked, lack, minecraft)));
        let mut files = asked.world.request.unmanaged.iter().map(|jar| &jar.file);
        steps.extend(files.find(|file| holder.needed_by.contains(file)).map(|_| HintStep::IgnoreUnmanaged));
        return steps;
    };
    if holder.pinned.is_some() {
        let unpin = HintStep::UnpinPlugin { object: object.to_owned() };
        return correct_plugin(asked, holder, object, minecraft).into_iter().chain([unpin]).collect();
    }
    let (downs, nearer): (Vec<&IneligibleCandidate>, Vec<&IneligibleCandidate>) =
        holder.nearly.iter().partition(|nearly| down(nearly));
    let around = |of: &[&IneligibleCandidate]| -> Vec<HintStep> {
        of.iter().flat_map(|nearly| against_release(asked, object, &nearly.unusable)).collect()
    };
    let mut steps = around(&nearer);
    steps.extend(holder.facts.iter().flat_map(|fact| without(asked, fact)));
    steps.extend(holder.lacks.iter().flat_map(|lack| against_lack(asked, lack, minecraft)));
    let request = asked.world.request;
    let lacks_a_list =
        |nearly: &&IneligibleCandidate| matches!(nearly.unusable, Unusable::Unlisted | Unusable::SoftwareUnsaid { .. });
    if let Some(nearly) = holder.nearly.as_ref().filter(lacks_a_list) {
        steps.extend(allow(request, object, minecraft, &nearly.version));
    }
    // An override cannot help if the server refuses the release.
    if let Some(newest) = holder.newest.as_ref().filter(|newest| newest.refuses.is_none()) {
        steps.extend(against_list(asked, Some(object), &holder.name, minecraft, newest));
    }
    // A downgrade is irreversible, so it comes last.
    steps.extend(around(&downs));
    steps
}

/// The step that corrects a plugin's pin of a nonexistent version to the nearest existing release that works on a
/// Minecraft version.
fn correct_plugin(
    asked: &ExplainContext<'_, '_>,
    holder: &Blocker,
    object: &str,
    minecraft: &Minecraft,
) -> Option<HintStep> {
    let world = asked.world;
    let shelf = world.shelves.iter().find(|shelf| shelf.name() == holder.name)?;
    let would_do = shelf.would_do(world.papers.iter().position(|paper| paper.version.minecraft == *minecraft)?);
    let goes = |version: &&String| {
        let mut releases = shelf.releases.iter().enumerate();
        releases.any(|(place, stocked)| stocked.release.version == **version && would_do.has(place + 1))
    };
    let version = holder.nearest.iter().find(goes)?.clone();
    Some(HintStep::PinPlugin { object: object.to_owned(), version })
}

/// The step that pins the server to this Minecraft version instead of its own, with its build if a build is pinned.
pub(super) fn correct_server(asked: &ExplainContext<'_, '_>, version: &Minecraft) -> Option<HintStep> {
    let build = match &asked.world.request.paper {
        PaperRequest::Auto | PaperRequest::Latest => return None,
        PaperRequest::Pin { .. } => None,
        PaperRequest::BuildPin { .. } => {
            let mut papers = asked.world.papers.iter();
            Some(papers.find(|paper| paper.version.minecraft == *version)?.build?.number)
        }
    };
    Some(HintStep::PinServer { version: version.clone(), build })
}

/// The override that allows a release on a Minecraft version. An existing override keeps its mode and its other
/// entries.
fn allow(request: &Request, object: &str, minecraft: &Minecraft, release: &str) -> Option<HintStep> {
    let wish = request.plugins.iter().find(|wish| wish.object == object)?;
    let object = object.to_owned();
    let Some(says @ CompatibilityOverride { mode, minecraft: versions, releases }) = &wish.compatibility else {
        let (minecraft_versions, releases) = (vec![minecraft.to_string()], vec![release.to_owned()]);
        return Some(HintStep::AllowMinecraft { object, minecraft_versions, releases });
    };
    let mode = *mode;
    if mode == OverrideMode::Remove {
        let (taken, minecraft_versions): (Vec<String>, Vec<String>) =
            versions.iter().cloned().partition(|pattern| glob::matches(pattern, minecraft));
        // Otherwise its page does not list the version, and adding it would lose the current value of the field.
        return (!taken.is_empty()).then(|| match minecraft_versions.as_slice() {
            [] => HintStep::DropOverride { object },
            _ => HintStep::ChangeOverride { object, mode, minecraft_versions, releases: releases.clone() },
        });
    }
    let (mut minecraft_versions, mut releases) = (versions.clone(), releases.clone());
    // A replacement without versions allows all of them.
    if !(mode == OverrideMode::Replace && versions.is_empty()) {
        minecraft_versions.push(minecraft.to_string());
        minecraft_versions.dedup();
    }
    if !says.is_about(release) {
        releases.push(release.to_owned());
    }
    Some(match mode {
        OverrideMode::Add => HintStep::AllowMinecraft { object, minecraft_versions, releases },
        OverrideMode::Replace | OverrideMode::Remove => {
            HintStep::ChangeOverride { object, mode, minecraft_versions, releases }
        }
    })
}

/// Steps if the list of a release does not name a Minecraft version: allow the version on its Plugin or on a new one,
/// or trust a hotfix sibling.
fn against_list(
    asked: &ExplainContext<'_, '_>,
    object: Option<&str>,
    plugin: &str,
    minecraft: &Minecraft,
    release: &ListedRelease,
) -> Vec<HintStep> {
    let allowed = match object {
        Some(object) => allow(asked.world.request, object, minecraft, &release.version),
        None => allow_needed(asked, plugin, minecraft, &release.version),
    };
    allowed.into_iter().chain(release.sibling.as_ref().map(|_| HintStep::TrustSiblings)).collect()
}

/// The Plugin to create for a dependency, so that this release of it may run on a Minecraft version.
fn allow_needed(
    asked: &ExplainContext<'_, '_>,
    plugin: &str,
    minecraft: &Minecraft,
    release: &str,
) -> Option<HintStep> {
    let shelf = asked.world.shelves.iter().find(|shelf| shelf.name() == plugin)?;
    let objects = asked_for_it(asked, plugin);
    let projects = [(plugin.to_owned(), shelf.project.key.clone())];
    let HintStep::AddPlugins { mut plugins } = propose(asked.world.request, objects.first()?, &projects) else {
        return None;
    };
    for proposal in &mut plugins {
        let (minecraft_versions, releases) = (vec![minecraft.to_string()], vec![release.to_owned()]);
        proposal.allows = Some(ListOverride { minecraft_versions, releases });
    }
    Some(HintStep::AddPlugins { plugins })
}

fn against_release(asked: &ExplainContext<'_, '_>, object: &str, unusable: &Unusable) -> Vec<HintStep> {
    let object = object.to_owned();
    match unusable {
        Unusable::HeldBack { ripe_at, .. } => {
            vec![HintStep::WaitUntil { at: *ripe_at }, HintStep::NoPluginDelay { object }]
        }
        Unusable::HeldBackTogether { ripe_at, object, .. } => {
            vec![HintStep::WaitUntil { at: *ripe_at }, HintStep::NoPluginDelay { object: object.clone() }]
        }
        Unusable::Superseded { .. } => vec![HintStep::NoPluginDelay { object }],
        Unusable::Older { .. } => vec![HintStep::AllowDowngrade { object }],
        Unusable::Held { at: _, object, by } => vec![HintStep::Release { object: object.clone(), by: *by }],
        Unusable::Channel { is, .. } => vec![HintStep::PluginChannel { object, channel: *is }],
        Unusable::NeedsForbidden { .. } => vec![HintStep::InstallDependencies],
        Unusable::JavaTooOld { needs, image, .. } => against_old_java(asked, *needs, image),
        Unusable::JavaHeld { .. } => vec![HintStep::ImageFollows],
        Unusable::BesideFile { apart, .. } => match &**apart {
            GroupSplit::Needs { fact } => without(asked, fact).into_iter().chain([HintStep::IgnoreUnmanaged]).collect(),
            GroupSplit::FileExcludes
            | GroupSplit::Excludes
            | GroupSplit::FileNames
            | GroupSplit::Names
            | GroupSplit::FileNeeds { .. }
            | GroupSplit::FileGuessed { .. }
            | GroupSplit::Guessed { .. } => vec![HintStep::IgnoreUnmanaged],
        },
        Unusable::Unlisted => vec![HintStep::AssumeUnlisted],
        Unusable::NeedsProposed { projects } => vec![propose(asked.world.request, object.as_str(), projects)],
        Unusable::NoFile
        | Unusable::NoSuchJar { .. }
        | Unusable::SeveralJars { .. }
        | Unusable::NoChecksum
        | Unusable::WrongSoftware { .. }
        | Unusable::SoftwareUnsaid { .. }
        | Unusable::ApiVersion { .. }
        | Unusable::NeedsUnread { .. }
        | Unusable::NeedsMissing { .. }
        | Unusable::NeedsUnknown { .. }
        | Unusable::BuildChannel { .. }
        | Unusable::NoBuild { .. }
        | Unusable::ImageCarries { .. }
        | Unusable::Preview
        | Unusable::BelowFloor { .. }
        | Unusable::Unmanaged { .. }
        | Unusable::UnmanagedRefused { .. }
        | Unusable::NoImage { .. } => Vec::new(),
    }
}

/// Steps against the blocker of the only sufficient release of a dependency: the Plugins that need it determine its
/// rules.
fn against_needed(asked: &ExplainContext<'_, '_>, plugin: &str, unusable: &Unusable) -> Vec<HintStep> {
    let mut steps: Vec<HintStep> = Vec::new();
    for object in asked_for_it(asked, plugin) {
        for step in against_release(asked, &object, unusable) {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
    }
    steps
}

/// Steps against the blocker of the release that another plugin would accept. A step cannot help if the server refuses
/// that release. This does not prevent other hints: the blocking plugin may have an older release without the
/// requirement.
fn against_lack(asked: &ExplainContext<'_, '_>, lack: &UnmetNeed, minecraft: &Minecraft) -> Vec<HintStep> {
    let UnmetNeed { name, object, release, unusable } = lack;
    match (object, release, unusable) {
        (Some(object), _, Some(unusable)) => against_release(asked, object, unusable),
        (None, _, Some(unusable)) => against_needed(asked, name, unusable),
        (object, Some(release), None) => against_list(asked, object.as_deref(), name, minecraft, release),
        (_, None, None) => Vec::new(),
    }
}

/// The Plugin objects that need a plugin, directly or through others.
fn asked_for_it(asked: &ExplainContext<'_, '_>, plugin: &str) -> Vec<String> {
    let shelves = &asked.world.shelves;
    let mut needed: Vec<usize> = (0..shelves.len()).filter(|&at| shelves[at].name() == plugin).collect();
    let mut looked_at = 0;
    while let Some(&to) = needed.get(looked_at) {
        looked_at += 1;
        let needs = |at: &usize| {
            let mut links = shelves[*at].links.iter().flatten();
            !needed.contains(at) && links.any(|link| link.to == to && link.kind == EdgeKind::Required)
        };
        let more: Vec<usize> = (0..shelves.len()).filter(needs).collect();
        needed.extend(more);
    }
    needed.iter().filter_map(|&at| shelves[at].object()).map(str::to_owned).collect()
}

/// The Plugins to create for the dependencies of the object called `object`: for the same servers and on the same
/// channel.
pub(super) fn propose(request: &Request, object: &str, projects: &[(String, ProjectKey)]) -> HintStep {
    let beside = request.plugins.iter().find(|wish| wish.object == object);
    let proposal = |(name, key): &(String, ProjectKey)| ProposedManifest {
        object: object_name(request, name),
        namespace: request.server.split_once('/').map(|(namespace, _)| namespace.to_owned()),
        key: key.clone(),
        channel: beside.map_or(Channel::Release, |wish| wish.channel),
        selector: beside.and_then(|wish| wish.selector.clone()).unwrap_or_else(|| "{}".to_owned()),
        allows: None,
    };
    HintStep::AddPlugins { plugins: projects.iter().map(proposal).collect() }
}

/// A free name for a Plugin object on this server, derived from the display name of the project.
fn object_name(request: &Request, name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let text: String = letters.take(50).collect();
    let text = text.trim_matches('-');
    let text = if text.is_empty() { "plugin" } else { text };
    let is_free = |name: &String| !request.plugins.iter().any(|wish| wish.object == *name);
    let numbered = (2..).map(|number| format!("{text}-{number}"));
    std::iter::once(text.to_owned()).chain(numbered).find(is_free).expect("there are more numbers than Plugins")
}

/// Steps against a pinned image: another image from its repository, or no pin.
fn against_old_java(asked: &ExplainContext<'_, '_>, needs: u32, pinned: &str) -> Vec<HintStep> {
    let other = sibling_image(asked.catalog, pinned, needs, asked.world.now);
    other.map(|image| HintStep::PinImage { image }).into_iter().chain(unpin_image(asked)).collect()
}

/// An image that was configured for the operator cannot be removed from the server's spec.
fn unpin_image(asked: &ExplainContext<'_, '_>) -> Option<HintStep> {
    (!asked.world.request.image_is_given).then_some(HintStep::UnpinImage)
}

pub(super) fn against_paper(
    asked: &ExplainContext<'_, '_>,
    unusable: &Unusable,
    minecraft: &Minecraft,
) -> Vec<HintStep> {
    match unusable {
        Unusable::Unmanaged { files } => {
            let (server, files, minecraft) = (asked.world.request.server.clone(), files.clone(), minecraft.clone());
            vec![HintStep::TrustFiles { server, files, minecraft }, HintStep::WarnUnmanaged]
        }
        Unusable::UnmanagedRefused { file: _, because } => {
            let mut steps = against_paper(asked, because, minecraft);
            steps.push(HintStep::IgnoreUnmanaged);
            steps
        }
        Unusable::HeldBack { ripe_at, .. } => vec![HintStep::WaitUntil { at: *ripe_at }, HintStep::NoServerDelay],
        Unusable::BuildChannel { best, .. } => vec![HintStep::ServerChannel { channel: *best }],
        Unusable::Preview => vec![HintStep::ServerChannel { channel: BuildChannel::Alpha }],
        Unusable::ImageCarries { .. } => unpin_image(asked).into_iter().collect(),
        Unusable::JavaTooOld { needs, image, .. } => against_old_java(asked, *needs, image),
        Unusable::JavaHeld { .. } => vec![HintStep::ImageFollows],
        Unusable::NoBuild { nearest, .. } => {
            let pin = |build: &u32| HintStep::PinServer { version: minecraft.clone(), build: Some(*build) };
            nearest.first().map(pin).into_iter().collect()
        }
        Unusable::Channel { .. }
        | Unusable::HeldBackTogether { .. }
        | Unusable::NeedsProposed { .. }
        | Unusable::Unlisted
        | Unusable::Older { .. }
        | Unusable::Held { .. }
        | Unusable::Superseded { .. }
        | Unusable::NoFile
        | Unusable::NoSuchJar { .. }
        | Unusable::SeveralJars { .. }
        | Unusable::NoChecksum
        | Unusable::WrongSoftware { .. }
        | Unusable::SoftwareUnsaid { .. }
        | Unusable::ApiVersion { .. }
        | Unusable::NeedsUnread { .. }
        | Unusable::NeedsMissing { .. }
        | Unusable::NeedsUnknown { .. }
        | Unusable::NeedsForbidden { .. }
        | Unusable::BelowFloor { .. }
        | Unusable::BesideFile { .. }
        | Unusable::NoImage { .. } => Vec::new(),
    }
}

fn against_reason(asked: &ExplainContext<'_, '_>, reason: &Reason) -> Vec<HintStep> {
    match reason {
        Reason::PaperPinned { .. } => vec![HintStep::UnpinServer],
        Reason::NoSuchPaper { nearest, .. } => {
            nearest.iter().filter_map(|version| correct_server(asked, version)).collect()
        }
        Reason::PaperUnusable { unusable, papers } => {
            papers.last().map(|span| against_paper(asked, unusable, &span.to)).unwrap_or_default()
        }
        Reason::NeededByFiles { .. } => vec![HintStep::IgnoreUnmanaged],
        Reason::NoSuchRelease { object, nearest, .. } => nearest
            .iter()
            .map(|version| HintStep::PinPlugin { object: object.clone(), version: version.clone() })
            .chain([HintStep::UnpinPlugin { object: object.clone() }])
            .collect(),
        Reason::PluginPinned { object, .. } => vec![HintStep::UnpinPlugin { object: object.clone() }],
        Reason::NotListed { object, plugin, newest: Some(newest), papers, .. } if newest.refuses.is_none() => papers
            .last()
            .map(|span| against_list(asked, object.as_deref(), plugin, &span.to, newest))
            .unwrap_or_default(),
        Reason::ReleasesUnusable { object: None, plugin, unusable, .. } => against_needed(asked, plugin, unusable),
        Reason::ReleasesUnusable { object: Some(object), unusable, .. } => against_release(asked, object, unusable),
        Reason::OneVersion { one_version } => against_one_version(asked, one_version),
        Reason::Needs { fact: Some(fact), .. } => without(asked, fact),
        Reason::NotListed { .. }
        | Reason::NoPaper
        | Reason::Needs { .. }
        | Reason::Excludes { .. }
        | Reason::OnlyThese { .. }
        | Reason::NoRelease { .. } => Vec::new(),
    }
}
