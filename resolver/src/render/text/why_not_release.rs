//! Pure. Renders the text of "why not this release?".

use super::builder::TextBuilder;
use super::solved::exclusion_clause;
use crate::explanation::{OtherRelease, Pinned, ReleaseState, WhyNotRelease};
use crate::render::phrases::{named, nearest_are, of_date, short_name};

/// Writes the text.
pub(super) fn why_not(page: &mut TextBuilder, why: &WhyNotRelease) {
    page.line(&format!("{}.", release_headline(why)));
    match &why.pinned {
        None => {}
        Some(Pinned::Set { paper, changes }) => {
            let instead = match &why.paper {
                None => String::new(),
                Some(chosen) if chosen == paper => ", unchanged".to_owned(),
                Some(chosen) => format!(", not {}", named(chosen)),
            };
            let paper = format!("{} would run {}{instead}", short_name(&why.server), named(paper));
            let others = if changes.is_empty() { "." } else { ", with" };
            page.line(&format!("{}, {paper}{others}", pinned(why)));
            page.table(&changes.iter().map(row).collect::<Vec<_>>());
        }
        Some(Pinned::NoSet { answer }) => {
            page.line(&format!("{}:", pinned(why)));
            page.gap();
            super::write(page, answer);
        }
    }
}

/// Whether the server gets the release, and the reason if not.
pub(super) fn release_headline(why: &WhyNotRelease) -> String {
    let WhyNotRelease { server, plugin, version, published, state, paper, instead, .. } = why;
    let server = short_name(server);
    let named = format!("{plugin} {version}");
    let instead = instead.as_deref().unwrap_or("another");
    let prefix = format!("{server} does not get {named}, {}", of_date(*published));
    match state {
        ReleaseState::NoSuchRelease { nearest } => format!("there is no {named}{}", nearest_are(nearest)),
        ReleaseState::Chosen => format!("{server} gets {named}: it is in the chosen version set"),
        ReleaseState::Older => format!("{prefix}: {instead} is newer and fits the rest"),
        ReleaseState::Excluded { because } => {
            format!("{prefix}{}", exclusion_clause(because, paper.as_ref().map(|paper| &paper.minecraft), instead))
        }
        ReleaseState::NoReleaseMatches => format!("{prefix}: the request cannot be met today"),
    }
}

/// `With ViaVersion 5.6.0 pinned (`spec.version` on Plugin viaversion)`
fn pinned(WhyNotRelease { plugin, version, object, .. }: &WhyNotRelease) -> String {
    format!("With {plugin} {version} pinned (`spec.version` on Plugin {object})")
}

fn row(OtherRelease { plugin, version, instead_of }: &OtherRelease) -> (String, Vec<String>) {
    match (version, instead_of) {
        (Some(version), Some(instead_of)) => (format!("{plugin} {version}"), vec![format!("instead of {instead_of}")]),
        (Some(version), None) => (format!("{plugin} {version}"), vec!["new".to_owned()]),
        (None, instead_of) => {
            let named = format!("{plugin} {}", instead_of.as_deref().unwrap_or_default());
            (named.trim_end().to_owned(), vec!["removed".to_owned()])
        }
    }
}
