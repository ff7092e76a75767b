//! Pure. The invented worlds that the benchmarks share; what they measured stands in `README.md`, with machine and date.

pub mod counted;
pub mod worlds;
