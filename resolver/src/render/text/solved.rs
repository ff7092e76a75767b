//! Pure. Renders the text of a solution.

use super::blockers::{blocker_lines, blocker_name, blocker_table, but_clause};
use super::builder::TextBuilder;
use super::unsolvable::{more_servers, server_options, shared_version_row, shared_version_rule};
use super::{hints, image};
use crate::explanation::{
    ChosenPaper, ChosenPlugin, DelistedReason, DowngradePermission, Listing, NewerBuild, NewerPaper,
    NotUpdatedWithLatest, SharedVersion, SolvedExplanation, UnreadKind, Warning, WhyOlder,
};
use crate::model::catalog::ProjectKey;
use crate::model::compatibility_facts::UsedFact;
use crate::model::software::Software;
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;
use crate::render::phrases::{
    self, build_channel, channel, count, list, month, named, of_date, paper, sentence, short_name,
};
use crate::render::short;

/// Writes the text.
pub(super) fn solved(page: &mut TextBuilder, solved: &SolvedExplanation) {
    let stopped = deploy_blocker(solved);
    if let Some(stopped) = &stopped {
        page.line(stopped);
        page.gap();
    }
    let but = if stopped.is_some() { "Otherwise, " } else { "" };
    page.line(&format!("{but}{} {}", headline(solved), newest(solved)));
    page.gap();
    let rows: Vec<_> = solved.plugins.iter().map(|chosen| plugin(chosen, solved)).collect();
    page.table(&rows);
    image::image(page, &solved.image);
    for (at, newer) in solved.newer_paper.iter().enumerate() {
        page.gap();
        if at == 0 {
            newer_paper(page, &solved.server, newer);
        } else {
            newest_paper(page, newer);
        }
    }
    if let Some(newer) = &solved.paper.newer_build {
        page.gap();
        page.line(&newer_build(newer, &solved.paper));
    }
    left_behind(page, &solved.paper.minecraft, &solved.left_behind);
    removed(page, &solved.removed);
    not_chosen(page, solved);
    if !solved.bounds.is_empty() {
        page.gap();
        page.line("facts that no page states");
        let rows: Vec<_> = solved.bounds.iter().map(bound).collect();
        page.table(&rows);
    }
    let stopped_by = solved.deploy_blocker();
    let is_said = |warning: &&Warning| matches!(warning, Warning::SharedName { name, files, stops: true } if stopped_by == Some((name.as_str(), files.as_slice())));
    let mut warnings = solved.warnings.iter().filter(|warning| !is_said(warning)).peekable();
    if warnings.peek().is_some() {
        page.gap();
        page.line("warnings");
        for warning in warnings {
            page.line(&format!("  {}", warning_text(warning, solved.software)));
        }
    }
    let hint_section = hints::HintSection {
        hints: &solved.hints,
        more: solved.more_hints,
        skipped: solved.hints_left_out,
        waits: &solved.waits,
    };
    hints::section(page, &solved.server, &hint_section);
    page.unread(&solved.unread);
    page.lists_read_later(solved.lists_read_later);
}

fn bound(used: &UsedFact) -> (String, Vec<String>) {
    (format!("{} {}", used.plugin, used.version), vec![phrases::fact(used)])
}

fn newer_build(newer: &NewerBuild, chosen: &ChosenPaper) -> String {
    let build = format!("Build {} of {} is newer", newer.build, chosen.minecraft);
    match &newer.unusable {
        None => format!("{build}, but you pinned build {} (`spec.build`).", chosen.build),
        Some(Unusable::BuildChannel { best, allowed }) => format!(
            "{build}, but published as {}, and you allow {} (`spec.channel`).",
            build_channel(*best),
            build_channel(*allowed)
        ),
        Some(unusable) => format!("{build}, but {}.", but_clause(unusable)),
    }
}

fn removed(page: &mut TextBuilder, removed: &[(String, String)]) {
    if removed.is_empty() {
        return;
    }
    page.gap();
    page.line("running now, to be removed");
    let why = || vec!["no Plugin requests it, and no plugin needs it".to_owned()];
    let rows: Vec<_> = removed.iter().map(|(name, version)| (format!("{name} {version}"), why())).collect();
    page.table(&rows);
}

/// The reason why the version set is not deployed, if any.
pub(super) fn deploy_blocker(solved: &SolvedExplanation) -> Option<String> {
    let (name, files) = solved.deploy_blocker()?;
    let keeps_running = if solved.paper.runs_now || solved.paper.instead_of.is_some() {
        format!("{} keeps its running versions", short_name(&solved.server))
    } else {
        format!("{} is not started", short_name(&solved.server))
    };
    let both = short::phrase(name, files);
    Some(format!("{both}, and a server loads only one of them: {keeps_running} until one of them is removed."))
}

