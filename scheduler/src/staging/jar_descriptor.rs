//! Edge (reads). Reads the plugin description in a JAR, which is opened as a zip with limits and never executed.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

/// The largest plugin.yml that is read. Real ones stay below 100 KiB.
const MAX_YAML_BYTES: u64 = 1024 * 1024;

/// Paper's own description file.
const PAPER: &str = "paper-plugin.yml";

/// Class files start with a magic number, a minor and a major version.
const CLASS_MAGIC: [u8; 4] = [0xca, 0xfe, 0xba, 0xbe];

/// The file is not a JAR that a server could load.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be opened.
    #[error("could not open it")]
    Open(#[source] io::Error),
    /// It is cut off, damaged or an HTML page.
    #[error("it is not a whole zip file")]
    Zip(#[source] ZipError),
}

type Archive = ZipArchive<io::BufReader<File>>;

/// The fields of a description that are needed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The name under which a server knows the plugin.
    pub name: String,
    /// `version`.
    pub version: Option<String>,
    /// `provides`, sorted.
    pub provides: Vec<String>,
    /// The names without which it does not load, sorted.
    pub depend: Vec<String>,
    /// `api-version`. An older Minecraft refuses it.
    pub api_version: Option<String>,
    /// The Java version for which its main class was compiled, if that class exists.
    pub java: Option<u32>,
}

/// The name under which a server knows the plugin in this JAR. `None` if it contains no plugin.
pub fn plugin_name(path: &Path) -> Result<Option<String>, Error> {
    Ok(description_text(&mut open(path)?)?.and_then(|(_, text)| scalar(&text, "name")))
}

/// The description of the plugin in this JAR. `None` if it contains no plugin.
pub fn description(path: &Path) -> Result<Option<Description>, Error> {
    let mut archive = open(path)?;
    let Some((entry, text)) = description_text(&mut archive)? else { return Ok(None) };
    let Some(name) = scalar(&text, "name") else { return Ok(None) };
    Ok(Some(Description {
        name,
        version: scalar(&text, "version"),
        provides: list(&text, "provides"),
        depend: if entry == PAPER { required(&text) } else { list(&text, "depend") },
        api_version: scalar(&text, "api-version"),
        java: scalar(&text, "main").and_then(|main| class_java_version(&mut archive, &main)),
    }))
}

fn open(path: &Path) -> Result<Archive, Error> {
    let file = File::open(path).map_err(Error::Open)?;
    ZipArchive::new(io::BufReader::new(file)).map_err(Error::Zip)
}

/// The Java version for which a class was compiled. Class files of Java 1.1 have version 45, and each later Java one more. `None` if the class is
/// missing or invalid.
fn class_java_version(archive: &mut Archive, class: &str) -> Option<u32> {
    let entry = archive.by_name(&format!("{}.class", class.replace('.', "/"))).ok()?;
    let mut start = Vec::new();
    entry.take(8).read_to_end(&mut start).ok()?;
    let [a, b, c, d, _, _, high, low] = *start else { return None };
    let version = u32::from(u16::from_be_bytes([high, low]));
    ([a, b, c, d] == CLASS_MAGIC).then(|| version.checked_sub(44)).flatten()
}

/// The file name of the description and its text. `paper-plugin.yml` wins over `plugin.yml`, as it does in Paper.
fn description_text(archive: &mut Archive) -> Result<Option<(&'static str, String)>, Error> {
    for description in [PAPER, "plugin.yml"] {
        match archive.by_name(description) {
            Ok(entry) => {
                let mut text = Vec::new();
                entry.take(MAX_YAML_BYTES).read_to_end(&mut text).map_err(|error| Error::Zip(ZipError::Io(error)))?;
                let text = String::from_utf8_lossy(&text).trim_start_matches('\u{feff}').to_owned();
                return Ok(Some((description, text)));
            }
            Err(ZipError::FileNotFound) => {}
            Err(error) => return Err(Error::Zip(error)),
        }
    }
    Ok(None)
}

/// The value of a top-level key. Only names and versions are needed, and Bukkit allows only letters, digits, `_`, `.` and `-` in names. So no
/// YAML parser is needed.
fn scalar(yaml: &str, wanted: &str) -> Option<String> {
    unquote(yaml.lines().find_map(|line| value_of(line, wanted))?)
}

/// The names at a top-level key: `[A, B]`, one per line, or a single one. Sorted.
fn list(yaml: &str, wanted: &str) -> Vec<String> {
    let mut lines = yaml.lines();
    let Some(value) = lines.find_map(|line| value_of(line, wanted)) else { return Vec::new() };
    let inline = value.split(" #").next().unwrap_or(value).trim();
    let mut names: Vec<String> = if inline.is_empty() {
        let items = lines.map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'));
        items.map_while(|line| line.strip_prefix("- ")).filter_map(unquote).collect()
    } else {
        inline.trim_matches(['[', ']']).split(',').filter_map(unquote).collect()
    };
    names.sort();
    names.dedup();
    names
}

