//! Edge (reads). Reads the descriptor in a plugin's JAR: `paper-plugin.yml`, otherwise `plugin.yml`, in the same order
//! as Paper.

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::descriptor_rules::{DescriptorRule, paper_plugin_yml, plugin_yml};
use super::yaml::{self, Value, YamlError};
use super::{FactsError, Jar};

const PAPER: &str = "paper-plugin.yml";
const BUKKIT: &str = "plugin.yml";

/// The descriptors of other software. (`BungeeCord` reads plugin.yml, too, if there is no bungee.yml.)
const OTHER_SOFTWARE: [(&str, &str); 3] =
    [("velocity-plugin.json", "Velocity"), ("bungee.yml", "BungeeCord"), ("fabric.mod.json", "Fabric")];

/// Descriptors with hundreds of commands have 60 KB.
const MAX_DESCRIPTOR_SIZE: u64 = 1 << 20;

/// Limit of characters of an error about a descriptor.
const MAX_ERROR_LENGTH: usize = 300;

/// Limit of characters of a plugin's name. Kubernetes objects and reports contain it.
const MAX_NAME_LENGTH: usize = 64;

/// Class files start with a magic number, a minor and a major version.
const CLASS_MAGIC: [u8; 4] = [0xca, 0xfe, 0xba, 0xbe];

/// The data from a plugin's JAR. All lists are sorted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginFacts {
    /// The name that other plugins and the server's own list use.
    pub name: String,
    /// The version as the server shows it: an unquoted `2.10` is 2.1.
    pub version: String,
    /// The main class.
    pub main: String,
    /// The `api-version` as the server reads it: an unquoted `1.20` is `1.2`.
    pub api_version: Option<String>,
    /// Whether the descriptor is a `paper-plugin.yml`. Other rules apply to its `api-version`.
    pub paper_plugin: bool,
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
    facts_in(File::open(path).map_err(FactsError::Open)?)
}

/// Reads a plugin's JAR that the caller has opened. Blocks for a few milliseconds.
pub fn facts_in(file: File) -> Result<PluginFacts, FactsError> {
    let mut jar = Jar::new(file)?;
    let mut facts = if let Some(bytes) = jar.entry(PAPER, MAX_DESCRIPTOR_SIZE)? {
        describe(PAPER, &bytes, paper_plugin_yml)?
    } else if let Some(bytes) = jar.entry(BUKKIT, MAX_DESCRIPTOR_SIZE)? {
        describe(BUKKIT, &bytes, plugin_yml)?
    } else {
        for (entry, software) in OTHER_SOFTWARE {
            if jar.start(entry, 1)?.is_some() {
                return Err(FactsError::OtherSoftware { software, entry });
            }
        }
        return Err(FactsError::NoDescriptor);
    };
    let class = jar.start(&format!("{}.class", facts.main.replace('.', "/")), 8)?;
    facts.java = class.and_then(|bytes| java(&bytes));
    Ok(facts)
}

/// The facts in a descriptor, by the rules of its kind.
fn describe(
    entry: &'static str,
    bytes: &[u8],
    rules: impl FnOnce(&'static str, &Value) -> Result<PluginFacts, DescriptorRule>,
) -> Result<PluginFacts, FactsError> {
    let unreadable = |what: &str| {
        let what = what.chars().filter(|c| !c.is_control()).take(MAX_ERROR_LENGTH).collect();
        FactsError::UnreadableDescriptor { entry, what }
    };
    let refused = |rule| FactsError::Refused { rule };
    let text = std::str::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8"))?;
    let yml = yaml::parse(text).map_err(|error| match error {
        YamlError::SeveralDocuments => refused(DescriptorRule::SeveralDocuments { entry }),
        YamlError::Unreadable(what) => unreadable(&what),
    })?;
    let facts = rules(entry, &yml).map_err(refused)?;
    if facts.name.len() > MAX_NAME_LENGTH {
        return Err(unreadable(&format!("its name has more than {MAX_NAME_LENGTH} characters")));
    }
    Ok(facts)
}

/// Java 1.1 has class files of version 45, and each later Java version has one more.
fn java(class: &[u8]) -> Option<u16> {
    let [a, b, c, d, _, _, high, low] = *class else { return None };
    ([a, b, c, d] == CLASS_MAGIC).then(|| u16::from_be_bytes([high, low]).checked_sub(44)).flatten()
}
