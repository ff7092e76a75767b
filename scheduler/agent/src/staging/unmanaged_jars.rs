//! Edge (reads). Describes unmanaged JARs, each of which is read once and again when it changes.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::hash_cache::FileStamp;
use super::{Volume, jar_descriptor};
use agent_api::UnmanagedJar;
use artifacts::Algorithm;

use crate::plain_fs;

/// The maximum number of JARs that are read. The others are reported by name only, and block updates as unknown ones
/// do.
const MAX_JARS: usize = 100;

/// The most bytes of a JAR that are hashed. Real ones have up to some hundred MiB.
const MAX_BYTES: u64 = 4 << 30;

/// The longest name or version that a status accepts.
const MAX_TEXT_CHARS: usize = 64;

/// The maximum number of names of one JAR.
const MAX_NAMES: usize = 100;

/// The results by file. A report is requested every few seconds, and the JARs of a server have hundreds of megabytes.
#[derive(Debug, Default)]
pub struct UnmanagedJars(Mutex<BTreeMap<String, (FileStamp, UnmanagedJar)>>);

impl UnmanagedJars {
    /// The descriptions of these files of `plugins/`, in their order. Unreadable files are left out. Blocks.
    pub fn describe(&self, volume: &Volume, files: &[String]) -> Vec<UnmanagedJar> {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|file, _| files.contains(file));
        let mut found = Vec::new();
        for file in files.iter().take(MAX_JARS) {
            let path = volume.plugins().join(file);
            let Ok(metadata) = plain_fs::metadata(&path) else { continue };
            let stamp = FileStamp::from_metadata(&metadata);
            let same = cache.get(file).filter(|(of, _)| *of == stamp).map(|(_, jar)| jar.clone());
            let Some(jar) = same.or_else(|| read(&path, file).ok()) else { continue };
            cache.insert(file.clone(), (stamp, jar.clone()));
            found.push(jar);
        }
        found
    }
}

fn read(path: &Path, file: &str) -> io::Result<UnmanagedJar> {
    let hash =
        |algorithm: Algorithm| algorithm.hash(plain_fs::open(path)?.take(MAX_BYTES)).map(|hash| hash.hex().to_owned());
    let (sha256, sha512) = (hash(Algorithm::Sha256)?, hash(Algorithm::Sha512)?);
    // A JAR without a readable plugin is loaded by no server. It is reported all the same, because it may be a part of
    // a plugin.
    let plugin = jar_descriptor::plugin(path).ok().flatten();
    let cut = |text: &str| -> String { text.chars().filter(|c| !c.is_control()).take(MAX_TEXT_CHARS).collect() };
    let names = |names: &[String]| names.iter().take(MAX_NAMES).map(|name| cut(name)).collect();
    Ok(UnmanagedJar {
        file: file.to_owned(),
        sha256,
        sha512: Some(sha512),
        name: plugin.as_ref().map(|plugin| cut(&plugin.name)),
        version: plugin.as_ref().map(|plugin| cut(&plugin.version)),
        provides: plugin.as_ref().map(|plugin| names(&plugin.provides)).unwrap_or_default(),
        depend: plugin.as_ref().map(|plugin| names(&plugin.depend)).unwrap_or_default(),
        api_version: plugin.as_ref().and_then(|plugin| plugin.api_version.as_deref().map(cut)),
        paper_plugin: plugin.as_ref().is_some_and(|plugin| plugin.paper_plugin),
        java: plugin.and_then(|plugin| plugin.java).map(u32::from),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sha2::{Digest, Sha256, Sha512};

    use super::super::jar_descriptor::tests::jar;
    use super::*;

    #[test]
    fn unmanaged_jar_is_reported_with_current_hash_and_names() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::new(folder.path());
        fs::create_dir_all(volume.plugins()).unwrap();
        let put = |file: &str, bytes: &[u8]| fs::write(volume.plugins().join(file), bytes).unwrap();
        put(
            "FAWE.jar",
            &jar(&[(
                "plugin.yml",
                "name: FAWE\nversion: 2.12.0\nmain: a.B\napi-version: 1.21\nprovides: [WorldEdit]\n",
            )]),
        );
        put("broken.jar", b"no jar");
        let files = ["FAWE.jar", "broken.jar", "gone.jar"].map(str::to_owned);
        let unmanaged_jars = UnmanagedJars::default();
        let found = unmanaged_jars.describe(&volume, &files);
        let [fawe, broken] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((fawe.name.as_deref(), fawe.version.as_deref()), (Some("FAWE"), Some("2.12.0")));
        assert_eq!(fawe.provides, ["WorldEdit"]);
        assert_eq!((fawe.api_version.as_deref(), fawe.java), (Some("1.21"), None));
        assert_eq!(fawe.sha256, hex::encode(Sha256::digest(fs::read(volume.plugins().join("FAWE.jar")).unwrap())));
        assert_eq!((broken.name.as_ref(), broken.sha256.len()), (None, 64));
        assert_eq!(broken.sha512.as_deref(), Some(hex::encode(Sha512::digest("no jar")).as_str()));
        assert_eq!(unmanaged_jars.describe(&volume, &files), found);
        put("broken.jar", b"still no jar");
        assert_ne!(unmanaged_jars.describe(&volume, &files)[1].sha256, broken.sha256);
    }

    #[test]
    fn unmanaged_texts_are_truncated_to_status_limit() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::new(folder.path());
        fs::create_dir_all(volume.plugins()).unwrap();
        let yaml = format!("name: Shop\nmain: a.B\nversion: \"1\\a0{}\"\n", "x".repeat(500));
        fs::write(volume.plugins().join("a.jar"), jar(&[("plugin.yml", &yaml)])).unwrap();
        let found = UnmanagedJars::default().describe(&volume, &["a.jar".to_owned()]);
        assert_eq!(found[0].version, Some(format!("10{}", "x".repeat(MAX_TEXT_CHARS - 2))));
    }
}
