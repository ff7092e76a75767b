//! Pure. Selects the JARs of a release that are installed: the main JAR, or those that `spec.source.jars` names.
//! Reports the known properties of the selection.

use crate::model::api_version::ApiVersion;
use crate::model::catalog::{Declared, Jar, Release, Source};
use crate::model::jar_pattern::{is_jar, matches, stem, without_version};
use crate::model::request::PluginRequest;
use crate::model::software::Software;
use crate::model::unusable::Unusable;

/// Limit of file names in one reason.
const MAX_NAMES: usize = 8;

/// The JARs requested from each release of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Jars<'a> {
    /// The software that loads them.
    software: Software,
    /// Whether a request names no JAR and therefore means the main one.
    main: bool,
    /// The patterns of the other requests, sorted, without duplicates.
    patterns: Vec<&'a str>,
}

/// Whether a server's software loads a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loads {
    Yes,
    No,
    /// The source has no field for this software, and a selected JAR was not read.
    Unknown,
}

impl<'a> Jars<'a> {
    /// The selection for a plugin that no Plugin object requests.
    pub(super) fn main_for(software: Software) -> Self {
        Self { software, main: true, patterns: Vec::new() }
    }

    /// The combined selection of these requests for one project.
    pub(super) fn from_requests(software: Software, plugin_requests: &[&'a PluginRequest]) -> Self {
        let mut patterns: Vec<&str> =
            plugin_requests.iter().flat_map(|plugin_request| &plugin_request.jars).map(String::as_str).collect();
        patterns.sort_unstable();
        patterns.dedup();
        Self { software, main: plugin_requests.iter().any(|plugin_request| plugin_request.jars.is_empty()), patterns }
    }

    /// The software that loads them.
    pub(super) fn software(&self) -> Software {
        self.software
    }

    /// Whether the software loads the selected JARs of a release. For Folia the JARs decide: their descriptor outranks
    /// the page.
    pub(super) fn loads(&self, release: &Release, source: Source) -> Loads {
        let named = self.software.is_named_by(release);
        if self.software != Software::Folia || !self.software.accepts_kind_of(release) {
            return if named { Loads::Yes } else { Loads::No };
        }
        let folia_flags: Vec<Option<bool>> =
            self.select(release).unwrap_or_default().iter().map(|jar| jar.folia).collect();
        if folia_flags.contains(&Some(false)) {
            Loads::No
        } else if named || !folia_flags.is_empty() && !folia_flags.contains(&None) {
            Loads::Yes
        } else if source == Source::Hangar {
            Loads::Unknown
        } else {
            Loads::No
        }
    }

    /// Whether it is unknown that the software loads a release.
    pub(crate) fn is_loading_unknown(&self, release: &Release, source: Source) -> bool {
        self.loads(release, source) == Loads::Unknown
    }

    /// The selected JARs of a release, in the order of the release, each once.
    ///
    /// # Errors
    /// The release has no JAR, or a pattern does not match exactly one of them.
    pub(crate) fn select<'r>(&self, release: &'r Release) -> Result<Vec<Jar<'r>>, Unusable> {
        let Some(main) = &release.file else { return Err(Unusable::NoFile) };
        if !is_jar(&main.name) {
            return Err(Unusable::NoJar { file: without_version(&main.name) });
        }
        if self.patterns.is_empty() {
            return Ok(release.jars().take(1).collect());
        }
        let jars: Vec<Jar<'r>> = release.jars().collect();
        let mut selected = vec![false; jars.len()];
        selected[0] = self.main;
        for pattern in &self.patterns {
            let meant: Vec<usize> = (0..jars.len()).filter(|&at| matches(pattern, &jars[at].file.name)).collect();
            match *meant.as_slice() {
                [one] => selected[one] = true,
                [] => return Err(Unusable::NoSuchJar { jar: (*pattern).to_owned(), has: names(jars.iter()) }),
                [..] => {
                    let several = names(meant.iter().map(|&at| &jars[at]));
                    return Err(Unusable::SeveralJars { jar: (*pattern).to_owned(), several });
                }
            }
        }
        Ok(jars.into_iter().zip(selected).filter(|(_, selected)| *selected).map(|(jar, _)| jar).collect())
    }

    /// The descriptors of the selected JARs of a release, `None` for a JAR that was not read. Returns `None` if no JAR
    /// can be selected. A proxy ignores descriptors for Bukkit.
    pub(super) fn declared<'r>(&self, release: &'r Release) -> Option<Vec<Option<&'r Declared>>> {
        let jars = self.select(release).ok().filter(|_| self.software.is_minecraft())?;
        Some(jars.into_iter().map(|jar| jar.declared).collect())
    }

    /// The minimum Java version that loads all selected JARs of a release, as far as known. A proxy loads another class
    /// of the JAR.
    pub(crate) fn java(&self, release: &Release) -> Option<u32> {
        if !self.software.is_minecraft() {
            return None;
        }
        if self.patterns.is_empty() {
            return release.java;
        }
        self.select(release).ok()?.iter().filter_map(|jar| jar.java).max()
    }

    /// The `api-version` of each selected JAR of a release, as far as known. A proxy does not check it.
    pub(crate) fn api_versions<'r>(&self, release: &'r Release) -> Vec<&'r ApiVersion> {
        if !self.software.is_minecraft() {
            return Vec::new();
        }
        if self.patterns.is_empty() {
            return release.api_version.iter().collect();
        }
        self.select(release).unwrap_or_default().iter().filter_map(|jar| jar.api_version).collect()
    }

    /// The names of the JARs of a release that are not installed because no request names them, if no request names any
    /// JAR. Without those that Paper refuses.
    pub(crate) fn unnamed(&self, release: &Release) -> Vec<String> {
        if !self.patterns.is_empty() {
            return Vec::new();
        }
        let further: Vec<Jar<'_>> = release.jars().skip(1).filter(|jar| jar.refused.is_none()).collect();
        names(further.iter())
    }

    /// The rule by which every Paper version refuses one of the selected JARs. A proxy ignores descriptors for Bukkit.
    pub(super) fn refused<'r>(&self, jars: &[Jar<'r>]) -> Option<&'r str> {
        jars.iter().filter(|_| self.software.is_minecraft()).find_map(|jar| jar.refused)
    }
}

/// File names without versions, so that releases with the same files have the same reason.
fn names<'x, 'r: 'x>(jars: impl Iterator<Item = &'x Jar<'r>>) -> Vec<String> {
    let mut names: Vec<String> = jars.map(|jar| stem(&jar.file.name)).collect();
    names.sort();
    names.dedup();
    names.truncate(MAX_NAMES);
    names
}
