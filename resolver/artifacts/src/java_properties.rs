//! Pure. Reads files in the format of `java.util.Properties`, such as `server.properties` and `eula.txt`.

/// The value of a key, or `None` if it is missing. If the key occurs several times, the last one counts. Spaces after
/// the value belong to it.
pub fn value(bytes: &[u8], key: &str) -> Option<String> {
    logical_lines(bytes).into_iter().rfind(|line| key_of(line) == key.as_bytes()).map(value_of)
}

/// Whether the value is `true` in any case, as Java's `Boolean.parseBoolean` reads it.
pub fn is_true(bytes: &[u8], key: &str) -> bool {
    value(bytes, key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Splits a file into lines with their line ends. A line that ends in an odd number of backslashes continues in the
/// next one. Comments never continue.
pub fn logical_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        let line = &bytes[start..at];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let backslashes = line.iter().rev().take_while(|byte| **byte == b'\\').count();
        let comment = matches!(line.trim_ascii_start().first(), Some(b'#' | b'!'));
        if comment || backslashes % 2 == 0 {
            lines.push(&bytes[start..=at]);
            start = at + 1;
        }
    }
    if start < bytes.len() {
        lines.push(&bytes[start..]);
    }
    lines
}

/// The key of a line, up to the first `=`, `:` or white space. For a comment the result is its own text, which equals
/// no key.
pub fn key_of(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_start();
    let end = line.iter().position(|byte| matches!(byte, b'=' | b':') || byte.is_ascii_whitespace());
    &line[..end.unwrap_or(line.len())]
}

/// The value of a line, after its key. A backslash starts an escape.
fn value_of(line: &[u8]) -> String {
    let rest = line.trim_ascii_start()[key_of(line).len()..].trim_ascii_start();
    let value = rest.strip_prefix(b"=").or(rest.strip_prefix(b":")).unwrap_or(rest).trim_ascii_start();
    let value = value.strip_suffix(b"\n").unwrap_or(value);
    unescape(&String::from_utf8_lossy(value.strip_suffix(b"\r").unwrap_or(value)))
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            // The line continues, without the indentation of the next one.
            Some('\r' | '\n') => characters = characters.as_str().trim_ascii_start().chars(),
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('u') => {
                let code = characters.as_str().get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                if let Some(code) = code {
                    plain.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    characters = characters.as_str()[4..].chars();
                }
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_that_of_last_line_with_key() {
        let text = b"#server-port=1\n server-port = 25566\nrcon.port:25575\nserver-port=25567\nserver-portal=1\n";
        assert_eq!(value(text, "server-port").as_deref(), Some("25567"));
        assert_eq!(value(text, "rcon.port").as_deref(), Some("25575"));
        assert_eq!(value(text, "enable-rcon"), None);
    }

    #[test]
    fn value_is_unescaped_as_by_java() {
        for (line, expected) in [
            ("a=maps/lobby", "maps/lobby"),
            ("a=My\\ W\\u00f6rld", "My W\u{f6}rld"),
            ("a = b \r\n", "b "),
            ("a\\\n  =b", ""),
            ("a=b\\\n   c", "bc"),
            ("a=\\\\", "\\"),
            ("a=\\u12", "12"),
            ("a=\\", ""),
        ] {
            assert_eq!(value(line.as_bytes(), "a").unwrap_or_default(), expected, "{line:?}");
        }
    }

    #[test]
    fn boolean_is_true_in_any_case_but_not_with_space_after_it() {
        for (line, expected) in [
            ("eula=TRUE\n", true),
            ("eula true", true),
            ("eula:True\r\n", true),
            ("eula = true \r\n", false),
            ("eula=yes", false),
            ("#eula=true", false),
        ] {
            assert_eq!(is_true(line.as_bytes(), "eula"), expected, "{line:?}");
        }
    }
}