/// The Paper version that runs, or can run.
pub(super) fn headline(solved: &SolvedExplanation) -> String {
    let server = short_name(&solved.server);
    let chosen = paper(solved.software, &solved.paper.minecraft, solved.paper.build);
    let with = match solved.plugins.len() {
        1 => "with one plugin".to_owned(),
        n => format!("with {} plugins", count(n)),
    };
    let changes: Vec<String> = solved
        .plugins
        .iter()
        .filter_map(|plugin| Some(format!("{} {} -> {}", plugin.name, plugin.instead_of.as_deref()?, plugin.version)))
        .collect();
    let new: Vec<&str> = solved.plugins.iter().filter(|p| !p.runs_now).map(|p| p.name.as_str()).collect();
    match &solved.paper.instead_of {
        Some(was) => {
            let was = named(was);
            format!("{server} runs {was} and can change to {chosen} {with}.")
        }
        None if !solved.paper.runs_now => format!("{server} can run {chosen} {with}."),
        None if changes.is_empty() && new.is_empty() && solved.removed.is_empty() => {
            format!("{server} runs {chosen} {with}.")
        }
        None => {
            let mut parts = changes;
            parts.extend(new.iter().map(|name| format!("{name} (new)")));
            parts.extend(solved.removed.iter().map(|(name, _)| format!("{name} (removed)")));
            format!("{server} stays on {chosen}. Changes: {}.", list(&parts, 6))
        }
    }
}

/// Whether any newer version was not chosen.
pub(super) fn newest(solved: &SolvedExplanation) -> String {
    let software = solved.software.to_string();
    let mut behind: Vec<&str> = Vec::new();
    if !solved.newer_paper.is_empty() || solved.paper.newer_build.is_some() {
        behind.push(&software);
    }
    behind.extend(solved.plugins.iter().filter(|plugin| plugin.newest.is_some()).map(|plugin| plugin.name.as_str()));
    for left in &solved.left_behind {
        if !behind.contains(&left.name.as_str()) {
            behind.push(&left.name);
        }
    }
    let newer = solved.unread.iter().filter(|part| match part.kind {
        UnreadKind::Builds | UnreadKind::RunningPlugin | UnreadKind::NewPlugin => true,
        UnreadKind::Release | UnreadKind::Image => false,
    });
    let unread: Vec<&str> = newer.map(|part| part.what.as_str()).collect();
    let but = if unread.is_empty() {
        String::new()
    } else {
        format!(" as far as is known, because {} could not be read", list(&unread, 2))
    };
    if behind.is_empty() {
        format!("Everything is up to date{but}.")
    } else {
        format!("Everything except {} is up to date{but}.", list(&behind, 5))
    }
}

fn plugin(plugin: &ChosenPlugin, on: &SolvedExplanation) -> (String, Vec<String>) {
    let (software, minecraft) = (on.software, &on.paper.minecraft);
    let mut line = of_date(plugin.published);
    if plugin.objects.is_empty() && !plugin.needed_by.is_empty() {
        line = format!("{line} (needed by {})", list(&plugin.needed_by, 4));
    }
    match &plugin.listing {
        Listing::Listed => {}
        Listing::Sibling { of } => line = format!("{line}, {}", phrases::listed_for_sibling(of, minecraft)),
        Listing::Override => line.push_str(", allowed by your compatibilityOverride"),
        Listing::NoList => line = format!("{line}, lists no {} version at all", software.version_scheme()),
        Listing::Delisted => "no longer on its page, stays because it runs now".clone_into(&mut line),
        Listing::Unread => "its page could not be read, stays because it runs now".clone_into(&mut line),
        Listing::RunsNow => line = format!("{line}, not listed for this {software}, stays because it runs now"),
    }
    // If Paper stays, the first line states the changes.
    if on.paper.instead_of.is_some() {
        match &plugin.instead_of {
            Some(runs) => line = format!("{line} (runs {runs})"),
            None if !plugin.runs_now => line.push_str(" (new)"),
            None => {}
        }
    }
    let later = plugin.later.as_ref().map(|later| {
        format!("{} {} is a lower version, so it counts as older", later.version, of_date(Some(later.published)))
    });
    (format!("{} {}", plugin.name, plugin.version), [line].into_iter().chain(later).collect())
}