/// The names that Paper's description requires. They are below `dependencies`, in `server` or `bootstrap`, each with its fields below it or in
/// braces. All are required except those with `required: false`. Sorted.
fn required(yaml: &str) -> Vec<String> {
    let mut lines = yaml.lines().skip_while(|line| value_of(line, "dependencies").is_none());
    let mut names: Vec<String> = Vec::new();
    let (mut section, mut name) = (None, None);
    lines.next();
    for line in lines {
        let content = line.trim_start();
        let depth = line.len() - content.len();
        let Some((key, value)) = content.split_once(':').filter(|_| !content.starts_with('#')) else { continue };
        if depth == 0 {
            break;
        }
        if section.is_none_or(|section| depth <= section) {
            (section, name) = (Some(depth), None);
        } else if name.is_none_or(|name| depth <= name) {
            name = Some(depth);
            if !value.replace(' ', "").contains("required:false") {
                names.extend(unquote(key));
            }
        } else if key.trim() == "required" && unquote(value).as_deref() == Some("false") {
            names.pop();
        }
    }
    names.sort();
    names.dedup();
    names
}

fn value_of<'y>(line: &'y str, wanted: &str) -> Option<&'y str> {
    let key_end = line.find(':')?;
    let (key, value) = (line[..key_end].trim_end(), &line[key_end + 1..]);
    (key.trim_matches(['"', '\'']) == wanted).then_some(value)
}

