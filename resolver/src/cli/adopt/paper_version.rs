//! Edge (reads). Which Paper a server directory runs: what its files say, the most trustworthy first.
//!
//! | file | says | source |
//! |---|---|---|
//! | `version_history.json` | what started last | Paper writes it at each start: `1.21.10-130-8043efd (MC: 1.21.10)`, up to 1.20.4 `git-Paper-496 (MC: 1.20.4)` |
//! | `.papermc-manifest.json` | what itzg's image installed last | mc-image-helper: `minecraftVersion`, `build`, `project` |
//! | `versions/<Minecraft>/paper-<Minecraft>.jar` | what Paperclip unpacked | `Implementation-Version` of its manifest |
//! | the server's JAR | what was put there | its sha256 at Fill; else the name that Fill gives its files, `paper-1.21.10-130.jar`, and the Minecraft in Mojang's `version.json` inside |

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use serde::Deserialize;

use super::server_dir::{hash_file, one_line, shown};
use crate::catalog::PaperVersion;
use crate::jar::{Algorithm, Jar};
use crate::version::Minecraft;

/// The most that is read of one of these files; real ones have a few hundred bytes, manifests a few thousand.
const LARGEST: u64 = 1 << 20;

/// As much as is shown of a name of software; real ones have a dozen letters.
const LONGEST_NAME: usize = 64;

/// What the directory says about its Paper.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PaperSeen {
    /// What each file says, the most trustworthy first.
    pub(super) claims: Vec<VersionClaim>,
    /// The server JARs beside `server.properties`, by name.
    pub(super) jars: Vec<ServerJar>,
    /// Other software that a file names: `Purpur`, and the file.
    pub(super) other: Option<(String, String)>,
}

/// What one file says.
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
    /// As a lock writes it: `sha256:<hex>`.
    pub(super) hash: String,
}

/// Reads what is there; a file that cannot be read says nothing.
pub(super) fn read(directory: &Path) -> PaperSeen {
    let mut seen = PaperSeen::default();
    let mut weak = Vec::new();
    seen.history(directory);
    seen.itzg(directory);
    seen.unpacked(directory);
    seen.jars(directory, &mut weak);
    seen.claims.extend(weak);
    seen
}

impl PaperSeen {
    fn history(&mut self, directory: &Path) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct History {
            current_version: String,
        }
        const FILE: &str = "version_history.json";
        if let Some(History { current_version }) = json(&directory.join(FILE)) {
            self.told(FILE, read_version(&current_version, None));
        }
    }

    fn itzg(&mut self, directory: &Path) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct JarManifest {
            minecraft_version: String,
            build: Option<u32>,
            project: Option<String>,
        }
        const FILE: &str = ".papermc-manifest.json";
        if let Some(JarManifest { minecraft_version, build, project }) = json(&directory.join(FILE)) {
            let minecraft = minecraft_version.parse().ok();
            self.told(FILE, minecraft.map(|minecraft| VersionText { software: project, minecraft, build }));
        }
    }

    /// Paperclip leaves older versions there: of several, none can be told to be the one.
    fn unpacked(&mut self, directory: &Path) {
        let names = names_in(&directory.join("versions"));
        let [minecraft] = names.as_slice() else { return };
        let inside = directory.join("versions").join(minecraft);
        let jars: Vec<String> = names_in(&inside).into_iter().filter(|name| is_jar(name)).collect();
        let [jar] = jars.as_slice() else { return };
        let file = format!("versions/{minecraft}/{jar}");
        let version = manifest_of(&inside.join(jar)).and_then(|text| attribute(&text, "Implementation-Version"));
        let told = version.and_then(|version| read_version(&version, Some(minecraft)));
        let software = jar.strip_suffix(&format!("-{minecraft}.jar")).map(str::to_owned);
        self.told(&file, told.map(|told| VersionText { software: told.software.or(software), ..told }));
    }

    fn jars(&mut self, directory: &Path, weak: &mut Vec<VersionClaim>) {
        for file in names_in(directory).into_iter().filter(|name| is_jar(name)) {
            let path = directory.join(&file);
            let Some((minecraft, software)) = server_jar(&path) else { continue };
            if let Some(software) = software.filter(|software| !is_paper(software)) {
                self.other.get_or_insert((named(&software), file));
                continue;
            }
            let Ok([sha256, _]) = hash_file(&path) else { continue };
            self.jars.push(ServerJar { file: file.clone(), hash: format!("{}:{sha256}", Algorithm::Sha256.as_str()) });
            let build = file.strip_prefix(&format!("paper-{minecraft}-")).and_then(|rest| rest.strip_suffix(".jar"));
            let build = build.and_then(|build| build.parse().ok());
            weak.push(VersionClaim { file, minecraft, build });
        }
        // Of several JARs one with a build in its name says more.
        weak.sort_by_key(|claim| claim.build.is_none());
    }

    /// The oldest Minecraft that any file speaks of.
    pub(super) fn oldest(&self) -> Minecraft {
        let oldest = self.claims.iter().map(|claim| &claim.minecraft).min();
        oldest.expect("a folder without claims is not adopted").clone()
    }

    /// Believes the bytes of a server's JAR more than its name: what Fill publishes with its hash.
    pub(super) fn recognise(&mut self, published: &[PaperVersion]) {
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

    fn told(&mut self, file: &str, told: Option<VersionText>) {
        let Some(VersionText { software, minecraft, build }) = told else { return };
        match software.filter(|software| !is_paper(software)) {
            Some(software) => {
                self.other.get_or_insert((named(&software), file.to_owned()));
            }
            None => self.claims.push(VersionClaim { file: file.to_owned(), minecraft, build }),
        }
    }
}

