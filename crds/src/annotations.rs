//! Pure. A person's word about one exact set, or one exact copy: which annotations carry it, and which set a digest in them names.

/// A person's word that a set may come in its window, where that is required: digest of the lock. Never removed by us.
pub const APPROVE: &str = "nightshift.dev/approve";
/// A person's request that one exact set comes now: digest of the lock. It approves the set as well. Never removed by us.
pub const APPLY: &str = "nightshift.dev/apply";
/// A person's request to go back to an earlier set and to stay there: digest of its lock, or [`PREVIOUS`]. Never removed by us.
pub const ROLLBACK_TO: &str = "nightshift.dev/rollback-to";
/// In [`ROLLBACK_TO`]: the set that ran before the one that runs.
pub const PREVIOUS: &str = "previous";
/// A person's request to put the worlds of a copy in place: its name or `latest`, and `;overwrite` behind it. Never removed by us.
pub const RESTORE_FROM: &str = "nightshift.dev/restore-from";

/// The fewest digits of a digest that name a set: what names of objects hold of it.
const ENOUGH_DIGITS: usize = 16;

/// Whether somebody means this digest: all of its digits, or the first 16 at least.
pub fn names(written: &str, digest: &str) -> bool {
    let written = written.trim();
    written.len() >= ENOUGH_DIGITS && digest.starts_with(written)
}
