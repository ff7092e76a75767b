//! Edge (reads). Models and computes hashes, with the names of their algorithms.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

/// The algorithms that sources publish: Fill and Hangar sha256, Modrinth sha512, some only sha1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// 40 hex digits. Only used for some old pages without a stronger hash.
    Sha1,
    /// 64 hex digits.
    Sha256,
    /// 128 hex digits.
    Sha512,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sha1, Self::Sha256, Self::Sha512];

    /// The name before the colon, and of the directory with such files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// The hash of all bytes of a file. Blocks.
    pub fn hash(self, mut file: impl Read) -> io::Result<Hash> {
        let mut hasher = Hasher::new(self);
        let mut buffer = vec![0; 128 << 10];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hasher.finish()),
                count => hasher.update(&buffer[..count]),
            }
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// A hash with a validated format: its parts can be used in file names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash {
    algorithm: Algorithm,
    hex: String,
}

impl Hash {
    /// Parses `sha256:<64 hex digits>`. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (algorithm, hex) = text.split_once(':')?;
        Self::from_parts(algorithm, hex)
    }

    /// From the parts of a URL: `sha256`, `<64 hex digits>`.
    pub fn from_parts(algorithm: &str, hex: &str) -> Option<Self> {
        let algorithm = Algorithm::ALL.into_iter().find(|known| known.as_str() == algorithm)?;
        let right = hex.len() == algorithm.digits() && hex.bytes().all(|b| b.is_ascii_hexdigit());
        right.then(|| Self { algorithm, hex: hex.to_ascii_lowercase() })
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digits, in lower case.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Whether this file has this hash. Blocks.
    pub fn matches_file(&self, path: &Path) -> io::Result<bool> {
        Ok(self.algorithm.hash(File::open(path)?)? == *self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.as_str(), self.hex)
    }
}

/// Computes a hash incrementally.
#[derive(Debug, Clone)]
pub struct Hasher(HasherState);

#[derive(Debug, Clone)]
enum HasherState {
    Sha1(Sha1),
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

impl Hasher {
    /// A new state without any bytes.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha1 => HasherState::Sha1(Sha1::new()),
            Algorithm::Sha256 => HasherState::Sha256(Sha256::new()),
            Algorithm::Sha512 => HasherState::Sha512(Box::new(Sha512::new())),
        })
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            HasherState::Sha1(hasher) => hasher.update(bytes),
            HasherState::Sha256(hasher) => hasher.update(bytes),
            HasherState::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// The hash of all added bytes.
    pub fn finish(self) -> Hash {
        let (algorithm, hex) = match self.0 {
            HasherState::Sha1(hasher) => (Algorithm::Sha1, hex::encode(hasher.finalize())),
            HasherState::Sha256(hasher) => (Algorithm::Sha256, hex::encode(hasher.finalize())),
            HasherState::Sha512(hasher) => (Algorithm::Sha512, hex::encode(hasher.finalize())),
        };
        Hash { algorithm, hex }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_parses_only_when_complete_with_known_algorithm() {
        let sha256 = "AB".repeat(32);
        let hash = Hash::parse(&format!("sha256:{sha256}")).unwrap();
        assert_eq!(hash.to_string(), format!("sha256:{}", "ab".repeat(32)));
        let traversal = format!("sha256:../../{}", "a".repeat(58));
        for bad in ["", "sha256", "sha256:", "sha256:abcd", "md5:d41d8cd98f00b204e9800998ecf8427e", &sha256, &traversal]
        {
            assert_eq!(Hash::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn hash_algorithms_match_published_vectors() {
        let of = |algorithm, bytes: &[u8]| {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(bytes);
            hasher.finish().hex
        };
        // FIPS 180-4, example "abc".
        assert_eq!(of(Algorithm::Sha1, b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert!(of(Algorithm::Sha256, b"abc").starts_with("ba7816bf8f01cfea"));
        assert!(of(Algorithm::Sha512, b"abc").starts_with("ddaf35a193617aba"));
    }
}
