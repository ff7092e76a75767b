//! Pure. Defines the annotations with which a user approves or requests one exact version set or backup.

/// The user's approval that a version set is applied in its maintenance window, if approval is required. The value is the digest of the lock. The
/// operator never removes it.
pub const APPROVE: &str = "nightshift.dev/approve";
/// The user's request to apply one exact version set now. The value is the digest of the lock. It also approves the version set. The operator never
/// removes it.
pub const APPLY: &str = "nightshift.dev/apply";
/// The user's request to roll back to an earlier version set and to stay there. The value is the digest of its lock, or [`PREVIOUS`]. The operator
/// never removes it.
pub const ROLLBACK_TO: &str = "nightshift.dev/rollback-to";
/// The value of [`ROLLBACK_TO`] that stands for the version set that ran before the running one.
pub const PREVIOUS: &str = "previous";
/// The user's request to restart the server once, without an update. The value is the current time in unix seconds. The operator never removes it.
pub const RESTART_NOW: &str = "nightshift.dev/restart-now";
/// The user's request to read anew the pages of all upstreams that the server uses, and to look for releases. The value is the current time in unix
/// seconds. The operator never removes it.
pub const RECONCILE: &str = "nightshift.dev/reconcile";
/// The user's request to restore the worlds of a backup. The value is the name of the backup or `latest`, followed by `;overwrite`. The operator
/// never removes it.
pub const RESTORE_FROM: &str = "nightshift.dev/restore-from";

/// The fewest digits of a digest that identify a version set. Object names contain as many.
const MIN_DIGITS: usize = 16;

/// Whether the written value means this digest: it has all digits, or at least the first 16.
pub fn matches_digest(written: &str, digest: &str) -> bool {
    let written = written.trim();
    written.len() >= MIN_DIGITS && digest.starts_with(written)
}
