//! Pure. Computes the members of a solve and the usable releases of each, by the rules of `docs/concepts/solve.md`. For
//! tests only.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use resolver::catalog::{Catalog, Channel, Project, Release};
use resolver::request::{OverrideMode, PluginRequest, Request, Unlisted, VersionRequest};

use super::called::Called;
use super::known_files::known_files;
use super::loading::{has_list, loads};
use super::needs::Needs;
use super::own_jars::{self, ByPage, Kept};
use super::papers::{starts_on, verifiable};
use super::rules::{
    Member, Terms, Unknown, age, all_that_runs, is_about, lost, place_in_order, place_of, published, runs,
};
use super::texts::{self, Key};

/// The objects and the terms of the requested projects, by place.
pub(super) type Asked<'a> = BTreeMap<usize, (Vec<&'a str>, Terms<'a>)>;

/// Which project needs which, by place.
type Edges = BTreeMap<usize, BTreeSet<usize>>;

/// Input of the computation.
#[derive(Clone, Copy)]
pub(super) struct Membership<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) request: &'a Request,
    pub(super) now: Timestamp,
}

impl<'a> Membership<'a> {
    /// All members in their order, and the requirements of files' pages.
    pub(super) fn settle(self) -> Result<(Vec<Member<'a>>, Vec<ByPage<'a>>), Unknown> {
        let asked = self.asked()?;
        let mut needs = Needs {
            catalog: self.catalog,
            request: self.request,
            asked: asked.keys().copied().collect(),
            own: asked.iter().map(|(place, (_, terms))| (*place, terms.requires)).collect(),
            called: None,
            now: self.now,
            files: Vec::new(),
        };
        let wants = own_jars::wants(&needs, &asked)?;
        let kept = own_jars::kept(&needs, &asked, &wants)?;
        let there = asked.keys().chain(kept.keys()).copied().collect();
        needs.files = known_files(self.catalog, self.request, &there);
        // A JAR contains only names. The members are computed without them first, and the names are resolved among
        // those.
        let (terms, _) = self.close(&asked, &kept, &needs)?;
        needs.called = Some(Called::among(&needs, &terms));
        let (terms, edges) = self.close(&asked, &kept, &needs)?;
        let mut ranked: Vec<usize> = asked.keys().copied().collect();
        ranked.sort_by_key(|place| asked[place].0[0]);
        ranked.extend(self.dependencies_in_order(&terms, &asked, &edges));
        let mut members: Vec<Member<'a>> = ranked
            .iter()
            .map(|&place| {
                let terms = terms[&place].clone();
                let usable = self.judge(place, &terms, &needs).usable;
                let objects = asked.get(&place).map(|(objects, _)| objects.clone()).unwrap_or_default();
                let kept_for = kept.get(&place).cloned().unwrap_or_default();
                let project = &self.catalog.projects[place];
                Member { place, project, objects, kept_for, terms, usable, asks: Vec::new() }
            })
            .collect();
        let out: Vec<Vec<&'a Release>> = members.iter().map(|member| self.out(member.place)).collect();
        for member in &mut members {
            member.asks = member
                .usable
                .iter()
                .map(|release| needs.asks(&ranked, &out, (member.place, &member.terms), release))
                .collect();
        }
        let by_pages = own_jars::by_pages(&needs, wants, &members);
        Ok((members, by_pages))
    }

    /// Adds the projects that usable releases need, with the youngest age and the least stable channel of their
    /// dependents. Repeats until the terms no longer change.
    fn close(
        self,
        asked: &Asked<'a>,
        kept: &Kept,
        needs: &Needs<'a>,
    ) -> Result<(BTreeMap<usize, Terms<'a>>, Edges), Unknown> {
        let mut terms: BTreeMap<usize, Terms<'a>> =
            asked.iter().map(|(place, (_, terms))| (*place, terms.clone())).collect();
        terms.extend(kept.keys().map(|place| {
            let together = self.together(*place, asked);
            (*place, Terms { together, ..own_jars::terms_of_kept(self.request) })
        }));
        loop {
            let mut loosened = terms.clone();
            let mut edges = Edges::new();
            for (place, own) in &terms {
                let judged = self.judge(*place, own, needs);
                let wanted = needs.by(*place, own, &judged.ripe)?;
                let channel = self.as_unstable_as(*place, own, judged.channel);
                for needed in wanted.iter().filter(|needed| !asked.contains_key(needed)) {
                    let known = loosened.entry(*needed).or_insert_with(|| Terms {
                        software: own.software,
                        channel,
                        delay: own.delay,
                        says: None,
                        pin: None,
                        jars: vec![&[]],
                        requires: &[],
                        may_go_down: own.may_go_down,
                        held: false,
                        together: self.together(*needed, asked),
                    });
                    known.channel = known.channel.min(channel);
                    known.delay = known.delay.min(own.delay);
                    known.may_go_down |= own.may_go_down;
                }
                edges.insert(*place, wanted);
            }
            if loosened == terms {
                return Ok((terms, edges));
            }
            terms = loosened;
        }
    }

