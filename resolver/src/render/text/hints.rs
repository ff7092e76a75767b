//! Pure. Renders hints as text: the exact field and value.

use super::builder::TextBuilder;
use crate::explanation::{Hint, HintStep, HintsLeftOut, ListOverride, ProposedManifest, UpstreamAction};
use crate::model::catalog::Channel;
use crate::model::request::{Hold, OverrideMode};
use crate::model::software::PaperName;
use crate::render::phrases::{build_channel, channel, count, instant, list, named, sentence, shell_quoted, short_name};

/// Limit of listed plugins that are waited for. Further ones are counted.
const MAX_WAITS: usize = 5;

/// All possible actions.
pub(super) struct HintSection<'e> {
    pub(super) hints: &'e [Hint],
    pub(super) more: usize,
    pub(super) skipped: Option<HintsLeftOut>,
    pub(super) waits: &'e [UpstreamAction],
}

/// The section with all hints, followed by the actions of plugin authors. Below it, whether there may be more hints.
pub(super) fn section(page: &mut TextBuilder, server: &str, hint_section: &HintSection<'_>) {
    let HintSection { hints, more, skipped, waits } = *hint_section;
    if !(hints.is_empty() && waits.is_empty()) {
        hint_list(page, server, hints, more, waits);
    }
    if let Some(skipped) = skipped {
        page.gap();
        page.line(&skipped_hints(skipped));
    }
}

/// States that not every possible hint was tried.
fn skipped_hints(skipped: HintsLeftOut) -> String {
    match skipped {
        HintsLeftOut::GroupTooLarge { servers } => format!(
            "Hints were not computed: the group of {servers} servers is too large to try each change. A solution may exist."
        ),
        HintsLeftOut::BudgetUsedUp => {
            "Not every change was tried, because the search reached its limit. More options may exist.".to_owned()
        }
        HintsLeftOut::TooManyAtOnce { steps } => format!(
            "Combinations of {} or more changes were not tried, because there are too many blockers. One may exist.",
            count(steps)
        ),
    }
}

