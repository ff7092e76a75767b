//! Edge (reads). Reads an existing server directory and never writes to it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::finding::AdoptFinding;
use super::paper_version::{self, PaperSeen, is_jar, small_file};
use super::software_signs::UnsupportedSoftware;
use artifacts::plugin_descriptor::{PluginFacts, facts};
use artifacts::{Algorithm, FactsError, Hasher, java_properties, update_folder_name};
use resolver::model::api_version::ApiVersion;
use resolver::model::bundled_plugins::bundled_in;
use resolver::model::name_conflict::{JarNameConflict, find_conflicts};
use resolver::model::software::Software;
use resolver::model::unusable::Unusable;

/// Content of a server directory.
#[derive(Debug)]
pub(super) struct ServerDir {
    /// The Paper version.
    pub(super) paper: PaperSeen,
    /// The plugins that Paper would load, by file name.
    pub(super) plugins: Vec<PluginFile>,
    /// `eula.txt` accepts the EULA.
    pub(super) eula: bool,
    /// The keys of `server.properties` that have a field here.
    pub(super) properties: Properties,
    /// Findings about the directory.
    pub(super) findings: Vec<AdoptFinding>,
}

/// A JAR in `plugins/`.
#[derive(Debug, Clone)]
pub(super) struct PluginFile {
    /// Its name, safe to display.
    pub(super) file: String,
    /// Its metadata.
    pub(super) facts: PluginFacts,
    /// 64 hex digits.
    pub(super) sha256: String,
    /// 128 hex digits.
    pub(super) sha512: String,
}

impl PluginFile {
    /// Whether the file has this hash (`sha256:<hex>` or `sha512:<hex>`).
    pub(super) fn has_hash(&self, hash: &str) -> bool {
        match hash.split_once(':') {
            Some(("sha256", hex)) => hex == self.sha256,
            Some(("sha512", hex)) => hex == self.sha512,
            _ => false,
        }
    }

    /// `LuckPerms 5.5.17`
    pub(super) fn display_name(&self) -> String {
        let PluginFacts { name, version, .. } = &self.facts;
        if version.is_empty() { name.clone() } else { format!("{name} {}", one_line(version)) }
    }
}

/// Values read from `server.properties`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Properties {
    pub(super) game_port: Option<u16>,
    pub(super) rcon_port: Option<u16>,
}

/// Why a directory cannot be adopted.
#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    #[error("could not read the directory `{}`", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is a file: give its directory, which has `server.properties` and `plugins`", .path.display())]
    NotADirectory { path: PathBuf },
    #[error(
        "`{}` is not the directory of a Paper server: it has no version_history.json, no .papermc-manifest.json and no JAR of Paper. \
         Give the directory that has `server.properties` and `plugins`",
        .path.display()
    )]
    NoPaper { path: PathBuf },
    #[error("`{}` runs {software}, as {file} says, and only Paper can be adopted", .path.display())]
    OtherSoftware { path: PathBuf, software: String, file: String },
    #[error(
        "`{}` has {file} of {software} and {paper} of Paper, and only Paper can be adopted: remove the one that does not run",
        .path.display()
    )]
    SeveralSoftware { path: PathBuf, software: String, file: String, paper: String },
    #[error("{}", describe_conflicts(.0))]
    NameConflicts(Vec<JarNameConflict>),
}

fn describe_conflicts(conflicts: &[JarNameConflict]) -> String {
    let line = |conflict: &JarNameConflict| {
        let files = conflict.files.iter().map(|file| format!("plugins/{file}")).collect::<Vec<_>>().join(" and ");
        format!("{files} share the plugin name {}: Paper loads only one of them. Remove one", conflict.name)
    };
    conflicts.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl ServerDir {
    /// Reads a directory. Blocks while its JARs are hashed.
    pub(super) fn read(path: &Path) -> Result<Self, FolderError> {
        let metadata = fs::metadata(path).map_err(|source| FolderError::Read { path: path.to_owned(), source })?;
        if !metadata.is_dir() {
            return Err(FolderError::NotADirectory { path: path.to_owned() });
        }
        // Distinguishes missing permissions from an empty directory.
        fs::read_dir(path).map_err(|source| FolderError::Read { path: path.to_owned(), source })?;
        let paper = paper_version::read(path);
        let owned = path.to_owned();
        match paper.other_software() {
            Some(UnsupportedSoftware { software, file, paper: None }) => {
                return Err(FolderError::OtherSoftware { path: owned, software, file });
            }
            Some(UnsupportedSoftware { software, file, paper: Some(paper) }) => {
                return Err(FolderError::SeveralSoftware { path: owned, software, file, paper });
            }
            None if paper.claims.is_empty() => return Err(FolderError::NoPaper { path: owned }),
            None => {}
        }
        let mut findings = Vec::new();
        let plugins = loaded_by(&paper, read_plugins(path, &mut findings)?, &mut findings);
        let names = plugins.iter().map(|plugin| {
            let PluginFacts { name, provides, .. } = &plugin.facts;
            (plugin.file.as_str(), std::iter::once(name).chain(provides).map(String::as_str).collect())
        });
        let conflicts = find_conflicts(names);
        if !conflicts.is_empty() {
            return Err(FolderError::NameConflicts(conflicts));
        }
        let eula = small_file(&path.join("eula.txt")).is_ok_and(|bytes| java_properties::is_true(&bytes, "eula"));
        let properties = match small_file(&path.join("server.properties")) {
            Ok(bytes) => {
                let port = |key| java_properties::value(&bytes, key).and_then(|port| port.parse().ok());
                Properties { game_port: port("server-port"), rcon_port: port("rcon.port") }
            }
            Err(_) => Properties::default(),
        };
        Ok(Self { paper, plugins, eula, properties, findings })
    }
}

/// Every JAR that Paper would load: the files directly in `plugins`, including links.
fn read_plugins(path: &Path, findings: &mut Vec<AdoptFinding>) -> Result<Vec<PluginFile>, FolderError> {
    let inside = path.join("plugins");
    let entries = match fs::read_dir(&inside) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(FolderError::Read { path: inside, source }),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| FolderError::Read { path: inside.clone(), source })?;
        names.push(entry.file_name());
    }
    names.sort();
    let mut plugins = Vec::new();
    let updates = update_folder(path);
    if has_files(&inside, &updates) {
        findings.push(AdoptFinding::PendingUpdate { folder: one_line(&updates) });
    }
    for name in names {
        let path = inside.join(&name);
        let file = printable(&name);
        if !is_jar(&file) {
            continue;
        }
        match read_plugin(&path, &file) {
            Ok(Some(plugin)) => {
                if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
                    findings.push(AdoptFinding::Symlink { file });
                }
                plugins.push(plugin);
            }
            Ok(None) => {}
            Err(error) => findings.push(AdoptFinding::NotLoaded { file, error }),
        }
    }
    Ok(plugins)
}