/// What a version text says.
#[derive(Debug, PartialEq, Eq)]
struct VersionText {
    software: Option<String>,
    minecraft: Minecraft,
    build: Option<u32>,
}

/// What a file calls its software, fit to be shown: it may hold anything.
fn named(software: &str) -> String {
    one_line(&software.chars().take(LONGEST_NAME).collect::<String>())
}

fn is_paper(software: &str) -> bool {
    software.eq_ignore_ascii_case("paper")
}

/// `1.21.10-130-8043efd (MC: 1.21.10)`, `git-Paper-496 (MC: 1.20.4)`, and both without the parenthesis, in the folder of a
/// Minecraft version.
fn read_version(text: &str, folder: Option<&str>) -> Option<VersionText> {
    let (head, minecraft) = match text.split_once(" (MC: ") {
        Some((head, rest)) => (head, rest.trim_end().trim_end_matches(')')),
        None => (text, folder?),
    };
    // What somebody built at home has the start of a commit there.
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

/// The Minecraft and the software of a JAR that starts a server; None for any other JAR.
fn server_jar(path: &Path) -> Option<(Minecraft, Option<String>)> {
    #[derive(Deserialize)]
    struct VersionJson {
        id: String,
    }
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut jar = Jar::open(path).ok()?;
    let VersionJson { id } = serde_json::from_slice(&jar.entry("version.json", LARGEST).ok()??).ok()?;
    // `<sha256>\t<version>\t1.21.10/paper-1.21.10.jar`: what a bundle unpacks, one a line.
    let list = jar.entry("META-INF/versions.list", LARGEST).ok()?;
    let software = list.and_then(|list| {
        let list = String::from_utf8_lossy(&list).into_owned();
        let file = list.lines().next()?.rsplit(['\t', '/']).next()?.to_owned();
        Some(file.strip_suffix(&format!("-{id}.jar"))?.to_owned())
    });
    Some((id.parse().ok()?, software))
}

fn manifest_of(jar: &Path) -> Option<String> {
    let bytes = Jar::open(jar).ok()?.entry("META-INF/MANIFEST.MF", LARGEST).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A value of a manifest, which goes on in lines that begin with a blank.
fn attribute(manifest: &str, name: &str) -> Option<String> {
    let whole = manifest.replace("\r\n", "\n").replace("\n ", "");
    whole.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.trim().to_owned()))
}

fn json<T: for<'de> Deserialize<'de>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&small_file(path).ok()?).ok()
}

/// All of a file that is a small one.
pub(super) fn small_file(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe would never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether Paper takes a file of this name for a JAR.
pub(super) fn is_jar(name: &str) -> bool {
    // `.JAR` is none.
    name.strip_suffix(".jar").is_some()
}

/// What is in a directory, by name; nothing when it cannot be listed.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| shown(&entry.file_name())).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_paper_has_written_them_over_the_years() {
        let read = |text, folder| {
            read_version(text, folder).map(|told| (told.software, told.minecraft.to_string(), told.build))
        };
        let told = |software: Option<&str>, minecraft: &str, build| {
            Some((software.map(str::to_owned), minecraft.to_owned(), build))
        };
        assert_eq!(read("1.21.10-130-8043efd (MC: 1.21.10)", None), told(None, "1.21.10", Some(130)));
        assert_eq!(read("1.21.9-rc1-36-5b6165c (MC: 1.21.9-rc1)", None), told(None, "1.21.9-rc1", Some(36)));
        assert_eq!(read("git-Paper-496 (MC: 1.20.4)", None), told(Some("Paper"), "1.20.4", Some(496)));
        assert_eq!(read("git-Paper-\"3f5d87a\" (MC: 1.16.5)", None), told(Some("Paper"), "1.16.5", None));
        assert_eq!(read("git-Purpur-2416 (MC: 1.21.4)", None), told(Some("Purpur"), "1.21.4", Some(2416)));
        assert_eq!(read("1.21.1-DEV-5b6165c (MC: 1.21.1)", None), told(None, "1.21.1", None));
        assert_eq!(read("26.1.2.build.74-stable", Some("26.1.2")), told(None, "26.1.2", Some(74)));
        assert_eq!(read("1.21.10-130-8043efd", Some("1.21.10")), told(None, "1.21.10", Some(130)));
        assert_eq!(read("1.21.10-130-8043efd", None), None);
        assert_eq!(read("", Some("")), None);
    }

    #[test]
    fn an_attribute_of_a_manifest_goes_on_in_the_next_line() {
        let text = "Manifest-Version: 1.0\r\nImplementation-Version: 1.21.10-130-\r\n 8043efd\r\n\r\n";
        assert_eq!(attribute(text, "Implementation-Version").as_deref(), Some("1.21.10-130-8043efd"));
        assert_eq!(attribute(text, "Main-Class"), None);
    }
}
