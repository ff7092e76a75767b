//! Edge (reads). Contains the code that the benchmarks share: generated catalogs, and the measurement of costs. `README.md` has the results with
//! machine and date.

pub mod budgets;
pub mod generators;
pub mod instruction_counts;
pub mod measure;
