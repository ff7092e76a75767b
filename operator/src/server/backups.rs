//! Pure. Converts the state of the world, its backups and the saved plugin data to the rollout's types.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::backup::restore::room_for;
use scheduler::observation::{DataVersion, WorldState};
use scheduler::protocol::{AgentReport, BackupSeen, BackupsSeen, RestoreOrder};

use super::observe::{Observed, has_copies, keeps_data, was_started};

/// The state of the world, and the backup that could restore it.
pub(crate) fn look_at_world(seen: &Observed) -> WorldState {
    let settled_world = seen.facts.settled.map(|settled| settled.world);
    // The last report is used while the agent is unreachable: worlds that were opened or played stay so.
    let world = seen.last_report().map(|report| &report.world);
    let said = world.and_then(|world| world.floor.as_ref()).map(|floor| DataVersion(floor.data_version));
    // The termination message of the init container is newer than any agent's report. No agent answers while the init container refuses the
    // start.
    let refused = seen.world_refused();
    let format = refused.as_ref().and_then(|said| said.floor).map(DataVersion);
    // An older init container without a version number only tells that the world is newer.
    let is_above = refused.is_some_and(|said| said.is_for_their_age());
    let above = settled_world.filter(|_| is_above).map(|DataVersion(settled)| DataVersion(settled + 1));
    let floor = format.or(said.max(above)).or_else(|| opened_unheard(seen)).or(settled_world);
    // Without knowledge to the contrary, the world counts as played. The init container checks for play since the last report when it
    // restores.
    let played_since = last_of_copies(seen).is_none_or(|copies| copies.played_since);
    // A backup that does not fit on the volume does not count, because the running server would be stopped for a start that never happens.
    // After play there is no automatic roll-back anyway, and that is the reason to report.
    let copy = cold_copy(seen).filter(|_| played_since || no_room(seen).is_none());
    WorldState {
        floor: floor.unwrap_or(DataVersion(0)),
        whole: world.is_none_or(|world| world.whole),
        backup: copy.and_then(|copy| copy.data_version).map(DataVersion),
        played_since,
        restore_ordered: restore_order(seen).is_none_or(|order| is_ordered(seen, &order)),
    }
}

/// The world format of a pod that was started but whose agent has never answered. It applies only if no backup could restore the worlds.
/// With backups the init container inspects the worlds itself, and an early failure is rolled back.
fn opened_unheard(seen: &Observed) -> Option<DataVersion> {
    let is_unheard = seen.last_report().is_none();
    let may_come_back = seen.settled.as_ref().is_some_and(|settled| has_copies(&settled.template));
    let was_started = seen.pod.as_ref().is_some_and(was_started);
    (is_unheard && !may_come_back && was_started).then(|| seen.pod_lock.as_ref().map(|lock| lock.world())).flatten()
}

/// Whether an equal or more careful restore request is already written. One from before any play would restore the worlds without a check,
/// and players may have joined since. A restore of the worlds restores the plugin data, too.
fn is_ordered(seen: &Observed, order: &RestoreOrder) -> bool {
    let same = |ordered: &RestoreOrder| (&ordered.to, &ordered.failed) == (&order.to, &order.failed);
    let looks = |ordered: &RestoreOrder| ordered.unless_played || !order.unless_played;
    let is_enough = |ordered: &RestoreOrder| same(ordered) && (!order.worlds || ordered.worlds && looks(ordered));
    seen.orders.back.as_ref().is_some_and(is_enough)
}

/// Whether the restore of plugin data is already requested, if there is any to restore.
pub(crate) fn data_ordered(seen: &Observed) -> bool {
    data_order(seen).is_none_or(|order| is_ordered(seen, &order))
}

/// The restore request for plugin data after a roll-back to the stable set. `None` if the stable set does not support it, or no data was
/// saved.
pub(crate) fn data_order(seen: &Observed) -> Option<RestoreOrder> {
    let (to, failed) = step_back(seen, keeps_data)?;
    let is_of_this_step = |report: &AgentReport| {
        report.plugin_data.as_ref().is_some_and(|data| data.before == failed && data.back.is_none())
    };
    // An unreachable agent may have saved some.
    let may_have_kept = seen.report.as_deref().is_none_or(is_of_this_step);
    may_have_kept.then_some(RestoreOrder { to, failed, unless_played: true, worlds: false })
}

/// The locks of the stable revision and of the running one, if the stable template supports `can`. Two revisions with the same files have
/// nothing to roll back.
fn step_back(seen: &Observed, can: fn(&PodTemplateSpec) -> bool) -> Option<(String, String)> {
    let settled = seen.settled.as_ref().filter(|settled| can(&settled.template));
    let to = settled.and(seen.settled_lock.as_ref())?.files.lock.clone();
    let failed = seen.pod_lock.as_ref()?.files.lock.clone();
    (to != failed).then_some((to, failed))
}

/// The backups in the agent's last report. A report that could not read them gives no information. Taking it for "no backup and no play"
/// would cause a roll-back after play.
fn last_of_copies(seen: &Observed) -> Option<&BackupsSeen> {
    seen.last_report()?.backups.as_ref().filter(|copies| copies.problem.is_none())
}

/// The backups in the agent's current report.
pub(crate) fn copies(seen: &Observed) -> Option<&BackupsSeen> {
    seen.report.as_ref()?.backups.as_ref()
}

/// The backup of the worlds from before the set in this pod first opened them, if the stable set can open and restore it. A template from
/// before `spec.backup` has no volume for it.
pub(crate) fn cold_copy(seen: &Observed) -> Option<&BackupSeen> {
    let order = restore_order(seen)?;
    let settled = seen.facts.settled?.world;
    let copy = last_of_copies(seen)?.last_of_worlds.as_ref()?;
    let opens = copy.data_version.is_some_and(|copied| DataVersion(copied) <= settled);
    (copy.before.as_ref() == Some(&order.failed) && opens).then_some(copy)
}

/// A backup for the roll-back that does not fit on the server's volume.
pub(crate) struct InsufficientSpace<'a> {
    /// The backup.
    pub(crate) copy: &'a BackupSeen,
    /// Bytes that have to be free.
    pub(crate) needed: u64,
    /// Bytes that are free.
    pub(crate) free: u64,
}

/// Whether the backup of the worlds does not fit, according to the agent's last report. If the report does not contain the free space, it
/// is assumed to fit.
pub(crate) fn no_room(seen: &Observed) -> Option<InsufficientSpace<'_>> {
    let copy = cold_copy(seen)?;
    let (needed, free) = (room_for(copy.bytes), last_of_copies(seen)?.free?);
    (free < needed).then_some(InsufficientSpace { copy, needed, free })
}

/// The restore request for the worlds after a roll-back to the stable set. `None` if the stable set does not support it. An unchanged world
/// then opens as it is, and the init container refuses any other.
pub(crate) fn restore_order(seen: &Observed) -> Option<RestoreOrder> {
    let (to, failed) = step_back(seen, has_copies)?;
    // An unreachable agent does not tell whether the world was opened or played, and unreadable backups do not tell since when. An
    // untouched world may still be played on until its server is stopped, and that progress would be lost.
    let unless_played = copies(seen).is_none_or(|copies| copies.problem.is_some() || copies.played_since);
    Some(RestoreOrder { to, failed, unless_played, worlds: true })
}

#[cfg(test)]
mod tests;