fn newer_paper(page: &mut TextBuilder, server: &str, newer: &NewerPaper) {
    let since = format!("{} {} has been out since {}.", page.software, newer.minecraft, month(newer.since));
    let reason = match (&newer.unusable, &newer.pinned) {
        (Some(unusable), _) => Some(format!("{}.", paper_sentence(&newer.minecraft, unusable))),
        (None, Some(pin)) => Some(format!("You pinned {} (`spec.version`).", pin.version)),
        (None, None) => None,
    };
    if let Some(reason) = &reason {
        page.line(&format!("{since} {reason}"));
    }
    // The next part follows a reason of Paper's own, or continues after the date.
    let (begin, also) = if reason.is_some() { (String::new(), " as well") } else { (format!("{since} "), "") };
    if let Some(gave_up) = &newer.gave_up {
        page.line(&format!("{begin}{}.", sentence(&short::blockers_unknown(gave_up))));
    }
    if !newer.blocked_by.is_empty() {
        let blockers = match newer.blocked_by.len() {
            1 => format!("One plugin blocks it{also}:"),
            n => format!("{} plugins block it{also}:", sentence(&count(n))),
        };
        page.line(&format!("{begin}{blockers}"));
        blocker_table(page, &newer.blocked_by, &newer.minecraft);
        match newer.ready {
            0 => {}
            1 => page.line(&format!("The other one is ready for {}.", newer.minecraft)),
            n => page.line(&format!("The other {} are ready for {}.", count(n), newer.minecraft)),
        }
    }
    if !newer.shared_versions.is_empty() {
        let is_alone = reason.is_none() && newer.blocked_by.is_empty();
        page.line(&if is_alone {
            format!("{begin}{} could run it without the other servers.", short_name(server))
        } else {
            "Other servers block it as well:".to_owned()
        });
        shared_versions(page, &newer.shared_versions);
    }
}

/// The shared plugins that are one version on several servers, each with the versions that these servers could have.
pub(super) fn shared_versions(page: &mut TextBuilder, shared_versions: &[SharedVersion]) {
    let rows: Vec<_> = shared_versions.iter().map(shared_version_row).collect();
    page.table(&rows);
}

fn newest_paper(page: &mut TextBuilder, newer: &NewerPaper) {
    let names: Vec<&str> = newer.blocked_by.iter().map(|blocker| blocker.name.as_str()).collect();
    let blocked_by = (!names.is_empty()).then(|| list(&names, 5));
    let newest = format!("{} {}, the newest and out since {},", page.software, newer.minecraft, month(newer.since));
    page.line(&format!("{newest} {}.", blocking_clauses(newer, blocked_by.as_deref(), 5)));
}

/// The reasons against a newer Paper version, as clauses after its name. `blocked_by` names the blocking plugins. At most
/// `most` of the plugins that block it on several servers are named.
pub(super) fn blocking_clauses(newer: &NewerPaper, blocked_by: Option<&str>, most: usize) -> String {
    let mut clauses = match (&newer.unusable, &newer.pinned) {
        (Some(unusable), _) => vec![phrases::unusable(unusable)],
        (None, Some(_)) => vec!["is excluded by your pin".to_owned()],
        (None, None) if newer.gave_up.is_some() => vec!["is available".to_owned()],
        (None, None) => Vec::new(),
    };
    clauses.extend(newer.gave_up.as_ref().map(short::blockers_unknown));
    let mut hold = |names: &str, with: &str| {
        let clause = if clauses.is_empty() {
            format!("is blocked by {names}{with}")
        } else {
            format!("it is blocked by {names} as well{with}")
        };
        clauses.push(clause);
    };
    if let Some(names) = blocked_by {
        hold(names, "");
    }
    if let Some(one) = newer.shared_versions.first() {
        hold(&list(&one.names().collect::<Vec<_>>(), most), ", shared with other servers");
    }
    if clauses.is_empty() {
        clauses.push("is available".to_owned());
    }
    clauses.join(", and ")
}

/// A complete sentence about a Paper version.
fn paper_sentence(minecraft: &Minecraft, unusable: &Unusable) -> String {
    format!("{minecraft} {}", phrases::unusable(unusable))
}

fn left_behind(page: &mut TextBuilder, minecraft: &Minecraft, left_behind: &[NotUpdatedWithLatest]) {
    if left_behind.is_empty() {
        return;
    }
    page.gap();
    page.line(&format!("not updated to {minecraft} (`spec.updateStrategy: latest`)"));
    let rows: Vec<_> = left_behind
        .iter()
        .map(|left| {
            let mut blocker = left.blocker.clone();
            let is_itself = blocker.name == left.name;
            let mut lines = Vec::new();
            if !is_itself {
                blocker.needed_by.retain(|name| *name != left.name);
                lines.push(format!("needs {}:", blocker_name(&blocker)));
            }
            lines.extend(blocker_lines(&blocker, minecraft, page));
            lines.push(match &left.stays {
                Some(version) => format!("{version} runs now and stays."),
                None => "It is not installed until that changes.".to_owned(),
            });
            (if is_itself { blocker_name(&blocker) } else { left.name.clone() }, lines)
        })
        .collect();
    page.table(&rows);
}

