//! Pure. Escapes text for XML: names come from upstream and are displayed, never interpreted.

use crate::model::untrusted_text::sanitize_line;

/// The width of a letter, in tenths of a pixel: the text uses a fixed pitch of 12 pixels.
const LETTER: usize = 74;

/// The text for use between tags or in quotes. Characters that XML does not allow are removed.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in sanitize_line(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// Cuts a text to `width` pixels, with `…` in place of the rest.
pub(super) fn fitted(text: &str, width: usize) -> String {
    let text = sanitize_line(text);
    // Letters outside of Latin, Greek and Cyrillic are up to twice as wide.
    let wide = |c: char| if (c as u32) < 0x0530 { LETTER } else { 2 * LETTER };
    let room = width * 10;
    if text.chars().map(wide).sum::<usize>() <= room {
        return text.into_owned();
    }
    let mut used = LETTER;
    let fits = |c: &char| {
        used += wide(*c);
        used <= room
    };
    let mut visible: String = text.chars().take_while(fits).collect();
    visible.truncate(visible.trim_end().len());
    visible + "…"
}
