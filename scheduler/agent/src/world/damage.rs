//! Edge (writes). Scans the server's log for world damage as it grows, and records the damage on the volume.
//!
//! The record is written only when a line reports damage. It includes the position up to which the log was read. Later lines reported no damage.
//! So a new agent reads them again and counts no line twice. A log that was rotated, at a start or at midnight, is not read further.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::plain_fs;
use crate::staging::fs_ops::{self, Disk, FsHook, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use agent_api::world_damage::DamageReport;
use log_patterns::{damage_message, printable};

mod log_patterns;

/// How many bytes one scan reads. The next scan continues from there.
const MAX_SCAN_BYTES: u64 = 16 * 1024 * 1024;

/// The maximum number of consecutive scans, enough for a log of a gigabyte.
const MAX_SCANS: usize = 64;

/// How much of a line is held in memory. No line that reports damage is longer.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// How much of its beginning identifies a log, at most: its first line, which begins with a time.
const MAX_HEAD_BYTES: u64 = 1024;

/// How long after the last line the damage is forgotten. A user who has repaired it, or found no damage, has no way to report that. A user who
/// has done neither in a month wants to continue.
const EXPIRES_AFTER: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The damage record could not be updated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log exists and cannot be read.
    #[error("could not read reports of damage from the server's log")]
    Log(#[source] io::Error),
    /// The record exists and cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The record cannot be written.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
}

/// `damage.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DamageRecord {
    /// How far the log was read when it last reported damage.
    log: Option<LogOffset>,
    /// The damage that the log reports.
    #[serde(rename = "told")]
    reported: Option<DamageReport>,
}

/// A position in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogOffset {
    /// The identity of this log.
    mark: String,
    /// In bytes.
    offset: u64,
}

/// The log of the server on one volume. Only one instance per volume may exist at a time.
#[derive(Debug)]
pub struct DamageLog {
    volume: Volume,
    /// The known damage. `None`: the volume was not read yet.
    record: Option<DamageRecord>,
    /// Whether the record is on the volume.
    is_written: bool,
    /// How far the log was read.
    offset: Option<LogOffset>,
}

impl DamageLog {
    /// A log that was not read yet.
    pub fn new(volume: Volume) -> Self {
        Self { volume, record: None, is_written: true, offset: None }
    }

    /// Reads the new part of the log, and returns the damage known after that.
    pub fn scan(&mut self, now: Timestamp) -> Result<Option<DamageReport>, Error> {
        let path = self.volume.damage_path();
        let before = match &self.record {
            Some(record) => record.clone(),
            None => self.load_record(&path, now)?,
        };
        let from = self.offset.as_ref().or(before.log.as_ref());
        let read = read_from(self.volume.root(), from).map_err(Error::Log)?;
        let is_news = |reported: &DamageReport| now < reported.last + EXPIRES_AFTER;
        let mut record = before.clone();
        record.reported = record.reported.filter(is_news);
        if let Some(Growth { offset, written_at, lines, first }) = read {
            if let Some(first) = first {
                // Lines of a server that ended earlier do not count as new.
                let at = written_at.min(now);
                let previous = record.reported.unwrap_or(DamageReport { since: at, last: at, lines: 0, first });
                let reported = DamageReport { last: at, lines: previous.lines.saturating_add(lines), ..previous };
                (record.reported, record.log) = (Some(reported).filter(is_news), Some(offset.clone()));
            }
            self.offset = Some(offset);
        }
        self.is_written &= record == before;
        let reported = record.reported.clone();
        if !self.is_written {
            // Damage is often reported when the disk fails. It is kept in memory, and written when that is possible.
            self.record = Some(record.clone());
            Disk::new(RealFs).write_record(&path, &record)?;
            self.is_written = true;
        }
        self.record = Some(record);
        Ok(reported)
    }

    /// The same until the end of the log.
    pub fn scan_to_end(&mut self, now: Timestamp) -> Result<Option<DamageReport>, Error> {
        for _ in 0..MAX_SCANS {
            let before = self.offset.clone();
            self.scan(now)?;
            if self.offset == before {
                break;
            }
        }
        Ok(self.reported())
    }

