//! Pure. Orders version strings as plugin authors write them, where semver does not apply.

use std::cmp::Ordering;

/// Compares two version strings: numbers as numbers, words as stages, and `+build` counts.
///
/// `5.7.2-SNAPSHOT+906 < 5.7.2`, `5.7.2-SNAPSHOT+905 < 5.7.2-SNAPSHOT+906` (semver calls those two equal), `v24.0 ==
/// 24.0.0`, `3.0.0-beta.9 < 3.0.0-beta.39 < 3.0.0`. It is a total order on all texts and agrees with semver (build
/// metadata included) where both are semver. A test compares it with the `semver` crate.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (split(a), split(b));
    core(a.core, b.core).then_with(|| stage(a.stage, b.stage)).then_with(|| tokens(a.build, b.build))
}

/// A version in its three parts: `5.7.2`, `SNAPSHOT`, `906`.
struct Parts<'a> {
    core: &'a str,
    stage: &'a str,
    build: &'a str,
}

fn split(text: &str) -> Parts<'_> {
    let text = text.trim();
    let text =
        text.strip_prefix(['v', 'V']).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(text);
    let (text, build) = text.split_once('+').unwrap_or((text, ""));
    let (core, stage) = text.split_once('-').unwrap_or((text, ""));
    Parts { core, stage, build }
}

/// Dotted parts. A missing part is 0.
fn core(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (x, y) => match token(x.unwrap_or("0"), y.unwrap_or("0")) {
                Ordering::Equal => {}
                unequal @ (Ordering::Less | Ordering::Greater) => return unequal,
            },
        }
    }
}

/// A stage is less than no stage, as in semver. `-Release` is no stage.
fn stage(a: &str, b: &str) -> Ordering {
    match (is_final(a), is_final(b)) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => tokens(a, b),
    }
}

/// Whether this stage is none.
fn is_final(stage: &str) -> bool {
    stage.is_empty() || stage.eq_ignore_ascii_case("release")
}

/// The characters between the parts of a stage and of a build.
const SEPARATORS: [char; 4] = ['.', '-', '+', '_'];

fn tokens(a: &str, b: &str) -> Ordering {
    // An empty text has no first token: `1.1` is older than `1.1+4`.
    if a.is_empty() || b.is_empty() {
        return b.is_empty().cmp(&a.is_empty());
    }
    let (mut a, mut b) = (a.split(SEPARATORS), b.split(SEPARATORS));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) => match token(x, y) {
                Ordering::Equal => {}
                unequal @ (Ordering::Less | Ordering::Greater) => return unequal,
            },
        }
    }
}

/// Numbers before words, numbers by value (of any length), words case-insensitively.
fn token(a: &str, b: &str) -> Ordering {
    match (is_number(a), is_number(b)) {
        (true, true) => {
            let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        }
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase()),
    }
}

fn is_number(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether `version` is a preview (`-SNAPSHOT`, `-beta.2`) of exactly the version in `bound`, and `bound` is no preview
/// itself.
pub(super) fn is_preview_of(version: &str, bound: &str) -> bool {
    let (version, bound) = (split(version), split(bound));
    let of_same = core(version.core, bound.core).is_eq();
    of_same && stage(bound.stage, "").is_eq() && stage(version.stage, "").is_lt()
}

/// Whether the dotted numbers of `version` begin with those of `line`.
pub(super) fn is_of_line(version: &str, line: &str) -> bool {
    let mut version = split(version).core.split('.');
    split(line).core.split('.').all(|part| version.next().is_some_and(|own_part| token(own_part, part).is_eq()))
}

/// Whether the string names a Minecraft snapshot (`4.10.0-24w05b-SNAPSHOT+210`). Such a release is built for that
/// snapshot, regardless of its list.
pub fn names_a_snapshot(version: &str) -> bool {
    version.split(['-', '+', '_', '.', ' ']).any(|token| {
        let bytes = token.as_bytes();
        bytes.len() == 6
            && bytes[2] == b'w'
            && bytes[5].is_ascii_lowercase()
            && [0, 1, 3, 4].iter().all(|&at| bytes[at].is_ascii_digit())
    })
}

/// Whether numbers show that `version` is lower than `than`.
///
/// Words have no reliable order (`b9` and `b10`), so two versions compare only if their dotted parts are numbers. Of two
/// with the same dotted numbers, a stage is lower than no stage, and otherwise the first difference has to be a number.
pub(crate) fn is_lower(version: &str, than: &str) -> bool {
    if !has_numbers(version) || !has_numbers(than) {
        return false;
    }
    let (version, than) = (split(version), split(than));
    let is_lower_number = |a: &str, b: &str| {
        let mut pairs = a.split(SEPARATORS).zip(b.split(SEPARATORS));
        let differs = pairs.find(|(a, b)| token(a, b).is_ne());
        differs.is_some_and(|(a, b)| is_number(a) && is_number(b) && token(a, b).is_lt())
    };
    match core(version.core, than.core).then_with(|| is_final(version.stage).cmp(&is_final(than.stage))) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal if stage(version.stage, than.stage).is_eq() => is_lower_number(version.build, than.build),
        Ordering::Equal => is_lower_number(version.stage, than.stage),
    }
}

/// Whether the dotted parts of a version are numbers.
pub(crate) fn has_numbers(version: &str) -> bool {
    split(version).core.split('.').all(is_number)
}

/// Whether two versions are of one line: their first parts are the same number.
pub(crate) fn is_same_line(a: &str, b: &str) -> bool {
    let line = |text| split(text).core.split('.').next().filter(|first| is_number(first));
    line(a).zip(line(b)).is_some_and(|(a, b)| token(a, b).is_eq())
}

/// Whether `newer` differs from `older` by a higher patch number only (`4.9.1` and `4.9.0`, `5.0.1` and `5.0`).
pub fn is_patch_of(newer: &str, older: &str) -> bool {
    let numbers = |text: &str| {
        let numbers: Option<Vec<u32>> = split(text).core.split('.').map(|part| part.parse().ok()).collect();
        numbers.filter(|numbers| (2..=3).contains(&numbers.len())).map(|mut numbers| {
            numbers.resize(3, 0);
            numbers
        })
    };
    match (numbers(newer), numbers(older)) {
        (Some(newer), Some(older)) => newer[..2] == older[..2] && newer[2] > older[2],
        _ => false,
    }
}
