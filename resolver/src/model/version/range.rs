//! Pure. Parses version ranges such as `>=7.4, <7.5`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::lenient;

mod spelling;

/// A range of versions: comma-separated conditions that all have to hold. Printed as it was written.
///
/// | written | means |
/// |---|---|
/// | `7.4.1`, `=7.4.1` | exactly this version |
/// | `>=7.4`, `>7.4`, `<=7.4`, `<7.5` | in the order of [`lenient::compare`], which is semver's where both are semver |
/// | `7.4.x`, `7.4.*` | every version whose numbers begin so |
/// | `*` | every version |
///
/// `<7.5` excludes `7.5.0-SNAPSHOT`, too: a preview of 7.5 is no 7.4. `<7.5-beta` is taken literally.
#[derive(Debug, Clone)]
pub struct Range {
    written: Box<str>,
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Any,
    Exactly(String),
    Line(String),
    AtLeast(String),
    Above(String),
    AtMost(String),
    Below(String),
}

/// Text that is no range, and the position of the error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a version range: {kind}")]
pub struct NotARange {
    text: String,
    /// Index of the character, from 0.
    at: usize,
    kind: RangeErrorKind,
}

/// The error in a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeErrorKind {
    /// A condition is missing.
    #[error("a condition is missing: write one such as `>=7.4`")]
    NoCondition,
    /// A comparison without a version.
    #[error("a version is missing after `{0}`")]
    NoVersion(&'static str),
    /// `^7.4`, `~7.4`, `!=7.4`, `>>7.4`
    #[error("`{0}` begins neither a comparison nor a version: write `>=`, `>`, `<=`, `<`, `=` or a version")]
    NoComparison(char),
    /// `>=7.4 <7.5`
    #[error("a version ends at the space: write a comma between two conditions")]
    NoComma,
    /// `7.4/2`
    #[error("`{0}` is not part of a version")]
    NoVersionText(char),
    /// `>=7.x`
    #[error("`x` means any number, which cannot be compared: write `7.4.x` alone")]
    WildcardCompared,
    /// `7.4+`
    #[error("a version cannot end with `+`")]
    OpenEnd,
    /// `latest`
    #[error("`{0}` is not a version: `*` means every version")]
    WordForAny(String),
    /// `>=7.5, <7.4`
    #[error("no version meets this and the conditions before it")]
    Empty,
    /// Longer than any real one.
    #[error("it is longer than {MAX_LENGTH} characters")]
    TooLong,
}

/// Limit of characters, because explanations contain ranges.
const MAX_LENGTH: usize = 128;

impl NotARange {
    /// The error.
    pub fn kind(&self) -> &RangeErrorKind {
        &self.kind
    }

    /// The range that is probably meant, as it is written here. `None` if it is not known.
    pub fn accepted_spelling(&self) -> Option<String> {
        spelling::accepted(&self.text)
    }

    /// The text, and below it a `^` at the position. Two lines.
    pub fn with_marker(&self) -> String {
        let text: String = self.text.chars().take(MAX_LENGTH).collect();
        format!("    {text}\n    {:1$}^", "", self.at)
    }
}

impl Range {
    /// Every version.
    pub fn any() -> Self {
        Self { written: "*".into(), terms: vec![Term::Any] }
    }

    /// `version` and everything newer.
    pub(crate) fn at_least(version: &str) -> Self {
        Self { written: format!(">={version}").into(), terms: vec![Term::AtLeast(version.to_owned())] }
    }

    /// `version` alone.
    pub(crate) fn exactly(version: &str) -> Self {
        Self { written: version.into(), terms: vec![Term::Exactly(version.to_owned())] }
    }

    /// Whether the range contains this version.
    pub fn contains(&self, version: &str) -> bool {
        self.terms.iter().all(|term| term.contains(version))
    }

