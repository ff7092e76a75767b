//! Pure. Implements sets of version indexes for pubgrub.
//!
//! This type replaces pubgrub's `Ranges`. Those are dense, so a set of rejected neighbours keeps hundreds of segments.
//! That takes 16 to 60 times as long (measured, see ADR 7). Equality is set equality, because the form is canonical.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use pubgrub::VersionSet;

/// A version: its index, or a whole class of versions that share one reason for being unusable.
///
/// pubgrub takes a reason (`Dependencies::Unavailable`) for one version at a time. `Bulk` makes one version represent
/// all of its class: 587 beta releases become one fact instead of 587. It is sound because the class does not depend on
/// any range, and because pubgrub 0.4.0 builds that fact with `singleton` (a test guards it). A `Bulk` must never be
/// answered with `Available`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Index {
    /// One version. 0 is "not installed", and real versions start at 1.
    One(u16),
    /// All members of a class of unusable versions, as bits.
    Bulk(Arc<[u64]>),
}

impl Index {
    /// The version with this index.
    pub(crate) fn one(index: usize) -> Self {
        Self::One(u16::try_from(index).expect("a plugin has at most 60,000 releases"))
    }
}

/// A set of indexes, possibly the complement of a finite one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum IndexSet {
    /// At most one word differs from `fill`. Canonical form: `at` is 0 if none does.
    Small {
        /// The position of that word.
        at: u16,
        /// Whether the set contains everything outside that word.
        fill: bool,
        /// Its bits.
        word: u64,
    },
    /// Two or more words differ from `fill`. Trailing words that do not differ are cut off.
    Big {
        /// Whether the set contains everything beyond the words.
        fill: bool,
        /// The words.
        words: Arc<[u64]>,
    },
}

