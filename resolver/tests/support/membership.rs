//! Pure. Computes the members of a solve and the usable releases of each, by the rules of `docs/concepts/solve.md`. For
//! tests only.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use resolver::model::catalog::{Catalog, Channel, Project, Release};
use resolver::model::request::{Hold, OverrideMode, PluginRequest, Request, Unlisted, VersionRequest};
use resolver::model::software::Software;

use super::dependencies::Needs;
use super::jar_identification::known_files;
use super::loading::{has_list, loads};
use super::name_rules::NameOwners;
use super::paper_rules::{can_use_java, is_verifiable};
use super::rules::{
    Member, Terms, Unknown, age, applies_to, delisted, in_order, is_running, project_index, publication_time,
    running_releases,
};
use super::texts::{self, Key};
use super::unmanaged_jars::{self, PageRequirement, RetainedProjects};

/// The Plugin objects and the terms of the requested projects, by index.
pub(super) type RequestedProjects<'a> = BTreeMap<usize, (Vec<&'a str>, Terms<'a>)>;

/// The projects that each project needs, by index.
type Edges = BTreeMap<usize, BTreeSet<usize>>;

/// Input of the computation.
#[derive(Clone, Copy)]
pub(super) struct Membership<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) request: &'a Request,
    pub(super) now: Timestamp,
}

impl<'a> Membership<'a> {
    /// All members in their order, and the requirements on the pages of unmanaged JARs.
    pub(super) fn compute(self) -> Result<(Vec<Member<'a>>, Vec<PageRequirement<'a>>), Unknown> {
        let requested = self.requested()?;
        let mut needs = Needs {
            catalog: self.catalog,
            request: self.request,
            requested: requested.keys().copied().collect(),
            own_requirements: requested.iter().map(|(index, (_, terms))| (*index, terms.requires)).collect(),
            names_in_jars: None,
            now: self.now,
            files: Vec::new(),
        };
        let wants = unmanaged_jars::unmet_needs(&needs, &requested)?;
        let retained = unmanaged_jars::retained_plugins(&needs, &requested, &wants)?;
        let installed = requested.keys().chain(retained.keys()).copied().collect();
        needs.files = known_files(self.catalog, self.request, &installed);
        // A JAR names the plugins that it requires. The members are first computed without these names, and the names
        // are then resolved among those members.
        let (terms, _) = self.expand_dependencies(&requested, &retained, &needs)?;
        needs.names_in_jars = Some(NameOwners::from_members(&needs, &terms));
        let (terms, edges) = self.expand_dependencies(&requested, &retained, &needs)?;
        let mut ranked: Vec<usize> = requested.keys().copied().collect();
        ranked.sort_by_key(|index| requested[index].0[0]);
        ranked.extend(self.dependencies_in_order(&terms, &requested, &edges));
        let mut members: Vec<Member<'a>> = ranked
            .iter()
            .map(|&index| {
                let terms = terms[&index].clone();
                let usable = self.evaluate(index, &terms, &needs).usable;
                let objects = requested.get(&index).map(|(objects, _)| objects.clone()).unwrap_or_default();
                let needed_by_files = retained.get(&index).cloned().unwrap_or_default();
                let project = &self.catalog.projects[index];
                Member { index, project, objects, needed_by_files, terms, usable, requirements: Vec::new() }
            })
            .collect();
        let available: Vec<Vec<&'a Release>> =
            members.iter().map(|member| self.published_releases(member.index)).collect();
        for member in &mut members {
            member.requirements = member
                .usable
                .iter()
                .map(|release| needs.requirements(&ranked, &available, (member.index, &member.terms), release))
                .collect();
        }
        let by_pages = unmanaged_jars::page_requirements(&needs, wants, &members);
        Ok((members, by_pages))
    }

