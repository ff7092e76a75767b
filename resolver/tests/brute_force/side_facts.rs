//! Pure. Checks details of a reason by the rules of `docs/concepts/solve.md`: facts that no page contains, and the date
//! of the last release of a plugin.

use std::collections::{BTreeMap, BTreeSet};

use resolver::explanation::Blocker;
use resolver::model::catalog::{Release, Source};
use resolver::model::compatibility_facts::{FactSource, UsedFact};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;

use super::dependencies::{is_named, least_viaversion};
use super::problem::Problem;
use super::properties::objects_of;
use super::rules::ServerRules;
use super::texts;

/// A fact as text: plugin, version, required plugin, accepted range.
type FactKey = [String; 4];

fn fact_key(fact: &UsedFact) -> FactKey {
    [fact.plugin.clone(), fact.version.clone(), fact.needs.clone(), fact.range.to_string()]
}

/// The facts about a release of a member: the other member, the fact, and the accepted releases.
fn facts_about_release<'b>(
    rules: &'b ServerRules<'_>,
    at: usize,
    release: &Release,
) -> Vec<(usize, FactKey, &'b BTreeSet<&'b str>)> {
    let member = &rules.members[at];
    let index = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
    let facts = member.requirements[index].iter().filter_map(|requirement| {
        let needs = rules.members[requirement.target].project.name.clone();
        Some((
            requirement.target,
            [member.project.name.clone(), release.version.clone(), needs, requirement.fact.clone()?],
            &requirement.one_of,
        ))
    });
    facts.collect()
}

/// Checks that the reported facts are exactly those that make the release incompatible with the version set.
pub(super) fn check_conflicting_facts(
    rules: &ServerRules<'_>,
    version_set: &BTreeMap<usize, &Release>,
    (at, release): (usize, &Release),
    reported: &[UsedFact],
) -> Result<(), String> {
    let mut conflicting: BTreeSet<FactKey> = BTreeSet::new();
    for (target, key, one_of) in facts_about_release(rules, at, release) {
        if version_set.get(&target).is_some_and(|installed| !one_of.contains(installed.id.as_str())) {
            conflicting.insert(key);
        }
    }
    for (&other, installed) in version_set.iter().filter(|(other, _)| **other != at) {
        for (target, key, one_of) in facts_about_release(rules, other, installed) {
            if target == at && !one_of.contains(release.id.as_str()) {
                conflicting.insert(key);
            }
        }
    }
    let reported_keys: BTreeSet<FactKey> = reported.iter().map(fact_key).collect();
    if reported_keys == conflicting {
        Ok(())
    } else {
        Err(format!("the facts {reported_keys:?} are reported, but {conflicting:?} cause the conflict"))
    }
}

/// Checks that a fact is in effect, which means that no other fact about its two plugins overrides it, and that the
/// reported source states it.
pub(super) fn check_fact(problem: &Problem, rules: &ServerRules<'_>, fact: &UsedFact) -> Result<(), String> {
    let members = || rules.members.iter().enumerate().filter(|(_, member)| member.project.name == fact.plugin);
    let is_in_effect = members().any(|(at, member)| {
        let matching = member.usable.iter().filter(|release| release.version == fact.version);
        matching.flat_map(|release| facts_about_release(rules, at, release)).any(|(_, key, _)| key == fact_key(fact))
    });
    let catalog = &problem.catalog;
    let is = |name: &str, wanted: &str| {
        let mut projects = catalog.projects.iter().filter(|project| project.name == name);
        projects.any(|project| is_named(project, wanted))
            || objects_of(problem, name).iter().any(|object| object.eq_ignore_ascii_case(wanted))
    };
    let has_source = match &fact.says {
        FactSource::Cluster { source, date } => problem.request.facts.all().iter().any(|cluster_fact| {
            (&cluster_fact.source, &cluster_fact.date, &cluster_fact.requires.version) == (source, date, &fact.range)
                && is(&fact.plugin, &cluster_fact.plugin)
                && is(&fact.needs, &cluster_fact.requires.plugin)
                && texts::in_range(cluster_fact.releases.as_str(), &fact.version)
        }),
        FactSource::Plugin { object } => {
            let mut of_object =
                problem.request.plugins.iter().filter(|plugin_request| plugin_request.object == *object);
            let states_fact = |plugin_request: &resolver::model::request::PluginRequest| {
                let mut lines = plugin_request.requires.iter();
                lines.any(|requirement| requirement.version == fact.range && is(&fact.needs, &requirement.plugin))
            };
            objects_of(problem, &fact.plugin).contains(object) && of_object.any(states_fact)
        }
        // `facts_about_release` already checks built-in facts. Only the table of this plugin is read again here.
        FactSource::BuiltIn { .. } if fact.plugin == "ViaBackwards" => {
            least_viaversion(&fact.version).is_some_and(|least| fact.range.to_string() == format!(">={least}"))
        }
        FactSource::BuiltIn { .. } => true,
    };
    if is_in_effect && has_source {
        Ok(())
    } else {
        Err(format!("{fact:?}: in effect: {is_in_effect}, stated by the source: {has_source}"))
    }
}

/// Checks the reported date of a blocker's last release. The date is reported if the authors of the plugin have to act.
pub(super) fn check_last_release_date(
    problem: &Problem,
    blocker: &Blocker,
    minecraft: &Minecraft,
) -> Result<(), String> {
    let project = problem.catalog.projects.iter().find(|project| project.key == blocker.key).unwrap();
    let dates = project.releases.iter().filter_map(|release| release.published);
    let last = dates.filter(|date| *date <= problem.now).max();
    let has_other_reason = blocker.pinned.is_some()
        || blocker.nearly.is_some()
        || !blocker.together_with.is_empty()
        || blocker.newest.as_ref().is_some_and(|newest| newest.refuses.is_some() || newest.overridden);
    let expected = last.filter(|_| !has_other_reason);
    if blocker.last_release_at != expected {
        return Err(format!(
            "the last release of {} is from {expected:?}, but {:?} is reported",
            blocker.name, blocker.last_release_at
        ));
    }
    // A page on Modrinth cannot list versions of a proxy.
    let unlistable = problem.request.software == Software::Velocity && blocker.key.source != Source::Hangar;
    if has_other_reason || unlistable || blocker.newest.is_none() {
        return Ok(());
    }
    // A release that lists this Minecraft version must then be sufficient.
    let mut listed = problem.clone();
    for plugin_request in listed
        .request
        .plugins
        .iter_mut()
        .filter(|plugin_request| blocker.object.as_ref() == Some(&plugin_request.object))
    {
        plugin_request.compatibility = None;
    }
    let releases = listed.catalog.projects.iter_mut().filter(|other| other.id == project.id);
    releases.flat_map(|project| &mut project.releases).for_each(|release| release.minecraft.push(minecraft.clone()));
    let Ok(rules) = ServerRules::new(&listed.catalog, &listed.request, listed.now) else { return Ok(()) };
    let paper = rules.papers.iter().position(|paper| paper.minecraft == minecraft).unwrap();
    let at = rules.members.iter().position(|member| member.project.id == project.id).unwrap();
    let is_allowed = |release: &&Release| rules.meets_pin(at, release) && rules.is_listed(at, release, paper);
    if rules.members[at].usable.iter().any(is_allowed) {
        Ok(())
    } else {
        Err(format!("{} is not allowed even if all its releases list {minecraft}", blocker.name))
    }
}
