//! Pure. Keeps the history of starts: which content they opened, how often in a row, and which content was closed in between.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use agent_api::loaded_content::{AtStart, Loaded, MAX_TRACKED};

/// Worlds that are never closed while the server runs.
pub(super) const ALWAYS_OPEN: [&str; 3] = ["overworld", "the_nether", "the_end"];

/// How many starts in a row make it likely that the next one opens a world too. One is not enough: a plugin may open another map at each start,
/// and a user may have opened a world just after it. Two in a row can be chance.
const STARTS_UNTIL_LIKELY: u32 = 3;

/// The content on the volume, and whether it is open. An inner `None` means that this was not checked. An outer `None` means that it could not be
/// read.
pub(super) type Now = Option<BTreeMap<String, Option<bool>>>;

/// `opened.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LoadedRecord {
    /// The mark in the log of the start that `worlds` and `datapacks` describe.
    start: Option<String>,
    worlds: Kind,
    datapacks: Kind,
}

/// The record of worlds, or of datapacks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Kind {
    /// The content that the last start opened.
    opened: BTreeSet<String>,
    /// The content that was closed while a server ran, and that no start has opened since.
    pub(super) closed: BTreeSet<String>,
    /// The content that was open when its server was saved for a stop, so it was not closed. For a server that crashed this is unknown.
    kept_open: BTreeSet<String>,
    /// How reliably each is opened.
    rows: BTreeMap<String, LoadedRow>,
}

/// Consecutive starts that opened the same content. Starts that could not be read are skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LoadedRow {
    starts: u32,
    /// The lock of the last of them.
    lock: Option<String>,
    /// The lock of a start that has not opened it since, with other files than the starts before. After a rollback from that lock, the row
    /// continues. A later version set may still have the same fault, and is not the cause.
    cut_by: Option<String>,
    /// A start with the same files did not open it although the one before did. It is opened by chance, and is never expected again.
    is_fickle: bool,
}

/// The identity of a start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StartId {
    /// The mark in its log. `None`: its log was rotated at midnight, or could not be read.
    pub(super) mark: Option<String>,
    /// The digest of the lock that it runs.
    pub(super) lock: Option<String>,
    /// Whether this agent observed that the server was not running before it.
    pub(super) observed_stopped: bool,
}

impl LoadedRecord {
    /// Records a start and returns its report. An agent that restarted beside the server finds its own start here, and records which content was
    /// closed in between.
    pub(super) fn begin(&mut self, start: &StartId, worlds: &Now, datapacks: &Now) -> Loaded {
        let is_other = self.start.is_some() && start.mark.is_some() && start.mark != self.start;
        if start.observed_stopped || *self == Self::default() || is_other {
            self.start.clone_from(&start.mark);
            self.worlds.begin(worlds, start.lock.as_ref());
            self.datapacks.begin(datapacks, start.lock.as_ref());
        } else {
            self.close(worlds, datapacks);
        }
        self.worlds.record_opened(worlds);
        self.datapacks.record_opened(datapacks);
        let (worlds, too_many_worlds) = self.worlds.report(worlds, start.lock.as_ref());
        let (datapacks, too_many_datapacks) = self.datapacks.report(datapacks, start.lock.as_ref());
        Loaded { worlds, too_many_worlds, datapacks, too_many_datapacks }
    }

    /// Content that the start opened and that is not open now was closed by a user.
    pub(super) fn close(&mut self, worlds: &Now, datapacks: &Now) {
        self.worlds.close(worlds, &ALWAYS_OPEN);
        self.datapacks.close(datapacks, &[]);
    }

    /// The worlds that earlier starts opened and that were not closed. The check waits for them.
    pub(super) fn expected_worlds(&self) -> BTreeSet<String> {
        self.worlds.rows.keys().filter(|name| !self.worlds.closed.contains(*name)).cloned().collect()
    }
}

impl Kind {
    fn begin(&mut self, now: &Now, lock: Option<&String>) {
        self.opened.clear();
        let Some(now) = now else {
            // Content that is closed before the server stops is not observed.
            self.kept_open.clear();
            return;
        };
        for (name, open) in now {
            match open {
                Some(true) => {
                    self.kept_open.remove(name);
                    let row = self.rows.entry(name.clone()).or_default();
                    let is_continued = row.cut_by.is_none() || row.lock.as_ref() == lock;
                    let starts = if is_continued { row.starts.saturating_add(1) } else { 1 };
                    *row = LoadedRow { starts, lock: lock.cloned(), cut_by: None, is_fickle: row.is_fickle };
                }
                Some(false) => {
                    let Some(row) = self.rows.get_mut(name) else { continue };
                    if row.lock.as_ref() == lock {
                        row.is_fickle = true;
                    } else if row.cut_by.is_none() {
                        row.cut_by = Some(lock.cloned().unwrap_or_default());
                    }
                }
                None => {}
            }
        }
        self.rows.retain(|name, _| now.contains_key(name));
        self.kept_open.retain(|name| now.contains_key(name));
        if now.len() > MAX_TRACKED {
            self.rows.clear();
        }
    }

    fn record_opened(&mut self, now: &Now) {
        for (name, _) in now.iter().flatten().filter(|(_, open)| **open == Some(true)) {
            self.opened.insert(name.clone());
            self.closed.remove(name);
        }
    }

    fn close(&mut self, now: &Now, never_closed: &[&str]) {
        let Some(now) = now else { return };
        for name in self.opened.iter().filter(|name| !never_closed.contains(&name.as_str())) {
            match now.get(name) {
                // This was not checked.
                Some(None) => {
                    self.kept_open.remove(name);
                }
                Some(Some(true)) => {
                    self.closed.remove(name);
                    self.kept_open.insert(name.clone());
                }
                Some(Some(false)) | None => {
                    self.closed.insert(name.clone());
                    self.kept_open.remove(name);
                }
            }
        }
        // Bounded, because some servers create and close many worlds for good.
        while self.closed.len() > MAX_TRACKED {
            self.closed.pop_first();
        }
    }

    /// The report of a start with this lock, and whether more content exists than is tracked.
    fn report(&self, now: &Now, lock: Option<&String>) -> (Option<BTreeMap<String, AtStart>>, bool) {
        let Some(now) = now else { return (None, false) };
        let Some(room) = MAX_TRACKED.checked_sub(now.len()) else { return (None, true) };
        let at_start = |name: &String| match name {
            closed if self.closed.contains(closed) => AtStart::ClosedBefore,
            likely if self.is_likely(likely, lock) => AtStart::NotAnyMore,
            _ => AtStart::NotOpened,
        };
        // Content that was closed and deleted is listed as far as space allows. Otherwise it would be reported missing.
        let deleted = self.closed.iter().filter(|name| !now.contains_key(*name)).take(room);
        let shut = now.keys().chain(deleted).map(|name| (name.clone(), at_start(name)));
        let opened = self.opened.iter().map(|name| (name.clone(), AtStart::Opened));
        (Some(shut.chain(opened).collect()), false)
    }

    /// Whether a start with this lock would have opened it as the starts before did, if its version set worked as well. No server runs without
    /// its own level, so for that one a single start is enough.
    fn is_likely(&self, name: &str, lock: Option<&String>) -> bool {
        let Some(row) = self.rows.get(name) else { return false };
        let is_steady = row.starts >= STARTS_UNTIL_LIKELY && !row.is_fickle && self.kept_open.contains(name);
        (is_steady || name == ALWAYS_OPEN[0]) && (row.cut_by.is_none() || row.cut_by.as_ref() == lock)
    }
}
