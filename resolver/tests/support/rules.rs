//! Pure. The rules of `docs/concepts/solve.md`, written a second time from that page, for tests only.
//!
//! Shares nothing with the solver but the nouns of catalog and request: what both get wrong, the page says wrong.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use resolver::catalog::{Catalog, Channel, ImageTag, PaperVersion, Project, ProjectKey, Release};
use resolver::facts::Requirement;
use resolver::request::{
    CompatibilityOverride, HotfixSiblings, ImagePolicy, OverrideMode, PluginWish, Request, Unlisted, VersionWish,
};
use resolver::software::Software;
use resolver::version::Minecraft;

use super::called::Called;
use super::loading::{has_list, loads};
use super::needs::{Ask, Needs};
use super::own_jars::{self, Kept};
use super::papers::{Paper, builds, paper, starts_on, verifiable};
use super::texts::{self, Key};

/// When a release came out. A file by its URL has no date: it has been there always.
pub(crate) fn published(release: &Release) -> Timestamp {
    release.published.unwrap_or(Timestamp::MIN)
}

/// A project that takes part.
pub(crate) struct Member<'a> {
    pub(crate) place: usize,
    pub(crate) project: &'a Project,
    /// The Plugin objects that ask for it, by name.
    pub(crate) objects: Vec<&'a str>,
    /// JARs of people's own that need it, where nobody asks for it and it runs.
    pub(crate) kept_for: Vec<String>,
    pub(crate) terms: Terms<'a>,
    /// What may be used (pins left aside), oldest first.
    pub(crate) usable: Vec<&'a Release>,
    /// For each of those, what it asks of the others.
    pub(crate) asks: Vec<Vec<Ask<'a>>>,
}

/// What the owner says about one plugin.
#[derive(Clone, PartialEq)]
pub(crate) struct Terms<'a> {
    pub(crate) software: Software,
    pub(crate) channel: Channel,
    pub(crate) delay: SignedDuration,
    pub(crate) says: Option<&'a CompatibilityOverride>,
    pub(crate) pin: Option<&'a str>,
    /// What each Plugin object names of its files; without any that one has the main file.
    pub(crate) jars: Vec<&'a [String]>,
    pub(crate) requires: &'a [Requirement],
    /// Whether it may go below what runs.
    pub(crate) may_go_down: bool,
    /// Whether it stays at what runs.
    pub(crate) held: bool,
    /// The projects (by place) that belong to it, with their delays.
    pub(crate) together: Vec<(usize, SignedDuration)>,
}

impl Member<'_> {
    /// Whether it has to be there, whoever else is.
    pub(crate) fn must(&self) -> bool {
        !self.objects.is_empty() || !self.kept_for.is_empty()
    }
}

/// Everything the page decides before anything is chosen.
pub(crate) struct Book<'a> {
    pub(crate) request: &'a Request,
    pub(crate) catalog: &'a Catalog,
    now: Timestamp,
    /// Oldest first.
    pub(crate) papers: Vec<Paper<'a>>,
    /// In the order in which they count.
    pub(crate) members: Vec<Member<'a>>,
}

/// Something is not known, so that there is no answer.
pub(crate) struct Unknown;

pub(crate) fn runs(request: &Request, release: &Release) -> bool {
    request.running.as_ref().is_some_and(|running| running.releases.contains(&release.id))
}

impl<'a> Book<'a> {
    pub(crate) fn open(catalog: &'a Catalog, request: &'a Request, now: Timestamp) -> Result<Self, Unknown> {
        let mut papers: Vec<Paper<'a>> = builds(catalog, request.software)
            .iter()
            .filter_map(|version| paper(catalog, request, version, now))
            .collect();
        papers.sort_by(|a, b| a.minecraft.cmp(b.minecraft));
        let members = Membership { catalog, request, now }.settle()?;
        let mut book = Self { request, catalog, now, papers, members };
        for at in 0..book.papers.len() {
            if !own_jars::fit(&book, at, now) {
                book.papers[at].build = None;
            }
        }
        Ok(book)
    }

    /// The Java of a set whose files need these.
    pub(crate) fn java(&self, paper: usize, files: impl Iterator<Item = u32>) -> u32 {
        let own = own_jars::java(self.catalog, self.request, self.now);
        files.chain(own).fold(self.papers[paper].java, u32::max)
    }

