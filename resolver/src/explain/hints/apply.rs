//! Pure. Applies hints to a request: each step changes it as the user's change of the field would.

use jiff::{SignedDuration, Timestamp};

use super::candidates::against_paper;
use crate::explain::ExplainContext;
use crate::explanation::{HintStep, PaperPin};
use crate::model::request::{
    CompatibilityOverride, Dependencies, Hold, HotfixSiblings, ImagePolicy, OverrideMode, PaperRequest, PluginRequest,
    Request, Unlisted, VersionRequest,
};
use crate::model::unmanaged_jar::UnmanagedPlugins;
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

/// Applies a step to the request of this server.
pub(super) fn apply(request: &mut Request, now: &mut Timestamp, step: &HintStep) {
    let mut on = |object: &str, change: &dyn Fn(&mut PluginRequest)| {
        request.plugins.iter_mut().filter(|plugin_request| plugin_request.object == object).for_each(change);
    };
    match step {
        HintStep::WaitUntil { at } => *now = (*now).max(*at),
        HintStep::AllowMinecraft { object, minecraft_versions, releases } => on(object, &|plugin_request| {
            plugin_request.compatibility = Some(CompatibilityOverride {
                mode: OverrideMode::Add,
                minecraft: minecraft_versions.clone(),
                releases: releases.clone(),
            });
        }),
        HintStep::ChangeOverride { object, mode, minecraft_versions, releases } => on(object, &|plugin_request| {
            plugin_request.compatibility = Some(CompatibilityOverride {
                mode: *mode,
                minecraft: minecraft_versions.clone(),
                releases: releases.clone(),
            });
        }),
        HintStep::DropOverride { object } => on(object, &|plugin_request| plugin_request.compatibility = None),
        HintStep::NoPluginDelay { object } => on(object, &|plugin_request| plugin_request.delay = SignedDuration::ZERO),
        HintStep::AllowDowngrade { object } => on(object, &|plugin_request| plugin_request.allow_downgrade = true),
        HintStep::Release { object, by } => {
            on(object, &|plugin_request| plugin_request.hold = plugin_request.hold.filter(|hold| hold != by));
        }
        HintStep::PluginChannel { object, channel } => on(object, &|plugin_request| plugin_request.channel = *channel),
        HintStep::UnpinPlugin { object } | HintStep::PluginPerServer { object } => {
            on(object, &|plugin_request| plugin_request.version = VersionRequest::Auto);
        }
        HintStep::PinPlugin { object, version } => {
            on(object, &|plugin_request| plugin_request.version = VersionRequest::Pin { version: version.clone() });
        }
        HintStep::NoServerDelay => request.delay = SignedDuration::ZERO,
        HintStep::ServerChannel { channel } => request.channel = *channel,
        HintStep::UnpinServer => request.paper = PaperRequest::Auto,
        HintStep::UnpinImage => request.image = None,
        HintStep::ImageFollows => request.image_policy = ImagePolicy::Follow,
        HintStep::PinImage { image } => request.image = Some(image.clone()),
        HintStep::InstallDependencies => request.dependencies = Dependencies::Install,
        HintStep::TrustFiles { server: _, files, minecraft } => {
            for jar in request.unmanaged.iter_mut().filter(|jar| files.contains(&jar.file)) {
                jar.trusted.push(minecraft.to_string());
            }
        }
        HintStep::WarnUnmanaged => request.unmanaged_plugins = UnmanagedPlugins::Warn,
        HintStep::IgnoreUnmanaged => request.unmanaged_plugins = UnmanagedPlugins::Ignore,
        HintStep::AddPlugins { plugins } => {
            let added = plugins.iter().map(|plugin| PluginRequest {
                object: plugin.object.clone(),
                key: plugin.key.clone(),
                jars: Vec::new(),
                version: VersionRequest::Auto,
                delay: request.delay,
                channel: plugin.channel,
                allow_downgrade: false,
                hold: None,
                compatibility: plugin.allows.as_ref().map(|allows| CompatibilityOverride {
                    mode: OverrideMode::Add,
                    minecraft: allows.minecraft_versions.clone(),
                    releases: allows.releases.clone(),
                }),
                requires: Vec::new(),
                delay_together: Vec::new(),
                selector: Some(plugin.selector.clone()),
            });
            request.plugins.extend(added.collect::<Vec<_>>());
        }
        HintStep::TrustSiblings => request.hotfix_siblings = HotfixSiblings::Trust,
        HintStep::AssumeUnlisted => request.unlisted = Unlisted::Assume,
        HintStep::DropRequirement { object, plugin } => on(object, &|plugin_request| {
            plugin_request.requires.retain(|requirement| requirement.plugin != *plugin);
        }),
        HintStep::PinServer { version, build: None } => request.paper = PaperRequest::Pin { version: version.clone() },
        HintStep::PinServer { version, build: Some(build) } => {
            request.paper = PaperRequest::BuildPin { version: version.clone(), build: *build };
        }
    }
}

/// Applies a step to the request of another server: a change of a Plugin affects all its servers.
pub(crate) fn apply_to_others(request: &mut Request, step: &HintStep) {
    match step {
        HintStep::AllowMinecraft { .. }
        | HintStep::ChangeOverride { .. }
        | HintStep::DropOverride { .. }
        | HintStep::NoPluginDelay { .. }
        | HintStep::AllowDowngrade { .. }
        | HintStep::Release { object: _, by: Hold::Plugin }
        | HintStep::PluginChannel { .. }
        | HintStep::UnpinPlugin { .. }
        | HintStep::PluginPerServer { .. }
        | HintStep::DropRequirement { .. }
        | HintStep::PinPlugin { .. } => apply(request, &mut Timestamp::MIN.clone(), step),
        HintStep::WaitUntil { .. }
        | HintStep::Release { object: _, by: Hold::Server }
        | HintStep::NoServerDelay
        | HintStep::ServerChannel { .. }
        | HintStep::UnpinServer
        | HintStep::UnpinImage
        | HintStep::PinImage { .. }
        | HintStep::ImageFollows
        | HintStep::InstallDependencies
        | HintStep::TrustFiles { .. }
        | HintStep::WarnUnmanaged
        | HintStep::IgnoreUnmanaged
        | HintStep::AddPlugins { .. }
        | HintStep::TrustSiblings
        | HintStep::AssumeUnlisted
        | HintStep::PinServer { .. } => {}
    }
}

/// The request with a pin to a Paper version. A pinned build belongs to this very version and stays.
pub(crate) fn with_pin(request: &Request, minecraft: &Minecraft) -> Request {
    let mut pinned = request.clone();
    if !matches!(pinned.paper, PaperRequest::BuildPin { .. }) {
        pinned.paper = PaperRequest::Pin { version: minecraft.clone() };
    }
    pinned
}

/// The request, and the instant, as if a Paper version were usable (its delay is over, or a field is set) and the
/// server were not pinned. `None` if nothing makes it usable.
pub(crate) fn assuming_usable(
    context: &ExplainContext<'_, '_>,
    unusable: Option<&Unusable>,
    pin: Option<&PaperPin>,
    minecraft: &Minecraft,
) -> Option<(Request, Timestamp)> {
    let (mut request, mut now) = (context.candidates.request.clone(), context.candidates.now);
    if pin.is_some() {
        apply(&mut request, &mut now, &HintStep::UnpinServer);
    }
    if let Some(unusable) = unusable {
        let steps = against_paper(context, unusable, minecraft);
        let waits = steps.iter().find(|step| matches!(step, HintStep::WaitUntil { .. }));
        apply(&mut request, &mut now, waits.or(steps.last())?);
    }
    Some((request, now))
}
