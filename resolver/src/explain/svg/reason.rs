//! Pure. A fact of a no as a card.

use super::section::{Card, Kind};
use super::{Minecraft, few};
use crate::explain::Reason;
use crate::explain::words::{list, spans};
use crate::software::Software;

/// What it is about, and the fact in few words.
pub(super) fn card(software: Software, reason: &Reason) -> Card {
    let up_to =
        |up_to: Option<&Minecraft>| up_to.map_or_else(|| "no list".to_owned(), |it| format!("listed up to {it}"));
    let (name, note) = match reason {
        Reason::PaperPinned { version, build: None } => (format!("{software} {version}"), "you pinned it".to_owned()),
        Reason::PaperPinned { version, build: Some(build) } => {
            (super::paper(software, version, *build), "you pinned it".to_owned())
        }
        Reason::NoSuchPaper { version, nearest: _ } => (format!("{software} {version}"), "does not exist".to_owned()),
        Reason::NoPaper => (software.to_string(), "there is none to choose from".to_owned()),
        Reason::PaperUnusable { papers, unusable } => {
            (format!("{software} {}", spans(papers)), few::unusable(unusable))
        }
        Reason::NeededByFiles { plugin, files } => (list(files, 2), format!("needs {plugin}; not managed here")),
        Reason::NoSuchRelease { plugin, version, object: _, nearest: _ } => {
            (format!("{plugin} {version}"), "does not exist".to_owned())
        }
        Reason::PluginPinned { plugin, version, papers, object: _ } if papers.is_empty() => {
            (format!("{plugin} {version}"), "you pinned it".to_owned())
        }
        Reason::PluginPinned { plugin, version, papers, object: _ } => {
            (format!("{plugin} {version}"), format!("you pinned it; listed for {}", spans(papers)))
        }
        Reason::NotListed { plugin, newest, papers: _, object: _, read_at: _ } => match newest {
            Some(newest) => (format!("{plugin} {}", newest.version), up_to(newest.up_to.as_ref())),
            None => (plugin.clone(), "no release that may be used".to_owned()),
        },
        Reason::ReleasesUnusable { plugin, version, unusable, .. } => {
            (format!("{plugin} {version}"), few::unusable(unusable))
        }
        Reason::Needs { plugin, version, needs, at_least, at_most, older: _, guessed: _, optional: _, fact: _ } => {
            let which = match (at_least, at_most) {
                (Some(least), Some(most)) => format!("{needs} {least} to {most}"),
                (Some(least), None) => format!("{needs} {least} or newer"),
                (None, Some(most)) => format!("{needs} {most} or older"),
                (None, None) => format!("{needs}, which is not to be had"),
            };
            (format!("{plugin} {version}"), format!("needs {which}"))
        }
        Reason::Excludes { plugin, version, other, releases } => {
            let which = if releases.is_empty() { String::new() } else { format!(" {}", list(releases, 2)) };
            (format!("{plugin} {version}"), format!("excludes {other}{which}"))
        }
        Reason::OnlyThese { plugin, papers, oldest, newest } => {
            let which = if oldest == newest { oldest.clone() } else { format!("{oldest} to {newest}") };
            (format!("{plugin} {which}"), format!("only these on {}", spans(papers)))
        }
        Reason::NoRelease { plugin, object: _ } => (plugin.clone(), format!("has no release for {software}")),
        Reason::OneVersion { one_version } => ("shared plugins".to_owned(), few::one_version(one_version)),
    };
    Card::new(Kind::Holds, name, note)
}