    /// The image for a set that needs this Java.
    pub(crate) fn image(&self, java: u32) -> Option<String> {
        let chosen = |images: &[ImageTag], java| texts::image_for(images, java, self.now);
        let request = self.request;
        let running = request.running.as_ref();
        if request.software == Software::Velocity {
            return request.image.clone();
        }
        match (&request.image, request.image_policy, running.and_then(|running| running.java)) {
            (Some(image), _, _) => Some(image.clone()),
            (None, ImagePolicy::Keep, Some(_)) => running.unwrap().image.clone(),
            (None, ImagePolicy::SameJava, Some(has)) => {
                let same = self.catalog.images.iter().filter(|image| texts::java_in(&image.tag) == Some(has)).cloned();
                chosen(&same.collect::<Vec<_>>(), has).or_else(|| running.unwrap().image.clone())
            }
            (None, ImagePolicy::Follow, _) | (None, _, None) => chosen(&self.catalog.images, java),
        }
    }

    /// Whether a Paper does not load a release, whatever anybody says.
    pub(crate) fn refused(&self, member: usize, release: &Release, paper: usize) -> bool {
        let files = self.members[member].terms.files(release).unwrap_or_default();
        files.iter().any(|file| file.api_version.is_some_and(|needs| needs > self.papers[paper].minecraft))
    }

    /// Whether the page, or the user's word, has it that a release of a member runs on a Paper.
    pub(crate) fn listed(&self, member: usize, release: &Release, paper: usize) -> bool {
        if self.refused(member, release, paper) {
            return false;
        }
        let says = self.members[member].terms.says.filter(|says| is_about(says, release));
        let adds = says.is_some_and(|says| says.mode == OverrideMode::Add);
        let source = self.members[member].project.key.source;
        let on_page = if has_list(self.request.software, source, release) {
            self.names(&release.minecraft, paper)
        } else {
            // What is added to no list is the list, where no list means nothing.
            self.request.unlisted == Unlisted::Assume || !adds
        };
        let Some(says) = says else { return on_page };
        let meant = says.minecraft.iter().any(|pattern| texts::pattern_means(pattern, self.papers[paper].minecraft));
        match says.mode {
            resolver::request::OverrideMode::Add => on_page || meant,
            resolver::request::OverrideMode::Replace => says.minecraft.is_empty() || meant,
            resolver::request::OverrideMode::Remove => on_page && !meant,
        }
    }

    /// Whether a list names a Paper, or a version that counts for it.
    pub(crate) fn names(&self, list: &[Minecraft], paper: usize) -> bool {
        let paper = self.papers[paper].minecraft;
        if self.request.software == Software::Velocity {
            // A proxy is listed by its line: `3.4`.
            return paper.parts().is_some_and(|[major, minor, _]| {
                list.iter().any(|listed| listed.parts() == Some([major, minor, 0]) && listed.is_release())
            });
        }
        let out = |version: &&PaperVersion| version.builds.iter().any(|build| build.published <= self.now);
        let by_paper: Vec<&Minecraft> = match self.request.software {
            Software::Paper => self.papers.iter().map(|paper| paper.minecraft).collect(),
            Software::Purpur | Software::Folia | Software::Velocity => {
                self.catalog.paper.iter().filter(out).map(|version| &version.minecraft).collect()
            }
        };
        let built = |text: &str| by_paper.iter().any(|other| other.as_str() == text);
        let ours = |text: &str| self.papers.iter().any(|other| other.minecraft.as_str() == text);
        if list.contains(paper) {
            return true;
        }
        if self.request.hotfix_siblings == HotfixSiblings::Ask {
            return false;
        }
        if texts::siblings(paper).iter().any(|sibling| list.iter().any(|listed| listed.as_str() == *sibling)) {
            return true;
        }
        // The patch before this one, if Paper never built it although it built for something older.
        let Some(before) = texts::patch_before(paper) else { return false };
        let skipped: Minecraft = before.parse().unwrap();
        list.contains(&skipped)
            && !built(&before)
            && by_paper.iter().any(|other| **other < skipped)
            && !texts::siblings(&skipped).iter().any(|sibling| ours(sibling))
    }

    /// Whether a member may be chosen in this release, its pin included.
    pub(crate) fn meets_pin(&self, member: usize, release: &Release) -> bool {
        self.members[member].terms.pin.is_none_or(|pin| texts::pin_means(pin, &release.version))
    }
}

/// What orders the releases of a project; uploads of one version at one instant are equal.
pub(crate) fn age(release: &Release) -> (bool, Timestamp, Key) {
    let version = &release.version;
    (!texts::for_a_snapshot(version), published(release), Key::of(version))
}

/// What orders all of them.
pub(crate) fn place_in_order(release: &Release) -> ((bool, Timestamp, Key), String) {
    (age(release), release.id.clone())
}

