//! Pure. The benchmarks are in `benches/`; what they measured stands in `README.md`, with machine and date.
