//! Pure. Fills the remaining time into announcement texts, for the placeholders `{in}` (English) and `{in:de}` (a
//! language code).

use jiff::SignedDuration;

use super::locale::Language;
use super::{format_duration, whole_seconds};

/// A part of an announcement text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TemplatePart<'a> {
    /// Literal text.
    Text(&'a str),
    /// The remaining time. `None`: `{in}`.
    Time(Option<&'static Language>),
    /// `{in:` with a language that is not supported. Kept as literal text.
    Unknown(&'a str),
}

fn parse(text: &str) -> Vec<TemplatePart<'_>> {
    const PREFIX: &str = "{in";
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(PREFIX) {
        let (before, placeholder) = rest.split_at(at);
        pieces.push(TemplatePart::Text(before));
        let after = &placeholder[PREFIX.len()..];
        let piece = if after.starts_with('}') {
            (TemplatePart::Time(None), PREFIX.len() + 1)
        } else if let Some(code) = after.strip_prefix(':') {
            let length = code.find('}').map_or(placeholder.len(), |end| PREFIX.len() + 1 + end + 1);
            let language = code.split_once('}').and_then(|(code, _)| Language::from_code(code));
            (
                language.map_or(TemplatePart::Unknown(&placeholder[..length]), |language| {
                    TemplatePart::Time(Some(language))
                }),
                length,
            )
        } else {
            (TemplatePart::Text(PREFIX), PREFIX.len())
        };
        pieces.push(piece.0);
        rest = &placeholder[piece.1..];
    }
    pieces.push(TemplatePart::Text(rest));
    pieces
}

/// The text with its placeholders replaced by the remaining time.
pub fn fill(text: &str, left: SignedDuration) -> String {
    let expand = |piece: TemplatePart<'_>| match piece {
        TemplatePart::Text(text) | TemplatePart::Unknown(text) => text.to_owned(),
        TemplatePart::Time(language) => format_time(language, left),
    };
    parse(text).into_iter().map(expand).collect()
}

/// Only the remaining time, in the language of the first placeholder in this text.
pub fn remaining_time(text: &str, left: SignedDuration) -> String {
    let first = parse(text).into_iter().find_map(|piece| match piece {
        TemplatePart::Time(language) => Some(language),
        TemplatePart::Text(_) | TemplatePart::Unknown(_) => None,
    });
    format_time(first.flatten(), left)
}

fn format_time(language: Option<&Language>, left: SignedDuration) -> String {
    language.map_or_else(|| format_duration(left), |language| language.format_duration(whole_seconds(left)))
}

/// Whether the text has a placeholder other than `{in}`.
pub fn has_languages(text: &str) -> bool {
    parse(text).iter().any(|piece| matches!(piece, TemplatePart::Time(Some(_))))
}

/// The text with all its placeholders changed to `{in}`, which is English.
pub fn into_english(text: &str) -> String {
    let written = |piece: TemplatePart<'_>| match piece {
        TemplatePart::Text(text) | TemplatePart::Unknown(text) => text.to_owned(),
        TemplatePart::Time(_) => "{in}".to_owned(),
    };
    parse(text).into_iter().map(written).collect()
}

/// The first placeholder in this text whose language is not supported, as it is written.
pub fn unknown_placeholder(text: &str) -> Option<&str> {
    parse(text).into_iter().find_map(|piece| match piece {
        TemplatePart::Unknown(placeholder) => Some(placeholder),
        TemplatePart::Text(_) | TemplatePart::Time(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: SignedDuration = SignedDuration::from_mins(5);

    #[test]
    fn each_line_has_time_in_its_own_language() {
        let text = "Restart in {in}.\nNeustart in {in:de}.\nПерезапуск через {in:ru}.\n{in:ja}後に再起動します。";
        let expected =
            "Restart in 5 minutes.\nNeustart in 5 Minuten.\nПерезапуск через 5 минут.\n5分後に再起動します。";
        assert_eq!(fill(text, FIVE), expected);
        assert!(has_languages(text) && !has_languages("Restart in {in}."));
        assert_eq!(into_english("{in:de}, {in}, {in:zh-TW}"), "{in}, {in}, {in}");
    }

    #[test]
    fn text_that_is_no_placeholder_is_kept_verbatim() {
        let text = "{ {inn} {i {in {in: x";
        assert_eq!(fill(text, FIVE), text);
        assert_eq!(fill("{{in}} {in}s {in{in}", FIVE), "{5 minutes} 5 minutess {in5 minutes");
        assert_eq!(fill("", FIVE), "");
    }

    #[test]
    fn unknown_language_is_reported_with_its_placeholder() {
        for (text, found) in [
            ("{in:ge} {in:xx}", "{in:ge}"),
            ("{in:DE}", "{in:DE}"),
            ("{in:}", "{in:}"),
            ("a {in:de b", "{in:de b"),
            ("{in: de}", "{in: de}"),
        ] {
            assert_eq!(unknown_placeholder(text), Some(found));
            assert_eq!(fill(text, FIVE), text);
        }
        assert_eq!(unknown_placeholder("{in} {in:de} {inn:x}"), None);
    }

    #[test]
    fn title_uses_language_of_line_below_it() {
        assert_eq!(remaining_time("Neustart in {in:de}", FIVE), "5 Minuten");
        assert_eq!(remaining_time("{in} {in:de}", FIVE), "5 minutes", "the first placeholder counts");
        assert_eq!(remaining_time("Update!", FIVE), "5 minutes");
    }
}
