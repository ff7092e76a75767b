//! Edge (writes). Makes the server's directory equal to a lock, while no server runs.
//!
//! A journal is written first, with the whole target and with every content that Nightshift owns or may own. A crash after any single operation
//! leaves each file either in its old or in its new state. The next start completes the swap, for the same target or for another one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{io, iter};

use super::fs_ops::{self, Disk, FsHook, exists, temporary_path};
use super::hash_cache::HashCache;
use super::update_folder::update_folder;
use super::{
    AppliedManifest, Journal, Managed, RecordError, Volume, WantedFile, all_files, displaced_jars, jar_descriptor,
    validate,
};
use crate::plain_fs;
use agent_api::{FileHash, FileSet};
use artifacts::Hash;

/// The directory does not match the lock yet. Completed steps stay done, and a repeated swap continues from there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A lock or a record is not usable.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    /// A file could not be read.
    #[error("could not read `{path}`")]
    Read {
        /// The path.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The store must be filled first.
    #[error("`{path}` in the store differs from the lock")]
    NotStored {
        /// Its path in the server's directory.
        path: String,
    },
}

/// The actions of a swap, each by path, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SwapReport {
    /// Files that were placed, or whose content changed.
    pub placed: Vec<String>,
    /// Managed files that are no longer wanted.
    pub removed: Vec<String>,
    /// Files that a user placed with exactly the content of the lock. They are managed from now on.
    pub adopted: Vec<String>,
    /// Files of a user at a path that the lock needs. They were moved to `.nightshift/replaced/`. From, to.
    pub displaced: Vec<(String, String)>,
}

/// Makes the directory of `volume` equal to `set`, whose files are all in the store. Files in `hashes` are not read again.
pub fn swap<S: FsHook>(
    volume: &Volume,
    set: &FileSet,
    hashes: &mut HashCache,
    disk: &mut Disk<S>,
) -> Result<SwapReport, Error> {
    let wanted = validate(volume, set)?;
    for want in &wanted {
        if !matches_file(hashes, &want.hash, &volume.stored_path(&want.hash))? {
            return Err(Error::NotStored { path: want.file.path.clone() });
        }
    }
    let manifest = volume.manifest()?;
    let journal = volume.journal()?;
    let owned = owned_contents(manifest.as_ref(), journal.as_ref(), set);
    let target = new_manifest(set, manifest.as_ref());
    if journal.is_none()
        && manifest.as_ref() == Some(&target)
        && is_equal(&wanted, hashes)?
        && conflicting_jars(volume, &wanted, &owned, hashes)?.is_empty()
    {
        return Ok(SwapReport::default());
    }
    disk.write_record(&volume.journal_path(), &Journal { target: set.clone(), ours: owned.clone() })?;

    let mut work = Work { volume, hashes, disk, touched: BTreeSet::new(), done: SwapReport::default() };
    work.resolve_conflicts(&wanted, &owned)?;
    work.remove_unwanted(&wanted, &owned)?;
    work.place_wanted(&wanted, manifest.as_ref(), &owned)?;
    for directory in &work.touched {
        work.disk.sync_directory(directory)?;
    }
    let done = work.done;

    disk.write_record(&volume.staged_path(&set.lock), set)?;
    disk.write_record(&volume.manifest_path(), &target)?;
    disk.remove(&volume.journal_path())?;
    disk.sync_directory(&volume.nightshift_dir())?;
    Ok(done)
}

/// Every content that Nightshift has placed, may have placed before a crash, or is about to place.
fn owned_contents(
    manifest: Option<&AppliedManifest>,
    journal: Option<&Journal>,
    set: &FileSet,
) -> BTreeMap<String, Vec<FileHash>> {
    let mut owned: BTreeMap<String, Vec<FileHash>> = journal.map(|journal| journal.ours.clone()).unwrap_or_default();
    let hashes = manifest.into_iter().flat_map(|manifest| &manifest.files).map(|(path, managed)| (path, &managed.hash));
    for (path, hash) in hashes.chain(all_files(set).map(|file| (&file.path, &file.hash))) {
        let hashes = owned.entry(path.clone()).or_default();
        if !hashes.contains(hash) {
            hashes.push(hash.clone());
        }
    }
    owned
}