fn hint_list(page: &mut TextBuilder, server: &str, hints: &[Hint], more: usize, waits: &[UpstreamAction]) {
    page.gap();
    page.line("options");
    let mut rows = Vec::new();
    for hint in hints {
        let mut lines: Vec<String> =
            hint.steps.iter().flat_map(|step| field(step).lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        let would = named(&hint.gives);
        let one_way = hint
            .irreversible_from
            .as_ref()
            .map_or_else(String::new, |from| format!(" One-way: the world cannot return to {from}."));
        let only_waits = matches!(hint.steps.as_slice(), [HintStep::WaitUntil { .. }]);
        let verb = if only_waits { "can then run" } else { "would then run" };
        lines.push(format!("{} {verb} {would}.{one_way}", short_name(server)));
        rows.push((head(&hint.steps).to_owned(), lines));
    }
    if more > 0 {
        let left_out = if more == 1 {
            "One more option is left out: it changes or risks".to_owned()
        } else {
            format!("{more} more options are left out: they change or risk")
        };
        rows.push(("or".to_owned(), vec![format!("{left_out} more.")]));
    }
    if !waits.is_empty() {
        let mut lines: Vec<String> = waits.iter().take(MAX_WAITS).map(waiting_line).collect();
        if waits.len() > MAX_WAITS {
            lines.push(format!("and {} more", waits.len() - MAX_WAITS));
        }
        lines.push("No action needed. You will be notified.".to_owned());
        rows.push(("wait".to_owned(), lines));
    }
    page.table(&rows);
}

/// A hint as one sentence. Steps beyond `most` are counted. The exact values are in the section.
pub(super) fn hint_sentence(hint: &Hint, most: usize) -> String {
    let Hint { steps, gives, irreversible_from } = hint;
    if let [wait @ HintStep::WaitUntil { .. }] = steps.as_slice() {
        return format!("{}.", sentence(&field(wait)));
    }
    let one_way = if irreversible_from.is_some() { " (one-way)" } else { "" };
    let steps: Vec<String> = steps.iter().map(|step| step_sentence(step, gives)).collect();
    format!("Hint{one_way}: {}.", list(&steps, most))
}

/// A step without long values.
fn step_sentence(step: &HintStep, gives: &PaperName) -> String {
    if let HintStep::AllowMinecraft { object, .. } | HintStep::ChangeOverride { object, .. } = step {
        format!("allow {} on Plugin {object} (`compatibilityOverride`)", gives.minecraft)
    } else if let HintStep::AddPlugins { plugins } = step {
        let objects: Vec<&str> = plugins.iter().map(|plugin| plugin.object.as_str()).collect();
        format!("create a `kind: Plugin` for {}", list(&objects, 3))
    } else if let HintStep::TrustFiles { files, minecraft, server: _ } = step {
        format!("confirm that you tested {} on {minecraft} (`kubectl nightshift trust`)", list(files, 2))
    } else if let HintStep::AllowDowngrade { object } = step {
        format!("set `spec.allowDowngrade: true` on Plugin {object} (back up its folder first)")
    } else if let HintStep::PluginPerServer { object } = step {
        format!("set `spec.updateStrategy: auto` on Plugin {object}")
    } else if let HintStep::UnpinImage = step {
        "remove `spec.image`".to_owned()
    } else {
        field(step)
    }
}

fn waiting_line(awaited: &UpstreamAction) -> String {
    match awaited {
        UpstreamAction::Listed { plugin, release, minecraft, only } => {
            let or = if *only { "" } else { ", or to publish a release for it" };
            format!("for {plugin} to list {minecraft} for {release}{or}")
        }
        UpstreamAction::Released { plugin, minecraft } => format!("for {plugin} to publish a release for {minecraft}"),
    }
}

fn head(steps: &[HintStep]) -> &'static str {
    match steps {
        [HintStep::WaitUntil { .. }] => "wait",
        [HintStep::NoPluginDelay { .. } | HintStep::NoServerDelay] => "sooner",
        [HintStep::UnpinPlugin { .. } | HintStep::UnpinServer | HintStep::UnpinImage] => "unpin",
        [HintStep::PluginPerServer { .. }] => "per server",
        [HintStep::AddPlugins { .. }] => "add it",
        [HintStep::PinServer { .. } | HintStep::PinPlugin { .. }] => "correct it",
        [HintStep::PinImage { .. }] => "newer Java",
        [HintStep::TrustFiles { .. }] => "if tested",
        [HintStep::IgnoreUnmanaged] => "ignore it",
        [_] => "allow it",
        _ => "together",
    }
}

