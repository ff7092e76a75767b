//! Pure. Counts the requests to the API server by verb and kind.

use std::collections::BTreeMap;
use std::fmt;

/// The numbers of requests by verb and kind, such as `get pods`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestCounts(BTreeMap<(&'static str, String), u32>);

impl RequestCounts {
    /// Counts one request. The verb is that of the API server's audit log, or `dry run`.
    pub(super) fn record(&mut self, verb: &'static str, plural: &str) {
        *self.0.entry((verb, plural.to_owned())).or_default() += 1;
    }

    /// The number of requests that only read.
    pub(super) fn reads(&self) -> u32 {
        self.0.iter().filter(|((verb, _), _)| is_read(verb)).map(|(_, count)| count).sum()
    }

    /// The number of all other requests. The API server handles a dry run like a write.
    pub(super) fn writes(&self) -> u32 {
        self.0.iter().filter(|((verb, _), _)| !is_read(verb)).map(|(_, count)| count).sum()
    }
}

fn is_read(verb: &str) -> bool {
    matches!(verb, "get" | "list")
}

impl fmt::Display for RequestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} reads, {} writes:", self.reads(), self.writes())?;
        self.0.iter().try_for_each(|((verb, plural), count)| write!(f, " {count} {verb} {plural};"))
    }
}