/// The plugins whose `api-version` the directory's Paper accepts. The others do not run now.
fn loaded_by(paper: &PaperSeen, plugins: Vec<PluginFile>, findings: &mut Vec<AdoptFinding>) -> Vec<PluginFile> {
    let Some(minecraft) = paper.claims.first().map(|claim| &claim.minecraft) else { return plugins };
    let mut is_loaded = |plugin: &PluginFile| {
        let Some(text) = &plugin.facts.api_version else { return true };
        let states = ApiVersion::new(text, plugin.facts.paper_plugin);
        let file = || plugin.file.clone();
        if let Some(refusal) = states.refusal(minecraft) {
            let because = Unusable::from(refusal);
            findings.push(AdoptFinding::Refused { file: file(), minecraft: minecraft.clone(), because });
            return false;
        }
        if states.is_legacy_on(minecraft) {
            findings.push(AdoptFinding::Legacy { file: file(), states: states.text().to_owned() });
        }
        true
    };
    let loaded: Vec<PluginFile> = plugins.into_iter().filter(|plugin| is_loaded(plugin)).collect();
    for plugin in &loaded {
        if let Some(bundled) = bundled_in(Software::Paper, minecraft).find(|found| found.main == plugin.facts.main) {
            let (name, since) = (bundled.name, bundled.since());
            findings.push(AdoptFinding::Bundled { file: plugin.file.clone(), name, since });
        }
    }
    loaded
}

/// The folder in `plugins` whose JARs replace others at the next start.
fn update_folder(path: &Path) -> String {
    let bytes = small_file(&path.join("bukkit.yml")).unwrap_or_default();
    update_folder_name(&String::from_utf8_lossy(&bytes))
}

/// Whether the update folder contains files. An empty name disables it, and `plugins` itself does not count.
fn has_files(plugins: &Path, updates: &str) -> bool {
    let folder = plugins.join(updates);
    let is_plugins = folder.canonicalize().ok() == plugins.canonicalize().ok();
    !updates.trim().is_empty() && !is_plugins && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Reads one file. `None` when it is not a regular file, for example a folder or a pipe.
fn read_plugin(path: &Path, file: &str) -> Result<Option<PluginFile>, FactsError> {
    // Follows links, as Paper does.
    if !fs::metadata(path).map_err(FactsError::Open)?.is_file() {
        return Ok(None);
    }
    let [sha256, sha512] = hash_file(path).map_err(FactsError::Open)?;
    let facts = facts(path)?;
    Ok(Some(PluginFile { file: file.to_owned(), facts, sha256, sha512 }))
}

/// The sha256 and the sha512 of a file, in hex. Blocks.
pub(super) fn hash_file(path: &Path) -> io::Result<[String; 2]> {
    let mut file = File::open(path)?;
    let (mut sha256, mut sha512) = (Hasher::new(Algorithm::Sha256), Hasher::new(Algorithm::Sha512));
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok([sha256, sha512].map(|hasher| hasher.finish().hex().to_owned())),
            count => {
                sha256.update(&buffer[..count]);
                sha512.update(&buffer[..count]);
            }
        }
    }
}

/// A file name that is safe to print and to write in a comment: on one line.
pub(super) fn printable(name: &OsStr) -> String {
    one_line(&name.to_string_lossy())
}

/// Replaces characters that would end a line or move a cursor.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_folder_with_files_is_a_pending_update() {
        let server = tempfile::tempdir().unwrap();
        let plugins = server.path().join("plugins");
        for folder in ["plugins/a", "waiting", "empty"] {
            fs::create_dir_all(server.path().join(folder)).unwrap();
        }
        fs::write(server.path().join("waiting/Demo.jar"), "").unwrap();
        for (folder, has) in [("../waiting", true), ("../empty", false), ("nowhere", false), ("", false), (".", false)]
        {
            assert_eq!(has_files(&plugins, folder), has, "{folder:?}");
        }
    }

    #[test]
    fn file_name_cannot_end_its_comment() {
        assert_eq!(printable(OsStr::new("a\nkind: Evil.jar")), "a\u{fffd}kind: Evil.jar");
    }
}
