//! Pure. Which copies go. When in doubt, none.

use jiff::{SignedDuration, Timestamp};

use super::Contents;

/// How many copies are kept, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// At most so many good ones. 0 is taken as 1.
    pub max_count: u32,
    /// None: no copy is too old.
    pub max_age: Option<SignedDuration>,
}

/// What is asked of one copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub id: String,
    /// When it was begun.
    pub taken_at: Timestamp,
    /// What it holds; None if its record cannot be read.
    pub contents: Option<Contents>,
    /// It was taken before an update, of a server that did not run.
    pub before_update: bool,
    /// It was read back, and nothing has been found wrong with it since.
    pub good: bool,
    /// An update that is not over may have to come back to it.
    pub needed: bool,
}

/// The names of those that go, oldest first.
///
/// - The newest good copy of the worlds stays, and the newest good copy of the other files, however old they are.
/// - So does the newest good copy of the worlds from before an update: it is the way back, and no number of others takes its place.
/// - A copy that is needed stays.
/// - One that is not good takes no place: it stays as long as good ones leave a place free and it is not too old.
pub fn to_remove(copies: &[Candidate], retention: Retention, now: Timestamp) -> Vec<String> {
    let most = usize::try_from(retention.max_count.max(1)).unwrap_or(usize::MAX);
    let too_old = |copy: &Candidate| {
        let oldest = retention.max_age.map(|age| now.checked_sub(age).unwrap_or(Timestamp::MIN));
        oldest.is_some_and(|oldest| copy.taken_at < oldest)
    };
    let mut newest_first: Vec<&Candidate> = copies.iter().collect();
    newest_first.sort_by(|a, b| (b.taken_at, &b.id).cmp(&(a.taken_at, &a.id)));
    let (good, bad): (Vec<&Candidate>, Vec<&Candidate>) = newest_first.into_iter().partition(|copy| copy.good);

    let holds = |part: fn(Contents) -> bool| good.iter().find(|copy| copy.contents.is_some_and(part));
    let is_way_back = |copy: &&&Candidate| copy.before_update && copy.contents.is_some_and(Contents::has_worlds);
    let way_back = good.iter().find(is_way_back);
    let last = [holds(Contents::has_worlds), holds(Contents::has_server_files), way_back];
    let is_last = |copy: &Candidate| last.iter().flatten().any(|last| last.id == copy.id);

    let mut kept = 0;
    let mut removed: Vec<&Candidate> = Vec::new();
    for (place, copy) in good.iter().enumerate() {
        if copy.needed || is_last(copy) || (place < most && !too_old(copy)) {
            kept += 1;
        } else {
            removed.push(copy);
        }
    }
    for copy in bad {
        if copy.needed || (kept < most && !too_old(copy)) {
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
