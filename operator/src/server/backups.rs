//! Pure. Converts the state of the world, its backups and the saved plugin data to the rollout's types.

use agent_api::space_needed;
use agent_api::{AgentReport, BackupReport, BackupsReport, RestoreRequest};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::observation::{DataVersion, WorldState};

use super::observe::{Observed, saves_plugin_data, supports_backups, was_started};

/// The state of the world, and the backup that could restore it.
pub(crate) fn world_state(observed: &Observed) -> WorldState {
    let stable_world = observed.facts.settled.map(|stable| stable.world);
    // The last report is used while the agent is unreachable: worlds that were opened or played stay so.
    let world = observed.last_report().map(|report| &report.world);
    let reported = world.and_then(|world| world.floor.as_ref()).map(|floor| DataVersion(floor.data_version));
    // The termination message of the init container is newer than any agent's report. No agent answers while the init container refuses the
    // start.
    let refused = observed.world_refused();
    let format = refused.as_ref().and_then(|refusal| refusal.floor).map(DataVersion);
    // An older init container without a version number only tells that the world is newer.
    let is_above = refused.is_some_and(|refusal| refusal.is_too_new());
    let above = stable_world.filter(|_| is_above).map(|DataVersion(stable)| DataVersion(stable + 1));
    let floor = format.or(reported.max(above)).or_else(|| opened_without_report(observed)).or(stable_world);
    // Without knowledge to the contrary, the world counts as played. The init container checks for play since the last report when it
    // restores.
    let played_since = last_known_backups(observed).is_none_or(|backups| backups.played_since);
    // A backup that does not fit on the volume does not count, because the running server would be stopped for a start that never happens.
    // After play there is no automatic roll-back anyway, and that is the reason to report.
    let backup = offline_backup(observed).filter(|_| played_since || insufficient_space(observed).is_none());
    WorldState {
        floor: floor.unwrap_or(DataVersion(0)),
        whole: world.is_none_or(|world| world.whole),
        backup: backup.and_then(|backup| backup.data_version).map(DataVersion),
        played_since,
        restore_requested: world_restore_request(observed)
            .is_none_or(|request| is_restore_requested(observed, &request)),
    }
}

/// The world format of a pod that was started but whose agent has never answered. It applies only if no backup could restore the worlds.
/// With backups the init container inspects the worlds itself, and an early failure is rolled back.
fn opened_without_report(observed: &Observed) -> Option<DataVersion> {
    let is_unheard = observed.last_report().is_none();
    let may_be_restored = observed.stable.as_ref().is_some_and(|stable| supports_backups(&stable.template));
    let was_started = observed.pod.as_ref().is_some_and(was_started);
    (is_unheard && !may_be_restored && was_started)
        .then(|| observed.pod_lock.as_ref().map(|lock| lock.world()))
        .flatten()
}

/// Whether an equal or more careful restore request is already written. One from before any play would restore the worlds without a check,
/// and players may have joined since. A restore of the worlds restores the plugin data, too.
fn is_restore_requested(observed: &Observed, request: &RestoreRequest) -> bool {
    let same = |existing: &RestoreRequest| (&existing.to, &existing.failed) == (&request.to, &request.failed);
    let checks_play = |existing: &RestoreRequest| existing.unless_played || !request.unless_played;
    let is_enough =
        |existing: &RestoreRequest| same(existing) && (!request.worlds || existing.worlds && checks_play(existing));
    observed.init_requests.rollback.as_ref().is_some_and(is_enough)
}

/// Whether the restore of plugin data is already requested, if there is any to restore.
pub(crate) fn is_plugin_data_restore_requested(observed: &Observed) -> bool {
    plugin_data_restore_request(observed).is_none_or(|request| is_restore_requested(observed, &request))
}

/// The restore request for plugin data after a roll-back to the stable set. `None` if the stable set does not support it, or no data was
/// saved.
pub(crate) fn plugin_data_restore_request(observed: &Observed) -> Option<RestoreRequest> {
    let (to, failed) = rollback_locks(observed, saves_plugin_data)?;
    let is_of_this_step = |report: &AgentReport| {
        report.plugin_data.as_ref().is_some_and(|data| data.before == failed && data.back.is_none())
    };
    // An unreachable agent may have saved some.
    let may_have_saved = observed.reply.report.as_deref().is_none_or(is_of_this_step);
    may_have_saved.then_some(RestoreRequest { to, failed, unless_played: true, worlds: false })
}

/// The locks of the stable revision and of the running one, if the stable template supports `can`. Two revisions with the same files have
/// nothing to roll back.
fn rollback_locks(observed: &Observed, can: fn(&PodTemplateSpec) -> bool) -> Option<(String, String)> {
    let stable = observed.stable.as_ref().filter(|stable| can(&stable.template));
    let to = stable.and(observed.stable_lock.as_ref())?.files.lock.clone();
    let failed = observed.pod_lock.as_ref()?.files.lock.clone();
    (to != failed).then_some((to, failed))
}

/// The backups in the agent's last report. A report that could not read them gives no information. Taking it for "no backup and no play"
/// would cause a roll-back after play.
fn last_known_backups(observed: &Observed) -> Option<&BackupsReport> {
    observed.last_report()?.backups.as_ref().filter(|backups| backups.problem.is_none())
}

/// The backups in the agent's current report.
pub(crate) fn current_backups(observed: &Observed) -> Option<&BackupsReport> {
    observed.reply.report.as_ref()?.backups.as_ref()
}

/// The backup of the worlds from before the set in this pod first opened them, if the stable set can open and restore it. A template from
/// before `spec.backup` has no volume for it.
pub(crate) fn offline_backup(observed: &Observed) -> Option<&BackupReport> {
    let request = world_restore_request(observed)?;
    let stable = observed.facts.settled?.world;
    let backup = last_known_backups(observed)?.last_of_worlds.as_ref()?;
    let opens = backup.data_version.is_some_and(|format| DataVersion(format) <= stable);
    (backup.before.as_ref() == Some(&request.failed) && opens).then_some(backup)
}

/// A backup for the roll-back that does not fit on the server's volume.
pub(crate) struct InsufficientSpace<'a> {
    /// The backup.
    pub(crate) backup: &'a BackupReport,
    /// Bytes that have to be free.
    pub(crate) needed: u64,
    /// Bytes that are free.
    pub(crate) free: u64,
}

/// Whether the backup of the worlds does not fit, according to the agent's last report. If the report does not contain the free space, it
/// is assumed to fit.
pub(crate) fn insufficient_space(observed: &Observed) -> Option<InsufficientSpace<'_>> {
    let backup = offline_backup(observed)?;
    let (needed, free) = (space_needed(backup.bytes), last_known_backups(observed)?.free?);
    (free < needed).then_some(InsufficientSpace { backup, needed, free })
}

/// The restore request for the worlds after a roll-back to the stable set. `None` if the stable set does not support it. An unchanged world
/// then opens as it is, and the init container refuses any other.
pub(crate) fn world_restore_request(observed: &Observed) -> Option<RestoreRequest> {
    let (to, failed) = rollback_locks(observed, supports_backups)?;
    // An unreachable agent does not tell whether the world was opened or played, and unreadable backups do not tell since when. An
    // untouched world may still be played on until its server is stopped, and that progress would be lost.
    let unless_played =
        current_backups(observed).is_none_or(|backups| backups.problem.is_some() || backups.played_since);
    Some(RestoreRequest { to, failed, unless_played, worlds: true })
}

#[cfg(test)]
mod tests;