    /// Adds the projects that eligible releases need, with the shortest delay and the least stable channel of their
    /// dependents. Repeats until the terms no longer change.
    fn expand_dependencies(
        self,
        requested: &RequestedProjects<'a>,
        retained: &RetainedProjects,
        needs: &Needs<'a>,
    ) -> Result<(BTreeMap<usize, Terms<'a>>, Edges), Unknown> {
        let mut terms: BTreeMap<usize, Terms<'a>> =
            requested.iter().map(|(index, (_, terms))| (*index, terms.clone())).collect();
        terms.extend(retained.keys().map(|index| {
            let delay_group = self.delay_group(*index, requested);
            (*index, Terms { delay_group, ..unmanaged_jars::retained_terms(self.request) })
        }));
        loop {
            let mut loosened = terms.clone();
            let mut edges = Edges::new();
            for (index, own_terms) in &terms {
                let evaluated = self.evaluate(*index, own_terms, needs);
                let wanted = needs.needed_projects(*index, own_terms, &evaluated.eligible)?;
                let channel = self.dependency_channel(*index, own_terms, evaluated.channel);
                for needed in wanted.iter().filter(|needed| !requested.contains_key(needed)) {
                    let needed_terms = loosened.entry(*needed).or_insert_with(|| Terms {
                        software: own_terms.software,
                        channel,
                        delay: own_terms.delay,
                        compatibility: None,
                        pin: None,
                        jars: vec![&[]],
                        requires: &[],
                        may_downgrade: own_terms.may_downgrade,
                        held: false,
                        delay_group: self.delay_group(*needed, requested),
                    });
                    needed_terms.channel = needed_terms.channel.min(channel);
                    needed_terms.delay = needed_terms.delay.min(own_terms.delay);
                    needed_terms.may_downgrade |= own_terms.may_downgrade;
                }
                edges.insert(*index, wanted);
            }
            if loosened == terms {
                return Ok((terms, edges));
            }
            terms = loosened;
        }
    }

