//! Pure. The world on the volume and the copies of it, in the words of the rollout.

use scheduler::protocol::{BackupSeen, BackupsSeen, RestoreOrder};
use scheduler::seen::{DataVersion, World};

use super::observe::{Observed, has_copies};

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

/// Whether it is ordered already, however much was known then.
fn is_ordered(seen: &Observed, order: &RestoreOrder) -> bool {
    seen.order.as_ref().is_some_and(|ordered| (&ordered.to, &ordered.failed) == (&order.to, &order.failed))
}

/// What the agent says of the copies.
fn copies(seen: &Observed) -> Option<&BackupsSeen> {
    seen.report.as_ref()?.backups.as_ref()
}

/// The copy of the worlds that was taken of what settled before the set in this pod first opened them, if the settled set can put it back:
/// a template from before `spec.backup` has no volume for it.
pub(crate) fn cold_copy(seen: &Observed) -> Option<&BackupSeen> {
    let order = restore_order(seen)?;
    let copy = copies(seen)?.last_of_worlds.as_ref()?;
    (copy.before == order.failed && copy.lock.as_ref() == Some(&order.to)).then_some(copy)
}

/// The order under which the settled set puts the worlds back after what runs now. None: there is nothing to order, because it could not
/// obey. Then a world that was not touched opens as it is, and init refuses any other.
pub(crate) fn restore_order(seen: &Observed) -> Option<RestoreOrder> {
    let settled = seen.settled.as_ref().filter(|settled| has_copies(&settled.template));
    let to = settled.and(seen.settled_lock.as_ref())?.files.lock.clone();
    let failed = seen.pod_lock.as_ref()?.files.lock.clone();
    // Another revision of the same files has no copy of its own, and needs none.
    // A silent agent has said neither that the world was touched nor who was on. And a world that nobody has touched yet may be touched
    // while its server is stopped, with all that was built in it.
    let unless_played = copies(seen).is_none_or(|copies| copies.played_since);
    (to != failed).then_some(RestoreOrder { to, failed, unless_played })
}

#[cfg(test)]
mod tests;
