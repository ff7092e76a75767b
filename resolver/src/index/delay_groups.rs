//! Pure. Delays plugins that belong together by the same instant if they were published in the same night.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{RequestedBy, Rules, ripe_at};
use crate::catalog::{Catalog, Project, Release};
use crate::explain::Warning;
use crate::known_constraints::{ESSENTIALS, SAME_RELEASE_NIGHT, is_called, letters};
use crate::request::Request;
use crate::unusable::Unusable;

/// Plugins whose parts only work with parts of the same release. `ViaBackwards` needs the `ViaVersion` of the same
/// minute, and the modules of `EssentialsX` need it in their own version.
const KNOWN: [&[&str]; 4] =
    [&["viaversion", "viabackwards", "viarewind"], &ESSENTIALS, &["worldedit", "worldguard"], &["geyser", "floodgate"]];

/// A plugin that belongs to another plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Companion<'a> {
    place: usize,
    /// The delay of its releases.
    delay: SignedDuration,
    /// The Plugin object that requests it.
    object: &'a str,
}

/// Which requested plugins of one server belong together.
pub(super) struct Companions<'a> {
    /// Each companion with the known group of its project.
    all: Vec<(Companion<'a>, Option<usize>)>,
    /// Positions that a Plugin names together with its own.
    named: Vec<Vec<usize>>,
}

impl<'a> Companions<'a> {
    /// Reads the groups from the request.
    pub(super) fn of_server(
        catalog: &Catalog,
        request: &'a Request,
        asked: &BTreeMap<usize, (RequestedBy<'a>, Rules<'a>)>,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let all = asked.iter().map(|(place, (asked, rules))| {
            let companion = Companion { place: *place, delay: rules.delay, object: asked.decides };
            (companion, group(&catalog.projects[*place]))
        });
        let mut named = Vec::new();
        for (place, (asked_by, _)) in asked {
            let wishes = request.plugins.iter().filter(|wish| asked_by.objects.contains(&wish.object.as_str()));
            for wish in wishes.filter(|wish| !wish.delay_together.is_empty()) {
                let mut group = vec![*place];
                for name in &wish.delay_together {
                    let mut others = asked.iter().filter(|(other, (asked, _))| {
                        is_called(&catalog.projects[**other], name)
                            || asked.objects.iter().any(|object| object.eq_ignore_ascii_case(name.trim()))
                    });
                    match others.next() {
                        Some((other, _)) => group.push(*other),
                        None => warnings
                            .push(Warning::NoSuchCompanion { object: wish.object.clone(), plugin: (*name).clone() }),
                    }
                }
                named.push(group);
            }
        }
        Self { all: all.collect(), named }
    }

    /// The companions of the project at `place`, which need not be requested itself.
    pub(super) fn of(&self, catalog: &Catalog, place: usize) -> Vec<Companion<'a>> {
        let known = group(&catalog.projects[place]);
        let together = |(other, group): &&(Companion<'a>, Option<usize>)| {
            let named = || self.named.iter().any(|group| group.contains(&place) && group.contains(&other.place));
            other.place != place && (known.is_some() && known == *group || named())
        };
        self.all.iter().filter(together).map(|(companion, _)| companion.clone()).collect()
    }
}

/// The known group of a project. Every project of every server is looked up, so this function allocates no string.
fn group(project: &Project) -> Option<usize> {
    KNOWN.iter().position(|group| group.iter().any(|known| letters(&project.name).eq(known.chars())))
}

/// Returns the reason why a release has to wait longer than its own delay. It waits for the last release that a
/// companion published in the same night on the same channel.
pub(super) fn held_back(catalog: &Catalog, release: &Release, rules: &Rules<'_>, now: Timestamp) -> Option<Unusable> {
    let published = release.published?;
    let own = ripe_at(published, rules.delay);
    let that_night = |other: &&Release| {
        other.channel == release.channel
            && other.published.is_some_and(|at| at <= now && at.duration_since(published).abs() <= SAME_RELEASE_NIGHT)
    };
    // For most nights every release is old enough already. This check avoids reading the releases of those companions.
    let may_wait = |companion: &&Companion<'_>| ripe_at(ripe_at(published, companion.delay), SAME_RELEASE_NIGHT) > now;
    let nights = rules.together.iter().filter(may_wait).flat_map(|companion| {
        let releases = catalog.projects[companion.place].releases.iter().filter(that_night);
        releases.filter_map(move |other| Some((ripe_at(other.published?, companion.delay), companion, other)))
    });
    // Ordered by time, then by name: the result must not depend on the order of a list.
    let (ripe_at, companion, other) = nights
        .filter(|(ripe_at, _, _)| *ripe_at > now && *ripe_at > own)
        .max_by(|(a, by, one), (b, of, two)| (a, by.object, &one.id).cmp(&(b, of.object, &two.id)))?;
    Some(Unusable::HeldBackTogether {
        ripe_at,
        delay: companion.delay,
        with: catalog.projects[companion.place].name.clone(),
        version: other.version.clone(),
        object: companion.object.to_owned(),
    })
}
