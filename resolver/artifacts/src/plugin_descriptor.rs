//! Edge (reads). Reads the descriptor in a plugin's JAR: `paper-plugin.yml`, otherwise `plugin.yml`, in the same order
//! as Paper.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{FactsError, Jar};

const PAPER: &str = "paper-plugin.yml";
const BUKKIT: &str = "plugin.yml";

/// The descriptors of other software. (`BungeeCord` reads plugin.yml, too, if there is no bungee.yml.)
const OTHER_SOFTWARE: [(&str, &str); 3] =
    [("velocity-plugin.json", "Velocity"), ("bungee.yml", "BungeeCord"), ("fabric.mod.json", "Fabric")];

/// Descriptors with hundreds of commands have 60 KB.
const MAX_DESCRIPTOR_SIZE: u64 = 1 << 20;

/// Limit of characters that an error quotes from a descriptor.
const MAX_QUOTE_LENGTH: usize = 300;

/// Class files start with a magic number, a minor and a major version.
const CLASS_MAGIC: [u8; 4] = [0xca, 0xfe, 0xba, 0xbe];

/// The data from a plugin's JAR. All lists are sorted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginFacts {
    /// The name that other plugins and the server's own list use.
    pub name: String,
    /// The version as its authors write it.
    pub version: Option<String>,
    /// The minimum Minecraft version: an older server refuses the plugin.
    pub api_version: Option<String>,
    /// Plugins without which it does not load, by name.
    pub depend: Vec<String>,
    /// Plugins that it uses if they are installed.
    pub soft_depend: Vec<String>,
    /// Plugins that load after it.
    pub load_before: Vec<String>,
    /// Further names that satisfy the `depend` of other plugins.
    pub provides: Vec<String>,
    /// Maven coordinates that the server downloads at its start.
    pub libraries: Vec<String>,
    /// Whether it declares support for Folia.
    pub folia: bool,
    /// The Java version that its main class was compiled for, if the JAR contains that class.
    pub java: Option<u16>,
}

/// Reads a plugin's JAR. Blocks for a few milliseconds.
pub fn facts(path: &Path) -> Result<PluginFacts, FactsError> {
    let mut jar = Jar::open(path)?;
    let (entry, description) = if let Some(bytes) = jar.entry(PAPER, MAX_DESCRIPTOR_SIZE)? {
        (PAPER, Description::from(parse::<PaperYml>(PAPER, &bytes)?))
    } else if let Some(bytes) = jar.entry(BUKKIT, MAX_DESCRIPTOR_SIZE)? {
        (BUKKIT, Description::from(parse::<BukkitYml>(BUKKIT, &bytes)?))
    } else {
        for (entry, software) in OTHER_SOFTWARE {
            if jar.start(entry, 1)?.is_some() {
                return Err(FactsError::OtherSoftware { software, entry });
            }
        }
        return Err(FactsError::NoDescriptor);
    };
    let Description { main, mut facts } = description;
    // Bukkit's rule for names. Reports and the server's console contain the name.
    let right = !facts.name.is_empty()
        && facts.name.len() <= 64
        && facts.name.bytes().all(|b| b.is_ascii_alphanumeric() || b" _.-".contains(&b));
    if !right {
        return Err(FactsError::InvalidDescriptor {
            entry,
            what: format!("`{}` is not a valid plugin name", quoted(&facts.name).escape_debug()),
        });
    }
    if let Some(main) = main {
        let class = jar.start(&format!("{}.class", main.replace('.', "/")), 8)?;
        facts.java = class.and_then(|bytes| java(&bytes));
    }
    Ok(facts)
}

/// Java 1.1 has class files of version 45, and each later Java version has one more.
fn java(class: &[u8]) -> Option<u16> {
    let [a, b, c, d, _, _, high, low] = *class else { return None };
    ([a, b, c, d] == CLASS_MAGIC).then(|| u16::from_be_bytes([high, low]).checked_sub(44)).flatten()
}