    /// The elements of `sorted` (lowest version first) whose version is in the range. Same result as
    /// [`Self::contains`], without checking each element.
    pub(crate) fn filter_sorted<'s, 'v, T>(
        &self,
        sorted: &'s [T],
        version: impl Fn(&T) -> &'v str,
    ) -> impl Iterator<Item = &'s T> {
        let below = |bound: &str| sorted.partition_point(|item| lenient::compare(version(item), bound).is_lt());
        let up_to = |bound: &str| sorted.partition_point(|item| lenient::compare(version(item), bound).is_le());
        let (mut from, mut to) = (0, sorted.len());
        for term in &self.terms {
            match term {
                Term::Any | Term::Line(_) => {}
                Term::Exactly(bound) => (from, to) = (from.max(below(bound)), to.min(up_to(bound))),
                Term::AtLeast(bound) => from = from.max(below(bound)),
                Term::Above(bound) => from = from.max(up_to(bound)),
                Term::AtMost(bound) => to = to.min(up_to(bound)),
                Term::Below(bound) => to = to.min(below(bound)),
            }
        }
        sorted[from.min(to)..to].iter().filter(move |item| self.terms.iter().all(|term| term.has_within(version(item))))
    }

    /// The range as written.
    pub fn as_str(&self) -> &str {
        &self.written
    }
}

impl Default for Range {
    fn default() -> Self {
        Self::any()
    }
}

impl Term {
    fn contains(&self, version: &str) -> bool {
        let compare = |bound: &str| lenient::compare(version, bound);
        match self {
            Self::Any => true,
            Self::Exactly(bound) => compare(bound).is_eq(),
            Self::Line(line) => lenient::is_of_line(version, line),
            Self::AtLeast(bound) => compare(bound).is_ge(),
            Self::Above(bound) => compare(bound).is_gt(),
            Self::AtMost(bound) => compare(bound).is_le(),
            Self::Below(bound) => compare(bound).is_lt() && !lenient::is_preview_of(version, bound),
        }
    }

    /// Whether the range contains a version between the bounds.
    fn has_within(&self, version: &str) -> bool {
        match self {
            Self::Any | Self::Exactly(_) | Self::AtLeast(_) | Self::Above(_) | Self::AtMost(_) => true,
            Self::Line(line) => lenient::is_of_line(version, line),
            Self::Below(bound) => !lenient::is_preview_of(version, bound),
        }
    }

    /// The lower bound, and whether the range contains the bound itself.
    fn lower(&self) -> Option<(&str, bool)> {
        match self {
            Self::AtLeast(bound) | Self::Exactly(bound) => Some((bound, true)),
            Self::Above(bound) => Some((bound, false)),
            Self::Any | Self::Line(_) | Self::AtMost(_) | Self::Below(_) => None,
        }
    }

    fn upper(&self) -> Option<(&str, bool)> {
        match self {
            Self::AtMost(bound) | Self::Exactly(bound) => Some((bound, true)),
            Self::Below(bound) => Some((bound, false)),
            Self::Any | Self::Line(_) | Self::AtLeast(_) | Self::Above(_) => None,
        }
    }

    /// Whether no version can meet both conditions.
    fn excludes(&self, other: &Self) -> bool {
        let crossed = |a: &Self, b: &Self| match (a.lower(), b.upper()) {
            (Some((low, with_low)), Some((high, with_high))) => match lenient::compare(low, high) {
                Ordering::Less => false,
                Ordering::Equal => !(with_low && with_high),
                Ordering::Greater => true,
            },
            _ => false,
        };
        crossed(self, other) || crossed(other, self)
    }
}

impl FromStr for Range {
    type Err = NotARange;

    fn from_str(text: &str) -> Result<Self, NotARange> {
        let letters: Vec<char> = text.chars().collect();
        let refused =
            |at: usize, kind| Err(NotARange { text: letters.iter().copied().map(printable).collect(), at, kind });
        if letters.len() > MAX_LENGTH {
            return refused(MAX_LENGTH, RangeErrorKind::TooLong);
        }
        let mut terms: Vec<Term> = Vec::new();
        let mut from = 0;
        for part in letters.split(|&letter| letter == ',') {
            let starts = from + part.iter().take_while(|letter| letter.is_whitespace()).count();
            match term(&letters[starts..from + part.len()]) {
                Err((at, kind)) => return refused(starts + at, kind),
                Ok(term) if terms.iter().any(|before| before.excludes(&term)) => {
                    return refused(starts, RangeErrorKind::Empty);
                }
                Ok(term) => terms.push(term),
            }
            from += part.len() + 1;
        }
        Ok(Self { written: text.trim().into(), terms })
    }
}

/// A character for display: none that moves the cursor or ends the line.
fn printable(letter: char) -> char {
    match letter {
        _ if !letter.is_control() => letter,
        _ if letter.is_whitespace() => ' ',
        _ => '\u{fffd}',
    }
}

/// The comparisons, longest first.
const COMPARISONS: [&str; 5] = [">=", "<=", ">", "<", "="];

