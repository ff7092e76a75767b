//! Edge (reads). Finds out which Paper a server directory runs, from several files, the most trustworthy first.
//!
//! | file | contains | source |
//! |---|---|---|
//! | `version_history.json` | the version that started last | Paper writes it at each start: `1.21.10-130-8043efd (MC: 1.21.10)`, up to 1.20.4 `git-Paper-496 (MC: 1.20.4)` |
//! | `.papermc-manifest.json` | the version that itzg's image installed last | mc-image-helper: `minecraftVersion`, `build`, `project` |
//! | `versions/<Minecraft>/paper-<Minecraft>.jar` | the version that Paperclip unpacked | `Implementation-Version` of its manifest |
//! | the server's JAR | the version that was installed | its sha256 at Fill, else the name that Fill gives its files, `paper-1.21.10-130.jar`, and the Minecraft in Mojang's `version.json` inside |
//!
//! The software that these files name is in [`software_signs`].

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use serde::Deserialize;

use super::server_dir::{hash_file, printable};
use super::software_signs::{
    self, Evidence, SoftwareSign, UnsupportedSoftware, is_paper, named_by_bundle, named_by_file,
};
use artifacts::{Algorithm, Jar};
use resolver::model::catalog::PaperVersion;
use resolver::model::version::Minecraft;

/// Maximum number of bytes that are read of one of these files. Real ones have a few hundred bytes, manifests a few
/// thousand.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// Paper versions found in the directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PaperSeen {
    /// The claim of each file, the most trustworthy first.
    pub(super) claims: Vec<VersionClaim>,
    /// The server JARs beside `server.properties`, by name.
    pub(super) jars: Vec<ServerJar>,
    /// The files that name a server software.
    signs: Vec<SoftwareSign>,
}

/// The version that one file contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionClaim {
    /// The file.
    pub(super) file: String,
    pub(super) minecraft: Minecraft,
    pub(super) build: Option<u32>,
}

/// A JAR that starts a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerJar {
    pub(super) file: String,
    /// In the format of a lock: `sha256:<hex>`.
    pub(super) hash: String,
}

/// Reads the directory. An unreadable file makes no claim.
pub(super) fn read(directory: &Path) -> PaperSeen {
    let mut paper = PaperSeen::default();
    let mut weak = Vec::new();
    paper.read_history(directory);
    paper.read_itzg_manifest(directory);
    paper.read_unpacked_jar(directory);
    paper.read_server_jars(directory, &mut weak);
    paper.claims.extend(weak);
    let mut files = file_names(directory);
    files.extend(file_names(&directory.join("config")).iter().map(|name| format!("config/{name}")));
    paper.signs.extend(software_signs::configuration(&files));
    paper
}

