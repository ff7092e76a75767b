//! Pure. Models unmanaged JARs: files that users put on a server, each with a single release and without a published
//! list.

use serde::{Deserialize, Serialize};

use super::api_version::ApiVersion;
use super::name_conflict::{JarNameConflict, find_unmanaged_conflicts, folded};
use super::request::Request;
use super::version::{Minecraft, glob};

/// A JAR in `plugins/` that Nightshift does not manage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnmanagedJar {
    /// Its name in `plugins/`.
    pub file: String,
    /// 64 hex digits. `None` if an agent without this field reported the JAR. Then its bytes are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// 128 hex digits, for Modrinth, which has no sha256. `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha512: Option<String>,
    /// The plugin name in its descriptor. `None` if it is not a readable plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Further names with which it satisfies the `depend` of other plugins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Names without which it does not load, according to its descriptor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depend: Vec<String>,
    /// The `api-version` in its descriptor. `None` if the descriptor states none, or the JAR was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<ApiVersion>,
    /// The minimum Java version that loads it, according to its main class. `None` if the JAR was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// Minecraft versions, or globs such as `1.21.x`, for which the user has checked exactly these bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
}

/// The effect of unmanaged JARs on the update to a new Minecraft version (`spec.unmanagedPlugins`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum UnmanagedPlugins {
    /// The update waits until a user declares that they run on it.
    #[default]
    Hold,
    /// The update is applied, with a warning.
    Warn,
    /// Unmanaged JARs have no effect.
    Ignore,
}

impl UnmanagedPlugins {
    /// Whether this is the default.
    pub fn is_hold(&self) -> bool {
        *self == Self::Hold
    }
}

impl UnmanagedJar {
    /// Whether other plugins find it under this name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.names().any(|declared| folded(declared) == folded(name))
    }

    /// The names under which other plugins find it, its own name first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.name.iter().chain(&self.provides).map(String::as_str)
    }

    /// Whether a user has checked it for this Minecraft version.
    pub(crate) fn is_trusted(&self, minecraft: &Minecraft) -> bool {
        self.trusted.iter().any(|pattern| glob::matches(pattern, minecraft))
    }
}

/// Names that an unmanaged file and another file in `plugins/` would both declare or provide. The files of `managed`
/// are among the others.
pub(crate) fn unmanaged_conflicts<'a>(
    request: &'a Request,
    managed: &[(&'a str, Vec<&'a str>)],
) -> Vec<JarNameConflict> {
    let unmanaged = request.unmanaged.iter().filter_map(|jar| {
        jar.name.as_ref()?;
        Some((jar.file.as_str(), jar.names().collect()))
    });
    find_unmanaged_conflicts(managed, &unmanaged.collect::<Vec<_>>())
}
