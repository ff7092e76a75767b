//! Edge (writes). Writes the tar archive of a backup in one pass (read, compress, hash), and verifies it.
//!
//! A backup is three files in one directory. `archive.tar.gz` can be opened by every tool. `files.jsonl` has a line with path, size and SHA-256
//! for each entry. `backup.json` is the record ([`super::Backup`]). Memory holds only one buffer and the names of one directory.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

use super::contents::{BackupSource, Content, Item, MAX_PATH_BYTES, holds_chunks, is_removed};
use super::gzip::GzipWriter;
use super::{Checksum, LiveReads, MAX_NAMED_FILES, contents};
use crate::plain_fs::{self, escape_path, refused_in};
use crate::staging::fs_ops::{self, Disk, FsHook};
use agent_api::NIGHTSHIFT_DIR;
use artifacts::{Algorithm, Hasher};

mod corruption;

pub use corruption::Damaged;

/// The archive's file name.
pub(super) const ARCHIVE: &str = "archive.tar.gz";
/// The file name of the list.
pub(super) const LIST: &str = "files.jsonl";

/// The longest line of the list: the longest path, with each byte as three characters, and the rest.
const MAX_LINE_BYTES: u64 = 3 * MAX_PATH_BYTES as u64 + 256;

/// How much is read or written at once, in bytes.
const CHUNK_BYTES: usize = 128 * 1024;

