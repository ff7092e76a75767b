//! Pure. Applies the rules of Paper's own classes to a plugin descriptor: the fields that Paper reads, or the rule by
//! which it refuses the plugin.
//!
//! Sources: `PluginDescriptionFile`, `SpigotPluginProviderFactory` and `PluginClassLoader` for `plugin.yml`;
//! `PaperPluginMeta`, `PluginConfigConstraints` and `LegacyPaperMeta` for `paper-plugin.yml`. Rules about `api-version`
//! depend on the server's version, so the resolver applies them.

use std::collections::BTreeSet;

use super::plugin_descriptor::PluginFacts;
use super::yaml::Value;

/// Names that no plugin may have, in lower case (`PluginConfigConstraints.RESERVED_KEYS`).
const RESERVED_NAMES: [&str; 5] = ["bukkit", "minecraft", "mojang", "spigot", "paper"];

/// Packages from which the class loader of a `plugin.yml` loads nothing, which therefore hold no main class.
const SERVER_PACKAGES: [&str; 2] = ["org.bukkit.", "net.minecraft."];

/// The same for `paper-plugin.yml`.
const SERVER_PACKAGES_OF_PAPER: [&str; 4] =
    ["net.minecraft.", "org.bukkit.", "io.papermc.paper.", "com.destroystokoyo.paper."];

/// Limit of characters that a rule quotes from a descriptor.
const MAX_QUOTE_LENGTH: usize = 64;

/// Limit of characters of an `api-version`. A longer text is no version.
const MAX_API_VERSION_LENGTH: usize = 40;

/// A rule of Paper by which it refuses a plugin on every server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorRule {
    /// The file is no mapping.
    #[error("its `{entry}` does not consist of fields such as `name: value`")]
    NoFields {
        /// Its path in the JAR.
        entry: &'static str,
    },
    /// The file has several YAML documents.
    #[error("its `{entry}` contains more than one YAML document (`---`)")]
    SeveralDocuments {
        /// Its path in the JAR.
        entry: &'static str,
    },
    /// A required field is missing or empty.
    #[error("its `{entry}` has no `{field}`")]
    Missing {
        /// Its path in the JAR.
        entry: &'static str,
        /// The field.
        field: &'static str,
    },
    /// The name has other characters than those allowed.
    #[error("its name is `{name}`, and only letters, digits, `_`, `.` and `-` are allowed")]
    Name {
        /// The start of the name.
        name: String,
    },
    /// The name is reserved.
    #[error("its name is `{name}`, which is reserved")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// A class of the plugin is in a package of the server.
    #[error("its `{field}` is in the package `{package}`, which belongs to the server")]
    ServerPackage {
        /// The field with the class.
        field: &'static str,
        /// The package.
        package: String,
    },
    /// A field is no list.
    #[error("its `{field}` is not a list")]
    NotAList {
        /// The field.
        field: &'static str,
    },
    /// A list has an entry without a value.
    #[error("its `{field}` has an empty entry")]
    EmptyEntry {
        /// The field.
        field: &'static str,
    },
    /// A field is no mapping.
    #[error("its `{field}` does not consist of fields such as `name: value`")]
    NotAMap {
        /// The field.
        field: &'static str,
    },
    /// `load` has an unknown value.
    #[error("its `load` is neither STARTUP nor POSTWORLD")]
    Load,
}

