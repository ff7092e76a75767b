//! Pure. Reads and writes the file of instruction counts, and compares new counts with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Instructions by the name of the case.
pub type Counts = BTreeMap<String, u64>;

/// The increase in percent above which a commit has to explain it. Two runs of the same program differ by less than 1, because of hash seeds.
const WARN_PERCENT: u64 = 10;

/// Reads the file: a number and a name on each line. Lines that start with `#` are comments.
///
/// # Errors
///
/// Names the first line that is neither.
pub fn parse(text: &str) -> Result<Counts, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let count = |line: &str| {
        let (number, name) = line.trim().split_once("  ")?;
        Some((name.trim().to_owned(), number.parse().ok()?))
    };
    lines.map(|line| count(line).ok_or_else(|| format!("`{line}` is no number, two spaces and a name"))).collect()
}

/// The text of the file.
pub fn render(counts: &Counts) -> String {
    let mut text = "# Instructions of each case without its preparation, by callgrind. NIGHTSHIFT_RECORD=1 make bench writes this.\n".to_owned();
    for (name, count) in counts {
        // A write into a string never fails.
        let _ = writeln!(text, "{count}  {name}");
    }
    text
}

/// The maximum for a case that took `then` instructions. A larger count fails `make bench`.
pub fn max_instructions(then: u64) -> u64 {
    then.saturating_add(then / 100 * WARN_PERCENT).saturating_add(then % 100 * WARN_PERCENT / 100)
}

/// The old count, the new count and the difference of each case, one on a line. A large increase adds a warning.
pub fn compare(old: &Counts, new: &Counts) -> String {
    let mut text = String::new();
    for (name, &now) in new {
        let line = match old.get(name) {
            None => format!("{name}: {now} instructions, nothing to compare with\n"),
            Some(&then) => {
                let difference = i128::from(now) - i128::from(then);
                let per_mille = difference * 1000 / i128::from(then.max(1));
                let sign = if per_mille < 0 { '-' } else { '+' };
                let (whole, tenth) = (per_mille.abs() / 10, per_mille.abs() % 10);
                let warning = if now > max_instructions(then) {
                    format!("  !!! MORE THAN {WARN_PERCENT} % MORE: the commit has to explain it\n")
                } else {
                    String::new()
                };
                format!("{name}: {then} -> {now} instructions ({sign}{whole}.{tenth} %)\n{warning}")
            }
        };
        text.push_str(&line);
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        let _ = writeln!(text, "{name}: not counted any more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> Counts {
        pairs.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
    }

    #[test]
    fn instruction_counts_round_trip_as_text() {
        let all = counts(&[("one server", 7), ("a thousand, sharing", u64::MAX)]);
        assert_eq!(parse(&render(&all)), Ok(all));
        assert!(parse("seven  one server").is_err());
    }

    #[test]
    fn count_comparison_flags_only_increases_above_ten_percent() {
        let old = counts(&[("a", 1000), ("b", 1000), ("c", 1000), ("gone", 1)]);
        let new = counts(&[("a", 1100), ("b", 1101), ("c", 500), ("new", 5)]);
        let comparison = compare(&old, &new);
        let lines: Vec<&str> = comparison.lines().collect();
        assert_eq!(
            lines,
            [
                "a: 1000 -> 1100 instructions (+10.0 %)",
                "b: 1000 -> 1101 instructions (+10.1 %)",
                "  !!! MORE THAN 10 % MORE: the commit has to explain it",
                "c: 1000 -> 500 instructions (-50.0 %)",
                "new: 5 instructions, nothing to compare with",
                "gone: not counted any more",
            ]
        );
    }
}
