//! Edge (reads). Finds out which Paper a server directory runs, from several files, the most trustworthy first.
//!
//! | file | contains | source |
//! |---|---|---|
//! | `version_history.json` | the version that started last | Paper writes it at each start: `1.21.10-130-8043efd (MC: 1.21.10)`, up to 1.20.4 `git-Paper-496 (MC: 1.20.4)` |
//! | `.papermc-manifest.json` | the version that itzg's image installed last | mc-image-helper: `minecraftVersion`, `build`, `project` |
//! | `versions/<Minecraft>/paper-<Minecraft>.jar` | the version that Paperclip unpacked | `Implementation-Version` of its manifest |
//! | the server's JAR | the version that was installed | its sha256 at Fill, else the name that Fill gives its files, `paper-1.21.10-130.jar`, and the Minecraft in Mojang's `version.json` inside |

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use serde::Deserialize;

use super::server_dir::{hash_file, one_line, printable};
use artifacts::{Algorithm, Jar};
use resolver::model::catalog::PaperVersion;
use resolver::model::version::Minecraft;

/// Maximum number of bytes that are read of one of these files. Real ones have a few hundred bytes, manifests a few
/// thousand.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// Maximum length of a displayed software name. Real ones have a dozen letters.
const MAX_NAME_LENGTH: usize = 64;

/// Paper versions found in the directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PaperSeen {
    /// The claim of each file, the most trustworthy first.
    pub(super) claims: Vec<VersionClaim>,
    /// The server JARs beside `server.properties`, by name.
    pub(super) jars: Vec<ServerJar>,
    /// Other software that a file names, such as `Purpur`, and the file.
    pub(super) other_software: Option<(String, String)>,
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
            self.add_claim(FILE, read_version(&current_version, None));
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
            self.add_claim(FILE, minecraft.map(|minecraft| VersionText { software: project, minecraft, build }));
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
        let version = read_manifest(&inside.join(jar)).and_then(|text| attribute(&text, "Implementation-Version"));
        let version_text = version.and_then(|version| read_version(&version, Some(minecraft)));
        let software = jar.strip_suffix(&format!("-{minecraft}.jar")).map(str::to_owned);
        self.add_claim(
            &file,
            version_text
                .map(|version_text| VersionText { software: version_text.software.or(software), ..version_text }),
        );
    }

    fn read_server_jars(&mut self, directory: &Path, weak: &mut Vec<VersionClaim>) {
        for file in file_names(directory).into_iter().filter(|name| is_jar(name)) {
            let path = directory.join(&file);
            let Some((minecraft, software)) = server_jar(&path) else { continue };
            if let Some(software) = software.filter(|software| !is_paper(software)) {
                self.other_software.get_or_insert((sanitized_name(&software), file));
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

    fn add_claim(&mut self, file: &str, version: Option<VersionText>) {
        let Some(VersionText { software, minecraft, build }) = version else { return };
        match software.filter(|software| !is_paper(software)) {
            Some(software) => {
                self.other_software.get_or_insert((sanitized_name(&software), file.to_owned()));
            }
            None => self.claims.push(VersionClaim { file: file.to_owned(), minecraft, build }),
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

/// A software name, safe to display. The file may contain any text.
fn sanitized_name(software: &str) -> String {
    one_line(&software.chars().take(MAX_NAME_LENGTH).collect::<String>())
}

fn is_paper(software: &str) -> bool {
    software.eq_ignore_ascii_case("paper")
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
        let file = list.lines().next()?.rsplit(['\t', '/']).next()?.to_owned();
        Some(file.strip_suffix(&format!("-{id}.jar"))?.to_owned())
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