/// A value without its comment and its quotes.
fn unquote(value: &str) -> Option<String> {
    let value = value.split(" #").next().unwrap_or(value).trim().trim_matches(['"', '\'']).trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Whether a server treats two plugin names as equal. It ignores case and reads blanks as underscores.
pub fn is_same_plugin(a: &str, b: &str) -> bool {
    let folded = |name: &str| name.replace(' ', "_").to_lowercase();
    folded(a) == folded(b)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Cursor, Write};

    use proptest::prelude::*;
    use proptest::test_runner::{RngSeed, TestRunner};

    use super::*;

    /// A JAR with these entries.
    pub(crate) fn jar(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in entries {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn name_of(bytes: &[u8]) -> Result<Option<String>, Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        plugin_name(file.path())
    }

    #[test]
    fn paper_descriptor_takes_precedence_over_bukkit_descriptor() {
        let old = ("plugin.yml", "name: Old\n");
        assert_eq!(name_of(&jar(&[old])).unwrap().as_deref(), Some("Old"));
        assert_eq!(name_of(&jar(&[old, ("paper-plugin.yml", "name: New\n")])).unwrap().as_deref(), Some("New"));
        assert_eq!(name_of(&jar(&[("x.class", "")])).unwrap(), None);
    }

    #[test]
    fn truncated_jar_and_web_page_are_no_jars() {
        let whole = jar(&[("plugin.yml", "name: A\n")]);
        assert!(name_of(&whole[..whole.len() - 10]).is_err());
        assert!(name_of(b"<!DOCTYPE html>").is_err());
        assert!(name_of(b"").is_err());
    }

    #[test]
    fn plugin_name_is_read_in_all_common_yaml_styles() {
        for yaml in
            ["name: Demo", "main: x.Y\nname: \"Demo\"\n", "'name' : 'Demo' # ours\r\n", "\u{feff}name:   Demo   \n"]
        {
            let yaml = yaml.trim_start_matches('\u{feff}');
            assert_eq!(scalar(yaml, "name").as_deref(), Some("Demo"), "{yaml}");
        }
        for yaml in ["commands:\n  name: Demo\n", "name:\n", "", "username: Demo"] {
            assert_eq!(scalar(yaml, "name"), None, "{yaml}");
        }
    }

    #[test]
    fn provided_names_are_read_in_all_three_spellings() {
        for yaml in [
            "provides: [WorldEdit, 'Old'] # both\nmain: x\n",
            "provides:\n  - WorldEdit\n\n  # and\n  - \"Old\"\nmain: x\n",
            "provides:\n- WorldEdit\n- Old\nmain:\n- x\n",
        ] {
            assert_eq!(list(yaml, "provides"), ["Old", "WorldEdit"], "{yaml}");
        }
        assert_eq!(list("provides: WorldEdit\n", "provides"), ["WorldEdit"]);
        assert_eq!(list("provides: []\nmain: x\n", "provides"), [""; 0]);
        assert_eq!(list("main: x\n", "provides"), [""; 0]);
    }

    #[test]
    fn required_dependencies_are_read_from_both_descriptors() {
        let depend = |entry: &str, yaml: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), jar(&[(entry, yaml)])).unwrap();
            description(file.path()).unwrap().unwrap().depend
        };
        assert_eq!(depend("plugin.yml", "name: Shop\ndepend: [Vault, Lib]\nsoftdepend: [Maps]\n"), ["Lib", "Vault"]);
        let paper = "name: Shop\ndependencies:\n  bootstrap:\n    Early:\n      load: BEFORE\n  server:\n    Vault:\n      required: true\n    \
                     # not this\n    Maps:\n      load: BEFORE\n      required: false\n    Chat: {load: BEFORE, required: false}\n    'Lib': {}\n\
                     permissions:\n  shop.use:\n    default: true\n";
        assert_eq!(depend("paper-plugin.yml", paper), ["Early", "Lib", "Vault"]);
        assert_eq!(depend("paper-plugin.yml", "name: Shop\ndepend: [Vault]\n"), [""; 0]);
    }

    #[test]
    fn descriptor_yields_name_version_and_provided_names() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "name: FAWE\nversion: '2.12.0'\nprovides: [WorldEdit]\n";
        std::fs::write(file.path(), jar(&[("plugin.yml", text)])).unwrap();
        let description = description(file.path()).unwrap().unwrap();
        assert_eq!((description.name.as_str(), description.version.as_deref()), ("FAWE", Some("2.12.0")));
        assert_eq!(description.provides, ["WorldEdit"]);
    }

    #[test]
    fn descriptor_yields_minimum_minecraft_and_main_class_minimum_java() {
        let describe = |yaml: &str, class: &[u8]| {
            let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
            for (name, content) in [("plugin.yml", yaml.as_bytes()), ("com/shop/Shop.class", class)] {
                writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
                writer.write_all(content).unwrap();
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), writer.finish().unwrap().into_inner()).unwrap();
            description(file.path()).unwrap().map(|description| (description.api_version, description.java)).unwrap()
        };
        let class = |version: u8| [&CLASS_MAGIC[..], &[0, 0, 0, version]].concat();
        let yaml = "name: Shop\nmain: com.shop.Shop\napi-version: '1.21.4'\n";
        assert_eq!(describe(yaml, &class(65)), (Some("1.21.4".to_owned()), Some(21)));
        assert_eq!(describe("name: Shop\nmain: com.shop.Other\n", &class(65)), (None, None));
        assert_eq!(describe(yaml, b"no class").1, None);
        assert_eq!(describe(yaml, &class(3)).1, None, "older than any Java");
        assert_eq!(describe(yaml, &CLASS_MAGIC).1, None, "cut off");
    }

    #[test]
    fn name_parser_accepts_arbitrary_bytes() {
        let good = jar(&[("plugin.yml", "main: x.Y\nname: \"Demo\"\n"), ("x.class", "x")]);
        let edits = prop::collection::vec(any::<fixtures::fuzz::Edit>(), 1..5);
        let noise = prop::collection::vec(any::<u8>(), 0..80);
        let rng_seed = fixtures::fuzz::seed().map_or(RngSeed::Random, RngSeed::Fixed);
        let cases = fixtures::fuzz::cases(300);
        let config = ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() };
        let tried = TestRunner::new(config).run(&(edits, noise), |(edits, noise)| {
            if let Ok(Some(name)) = name_of(&fixtures::fuzz::mutate(&good, &noise, &edits)) {
                prop_assert!(!name.is_empty() && name.lines().count() == 1, "{name:?}");
            }
            prop_assert!(name_of(&noise).is_err());
            let yaml = fixtures::fuzz::mutate(b"main: x.Y\nname: Demo # ours\n", &noise, &edits);
            let yaml = String::from_utf8_lossy(&yaml);
            for key in ["name", "version", "provides"] {
                prop_assert!(scalar(&yaml, key).is_none_or(|value| value.trim() == value && !value.is_empty()));
                prop_assert!(list(&yaml, key).is_sorted());
            }
            Ok(())
        });
        tried.unwrap();
    }

    #[test]
    fn archive_with_many_end_records_is_refused_in_time() {
        let started = std::time::Instant::now();
        assert!(name_of(&b"PK\x05\x06".repeat(1 << 18)).is_err());
        assert!(started.elapsed() < std::time::Duration::from_mins(1), "{:?}", started.elapsed());
    }

    #[test]
    fn plugin_names_ignore_case_and_spaces() {
        assert!(is_same_plugin("My Plugin", "my_plugin"));
        assert!(!is_same_plugin("ViaVersion", "ViaBackwards"));
    }
}
