//! Pure. Reads YAML into untyped values as `SnakeYAML`, the YAML reader of Minecraft servers, sees them: by the rules
//! of YAML 1.1.
//!
//! Source: `Composer`, `Resolver` and `SafeConstructor` of `SnakeYAML` 2.2, which Paper 1.20.5 and later contain. Those
//! of older Paper versions have the same rules.

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

/// Limit of values, aliases included. Descriptors with hundreds of commands have a few thousand.
const MAX_VALUES: usize = 250_000;

/// Limit of nesting, as in `SnakeYAML` (`LoaderOptions.nestingDepthLimit`).
const MAX_DEPTH: usize = 50;

/// A value as the server's YAML reader sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// `~`, `null`, or no value.
    Null,
    /// `true`, and in YAML 1.1 also `yes` and `on`.
    Bool(bool),
    /// `7`, `0x1f`, `1_000`.
    Integer(i128),
    /// `1.20` is 1.2.
    Float(f64),
    /// Any other scalar, and everything in quotes.
    Text(String),
    /// A sequence.
    List(Vec<Self>),
    /// A mapping. Of equal keys the last one counts.
    Map(Vec<(Self, Self)>),
}

/// The reason why a text is not one value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum YamlError {
    /// A second document follows. The server's reader accepts one only (`Composer.getSingleNode`).
    SeveralDocuments,
    /// This reader does not understand it. The server's reader may.
    Unreadable(String),
}

/// Reads the only document of a text. An empty text is [`Value::Null`].
pub(crate) fn parse(text: &str) -> Result<Value, YamlError> {
    let mut composer = Composer {
        parser: Parser::new_from_str(text.trim_start_matches('\u{feff}')),
        anchors: BTreeMap::new(),
        left: MAX_VALUES,
    };
    let mut document = None;
    while let Some(event) = composer.next()? {
        if matches!(event, Event::DocumentStart(..)) {
            if document.is_some() {
                return Err(YamlError::SeveralDocuments);
            }
            let root = composer.required()?;
            document = Some(composer.value(root, 0)?);
        }
    }
    Ok(document.unwrap_or(Value::Null))
}

impl Value {
    /// The value of a field, if this is a mapping that has it. A field without a value is absent, as for `Map.get` in
    /// Java.
    pub(crate) fn get(&self, field: &str) -> Option<&Self> {
        let Self::Map(pairs) = self else { return None };
        let is_field = |key: &Self| matches!(key, Self::Text(text) if text == field);
        let (_, value) = pairs.iter().rev().find(|(key, _)| is_field(key))?;
        (*value != Self::Null).then_some(value)
    }

    /// The value as Java writes it (`toString`): the server uses numbers and booleans as text where it expects text.
    pub(crate) fn java_text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => java_float(*value),
            Self::Text(text) => text.clone(),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::java_text).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(pairs) => {
                let pair = |(key, value): &(Self, Self)| format!("{}={}", key.java_text(), value.java_text());
                format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Builds values from the events of the parser.
struct Composer<'i> {
    parser: Parser<'i, StrInput<'i>>,
    /// The values of anchors, with the number of values in each.
    anchors: BTreeMap<usize, (Value, usize)>,
    /// The number of values that may still be built.
    left: usize,
}

