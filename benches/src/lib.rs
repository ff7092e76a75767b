//! Edge (reads). What the benchmarks share: invented worlds, and how a cost is measured. What they measured stands in `README.md`, with
//! machine and date.

pub mod bounds;
pub mod counted;
pub mod measure;
pub mod worlds;