    /// The record on the volume. It exists only if damage was reported, so an invalid record stands for damage whose details are lost. It is
    /// written anew.
    fn load_record(&mut self, path: &Path, now: Timestamp) -> Result<DamageRecord, Error> {
        let record = read_record(path);
        if !matches!(record, Err(RecordError::Content { .. })) {
            return Ok(record?.unwrap_or_default());
        }
        self.is_written = false;
        let written_at =
            plain_fs::metadata(path).and_then(|file| file.modified()).ok().and_then(|at| at.try_into().ok());
        let since = written_at.unwrap_or(now).min(now);
        let first = "could not read the earlier reports of damage".to_owned();
        Ok(DamageRecord { log: None, reported: Some(DamageReport { since, last: now, lines: 0, first }) })
    }

    /// The known damage, without reading the log.
    pub fn reported(&self) -> Option<DamageReport> {
        self.record.as_ref()?.reported.clone()
    }
}

/// Resets the record after the worlds were replaced. The log so far is about the previous worlds.
pub(crate) fn reset<S: FsHook>(volume: &Volume, disk: &mut Disk<S>) -> Result<(), fs_ops::Error> {
    // If the log cannot be read now, its old lines are at worst reported once more.
    let log = open(volume.root()).ok().flatten().map(|log| LogOffset { offset: log.length, ..log.beginning });
    disk.write_record(&volume.damage_path(), &DamageRecord { log, reported: None })
}

/// The result of one scan.
struct Growth {
    /// The new position.
    offset: LogOffset,
    /// When the log was last written to.
    written_at: Timestamp,
    /// How many lines report damage.
    lines: u64,
    /// The first of them.
    first: Option<String>,
}

/// Reads whole lines from a position on, or from the beginning if that position is in another log. `None`: the log does not exist, or has no
/// complete line yet.
fn read_from(root: &Path, from: Option<&LogOffset>) -> io::Result<Option<Growth>> {
    let Some(OpenedLog { mut file, beginning, length, written_at }) = open(root)? else { return Ok(None) };
    // A shorter log was truncated.
    let from = from.filter(|from| from.mark == beginning.mark && from.offset <= length);
    let offset = from.cloned().unwrap_or(beginning);
    let mut growth = Growth { offset, written_at, lines: 0, first: None };
    if growth.offset.offset == length {
        return Ok(Some(growth));
    }
    file.seek(SeekFrom::Start(growth.offset.offset))?;
    let mut log = BufReader::new(file.take(MAX_SCAN_BYTES));
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = log.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        // A line without an end is still being written, unless it is a part of one that is too long.
        if read == 0 || (!line.ends_with(b"\n") && read < MAX_LINE_BYTES) {
            return Ok(Some(growth));
        }
        growth.offset.offset += read;
        let text = String::from_utf8_lossy(&line);
        if let Some(message) = damage_message(text.trim_end()) {
            growth.lines += 1;
            growth.first.get_or_insert_with(|| printable(message));
        }
    }
}

/// An opened log.
struct OpenedLog {
    file: File,
    beginning: LogOffset,
    length: u64,
    written_at: Timestamp,
}

/// `None`: it does not exist, or its first line is still being written.
fn open(root: &Path) -> io::Result<Option<OpenedLog>> {
    let path = root.join("logs/latest.log");
    let mut file = match plain_fs::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound || plain_fs::refused_in(&error).is_some() => {
            return Ok(None);
        }
        opened => opened?,
    };
    let metadata = file.metadata()?;
    let mut head = Vec::new();
    file.by_ref().take(MAX_HEAD_BYTES).read_to_end(&mut head)?;
    let end = match head.iter().position(|byte| *byte == b'\n') {
        Some(end) => end,
        None if u64::try_from(head.len()).is_ok_and(|length| length == MAX_HEAD_BYTES) => head.len(),
        None => return Ok(None),
    };
    let first = String::from_utf8_lossy(&head[..end]);
    let beginning = LogOffset { mark: format!("{} {first}", metadata.ino()), offset: 0 };
    let written_at: Option<Timestamp> = metadata.modified().ok().and_then(|modified| modified.try_into().ok());
    let written_at = written_at.unwrap_or(Timestamp::MAX);
    Ok(Some(OpenedLog { file, beginning, length: metadata.len(), written_at }))
}

#[cfg(test)]
mod tests;