/// One step: the object, and the value to set there.
pub(super) fn field(step: &HintStep) -> String {
    match step {
        HintStep::WaitUntil { at } => format!("no action needed: possible from {}", instant(*at)),
        HintStep::AllowMinecraft { object, minecraft_versions, releases } => format!(
            "on Plugin {object}:  compatibilityOverride: {{enabled: true, mode: Add, minecraftVersions: {}, releases: {}}}",
            quoted(minecraft_versions),
            quoted(releases)
        ),
        HintStep::ChangeOverride { object, mode, minecraft_versions, releases } => format!(
            "on Plugin {object}:  compatibilityOverride: {{enabled: true, mode: {}, minecraftVersions: {}, releases: {}}}",
            mode_value(*mode),
            quoted(minecraft_versions),
            quoted(releases)
        ),
        HintStep::DropOverride { object } => format!("remove `spec.compatibilityOverride` from Plugin {object}"),
        HintStep::NoPluginDelay { object } => format!("set `spec.updateDelay: 0s` on Plugin {object}"),
        HintStep::NoServerDelay => "set `spec.updateDelay: 0s` on the server".to_owned(),
        HintStep::AllowDowngrade { object } => {
            format!("set `spec.allowDowngrade: true` on Plugin {object} (back up the plugin's folder first)")
        }
        HintStep::Release { object, by: Hold::Plugin } => format!("remove `spec.hold` from Plugin {object}"),
        HintStep::Release { object, by: Hold::Server } => format!("remove {object} from `spec.hold` of the server"),
        HintStep::PluginChannel { object, channel: to } => {
            format!("set `spec.channel: {}` on Plugin {object}", channel(*to))
        }
        HintStep::ServerChannel { channel: to } => format!("set `spec.channel: {}` on the server", build_channel(*to)),
        HintStep::UnpinPlugin { object } => format!("set `spec.updateStrategy: auto` on Plugin {object}"),
        HintStep::PluginPerServer { object } => {
            format!("set `spec.updateStrategy: auto` on Plugin {object}: each server then gets its own newest")
        }
        HintStep::UnpinServer => "set `spec.updateStrategy: auto` on the server".to_owned(),
        HintStep::ImageFollows => "set `spec.imagePolicy: Follow` on the server".to_owned(),
        HintStep::PinImage { image } => format!("set `spec.image: {image}` on the server"),
        HintStep::UnpinImage => "remove `spec.image`: an image with the right Java is then chosen".to_owned(),
        HintStep::AddPlugins { plugins } => {
            let apply = plugins.iter().map(|plugin| format!("apply  {}", manifest(plugin)));
            apply.collect::<Vec<_>>().join("\n")
        }
        HintStep::TrustSiblings => "set `spec.hotfixSiblings: Trust` on the server".to_owned(),
        HintStep::AssumeUnlisted => "set `spec.unlisted: Assume` on the server".to_owned(),
        HintStep::InstallDependencies => "set `spec.dependencies: Install` on the server".to_owned(),
        HintStep::TrustFiles { server, files, minecraft } => {
            let files: Vec<String> = files.iter().map(|file| shell_quoted(file)).collect();
            format!("kubectl nightshift trust {server} {} --minecraft {minecraft}", files.join(" "))
        }
        HintStep::WarnUnmanaged => "set `spec.unmanagedPlugins: Warn` on the server".to_owned(),
        HintStep::IgnoreUnmanaged => "set `spec.unmanagedPlugins: Ignore` on the server, or remove the file".to_owned(),
        HintStep::DropRequirement { object, plugin } => {
            format!("remove {plugin} from `spec.requires` of Plugin {object}")
        }
        HintStep::PinServer { version, build: None } => format!("set `spec.version: \"{version}\"` on the server"),
        HintStep::PinServer { version, build: Some(build) } => {
            format!("set `spec.version: \"{version}\"` and `spec.build: {build}` on the server")
        }
        HintStep::PinPlugin { object, version } => format!("set `spec.version: \"{version}\"` on Plugin {object}"),
    }
}

/// A proposed Plugin as one line of YAML.
fn manifest(plugin: &ProposedManifest) -> String {
    let ProposedManifest { object, namespace, key, channel: least, selector, allows } = plugin;
    let allows = allows.as_ref().map_or_else(String::new, |ListOverride { minecraft_versions, releases }| {
        let (versions, releases) = (quoted(minecraft_versions), quoted(releases));
        format!(
            ", compatibilityOverride: {{enabled: true, mode: Add, minecraftVersions: {versions}, releases: {releases}}}"
        )
    });
    let namespace = namespace.as_ref().map_or_else(String::new, |namespace| format!(", namespace: {namespace}"));
    let least = if *least == Channel::Release { String::new() } else { format!("channel: {}, ", channel(*least)) };
    format!(
        "{{apiVersion: nightshift.dev/v1alpha1, kind: Plugin, metadata: {{name: {object}{namespace}}}, spec: {{source: \
         {{type: {}, project: \"{}\"}}, {least}updateStrategy: auto, instanceSelector: {selector}{allows}}}}}",
        key.source, key.project
    )
}

/// The value in the field.
fn mode_value(mode: OverrideMode) -> &'static str {
    match mode {
        OverrideMode::Add => "Add",
        OverrideMode::Replace => "Replace",
        OverrideMode::Remove => "Remove",
    }
}

fn quoted(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    format!("[{}]", quoted.join(", "))
}
