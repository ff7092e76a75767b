//! Pure. Renders the text about the blockers of a Paper version and the evidence.

use super::super::phrases::{self, list, of, read, sentence, source};
use super::super::{Blocker, IneligibleCandidate, ListedRelease, UnmetNeed};
use super::TextBuilder;
use crate::catalog::Source;
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// Limit of described blockers. The names of further ones follow in one line.
const MOST_HOLDERS: usize = 8;

/// The blockers and the evidence.
pub(super) fn holder_table(page: &mut TextBuilder, holders: &[Blocker], minecraft: &Minecraft) {
    let row = |holder: &Blocker| (holder_name(holder), holder_lines(holder, minecraft, page));
    let rows: Vec<_> = holders.iter().take(MOST_HOLDERS).map(row).collect();
    holder_rows(page, &rows, holders);
}

/// The blockers with the time of their authors' last release.
pub(super) fn silent_holder_table(page: &mut TextBuilder, holders: &[Blocker], minecraft: &Minecraft) {
    let row = |holder: &Blocker| {
        let mut lines = holder_lines(holder, minecraft, page);
        lines.extend(holder.silent_since.map(|at| format!("{}.", sentence(&phrases::silent_since(at)))));
        (holder_name(holder), lines)
    };
    let rows: Vec<_> = holders.iter().take(MOST_HOLDERS).map(row).collect();
    holder_rows(page, &rows, holders);
}

fn holder_rows(page: &mut TextBuilder, rows: &[(String, Vec<String>)], holders: &[Blocker]) {
    page.table(rows);
    let others: Vec<String> = holders.iter().skip(rows.len()).map(holder_name).collect();
    if !others.is_empty() {
        page.line(&format!("  and {} more: {}", others.len(), list(&others, usize::MAX)));
    }
}

pub(super) fn holder_name(holder: &Blocker) -> String {
    let version = holder.pinned.as_ref().or(holder.newest.as_ref().map(|newest| &newest.version));
    version.map_or_else(|| holder.name.clone(), |version| format!("{} {version}", holder.name))
}

pub(super) fn holder_lines(holder: &Blocker, minecraft: &Minecraft, on: &TextBuilder) -> Vec<String> {
    let numbers = on.software.numbered_as();
    let page = format!("Its {} page", source(holder.key.source));
    let read = read(holder.read_at, on.now);
    let mut lines = Vec::new();
    if !holder.together_with.is_empty() {
        let (with, because) = (list(&holder.together_with, 4), phrases::because(&holder.facts));
        lines.push(format!("does not go together with {with} on {minecraft}{because}"));
        lines.extend(holder.lacks.iter().map(|lack| lack_line(lack, minecraft)));
        return lines;
    }
    let what = match (&holder.pinned, &holder.newest) {
        (Some(_), _) => {
            let object = holder.object.as_deref().unwrap_or(&holder.name);
            let missing = if holder.nearest.is_empty() { "" } else { "does not exist; " };
            format!(
                "{missing}pinned by you (Plugin {object}, `spec.version`){}.",
                phrases::nearest_are(&holder.nearest)
            )
        }
        (None, Some(newest)) if newest.lost => "runs now, and its page has lost it.".to_owned(),
        (None, Some(newest)) => format!("newest, {}.", of(newest.published)),
        (None, None) => format!("has no release that may be used ({read})."),
    };
    let refuses = holder.newest.as_ref().and_then(|newest| newest.refuses.as_ref());
    let listing = holder.newest.as_ref().map(|newest| match (&newest.refuses, &newest.up_to) {
        (Some(unusable), _) => format!(" It {}.", phrases::unusable(unusable)),
        (None, _) if newest.lost => format!(" Nobody says that it runs on {minecraft}."),
        (None, _) if holder.key.source == Source::Url => {
            format!(" Your compatibilityOverride does not name {minecraft}.")
        }
        (None, _) if newest.overridden => format!(
            " {page} lists {minecraft} ({read}), and your compatibilityOverride{} takes that away.",
            holder.object.as_ref().map_or_else(String::new, |object| format!(" on Plugin {object}"))
        ),
        _ if newest.sibling.is_some() => sibling_listed(newest, minecraft, &format!(" {page}"), &read),
        (None, Some(up_to)) if up_to < minecraft => format!(" {page} lists {numbers} up to {up_to} ({read})."),
        (None, Some(_) | None) => format!(" {page} does not list {minecraft} ({read})."),
    });
    lines.push(format!("{what}{}", listing.unwrap_or_default()));
    match &holder.nearly {
        Some(nearly) => {
            let would = match nearly.published {
                Some(_) => format!("{} is listed for {minecraft}", of(nearly.published)),
                None => format!("would do for {minecraft}"),
            };
            lines.push(format!("{} {would}, but {}.", nearly.version, but(&nearly.unusable)));
        }
        None if holder.newest.is_some() && holder.waits_for_a_list() && refuses.is_none() => {
            lines.push(format!("Nobody has said that it fails on {minecraft}."));
        }
        None => {}
    }
    lines.extend(holder.both.as_ref().map(|both| kept_twice(both, minecraft)));
    if !holder.needed_by.is_empty() {
        lines.push(format!("Needed by {}.", list(&holder.needed_by, 4)));
    }
    lines
}

/// The release that would be accepted, and the reason why it is not available.
fn lack_line(lack: &UnmetNeed, minecraft: &Minecraft) -> String {
    let UnmetNeed { name, object, release, unusable } = lack;
    let Some(release) = release else { return format!("There is no release of {name} that would do.") };
    let because = match (unusable.as_ref().or(release.refuses.as_ref()), &release.sibling) {
        (Some(unusable), _) => but(unusable),
        (None, _) if release.overridden => {
            let on = object.as_ref().map_or_else(String::new, |object| format!(" on Plugin {object}"));
            format!("your compatibilityOverride{on} takes {minecraft} away")
        }
        (None, _) if release.lost => "its page has lost it".to_owned(),
        (None, Some(sibling)) => format!("it is listed for {sibling}, its hotfix sibling, and not for {minecraft}"),
        (None, None) => match &release.up_to {
            Some(up_to) if up_to < minecraft => format!("it is listed up to {up_to}"),
            Some(_) | None => format!("it is not listed for {minecraft}"),
        },
    };
    let of = release.published.map_or_else(String::new, |_| format!(", {},", of(release.published)));
    format!("{name} {}{of} would do, but {because}.", release.version)
}

/// States that only a hotfix sibling is listed, and that it does not count.
fn sibling_listed(newest: &ListedRelease, minecraft: &Minecraft, page: &str, read: &str) -> String {
    let sibling = newest.sibling.as_ref().map_or_else(String::new, ToString::to_string);
    format!("{page} lists {sibling}, its hotfix sibling, and not {minecraft} ({read}); `spec.hotfixSiblings` is `Ask`.")
}

/// States that a release is not listed, and the second reason against it.
pub(super) fn kept_twice(both: &IneligibleCandidate, minecraft: &Minecraft) -> String {
    let of = both.published.map_or_else(|| " ".to_owned(), |_| format!(", {}, ", of(both.published)));
    format!("{}{of}is not listed for {minecraft} either, and {}.", both.version, but(&both.unusable))
}

/// The clause after "but".
pub(super) fn but(unusable: &Unusable) -> String {
    match phrases::unusable(unusable) {
        text if text.starts_with("you ") => text,
        text => format!("it {text}"),
    }
}