impl PaperSeen {
    fn read_history(&mut self, directory: &Path) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct History {
            current_version: String,
        }
        const FILE: &str = "version_history.json";
        if let Some(History { current_version }) = read_json(&directory.join(FILE)) {
            self.add_claim(FILE, Evidence::LastStart, read_version(&current_version, None));
        }
    }

    fn read_itzg_manifest(&mut self, directory: &Path) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct JarManifest {
            minecraft_version: String,
            build: Option<u32>,
            project: Option<String>,
        }
        const FILE: &str = ".papermc-manifest.json";
        if let Some(JarManifest { minecraft_version, build, project }) = read_json(&directory.join(FILE)) {
            let minecraft = minecraft_version.parse().ok();
            let version = minecraft.map(|minecraft| VersionText { software: project, minecraft, build });
            self.add_claim(FILE, Evidence::Installed, version);
        }
    }

    /// Paperclip does not delete older versions, so a version counts only if it is the only one.
    fn read_unpacked_jar(&mut self, directory: &Path) {
        let names = file_names(&directory.join("versions"));
        let [minecraft] = names.as_slice() else { return };
        let inside = directory.join("versions").join(minecraft);
        let jars: Vec<String> = file_names(&inside).into_iter().filter(|name| is_jar(name)).collect();
        let [jar] = jars.as_slice() else { return };
        let file = format!("versions/{minecraft}/{jar}");
        let manifest = read_manifest(&inside.join(jar)).unwrap_or_default();
        let brand = attribute(&manifest, "Brand-Name");
        if let Some(software) = brand.as_deref().or_else(|| named_by_bundle(jar)) {
            self.signs.push(SoftwareSign::new(Evidence::Installed, software, &file));
            if !is_paper(software) {
                return;
            }
        }
        let version = attribute(&manifest, "Implementation-Version");
        self.add_claim(&file, Evidence::Installed, version.and_then(|version| read_version(&version, Some(minecraft))));
    }

    fn read_server_jars(&mut self, directory: &Path, weak: &mut Vec<VersionClaim>) {
        for file in file_names(directory).into_iter().filter(|name| is_jar(name)) {
            let path = directory.join(&file);
            let server = server_jar(&path);
            let bundled = server.as_ref().and_then(|(_, software)| software.as_deref());
            let software = bundled.or_else(|| named_by_file(&file)).map(str::to_owned);
            if let Some(software) = &software {
                self.signs.push(SoftwareSign::new(Evidence::Installed, software, &file));
            }
            let Some((minecraft, _)) = server else { continue };
            if software.is_some_and(|software| !is_paper(&software)) {
                continue;
            }
            let Ok([sha256, _]) = hash_file(&path) else { continue };
            self.jars.push(ServerJar { file: file.clone(), hash: format!("{}:{sha256}", Algorithm::Sha256.as_str()) });
            let build = file.strip_prefix(&format!("paper-{minecraft}-")).and_then(|rest| rest.strip_suffix(".jar"));
            let build = build.and_then(|build| build.parse().ok());
            weak.push(VersionClaim { file, minecraft, build });
        }
        // With several JARs, one with a build in its name is more specific.
        weak.sort_by_key(|claim| claim.build.is_none());
    }

    /// The oldest Minecraft version in any claim.
    pub(super) fn oldest(&self) -> Minecraft {
        let oldest = self.claims.iter().map(|claim| &claim.minecraft).min();
        oldest.expect("a directory without claims is refused").clone()
    }

    /// Replaces the claim of a server JAR's name with the build that Fill publishes with its hash.
    pub(super) fn identify_builds(&mut self, published: &[PaperVersion]) {
        for jar in &self.jars {
            let build_of = |paper: &PaperVersion| {
                let build = paper.builds.iter().find(|build| build.file.hash.as_ref() == Some(&jar.hash))?;
                Some((paper.minecraft.clone(), build.number))
            };
            let Some((minecraft, build)) = published.iter().find_map(build_of) else { continue };
            for claim in self.claims.iter_mut().filter(|claim| claim.file == jar.file) {
                claim.minecraft.clone_from(&minecraft);
                claim.build = Some(build);
            }
        }
    }

    /// The software of the directory if it is not Paper, or may not be.
    pub(super) fn other_software(&self) -> Option<UnsupportedSoftware> {
        software_signs::other_software(&self.signs)
    }

    /// The claim that a build runs which PaperMC does not publish, although its other builds of that Minecraft version
    /// are known. `None` while the hash of a server JAR identifies a build.
    pub(super) fn unpublished_claim(&self, published: &[PaperVersion]) -> Option<&VersionClaim> {
        let claim = self.claims.first()?;
        let build = claim.build?;
        let hashes = || published.iter().flat_map(|paper| &paper.builds).filter_map(|build| build.file.hash.as_ref());
        if self.jars.iter().any(|jar| hashes().any(|hash| *hash == jar.hash)) {
            return None;
        }
        let of = published.iter().find(|paper| paper.minecraft == claim.minecraft)?;
        let unknown = !of.builds.is_empty() && of.builds.iter().all(|candidate| candidate.number != build);
        unknown.then_some(claim)
    }

    fn add_claim(&mut self, file: &str, evidence: Evidence, version: Option<VersionText>) {
        let Some(VersionText { software, minecraft, build }) = version else { return };
        let other = software.as_deref().is_some_and(|software| !is_paper(software));
        self.signs.extend(software.map(|software| SoftwareSign::new(evidence, &software, file)));
        if !other {
            self.claims.push(VersionClaim { file: file.to_owned(), minecraft, build });
        }
    }
}

/// Content of a version text.
#[derive(Debug, PartialEq, Eq)]
struct VersionText {
    software: Option<String>,
    minecraft: Minecraft,
    build: Option<u32>,
}

/// Parses `1.21.10-130-8043efd (MC: 1.21.10)` and `git-Paper-496 (MC: 1.20.4)`. Without the parenthesis, the version
/// comes from the folder name.
fn read_version(text: &str, folder: Option<&str>) -> Option<VersionText> {
    let (head, minecraft) = match text.split_once(" (MC: ") {
        Some((head, rest)) => (head, rest.trim_end().trim_end_matches(')')),
        None => (text, folder?),
    };
    // A local build has the start of a commit hash in place of the number.
    let number = |text: &str| text.split('-').next().and_then(|number| number.parse().ok());
    let git = head.strip_prefix("git-").and_then(|head| head.split_once('-'));
    let (software, build) = if let Some((software, build)) = git {
        (Some(software.to_owned()), number(build))
    } else {
        let rest = head.strip_prefix(minecraft);
        let rest = rest.and_then(|rest| rest.strip_prefix('-').or_else(|| rest.strip_prefix(".build.")));
        (None, rest.and_then(number))
    };
    Some(VersionText { software, minecraft: minecraft.parse().ok()?, build })
}

