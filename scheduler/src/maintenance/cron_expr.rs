//! Pure. Converts five-field cron expressions (Vixie's cron) into schedules of the `cron` crate.
//!
//! The `cron` crate requires seconds, numbers Sunday as 1, and requires the day of the month AND the day of the week to match. Here each field is
//! read into the set of its numbers and written again for the crate. Two restricted days become two schedules.

use std::collections::BTreeSet;
use std::fmt;

use cron::Schedule;

/// One of the five fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12, or a name.
    Month,
    /// 0 to 7 (Sunday is both), or a name.
    DayOfWeek,
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Field {
    const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    const fn bounds(self) -> (u32, u32) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 7),
        }
    }

    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Minute | Self::Hour | Self::DayOfMonth => &[],
            Self::Month => &MONTHS,
            Self::DayOfWeek => &DAYS,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        })
    }
}

/// Why a field is invalid. Its text states what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldProblem {
    /// Not a number or a name, or out of bounds.
    #[error("write {from} to {to}{}", if .names.is_empty() { String::new() } else { format!(" or {}", .names.join(", ")) })]
    Value {
        /// The lowest number.
        from: u32,
        /// The highest number.
        to: u32,
        /// The names, in order. Empty for a field without names.
        names: &'static [&'static str],
    },
    /// Nothing before or after a comma.
    #[error("a value is missing at a comma, write {from} to {to} there or remove the comma")]
    MissingValue {
        /// The lowest number.
        from: u32,
        /// The highest number.
        to: u32,
    },
    /// A range that ends before it begins.
    #[error("a range has to ascend, write `{suggestion}`")]
    Backwards {
        /// The same as two ranges.
        suggestion: String,
    },
    /// A step that is not a number, or is 0.
    #[error("write a step of 1 to {longest} after `/`")]
    Step {
        /// The longest step that differs from the first value alone.
        longest: u32,
    },
    /// A step after a single value, which cron implementations read differently.
    #[error("a step needs a range, write `{suggestion}`")]
    StepOnSingleValue {
        /// The range that is probably meant.
        suggestion: String,
    },
}

/// A field that is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidField {
    /// Which field.
    pub field: Field,
    /// The invalid part of the field.
    pub text: String,
    /// Why, and what to write.
    pub problem: FieldProblem,
}

impl fmt::Display for InvalidField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, text, problem } = self;
        write!(f, "`{text}` is wrong as {field} of a schedule: {problem}")
    }
}

/// Why an expression cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CronError {
    Count {
        found: usize,
    },
    Nickname,
    /// `CRON_TZ=Europe/Berlin 0 4 * * *`, as some programs write it.
    ZonePrefix {
        zone: String,
        rest: String,
    },
    /// One entry for each invalid field, at least one.
    Fields(Vec<InvalidField>),
}

/// The schedules whose union the expression means. Their seconds are all 0.
pub(super) fn schedules(expression: &str) -> Result<Vec<Schedule>, CronError> {
    if let Some((prefix, rest)) = expression.trim().split_once(char::is_whitespace)
        && let Some(zone) = prefix.strip_prefix("CRON_TZ=").or_else(|| prefix.strip_prefix("TZ="))
    {
        return Err(CronError::ZonePrefix { zone: zone.to_owned(), rest: rest.trim().to_owned() });
    }
    let expression = match expression.trim() {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        word if word.starts_with('@') => return Err(CronError::Nickname),
        five => five,
    };
    let texts: Vec<&str> = expression.split_whitespace().collect();
    let [minute, hour, day_of_month, month, day_of_week] = texts[..] else {
        return Err(CronError::Count { found: texts.len() });
    };
    let (mut lists, mut invalid) = (Vec::with_capacity(5), Vec::new());
    for (field, text) in Field::ALL.into_iter().zip([minute, hour, day_of_month, month, day_of_week]) {
        match numbers(field, text) {
            Ok(numbers) => lists.push(as_list(field, &numbers)),
            Err(field) => invalid.push(field),
        }
    }
    if !invalid.is_empty() {
        return Err(CronError::Fields(invalid));
    }
    let schedule = |day_of_month: &str, day_of_week: &str| {
        let text = format!("0 {} {} {day_of_month} {} {day_of_week}", lists[0], lists[1], lists[3]);
        text.parse::<Schedule>().expect("lists of numbers within bounds are a valid expression")
    };
    // Vixie's cron decides this by the first character of the field, so `*/2` is no restriction of this kind.
    let restricted = |field: &str| !field.starts_with('*');
    if restricted(day_of_month) && restricted(day_of_week) {
        return Ok(vec![schedule(&lists[2], "*"), schedule("*", &lists[4])]);
    }
    Ok(vec![schedule(&lists[2], &lists[4])])
}