fn not_chosen(page: &mut TextBuilder, solved: &SolvedExplanation) {
    let rows: Vec<(String, Vec<String>)> = ChosenPlugin::newer(&solved.plugins)
        .map(|(plugin, newer)| {
            let because = exclusion_clause(&newer.because, Some(&solved.paper.minecraft), &plugin.version);
            (format!("{} {}", plugin.name, newer.version), vec![format!("{}{because}", of_date(newer.published))])
        })
        .collect();
    if !rows.is_empty() {
        page.gap();
        page.line("newer, not chosen");
        page.table(&rows);
    }
}

/// The clause after the date of a release that was not chosen, for a plugin with another chosen release. `on` is the
/// Paper version, and `None` without a solution.
pub(super) fn exclusion_clause(because: &WhyOlder, on: Option<&Minecraft>, chosen: &str) -> String {
    let because = match because {
        WhyOlder::Unusable { unusable } => phrases::unusable(unusable),
        WhyOlder::NotListed { up_to: Some(up_to) } if on.is_some_and(|on| up_to < on) => {
            format!("is listed up to {up_to}")
        }
        WhyOlder::NotListed { .. } => format!("is not listed for {}", on.map_or("any", Minecraft::as_str)),
        WhyOlder::Pinned => format!("you pinned {chosen} (`spec.version`)"),
        WhyOlder::SharedVersion { shared_version } => {
            format!("{} But {}", shared_version_rule(shared_version), server_reasons(shared_version))
        }
        WhyOlder::Others { with, facts } => {
            format!("conflicts with {}{}", list(with, 4), phrases::facts_clause(facts))
        }
        WhyOlder::Needs { needs } => format!("needs {}, which cannot be installed with the rest", list(needs, 4)),
    };
    let then = if because.starts_with("you ") { ", but" } else { ":" };
    format!("{then} {because}")
}

/// The reasons against a release on other servers: up to three of them if they are short, and the number of further
/// ones.
fn server_reasons(shared_version: &SharedVersion) -> String {
    let SharedVersion { plugins: _, servers, more } = shared_version;
    if servers.is_empty() {
        return "another server excludes it".to_owned();
    }
    // Each of these is a complete sentence.
    let are_sentences = servers.iter().any(|server| !server.with.is_empty() || !server.needs.is_empty());
    let shown = if are_sentences { servers.len() } else { servers.len().min(3) };
    let mut reasons: Vec<String> = servers.iter().take(shown).map(server_options).collect();
    let omitted = servers.len() - shown + more;
    if omitted > 0 {
        reasons.push(format!("and {}", more_servers(omitted)));
    }
    if are_sentences || omitted > 0 { reasons.join("; ") } else { list(&reasons, 3) }
}

