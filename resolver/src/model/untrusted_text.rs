//! Pure. Sanitizes untrusted text for display: limits its length, and removes terminal control characters, and passwords in addresses.

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

/// A URL without its user, which may have a password.
pub fn hide_url_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://…{}", &rest[at..]),
        None => url.to_owned(),
    }
}

/// The same, also without the query, which may have a token.
pub fn hide_url_secrets(url: &str) -> String {
    let mut shown = hide_url_user(url);
    if let Some(at) = shown.find(['?', '#']) {
        shown.truncate(at + 1);
        shown.push('…');
    }
    shown
}

/// A text, such as JSON, in which no URL has a user or a query. The hash of a file stays.
pub fn hide_secrets_in_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let begin = rest[..at].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '`' | '\\' | '<' | '>');
        let end = rest[at..].find(is_end).map_or(rest.len(), |length| at + length);
        let (url, hash) =
            rest[begin..end].rsplit_once("#sha256=").map_or((&rest[begin..end], None), |(url, hash)| (url, Some(hash)));
        shown.push_str(&rest[..begin]);
        shown.push_str(&hide_url_secrets(url));
        shown.extend(hash.into_iter().flat_map(|hash| ["#sha256=", hash]));
        rest = &rest[end..];
    }
    shown + rest
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
    fn shown_url_has_no_user_and_no_token() {
        let url = "https://user:pass@host/x.jar?token=abc";
        assert_eq!(hide_url_user(url), "https://…@host/x.jar?token=abc");
        assert_eq!(hide_url_secrets(url), "https://…@host/x.jar?…");
        assert_eq!(hide_url_secrets("https://host?token=abc"), "https://host?…");
        assert_eq!(hide_url_secrets("https://host/x.jar"), "https://host/x.jar");
        assert_eq!(hide_url_secrets("x.jar"), "x.jar");
    }

    #[test]
    fn no_url_in_a_text_has_a_secret() {
        let text = r#"{"key": "url/https://user:pass@host/x.jar?token=abc#sha256=01", "url": "https://host/x?a&b", "see": "é https://c/d"}"#;
        let shown =
            r#"{"key": "url/https://…@host/x.jar?…#sha256=01", "url": "https://host/x?…", "see": "é https://c/d"}"#;
        assert_eq!(hide_secrets_in_text(text), shown);
    }

    #[test]
    fn terminal_control_characters_are_removed() {
        assert_eq!(sanitize_line("Via\u{1b}[2JVersion\n5\u{202e}"), "Via[2JVersion5");
        assert_eq!(sanitize_line("Grüße, 世界 ✓"), "Grüße, 世界 ✓");
    }
}
