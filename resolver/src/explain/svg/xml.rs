//! Pure. Text inside XML: what names hold comes from upstream, and is shown, never obeyed.

use crate::untrusted_text::visible;

/// How wide a letter is, in tenths of a pixel: the text is set in a fixed pitch of 12 pixels.
const LETTER: usize = 74;

/// A text as it stands between tags or in quotes. What XML does not allow at all is left out.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars() {
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

/// As much of a text as `width` pixels hold, and `…` for the rest.
pub(super) fn fitted(text: &str, width: usize) -> String {
    let text = visible(text);
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
    let mut kept: String = text.chars().take_while(fits).collect();
    kept.truncate(kept.trim_end().len());
    kept + "…"
}
