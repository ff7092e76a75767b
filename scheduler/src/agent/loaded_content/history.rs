//! Pure. What the volume remembers of starts: what they opened, how often in a row, and what somebody closed in between.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::protocol::loaded::{AtStart, Loaded, MOST};

/// Worlds that nobody closes while the server runs.
pub(super) const OWN: [&str; 3] = ["overworld", "the_nether", "the_end"];

/// How many starts in a row make it likely that the next one opens it too. One proves nothing: a plugin may open another map at each start,
/// and somebody may have opened a world just after it. Two in a row come by chance.
const LIKELY: u32 = 3;

/// What lies on the volume, and whether it is open: None where that was not asked. All of it None: it could not be read.
pub(super) type Now = Option<BTreeMap<String, Option<bool>>>;

/// `opened.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LoadedRecord {
    /// The mark in the log of the start that `worlds` and `datapacks` are about.
    start: Option<String>,
    worlds: Kind,
    datapacks: Kind,
}

/// What is remembered of worlds, or of datapacks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Kind {
    /// What the last start has opened.
    opened: BTreeSet<String>,
    /// What was closed while a server ran, and no start has opened since.
    pub(super) closed: BTreeSet<String>,
    /// What was seen open when its server was saved for a stop: nobody has closed it. Of a server that crashed nothing is known.
    kept_open: BTreeSet<String>,
    /// How faithfully it is opened.
    rows: BTreeMap<String, LoadedRow>,
}

/// Starts in a row that opened the same. Those of which nothing could be read are not among them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LoadedRow {
    starts: u32,
    /// The lock of the last of them.
    lock: Option<String>,
    /// The lock of a start that has not opened it since, with other files than those that did. Where it is gone back from, the row goes on;
    /// a set after it may be as it is, and is not to blame.
    cut_by: Option<String>,
    /// A start has not opened it although the one before did, with the same files: it is opened by chance, and never counted upon again.
    is_fickle: bool,
}

/// What a start is told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StartId {
    /// None: its log was put away at midnight, or could not be read.
    pub(super) mark: Option<String>,
    /// The digest of the lock that it runs.
    pub(super) lock: Option<String>,
    /// This agent has seen the server not run before it.
    pub(super) seen: bool,
}

impl LoadedRecord {
    /// What a start has made of it. An agent that was started again beside the server finds its own start here, and what was closed in between.
    pub(super) fn begin(&mut self, start: &StartId, worlds: &Now, datapacks: &Now) -> Loaded {
        let is_other = self.start.is_some() && start.mark.is_some() && start.mark != self.start;
        if start.seen || *self == Self::default() || is_other {
            self.start.clone_from(&start.mark);
            self.worlds.begin(worlds, start.lock.as_ref());
            self.datapacks.begin(datapacks, start.lock.as_ref());
        } else {
            self.close(worlds, datapacks);
        }
        self.worlds.note_opened(worlds);
        self.datapacks.note_opened(datapacks);
        let (worlds, too_many_worlds) = self.worlds.told(worlds, start.lock.as_ref());
        let (datapacks, too_many_datapacks) = self.datapacks.told(datapacks, start.lock.as_ref());
        Loaded { worlds, too_many_worlds, datapacks, too_many_datapacks }
    }

    /// What the start has opened and is not open now was closed by somebody.
    pub(super) fn close(&mut self, worlds: &Now, datapacks: &Now) {
        self.worlds.close(worlds, &OWN);
        self.datapacks.close(datapacks, &[]);
    }

    /// The worlds that starts before have opened and nobody has closed: they are waited for.
    pub(super) fn expected_worlds(&self) -> BTreeSet<String> {
        self.worlds.rows.keys().filter(|name| !self.worlds.closed.contains(*name)).cloned().collect()
    }
}

impl Kind {
    fn begin(&mut self, now: &Now, lock: Option<&String>) {
        self.opened.clear();
        let Some(now) = now else {
            // What of it is closed until the server stops nobody will see.
            self.kept_open.clear();
            return;
        };
        for (name, open) in now {
            match open {
                Some(true) => {
                    self.kept_open.remove(name);
                    let row = self.rows.entry(name.clone()).or_default();
                    let goes_on = row.cut_by.is_none() || row.lock.as_ref() == lock;
                    let starts = if goes_on { row.starts.saturating_add(1) } else { 1 };
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
        if now.len() > MOST {
            self.rows.clear();
        }
    }

    fn note_opened(&mut self, now: &Now) {
        for (name, _) in now.iter().flatten().filter(|(_, open)| **open == Some(true)) {
            self.opened.insert(name.clone());
            self.closed.remove(name);
        }
    }

    fn close(&mut self, now: &Now, own: &[&str]) {
        let Some(now) = now else { return };
        for name in self.opened.iter().filter(|name| !own.contains(&name.as_str())) {
            match now.get(name) {
                // Nobody has asked.
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
        // Bounded: names of worlds that are made by the dozen and closed for good.
        while self.closed.len() > MOST {
            self.closed.pop_first();
        }
    }

    /// For the report of a start with this lock, and whether there are more than are told apart.
    fn told(&self, now: &Now, lock: Option<&String>) -> (Option<BTreeMap<String, AtStart>>, bool) {
        let Some(now) = now else { return (None, false) };
        let Some(room) = MOST.checked_sub(now.len()) else { return (None, true) };
        let at_start = |name: &String| match name {
            closed if self.closed.contains(closed) => AtStart::ClosedBefore,
            likely if self.is_likely(likely, lock) => AtStart::NotAnyMore,
            _ => AtStart::NotOpened,
        };
        // What was closed and deleted is told as far as there is room: without that it would be called gone.
        let deleted = self.closed.iter().filter(|name| !now.contains_key(*name)).take(room);
        let shut = now.keys().chain(deleted).map(|name| (name.clone(), at_start(name)));
        let opened = self.opened.iter().map(|name| (name.clone(), AtStart::Opened));
        (Some(shut.chain(opened).collect()), false)
    }

    /// Whether a start with this lock would have opened it as those before, if its set were as good. No server runs without its own level, so
    /// for that one a single start is enough.
    fn is_likely(&self, name: &str, lock: Option<&String>) -> bool {
        let Some(row) = self.rows.get(name) else { return false };
        let is_steady = row.starts >= LIKELY && !row.is_fickle && self.kept_open.contains(name);
        (is_steady || name == OWN[0]) && (row.cut_by.is_none() || row.cut_by.as_ref() == lock)
    }
}