/// The facts in a `plugin.yml`.
pub(crate) fn plugin_yml(entry: &'static str, yml: &Value) -> Result<PluginFacts, DescriptorRule> {
    let name = valid_name(entry, yml)?;
    let provides = name_list(yml, "provides")?;
    let version = required(entry, yml, "version")?;
    let main = required(entry, yml, "main")?;
    outside_server_packages("main", &main, &SERVER_PACKAGES)?;
    check_commands(yml)?;
    let depend = name_list(yml, "depend")?;
    let soft_depend = name_list(yml, "softdepend")?;
    let load_before = name_list(yml, "loadbefore")?;
    // `toUpperCase().replaceAll("\\W", "")`, and only a text has these methods.
    if let Some(load) = yml.get("load") {
        let Value::Text(load) = load else { return Err(DescriptorRule::Load) };
        check_load(&load.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', ""))?;
    }
    for people in ["authors", "contributors"] {
        list(yml, people)?;
    }
    if yml.get("permissions").is_some_and(|permissions| !matches!(permissions, Value::Map(_))) {
        return Err(DescriptorRule::NotAMap { field: "permissions" });
    }
    Ok(PluginFacts {
        name,
        version,
        main,
        api_version: yml.get("api-version").map(|version| cut(&version.java_text(), MAX_API_VERSION_LENGTH)),
        paper_plugin: false,
        depend: sorted(depend),
        soft_depend: sorted(soft_depend),
        load_before: sorted(load_before),
        provides: sorted(provides),
        libraries: sorted(list(yml, "libraries")?),
        // Folia: `foliaSupported.equalsIgnoreCase("true")` on the value as text.
        folia: yml.get("folia-supported").is_some_and(|value| value.java_text().eq_ignore_ascii_case("true")),
        java: None,
    })
}

/// The facts in a `paper-plugin.yml`.
pub(crate) fn paper_plugin_yml(entry: &'static str, yml: &Value) -> Result<PluginFacts, DescriptorRule> {
    let name = valid_name(entry, yml)?;
    let main = required(entry, yml, "main")?;
    for field in ["main", "bootstrapper", "loader"] {
        if let Some(class) = yml.get(field) {
            outside_server_packages(field, &class.java_text(), &SERVER_PACKAGES_OF_PAPER)?;
        }
    }
    let version = required(entry, yml, "version")?;
    let api_version = required(entry, yml, "api-version")?;
    if let Some(load) = yml.get("load") {
        check_load(&load.java_text().replace(['_', '-'], ""))?;
    }
    let dependencies = NamedPlugins::of(yml);
    let provides = match yml.get("provides") {
        Some(Value::List(items)) => items.iter().filter(|item| **item != Value::Null).map(Value::java_text).collect(),
        // Configurate accepts a scalar for a list.
        Some(Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_)) => {
            yml.get("provides").map(Value::java_text).into_iter().collect()
        }
        Some(Value::Map(_) | Value::Null) | None => Vec::new(),
    };
    Ok(PluginFacts {
        name,
        version,
        main,
        api_version: Some(cut(&api_version, MAX_API_VERSION_LENGTH)),
        paper_plugin: true,
        depend: dependencies.required.into_iter().collect(),
        soft_depend: dependencies.optional.into_iter().collect(),
        load_before: dependencies.load_after_it.into_iter().collect(),
        provides: sorted(provides),
        // A Paper plugin names its libraries in code.
        libraries: Vec::new(),
        folia: yml.get("folia-supported").is_some_and(is_true),
        java: None,
    })
}

/// The plugins that a `paper-plugin.yml` names.
#[derive(Default)]
struct NamedPlugins {
    required: BTreeSet<String>,
    optional: BTreeSet<String>,
    load_after_it: BTreeSet<String>,
}

impl NamedPlugins {
    fn of(yml: &Value) -> Self {
        let mut named = Self::default();
        if let Some(sections @ Value::Map(_)) = yml.get("dependencies") {
            for section in ["bootstrap", "server"] {
                let Some(Value::Map(entries)) = sections.get(section) else { continue };
                for (name, entry) in entries {
                    let load = entry.get("load").map(Value::java_text).unwrap_or_default();
                    // `load: AFTER` means that the named plugin loads after this one.
                    let is_after = load.eq_ignore_ascii_case("AFTER");
                    named.add(name.java_text(), entry.get("required").is_none_or(is_true), is_after);
                }
            }
        } else {
            named.add_old_form(yml);
        }
        named.optional.retain(|name| !named.required.contains(name));
        named
    }

