//! Pure. The world on the volume, the copies of it and the plugins' data that were kept, in the words of the rollout.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::protocol::{BackupSeen, BackupsSeen, Report, RestoreOrder};
use scheduler::seen::{DataVersion, World};

use super::observe::{Observed, has_copies, keeps_data};

/// The world, and what could bring it back.
pub(crate) fn look_at_world(seen: &Observed) -> World {
    let settled_world = seen.facts.settled.map(|settled| settled.world);
    let floor = seen.report.as_ref().and_then(|report| report.world.floor.as_ref());
    World {
        floor: floor.map_or(settled_world.unwrap_or(DataVersion(0)), |floor| DataVersion(floor.data_version)),
        whole: seen.report.as_ref().is_none_or(|report| report.world.whole),
        backup: cold_copy(seen).and_then(|copy| copy.data_version).map(DataVersion),
        // Who is not known to have stayed away has been there.
        played_since: copies(seen).is_none_or(|copies| copies.played_since),
        restore_ordered: restore_order(seen).is_none_or(|order| is_ordered(seen, &order)),
    }
}

/// Whether it is ordered already, however much was known then. What puts the worlds back puts back the plugins' data too.
fn is_ordered(seen: &Observed, order: &RestoreOrder) -> bool {
    let same = |ordered: &RestoreOrder| (&ordered.to, &ordered.failed) == (&order.to, &order.failed);
    seen.orders.back.as_ref().is_some_and(|ordered| same(ordered) && (ordered.worlds || !order.worlds))
}

/// Whether the plugins' data are ordered back, if there is anything to order.
pub(crate) fn data_ordered(seen: &Observed) -> bool {
    data_order(seen).is_none_or(|order| is_ordered(seen, &order))
}

/// The order under which the settled set puts the plugins' data back after what runs now. None: it could not, or nothing was kept.
pub(crate) fn data_order(seen: &Observed) -> Option<RestoreOrder> {
    let (to, failed) = step_back(seen, keeps_data)?;
    let is_of_this_step =
        |report: &Report| report.plugin_data.as_ref().is_some_and(|data| data.before == failed && data.back.is_none());
    // A silent agent may have kept something.
    let may_have_kept = seen.report.as_deref().is_none_or(is_of_this_step);
    may_have_kept.then_some(RestoreOrder { to, failed, unless_played: true, worlds: false })
}

/// The locks of what settled and of what runs now, if a template like that can do what `can` asks. Another revision of the same files has
/// nothing of its own to go back from.
fn step_back(seen: &Observed, can: fn(&PodTemplateSpec) -> bool) -> Option<(String, String)> {
    let settled = seen.settled.as_ref().filter(|settled| can(&settled.template));
    let to = settled.and(seen.settled_lock.as_ref())?.files.lock.clone();
    let failed = seen.pod_lock.as_ref()?.files.lock.clone();
    (to != failed).then_some((to, failed))
}

/// What the agent says of the copies.
pub(crate) fn copies(seen: &Observed) -> Option<&BackupsSeen> {
    seen.report.as_ref()?.backups.as_ref()
}

/// The copy of the worlds that was taken before the set in this pod first opened them, if the settled set can open it and put it back: a
/// template from before `spec.backup` has no volume for it.
pub(crate) fn cold_copy(seen: &Observed) -> Option<&BackupSeen> {
    let order = restore_order(seen)?;
    let settled = seen.facts.settled?.world;
    let copy = copies(seen)?.last_of_worlds.as_ref()?;
    let opens = copy.data_version.is_some_and(|copied| DataVersion(copied) <= settled);
    (copy.before.as_ref() == Some(&order.failed) && opens).then_some(copy)
}

/// The order under which the settled set puts the worlds back after what runs now. None: there is nothing to order, because it could not
/// obey. Then a world that was not touched opens as it is, and init refuses any other.
pub(crate) fn restore_order(seen: &Observed) -> Option<RestoreOrder> {
    let (to, failed) = step_back(seen, has_copies)?;
    // A silent agent has said neither that the world was touched nor who was on. And a world that nobody has touched yet may be touched
    // while its server is stopped, with all that was built in it.
    let unless_played = copies(seen).is_none_or(|copies| copies.played_since);
    Some(RestoreOrder { to, failed, unless_played, worlds: true })
}

#[cfg(test)]
mod tests;
