//! Edge (reads). What one piece of work costs this process: time, and memory above what was there before.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// What something took.
pub struct Cost {
    /// How far resident memory went above what was there before, in MiB, as the kernel counts it.
    pub peak: u64,
    /// How long it took.
    pub took: Duration,
}

impl Cost {
    /// How many times as long as the other this took.
    pub fn times(&self, other: &Self) -> f64 {
        self.took.as_secs_f64() / other.took.as_secs_f64()
    }
}

/// A figure of a process' `status`, in KiB; 0 where there is none. `process`: its number, or `self`.
pub fn status(process: &str, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default()
}

/// Does the work once.
pub fn cost<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    // Resets the peak. Not allowed everywhere: the figure is then that of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let (before, start) = (status("self", "VmRSS"), Instant::now());
    let done = work();
    let took = start.elapsed();
    (done, Cost { peak: status("self", "VmHWM").saturating_sub(before) / 1024, took })
}

/// Does the work so often; the median by time counts.
pub fn median<T>(runs: usize, work: impl Fn() -> T) -> (T, Cost) {
    let mut runs: Vec<(T, Cost)> = (0..runs).map(|_| cost(&work)).collect();
    runs.sort_by_key(|(_, cost)| cost.took);
    let middle = runs.len() / 2;
    runs.swap_remove(middle)
}

/// One line for the reader.
pub fn say(line: &str) {
    // Nobody is left to be told.
    let _ = writeln!(std::io::stdout(), "{line}");
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} ms, {} MiB", self.took.as_secs_f64() * 1000.0, self.peak)
    }
}
