//! Pure. Renders the text of an unsolvable request.

use super::blockers::second_reason;
use super::builder::TextBuilder;
use super::hints;
use crate::explanation::{Conflict, ListedRelease, Reason, ServerChoice, SharedVersion, Span};
use crate::model::compatibility_facts::UsedFact;
use crate::model::software::Software;
use crate::render::phrases::{self, list, nearest_are, of_date, read_time, short_name, spans};

/// Writes the text.
pub(super) fn conflict(page: &mut TextBuilder, impossible: &Conflict) {
    let server = &impossible.server;
    match &impossible.running {
        Some(running) => {
            let mut versions = vec![format!("{} {}", running.paper.software, running.paper.minecraft)];
            versions.extend(running.plugins.iter().map(|(name, version)| format!("{name} {version}")));
            let first = format!("{}. {}", unsolvable_headline(impossible), short_name(server));
            page.line(&format!("{first} keeps its running versions ({}).", commas(&versions, 6)));
        }
        None => page.line(&format!("{}.", unsolvable_headline(impossible))),
    }
    let rows: Vec<_> = impossible.reasons.iter().map(|reason| row(reason, page.software, page.now)).collect();
    page.table(&rows);
    if impossible.more > 0 {
        page.line(&format!("  and {} more", impossible.more));
    }
    let hint_section = hints::HintSection {
        hints: &impossible.hints,
        more: impossible.more_hints,
        skipped: impossible.hints_left_out,
        waits: &impossible.waits,
    };
    hints::section(page, server, &hint_section);
    page.unread(&impossible.unread);
    page.lists_read_later(impossible.lists_read_later);
}

/// `your change to games/lobby cannot be met today`
pub(super) fn unsolvable_headline(Conflict { server, running, .. }: &Conflict) -> String {
    let subject = if running.is_some() { "your change to" } else { "the request for" };
    format!("{subject} {server} cannot be met today")
}

fn commas(names: &[String], most: usize) -> String {
    let mut shown: Vec<String> = names.iter().take(most).cloned().collect();
    if names.len() > most {
        shown.push(format!("and {} more", names.len() - most));
    }
    shown.join(", ")
}

/// Shared plugins that are one version on several servers: the rule, then server by server.
pub(super) fn shared_version_row(shared_version: &SharedVersion) -> (String, Vec<String>) {
    let names: Vec<&str> = shared_version.names().collect();
    let mut lines = vec![shared_version_rule(shared_version)];
    lines.extend(shared_version.servers.iter().map(server_options));
    if let [_, _, ..] = shared_version.plugins.as_slice() {
        lines.push("No combination of their versions suits all of these.".to_owned());
    }
    if shared_version.more > 0 {
        lines.push(format!("and {}", more_servers(shared_version.more)));
    }
    (list(&names, 3), lines)
}

/// `1 more server`, `15 more servers`
pub(super) fn more_servers(more: usize) -> String {
    format!("{more} more server{}", if more == 1 { "" } else { "s" })
}

/// `must be the same version on all servers of Plugin viaversion (…)`
pub(super) fn shared_version_rule(shared_version: &SharedVersion) -> String {
    let objects: Vec<&str> = shared_version.plugins.iter().map(|plugin| plugin.object.as_str()).collect();
    match objects.as_slice() {
        [object] => {
            format!("must be the same version on all servers of Plugin {object} (`spec.updateStrategy: latest`).")
        }
        objects => format!(
            "must each be the same version on all servers of their Plugins ({}, `spec.updateStrategy: latest`).",
            list(objects, 3)
        ),
    }
}

/// `creative, on 1.20.4, can use 4.9 to 5.3`
pub(super) fn server_options(options: &ServerChoice) -> String {
    let server = short_name(&options.server);
    let server = match &options.papers {
        Some(papers) => format!("{server}, on {},", spans(std::slice::from_ref(papers))),
        None => server.to_owned(),
    };
    match (&options.oldest, &options.newest) {
        (Some(oldest), Some(newest)) if oldest != newest => {
            let without = if options.without.is_empty() {
                String::new()
            } else {
                format!(" without {}", list(&options.without, 3))
            };
            format!("{server} can use {oldest} to {newest}{without}")
        }
        (_, Some(newest)) => format!("{server} can use only {newest}"),
        (_, None) => match (options.with.as_slice(), options.needs.as_slice()) {
            ([], []) => server.trim_end_matches(',').to_owned(),
            ([], needs) => format!("{server} cannot have {}, which it needs, together with the rest", list(needs, 3)),
            (with, _) => {
                let go = if with.len() == 1 { "which conflicts" } else { "which conflict" };
                format!("{server} has {}, {go} with it{}", list(with, 3), phrases::facts_clause(&options.facts))
            }
        },
    }
}

