//! Pure. The world on the volume, the copies of it and the plugins' data that were kept, in the words of the rollout.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::backup::restore::room_for;
use scheduler::observation::{DataVersion, WorldState};
use scheduler::protocol::{AgentReport, BackupSeen, BackupsSeen, RestoreOrder};

use super::observe::{Observed, has_copies, keeps_data, was_started};

/// The world, and what could bring it back.
pub(crate) fn look_at_world(seen: &Observed) -> WorldState {
    let settled_world = seen.facts.settled.map(|settled| settled.world);
    // A server that has opened the worlds, and on which somebody has played, has done so also while its agent is silent.
    let world = seen.last_report().map(|report| &report.world);
    let said = world.and_then(|world| world.floor.as_ref()).map(|floor| DataVersion(floor.data_version));
    // The init container's last words are newer than those of any agent: none answers where it lets nothing start.
    let refused = seen.world_refused();
    let format = refused.as_ref().and_then(|said| said.floor).map(DataVersion);
    // One from before it said so says that there is a newer one, at least.
    let is_above = refused.is_some_and(|said| said.is_for_their_age());
    let above = settled_world.filter(|_| is_above).map(|DataVersion(settled)| DataVersion(settled + 1));
    let floor = format.or(said.max(above)).or_else(|| opened_unheard(seen)).or(settled_world);
    // Who was never known to have stayed away has been there. Who may have come since the last word is looked for by who puts it back.
    let played_since = last_of_copies(seen).is_none_or(|copies| copies.played_since);
    // A copy that cannot be unpacked is none: what runs would be stopped for a start that never comes. Where somebody may have played nothing goes
    // back by itself anyway, and that is what is told.
    let copy = cold_copy(seen).filter(|_| played_since || no_room(seen).is_none());
    WorldState {
        floor: floor.unwrap_or(DataVersion(0)),
        whole: world.is_none_or(|world| world.whole),
        backup: copy.and_then(|copy| copy.data_version).map(DataVersion),
        played_since,
        restore_ordered: restore_order(seen).is_none_or(|order| is_ordered(seen, &order)),
    }
}

/// The format to which a server of which nobody has heard may have brought the worlds: the kubelet has started it. Only where no copy could bring
/// them back: else the init container that is ordered to looks for itself, and a start that failed early is gone back from.
fn opened_unheard(seen: &Observed) -> Option<DataVersion> {
    let is_unheard = seen.last_report().is_none();
    let may_come_back = seen.settled.as_ref().is_some_and(|settled| has_copies(&settled.template));
    let was_started = seen.pod.as_ref().is_some_and(was_started);
    (is_unheard && !may_come_back && was_started).then(|| seen.pod_lock.as_ref().map(|lock| lock.world())).flatten()
}

/// Whether it is ordered already, at least as carefully: one that was given while nobody had played brings the worlds back unseen, and somebody
/// may have played since. What puts the worlds back puts back the plugins' data too.
fn is_ordered(seen: &Observed, order: &RestoreOrder) -> bool {
    let same = |ordered: &RestoreOrder| (&ordered.to, &ordered.failed) == (&order.to, &order.failed);
    let looks = |ordered: &RestoreOrder| ordered.unless_played || !order.unless_played;
    let is_enough = |ordered: &RestoreOrder| same(ordered) && (!order.worlds || ordered.worlds && looks(ordered));
    seen.orders.back.as_ref().is_some_and(is_enough)
}

/// Whether the plugins' data are ordered back, if there is anything to order.
pub(crate) fn data_ordered(seen: &Observed) -> bool {
    data_order(seen).is_none_or(|order| is_ordered(seen, &order))
}

/// The order under which the settled set puts the plugins' data back after what runs now. None: it could not, or nothing was kept.
pub(crate) fn data_order(seen: &Observed) -> Option<RestoreOrder> {
    let (to, failed) = step_back(seen, keeps_data)?;
    let is_of_this_step = |report: &AgentReport| {
        report.plugin_data.as_ref().is_some_and(|data| data.before == failed && data.back.is_none())
    };
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

/// What the agent says of the copies, or said last. A look that could not read them says nothing: who takes it for "there is none, and nobody
/// has played" goes back where somebody may have.
fn last_of_copies(seen: &Observed) -> Option<&BackupsSeen> {
    seen.last_report()?.backups.as_ref().filter(|copies| copies.problem.is_none())
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
    let copy = last_of_copies(seen)?.last_of_worlds.as_ref()?;
    let opens = copy.data_version.is_some_and(|copied| DataVersion(copied) <= settled);
    (copy.before.as_ref() == Some(&order.failed) && opens).then_some(copy)
}

/// There is a copy to go back to, and no room for it on the server's volume.
pub(crate) struct InsufficientSpace<'a> {
    /// The copy.
    pub(crate) copy: &'a BackupSeen,
    /// Bytes that have to be free.
    pub(crate) needed: u64,
    /// Bytes that are.
    pub(crate) free: u64,
}

/// Whether the copy of the worlds finds no room, by the last look of the agent. One that does not say how much is free has room, as far as is known.
pub(crate) fn no_room(seen: &Observed) -> Option<InsufficientSpace<'_>> {
    let copy = cold_copy(seen)?;
    let (needed, free) = (room_for(copy.bytes), last_of_copies(seen)?.free?);
    (free < needed).then_some(InsufficientSpace { copy, needed, free })
}

/// The order under which the settled set puts the worlds back after what runs now. None: there is nothing to order, because it could not
/// obey. Then a world that was not touched opens as it is, and init refuses any other.
pub(crate) fn restore_order(seen: &Observed) -> Option<RestoreOrder> {
    let (to, failed) = step_back(seen, has_copies)?;
    // A silent agent has said neither that the world was touched nor who was on, and one that cannot read the copies does not know since when
    // that counts. And a world that nobody has touched yet may be touched while its server is stopped, with all that was built in it.
    let unless_played = copies(seen).is_none_or(|copies| copies.problem.is_some() || copies.played_since);
    Some(RestoreOrder { to, failed, unless_played, worlds: true })
}

#[cfg(test)]
mod tests;
