//! Edge (reads). Measures the cost of one piece of work in this process: time, and memory above the previous level.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// The cost of a piece of work.
pub struct Cost {
    /// The growth of resident memory above the level before the work, in MiB, as the kernel counts it.
    pub peak: u64,
    /// The duration of the work.
    pub took: Duration,
}

impl Cost {
    /// The duration of this work divided by that of the other.
    pub fn ratio_to(&self, other: &Self) -> f64 {
        self.took.as_secs_f64() / other.took.as_secs_f64()
    }
}

/// A figure of a process' `status`, in KiB, or 0 if there is none. `process` is its number, or `self`.
pub fn status(process: &str, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default()
}

/// Does the work once and measures it.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    // Resets the peak. This is not allowed everywhere. The figure is then that of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let (before, start) = (status("self", "VmRSS"), Instant::now());
    let done = work();
    let took = start.elapsed();
    (done, Cost { peak: status("self", "VmHWM").saturating_sub(before) / 1024, took })
}

/// Does the work `runs` times. The result is the run with the median duration.
pub fn median<T>(runs: usize, work: impl Fn() -> T) -> (T, Cost) {
    let mut runs: Vec<(T, Cost)> = (0..runs).map(|_| measure(&work)).collect();
    runs.sort_by_key(|(_, cost)| cost.took);
    let middle = runs.len() / 2;
    runs.swap_remove(middle)
}

/// Prints one line for the reader.
pub fn print_line(line: &str) {
    // A failed write to stdout cannot be reported.
    let _ = writeln!(std::io::stdout(), "{line}");
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} ms, {} MiB", self.took.as_secs_f64() * 1000.0, self.peak)
    }
}
