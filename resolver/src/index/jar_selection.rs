//! Pure. Which JARs of a release come to the server: the main one, or those that `spec.source.jars` names; and what is known of
//! them there.

use crate::catalog::{Declared, Jar, Release, Source};
use crate::jar_pattern::{matches, stem};
use crate::request::PluginRequest;
use crate::software::Software;
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// The most names of files that a reason carries.
const MOST_NAMES: usize = 8;

/// What is asked for of each release of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Jars<'a> {
    /// What loads them.
    software: Software,
    /// Whether somebody names none, and means the main one.
    main: bool,
    /// What the others name, in order, each once.
    patterns: Vec<&'a str>,
}

/// Whether a server's software loads a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loads {
    Yes,
    No,
    /// The source has no word for this software, and a JAR that comes was not read.
    Unsaid,
}

impl<'a> Jars<'a> {
    /// As a plugin comes that nobody asks for.
    pub(super) fn main_for(software: Software) -> Self {
        Self { software, main: true, patterns: Vec::new() }
    }

    /// What these Plugins of one project ask for together.
    pub(super) fn of(software: Software, wishes: &[&'a PluginRequest]) -> Self {
        let mut patterns: Vec<&str> = wishes.iter().flat_map(|wish| &wish.jars).map(String::as_str).collect();
        patterns.sort_unstable();
        patterns.dedup();
        Self { software, main: wishes.iter().any(|wish| wish.jars.is_empty()), patterns }
    }

    /// What loads them.
    pub(super) fn software(&self) -> Software {
        self.software
    }

    /// Whether what comes of a release is loaded. Folia goes by the JARs: what they say counts more than a page.
    pub(super) fn loads(&self, release: &Release, source: Source) -> Loads {
        let named = self.software.is_named_by(release);
        if self.software != Software::Folia || !self.software.is_kin_of(release) {
            return if named { Loads::Yes } else { Loads::No };
        }
        let says: Vec<Option<bool>> = self.pick(release).unwrap_or_default().iter().map(|jar| jar.folia).collect();
        if says.contains(&Some(false)) {
            Loads::No
        } else if named || !says.is_empty() && !says.contains(&None) {
            Loads::Yes
        } else if source == Source::Hangar {
            Loads::Unsaid
        } else {
            Loads::No
        }
    }

    /// Whether nobody knows that a release is loaded.
    pub(crate) fn is_unsaid(&self, release: &Release, source: Source) -> bool {
        self.loads(release, source) == Loads::Unsaid
    }

    /// The JARs that come of a release, in its own order, each once.
    ///
    /// # Errors
    /// It has no file, or a pattern does not mean exactly one of them.
    pub(crate) fn pick<'r>(&self, release: &'r Release) -> Result<Vec<Jar<'r>>, Unusable> {
        if release.file.is_none() {
            return Err(Unusable::NoFile);
        }
        if self.patterns.is_empty() {
            return Ok(release.jars().take(1).collect());
        }
        let jars: Vec<Jar<'r>> = release.jars().collect();
        let mut comes = vec![false; jars.len()];
        comes[0] = self.main;
        for pattern in &self.patterns {
            let meant: Vec<usize> = (0..jars.len()).filter(|&at| matches(pattern, &jars[at].file.name)).collect();
            match *meant.as_slice() {
                [one] => comes[one] = true,
                [] => return Err(Unusable::NoSuchJar { jar: (*pattern).to_owned(), has: names(jars.iter()) }),
                [..] => {
                    let several = names(meant.iter().map(|&at| &jars[at]));
                    return Err(Unusable::SeveralJars { jar: (*pattern).to_owned(), several });
                }
            }
        }
        Ok(jars.into_iter().zip(comes).filter(|(_, comes)| *comes).map(|(jar, _)| jar).collect())
    }

    /// What each JAR declares that comes of a release, where somebody has read it; None where none can come. What is inside for
    /// Bukkit is nothing to a proxy.
    pub(super) fn declared<'r>(&self, release: &'r Release) -> Option<Vec<Option<&'r Declared>>> {
        let jars = self.pick(release).ok().filter(|_| self.software.is_minecraft())?;
        Some(jars.into_iter().map(|jar| jar.declared).collect())
    }

    /// The least Java that loads all that comes of a release, as far as it is known. A proxy starts another class of it.
    pub(crate) fn java(&self, release: &Release) -> Option<u32> {
        if !self.software.is_minecraft() {
            return None;
        }
        if self.patterns.is_empty() {
            return release.java;
        }
        self.pick(release).ok()?.iter().filter_map(|jar| jar.java).max()
    }

    /// The least Minecraft that loads all that comes of a release, as far as it is known. A proxy does not ask.
    pub(crate) fn api_version<'r>(&self, release: &'r Release) -> Option<&'r Minecraft> {
        if !self.software.is_minecraft() {
            return None;
        }
        if self.patterns.is_empty() {
            return release.api_version.as_ref();
        }
        self.pick(release).ok()?.iter().filter_map(|jar| jar.api_version).max()
    }
}

/// Without versions, so that releases with the same files have the same reason.
fn names<'x, 'r: 'x>(jars: impl Iterator<Item = &'x Jar<'r>>) -> Vec<String> {
    let mut names: Vec<String> = jars.map(|jar| stem(&jar.file.name)).collect();
    names.sort();
    names.dedup();
    names.truncate(MOST_NAMES);
    names
}
