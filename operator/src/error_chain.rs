//! Pure. Renders an error with its causes on one line, to be printed once, at the edge.

use std::error::Error;
use std::{fmt, iter};

use resolver::model::untrusted_text::sanitize_text;

/// Shows an error and every `source` of it, joined by `: `. Each layer describes only itself, so no text is repeated.
pub(crate) struct ErrorChain<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = message_of(self.0);
        f.write_str(&last)?;
        for cause in iter::successors(cause_of(self.0), |&error| cause_of(error)) {
            let text = message_of(cause);
            // kube writes its cause into its own message, so the cause is not repeated.
            if !last.contains(&text) {
                write!(f, ": {text}")?;
            }
            last = text;
        }
        Ok(())
    }
}

/// The cause of an error. The API server's answer is the last one, because its `source` is the same answer again.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(_)) => None,
        Some(_) | None => error.source(),
    }
}

/// The text of one error. kube prints an answer of the API server as a whole structure, so only its message is used.
fn message_of(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => status.message.clone(),
        Some(_) | None => error.to_string(),
    }
}

/// At most `max` bytes of `text`, cut on a character boundary with an ellipsis. Kubernetes limits the note of an Event
/// to 1,024 bytes. Characters that would control the terminal of a reader are removed.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let text = sanitize_text(text);
    if text.len() <= max {
        return text.into_owned();
    }
    let end = (0..=max.saturating_sub('…'.len_utf8())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn name_of_upstream_controls_no_terminal() {
        let name = "Via\u{1b}[2J\0\u{202e}raj.\u{2066}Version";
        assert_eq!(cut(name, 64), "Via[2Jraj.Version");
        let long = cut(&"\u{202e}é".repeat(300), 64);
        assert!(long.len() <= 64 && long.ends_with("é…"), "{long}");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("connection refused")]
    struct Io;

    #[derive(Debug, thiserror::Error)]
    #[error("could not write Service `{name}`")]
    struct Apply {
        name: &'static str,
        #[source]
        source: Io,
    }

    #[test]
    fn error_chain_prints_each_source_once() {
        let error = Apply { name: "lobby", source: Io };
        assert_eq!(ErrorChain(&error).to_string(), "could not write Service `lobby`: connection refused");
    }

    #[test]
    fn error_chain_shows_only_message_of_api_error() {
        let status = Status::failure("services \"lobby\" is forbidden", "Forbidden").with_code(403);
        assert_eq!(ErrorChain(&kube::Error::Api(status.boxed())).to_string(), "services \"lobby\" is forbidden");
    }

    #[test]
    fn event_text_is_cut_at_character_boundary() {
        assert_eq!(cut("täglich", 5), "t…");
        assert_eq!(cut("short", 5), "short");
        assert!(cut(&"ä".repeat(2_000), 1_024).len() <= 1_024);
    }
}
