//! Pure. Finds the accepted spelling of a range as npm, Cargo, Maven, Gradle or Ruby writes it.

use super::Range;

/// The range of another tool as it is written here. `None` if the text is no such range, or one that no conditions
/// express, such as `!=7.4` or alternatives.
pub(super) fn accepted(text: &str) -> Option<String> {
    // A comment of YAML that ended up in quotes.
    let text = text.split('#').next().unwrap_or_default().trim();
    let spelling = if text.is_empty() || is_word_for_any(text) {
        "*".to_owned()
    } else {
        interval(text).or_else(|| hyphen(text)).or_else(|| conditions(text))?
    };
    spelling.parse::<Range>().is_ok().then_some(spelling)
}

/// Whether other tools use this word for every version.
pub(super) fn is_word_for_any(text: &str) -> bool {
    ["x", "latest", "newest", "any"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Maven: `[7.4,7.5)`, `[7.4,)`, `[7.4]`.
fn interval(text: &str) -> Option<String> {
    let inside = text.strip_prefix(['[', '('])?.strip_suffix([']', ')'])?;
    let (from, to) = (text.starts_with('['), text.ends_with(']'));
    let Some((low, high)) = inside.split_once(',') else {
        return (from && to).then(|| inside.trim().to_owned());
    };
    let bound = |comparison: &str, version: &str| {
        let version = version.trim();
        (!version.is_empty()).then(|| format!("{comparison}{version}"))
    };
    let low = bound(if from { ">=" } else { ">" }, low);
    let high = bound(if to { "<=" } else { "<" }, high);
    let bounds: Vec<String> = low.into_iter().chain(high).collect();
    Some(if bounds.is_empty() { "*".to_owned() } else { bounds.join(", ") })
}

/// npm: `7.4 - 7.5`.
fn hyphen(text: &str) -> Option<String> {
    let (low, high) = text.split_once(" - ")?;
    Some(format!(">={}, <={}", low.trim(), high.trim()))
}

/// Conditions with spaces or commas between them.
fn conditions(text: &str) -> Option<String> {
    let mut conditions = Vec::new();
    let mut comparison = String::new();
    for word in text.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
        comparison.push_str(word);
        // A comparison may have a space behind it.
        if comparison.contains(|c: char| c.is_ascii_alphanumeric() || c == '*') {
            conditions.push(condition(&comparison)?);
            comparison.clear();
        }
    }
    comparison.is_empty().then(|| conditions.join(", "))
}

fn condition(text: &str) -> Option<String> {
    let (comparison, version) = text.split_at(text.find(|c: char| c.is_ascii_alphanumeric() || c == '*')?);
    if let ("", Some(open)) = (comparison, version.strip_suffix('+')) {
        // Gradle: `7.4.+`.
        return Some(open.strip_suffix('.').map_or_else(|| format!(">={open}"), |line| format!("{line}.x")));
    }
    let base = version.strip_suffix(".x").or_else(|| version.strip_suffix(".*")).unwrap_or(version);
    match comparison {
        "" => Some(version.to_owned()),
        "=" | "==" | "===" => Some(format!("={version}")),
        ">=" | "=>" | "\u{2265}" => Some(format!(">={base}")),
        "<=" | "=<" | "\u{2264}" => Some(format!("<={version}")),
        ">" | ">>" => Some(format!(">{version}")),
        "<" | "<<" => Some(format!("<{base}")),
        // npm and Cargo: no change of the first number that is not 0.
        "^" => below_next(base, |numbers| numbers.iter().position(|number| *number > 0).unwrap_or(numbers.len() - 1)),
        // npm and Cargo: the same minor version.
        "~" => below_next(base, |numbers| (numbers.len() - 1).min(1)),
        // Ruby: only the last number may grow.
        "~>" => below_next(base, |numbers| numbers.len().saturating_sub(2)),
        _ => None,
    }
}

/// `version` and newer, below the version in which the number at this position is one higher.
fn below_next(version: &str, position: impl Fn(&[u64]) -> usize) -> Option<String> {
    let plain = version.strip_prefix('v').unwrap_or(version).split(['-', '+']).next()?;
    let mut numbers = plain.split('.').map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let at = position(&numbers);
    numbers.truncate(at + 1);
    let last = numbers.last_mut()?;
    *last = last.checked_add(1)?;
    let next = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
    Some(format!(">={version}, <{next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_of_other_tool_has_accepted_spelling() {
        for (text, spelling) in [
            (">=7.4 <7.5", ">=7.4, <7.5"),
            ("^7.4", ">=7.4, <8"),
            ("^0.4.2", ">=0.4.2, <0.5"),
            ("^0.0", ">=0.0, <0.1"),
            ("~7.4", ">=7.4, <7.5"),
            ("~7.4.1", ">=7.4.1, <7.5"),
            ("~7", ">=7, <8"),
            ("~> 7.4", ">=7.4, <8"),
            ("~> 7.4.1", ">=7.4.1, <7.5"),
            ("7.4 - 7.5", ">=7.4, <=7.5"),
            ("[7.4,7.5)", ">=7.4, <7.5"),
            ("(7.4, 7.5]", ">7.4, <=7.5"),
            ("[7.4,)", ">=7.4"),
            ("(,7.5)", "<7.5"),
            ("(,)", "*"),
            ("[7.4]", "7.4"),
            ("7.4+", ">=7.4"),
            ("7.4.+", "7.4.x"),
            ("7.4+, <7.6", ">=7.4, <7.6"),
            ("x", "*"),
            ("", "*"),
            ("Latest", "*"),
            ("=> 7.4", ">=7.4"),
            ("==7.4.1", "=7.4.1"),
            ("\u{2265}7.4", ">=7.4"),
            ("7.4.1 # ok", "7.4.1"),
            (">=7.4, <<7.5", ">=7.4, <7.5"),
            (">=7.4,, <7.5", ">=7.4, <7.5"),
            (">=7.x", ">=7"),
            ("^7.4.x", ">=7.4, <8"),
        ] {
            assert_eq!(accepted(text).as_deref(), Some(spelling), "{text}");
        }
        for text in ["!=7.4", ">=7.4 || <8", "[7.4,7.5),[8,9)", "7.4/2", ">=7.5, <7.4", "^abc", ">=", "[", "(7.4)"] {
            assert_eq!(accepted(text), None, "{text}");
        }
        assert_eq!(accepted(&format!("^{}", u64::MAX)), None);
    }
}
