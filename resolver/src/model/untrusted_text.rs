//! Pure. Sanitizes untrusted text for display: limits its length, and removes terminal control characters.

use std::borrow::Cow;

/// Shortens a text to about `most` characters. It keeps the start and the end, which is more informative than the start
/// alone.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most || text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let tail = most / 4;
    let offset = |(at, _)| at;
    let head = text.char_indices().nth(most - tail).map_or(text.len(), offset);
    let tail = text.char_indices().rev().nth(tail.saturating_sub(1)).map_or(text.len(), offset);
    Cow::Owned(format!("{}…{}", &text[..head], &text[tail..]))
}

/// Removes terminal control characters and Unicode direction marks from a line. Titles and versions come from upstream,
/// and their authors may write anything into them.
pub fn sanitize_line(line: &str) -> Cow<'_, str> {
    if line.contains(is_hidden) { Cow::Owned(line.replace(is_hidden, "")) } else { Cow::Borrowed(line) }
}

/// The same for a text of several lines.
pub fn sanitize_text(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c != '\n' && is_hidden(c);
    if text.contains(is_hidden) { Cow::Owned(text.replace(is_hidden, "")) } else { Cow::Borrowed(text) }
}

/// Control characters (ANSI sequences begin with one), and Unicode direction marks.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_keeps_start_and_end() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("ééééé", 5), "ééééé");
        assert_eq!(shortened("cannot be `xxxxxxxxxxxxxxxxxxxxxxxx`", 16), "cannot be `x…xxx`");
        assert_eq!(shortened(&"é".repeat(100), 8), "éééééé…éé");
    }

    #[test]
    fn terminal_control_characters_are_removed() {
        assert_eq!(sanitize_line("Via\u{1b}[2JVersion\n5\u{202e}"), "Via[2JVersion5");
        assert_eq!(sanitize_line("Grüße, 世界 ✓"), "Grüße, 世界 ✓");
    }
}
