//! Pure. Which copies go. When in doubt, none.

use jiff::{SignedDuration, Timestamp};

use super::Contents;

/// For so long a copy stays that a person may still want to go back to, over a newer one.
const MAY_BE_WANTED: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How many copies are kept, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// At most so many good ones. 0 is taken as 1.
    pub max_count: u32,
    /// None: no copy is too old.
    pub max_age: Option<SignedDuration>,
}

/// What is known of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was read back, and nothing has been found wrong with it since.
    Good,
    /// The disk did not give it when it was read last. It may again.
    Unread,
    /// It is damaged, or nobody knows what it is.
    Bad,
}

/// What is asked of one copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionCandidate {
    /// Its name.
    pub id: String,
    /// When it was begun.
    pub taken_at: Timestamp,
    /// What it holds; None if its record cannot be read.
    pub contents: Option<Contents>,
    /// It was taken before an update, of a server that did not run.
    pub before_update: bool,
    /// The format of its worlds; None: not known, or it has none.
    pub data_version: Option<u32>,
    /// It was taken after the server's log had told of damage to the worlds.
    pub after_damage: bool,
    /// Whether it can be had.
    pub standing: Standing,
    /// An update that is not over may have to come back to it.
    pub needed: bool,
}

/// The names of those that go, oldest first.
///
/// - The newest good copy of the worlds stays, and the newest good copy of the other files, however old they are.
/// - So does the newest good copy of the worlds from before an update: it is the way back, and no number of others takes its place.
/// - So does, for 30 days, the newest such copy of an older Minecraft than that one: where a newer one failed and another set came forward instead, it is
///   all that the set before could open.
/// - So do, for 30 days, the newest good copy of the worlds of an older Minecraft than that of the newest one, and that of one older still, however they
///   were taken: where a newer one failed without a copy from right before, what runs is copied on while a person decides, and none of that could be gone
///   back to.
/// - So does the newest good copy of the worlds that was not taken after the log had told of damage to them: however many are taken after
///   it, none of them is known to be whole.
/// - A copy that is needed stays.
/// - One that is not good takes no place: it stays as long as good ones leave a place free and it is not too old.
/// - One that could not be read stays beside them where it would be the last of its kind and no good one is. It may be all that there is.
pub fn to_remove(copies: &[RetentionCandidate], retention: Retention, now: Timestamp) -> Vec<String> {
    let most = usize::try_from(retention.max_count.max(1)).unwrap_or(usize::MAX);
    let too_old = |copy: &RetentionCandidate| {
        let oldest = retention.max_age.map(|age| now.checked_sub(age).unwrap_or(Timestamp::MIN));
        oldest.is_some_and(|oldest| copy.taken_at < oldest)
    };
    let mut newest_first: Vec<&RetentionCandidate> = copies.iter().collect();
    newest_first.sort_by(|a, b| (b.taken_at, &b.id).cmp(&(a.taken_at, &a.id)));
    let (good, bad): (Vec<&RetentionCandidate>, Vec<&RetentionCandidate>) =
        newest_first.into_iter().partition(|copy| copy.standing == Standing::Good);

    // A good one before any that could not be read.
    let newest = |fits: &dyn Fn(&RetentionCandidate) -> bool| {
        let unread = bad.iter().filter(|copy| copy.standing == Standing::Unread);
        good.iter().chain(unread).find(|copy| fits(copy)).copied()
    };
    let has_worlds = |copy: &RetentionCandidate| copy.contents.is_some_and(Contents::has_worlds);
    let has_server_files = |copy: &RetentionCandidate| copy.contents.is_some_and(Contents::has_server_files);
    let is_way_back = |copy: &RetentionCandidate| copy.before_update && has_worlds(copy);
    let is_from_before_damage = |copy: &RetentionCandidate| !copy.after_damage && has_worlds(copy);
    let way_back = newest(&is_way_back);
    let is_older = |copy: &RetentionCandidate| {
        copy.data_version.is_some() && copy.data_version < way_back.and_then(|it| it.data_version)
    };
    let may_be_wanted = |copy: &RetentionCandidate| now.duration_since(copy.taken_at) < MAY_BE_WANTED;
    let is_way_further_back = |copy: &RetentionCandidate| is_way_back(copy) && is_older(copy) && may_be_wanted(copy);
    let newest_worlds = newest(&has_worlds);
    let of_older_than = |newer: Option<&RetentionCandidate>| {
        let bound = newer.and_then(|newer| newer.data_version);
        newest(&|copy: &RetentionCandidate| {
            has_worlds(copy) && copy.data_version.is_some() && copy.data_version < bound && may_be_wanted(copy)
        })
    };
    let of_older = of_older_than(newest_worlds);
    let last = [
        newest_worlds,
        newest(&has_server_files),
        way_back,
        newest(&is_way_further_back),
        of_older,
        of_older_than(of_older),
        newest(&is_from_before_damage),
    ];
    let is_last = |copy: &RetentionCandidate| last.iter().flatten().any(|last| last.id == copy.id);

    let mut kept = 0;
    let mut removed: Vec<&RetentionCandidate> = Vec::new();
    for (place, copy) in good.iter().enumerate() {
        if copy.needed || is_last(copy) || (place < most && !too_old(copy)) {
            kept += 1;
        } else {
            removed.push(copy);
        }
    }
    for copy in &bad {
        if copy.needed || is_last(copy) || (kept < most && !too_old(copy)) {
            kept += 1;
        } else {
            removed.push(copy);
        }
    }
    removed.sort_by(|a, b| (a.taken_at, &a.id).cmp(&(b.taken_at, &b.id)));
    removed.into_iter().map(|copy| copy.id.clone()).collect()
}

#[cfg(test)]
mod tests;
