//! Edge (reads). Contains the code that the benchmarks share: generated catalogs, and the measurement of costs. `README.md` has the results with
//! machine and date.

pub mod bounds;
pub mod counted;
pub mod measure;
pub mod worlds;