/// The archive could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The content could not be read.
    #[error(transparent)]
    Contents(#[from] contents::Error),
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    /// Reading a file or writing the archive failed. The cause states which.
    #[error("could not put `{name}` into the archive")]
    Entry {
        /// The name relative to the server's directory.
        name: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The last bytes could not be written.
    #[error("could not complete the archive")]
    Finish(#[source] io::Error),
}

/// One line of the list. A directory has neither size nor hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestLine {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// The result of writing.
#[derive(Debug)]
pub(super) struct ArchiveSummary {
    pub(super) seal: Checksum,
    /// Items that could not be included, the first [`MAX_NAMED_FILES`].
    pub(super) left_out: Vec<String>,
    /// Files that changed while they were read, the first [`MAX_NAMED_FILES`].
    pub(super) changed: Vec<String>,
}

/// Writes the archive and the list of `source` into `directory` and syncs them to disk. Calls the hook of `disk` before each chunk that it reads,
/// too.
pub(super) fn write<S: FsHook>(
    source: &BackupSource<'_>,
    directory: &Path,
    disk: &mut Disk<S>,
) -> Result<ArchiveSummary, WriteError> {
    let disk = RefCell::new(disk);
    let archive = Sink::create(&disk, directory.join(ARCHIVE))?;
    let list = Sink::create(&disk, directory.join(LIST))?;
    let mut list = BufWriter::with_capacity(CHUNK_BYTES, list);
    let mut builder = tar::Builder::new(GzipWriter::new(BufWriter::with_capacity(CHUNK_BYTES, archive)));
    let (mut files, mut bytes) = (0, 0_u64);
    let (mut removed, mut changed) = (Vec::new(), Vec::new());
    let check = |path: &Path| disk.borrow_mut().step("read", path, |_| Ok(())).map_err(io::Error::other);
    let mut left_out = source.for_each::<WriteError>(|item| {
        let name = || escape_path(item.name.as_os_str().as_bytes());
        let failed = |source| WriteError::Entry { name: name(), source };
        match append(&mut builder, &item, source.reading, &check).map_err(failed)? {
            Appended::Complete { line, changed: while_read } => {
                write_line(&mut list, &line).map_err(failed)?;
                files += u64::from(line.size.is_some());
                bytes = bytes.saturating_add(line.size.unwrap_or(0));
                if while_read {
                    // Chunk files come first, so that they are not cut off by the limit.
                    let index = if holds_chunks(&item.name) { 0 } else { changed.len() };
                    changed.insert(index, name());
                }
            }
            Appended::Removed => removed.push(name()),
        }
        // Users need no more names, and a folder of a million files may disappear while it is read.
        removed.truncate(MAX_NAMED_FILES);
        changed.truncate(MAX_NAMED_FILES);
        Ok(())
    })?;
    left_out.append(&mut removed);
    left_out.truncate(MAX_NAMED_FILES);
    let archive = builder.into_inner().and_then(GzipWriter::finish).map_err(WriteError::Finish)?;
    let archive = archive.into_inner().map_err(|failed| WriteError::Finish(failed.into_error()))?;
    let list = list.into_inner().map_err(|failed| WriteError::Finish(failed.into_error()))?;
    let (archive_bytes, archive_sha256) = archive.close()?;
    let (_, list_sha256) = list.close()?;
    Ok(ArchiveSummary {
        seal: Checksum { files, bytes, archive_bytes, archive_sha256, list_sha256 },
        left_out,
        changed,
    })
}

/// The result of one item.
enum Appended {
    Complete {
        line: ManifestLine,
        /// Whether it was written to meanwhile.
        changed: bool,
    },
    /// It was removed or replaced before it could be opened.
    Removed,
}

fn append(
    builder: &mut tar::Builder<impl Write>,
    item: &Item,
    reading: LiveReads,
    check: &dyn Fn(&Path) -> io::Result<()>,
) -> io::Result<Appended> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(item.mode);
    header.set_mtime(item.modified);
    header.set_size(item.content.size());
    let path = escape_path(item.name.as_os_str().as_bytes());
    match &item.content {
        Content::Directory => {
            header.set_entry_type(tar::EntryType::Directory);
            builder.append_data(&mut header, &item.name, io::empty())?;
            Ok(Appended::Complete { line: ManifestLine { path, size: None, sha256: None }, changed: false })
        }
        Content::File { entry, size } => {
            let is_replaced = |error: &io::Error| is_removed(error) || refused_in(error).is_some();
            let file = match entry.open() {
                Err(error) if reading == LiveReads::Online && is_replaced(&error) => return Ok(Appended::Removed),
                opened => opened?,
            };
            let begun = file.metadata()?.modified()?;
            let check = || check(entry.path());
            let mut content = ExactLength::new(InterruptibleRead { file: &file, check: &check }, *size, reading);
            builder.append_data(&mut header, &item.name, &mut content)?;
            let (sha256, resized) = content.finish()?;
            // A database that is written in place keeps its size.
            let changed = resized || (reading == LiveReads::Online && file.metadata()?.modified()? != begun);
            Ok(Appended::Complete { line: ManifestLine { path, size: Some(*size), sha256: Some(sha256) }, changed })
        }
        Content::Bytes(bytes) => {
            let size = item.content.size();
            let mut content = ExactLength::new(bytes.as_slice(), size, LiveReads::Offline);
            builder.append_data(&mut header, &item.name, &mut content)?;
            let (sha256, changed) = content.finish()?;
            Ok(Appended::Complete { line: ManifestLine { path, size: Some(size), sha256: Some(sha256) }, changed })
        }
    }
}

fn write_line(list: &mut impl Write, line: &ManifestLine) -> io::Result<()> {
    serde_json::to_writer(&mut *list, line)?;
    list.write_all(b"\n")
}

/// A file that calls the hook before each chunk is read.
struct InterruptibleRead<'a> {
    file: &'a File,
    check: &'a dyn Fn() -> io::Result<()>,
}

impl Read for InterruptibleRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (self.check)()?;
        self.file.read(buffer)
    }
}

/// A file of which exactly the size in its archive header is read. A different actual size means that a process writes to it. That is an error,
/// or on a running server the rest is left out, and missing bytes are zeros.
struct ExactLength<R> {
    content: R,
    remaining: u64,
    hasher: Hasher,
    reading: LiveReads,
    /// Whether it ended before its size was reached.
    is_short: bool,
}

impl<R: Read> ExactLength<R> {
    fn new(content: R, size: u64, reading: LiveReads) -> Self {
        Self { content, remaining: size, hasher: Hasher::new(Algorithm::Sha256), reading, is_short: false }
    }

    /// The hash, and whether the size differed.
    fn finish(mut self) -> io::Result<(String, bool)> {
        let resized = self.is_short || self.content.read(&mut [0])? > 0;
        if resized && self.reading == LiveReads::Offline {
            return Err(changed_error());
        }
        Ok((self.hasher.finish().hex().to_owned(), resized))
    }
}