    /// The lists of Paper 1.19.3 to 1.20, which later versions translate (`LegacyPaperMeta`). There, only `required:
    /// true` makes a dependency required.
    fn add_old_form(&mut self, yml: &Value) {
        for (field, is_after) in [("load-before", true), ("load-after", false), ("dependencies", false)] {
            let Some(Value::List(items)) = yml.get(field) else { continue };
            for item in items {
                let is_required = field == "dependencies" && item.get("required").is_some_and(is_true);
                if let Some(name) = item.get("name") {
                    self.add(name.java_text(), is_required, is_after);
                }
            }
        }
    }

    fn add(&mut self, name: String, is_required: bool, is_after: bool) {
        if is_after {
            self.load_after_it.insert(name.clone());
        }
        let names = if is_required { &mut self.required } else { &mut self.optional };
        names.insert(name);
    }
}

/// A boolean by the rules of Configurate, with which Paper reads `paper-plugin.yml`.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::Integer(number) => *number != 0,
        Value::Float(_) => true,
        Value::Text(text) => ["true", "t", "yes", "y", "1"].iter().any(|word| text.eq_ignore_ascii_case(word)),
        Value::Null | Value::List(_) | Value::Map(_) => false,
    }
}

fn required(entry: &'static str, yml: &Value, field: &'static str) -> Result<String, DescriptorRule> {
    yml.get(field).map(Value::java_text).ok_or(DescriptorRule::Missing { entry, field })
}

/// The name. `PluginDescriptionFile` allows spaces, and `SpigotPluginProviderFactory` refuses them.
fn valid_name(entry: &'static str, yml: &Value) -> Result<String, DescriptorRule> {
    if !matches!(yml, Value::Map(_)) {
        return Err(DescriptorRule::NoFields { entry });
    }
    let name = required(entry, yml, "name")?;
    let is_valid = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    if !is_valid {
        return Err(DescriptorRule::Name { name: cut(&name, MAX_QUOTE_LENGTH).escape_debug().to_string() });
    }
    if RESERVED_NAMES.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err(DescriptorRule::ReservedName { name });
    }
    Ok(name)
}

fn outside_server_packages(field: &'static str, class: &str, packages: &[&str]) -> Result<(), DescriptorRule> {
    match packages.iter().find(|package| class.starts_with(**package)) {
        Some(package) => {
            Err(DescriptorRule::ServerPackage { field, package: package.trim_end_matches('.').to_owned() })
        }
        None => Ok(()),
    }
}

fn check_load(word: &str) -> Result<(), DescriptorRule> {
    let is_known = ["STARTUP", "POSTWORLD"].iter().any(|known| word.eq_ignore_ascii_case(known));
    if is_known { Ok(()) } else { Err(DescriptorRule::Load) }
}

/// `commands` maps each name to nothing or to fields.
fn check_commands(yml: &Value) -> Result<(), DescriptorRule> {
    let is_valid = match yml.get("commands") {
        None => true,
        Some(Value::Map(commands)) => {
            commands.iter().all(|(_, command)| matches!(command, Value::Map(_) | Value::Null))
        }
        Some(Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) | Value::List(_)) => {
            false
        }
    };
    if is_valid { Ok(()) } else { Err(DescriptorRule::NotAMap { field: "commands" }) }
}

/// The entries of a list, as text.
fn list(yml: &Value, field: &'static str) -> Result<Vec<String>, DescriptorRule> {
    match yml.get(field) {
        None => Ok(Vec::new()),
        Some(Value::List(items)) if items.contains(&Value::Null) => Err(DescriptorRule::EmptyEntry { field }),
        Some(Value::List(items)) => Ok(items.iter().map(Value::java_text).collect()),
        Some(Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) | Value::Map(_)) => {
            Err(DescriptorRule::NotAList { field })
        }
    }
}

/// A list of plugin names (`PluginDescriptionFile.makePluginNameList`).
fn name_list(yml: &Value, field: &'static str) -> Result<Vec<String>, DescriptorRule> {
    Ok(list(yml, field)?.into_iter().map(|name| name.replace(' ', "_")).collect())
}

fn sorted(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The start of a text of unknown length.
fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}
