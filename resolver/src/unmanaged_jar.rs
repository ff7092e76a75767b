//! Pure. JARs that people put on a server themselves: packages with one release each, of which nobody publishes a list.

use serde::{Deserialize, Serialize};

use crate::name_conflict::{JarNameConflict, clashes_of_own, folded};
use crate::request::Request;
use crate::version::{Minecraft, glob};

/// A JAR in `plugins/` that is not ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnmanagedJar {
    /// Its name in `plugins/`.
    pub file: String,
    /// 64 hex digits; None: an agent before this field has seen it, and nothing can be said about its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// 128 hex digits, for Modrinth, which knows no sha256; None: as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha512: Option<String>,
    /// What its description calls it; None: it is no plugin that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Further names that it satisfies the `depend` of others with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Names without which it does not load, by its description.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depend: Vec<String>,
    /// The least Minecraft that loads it, by its description; None: that states none, or nobody has read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Minecraft>,
    /// The least Java that loads it, by its main class; None: nobody has read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// Minecraft versions, or globs such as `1.21.x`, for which the owner of the server has checked exactly these bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
}

/// What JARs of people's own do to a new Minecraft version (`spec.unmanagedPlugins`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum UnmanagedPlugins {
    /// It waits until somebody says that they run there.
    #[default]
    Hold,
    /// It comes, and the answer says so.
    Warn,
    /// As if they were not there.
    Ignore,
}

impl UnmanagedPlugins {
    /// Whether this is the usual one.
    pub fn is_hold(&self) -> bool {
        *self == Self::Hold
    }
}

impl UnmanagedJar {
    /// Whether other plugins find it under this name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.names().any(|own| folded(own) == folded(name))
    }

    /// The names under which other plugins find it, its own first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.name.iter().chain(&self.provides).map(String::as_str)
    }

    /// Whether somebody has checked it for this Minecraft.
    pub(crate) fn is_trusted(&self, minecraft: &Minecraft) -> bool {
        self.trusted.iter().any(|pattern| glob::matches(pattern, minecraft))
    }
}

/// Names that a file of people's own and another one of `plugins/` would both declare or provide; the files of `managed` among
/// the others.
pub(crate) fn shared_names<'a>(request: &'a Request, managed: &[(&'a str, Vec<&'a str>)]) -> Vec<JarNameConflict> {
    let own = request.unmanaged.iter().filter_map(|jar| {
        jar.name.as_ref()?;
        Some((jar.file.as_str(), jar.names().collect()))
    });
    clashes_of_own(managed, &own.collect::<Vec<_>>())
}
