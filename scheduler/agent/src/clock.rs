//! Edge (reads). The only file of the agent that reads the clock.

use jiff::Timestamp;

/// Now, by the clock of the pod's node.
#[expect(
    clippy::disallowed_methods,
    reason = "only this file reads the clock, and other code takes the time as an argument"
)]
pub fn now() -> Timestamp {
    Timestamp::now()
}