impl<'i> Composer<'i> {
    fn next(&mut self) -> Result<Option<Event<'i>>, YamlError> {
        self.parser
            .next_event()
            .map(|event| event.map(|(event, _)| event))
            .transpose()
            .map_err(|error| unreadable(&error))
    }

    fn required(&mut self) -> Result<Event<'i>, YamlError> {
        self.next()?.ok_or_else(|| YamlError::Unreadable("it ends early".to_owned()))
    }

    /// The value that begins with this event.
    fn value(&mut self, event: Event<'i>, depth: usize) -> Result<Value, YamlError> {
        if depth > MAX_DEPTH {
            return Err(YamlError::Unreadable(format!("it is nested more than {MAX_DEPTH} times")));
        }
        let before = self.left;
        self.spend(1)?;
        let (value, anchor) = if let Event::Scalar(text, style, anchor, tag) = event {
            (scalar(&text, style, tag.as_deref()), anchor)
        } else if let Event::SequenceStart(_, anchor, _) = event {
            (self.list(depth)?, anchor)
        } else if let Event::MappingStart(_, anchor, _) = event {
            (self.map(depth)?, anchor)
        } else if let Event::Alias(anchor) = event {
            let known = self.anchors.get(&anchor).cloned();
            let (value, count) =
                known.ok_or_else(|| YamlError::Unreadable("an alias refers to a value that contains it".to_owned()))?;
            self.spend(count)?;
            (value, 0)
        } else {
            return Err(YamlError::Unreadable("a value is missing".to_owned()));
        };
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), before - self.left));
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut items = Vec::new();
        loop {
            let event = self.required()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(Value::List(items));
            }
            items.push(self.value(event, depth + 1)?);
        }
    }

    /// A mapping. `<<` adds the pairs of another one, below its own pairs (`SafeConstructor.flattenMapping`).
    fn map(&mut self, depth: usize) -> Result<Value, YamlError> {
        let (mut merged, mut own) = (Vec::new(), Vec::new());
        loop {
            let event = self.required()?;
            if matches!(event, Event::MappingEnd) {
                merged.append(&mut own);
                return Ok(Value::Map(merged));
            }
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.value(event, depth + 1)?;
            let event = self.required()?;
            let value = self.value(event, depth + 1)?;
            if !is_merge {
                own.push((key, value));
                continue;
            }
            // Of several mappings, the first one has priority.
            let maps = if let Value::List(maps) = value { maps } else { vec![value] };
            for map in maps.into_iter().rev() {
                let Value::Map(pairs) = map else {
                    return Err(YamlError::Unreadable("`<<` refers to something else than a mapping".to_owned()));
                };
                merged.extend(pairs);
            }
        }
    }

    fn spend(&mut self, count: usize) -> Result<(), YamlError> {
        let left = self.left.checked_sub(count);
        self.left = left.ok_or_else(|| YamlError::Unreadable(format!("it has more than {MAX_VALUES} values")))?;
        Ok(())
    }
}

fn unreadable(error: &ScanError) -> YamlError {
    let (info, at) = (error.info(), error.marker());
    YamlError::Unreadable(format!("line {} column {}: {info}", at.line(), at.col() + 1))
}

/// A scalar. Quotes and `!!str` make it a text, whatever it looks like.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
    if is_text { Value::Text(text.to_owned()) } else { plain(text) }
}

/// A scalar without quotes, by the patterns of `Resolver`. A date stays a text: Java writes one in the zone of the
/// server, and no field that is used here is a date.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Value::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Value::Bool(false),
        text => match (integer(text), float(text)) {
            (Some(value), _) => Value::Integer(value),
            (None, Some(value)) => Value::Float(value),
            (None, None) => Value::Text(text.to_owned()),
        },
    }
}

fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn integer(text: &str) -> Option<i128> {
    let (negative, body) = signed(text);
    let all = |digits: &str, radix| digits.chars().all(|c| c == '_' || c.is_digit(radix));
    let (digits, radix) = if let Some(digits) = body.strip_prefix("0b") {
        (digits, 2)
    } else if let Some(digits) = body.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = body.strip_prefix('0').filter(|digits| !digits.is_empty()) {
        (digits, 8)
    } else {
        (body, 10)
    };
    if radix == 10 && body.contains(':') {
        return base_60(body).map(|value| if negative { -value } else { value });
    }
    let starts_well = radix != 10 || digits.starts_with(|c: char| c.is_ascii_digit());
    if !starts_well || !all(digits, radix) {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if negative { -value } else { value })
}

/// `1:30` is 90.
fn base_60(body: &str) -> Option<i128> {
    let mut parts = body.split(':');
    let first = parts.next().filter(|part| part.starts_with(|c: char| ('1'..='9').contains(&c)))?;
    let mut value: i128 = first.replace('_', "").parse().ok()?;
    for part in parts {
        let is_digits = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        let digit: i128 = part.parse().ok().filter(|digit| is_digits && *digit < 60)?;
        value = value.checked_mul(60)?.checked_add(digit)?;
    }
    Some(value)
}

