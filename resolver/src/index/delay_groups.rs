//! Pure. Delays plugins that belong together by the same instant if they were published in the same night.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::known_constraints::{ESSENTIALS, SAME_RELEASE_WINDOW, is_named};
use super::rules::{Companion, RequestedBy, Rules, eligible_at};
use crate::explanation::Warning;
use crate::model::catalog::{Catalog, Project, Release};
use crate::model::did_you_mean::folded_letters;
use crate::model::request::Request;
use crate::model::unusable::Unusable;

/// Plugins whose parts only work with parts of the same release. `ViaBackwards` needs the `ViaVersion` of the same
/// minute, and the modules of `EssentialsX` need it in their own version.
const KNOWN_GROUPS: [&[&str]; 4] =
    [&["viaversion", "viabackwards", "viarewind"], &ESSENTIALS, &["worldedit", "worldguard"], &["geyser", "floodgate"]];

/// Which requested plugins of one server belong together.
pub(crate) struct Companions<'a> {
    /// Each companion with the known group of its project.
    requested: Vec<(Companion<'a>, Option<usize>)>,
    /// Positions that a Plugin names together with its own.
    named_groups: Vec<Vec<usize>>,
}

impl<'a> Companions<'a> {
    /// Reads the groups from the request.
    pub(super) fn from_request(
        catalog: &Catalog,
        request: &'a Request,
        requested: &BTreeMap<usize, (RequestedBy<'a>, Rules<'a>)>,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let requested_companions = requested.iter().map(|(position, (requested, rules))| {
            let companion = Companion { position: *position, delay: rules.delay, object: requested.deciding_object };
            (companion, known_group(&catalog.projects[*position]))
        });
        let mut named_groups = Vec::new();
        for (position, (requested_by, _)) in requested {
            let plugin_requests = request
                .plugins
                .iter()
                .filter(|plugin_request| requested_by.objects.contains(&plugin_request.object.as_str()));
            for plugin_request in plugin_requests.filter(|plugin_request| !plugin_request.delay_together.is_empty()) {
                let mut group = vec![*position];
                for name in &plugin_request.delay_together {
                    let mut others = requested.iter().filter(|(other, (requested, _))| {
                        is_named(&catalog.projects[**other], name)
                            || requested.objects.iter().any(|object| object.eq_ignore_ascii_case(name.trim()))
                    });
                    match others.next() {
                        Some((other, _)) => group.push(*other),
                        None => warnings.push(Warning::NoSuchCompanion {
                            object: plugin_request.object.clone(),
                            plugin: (*name).clone(),
                        }),
                    }
                }
                named_groups.push(group);
            }
        }
        Self { requested: requested_companions.collect(), named_groups }
    }

    /// The companions of the project at `position`, which need not be requested itself.
    pub(super) fn companions_of(&self, catalog: &Catalog, position: usize) -> Vec<Companion<'a>> {
        let known_group = known_group(&catalog.projects[position]);
        let is_companion = |(other, group): &&(Companion<'a>, Option<usize>)| {
            let named =
                || self.named_groups.iter().any(|group| group.contains(&position) && group.contains(&other.position));
            other.position != position && (known_group.is_some() && known_group == *group || named())
        };
        self.requested.iter().filter(is_companion).map(|(companion, _)| companion.clone()).collect()
    }
}

/// The known group of a project. Every project of every server is looked up, so this function allocates no string.
fn known_group(project: &Project) -> Option<usize> {
    KNOWN_GROUPS
        .iter()
        .position(|group| group.iter().any(|known_name| folded_letters(&project.name).eq(known_name.chars())))
}

/// Returns the reason why a release has to wait longer than its own delay. It waits for the last release that a
/// companion published in the same night on the same channel.
pub(super) fn companion_delay(
    catalog: &Catalog,
    release: &Release,
    rules: &Rules<'_>,
    now: Timestamp,
) -> Option<Unusable> {
    let published = release.published?;
    let own_eligible_at = eligible_at(published, rules.delay);
    let that_night = |other: &&Release| {
        other.channel == release.channel
            && other.published.is_some_and(|at| at <= now && at.duration_since(published).abs() <= SAME_RELEASE_WINDOW)
    };
    // For most nights every release is old enough already. This check avoids reading the releases of those companions.
    let may_wait =
        |companion: &&Companion<'_>| eligible_at(eligible_at(published, companion.delay), SAME_RELEASE_WINDOW) > now;
    let nights = rules.companions.iter().filter(may_wait).flat_map(|companion| {
        let releases = catalog.projects[companion.position].releases.iter().filter(that_night);
        releases.filter_map(move |other| Some((eligible_at(other.published?, companion.delay), companion, other)))
    });
    // Ordered by time, then by name: the result must not depend on the order of a list.
    let (eligible_at, companion, other) = nights
        .filter(|(eligible_at, _, _)| *eligible_at > now && *eligible_at > own_eligible_at)
        .max_by(|(a, by, one), (b, of, two)| (a, by.object, &one.id).cmp(&(b, of.object, &two.id)))?;
    Some(Unusable::DelayedWithCompanion {
        eligible_at,
        delay: companion.delay,
        with: catalog.projects[companion.position].name.clone(),
        version: other.version.clone(),
        object: companion.object.to_owned(),
    })
}
