//! Pure. Derives candidate steps against blockers: one field to set, or an instant to wait for. Their effect is not
//! verified here.

use super::super::ExplainContext;
use crate::explanation::{
    Blocker, HintStep, IneligibleCandidate, ListOverride, ListedRelease, ProposedManifest, Reason, SharedVersion,
    UnmetNeed,
};
use crate::index::candidates::EdgeKind;
use crate::index::java::sibling_image;
use crate::model::catalog::{BuildChannel, Channel, ProjectKey};
use crate::model::compatibility_facts::{FactSource, UsedFact};
use crate::model::request::{CompatibilityOverride, OverrideMode, PaperRequest, Request};
use crate::model::unusable::{FileConflict, Unusable};
use crate::model::version::{Minecraft, glob};

/// Steps against shared plugins that are one version on several servers: any of them alone is a candidate.
pub(super) fn against_shared_version(
    context: &ExplainContext<'_, '_>,
    shared_version: &SharedVersion,
) -> Vec<HintStep> {
    let objects = || shared_version.plugins.iter().map(|plugin| plugin.object.clone());
    let mut steps: Vec<HintStep> = objects().map(|object| HintStep::PluginPerServer { object }).collect();
    // Each costs a solver run of the group. If no server runs yet, downgrades are not blocked.
    if context.group.is_some_and(|group| group.views.iter().any(|view| view.request.running.is_some())) {
        steps.extend(objects().map(|object| HintStep::AllowDowngrade { object }));
    }
    steps
}

/// Steps against a constraint of a Plugin: remove the entry.
fn drop_requirement(context: &ExplainContext<'_, '_>, fact: &UsedFact) -> Vec<HintStep> {
    let FactSource::Plugin { object } = &fact.says else { return Vec::new() };
    let plugin_requests =
        context.candidates.request.plugins.iter().filter(|plugin_request| plugin_request.object == *object);
    let requirements = plugin_requests
        .flat_map(|plugin_request| &plugin_request.requires)
        .filter(|requirement| requirement.version == fact.range);
    requirements
        .map(|requirement| HintStep::DropRequirement { object: object.clone(), plugin: requirement.plugin.clone() })
        .collect()
}

/// The steps against each unmet need of a blocker. With at most one need, a single list with the steps against all its
/// reasons.
pub(super) fn step_lists_for_blocker(
    context: &ExplainContext<'_, '_>,
    blocker: &Blocker,
    minecraft: &Minecraft,
) -> Vec<Vec<HintStep>> {
    match blocker.lacks.as_slice() {
        lacks @ [_, _, ..] => lacks.iter().map(|need| against_unmet_need(context, need, minecraft)).collect(),
        [_] | [] => match (&blocker.object, &blocker.both) {
            (Some(object), Some(both)) => against_both(context, object, both, minecraft),
            _ => vec![against_blocker(context, blocker, minecraft)],
        },
    }
}

/// Steps for a release that is blocked by a reason of its own and by its list: one list of steps for each.
fn against_both(
    context: &ExplainContext<'_, '_>,
    object: &str,
    both: &IneligibleCandidate,
    minecraft: &Minecraft,
) -> Vec<Vec<HintStep>> {
    let listed = allow_release(context.candidates.request, object, minecraft, &both.version);
    vec![against_release(context, object, &both.unusable), listed.into_iter().collect()]
}

/// Steps against each blocker in a fact of an unsolvable request. Returns at least one list.
pub(super) fn step_lists_for_reason(context: &ExplainContext<'_, '_>, reason: &Reason) -> Vec<Vec<HintStep>> {
    if let Reason::NotListed { object: Some(object), both: Some(both), papers, .. } = reason
        && let Some(span) = papers.last()
    {
        return against_both(context, object, both, &span.to);
    }
    vec![against_reason(context, reason)]
}

