//! Edge (reads). Checks whether the server's directory still matches the manifest, at each start of the server's process.

use super::hash_cache::{self, HashCache};
use super::swap::{Error, jars, relative};
use super::{AppliedManifest, Volume, jar_descriptor};

/// How the directory differs, each by path, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// Managed files that are missing or changed, and unmanaged JARs that declare the name of a managed plugin.
    pub changed: Vec<String>,
    /// Unmanaged JARs in `plugins/`, by file name.
    pub unmanaged: Vec<String>,
}

/// Hashes every file of the manifest and reads the name in every other JAR.
pub fn drift(volume: &Volume, manifest: &AppliedManifest) -> Result<Drift, Error> {
    let mut drift = Drift { changed: Vec::new(), unmanaged: unmanaged(volume, Some(manifest))? };
    for (path, managed) in &manifest.files {
        let file = volume.resolve_path(path)?;
        let fits = hash_cache::parse(&managed.hash).map(|hash| HashCache::default().matches_file(&hash, &file));
        let fits = fits.unwrap_or(Ok(false)).map_err(|source| Error::Read { path: path.clone(), source })?;
        if !fits {
            drift.changed.push(path.clone());
        }
    }
    for path in jars(volume)? {
        let path_text = relative(volume, &path);
        if manifest.files.contains_key(&path_text) {
            continue;
        }
        let Ok(Some(plugin)) = jar_descriptor::plugin(&path) else { continue };
        let mut plugins = manifest.files.values().filter_map(|managed| managed.plugin.as_deref());
        if plugins.any(|managed| agent_api::is_same_plugin(managed, &plugin.name)) {
            drift.changed.push(path_text);
        }
    }
    drift.changed.sort();
    Ok(drift)
}

/// The unmanaged JARs in `plugins/`, by file name. Opens none of them.
pub fn unmanaged(volume: &Volume, manifest: Option<&AppliedManifest>) -> Result<Vec<String>, Error> {
    let plugins = volume.plugins();
    let is_managed = |path: &str| manifest.is_some_and(|manifest| manifest.files.contains_key(path));
    let foreign = jars(volume)?
        .into_iter()
        .filter(|path| path.parent() == Some(plugins.as_path()) && !is_managed(&relative(volume, path)));
    Ok(foreign.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
}
