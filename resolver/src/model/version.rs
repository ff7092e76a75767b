//! Pure. Models versions: Minecraft's own numbers, and the strings that plugin authors write.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub mod glob;
pub mod hotfix;
pub mod lenient;
pub mod range;

/// A Minecraft version. It is ordered by its meaning and printed as it was written.
///
/// `1.21.11 < 26.1 < 26.1.1`, snapshot < pre-release < release candidate < release, and `26.1` equals `26.1.0`. Weekly
/// snapshots (`24w05b`) and names without a scheme (`3D Shareware v1.34`) sort below every numbered version. The order
/// among them is total but meaningless, and none of them ever equals a release.
#[derive(Debug, Clone)]
pub struct Minecraft {
    /// Shared: a catalog holds tens of thousands of these, most of them copies of a few lists.
    written: Arc<str>,
    key: Key,
}

/// The sort key. The order of the variants is the order of the versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    /// Follows no scheme, so its text identifies it.
    Other,
    /// `24w05b`
    Weekly { year: u16, week: u16, letter: u8 },
    /// `1.21.9-rc1`, `26.1-snapshot-3`, `1.21.10`, and of Velocity `3.5.0-SNAPSHOT`
    Numbered { parts: [u16; 3], stage: ReleaseStage, count: u16 },
}

/// The stage of a numbered version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum ReleaseStage {
    Snapshot,
    Pre,
    Candidate,
    Release,
}

/// Text that cannot be a Minecraft version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Minecraft version: write it as in `1.21.10` or `26.1`")]
pub struct NotAMinecraftVersion(String);

/// Limit of characters: real names are at most half as long, and versions are used in names and labels.
const MAX_LENGTH: usize = 48;

impl Minecraft {
    /// Whether it is a release: not a snapshot, pre-release or release candidate.
    pub fn is_release(&self) -> bool {
        matches!(self.key, Key::Numbered { stage: ReleaseStage::Release, .. })
    }

    /// The version as written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The three numbers, if it has numbers.
    pub fn parts(&self) -> Option<[u16; 3]> {
        match self.key {
            Key::Numbered { parts, .. } => Some(parts),
            Key::Weekly { .. } | Key::Other => None,
        }
    }

    /// The Java version that Mojang uses for it, for versions where Fill states none.
    ///
    /// Source: `javaVersion` of Mojang's version manifest, as recorded by nix-minecraft (`vanilla-versions.json`).
    pub fn vanilla_java(&self) -> u32 {
        match self.parts() {
            Some(parts) if parts >= [26, 1, 0] => 25,
            Some(parts) if parts >= [1, 20, 5] => 21,
            Some(parts) if parts >= [1, 18, 0] => 17,
            Some(parts) if parts >= [1, 17, 0] => 16,
            Some(_) => 8,
            // Users choose snapshots by name, and the newest Java starts most of them.
            None => 25,
        }
    }
}

impl FromStr for Minecraft {
    type Err = NotAMinecraftVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = text.is_empty()
            || text.len() > MAX_LENGTH
            || text.trim() != text
            || !text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
        if bad {
            return Err(NotAMinecraftVersion(text.chars().take(MAX_LENGTH).collect()));
        }
        Ok(Self { written: text.into(), key: weekly(text).or_else(|| numbered(text)).unwrap_or(Key::Other) })
    }
}

/// `24w05b`
fn weekly(text: &str) -> Option<Key> {
    let bytes = text.as_bytes();
    if bytes.len() != 6 || bytes[2] != b'w' || !bytes[5].is_ascii_lowercase() {
        return None;
    }
    Some(Key::Weekly { year: number(&text[..2])?, week: number(&text[3..5])?, letter: bytes[5] })
}

/// `1.21`, `1.21.9-rc1`, `26.2-rc-2`, `1.21.9 Pre-Release 2`
fn numbered(text: &str) -> Option<Key> {
    let (base, rest) = match text.find(['-', ' ']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    let mut parts = [0; 3];
    let mut count = 0;
    for part in base.split('.') {
        *parts.get_mut(count)? = number(part)?;
        count += 1;
    }
    if count < 2 {
        return None;
    }
    let (stage, count) = if rest.is_empty() {
        if base.len() != text.len() {
            return None;
        }
        (ReleaseStage::Release, 0)
    } else {
        // Velocity does not number its snapshots.
        let word_ends = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let stage = match rest[..word_ends].trim_end_matches(['-', ' ', '.']).to_ascii_lowercase().as_str() {
            "snapshot" => ReleaseStage::Snapshot,
            "pre" | "pre-release" => ReleaseStage::Pre,
            "rc" => ReleaseStage::Candidate,
            _ => return None,
        };
        let counted = &rest[word_ends..];
        if counted.is_empty() && stage != ReleaseStage::Snapshot {
            return None;
        }
        (stage, if counted.is_empty() { 0 } else { number(counted)? })
    };
    Some(Key::Numbered { parts, stage, count })
}

fn number(text: &str) -> Option<u16> {
    // `parse` alone would accept a sign.
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) { None } else { text.parse().ok() }
}

impl fmt::Display for Minecraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.written)
    }
}

impl Ord for Minecraft {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then_with(|| match self.key {
            Key::Other => self.written.cmp(&other.written),
            Key::Weekly { .. } | Key::Numbered { .. } => Ordering::Equal,
        })
    }
}

impl PartialOrd for Minecraft {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Minecraft {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && (self.key != Key::Other || self.written == other.written)
    }
}

impl Eq for Minecraft {}

impl Hash for Minecraft {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
        if self.key == Key::Other {
            self.written.hash(state);
        }
    }
}

impl Serialize for Minecraft {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for Minecraft {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Parses the text without copying it: a catalog holds tens of thousands of these.
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Minecraft;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a Minecraft version such as `1.21.10`, in quotes")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Minecraft, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests;