fn new_manifest(set: &FileSet, before: Option<&AppliedManifest>) -> AppliedManifest {
    let (previous, went_back) = match before {
        None => (None, false),
        Some(before) if before.lock == set.lock => (before.previous.clone(), before.went_back),
        Some(before) => (Some(before.lock.clone()), before.is_rollback_to(&set.lock)),
    };
    let managed =
        |file: &agent_api::File| (file.path.clone(), Managed { hash: file.hash.clone(), plugin: file.plugin.clone() });
    AppliedManifest {
        lock: set.lock.clone(),
        previous,
        went_back,
        minecraft: set.minecraft.clone(),
        build: set.build,
        files: all_files(set).map(managed).collect(),
    }
}

fn is_equal(wanted: &[WantedFile], hashes: &mut HashCache) -> Result<bool, Error> {
    for want in wanted {
        if !matches_file(hashes, &want.hash, &want.path)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Unmanaged JARs that declare the name of a plugin of the lock, each with the file that it conflicts with. A server would load one of the two,
/// and reports which one only afterwards.
fn conflicting_jars<'a>(
    volume: &Volume,
    wanted: &'a [WantedFile],
    owned: &BTreeMap<String, Vec<FileHash>>,
    hashes: &mut HashCache,
) -> Result<Vec<(PathBuf, &'a WantedFile)>, Error> {
    let mut rivals = Vec::new();
    for path in jars(volume)? {
        let relative = relative(volume, &path);
        if wanted.iter().any(|want| want.path == path) || is_owned(hashes, &path, owned.get(&relative))? {
            continue;
        }
        // A server loads no JAR that cannot be read.
        let Ok(Some(plugin)) = jar_descriptor::plugin(&path) else { continue };
        let conflicting = |want: &&WantedFile| {
            want.file.plugin.as_deref().is_some_and(|wanted| agent_api::is_same_plugin(wanted, &plugin.name))
        };
        if let Some(want) = wanted.iter().find(conflicting) {
            rivals.push((path, want));
        }
    }
    Ok(rivals)
}

/// All JARs that a server would load or move into place: those in `plugins/` and in the update folder.
pub(super) fn jars(volume: &Volume) -> Result<Vec<PathBuf>, Error> {
    let mut jars = Vec::new();
    for directory in
        iter::once(volume.plugins()).chain(update_folder(volume).filter(|folder| plain_fs::is_directory(folder)))
    {
        let error = |source| Error::Read { path: directory.display().to_string(), source };
        for entry in plain_fs::entries(&directory).map_err(error)? {
            // A link to a JAR counts, because the server loads it. It is not followed here.
            let is_jar = entry.path().extension().is_some_and(|extension| extension == "jar");
            if is_jar && entry.kind().is_ok_and(|kind| kind.is_file() || kind.is_symlink()) {
                jars.push(entry.path().to_owned());
            }
        }
    }
    jars.sort();
    Ok(jars)
}

struct Work<'a, S> {
    volume: &'a Volume,
    hashes: &'a mut HashCache,
    disk: &'a mut Disk<S>,
    touched: BTreeSet<PathBuf>,
    done: SwapReport,
}

