//! Pure. Shared form of a project of Hangar or Modrinth: its name and its sorted list of releases.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::disk_format;
use super::hangar::PageScan;
use super::rows::UnreadableRow;
use resolver::model::catalog::{Project, ProjectKey, Release, Source};
use resolver::model::version::lenient;

/// The project that a slug or id means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Name {
    /// Stable id. The list of releases is requested with it.
    pub(super) id: String,
    pub(super) slug: String,
    /// Display name.
    pub(super) title: String,
}

impl Name {
    /// The project of this name with these releases, sorted.
    pub(super) fn project(&self, source: Source, mut releases: Vec<Release>, now: Timestamp) -> Project {
        sort_releases(&mut releases);
        let key = ProjectKey { source, project: self.slug.clone() };
        Project { key, id: self.id.clone(), name: self.title.clone(), read_at: now, releases }
    }
}

/// A project's releases, with the state that a cheap update needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProjectListing {
    #[serde(with = "disk_format")]
    pub(super) project: Project,
    /// For Hangar.
    pub(super) walk: Option<PageScan>,
    /// Entries of the list that are left out.
    pub(super) unreadable: Vec<UnreadableRow>,
}

/// Sorts newest first: by publication, then by version, then by id, which makes the order total. Rows with the same id
/// are one release, and the newest row wins, because a lock names releases by their ids.
fn sort_releases(releases: &mut Vec<Release>) {
    releases.sort_by(|a, b| {
        b.published
            .cmp(&a.published)
            .then_with(|| lenient::compare(&b.version, &a.version))
            .then_with(|| b.id.cmp(&a.id))
    });
    let mut ids = BTreeSet::new();
    releases.retain(|release| ids.insert(release.id.clone()));
}

/// Whether the text can be a slug or an id. Both sources allow less. The rejected characters have a meaning in URLs.
pub(super) fn is_valid_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!@$()`.+,_\"'-".contains(&b))
        && !text.bytes().all(|b| b == b'.')
}

/// Formats `<algorithm>:<hex>`. `None` unless the text is exactly this many bytes in hex, because such a hash cannot be
/// checked.
pub(super) fn format_hash(algorithm: &str, bytes: usize, text: Option<&str>) -> Option<String> {
    let text = text?.trim().to_ascii_lowercase();
    (text.len() == bytes * 2 && text.bytes().all(|b| b.is_ascii_hexdigit())).then(|| format!("{algorithm}:{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_name_that_could_escape_url_path_is_refused() {
        for good in ["viaversion", "P1OZGk5p", "31", "essentials.x", "a+b", "it's"] {
            assert!(is_valid_name(good), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a?b", "a#b", "a%2fb", "a b", "ä", "\n"] {
            assert!(!is_valid_name(bad), "{bad}");
        }
    }

    #[test]
    fn unverifiable_hash_is_ignored() {
        let sha = "AB".repeat(32);
        assert_eq!(format_hash("sha256", 32, Some(&sha)), Some(format!("sha256:{}", "ab".repeat(32))));
        assert_eq!(format_hash("sha256", 32, Some("d3bd99c2")), None);
        assert_eq!(format_hash("sha256", 32, Some(&"xy".repeat(32))), None);
        assert_eq!(format_hash("sha256", 32, None), None);
    }
}
