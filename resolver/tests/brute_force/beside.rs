//! Pure. Tests the details of a reason by the rules of the page: facts that no page contains, and since when the
//! authors of a plugin have been silent.

use std::collections::{BTreeMap, BTreeSet};

use resolver::catalog::{Release, Source};
use resolver::compatibility_facts::{FactSource, UsedFact};
use resolver::explain::Blocker;
use resolver::software::Software;
use resolver::version::Minecraft;

use super::needs::{is_called, least_viaversion};
use super::problem::Problem;
use super::properties::objects_of;
use super::rules::Book;
use super::texts;

/// A fact as text: plugin, version, needed plugin, accepted range.
type Word = [String; 4];

fn word(fact: &UsedFact) -> Word {
    [fact.plugin.clone(), fact.version.clone(), fact.needs.clone(), fact.range.to_string()]
}

/// The facts about a release of a member: the other member, the fact, and the accepted releases.
fn words_about<'b>(book: &'b Book<'_>, at: usize, release: &Release) -> Vec<(usize, Word, &'b BTreeSet<&'b str>)> {
    let member = &book.members[at];
    let place = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
    let asks = member.asks[place].iter().filter_map(|ask| {
        let needs = book.members[ask.of].project.name.clone();
        Some((ask.of, [member.project.name.clone(), release.version.clone(), needs, ask.fact.clone()?], &ask.one_of))
    });
    asks.collect()
}

/// Checks that the reported facts are exactly those that make the release incompatible with the version set.
pub(super) fn facts_part(
    book: &Book<'_>,
    set: &BTreeMap<usize, &Release>,
    (at, release): (usize, &Release),
    told: &[UsedFact],
) -> Result<(), String> {
    let mut parting: BTreeSet<Word> = BTreeSet::new();
    for (of, word, one_of) in words_about(book, at, release) {
        if set.get(&of).is_some_and(|there| !one_of.contains(there.id.as_str())) {
            parting.insert(word);
        }
    }
    for (&other, there) in set.iter().filter(|(other, _)| **other != at) {
        for (of, word, one_of) in words_about(book, other, there) {
            if of == at && !one_of.contains(release.id.as_str()) {
                parting.insert(word);
            }
        }
    }
    let words: BTreeSet<Word> = told.iter().map(word).collect();
    if words == parting { Ok(()) } else { Err(format!("{words:?} are told, and {parting:?} part them")) }
}

/// Checks that a fact is the last word about its two plugins, and comes from the reported source.
pub(super) fn is_said(problem: &Problem, book: &Book<'_>, fact: &UsedFact) -> Result<(), String> {
    let members = || book.members.iter().enumerate().filter(|(_, member)| member.project.name == fact.plugin);
    let counts = members().any(|(at, member)| {
        let of_it = member.usable.iter().filter(|release| release.version == fact.version);
        of_it.flat_map(|release| words_about(book, at, release)).any(|(_, told, _)| told == word(fact))
    });
    let catalog = &problem.catalog;
    let is = |name: &str, wanted: &str| {
        let mut projects = catalog.projects.iter().filter(|project| project.name == name);
        projects.any(|project| is_called(project, wanted))
            || objects_of(problem, name).iter().any(|object| object.eq_ignore_ascii_case(wanted))
    };
    let said = match &fact.says {
        FactSource::Cluster { source, date } => problem.request.facts.all().iter().any(|of| {
            (&of.source, &of.date, &of.requires.version) == (source, date, &fact.range)
                && is(&fact.plugin, &of.plugin)
                && is(&fact.needs, &of.requires.plugin)
                && texts::in_range(of.releases.as_str(), &fact.version)
        }),
        FactSource::Plugin { object } => {
            let mut own = problem.request.plugins.iter().filter(|wish| wish.object == *object);
            let says = |wish: &resolver::request::PluginRequest| {
                let mut lines = wish.requires.iter();
                lines.any(|line| line.version == fact.range && is(&fact.needs, &line.plugin))
            };
            objects_of(problem, &fact.plugin).contains(object) && own.any(says)
        }
        // `words_about` knows the built-in tables. Only the table of this plugin is read here.
        FactSource::BuiltIn { .. } if fact.plugin == "ViaBackwards" => {
            least_viaversion(&fact.version).is_some_and(|least| fact.range.to_string() == format!(">={least}"))
        }
        FactSource::BuiltIn { .. } => true,
    };
    if counts && said { Ok(()) } else { Err(format!("{fact:?}: counts {counts}, said {said}")) }
}

/// Checks since when the authors of a blocker are reported as silent, in cases where they have to act.
pub(super) fn silence_is_true(problem: &Problem, holder: &Blocker, minecraft: &Minecraft) -> Result<(), String> {
    let project = problem.catalog.projects.iter().find(|project| project.key == holder.key).unwrap();
    let dates = project.releases.iter().filter_map(|release| release.published);
    let last = dates.filter(|date| *date <= problem.now).max();
    let otherwise = holder.pinned.is_some()
        || holder.nearly.is_some()
        || !holder.together_with.is_empty()
        || holder.newest.as_ref().is_some_and(|newest| newest.refuses.is_some() || newest.overridden);
    let expected = last.filter(|_| !otherwise);
    if holder.silent_since != expected {
        return Err(format!("{} is silent since {expected:?}, not {:?}", holder.name, holder.silent_since));
    }
    // A Modrinth page lists no versions of a proxy.
    let unlistable = problem.request.software == Software::Velocity && holder.key.source != Source::Hangar;
    if otherwise || unlistable || holder.newest.is_none() {
        return Ok(());
    }
    // Adding the version to the list must be sufficient.
    let mut listed = problem.clone();
    for wish in listed.request.plugins.iter_mut().filter(|wish| holder.object.as_ref() == Some(&wish.object)) {
        wish.compatibility = None;
    }
    let releases = listed.catalog.projects.iter_mut().filter(|other| other.id == project.id);
    releases.flat_map(|project| &mut project.releases).for_each(|release| release.minecraft.push(minecraft.clone()));
    let Ok(book) = Book::open(&listed.catalog, &listed.request, listed.now) else { return Ok(()) };
    let paper = book.papers.iter().position(|paper| paper.minecraft == minecraft).unwrap();
    let at = book.members.iter().position(|member| member.project.id == project.id).unwrap();
    let goes = |release: &&Release| book.meets_pin(at, release) && book.listed(at, release, paper);
    if book.members[at].usable.iter().any(goes) {
        Ok(())
    } else {
        Err(format!("{} lacks more than a line on its list", holder.name))
    }
}