/// The numbers that a field means. Sunday is only 0 here.
fn numbers(field: Field, text: &str) -> Result<BTreeSet<u32>, InvalidField> {
    let mut numbers = BTreeSet::new();
    let (lowest, highest) = field.bounds();
    for item in text.split(',') {
        if item.is_empty() {
            let problem = FieldProblem::MissingValue { from: lowest, to: highest };
            return Err(InvalidField { field, text: text.to_owned(), problem });
        }
        let problem = |problem| InvalidField { field, text: item.to_owned(), problem };
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => {
                let wrong = FieldProblem::Step { longest: highest - lowest };
                (range, Some(number(step).filter(|n| *n > 0).ok_or(wrong).map_err(problem)?))
            }
            None => (item, None),
        };
        let (from, to) = parse_bounds(field, range, step).map_err(problem)?;
        let step = usize::try_from(step.unwrap_or(1)).expect("usize has at least 32 bits on all targets");
        numbers.extend((from..=to).step_by(step));
    }
    if field == Field::DayOfWeek && numbers.remove(&7) {
        numbers.insert(0);
    }
    Ok(numbers)
}

/// The first and the last number of `*`, `a` or `a-b`.
fn parse_bounds(field: Field, range: &str, step: Option<u32>) -> Result<(u32, u32), FieldProblem> {
    let (lowest, highest) = field.bounds();
    if range == "*" {
        // Not 7: 7 is Sunday, which is already 0, and `*/2` would count it again.
        return Ok((lowest, if field == Field::DayOfWeek { 6 } else { highest }));
    }
    let Some((from_text, to_text)) = range.split_once('-') else {
        let single = value(field, range)?;
        return match step {
            Some(step) => Err(FieldProblem::StepOnSingleValue { suggestion: format!("{range}-{highest}/{step}") }),
            None => Ok((single, single)),
        };
    };
    let (from, to) = (value(field, from_text)?, value(field, to_text)?);
    // Users write `fri-sun`, and Sunday is also 7.
    let to = if field == Field::DayOfWeek && to == 0 && from > 0 { 7 } else { to };
    if from > to {
        let last = if field == Field::DayOfWeek { 6 } else { highest };
        return Err(FieldProblem::Backwards { suggestion: format!("{from_text}-{last},{lowest}-{to_text}") });
    }
    Ok((from, to))
}

fn value(field: Field, text: &str) -> Result<u32, FieldProblem> {
    let (lowest, highest) = field.bounds();
    let names = field.names();
    let value = match names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(index) => u32::try_from(index).ok().map(|index| index + u32::from(field == Field::Month)),
        None => number(text),
    };
    value.filter(|value| (lowest..=highest).contains(value)).ok_or(FieldProblem::Value {
        from: lowest,
        to: highest,
        names,
    })
}

/// Digits only: `u32::from_str` would also accept `+5`.
fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The form of the `cron` crate: a list of all numbers, in which Sunday is 1.
fn as_list(field: Field, numbers: &BTreeSet<u32>) -> String {
    let (lowest, highest) = field.bounds();
    let all = if field == Field::DayOfWeek { 7 } else { highest - lowest + 1 };
    if numbers.len() == usize::try_from(all).expect("at most 60") {
        return "*".to_owned();
    }
    let shift = u32::from(field == Field::DayOfWeek);
    numbers.iter().map(|number| (number + shift).to_string()).collect::<Vec<_>>().join(",")
}