    fn asked(self) -> Result<Asked<'a>, Unknown> {
        let mut groups: BTreeMap<usize, Vec<&'a PluginRequest>> = BTreeMap::new();
        for wish in &self.request.plugins {
            groups.entry(place_of(self.catalog, &wish.key).ok_or(Unknown)?).or_default().push(wish);
        }
        let decided = groups.into_iter().map(|(place, mut wishes)| {
            wishes.sort_by_key(|wish| &wish.object);
            let pin = |wish: &&'a PluginRequest| match &wish.version {
                VersionRequest::Pin { version } => Some(version.as_str()),
                VersionRequest::Latest | VersionRequest::Auto => None,
            };
            let mut decides = wishes[0];
            for wish in &wishes {
                decides = match (pin(&decides), pin(wish)) {
                    (Some(_), None) => wish,
                    (Some(best), Some(this)) if Key::of(this) > Key::of(best) => wish,
                    _ => decides,
                };
            }
            // A hold without a running release has no effect.
            let held = wishes.iter().any(|wish| wish.hold.is_some())
                && all_that_runs(self.request, &self.catalog.projects[place]).next().is_some();
            let terms = Terms {
                software: self.request.software,
                channel: decides.channel,
                delay: decides.delay,
                says: decides.compatibility.as_ref(),
                pin: pin(&decides).filter(|_| !held),
                jars: wishes.iter().map(|wish| wish.jars.as_slice()).collect(),
                requires: &decides.requires,
                may_go_down: decides.allow_downgrade,
                held,
                together: Vec::new(),
            };
            (place, (wishes.iter().map(|wish| wish.object.as_str()).collect(), terms))
        });
        let mut asked: Asked<'a> = decided.collect();
        let places: Vec<usize> = asked.keys().copied().collect();
        for place in places {
            let together = self.together(place, &asked);
            asked.get_mut(&place).unwrap().1.together = together;
        }
        Ok(asked)
    }

    /// Requested plugins that belong to a project: by the built-in groups, or because a Plugin declares it, in either
    /// direction.
    fn together(self, place: usize, asked: &Asked<'a>) -> Vec<(usize, SignedDuration)> {
        let projects = &self.catalog.projects;
        let means = |name: &str, at: usize| {
            let project = &projects[at];
            let own = [&project.name, &project.id, &project.key.project];
            own.into_iter().any(|own| own.eq_ignore_ascii_case(name))
                || asked[&at].0.iter().any(|object| object.eq_ignore_ascii_case(name))
        };
        let said: Vec<BTreeSet<usize>> = self
            .request
            .plugins
            .iter()
            .map(|wish| {
                let named = wish.delay_together.iter().filter_map(|name| asked.keys().find(|at| means(name, **at)));
                place_of(self.catalog, &wish.key).into_iter().chain(named.copied()).collect()
            })
            .collect();
        let belongs = |other: usize| {
            texts::belong_together(&projects[place].name, &projects[other].name)
                || said.iter().any(|group| group.contains(&place) && group.contains(&other))
        };
        let others = asked.iter().filter(|(other, _)| **other != place && belongs(**other));
        others.map(|(other, (_, terms))| (*other, terms.delay)).collect()
    }

    /// All published releases, oldest first.
    fn out(self, place: usize) -> Vec<&'a Release> {
        out(self.request, &self.catalog.projects[place], self.now)
    }

    fn judge(self, place: usize, terms: &Terms<'_>, needs: &Needs<'a>) -> Judged<'a> {
        let out = self.out(place);
        let source = self.catalog.projects[place].key.source;
        let sound = |release: &Release| {
            let starts = |java| starts_on(self.catalog, self.request, self.now, java);
            loads(terms, source, release) != Some(false)
                && terms
                    .files(release)
                    .is_some_and(|files| files.iter().all(|file| verifiable(file.file) && file.java.is_none_or(starts)))
        };
        // A delisted release does not affect the channel of the others.
        let gone = lost(self.request, &self.catalog.projects[place]).map(|gone| &gone.id);
        let on_page = out.iter().filter(|release| gone != Some(&release.id));
        let best = on_page.filter(|release| sound(release)).map(|release| release.channel).max();
        let channel = best.map_or(terms.channel, |best| best.min(terms.channel));
        let on_channel = |release: &Release| sound(release) && release.channel >= channel;
        let by_rule = |release: &Release| {
            let Ok(ripe) = published(release).checked_add(terms.delay) else { return false };
            let replaced = out.iter().any(|next| {
                (published(release)..ripe).contains(&published(next))
                    && on_channel(next)
                    && texts::is_patch_of(&next.version, &release.version)
            });
            let that_night = |other: &Release| {
                let apart = published(other).duration_since(published(release)).abs();
                other.channel == release.channel
                    && published(other) <= self.now
                    && apart <= SignedDuration::from_hours(1)
            };
            let waits = terms.together.iter().any(|(other, delay)| {
                let mut night = self.catalog.projects[*other].releases.iter().filter(|release| that_night(release));
                night.any(|other| published(other).checked_add(*delay).unwrap() > self.now)
            });
            let stated = terms.says.is_some_and(|says| says.mode != OverrideMode::Remove && is_about(says, release));
            // A file has no page that could have a list.
            let paged = release.published.is_some();
            let unlisted = self.request.unlisted == Unlisted::Refuse
                && paged
                && !has_list(terms.software, source, release)
                && !stated;
            let unsaid = loads(terms, source, release).is_none() && !stated;
            release.channel >= channel && ripe <= self.now && !replaced && !waits && !unlisted && !unsaid
        };
        let exempt = |release: &Release| {
            runs(self.request, release) || terms.pin.is_some_and(|pin| texts::pin_means(pin, &release.version))
        };
        // The running release stays or goes up, if it is a verifiable file for Paper. A missing Java, list or
        // dependency is no reason for a downgrade.
        let still_there = |release: &&&Release| {
            let asked_too_much = || terms.files(release).is_none() && release.file.is_some();
            let has_all = || terms.files(release).is_some_and(|files| files.iter().all(|file| verifiable(file.file)));
            let loaded = loads(terms, source, release) != Some(false);
            runs(self.request, release) && loaded && (asked_too_much() || has_all())
        };
        let stays_above = out.iter().rev().find(still_there).filter(|_| !terms.may_go_down);
        let below = |release: &Release| stays_above.is_some_and(|least| age(release) < age(least));
        let ripe: Vec<&'a Release> = (out.iter().copied())
            .filter(|release| sound(release) && (!terms.held || runs(self.request, release)))
            .filter(|release| exempt(release) || by_rule(release) && !below(release))
            .filter(|release| needs.goes_beside_files(place, release))
            .collect();
        let usable = ripe.iter().copied().filter(|release| needs.can_be_met(place, terms, release)).collect();
        Judged { channel, ripe, usable }
    }

    /// The channel for dependencies of this member: its own channel, or that of its pinned release.
    fn as_unstable_as(self, place: usize, terms: &Terms<'_>, channel: Channel) -> Channel {
        let Some(pin) = terms.pin else { return channel };
        let pinned = self.out(place).into_iter().filter(|release| texts::pin_means(pin, &release.version));
        pinned.map(|release| release.channel).min().map_or(channel, |pinned| pinned.min(channel))
    }

    /// Dependents before their dependencies. Among several candidates, or in a cycle, the first by name.
    fn dependencies_in_order(self, terms: &BTreeMap<usize, Terms<'a>>, asked: &Asked<'a>, edges: &Edges) -> Vec<usize> {
        let mut waiting: Vec<usize> = terms.keys().copied().filter(|place| !asked.contains_key(place)).collect();
        let project = |place: &usize| &self.catalog.projects[*place];
        waiting.sort_by_key(|place| (&project(place).name, &project(place).id));
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let needed = |place: &usize| waiting.iter().any(|other| other != place && edges[other].contains(place));
            let next = waiting.iter().position(|place| !needed(place)).unwrap_or(0);
            order.push(waiting.remove(next));
        }
        order
    }
}

/// All published releases of a project, oldest first, and the running release if it is delisted.
pub(super) fn out<'a>(request: &'a Request, project: &'a Project, now: Timestamp) -> Vec<&'a Release> {
    let is_out = |release: &&Release| published(release) <= now || runs(request, release);
    let mut out: Vec<&Release> = project.releases.iter().chain(lost(request, project)).filter(is_out).collect();
    out.sort_by_cached_key(|release| place_in_order(release));
    out
}

struct Judged<'a> {
    channel: Channel,
    /// By channel, age, file and software, and compatible with unmanaged JARs.
    ripe: Vec<&'a Release>,
    /// Those whose needs can be met.
    usable: Vec<&'a Release>,
}