fn float(text: &str) -> Option<f64> {
    let (negative, body) = signed(text);
    let sign = if negative { -1.0 } else { 1.0 };
    if matches!(body, ".inf" | ".Inf" | ".INF") {
        return Some(sign * f64::INFINITY);
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(f64::NAN);
    }
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(signed(exponent).1)),
        None => (body, None),
    };
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_float = match mantissa.split_once('.') {
        Some(("", fraction)) => text == body && begins(fraction) && is_number(fraction),
        Some((whole, fraction)) => begins(whole) && is_number(whole) && is_number(fraction),
        None => exponent.is_some() && begins(mantissa) && is_number(mantissa),
    };
    let has_exponent = exponent.is_none_or(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
    let value: f64 = body.replace('_', "").parse().ok().filter(|_| is_float && has_exponent)?;
    Some(sign * value)
}

/// `Double.toString`: at least one digit after the point, and an exponent from 10 million on and below 0.001.
fn java_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let with_point = |digits: String| if digits.contains('.') { digits } else { format!("{digits}.0") };
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return with_point(value.to_string());
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}E{exponent}", with_point(mantissa.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> String {
        parse(&format!("x: {text}\n")).unwrap().get("x").map_or("(absent)".to_owned(), Value::java_text)
    }

    #[test]
    fn scalars_are_read_as_snake_yaml_reads_them() {
        for (written, seen) in [
            ("1.20", "1.2"),
            ("'1.20'", "1.20"),
            ("\"1.20\"", "1.20"),
            ("!!str 1.20", "1.20"),
            ("26.10", "26.1"),
            ("1.20.4", "1.20.4"),
            ("26", "26"),
            ("1.", "1.0"),
            (".5", "0.5"),
            ("-1.50", "-1.5"),
            ("1_0.5_0", "10.5"),
            ("2e5", "200000.0"),
            ("1e7", "1.0E7"),
            ("1.5e-4", "1.5E-4"),
            ("12345678.5", "1.23456785E7"),
            ("0.0", "0.0"),
            (".inf", "Infinity"),
            ("-.INF", "-Infinity"),
            (".nan", "NaN"),
            ("010", "8"),
            ("08", "08"),
            ("0x1F", "31"),
            ("0b11", "3"),
            ("+7", "7"),
            ("1_000", "1000"),
            ("1:30", "90"),
            ("1:75", "1:75"),
            ("yes", "true"),
            ("Off", "false"),
            ("y", "y"),
            ("'yes'", "yes"),
            ("TRUE", "true"),
            ("tRUE", "tRUE"),
            ("v1.21", "v1.21"),
            ("1.21+", "1.21+"),
            ("1.e", "1.e"),
            ("2024-01-02", "2024-01-02"),
            ("[a, ~, {b: 1.0}]", "[a, null, {b=1.0}]"),
            ("~", "(absent)"),
            ("", "(absent)"),
        ] {
            assert_eq!(field(written), seen, "{written}");
        }
    }

    #[test]
    fn merged_mapping_yields_to_own_fields_and_last_duplicate_wins() {
        let text =
            "base: &base {a: 1, b: 2}\nmore: &more {a: 9, c: 3}\nx:\n  b: 7\n  <<: [*base, *more]\n  d: 4\n  d: 5\n";
        let value = parse(text).unwrap();
        let x = value.get("x").unwrap();
        let seen = ["a", "b", "c", "d", "e"].map(|field| x.get(field).map(Value::java_text));
        assert_eq!(seen.map(Option::unwrap_or_default), ["1", "7", "3", "5", ""]);
    }

    #[test]
    fn second_document_is_an_error_of_its_own() {
        assert_eq!(parse("a: 1\n---\nb: 2\n"), Err(YamlError::SeveralDocuments));
        assert_eq!(parse("---\na: 1\n...\n"), parse("a: 1\n"));
        assert_eq!((parse(""), parse("# nothing\n")), (Ok(Value::Null), Ok(Value::Null)));
    }

    #[test]
    fn unreadable_text_names_the_place() {
        let Err(YamlError::Unreadable(what)) = parse("name: [\n") else { panic!("it must not be readable") };
        assert!(what.starts_with("line 1 column 7: "), "{what}");
        assert!(matches!(parse("a: &a [*a]\n"), Err(YamlError::Unreadable(_))));
        assert!(matches!(parse(&"- ".repeat(60)), Err(YamlError::Unreadable(_))));
    }
}
