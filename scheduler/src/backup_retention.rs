//! Pure. Decides which backups are removed.
//!
//! When in doubt, it removes none.

use jiff::{SignedDuration, Timestamp};

use agent_api::Contents;

/// How long a backup is kept that a user may still want to return to instead of a newer one.
const OLDER_KEPT_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How many backups are kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The maximum number of good backups. 0 is taken as 1.
    pub max_count: u32,
    /// The maximum age. `None`: no backup is too old.
    pub max_age: Option<SignedDuration>,
    /// Whether backups of older Minecraft versions than the newest one are kept besides, for 30 days. Not on the server's own volume, which is also
    /// needed by its worlds.
    pub keeps_older: bool,
}

/// The state of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupState {
    /// It was verified, and no fault was found since.
    Good,
    /// The disk could not read it last time. It may become readable again.
    Unread,
    /// It is damaged, or its content is unknown.
    Bad,
}

/// The properties of one backup that retention depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionCandidate {
    /// Its name.
    pub id: String,
    /// When it began.
    pub taken_at: Timestamp,
    /// Its contents. `None` if its record cannot be read.
    pub contents: Option<Contents>,
    /// Whether it was taken before an update, of a stopped server.
    pub before_update: bool,
    /// The format of its worlds. `None`: unknown, or it has no worlds.
    pub data_version: Option<u32>,
    /// Whether it was taken after the server's log had reported damage to the worlds.
    pub after_damage: bool,
    /// Whether it can be used.
    pub state: BackupState,
    /// Whether an unfinished update may need it for a rollback.
    pub needed: bool,
}

/// The names of the backups to remove, oldest first. These are kept:
///
/// - The newest good backup of the worlds and the newest good backup of the other files, however old they are.
/// - The newest good backup of the worlds from before an update. It is the rollback backup, and no number of other backups replaces it.
/// - With `keeps_older`, for 30 days, the newest such backup of an older Minecraft than that one. If a newer Minecraft failed and was rolled forward, only this
///   backup can be opened by the version set before.
/// - With `keeps_older`, for 30 days, the newest good backup of the worlds of an older Minecraft than that of the newest one, however it was taken. The newest one of
///   a still older Minecraft is kept too. If a newer Minecraft failed without a backup from right before, backups continue while the admin
///   decides. Those new backups cannot be used for a rollback.
/// - The newest good backup of the worlds that was not taken after the log had reported damage to them. Later ones may all be damaged, however
///   many exist.
/// - A backup that is needed.
/// - A backup that is not good, while good ones leave a place free and it is not too old. It takes no place itself.
/// - A backup that could not be read, if it would be the last of its kind and no good one exists. It may be the only one.
pub fn to_remove(candidates: &[RetentionCandidate], retention: Retention, now: Timestamp) -> Vec<String> {
    let most = usize::try_from(retention.max_count.max(1)).unwrap_or(usize::MAX);
    let too_old = |candidate: &RetentionCandidate| {
        let oldest = retention.max_age.map(|age| now.checked_sub(age).unwrap_or(Timestamp::MIN));
        oldest.is_some_and(|oldest| candidate.taken_at < oldest)
    };
    let mut newest_first: Vec<&RetentionCandidate> = candidates.iter().collect();
    newest_first.sort_by(|a, b| (b.taken_at, &b.id).cmp(&(a.taken_at, &a.id)));
    let (good, bad): (Vec<&RetentionCandidate>, Vec<&RetentionCandidate>) =
        newest_first.into_iter().partition(|candidate| candidate.state == BackupState::Good);

    // A good backup is preferred to any that could not be read.
    let newest = |fits: &dyn Fn(&RetentionCandidate) -> bool| {
        let unread = bad.iter().filter(|candidate| candidate.state == BackupState::Unread);
        good.iter().chain(unread).find(|candidate| fits(candidate)).copied()
    };
    let has_worlds = |candidate: &RetentionCandidate| candidate.contents.is_some_and(Contents::has_worlds);
    let has_server_files = |candidate: &RetentionCandidate| candidate.contents.is_some_and(Contents::has_server_files);
    let is_rollback = |candidate: &RetentionCandidate| candidate.before_update && has_worlds(candidate);
    let is_from_before_damage = |candidate: &RetentionCandidate| !candidate.after_damage && has_worlds(candidate);
    let rollback = newest(&is_rollback);
    let is_older = |candidate: &RetentionCandidate| {
        candidate.data_version.is_some() && candidate.data_version < rollback.and_then(|rollback| rollback.data_version)
    };
    let may_be_wanted = |candidate: &RetentionCandidate| {
        retention.keeps_older && now.duration_since(candidate.taken_at) < OLDER_KEPT_FOR
    };
    let is_older_rollback =
        |candidate: &RetentionCandidate| is_rollback(candidate) && is_older(candidate) && may_be_wanted(candidate);
    let newest_worlds = newest(&has_worlds);
    let of_older_than = |newer: Option<&RetentionCandidate>| {
        let bound = newer.and_then(|newer| newer.data_version);
        newest(&|candidate: &RetentionCandidate| {
            has_worlds(candidate)
                && candidate.data_version.is_some()
                && candidate.data_version < bound
                && may_be_wanted(candidate)
        })
    };
    let of_older = of_older_than(newest_worlds);
    let last = [
        newest_worlds,
        newest(&has_server_files),
        rollback,
        newest(&is_older_rollback),
        of_older,
        of_older_than(of_older),
        newest(&is_from_before_damage),
    ];
    let is_last = |candidate: &RetentionCandidate| last.iter().flatten().any(|last| last.id == candidate.id);

    let mut retained = 0;
    let mut removed: Vec<&RetentionCandidate> = Vec::new();
    for (rank, candidate) in good.iter().enumerate() {
        if candidate.needed || is_last(candidate) || (rank < most && !too_old(candidate)) {
            retained += 1;
        } else {
            removed.push(candidate);
        }
    }
    for candidate in &bad {
        if candidate.needed || is_last(candidate) || (retained < most && !too_old(candidate)) {
            retained += 1;
        } else {
            removed.push(candidate);
        }
    }
    removed.sort_by(|a, b| (a.taken_at, &a.id).cmp(&(b.taken_at, &b.id)));
    removed.into_iter().map(|candidate| candidate.id.clone()).collect()
}

#[cfg(test)]
mod tests;
