//! Edge (reads). The one place of the agent that asks what time it is.

use jiff::Timestamp;

/// Now, by the clock of the pod's node.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the file that reads the clock; everything else takes the time as an argument"
)]
pub fn now() -> Timestamp {
    Timestamp::now()
}
