//! Pure. Formats texts as YAML scalars.

/// Formats a text as a YAML string: bare where YAML cannot read it as another type, else quoted as in JSON.
pub(crate) fn quoted(text: &str) -> String {
    let bare = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str());
    if bare { text.to_owned() } else { serde_json::to_string(text).expect("a string can be written as JSON") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_yaml_scalar_is_quoted() {
        for bare in ["lobby", "ViaVersion", "multiverse-core"] {
            assert_eq!(quoted(bare), bare);
        }
        for (text, written) in [
            ("1.20", "\"1.20\""),
            ("no", "\"no\""),
            ("", "\"\""),
            ("5.7.2-SNAPSHOT+906", "\"5.7.2-SNAPSHOT+906\""),
            ("a\"b: #", "\"a\\\"b: #\""),
        ] {
            assert_eq!(quoted(text), written);
        }
    }
}