/// One condition, without leading space.
fn term(letters: &[char]) -> Result<Term, (usize, RangeErrorKind)> {
    let text: String = letters.iter().collect();
    let text = text.trim_end();
    if text.is_empty() {
        return Err((0, RangeErrorKind::NoCondition));
    }
    if text == "*" {
        return Ok(Term::Any);
    }
    let comparison = COMPARISONS.into_iter().find(|comparison| text.starts_with(comparison));
    let rest = &text[comparison.map_or(0, str::len)..];
    let version = rest.trim_start();
    let at = text.chars().count() - version.chars().count();
    if let (true, Some(comparison)) = (version.is_empty(), comparison) {
        return Err((at, RangeErrorKind::NoVersion(comparison)));
    }
    for (position, letter) in version.chars().enumerate() {
        let kind = match letter {
            _ if letter.is_ascii_alphanumeric() => continue,
            '.' | '-' | '+' | '_' | '*' if position > 0 => continue,
            _ if position == 0 => RangeErrorKind::NoComparison(printable(letter)),
            _ if letter.is_whitespace() => RangeErrorKind::NoComma,
            _ => RangeErrorKind::NoVersionText(printable(letter)),
        };
        return Err((at + position, kind));
    }
    if version.ends_with('+') {
        return Err((at + version.chars().count() - 1, RangeErrorKind::OpenEnd));
    }
    if spelling::is_word_for_any(version) {
        return Err((at, RangeErrorKind::WordForAny(version.to_owned())));
    }
    let line = version.strip_suffix(".x").or_else(|| version.strip_suffix(".*"));
    let compared = |term: fn(String) -> Term| match version.find('*') {
        None if line.is_none() => Ok(term(version.to_owned())),
        _ => Err((at, RangeErrorKind::WildcardCompared)),
    };
    match (comparison, line) {
        (None | Some("="), Some(line)) if !line.contains(['*', '-', '+', '_']) => Ok(Term::Line(line.to_owned())),
        (Some(">="), _) => compared(Term::AtLeast),
        (Some(">"), _) => compared(Term::Above),
        (Some("<="), _) => compared(Term::AtMost),
        (Some("<"), _) => compared(Term::Below),
        (_, _) => compared(Term::Exactly),
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.written)
    }
}

/// Compares the written form, because equal ranges have to be printed in the same way.
impl PartialEq for Range {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Range {}

impl PartialOrd for Range {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Range {
    fn cmp(&self, other: &Self) -> Ordering {
        self.written.cmp(&other.written)
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error: NotARange| serde::de::Error::custom(error))
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for Range {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Range".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "maxLength": MAX_LENGTH})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few numbers, so that many are equal, and each kind of preview and build.
    const VERSION_PATTERN: &str = "v?[0-2](\\.[0-2]){0,2}(-(SNAPSHOT|beta\\.[01]|Release))?(\\+[01])?";

    fn has(range: &str, version: &str) -> bool {
        range.parse::<Range>().unwrap().contains(version)
    }

    #[test]
    fn range_excludes_previews_of_its_upper_bound() {
        for version in ["7.4", "7.4.0", "7.4.2", "7.4.9+build.3", "v7.4.1", "7.4.2-beta-01"] {
            assert!(has(">=7.4, <7.5", version), "{version}");
        }
        for version in ["7.3.9", "7.5", "7.5.0-SNAPSHOT", "7.5.0-beta-01", "7.4.0-SNAPSHOT", "8"] {
            assert!(!has(">=7.4, <7.5", version), "{version}");
        }
        assert!(has("<7.5-rc", "7.5.0-beta-01"), "a preview as the upper bound is taken literally");
        assert!(has(">=7.4.0-SNAPSHOT", "7.4.0-SNAPSHOT+12"));
    }

    #[test]
    fn range_comparators_match_documented_table() {
        assert!(has("7.4.1", "7.4.1") && has("=7.4", "7.4.0") && !has("7.4", "7.4.1"));
        assert!(has(">7.4", "7.4.1") && !has(">7.4", "7.4.0"));
        assert!(has("<=7.4", "7.4.0") && !has("<=7.4", "7.4.1"));
        assert!(has("7.4.x", "7.4.12-SNAPSHOT") && has("7.*", "7.4") && !has("7.4.x", "7.40.1"));
        assert!(has("*", "3D Shareware"));
        assert!(has(" >= r5 ,<r9 ", "r7"), "spaces are ignored, and other schemes use the lenient order");
    }

    #[test]
    fn ranges_compare_by_written_text() {
        let range = |text: &str| text.parse::<Range>().unwrap();
        assert_eq!(range(" >=7.4 "), range(">=7.4"));
        assert!(range("7.4") < range(">=7.4") && range("7.4") != range("=7.4"));
    }

    #[test]
    fn range_parse_error_points_at_position() {
        for (text, at, expected) in [
            ("", 0, "a condition is missing"),
            (">=7.4,", 6, "a condition is missing"),
            (">=7.4, , <8", 7, "a condition is missing"),
            (">=7.4, <", 8, "a version is missing after `<`"),
            ("^7.4", 0, "`^` begins neither"),
            (">=.5", 2, "`.` begins neither"),
            (">=7.4, <<7.5", 8, "`<` begins neither"),
            (">=7.4 <7.5", 5, "write a comma"),
            (">=7.4/2", 5, "`/` is not part of a version"),
            (">=7.x", 2, "cannot be compared"),
            ("7.*.2", 0, "cannot be compared"),
            ("7-beta.x", 0, "cannot be compared"),
            (">=7.3, 7.4+", 10, "cannot end with `+`"),
            ("latest", 0, "`latest` is not a version"),
            ("=X", 1, "`X` is not a version"),
            (">=7.5, <7.4", 7, "no version meets this"),
            (">7.4, <=7.4", 6, "no version meets this"),
            ("ä", 0, "`ä` begins neither"),
            (">=7.4\t<7.5", 5, "`>=7.4 <7.5` is not a version range"),
            (">=7.4\u{1b}[2J", 5, "`\u{fffd}` is not part of a version"),
        ] {
            let error = text.parse::<Range>().unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.to_string().contains(expected), "{error}");
            let pointed = error.with_marker();
            let lines: Vec<&str> = pointed.lines().collect();
            assert_eq!(lines[1].chars().position(|c| c == '^'), Some(at + 4), "{pointed}");
        }
        assert!("7".repeat(MAX_LENGTH).parse::<Range>().is_ok());
        assert_eq!("7".repeat(MAX_LENGTH + 1).parse::<Range>().unwrap_err().kind, RangeErrorKind::TooLong);
    }