/// Steps against a blocker, lowest risk first.
pub(super) fn against_blocker(
    context: &ExplainContext<'_, '_>,
    blocker: &Blocker,
    minecraft: &Minecraft,
) -> Vec<HintStep> {
    let down = |nearly: &IneligibleCandidate| matches!(nearly.unusable, Unusable::Older { .. });
    let Some(object) = blocker.object.as_deref() else {
        let newest = blocker.newest.as_ref().filter(|_| blocker.waits_for_listing());
        let mut steps = match (&blocker.nearly, newest) {
            (Some(nearly), _) => against_needed(context, &blocker.name, &nearly.unusable),
            (None, Some(newest)) => against_list(context, None, &blocker.name, minecraft, newest),
            (None, None) => Vec::new(),
        };
        steps.extend(blocker.lacks.iter().flat_map(|need| against_unmet_need(context, need, minecraft)));
        let mut files = context.candidates.request.unmanaged.iter().map(|jar| &jar.file);
        steps.extend(files.find(|file| blocker.needed_by.contains(file)).map(|_| HintStep::IgnoreUnmanaged));
        return steps;
    };
    if blocker.pinned.is_some() {
        let unpin = HintStep::UnpinPlugin { object: object.to_owned() };
        return correct_plugin(context, blocker, object, minecraft).into_iter().chain([unpin]).collect();
    }
    let (downs, nearer): (Vec<&IneligibleCandidate>, Vec<&IneligibleCandidate>) =
        blocker.nearly.iter().partition(|nearly| down(nearly));
    let around = |of: &[&IneligibleCandidate]| -> Vec<HintStep> {
        of.iter().flat_map(|nearly| against_release(context, object, &nearly.unusable)).collect()
    };
    let mut steps = around(&nearer);
    steps.extend(blocker.facts.iter().flat_map(|fact| drop_requirement(context, fact)));
    steps.extend(blocker.lacks.iter().flat_map(|need| against_unmet_need(context, need, minecraft)));
    let request = context.candidates.request;
    let lacks_a_list =
        |nearly: &&IneligibleCandidate| matches!(nearly.unusable, Unusable::Unlisted | Unusable::SoftwareUnsaid { .. });
    if let Some(nearly) = blocker.nearly.as_ref().filter(lacks_a_list) {
        steps.extend(allow_release(request, object, minecraft, &nearly.version));
    }
    // An override cannot help if the server refuses the release.
    if let Some(newest) = blocker.newest.as_ref().filter(|newest| newest.refuses.is_none()) {
        steps.extend(against_list(context, Some(object), &blocker.name, minecraft, newest));
    }
    // A downgrade is irreversible, so it comes last.
    steps.extend(around(&downs));
    steps
}

/// The step that corrects a plugin's pin of a nonexistent version to the nearest existing release that works on a
/// Minecraft version.
fn correct_plugin(
    context: &ExplainContext<'_, '_>,
    blocker: &Blocker,
    object: &str,
    minecraft: &Minecraft,
) -> Option<HintStep> {
    let candidates = context.candidates;
    let plugin = candidates.plugins.iter().find(|plugin| plugin.name() == blocker.name)?;
    let usable = plugin.usable_on(candidates.papers.iter().position(|paper| paper.version.minecraft == *minecraft)?);
    let is_usable = |version: &&String| {
        let mut releases = plugin.releases.iter().enumerate();
        releases.any(|(position, candidate)| candidate.release.version == **version && usable.has(position + 1))
    };
    let version = blocker.nearest.iter().find(is_usable)?.clone();
    Some(HintStep::PinPlugin { object: object.to_owned(), version })
}

/// The step that pins the server to this Minecraft version instead of its own, with its build if a build is pinned.
pub(super) fn correct_server(context: &ExplainContext<'_, '_>, version: &Minecraft) -> Option<HintStep> {
    let build = match &context.candidates.request.paper {
        PaperRequest::Auto | PaperRequest::Latest => return None,
        PaperRequest::Pin { .. } => None,
        PaperRequest::BuildPin { .. } => {
            let mut papers = context.candidates.papers.iter();
            Some(papers.find(|paper| paper.version.minecraft == *version)?.build?.number)
        }
    };
    Some(HintStep::PinServer { version: version.clone(), build })
}