/// The Minecraft version and the software of a JAR that starts a server. `None` for any other JAR.
fn server_jar(path: &Path) -> Option<(Minecraft, Option<String>)> {
    #[derive(Deserialize)]
    struct VersionJson {
        id: String,
    }
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut jar = Jar::open(path).ok()?;
    let VersionJson { id } = serde_json::from_slice(&jar.entry("version.json", MAX_FILE_SIZE).ok()??).ok()?;
    // `<sha256>\t<version>\t1.21.10/paper-1.21.10.jar`: the files that a bundle unpacks, one a line.
    let list = jar.entry("META-INF/versions.list", MAX_FILE_SIZE).ok()?;
    let software = list.and_then(|list| {
        let list = String::from_utf8_lossy(&list).into_owned();
        named_by_bundle(list.lines().next()?.rsplit(['\t', '/']).next()?).map(str::to_owned)
    });
    Some((id.parse().ok()?, software))
}

fn read_manifest(jar: &Path) -> Option<String> {
    let bytes = Jar::open(jar).ok()?.entry("META-INF/MANIFEST.MF", MAX_FILE_SIZE).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A value of a manifest. Long values continue in lines that begin with a space.
fn attribute(manifest: &str, name: &str) -> Option<String> {
    let whole = manifest.replace("\r\n", "\n").replace("\n ", "");
    whole.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.trim().to_owned()))
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&small_file(path).ok()?).ok()
}

/// Reads a small file, up to [`MAX_FILE_SIZE`] bytes.
pub(super) fn small_file(path: &Path) -> io::Result<Vec<u8>> {
    // Reading a pipe would never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_SIZE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether Paper treats a file of this name as a JAR.
pub(super) fn is_jar(name: &str) -> bool {
    // Paper does not load `.JAR`.
    name.strip_suffix(".jar").is_some()
}

/// Names of the files in a directory, sorted. Empty when it cannot be listed.
fn file_names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| printable(&entry.file_name())).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_version_is_read_in_all_historic_formats() {
        let read = |text, folder| {
            read_version(text, folder).map(|parsed| (parsed.software, parsed.minecraft.to_string(), parsed.build))
        };
        let parsed = |software: Option<&str>, minecraft: &str, build| {
            Some((software.map(str::to_owned), minecraft.to_owned(), build))
        };
        assert_eq!(read("1.21.10-130-8043efd (MC: 1.21.10)", None), parsed(None, "1.21.10", Some(130)));
        assert_eq!(read("1.21.9-rc1-36-5b6165c (MC: 1.21.9-rc1)", None), parsed(None, "1.21.9-rc1", Some(36)));
        assert_eq!(read("git-Paper-496 (MC: 1.20.4)", None), parsed(Some("Paper"), "1.20.4", Some(496)));
        assert_eq!(read("git-Paper-\"3f5d87a\" (MC: 1.16.5)", None), parsed(Some("Paper"), "1.16.5", None));
        assert_eq!(read("git-Purpur-2416 (MC: 1.21.4)", None), parsed(Some("Purpur"), "1.21.4", Some(2416)));
        assert_eq!(read("1.21.1-DEV-5b6165c (MC: 1.21.1)", None), parsed(None, "1.21.1", None));
        assert_eq!(read("26.1.2.build.74-stable", Some("26.1.2")), parsed(None, "26.1.2", Some(74)));
        assert_eq!(read("1.21.10-130-8043efd", Some("1.21.10")), parsed(None, "1.21.10", Some(130)));
        assert_eq!(read("1.21.10-130-8043efd", None), None);
        assert_eq!(read("", Some("")), None);
    }

    #[test]
    fn manifest_attribute_continues_on_next_line() {
        let text = "Manifest-Version: 1.0\r\nImplementation-Version: 1.21.10-130-\r\n 8043efd\r\n\r\n";
        assert_eq!(attribute(text, "Implementation-Version").as_deref(), Some("1.21.10-130-8043efd"));
        assert_eq!(attribute(text, "Main-Class"), None);
    }
}