fn parse<T: DeserializeOwned>(entry: &'static str, bytes: &[u8]) -> Result<T, FactsError> {
    // The default options limit depth, aliases and events. Duplicate keys are allowed because SnakeYAML, which servers
    // use, accepts them.
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let text =
        std::str::from_utf8(bytes).map_err(|error| FactsError::InvalidDescriptor { entry, what: error.to_string() })?;
    serde_saphyr::from_str_with_options(text.trim_start_matches('\u{feff}'), options)
        .map_err(|error| FactsError::InvalidDescriptor { entry, what: first_line(&error.to_string()) })
}

/// The other lines draw the position in the file.
fn first_line(text: &str) -> String {
    quoted(text.lines().next().unwrap_or_default()).chars().filter(|c| !c.is_control()).collect()
}

/// The start of a text of unknown length.
fn quoted(text: &str) -> &str {
    text.char_indices().nth(MAX_QUOTE_LENGTH).map_or(text, |(end, _)| &text[..end])
}

/// Either descriptor in a common form.
struct Description {
    main: Option<String>,
    facts: PluginFacts,
}

/// `plugin.yml`: only the fields in use.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct BukkitYml {
    name: String,
    version: Option<String>,
    main: Option<String>,
    api_version: Option<String>,
    depend: Option<JarNames>,
    softdepend: Option<JarNames>,
    loadbefore: Option<JarNames>,
    provides: Option<JarNames>,
    libraries: Option<JarNames>,
    folia_supported: Option<bool>,
}

/// `paper-plugin.yml`: only the fields in use.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PaperYml {
    name: String,
    version: Option<String>,
    main: Option<String>,
    api_version: Option<String>,
    dependencies: Option<Dependencies>,
    provides: Option<JarNames>,
    folia_supported: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct Dependencies {
    bootstrap: Option<BTreeMap<String, Option<Need>>>,
    server: Option<BTreeMap<String, Option<Need>>>,
}

#[derive(Debug, Deserialize)]
struct Need {
    required: Option<bool>,
    load: Option<String>,
}

/// A list, or the single name that some authors write instead.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum JarNames {
    Many(Vec<String>),
    One(String),
}

impl JarNames {
    fn sorted(names: Option<Self>) -> Vec<String> {
        let names = match names {
            None => return Vec::new(),
            Some(Self::Many(names)) => names,
            Some(Self::One(name)) => vec![name],
        };
        names.into_iter().filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl From<BukkitYml> for Description {
    fn from(yml: BukkitYml) -> Self {
        let facts = PluginFacts {
            name: yml.name,
            version: yml.version,
            api_version: yml.api_version,
            depend: JarNames::sorted(yml.depend),
            soft_depend: JarNames::sorted(yml.softdepend),
            load_before: JarNames::sorted(yml.loadbefore),
            provides: JarNames::sorted(yml.provides),
            libraries: JarNames::sorted(yml.libraries),
            folia: yml.folia_supported == Some(true),
            java: None,
        };
        Self { main: yml.main, facts }
    }
}

impl From<PaperYml> for Description {
    fn from(yml: PaperYml) -> Self {
        let Dependencies { bootstrap, server } = yml.dependencies.unwrap_or_default();
        let (mut depend, mut soft, mut before) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (name, need) in bootstrap.into_iter().chain(server).flatten() {
            let (required, load) = need.map_or((None, None), |need| (need.required, need.load));
            // `load: AFTER` means that the named plugin loads after this one.
            if load.is_some_and(|load| load.eq_ignore_ascii_case("AFTER")) {
                before.insert(name.clone());
            }
            if required.unwrap_or(true) {
                depend.insert(name)
            } else {
                soft.insert(name)
            };
        }
        soft.retain(|name| !depend.contains(name));
        let facts = PluginFacts {
            name: yml.name,
            version: yml.version,
            api_version: yml.api_version,
            depend: depend.into_iter().collect(),
            soft_depend: soft.into_iter().collect(),
            load_before: before.into_iter().collect(),
            provides: JarNames::sorted(yml.provides),
            // A Paper plugin names its libraries in code.
            libraries: Vec::new(),
            folia: yml.folia_supported == Some(true),
            java: None,
        };
        Self { main: yml.main, facts }
    }
}