impl<S: FsHook> Work<'_, S> {
    /// Handles conflicting JARs: one with the same content is moved to its place and becomes managed, any other one is displaced.
    fn resolve_conflicts(
        &mut self,
        wanted: &[WantedFile],
        owned: &BTreeMap<String, Vec<FileHash>>,
    ) -> Result<(), Error> {
        for (path, want) in conflicting_jars(self.volume, wanted, owned, self.hashes)? {
            if !exists(&want.path) && matches_file(self.hashes, &want.hash, &path)? {
                self.mark_touched(&path);
                self.create_parent(&want.path)?;
                self.disk.rename(&path, &want.path)?;
                self.done.adopted.push(want.file.path.clone());
            } else {
                self.displace(&path)?;
            }
        }
        Ok(())
    }

    /// Only content that Nightshift placed is removed. If a user has changed a managed file, it stays, and is unmanaged from now on.
    fn remove_unwanted(&mut self, wanted: &[WantedFile], owned: &BTreeMap<String, Vec<FileHash>>) -> Result<(), Error> {
        for (path, hashes) in owned {
            if wanted.iter().any(|want| want.file.path == *path) {
                continue;
            }
            let file = self.volume.resolve_path(path)?;
            self.remove_temporary(&file)?;
            if is_owned(self.hashes, &file, Some(hashes))? {
                self.disk.remove(&file)?;
                self.mark_touched(&file);
                self.done.removed.push(path.clone());
            }
        }
        Ok(())
    }

    fn place_wanted(
        &mut self,
        wanted: &[WantedFile],
        manifest: Option<&AppliedManifest>,
        owned: &BTreeMap<String, Vec<FileHash>>,
    ) -> Result<(), Error> {
        for want in wanted {
            let path = &want.file.path;
            if matches_file(self.hashes, &want.hash, &want.path)? {
                // A crash between link and rename leaves the second name.
                self.remove_temporary(&want.path)?;
                if manifest.is_some_and(|manifest| manifest.files.contains_key(path))
                    || self.done.adopted.contains(path)
                {
                    continue;
                }
                self.done.adopted.push(path.clone());
                continue;
            }
            if exists(&want.path) && !is_owned(self.hashes, &want.path, owned.get(path))? {
                self.displace(&want.path)?;
            }
            self.create_parent(&want.path)?;
            self.disk.replace_with(&self.volume.stored_path(&want.hash), &want.path)?;
            self.done.placed.push(path.clone());
        }
        Ok(())
    }

    fn remove_temporary(&mut self, path: &Path) -> Result<(), Error> {
        if exists(&temporary_path(path)) {
            self.disk.remove(&temporary_path(path))?;
        }
        Ok(())
    }

    fn displace(&mut self, path: &Path) -> Result<(), Error> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let directory = self.volume.displaced_jars_dir();
        self.disk.make_directory(&directory)?;
        let (mut target, mut number) = (directory.join(&name), 1);
        while exists(&target) {
            number += 1;
            target = directory.join(format!("{name}.{number}"));
        }
        let (from, to) = (relative(self.volume, path), relative(self.volume, &target));
        displaced_jars::record(self.volume, self.disk, from.clone(), to.clone())?;
        self.disk.rename(path, &target)?;
        self.mark_touched(path);
        self.touched.insert(directory.clone());
        self.done.displaced.push((from, to));
        Ok(())
    }

    fn create_parent(&mut self, path: &Path) -> Result<(), Error> {
        if let Some(directory) = path.parent() {
            self.disk.make_directory(directory)?;
        }
        self.mark_touched(path);
        Ok(())
    }

    fn mark_touched(&mut self, path: &Path) {
        self.touched.extend(path.parent().map(Path::to_owned));
    }
}

/// Whether the file has one of these contents.
fn is_owned(cache: &mut HashCache, path: &Path, hashes: Option<&Vec<FileHash>>) -> Result<bool, Error> {
    for hash in hashes.into_iter().flatten().filter_map(|hash| Hash::parse(&hash.0)) {
        if matches_file(cache, &hash, path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn matches_file(hashes: &mut HashCache, hash: &Hash, path: &Path) -> Result<bool, Error> {
    hashes.matches_file(hash, path).map_err(|source| Error::Read { path: path.display().to_string(), source })
}

pub(super) fn relative(volume: &Volume, path: &Path) -> String {
    path.strip_prefix(volume.root()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests;