fn is_about(says: &CompatibilityOverride, release: &Release) -> bool {
    let means = |named: &String| match named.strip_suffix(".x").or_else(|| named.strip_suffix(".*")) {
        // As a person reads it: the version begins with these numbers, and what follows is another part.
        Some(line) => {
            let version = release.version.trim_start_matches('v');
            version.strip_prefix(line).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        }
        None => *named == release.version,
    };
    says.releases.is_empty() || says.releases.iter().any(means)
}

/// The objects and the terms of what is asked for, by place.
pub(super) type Asked<'a> = BTreeMap<usize, (Vec<&'a str>, Terms<'a>)>;

/// Who needs whom, by place.
type Edges = BTreeMap<usize, BTreeSet<usize>>;

/// Who takes part.
#[derive(Clone, Copy)]
struct Membership<'a> {
    catalog: &'a Catalog,
    request: &'a Request,
    now: Timestamp,
}

impl<'a> Membership<'a> {
    fn settle(self) -> Result<Vec<Member<'a>>, Unknown> {
        let asked = self.asked()?;
        let mut needs = Needs {
            catalog: self.catalog,
            request: self.request,
            asked: asked.keys().copied().collect(),
            own: asked.iter().map(|(place, (_, terms))| (*place, terms.requires)).collect(),
            called: None,
        };
        let kept = own_jars::kept(&needs, &asked)?;
        // A JAR says names only: first who comes without that, then who of them is meant.
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
        Ok(members)
    }

    /// Who is needed by a usable release takes part, as young and as unstable as who needs it; until nothing is loosened any more.
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
        let mut groups: BTreeMap<usize, Vec<&'a PluginWish>> = BTreeMap::new();
        for wish in &self.request.plugins {
            groups.entry(place_of(self.catalog, &wish.key).ok_or(Unknown)?).or_default().push(wish);
        }
        let decided = groups.into_iter().map(|(place, mut wishes)| {
            wishes.sort_by_key(|wish| &wish.object);
            let pin = |wish: &&'a PluginWish| match &wish.version {
                VersionWish::Pin { version } => Some(version.as_str()),
                VersionWish::Latest | VersionWish::Auto => None,
            };
            let mut decides = wishes[0];
            for wish in &wishes {
                decides = match (pin(&decides), pin(wish)) {
                    (Some(_), None) => wish,
                    (Some(best), Some(this)) if Key::of(this) > Key::of(best) => wish,
                    _ => decides,
                };
            }
            // To hold what does not run means nothing.
            let held = wishes.iter().any(|wish| wish.hold.is_some())
                && self.catalog.projects[place].releases.iter().any(|release| runs(self.request, release));
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

    /// What is asked for and belongs to a project: known to, or because a Plugin says so, in either direction.
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

    /// Everything that is out, oldest first.
    fn out(self, place: usize) -> Vec<&'a Release> {
        let project = &self.catalog.projects[place];
        let mut out: Vec<&Release> = project
            .releases
            .iter()
            .filter(|release| published(release) <= self.now || runs(self.request, release))
            .collect();
        out.sort_by_cached_key(|release| place_in_order(release));
        out
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
        let best = out.iter().filter(|release| sound(release)).map(|release| release.channel).max();
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
        // What runs has to stay or to go up, as long as it is a file for Paper that can be verified: then a Java, a list or
        // a dependency that it lacks is no reason to go down.
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
            .collect();
        let usable = ripe.iter().copied().filter(|release| needs.can_be_met(place, terms, release)).collect();
        Judged { channel, ripe, usable }
    }

    /// What a dependency of this member may be: what the member itself may be, or is pinned to.
    fn as_unstable_as(self, place: usize, terms: &Terms<'_>, channel: Channel) -> Channel {
        let Some(pin) = terms.pin else { return channel };
        let pinned = self.out(place).into_iter().filter(|release| texts::pin_means(pin, &release.version));
        pinned.map(|release| release.channel).min().map_or(channel, |pinned| pinned.min(channel))
    }

    /// Dependents before what they need; of several that are free (or in a cycle) the first by name.
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

struct Judged<'a> {
    channel: Channel,
    /// By channel, age, file and software.
    ripe: Vec<&'a Release>,
    /// Those of them whose needs can be met at all.
    usable: Vec<&'a Release>,
}

pub(crate) fn place_of(catalog: &Catalog, key: &ProjectKey) -> Option<usize> {
    let same = |text: &str| text.eq_ignore_ascii_case(&key.project);
    let at = |test: &dyn Fn(&Project) -> bool| {
        catalog.projects.iter().position(|project| project.key.source == key.source && test(project))
    };
    at(&|project| project.id == key.project || same(&project.key.project))
        .or_else(|| at(&|project| same(&project.name)))
}