thread_local! {
    /// Words that sets have taken on this thread: the value of [`allocated_words`].
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// The number of 64-bit words of all sets made on this thread so far. Sets that need no allocation count as 0.
///
/// Only differences are meaningful. The counter measures the memory of a search, and it is updated where only a set is
/// available. pubgrub calls its cancellation hook once per iteration, and one iteration can create thousands of facts.
pub(crate) fn allocated_words() -> u64 {
    ALLOCATED.get()
}

fn big(fill: bool, words: Arc<[u64]>) -> IndexSet {
    ALLOCATED.set(ALLOCATED.get().wrapping_add(words.len() as u64));
    IndexSet::Big { fill, words }
}

const fn filled(fill: bool) -> u64 {
    if fill { u64::MAX } else { 0 }
}

impl IndexSet {
    /// The set with exactly these bits, and everything beyond them if `fill`.
    pub(crate) fn from_words(words: &[u64], fill: bool) -> Self {
        let background = filled(fill);
        let length = words.iter().rposition(|&word| word != background).map_or(0, |last| last + 1);
        let words = &words[..length];
        let mut different = words.iter().enumerate().filter(|&(_, &word)| word != background);
        match (different.next(), different.next()) {
            (None, _) => Self::Small { at: 0, fill, word: background },
            (Some((at, &word)), None) => {
                Self::Small { at: u16::try_from(at).expect("65,536 indexes fit into 1,024 words"), fill, word }
            }
            (Some(_), Some(_)) => big(fill, words.into()),
        }
    }

    /// The set of these indexes.
    pub(crate) fn from_indexes(indexes: impl IntoIterator<Item = usize>) -> Self {
        let mut words = Vec::new();
        for index in indexes {
            let at = index / 64;
            if words.len() <= at {
                words.resize(at + 1, 0);
            }
            words[at] |= 1 << (index % 64);
        }
        Self::from_words(&words, false)
    }

    /// Only "not installed".
    pub(crate) fn absent() -> Self {
        Self::Small { at: 0, fill: false, word: 1 }
    }

    /// Everything but "not installed".
    pub(crate) fn present() -> Self {
        Self::Small { at: 0, fill: true, word: !1 }
    }

    fn fill(&self) -> bool {
        match self {
            Self::Small { fill, .. } | Self::Big { fill, .. } => *fill,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Small { at, .. } => usize::from(*at) + 1,
            Self::Big { words, .. } => words.len(),
        }
    }

    fn word(&self, index: usize) -> u64 {
        match self {
            Self::Small { at, fill, word } => {
                if usize::from(*at) == index {
                    *word
                } else {
                    filled(*fill)
                }
            }
            Self::Big { fill, words } => words.get(index).copied().unwrap_or(filled(*fill)),
        }
    }

    /// Whether the set contains an index.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.word(index / 64) >> (index % 64) & 1 == 1
    }

    /// The highest member that is at most `limit`.
    pub(crate) fn highest(&self, limit: usize) -> Option<usize> {
        let mut mask = u64::MAX >> (63 - limit % 64);
        for at in (0..=limit / 64).rev() {
            let word = self.word(at) & mask;
            if word != 0 {
                return Some(at * 64 + 63 - word.leading_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The members from `from` to `to`, both included, ascending.
    pub(crate) fn members(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
        (from..=to).filter(|&index| self.has(index))
    }

    fn combine(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let fill = f(filled(self.fill()), filled(other.fill())) == u64::MAX;
        if let (Self::Small { at: a, word: x, .. }, Self::Small { at: b, word: y, .. }) = (self, other)
            && a == b
        {
            let word = f(*x, *y);
            return Self::Small { at: if word == filled(fill) { 0 } else { *a }, fill, word };
        }
        let length = self.len().max(other.len());
        let words: Vec<u64> = (0..length).map(|at| f(self.word(at), other.word(at))).collect();
        Self::from_words(&words, fill)
    }

    /// Whether `f` of the two sets is empty everywhere.
    fn is_combination_empty(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> bool {
        f(filled(self.fill()), filled(other.fill())) == 0
            && (0..self.len().max(other.len())).all(|at| f(self.word(at), other.word(at)) == 0)
    }
}

impl VersionSet for IndexSet {
    type V = Index;

    fn empty() -> Self {
        Self::Small { at: 0, fill: false, word: 0 }
    }

    fn singleton(version: Index) -> Self {
        match version {
            Index::One(index) => Self::Small { at: index / 64, fill: false, word: 1 << (index % 64) },
            Index::Bulk(words) => Self::from_words(&words, false),
        }
    }

    fn complement(&self) -> Self {
        match self {
            Self::Small { at, fill, word } => Self::Small { at: *at, fill: !fill, word: !word },
            Self::Big { fill, words } => big(!fill, words.iter().map(|word| !word).collect()),
        }
    }

    fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & b)
    }

    /// For a class: whether the set contains any member. pubgrub asserts that a chosen version lies in the range it was
    /// chosen from.
    fn contains(&self, version: &Index) -> bool {
        match version {
            Index::One(index) => self.has(usize::from(*index)),
            Index::Bulk(words) => words.iter().enumerate().any(|(at, word)| self.word(at) & word != 0),
        }
    }

    fn full() -> Self {
        Self::Small { at: 0, fill: true, word: u64::MAX }
    }

    fn union(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a | b)
    }

    fn is_disjoint(&self, other: &Self) -> bool {
        self.is_combination_empty(other, |a, b| a & b)
    }

    fn subset_of(&self, other: &Self) -> bool {
        self.is_combination_empty(other, |a, b| a & !b)
    }
}

impl fmt::Debug for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<usize> = self.members(0, self.len() * 64 - 1).take(12).collect();
        write!(f, "{shown:?}{}", if self.fill() { "…" } else { "" })
    }
}

impl fmt::Display for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(index) => write!(f, "{index}"),
            Self::Bulk(_) => f.write_str("class"),
        }
    }
}

#[cfg(test)]
mod tests;