    #[test]
    fn range_serialises_as_written() {
        let range: Range = serde_json::from_str("\" >=7.4,  <7.5 \"").unwrap();
        assert_eq!(serde_json::to_string(&range).unwrap(), "\">=7.4,  <7.5\"");
        assert!(serde_json::from_str::<Range>("\"~7\"").unwrap_err().to_string().contains("`~` begins neither"));
    }

    proptest::proptest! {
        #[test]
        fn range_parser_never_panics(text in "\\PC*", version in "\\PC*") {
            if let Ok(range) = text.parse::<Range>() {
                let _ = range.contains(&version);
            } else if let Err(error) = text.parse::<Range>() {
                let _ = error.with_marker();
            }
        }

        #[test]
        fn range_finds_its_versions_among_many(
            mut versions in proptest::collection::vec(VERSION_PATTERN, 0..30),
            terms in proptest::collection::vec((0_usize..7, VERSION_PATTERN), 1..4),
        ) {
            versions.sort_by(|one, other| lenient::compare(one, other));
            let written = |(comparison, version): (usize, String)| match comparison {
                0..5 => format!("{}{version}", COMPARISONS[comparison]),
                5 => format!("{}.x", version.split(['-', '+']).next().unwrap_or_default()),
                _ => "*".to_owned(),
            };
            let range = terms.into_iter().map(written).collect::<Vec<_>>().join(", ");
            // Conditions that exclude each other are refused.
            if let Ok(range) = range.parse::<Range>() {
                let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
                let found: Vec<&&str> = range.filter_sorted(&versions, |version| *version).collect();
                let expected: Vec<&&str> = versions.iter().filter(|version| range.contains(version)).collect();
                proptest::prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn range_agrees_with_semver(
            low in (0_u64..4, 0_u64..4, 0_u64..4), high in (4_u64..8, 0_u64..4, 0_u64..4),
            version in (0_u64..9, 0_u64..4, 0_u64..4),
        ) {
            let text = |(a, b, c): (u64, u64, u64)| format!("{a}.{b}.{c}");
            let written = format!(">={}, <{}", text(low), text(high));
            let theirs = semver::VersionReq::parse(&written).unwrap().matches(&text(version).parse().unwrap());
            proptest::prop_assert_eq!(has(&written, &text(version)), theirs);
        }
    }
}
