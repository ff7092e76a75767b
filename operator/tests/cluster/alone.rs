//! Edge (writes). What needs the node for itself. The runner begins tests in the order of their names, so that these come first, one after
//! the other, with at most what else began in the same moment: whoever comes in between would wait until all others are over, and all others
//! for it.

mod drain;
mod fleet;
mod node_lost;
mod offline;
mod storm;
