//! Edge (writes). Groups the tests that need the node for themselves.
//!
//! The runner starts tests in the order of their names, so that these start first, one after the other. At most the
//! tests that started at the same moment run beside them. A test in between would wait for all others, and all others
//! for it.

mod drain;
mod fleet;
mod node_lost;
mod offline;
mod storm;