impl<R: Read> Read for ExactLength<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        // After its end no more is read: bytes written later would follow the zeros in the wrong place.
        let mut read = if self.is_short { 0 } else { self.content.read(&mut buffer[..most])? };
        if read == 0 && most > 0 {
            match self.reading {
                LiveReads::Offline => return Err(changed_error()),
                LiveReads::Online => {
                    buffer[..most].fill(0);
                    (read, self.is_short) = (most, true);
                }
            }
        }
        self.hasher.update(&buffer[..read]);
        self.remaining -= u64::try_from(read).unwrap_or(self.remaining);
        Ok(read)
    }
}

fn changed_error() -> io::Error {
    io::Error::other("its size changed while it was read: something writes to it")
}

/// A file that is written through [`Disk`], hashed and counted.
struct Sink<'a, 'b, S> {
    disk: &'a RefCell<&'b mut Disk<S>>,
    path: PathBuf,
    file: File,
    hasher: Hasher,
    written: u64,
}

impl<'a, 'b, S: FsHook> Sink<'a, 'b, S> {
    fn create(disk: &'a RefCell<&'b mut Disk<S>>, path: PathBuf) -> Result<Self, fs_ops::Error> {
        let file = disk.borrow_mut().step("create", &path, |path| plain_fs::create_anew(path, 0o644))?;
        Ok(Self { disk, path, file, hasher: Hasher::new(Algorithm::Sha256), written: 0 })
    }

    /// Syncs it to disk. Returns its size and hash.
    fn close(self) -> Result<(u64, String), fs_ops::Error> {
        self.disk.borrow_mut().step("flush", &self.path, |_| self.file.sync_all())?;
        // Best effort: the verification should read from the disk, not from memory.
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
        Ok((self.written, self.hasher.finish().hex().to_owned()))
    }
}

impl<S: FsHook> Write for Sink<'_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.disk.borrow_mut();
        let written = disk.step("write", &self.path, |_| self.file.write(bytes)).map_err(io::Error::other)?;
        self.hasher.update(&bytes[..written]);
        self.written += u64::try_from(written).unwrap_or(0);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Receives the entries of an archive that is read.
pub(super) trait ArchiveTarget {
    /// A directory, relative to the server's directory.
    fn directory(&mut self, path: &Path) -> Result<(), fs_ops::Error>;
    /// A file begins.
    fn begin(&mut self, path: &Path, mode: u32, modified: u64) -> Result<(), fs_ops::Error>;
    /// The next bytes of that file.
    fn write(&mut self, bytes: &[u8]) -> Result<(), fs_ops::Error>;
    /// That file is complete.
    fn end(&mut self) -> Result<(), fs_ops::Error>;
}

/// Only reads, and calls the disk's hook before each chunk.
pub(super) struct DiscardTarget<'a, S> {
    pub(super) disk: &'a mut Disk<S>,
}

impl<S: FsHook> ArchiveTarget for DiscardTarget<'_, S> {
    fn directory(&mut self, _path: &Path) -> Result<(), fs_ops::Error> {
        Ok(())
    }
    fn begin(&mut self, _path: &Path, _mode: u32, _modified: u64) -> Result<(), fs_ops::Error> {
        Ok(())
    }
    fn write(&mut self, _bytes: &[u8]) -> Result<(), fs_ops::Error> {
        self.disk.step("read back", Path::new(ARCHIVE), |_| Ok(()))
    }
    fn end(&mut self) -> Result<(), fs_ops::Error> {
        Ok(())
    }
}