fn warning_text(warning: &Warning, software: Software) -> String {
    match warning {
        Warning::ChannelFallback { plugin, used, allowed } => format!(
            "{plugin} has no release on channel {}: its most stable channel, {}, is used.",
            channel(*allowed),
            channel(*used)
        ),
        Warning::NoList { plugin, version } => {
            let numbers = software.version_scheme();
            format!("{plugin} {version} lists no {numbers} version: it is not known whether it runs.")
        }
        Warning::FallbackVersion { plugin, version } => {
            format!("{plugin} is shown as {version}: its JAR states no version.")
        }
        Warning::GuessedBound { plugin, version, needs, at_least } => format!(
            "{plugin} {version} is assumed to need {needs} {at_least} or newer (guessed from their dates, stated on no page)."
        ),
        Warning::Bundled { plugin, version, since } => {
            format!("{software} {since} and later contain {plugin}: the server does not load {plugin} {version}.")
        }
        Warning::SeveralJars { plugin, version, jar, others } => format!(
            "{plugin} {version} has several JARs, and {jar} is installed. To install others, name them in `spec.source.jars` of its Plugin: {}.",
            list(others, 5)
        ),
        Warning::OutsideDependency { plugin, needs } => {
            format!("{plugin} needs {needs}, which Nightshift does not manage. It is assumed to be installed by you.")
        }
        Warning::SeveralObjects { objects, decides } => {
            format!("Plugins {} request the same project: the fields of {decides} apply.", list(objects, 6))
        }
        Warning::OverrideNotNeeded { object, version } => {
            format!(
                "compatibilityOverride on Plugin {object} is no longer needed for {version}: its page now lists it."
            )
        }
        Warning::Unmanaged { files, minecraft } => format!(
            "it is not known whether the unmanaged {} {} on {minecraft} (`spec.unmanagedPlugins`).",
            list(files, 4),
            if files.len() == 1 { "runs" } else { "run" }
        ),
        Warning::UnmanagedRefused { file, because } => {
            format!("the server does not load the unmanaged {file}: it {}.", phrases::unusable(because))
        }
        Warning::BesideFile { plugin, version, because } => format!(
            "{plugin} {version} {}. It is not blocked, because the running release conflicts with that file as well.",
            phrases::unusable(because)
        ),
        Warning::FileLacks { file, plugin, project } => format!(
            "the page of the unmanaged {file} requires {plugin}, and no plugin here is known to be it. If it is missing, \
             create a `kind: Plugin` for {project}."
        ),
        Warning::Legacy { plugin, version, api_version } => {
            legacy_text(&format!("{plugin} {version}"), api_version.as_deref())
        }
        Warning::LegacyFile { file, api_version } => {
            legacy_text(&format!("the unmanaged {file}"), api_version.as_deref())
        }
        Warning::SharedName { name, files, stops: _ } => {
            format!("{} share the plugin name {name}: the server loads only one of them. Remove one.", list(files, 4))
        }
        Warning::SameProjectName { name, projects } => {
            let projects: Vec<String> = projects.iter().map(ProjectKey::to_display).collect();
            format!(
                "{} have the name {name}: if they are one plugin, the server loads only one of them. Remove one of the Plugins.",
                list(&projects, 4)
            )
        }
        Warning::NoSuchCompanion { object, plugin } => {
            format!("`spec.delayTogether` of Plugin {object} names {plugin}, and this server has no such plugin.")
        }
        Warning::Downgrade { plugin, from, to, reason } => downgrade_text(plugin, from, to, reason),
        Warning::RunningReleaseKept { plugin, version, because } => {
            let because = match because {
                DelistedReason::Held => "because you hold it",
                DelistedReason::Pinned => "because you pinned it",
                DelistedReason::NothingElse => "because no other release of it is sufficient",
            };
            format!(
                "{plugin} stays at {version}, which runs and which its page no longer lists, {because}. Its compatibility is no longer listed."
            )
        }
        Warning::OtherProject { plugin, version, project, runs, is } => {
            phrases::other_project(plugin, version, (project, runs, is))
        }
        Warning::RunningReleaseGone { plugin, from, to } if from == to => format!(
            "the page of {plugin} no longer lists the running {from}: another release of that version replaces it. It may be unable to read the data of the running one: back up its folder."
        ),
        Warning::RunningReleaseGone { plugin, from, to } => format!(
            "{plugin} is downgraded from {from}, which runs, to {to}, because its page no longer lists {from}. It may be unable to read the data of {from}: back up its folder."
        ),
        Warning::PaperUnsupported { minecraft } => format!("{software} {minecraft} gets no more fixes."),
        Warning::PinnedBuildChannel { is, allowed } => format!(
            "the build you pinned is published as {}, less stable than {} (`spec.channel`).",
            build_channel(*is),
            build_channel(*allowed)
        ),
    }
}

fn downgrade_text(plugin: &str, from: &str, to: &str, reason: &DowngradePermission) -> String {
    let lets = match reason {
        DowngradePermission::Allowed => "as `spec.allowDowngrade` permits".to_owned(),
        DowngradePermission::Pinned => "as its pin requires".to_owned(),
        DowngradePermission::Unusable { unusable } => format!("because {from} {}", phrases::unusable(unusable)),
        DowngradePermission::Overridden => "as the `compatibilityOverride` of its Plugin requires".to_owned(),
        DowngradePermission::Others { with, facts } => {
            format!("because {from} conflicts with {}{}", list(with, 4), phrases::facts_clause(facts))
        }
    };
    format!(
        "{plugin} is downgraded from {from}, which runs, to {to}, {lets}. It may be unable to read the data of {from}: back up its folder."
    )
}

fn legacy_text(subject: &str, api_version: Option<&str>) -> String {
    let states = api_version.map_or_else(
        || format!("{subject} states no `api-version`"),
        |text| format!("{subject} states {}, older than 1.13", phrases::stated_api_version(text)),
    );
    format!(
        "{states}: the server runs it in legacy mode, as a plugin for 1.12. It uses old material names, and the server starts more slowly."
    )
}