/// The override that allows a release on a Minecraft version. An existing override keeps its mode and its other
/// entries.
fn allow_release(request: &Request, object: &str, minecraft: &Minecraft, release: &str) -> Option<HintStep> {
    let plugin_request = request.plugins.iter().find(|plugin_request| plugin_request.object == object)?;
    let object = object.to_owned();
    let Some(user_override @ CompatibilityOverride { mode, minecraft: versions, releases }) =
        &plugin_request.compatibility
    else {
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
    if !user_override.is_about(release) {
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
    context: &ExplainContext<'_, '_>,
    object: Option<&str>,
    plugin: &str,
    minecraft: &Minecraft,
    release: &ListedRelease,
) -> Vec<HintStep> {
    let allowed = match object {
        Some(object) => allow_release(context.candidates.request, object, minecraft, &release.version),
        None => allow_dependency(context, plugin, minecraft, &release.version),
    };
    allowed.into_iter().chain(release.sibling.as_ref().map(|_| HintStep::TrustSiblings)).collect()
}

/// The Plugin to create for a dependency, so that this release of it may run on a Minecraft version.
fn allow_dependency(
    context: &ExplainContext<'_, '_>,
    plugin: &str,
    minecraft: &Minecraft,
    release: &str,
) -> Option<HintStep> {
    let plugin_candidates =
        context.candidates.plugins.iter().find(|plugin_candidates| plugin_candidates.name() == plugin)?;
    let objects = requesting_objects(context, plugin);
    let projects = [(plugin.to_owned(), plugin_candidates.project.key.clone())];
    let HintStep::AddPlugins { mut plugins } = propose(context.candidates.request, objects.first()?, &projects) else {
        return None;
    };
    for proposal in &mut plugins {
        let (minecraft_versions, releases) = (vec![minecraft.to_string()], vec![release.to_owned()]);
        proposal.allows = Some(ListOverride { minecraft_versions, releases });
    }
    Some(HintStep::AddPlugins { plugins })
}

fn against_release(context: &ExplainContext<'_, '_>, object: &str, unusable: &Unusable) -> Vec<HintStep> {
    let object = object.to_owned();
    match unusable {
        Unusable::Delayed { eligible_at, .. } => {
            vec![HintStep::WaitUntil { at: *eligible_at }, HintStep::NoPluginDelay { object }]
        }
        Unusable::DelayedWithCompanion { eligible_at, object, .. } => {
            vec![HintStep::WaitUntil { at: *eligible_at }, HintStep::NoPluginDelay { object: object.clone() }]
        }
        Unusable::Superseded { .. } => vec![HintStep::NoPluginDelay { object }],
        Unusable::Older { .. } => vec![HintStep::AllowDowngrade { object }],
        Unusable::Held { at: _, object, by } => vec![HintStep::Release { object: object.clone(), by: *by }],
        Unusable::Channel { is, .. } => vec![HintStep::PluginChannel { object, channel: *is }],
        Unusable::NeedsForbidden { .. } => vec![HintStep::InstallDependencies],
        Unusable::JavaTooOld { needs, image, .. } => against_old_java(context, *needs, image),
        Unusable::JavaHeld { .. } => vec![HintStep::ImageFollows],
        Unusable::BesideFile { apart: split, .. } => match &**split {
            FileConflict::Needs { fact } => {
                drop_requirement(context, fact).into_iter().chain([HintStep::IgnoreUnmanaged]).collect()
            }
            FileConflict::FileExcludes
            | FileConflict::Excludes
            | FileConflict::FileNames
            | FileConflict::Names
            | FileConflict::FileNeeds { .. }
            | FileConflict::FileGuessed { .. }
            | FileConflict::Guessed { .. } => vec![HintStep::IgnoreUnmanaged],
        },
        Unusable::Unlisted => vec![HintStep::AssumeUnlisted],
        Unusable::NeedsProposed { projects } => vec![propose(context.candidates.request, object.as_str(), projects)],
        // Only a person can tell whether the other project is to be trusted.
        Unusable::OtherProject { .. }
        | Unusable::NoFile
        | Unusable::NoJar { .. }
        | Unusable::NoSuchJar { .. }
        | Unusable::SeveralJars { .. }
        | Unusable::NoChecksum
        | Unusable::WrongSoftware { .. }
        | Unusable::SoftwareUnsaid { .. }
        | Unusable::ApiVersion { .. }
        | Unusable::ApiVersionRefused { .. }
        | Unusable::DescriptorRefused { .. }
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
fn against_needed(context: &ExplainContext<'_, '_>, plugin: &str, unusable: &Unusable) -> Vec<HintStep> {
    let mut steps: Vec<HintStep> = Vec::new();
    for object in requesting_objects(context, plugin) {
        for step in against_release(context, &object, unusable) {
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
fn against_unmet_need(context: &ExplainContext<'_, '_>, need: &UnmetNeed, minecraft: &Minecraft) -> Vec<HintStep> {
    let UnmetNeed { name, object, release, unusable } = need;
    match (object, release, unusable) {
        (Some(object), _, Some(unusable)) => against_release(context, object, unusable),
        (None, _, Some(unusable)) => against_needed(context, name, unusable),
        (object, Some(release), None) => against_list(context, object.as_deref(), name, minecraft, release),
        (_, None, None) => Vec::new(),
    }
}

/// The Plugin objects that need a plugin, directly or through others.
fn requesting_objects(context: &ExplainContext<'_, '_>, plugin: &str) -> Vec<String> {
    let plugins = &context.candidates.plugins;
    let mut needed: Vec<usize> = (0..plugins.len()).filter(|&at| plugins[at].name() == plugin).collect();
    let mut looked_at = 0;
    while let Some(&to) = needed.get(looked_at) {
        looked_at += 1;
        let needs = |at: &usize| {
            let mut edges = plugins[*at].edges.iter().flatten();
            !needed.contains(at) && edges.any(|edge| edge.to == to && edge.kind == EdgeKind::Required)
        };
        let more: Vec<usize> = (0..plugins.len()).filter(needs).collect();
        needed.extend(more);
    }
    needed.iter().filter_map(|&at| plugins[at].object()).map(str::to_owned).collect()
}

/// The Plugins to create for the dependencies of the object called `object`: for the same servers and on the same
/// channel.
pub(super) fn propose(request: &Request, object: &str, projects: &[(String, ProjectKey)]) -> HintStep {
    let dependent = request.plugins.iter().find(|plugin_request| plugin_request.object == object);
    let proposal = |(name, key): &(String, ProjectKey)| ProposedManifest {
        object: object_name(request, name),
        namespace: request.server.split_once('/').map(|(namespace, _)| namespace.to_owned()),
        key: key.clone(),
        channel: dependent.map_or(Channel::Release, |plugin_request| plugin_request.channel),
        selector: dependent
            .and_then(|plugin_request| plugin_request.selector.clone())
            .unwrap_or_else(|| "{}".to_owned()),
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
    let is_free = |name: &String| !request.plugins.iter().any(|plugin_request| plugin_request.object == *name);
    let numbered = (2..).map(|number| format!("{text}-{number}"));
    std::iter::once(text.to_owned()).chain(numbered).find(is_free).expect("some numbered name is always free")
}

/// Steps against a pinned image: another image from its repository, or no pin.
fn against_old_java(context: &ExplainContext<'_, '_>, needs: u32, pinned: &str) -> Vec<HintStep> {
    let other = sibling_image(context.catalog, pinned, needs, context.candidates.now);
    other.map(|image| HintStep::PinImage { image }).into_iter().chain(unpin_image(context)).collect()
}

/// An image that was configured for the operator cannot be removed from the server's spec.
fn unpin_image(context: &ExplainContext<'_, '_>) -> Option<HintStep> {
    (!context.candidates.request.image_is_given).then_some(HintStep::UnpinImage)
}

pub(super) fn against_paper(
    context: &ExplainContext<'_, '_>,
    unusable: &Unusable,
    minecraft: &Minecraft,
) -> Vec<HintStep> {
    match unusable {
        Unusable::Unmanaged { files } => {
            let (server, files, minecraft) =
                (context.candidates.request.server.clone(), files.clone(), minecraft.clone());
            vec![HintStep::TrustFiles { server, files, minecraft }, HintStep::WarnUnmanaged]
        }
        Unusable::UnmanagedRefused { file: _, because } => {
            let mut steps = against_paper(context, because, minecraft);
            steps.push(HintStep::IgnoreUnmanaged);
            steps
        }
        Unusable::Delayed { eligible_at, .. } => {
            vec![HintStep::WaitUntil { at: *eligible_at }, HintStep::NoServerDelay]
        }
        Unusable::BuildChannel { best, .. } => vec![HintStep::ServerChannel { channel: *best }],
        Unusable::Preview => vec![HintStep::ServerChannel { channel: BuildChannel::Alpha }],
        Unusable::ImageCarries { .. } => unpin_image(context).into_iter().collect(),
        Unusable::JavaTooOld { needs, image, .. } => against_old_java(context, *needs, image),
        Unusable::JavaHeld { .. } => vec![HintStep::ImageFollows],
        Unusable::NoBuild { nearest, .. } => {
            let pin = |build: &u32| HintStep::PinServer { version: minecraft.clone(), build: Some(*build) };
            nearest.first().map(pin).into_iter().collect()
        }
        Unusable::Channel { .. }
        | Unusable::DelayedWithCompanion { .. }
        | Unusable::NeedsProposed { .. }
        | Unusable::Unlisted
        | Unusable::Older { .. }
        | Unusable::OtherProject { .. }
        | Unusable::Held { .. }
        | Unusable::Superseded { .. }
        | Unusable::NoFile
        | Unusable::NoJar { .. }
        | Unusable::NoSuchJar { .. }
        | Unusable::SeveralJars { .. }
        | Unusable::NoChecksum
        | Unusable::WrongSoftware { .. }
        | Unusable::SoftwareUnsaid { .. }
        | Unusable::ApiVersion { .. }
        | Unusable::ApiVersionRefused { .. }
        | Unusable::DescriptorRefused { .. }
        | Unusable::NeedsUnread { .. }
        | Unusable::NeedsMissing { .. }
        | Unusable::NeedsUnknown { .. }
        | Unusable::NeedsForbidden { .. }
        | Unusable::BelowFloor { .. }
        | Unusable::BesideFile { .. }
        | Unusable::NoImage { .. } => Vec::new(),
    }
}

fn against_reason(context: &ExplainContext<'_, '_>, reason: &Reason) -> Vec<HintStep> {
    match reason {
        Reason::PaperPinned { .. } => vec![HintStep::UnpinServer],
        Reason::NoSuchPaper { nearest, .. } => {
            nearest.iter().filter_map(|version| correct_server(context, version)).collect()
        }
        Reason::PaperUnusable { unusable, papers } => {
            papers.last().map(|span| against_paper(context, unusable, &span.to)).unwrap_or_default()
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
            .map(|span| against_list(context, object.as_deref(), plugin, &span.to, newest))
            .unwrap_or_default(),
        Reason::ReleasesUnusable { object: None, plugin, unusable, .. } => against_needed(context, plugin, unusable),
        Reason::ReleasesUnusable { object: Some(object), unusable, .. } => against_release(context, object, unusable),
        Reason::SharedVersion { shared_version } => against_shared_version(context, shared_version),
        Reason::Needs { fact: Some(fact), .. } => drop_requirement(context, fact),
        Reason::NotListed { .. }
        | Reason::NoPaper
        | Reason::Needs { .. }
        | Reason::Excludes { .. }
        | Reason::OnlyThese { .. }
        | Reason::NoRelease { .. } => Vec::new(),
    }
}
