//! Pure. Renders the text about the blockers of a Paper version and the evidence.

use super::builder::TextBuilder;
use crate::explanation::{Blocker, IneligibleCandidate, ListedRelease, UnmetNeed};
use crate::model::catalog::Source;
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;
use crate::render::phrases::{self, list, of_date, read_time, sentence, source};

/// Limit of described blockers. The names of further ones follow in one line.
const MAX_BLOCKERS: usize = 8;

/// The blockers and the evidence.
pub(super) fn blocker_table(page: &mut TextBuilder, blockers: &[Blocker], minecraft: &Minecraft) {
    let row = |blocker: &Blocker| (blocker_name(blocker), blocker_lines(blocker, minecraft, page));
    let rows: Vec<_> = blockers.iter().take(MAX_BLOCKERS).map(row).collect();
    blocker_rows(page, &rows, blockers);
}

/// The blockers with the time of their authors' last release.
pub(super) fn silent_blocker_table(page: &mut TextBuilder, blockers: &[Blocker], minecraft: &Minecraft) {
    let row = |blocker: &Blocker| {
        let mut lines = blocker_lines(blocker, minecraft, page);
        lines.extend(blocker.last_release_at.map(|at| format!("{}.", sentence(&phrases::last_release_at(at)))));
        (blocker_name(blocker), lines)
    };
    let rows: Vec<_> = blockers.iter().take(MAX_BLOCKERS).map(row).collect();
    blocker_rows(page, &rows, blockers);
}

fn blocker_rows(page: &mut TextBuilder, rows: &[(String, Vec<String>)], blockers: &[Blocker]) {
    page.table(rows);
    let others: Vec<String> = blockers.iter().skip(rows.len()).map(blocker_name).collect();
    if !others.is_empty() {
        page.line(&format!("  and {} more: {}", others.len(), list(&others, usize::MAX)));
    }
}

pub(super) fn blocker_name(blocker: &Blocker) -> String {
    let version = blocker.pinned.as_ref().or(blocker.newest.as_ref().map(|newest| &newest.version));
    version.map_or_else(|| blocker.name.clone(), |version| format!("{} {version}", blocker.name))
}

pub(super) fn blocker_lines(blocker: &Blocker, minecraft: &Minecraft, on: &TextBuilder) -> Vec<String> {
    let numbers = on.software.version_scheme();
    let page = format!("Its {} page", source(blocker.key.source));
    let read = read_time(blocker.read_at, on.now);
    let mut lines = Vec::new();
    if !blocker.together_with.is_empty() {
        let (with, because) = (list(&blocker.together_with, 4), phrases::facts_clause(&blocker.facts));
        lines.push(format!("conflicts with {with} on {minecraft}{because}"));
        lines.extend(blocker.lacks.iter().map(|need| unmet_need_line(need, minecraft)));
        return lines;
    }
    let state = match (&blocker.pinned, &blocker.newest) {
        (Some(_), _) => {
            let object = blocker.object.as_deref().unwrap_or(&blocker.name);
            let missing = if blocker.nearest.is_empty() { "" } else { "does not exist, " };
            format!(
                "{missing}pinned by you (Plugin {object}, `spec.version`){}.",
                phrases::nearest_are(&blocker.nearest)
            )
        }
        (None, Some(newest)) if newest.unread => "runs now, and its page could not be read.".to_owned(),
        (None, Some(newest)) if newest.delisted => "runs now, but its page no longer lists it.".to_owned(),
        (None, Some(newest)) => format!("newest, {}.", of_date(newest.published)),
        (None, None) => format!("has no eligible release ({read})."),
    };
    let refuses = blocker.newest.as_ref().and_then(|newest| newest.refuses.as_ref());
    let listing = blocker.newest.as_ref().map(|newest| match (&newest.refuses, &newest.up_to) {
        (Some(unusable), _) => format!(" It {}.", phrases::unusable(unusable)),
        (None, _) if newest.delisted => format!(" It is not known to run on {minecraft}."),
        (None, _) if blocker.key.source == Source::Url => {
            format!(" Your compatibilityOverride does not name {minecraft}.")
        }
        (None, _) if newest.overridden => format!(
            " {page} lists {minecraft} ({read}), and your compatibilityOverride{} removes it.",
            blocker.object.as_ref().map_or_else(String::new, |object| format!(" on Plugin {object}"))
        ),
        _ if newest.sibling.is_some() => sibling_listed(newest, minecraft, &format!(" {page}"), &read),
        (None, Some(up_to)) if up_to < minecraft => format!(" {page} lists {numbers} up to {up_to} ({read})."),
        (None, Some(_) | None) => format!(" {page} does not list {minecraft} ({read})."),
    });
    lines.push(format!("{state}{}", listing.unwrap_or_default()));
    match &blocker.nearly {
        Some(nearly) => {
            let would = match nearly.published {
                Some(_) => format!("{} is listed for {minecraft}", of_date(nearly.published)),
                None => format!("would be sufficient for {minecraft}"),
            };
            lines.push(format!("{} {would}, but {}.", nearly.version, but_clause(&nearly.unusable)));
        }
        None if blocker.newest.is_some() && blocker.waits_for_listing() && refuses.is_none() => {
            lines.push(format!("No incompatibility with {minecraft} is known."));
        }
        None => {}
    }
    lines.extend(blocker.both.as_ref().map(|both| second_reason(both, minecraft)));
    if !blocker.needed_by.is_empty() {
        lines.push(format!("Needed by {}.", list(&blocker.needed_by, 4)));
    }
    lines
}