fn row(reason: &Reason, software: Software, now: jiff::Timestamp) -> (String, Vec<String>) {
    let (head, line) = match reason {
        Reason::SharedVersion { shared_version } => return shared_version_row(shared_version),
        Reason::PaperPinned { version, build: None } => {
            (format!("you ask for {software} {version}"), "on the server, `spec.version`".to_owned())
        }
        Reason::PaperPinned { version, build: Some(build) } => (
            format!("you ask for {software} {version} build {build}"),
            "on the server, `spec.version` and `spec.build`".to_owned(),
        ),
        Reason::NoSuchPaper { version, nearest } => {
            let nearest: Vec<&str> = nearest.iter().map(crate::model::version::Minecraft::as_str).collect();
            let line = format!("does not exist (`spec.version` on the server){}", nearest_are(&nearest));
            (format!("{software} {version}"), line)
        }
        Reason::NoPaper => (software.to_string(), "no version is available".to_owned()),
        Reason::PaperUnusable { papers, unusable } => {
            (format!("{software} {}", spans(papers)), phrases::unusable(unusable))
        }
        Reason::NeededByFiles { plugin, files } => {
            (list(files, 3), format!("unmanaged, and needs {plugin}, which runs"))
        }
        Reason::NoSuchRelease { object, plugin, version, nearest } => (
            format!("{plugin} {version}"),
            format!("does not exist (Plugin {object}, `spec.version`){}", nearest_are(nearest)),
        ),
        Reason::PluginPinned { object, plugin, version, papers } => {
            let listed = if papers.is_empty() {
                format!("is listed for no existing {software} version")
            } else {
                format!("is listed for {}", spans(papers))
            };
            (format!("you ask for {plugin} {version} (Plugin {object}, `spec.version`)"), listed)
        }
        Reason::NotListed { plugin, papers, newest, read_at, .. } => {
            not_listed(plugin, papers, newest.as_ref(), &read_time(*read_at, now))
        }
        Reason::ReleasesUnusable { plugin, version, published, older, up_to, delisted, unusable, .. } => {
            let listed = up_to.as_ref().map_or_else(String::new, |up_to| format!(", is listed up to {up_to}"));
            let older = match older {
                0 => String::new(),
                1 => " (1 older release as well)".to_owned(),
                n => format!(" ({n} older releases as well)"),
            };
            let of = if *delisted { "which runs and is no longer on its page".to_owned() } else { of_date(*published) };
            let head = format!("{plugin} {version}, {of}{listed}");
            (head, format!("{}{older}", phrases::unusable(unusable)))
        }
        Reason::Needs { plugin, version, older, needs, at_least, at_most, guessed, optional, fact } => {
            let head = match older {
                0 => format!("{plugin} {version}"),
                n => format!("{plugin} {version} and {n} older"),
            };
            let ends = (at_least.as_deref(), at_most.as_deref());
            let needed = needed(needs, fact.as_ref(), ends, *guessed);
            (head, if *optional { format!("{needed}, or none at all") } else { needed })
        }
        Reason::Excludes { plugin, version, other, releases } => {
            let which = if releases.is_empty() { String::new() } else { format!(" {}", list(releases, 3)) };
            (format!("{plugin} {version}"), format!("must not be installed together with {other}{which}"))
        }
        Reason::OnlyThese { plugin, papers, oldest, newest } => {
            let which = if oldest == newest { oldest.clone() } else { format!("{oldest} to {newest}") };
            (format!("{plugin}, for {}", spans(papers)), format!("only {which} fits the rest"))
        }
        Reason::NoRelease { plugin, .. } => (plugin.clone(), format!("has no release for {software}")),
    };
    let mut lines = vec![line];
    if let Reason::NotListed { both: Some(both), papers, .. } = reason {
        lines.extend(papers.last().map(|span| second_reason(both, &span.to)));
    }
    (head, lines)
}

/// States that the newest release of a plugin is listed for none of these Paper versions.
fn not_listed(plugin: &str, papers: &[Span], newest: Option<&ListedRelease>, read: &str) -> (String, String) {
    match newest {
        Some(ListedRelease { version, refuses: Some(unusable), .. }) => {
            (format!("{plugin} {version}"), phrases::unusable(unusable))
        }
        Some(newest) if newest.delisted => {
            let (papers, but) = (spans(papers), if newest.unread { "could not be read" } else { "no longer lists it" });
            (
                format!("{plugin} {}", newest.version),
                format!("runs now, but its page {but}: it is not known to run on {papers}"),
            )
        }
        Some(newest) => {
            let oldest_asked = papers.first().map(|span| &span.from);
            if let Some(sibling) = &newest.sibling {
                let of = of_date(newest.published);
                let papers = spans(papers);
                let line = format!(
                    "its newest, {of}, is listed for {sibling} but not for {papers} ({read}), and `spec.hotfixSiblings` is `Ask`"
                );
                return (format!("{plugin} {}", newest.version), line);
            }
            let line = match &newest.up_to {
                _ if newest.overridden => format!(
                    "its newest, {}, is listed there, but your compatibilityOverride removes it",
                    of_date(newest.published)
                ),
                Some(up_to) if oldest_asked.is_some_and(|oldest| up_to < oldest) => {
                    format!("its newest, {}, is listed up to {up_to} ({read})", of_date(newest.published))
                }
                Some(_) | None => {
                    format!("its newest, {}, is not listed for {} ({read})", of_date(newest.published), spans(papers))
                }
            };
            (format!("{plugin} {}", newest.version), line)
        }
        None => (plugin.to_owned(), format!("has no eligible release for {} ({read})", spans(papers))),
    }
}

/// The requirement of a release on another plugin: by the fact behind it, otherwise between the oldest and the newest
/// sufficient version.
fn needed(needs: &str, fact: Option<&UsedFact>, ends: (Option<&str>, Option<&str>), guessed: bool) -> String {
    let guess = if guessed { " (guessed from their dates)" } else { "" };
    match (fact, ends) {
        (Some(UsedFact { range, says, .. }), _) => {
            format!("needs {needs} {} ({})", phrases::range(range), phrases::source_of_fact(says))
        }
        (None, (Some(least), None)) => format!("needs {needs} {least} or newer{guess}"),
        (None, (Some(least), Some(most))) if least == most => format!("needs {needs} {least}{guess}"),
        (None, (Some(least), Some(most))) => format!("needs {needs} {least} to {most}{guess}"),
        (None, (None, _)) => format!("needs a version of {needs} that does not exist{guess}"),
    }
}