    fn requested(self) -> Result<RequestedProjects<'a>, Unknown> {
        let mut groups: BTreeMap<usize, Vec<&'a PluginRequest>> = BTreeMap::new();
        for plugin_request in &self.request.plugins {
            match project_index(self.catalog, &plugin_request.key) {
                Some(index) => groups.entry(index).or_default().push(plugin_request),
                None if self.waits_for_page(plugin_request) => {}
                None => return Err(Unknown),
            }
        }
        let decided = groups.into_iter().map(|(index, mut plugin_requests)| {
            plugin_requests.sort_by_key(|plugin_request| &plugin_request.object);
            let pin = |plugin_request: &&'a PluginRequest| match &plugin_request.version {
                VersionRequest::Pin { version } => Some(version.as_str()),
                VersionRequest::Latest | VersionRequest::Auto => None,
            };
            // The Plugins whose selectors name the most labels and expressions.
            let highest = plugin_requests.iter().map(|plugin_request| selector_parts(plugin_request)).max().unwrap();
            let is_specific = |plugin_request: &PluginRequest| selector_parts(plugin_request) == highest;
            let specific = plugin_requests.iter().copied().filter(|plugin_request| is_specific(plugin_request));
            let mut decides = specific.clone().next().unwrap();
            for plugin_request in specific {
                decides = match (pin(&decides), pin(&plugin_request)) {
                    (Some(_), None) => plugin_request,
                    (Some(best), Some(this)) if Key::parse(this) > Key::parse(best) => plugin_request,
                    _ => decides,
                };
            }
            // A hold without a running release has no effect.
            let holds = |plugin_request: &&'a PluginRequest| {
                plugin_request.hold == Some(Hold::Server)
                    || (plugin_request.hold.is_some() && is_specific(plugin_request))
            };
            let held = plugin_requests.iter().any(holds)
                && running_releases(self.request, &self.catalog.projects[index]).next().is_some();
            let terms = Terms {
                software: self.request.software,
                channel: decides.channel,
                delay: decides.delay,
                compatibility: decides.compatibility.as_ref(),
                pin: pin(&decides).filter(|_| !held),
                jars: plugin_requests.iter().map(|plugin_request| plugin_request.jars.as_slice()).collect(),
                requires: &decides.requires,
                may_downgrade: decides.allow_downgrade,
                held,
                delay_group: Vec::new(),
            };
            (index, (plugin_requests.iter().map(|plugin_request| plugin_request.object.as_str()).collect(), terms))
        });
        let mut requested: RequestedProjects<'a> = decided.collect();
        let indexes: Vec<usize> = requested.keys().copied().collect();
        for index in indexes {
            let delay_group = self.delay_group(index, &requested);
            requested.get_mut(&index).unwrap().1.delay_group = delay_group;
        }
        Ok(requested)
    }

    /// Whether a plugin is left out until its page can be read: the server runs, and only releases of other plugins.
    fn waits_for_page(self, plugin_request: &PluginRequest) -> bool {
        let Some(running) = &self.request.running else { return false };
        let requested = self.request.plugins.iter().map(|other| &other.key);
        let others: Vec<usize> =
            requested.chain(&running.unrequested).filter_map(|key| project_index(self.catalog, key)).collect();
        let runs_other = |id: &String| {
            let of_project = |index: &usize| running_releases(self.request, &self.catalog.projects[*index]);
            others.iter().flat_map(of_project).any(|release| release.id == *id)
        };
        self.catalog.unread_reason(&plugin_request.key).is_some() && running.releases.iter().all(runs_other)
    }

    /// The other requested plugins of a project's delay group, which is built in or declared by a Plugin.
    fn delay_group(self, index: usize, requested: &RequestedProjects<'a>) -> Vec<(usize, SignedDuration)> {
        let projects = &self.catalog.projects;
        let means = |name: &str, at: usize| {
            let project = &projects[at];
            let aliases = [&project.name, &project.id, &project.key.project];
            aliases.into_iter().any(|alias| alias.eq_ignore_ascii_case(name))
                || requested[&at].0.iter().any(|object| object.eq_ignore_ascii_case(name))
        };
        let declared_groups: Vec<BTreeSet<usize>> = self
            .request
            .plugins
            .iter()
            .map(|plugin_request| {
                let named = plugin_request
                    .delay_together
                    .iter()
                    .filter_map(|name| requested.keys().find(|at| means(name, **at)));
                project_index(self.catalog, &plugin_request.key).into_iter().chain(named.copied()).collect()
            })
            .collect();
        let belongs = |other: usize| {
            texts::are_grouped(&projects[index].name, &projects[other].name)
                || declared_groups.iter().any(|group| group.contains(&index) && group.contains(&other))
        };
        let others = requested.iter().filter(|(other, _)| **other != index && belongs(**other));
        others.map(|(other, (_, terms))| (*other, terms.delay)).collect()
    }

    /// All published releases, oldest first.
    fn published_releases(self, index: usize) -> Vec<&'a Release> {
        published_releases(self.request, &self.catalog.projects[index], self.now)
    }

    fn evaluate(self, index: usize, terms: &Terms<'_>, needs: &Needs<'a>) -> ProjectEligibility<'a> {
        let available = self.published_releases(index);
        let source = self.catalog.projects[index].key.source;
        let is_accepted = |release: &Release| release.refused.is_none() || terms.software == Software::Velocity;
        let sound = |release: &Release| {
            let starts = |java| can_use_java(self.catalog, self.request, self.now, java);
            loads(terms, source, release) != Some(false)
                && is_accepted(release)
                && terms.files(release).is_some_and(|files| {
                    files.iter().all(|file| is_verifiable(file.file) && file.java.is_none_or(starts))
                })
        };
        // A delisted release does not affect the channel of the others.
        let delisted = delisted(self.request, &self.catalog.projects[index]).map(|delisted| &delisted.id);
        let on_page = available.iter().filter(|release| delisted != Some(&release.id));
        let best = on_page.filter(|release| sound(release)).map(|release| release.channel).max();
        let channel = best.map_or(terms.channel, |best| best.min(terms.channel));
        let on_channel = |release: &Release| sound(release) && release.channel >= channel;
        // Its own patches, published within its delay.
        let has_patch = |release: &Release, next: &Release| {
            let ends = publication_time(release).checked_add(terms.delay).unwrap_or(Timestamp::MAX);
            (publication_time(release)..ends).contains(&publication_time(next))
                && texts::is_patch_of(&next.version, &release.version)
        };
        let patches = |release: &Release| -> Vec<&Release> {
            available.iter().copied().filter(|next| has_patch(release, next) && on_channel(next)).collect()
        };
        let by_rule = |release: &Release| {
            let Ok(eligible_at) = publication_time(release).checked_add(terms.delay) else { return false };
            let first_patch = patches(release).into_iter().min_by_key(|patch| publication_time(patch));
            let replaced = first_patch.is_some_and(|patch| {
                let is_patch = available.iter().any(|before| has_patch(before, release) && on_channel(before));
                patches(patch).is_empty() && !is_patch
            });
            let within_one_hour = |other: &Release| {
                let apart = publication_time(other).duration_since(publication_time(release)).abs();
                other.channel == release.channel
                    && publication_time(other) <= self.now
                    && apart <= SignedDuration::from_hours(1)
            };
            let is_group_delayed = terms.delay_group.iter().any(|(other, delay)| {
                let releases = self.catalog.projects[*other].releases.iter();
                let mut companions = releases.filter(|release| within_one_hour(release));
                companions.any(|other| publication_time(other).checked_add(*delay).unwrap() > self.now)
            });
            let stated = terms.compatibility.is_some_and(|compatibility| {
                compatibility.mode != OverrideMode::Remove && applies_to(compatibility, release)
            });
            // A plugin from a URL has no page that could have a list.
            let has_page = release.published.is_some();
            let unlisted = self.request.unlisted == Unlisted::Refuse
                && has_page
                && !has_list(terms.software, source, release)
                && !stated;
            let is_unstated = loads(terms, source, release).is_none() && !stated;
            let is_delayed = eligible_at > self.now || replaced || is_group_delayed;
            release.channel >= channel && !is_delayed && !unlisted && !is_unstated
        };
        let exempt = |release: &Release| {
            is_running(self.request, release) || terms.pin.is_some_and(|pin| texts::pin_matches(pin, &release.version))
        };
        // A running release that the software loads, with a verifiable file, is kept or upgraded. A missing Java, list
        // or dependency is no reason for a downgrade.
        let is_still_loaded = |release: &&&Release| {
            let has_unmatched_jars = || terms.files(release).is_none() && release.file.is_some();
            let has_all =
                || terms.files(release).is_some_and(|files| files.iter().all(|file| is_verifiable(file.file)));
            let loaded = loads(terms, source, release) != Some(false);
            is_running(self.request, release) && loaded && (has_unmatched_jars() || has_all() && is_accepted(release))
        };
        let stays_above = available.iter().rev().find(is_still_loaded).filter(|_| !terms.may_downgrade);
        let position = |release: &Release| available.iter().position(|other| other.id == release.id);
        let below = |release: &Release| {
            stays_above.is_some_and(|least| {
                let is_delisted = delisted == Some(&least.id);
                age(release) != age(least) && position(release) < position(least)
                    || !is_delisted && texts::is_lower(&release.version, &least.version)
            })
        };
        let eligible: Vec<&'a Release> = (available.iter().copied())
            .filter(|release| sound(release) && (!terms.held || is_running(self.request, release)))
            .filter(|release| exempt(release) || by_rule(release) && !below(release))
            .filter(|release| needs.is_compatible_with_files(index, release))
            .collect();
        let usable = eligible.iter().copied().filter(|release| needs.can_be_met(index, terms, release)).collect();
        ProjectEligibility { channel, eligible, usable }
    }

    /// The channel for dependencies of this member: its own channel, or that of its pinned release.
    fn dependency_channel(self, index: usize, terms: &Terms<'_>, channel: Channel) -> Channel {
        let Some(pin) = terms.pin else { return channel };
        let pinned =
            self.published_releases(index).into_iter().filter(|release| texts::pin_matches(pin, &release.version));
        pinned.map(|release| release.channel).min().map_or(channel, |pinned| pinned.min(channel))
    }

    /// The unrequested projects, dependents before their dependencies. Of several candidates, or in a cycle, the first
    /// by name.
    fn dependencies_in_order(
        self,
        terms: &BTreeMap<usize, Terms<'a>>,
        requested: &RequestedProjects<'a>,
        edges: &Edges,
    ) -> Vec<usize> {
        let mut waiting: Vec<usize> = terms.keys().copied().filter(|index| !requested.contains_key(index)).collect();
        let project = |index: &usize| &self.catalog.projects[*index];
        waiting.sort_by_key(|index| (&project(index).name, &project(index).id));
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let needed = |index: &usize| waiting.iter().any(|other| other != index && edges[other].contains(index));
            let next = waiting.iter().position(|index| !needed(index)).unwrap_or(0);
            order.push(waiting.remove(next));
        }
        order
    }
}

/// All published releases of a project, oldest first, and the running release if it is delisted.
pub(super) fn published_releases<'a>(request: &'a Request, project: &'a Project, now: Timestamp) -> Vec<&'a Release> {
    let is_published = |release: &&Release| publication_time(release) <= now || is_running(request, release);
    in_order(project.releases.iter().chain(delisted(request, project)).filter(is_published))
}

/// The releases of a project that may be chosen, and the channel that decides on them.
struct ProjectEligibility<'a> {
    channel: Channel,
    /// The releases whose channel, age, files and software are allowed and that are compatible with unmanaged JARs.
    eligible: Vec<&'a Release>,
    /// The eligible releases whose dependencies can be installed.
    usable: Vec<&'a Release>,
}

/// The number of labels and expressions in the selector of a Plugin.
fn selector_parts(plugin_request: &PluginRequest) -> usize {
    let selector = plugin_request.selector.as_deref().unwrap_or("{}");
    let selector: serde_json::Value = serde_json::from_str(selector).unwrap();
    let labels = selector["matchLabels"].as_object().map_or(0, serde_json::Map::len);
    labels + selector["matchExpressions"].as_array().map_or(0, Vec::len)
}
