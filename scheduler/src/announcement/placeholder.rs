//! Pure. Fills the remaining time into announcement texts, for the placeholders `{in}` (English) and `{in:de}` (a
//! language code).

use jiff::SignedDuration;

use super::locale::Language;
use super::{in_words, whole_seconds};

/// A part of an announcement text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TemplatePart<'a> {
    /// Literal text.
    Words(&'a str),
    /// The remaining time. `None`: `{in}`.
    Time(Option<&'static Language>),
    /// `{in:` with a language that is not supported. Kept as literal text.
    Unknown(&'a str),
}

fn pieces(text: &str) -> Vec<TemplatePart<'_>> {
    const BEGINS: &str = "{in";
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGINS) {
        let (before, place) = rest.split_at(at);
        pieces.push(TemplatePart::Words(before));
        let after = &place[BEGINS.len()..];
        let piece = if after.starts_with('}') {
            (TemplatePart::Time(None), BEGINS.len() + 1)
        } else if let Some(code) = after.strip_prefix(':') {
            let length = code.find('}').map_or(place.len(), |end| BEGINS.len() + 1 + end + 1);
            let language = code.split_once('}').and_then(|(code, _)| Language::of(code));
            (
                language.map_or(TemplatePart::Unknown(&place[..length]), |language| TemplatePart::Time(Some(language))),
                length,
            )
        } else {
            (TemplatePart::Words(BEGINS), BEGINS.len())
        };
        pieces.push(piece.0);
        rest = &place[piece.1..];
    }
    pieces.push(TemplatePart::Words(rest));
    pieces
}

/// The text with its placeholders replaced by the remaining time.
pub fn fill(text: &str, left: SignedDuration) -> String {
    let said = |piece: TemplatePart<'_>| match piece {
        TemplatePart::Words(words) | TemplatePart::Unknown(words) => words.to_owned(),
        TemplatePart::Time(language) => time(language, left),
    };
    pieces(text).into_iter().map(said).collect()
}

/// Only the remaining time, in the language of the first placeholder in this text.
pub fn alone(text: &str, left: SignedDuration) -> String {
    let first = pieces(text).into_iter().find_map(|piece| match piece {
        TemplatePart::Time(language) => Some(language),
        TemplatePart::Words(_) | TemplatePart::Unknown(_) => None,
    });
    time(first.flatten(), left)
}

fn time(language: Option<&Language>, left: SignedDuration) -> String {
    language.map_or_else(|| in_words(left), |language| language.words(whole_seconds(left)))
}

/// Whether the text has a placeholder other than `{in}`.
pub fn has_languages(text: &str) -> bool {
    pieces(text).iter().any(|piece| matches!(piece, TemplatePart::Time(Some(_))))
}

/// The text with all its placeholders changed to `{in}`, which is English.
pub fn in_english(text: &str) -> String {
    let written = |piece: TemplatePart<'_>| match piece {
        TemplatePart::Words(words) | TemplatePart::Unknown(words) => words.to_owned(),
        TemplatePart::Time(_) => "{in}".to_owned(),
    };
    pieces(text).into_iter().map(written).collect()
}

/// The first placeholder in this text whose language is not supported, as it is written.
pub fn unknown(text: &str) -> Option<&str> {
    pieces(text).into_iter().find_map(|piece| match piece {
        TemplatePart::Unknown(place) => Some(place),
        TemplatePart::Words(_) | TemplatePart::Time(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: SignedDuration = SignedDuration::from_mins(5);

    #[test]
    fn each_line_has_time_in_its_own_language() {
        let text = "Restart in {in}.\nNeustart in {in:de}.\nПерезапуск через {in:ru}.\n{in:ja}後に再起動します。";
        let said = "Restart in 5 minutes.\nNeustart in 5 Minuten.\nПерезапуск через 5 минут.\n5分後に再起動します。";
        assert_eq!(fill(text, FIVE), said);
        assert!(has_languages(text) && !has_languages("Restart in {in}."));
        assert_eq!(in_english("{in:de}, {in}, {in:zh-TW}"), "{in}, {in}, {in}");
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
            assert_eq!(unknown(text), Some(found));
            assert_eq!(fill(text, FIVE), text);
        }
        assert_eq!(unknown("{in} {in:de} {inn:x}"), None);
    }

    #[test]
    fn title_uses_language_of_line_below_it() {
        assert_eq!(alone("Neustart in {in:de}", FIVE), "5 Minuten");
        assert_eq!(alone("{in} {in:de}", FIVE), "5 minutes", "the first");
        assert_eq!(alone("Update!", FIVE), "5 minutes");
    }
}