/// Reads the archive in `directory` from beginning to end, compares each entry with the list and the whole with the checksums, and passes the
/// entries to `target`. The result in `target` is valid only if this succeeds.
pub(super) fn read(directory: &Path, seal: &Checksum, target: &mut impl ArchiveTarget) -> Result<(), Damaged> {
    let of_archive = |source| Damaged::Read { file: ARCHIVE, source };
    let of_list = |source| Damaged::Read { file: LIST, source };
    let file = plain_fs::open(&directory.join(ARCHIVE)).map_err(of_archive)?;
    let list = plain_fs::open(&directory.join(LIST)).map_err(of_list)?;
    let mut list = BufReader::with_capacity(CHUNK_BYTES, Hashing::new(list));
    let mut archive = tar::Archive::new(GzDecoder::new(Hashing::new(file)));
    let (mut files, mut bytes) = (0_u64, 0_u64);
    let mut chunk = vec![0; CHUNK_BYTES];
    for entry in archive.entries().map_err(of_archive)? {
        let mut entry = entry.map_err(of_archive)?;
        let raw = entry.path_bytes().into_owned();
        let name = escape_path(&raw);
        let path = safe_path(&raw).map_err(|problem| Damaged::Entry { name: name.clone(), problem })?;
        let expected = next_line(&mut list).map_err(of_list)?;
        let differs = || Damaged::Differs { name: name.clone() };
        let Some(expected) = expected.filter(|line| line.path.trim_end_matches('/') == name.trim_end_matches('/'))
        else {
            return Err(differs());
        };
        let kind = entry.header().entry_type();
        match (kind, &expected.size, &expected.sha256) {
            (tar::EntryType::Directory, None, None) => target.directory(&path).map_err(Damaged::Target)?,
            (tar::EntryType::Regular, Some(size), Some(sha256)) => {
                if entry.size() != *size {
                    return Err(differs());
                }
                let mode = entry.header().mode().map_err(of_archive)?;
                let modified = entry.header().mtime().map_err(of_archive)?;
                target.begin(&path, mode & 0o777, modified).map_err(Damaged::Target)?;
                let mut hasher = Hasher::new(Algorithm::Sha256);
                loop {
                    let read = entry.read(&mut chunk).map_err(of_archive)?;
                    if read == 0 {
                        break;
                    }
                    hasher.update(&chunk[..read]);
                    target.write(&chunk[..read]).map_err(Damaged::Target)?;
                }
                if hasher.finish().hex() != sha256 {
                    return Err(differs());
                }
                target.end().map_err(Damaged::Target)?;
                files += 1;
                bytes = bytes.saturating_add(*size);
            }
            _ => return Err(Damaged::Entry { name, problem: "is neither a plain file nor a directory" }),
        }
    }
    if next_line(&mut list).map_err(of_list)?.is_some() {
        return Err(Damaged::Seal { subject: "number of files" });
    }
    let (_, list_sha256) = list.into_inner().finish().map_err(of_list)?;
    // The bytes after the last entry are read too, because the hash covers the whole file.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(of_archive)?;
    let (archive_bytes, archive_sha256) = rest.into_inner().finish().map_err(of_archive)?;
    for (subject, is_equal) in [
        ("hash of the archive", archive_sha256 == seal.archive_sha256),
        ("size of the archive", archive_bytes == seal.archive_bytes),
        ("hash of the list of files", list_sha256 == seal.list_sha256),
        ("number of files", files == seal.files),
        ("sum of the sizes", bytes == seal.bytes),
    ] {
        if !is_equal {
            return Err(Damaged::Seal { subject });
        }
    }
    Ok(())
}

fn next_line(list: &mut impl BufRead) -> io::Result<Option<ManifestLine>> {
    let mut line = Vec::new();
    if list.take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

/// A safe path: relative, without `..`, and outside of Nightshift's own records.
pub(super) fn safe_path(raw: &[u8]) -> Result<PathBuf, &'static str> {
    let path = Path::new(std::ffi::OsStr::from_bytes(raw));
    if raw.contains(&0) {
        return Err("has a zero byte in its name");
    }
    if path.is_absolute() {
        return Err("is an absolute path");
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err("is outside of the server's directory");
            }
        }
    }
    if plain.as_os_str().is_empty() {
        return Err("is empty");
    }
    if plain.starts_with(NIGHTSHIFT_DIR) {
        return Err("is one of the records of Nightshift");
    }
    Ok(plain)
}

/// Hashes and counts the bytes that are read through it.
struct Hashing {
    file: File,
    hasher: Hasher,
    read: u64,
}

impl Hashing {
    fn new(file: File) -> Self {
        Self { file, hasher: Hasher::new(Algorithm::Sha256), read: 0 }
    }

    /// Reads the rest. Returns size and hash of the whole file.
    fn finish(mut self) -> io::Result<(u64, String)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((self.read, self.hasher.finish().hex().to_owned()))
    }
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.read += u64::try_from(read).unwrap_or(0);
        Ok(read)
    }
}