/// The release that would be accepted, and the reason why it is not available.
fn unmet_need_line(need: &UnmetNeed, minecraft: &Minecraft) -> String {
    let UnmetNeed { name, object, release, unusable } = need;
    let Some(release) = release else { return format!("No release of {name} meets the requirement.") };
    let because = match (unusable.as_ref().or(release.refuses.as_ref()), &release.sibling) {
        (Some(unusable), _) => but_clause(unusable),
        (None, _) if release.overridden => {
            let on = object.as_ref().map_or_else(String::new, |object| format!(" on Plugin {object}"));
            format!("your compatibilityOverride{on} removes {minecraft}")
        }
        (None, _) if release.unread => "its page could not be read".to_owned(),
        (None, _) if release.delisted => "its page no longer lists it".to_owned(),
        (None, Some(sibling)) => format!("it is listed for {sibling}, its hotfix sibling, but not for {minecraft}"),
        (None, None) => match &release.up_to {
            Some(up_to) if up_to < minecraft => format!("it is listed up to {up_to}"),
            Some(_) | None => format!("it is not listed for {minecraft}"),
        },
    };
    let of = release.published.map_or_else(String::new, |_| format!(", {},", of_date(release.published)));
    format!("{name} {}{of} would be sufficient, but {because}.", release.version)
}

/// States that only a hotfix sibling is listed, and that it does not count.
fn sibling_listed(newest: &ListedRelease, minecraft: &Minecraft, page: &str, read: &str) -> String {
    let sibling = newest.sibling.as_ref().map_or_else(String::new, ToString::to_string);
    format!(
        "{page} lists {sibling}, its hotfix sibling, but not {minecraft} ({read}), and `spec.hotfixSiblings` is `Ask`."
    )
}

/// States that a release is not listed, and the second reason against it.
pub(super) fn second_reason(both: &IneligibleCandidate, minecraft: &Minecraft) -> String {
    let of = both.published.map_or_else(|| " ".to_owned(), |_| format!(", {}, ", of_date(both.published)));
    format!("{}{of}is not listed for {minecraft} either, and {}.", both.version, but_clause(&both.unusable))
}

/// The clause after "but".
pub(super) fn but_clause(unusable: &Unusable) -> String {
    format!("it {}", phrases::unusable(unusable))
}
