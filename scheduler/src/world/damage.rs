//! Edge (writes). Scans the server's log for world damage as it grows, and records the damage on the volume.
//!
//! The record is written only when a line reports damage. It includes the position up to which the log was read. Later lines reported no damage.
//! So a new agent reads them again and counts no line twice. A log that was rotated, at a start or at midnight, is not read further.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::protocol::damage::DamageTold;
use crate::staging::fs_ops::{self, Disk, FsHook, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use log_patterns::{shown, telling};

mod log_patterns;

/// How many bytes one scan reads. The next scan continues from there.
const MOST: u64 = 16 * 1024 * 1024;

/// The maximum number of consecutive scans, enough for a log of a gigabyte.
const LOOKS: usize = 64;

/// How much of a line is held in memory. No line that reports damage is longer.
const LONGEST_LINE: u64 = 64 * 1024;

/// How much of its beginning identifies a log, at most: its first line, which begins with a time.
const HEAD: u64 = 1024;

/// How long after the last line the damage is forgotten. A user who has repaired it, or found no damage, has no way to report that. A user who
/// has done neither in a month wants to continue.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The damage record could not be updated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log exists and cannot be read.
    #[error("could not read the server's log for what it tells of damage")]
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
    told: Option<DamageTold>,
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
    place: Option<LogOffset>,
}

impl DamageLog {
    /// A log that was not read yet.
    pub fn new(volume: Volume) -> Self {
        Self { volume, record: None, is_written: true, place: None }
    }

    /// Reads the new part of the log, and returns the damage known after that.
    pub fn look(&mut self, now: Timestamp) -> Result<Option<DamageTold>, Error> {
        let path = self.volume.damage_path();
        let before = match &self.record {
            Some(record) => record.clone(),
            None => self.remembered(&path, now)?,
        };
        let from = self.place.as_ref().or(before.log.as_ref());
        let read = read_on(self.volume.root(), from).map_err(Error::Log)?;
        let is_news = |told: &DamageTold| now < told.last + FORGOTTEN_AFTER;
        let mut record = before.clone();
        record.told = record.told.filter(is_news);
        if let Some(Growth { place, written_at, lines, first }) = read {
            if let Some(first) = first {
                // Lines of a server that ended earlier do not count as new.
                let at = written_at.min(now);
                let known = record.told.unwrap_or(DamageTold { since: at, last: at, lines: 0, first });
                let told = DamageTold { last: at, lines: known.lines.saturating_add(lines), ..known };
                (record.told, record.log) = (Some(told).filter(is_news), Some(place.clone()));
            }
            self.place = Some(place);
        }
        self.is_written &= record == before;
        let told = record.told.clone();
        if !self.is_written {
            // Damage is often reported when the disk fails. It is kept in memory, and written when that is possible.
            self.record = Some(record.clone());
            Disk::new(RealFs).write_record(&path, &record)?;
            self.is_written = true;
        }
        self.record = Some(record);
        Ok(told)
    }

    /// The same until the end of the log.
    pub fn look_to_the_end(&mut self, now: Timestamp) -> Result<Option<DamageTold>, Error> {
        for _ in 0..LOOKS {
            let before = self.place.clone();
            self.look(now)?;
            if self.place == before {
                break;
            }
        }
        Ok(self.told())
    }

    /// The record on the volume. It exists only if damage was reported, so an invalid record stands for damage whose details are lost. It is
    /// written anew.
    fn remembered(&mut self, path: &Path, now: Timestamp) -> Result<DamageRecord, Error> {
        let record = read_record(path);
        if !matches!(record, Err(RecordError::Content { .. })) {
            return Ok(record?.unwrap_or_default());
        }
        self.is_written = false;
        let written_at = fs::metadata(path).and_then(|file| file.modified()).ok().and_then(|at| at.try_into().ok());
        let since = written_at.unwrap_or(now).min(now);
        let first = "what it has told before cannot be read any more".to_owned();
        Ok(DamageRecord { log: None, told: Some(DamageTold { since, last: now, lines: 0, first }) })
    }

    /// The known damage, without reading the log.
    pub fn told(&self) -> Option<DamageTold> {
        self.record.as_ref()?.told.clone()
    }
}

/// Resets the record after the worlds were replaced. The log so far is about the previous worlds.
pub(crate) fn forget<S: FsHook>(volume: &Volume, disk: &mut Disk<S>) -> Result<(), fs_ops::Error> {
    // If the log cannot be read now, its old lines are at worst reported once more.
    let log = open(volume.root()).ok().flatten().map(|log| LogOffset { offset: log.length, ..log.beginning });
    disk.write_record(&volume.damage_path(), &DamageRecord { log, told: None })
}

/// The result of one scan.
struct Growth {
    /// The new position.
    place: LogOffset,
    /// When the log was last written to.
    written_at: Timestamp,
    /// How many lines report damage.
    lines: u64,
    /// The first of them.
    first: Option<String>,
}

/// Reads whole lines from a position on, or from the beginning if that position is in another log. `None`: the log does not exist, or has no
/// complete line yet.
fn read_on(root: &Path, from: Option<&LogOffset>) -> io::Result<Option<Growth>> {
    let Some(LogScan { mut file, beginning, length, written_at }) = open(root)? else { return Ok(None) };
    // A shorter log was truncated.
    let from = from.filter(|from| from.mark == beginning.mark && from.offset <= length);
    let place = from.cloned().unwrap_or(beginning);
    let mut growth = Growth { place, written_at, lines: 0, first: None };
    if growth.place.offset == length {
        return Ok(Some(growth));
    }
    file.seek(SeekFrom::Start(growth.place.offset))?;
    let mut log = BufReader::new(file.take(MOST));
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = log.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        // A line without an end is still being written, unless it is a part of one that is too long.
        if read == 0 || (!line.ends_with(b"\n") && read < LONGEST_LINE) {
            return Ok(Some(growth));
        }
        growth.place.offset += read;
        let text = String::from_utf8_lossy(&line);
        if let Some(message) = telling(text.trim_end()) {
            growth.lines += 1;
            growth.first.get_or_insert_with(|| shown(message));
        }
    }
}

/// An opened log.
struct LogScan {
    file: File,
    beginning: LogOffset,
    length: u64,
    written_at: Timestamp,
}

/// `None`: it does not exist, or its first line is still being written.
fn open(root: &Path) -> io::Result<Option<LogScan>> {
    let path = root.join("logs/latest.log");
    // Checked before opening, because opening a pipe blocks until a writer appears.
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(None),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(other) => return Err(other),
    }
    let mut file = File::open(&path)?;
    let metadata = file.metadata()?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head)?;
    let end = match head.iter().position(|byte| *byte == b'\n') {
        Some(end) => end,
        None if u64::try_from(head.len()).is_ok_and(|length| length == HEAD) => head.len(),
        None => return Ok(None),
    };
    let first = String::from_utf8_lossy(&head[..end]);
    let beginning = LogOffset { mark: format!("{} {first}", metadata.ino()), offset: 0 };
    let written_at: Option<Timestamp> = metadata.modified().ok().and_then(|modified| modified.try_into().ok());
    let written_at = written_at.unwrap_or(Timestamp::MAX);
    Ok(Some(LogScan { file, beginning, length: metadata.len(), written_at }))
}

#[cfg(test)]
mod tests;
