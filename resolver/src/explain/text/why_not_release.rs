//! Pure. Renders the text of "why not this release?".

use super::super::phrases::{nearest_are, of};
use super::super::{OtherRelease, Pinned, ReleaseState, WhyNotRelease};
use super::solved::kept_out;
use super::{TextBuilder, named, short};

/// Writes the text.
pub(super) fn why_not(page: &mut TextBuilder, why: &WhyNotRelease) {
    page.line(&format!("{}.", what(why)));
    match &why.pinned {
        None => {}
        Some(Pinned::Set { paper, changes }) => {
            let instead = match &why.paper {
                None => String::new(),
                Some(chosen) if chosen == paper => " all the same".to_owned(),
                Some(chosen) => format!(", not {}", named(chosen)),
            };
            let paper = format!("{} would run {}{instead}", short(&why.server), named(paper));
            let others = if changes.is_empty() { "." } else { ", with" };
            page.line(&format!("{}, {paper}{others}", pinned(why)));
            page.table(&changes.iter().map(row).collect::<Vec<_>>());
        }
        Some(Pinned::NoSet { answer }) => {
            page.line(&format!("{}:", pinned(why)));
            page.gap();
            page.write(answer);
        }
    }
}

/// Whether the server gets the release, and the reason if not.
pub(super) fn what(why: &WhyNotRelease) -> String {
    let WhyNotRelease { server, plugin, version, published, state, paper, instead, .. } = why;
    let server = short(server);
    let named = format!("{plugin} {version}");
    let instead = instead.as_deref().unwrap_or("another");
    let told = format!("{server} does not get {named}, {}", of(*published));
    match state {
        ReleaseState::NoSuchRelease { nearest } => format!("there is no {named}{}", nearest_are(nearest)),
        ReleaseState::Chosen => format!("{server} gets {named}: it is in the set that is chosen"),
        ReleaseState::Older => format!("{told}: {instead} is newer and goes with the rest"),
        ReleaseState::KeptOut { because } => {
            format!("{told}{}", kept_out(because, paper.as_ref().map(|paper| &paper.minecraft), instead))
        }
        ReleaseState::NothingMeets => format!("{told}: nothing meets what is asked for today"),
    }
}

/// `With ViaVersion 5.6.0 pinned (`spec.version` on Plugin viaversion)`
fn pinned(WhyNotRelease { plugin, version, object, .. }: &WhyNotRelease) -> String {
    format!("With {plugin} {version} pinned (`spec.version` on Plugin {object})")
}

fn row(OtherRelease { plugin, version, instead_of }: &OtherRelease) -> (String, Vec<String>) {
    match (version, instead_of) {
        (Some(version), Some(instead_of)) => (format!("{plugin} {version}"), vec![format!("instead of {instead_of}")]),
        (Some(version), None) => (format!("{plugin} {version}"), vec!["which is not there otherwise".to_owned()]),
        (None, instead_of) => {
            let named = format!("{plugin} {}", instead_of.as_deref().unwrap_or_default());
            (named.trim_end().to_owned(), vec!["gone".to_owned()])
        }
    }
}
