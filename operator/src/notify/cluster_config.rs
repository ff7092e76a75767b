//! Pure. Reads the file of cluster channels strictly, and refuses it with the place of the error.

use std::collections::{BTreeMap, BTreeSet};

use crds::paper_mc_server::{ChatKind, NotificationEvent, NotificationTexts, NotifyChannel, PLACEHOLDERS, SecretKey};
use serde::Deserialize;
use serde_json::json;

use super::channel::Channel;

/// Limit of the number of channels, the same as for a server's own. Each one is listed in the status of every server.
const MAX_CHANNELS: usize = 4;
/// The longest name and the longest text, as in `spec.notify`.
const LONGEST_NAME: usize = 40;
const LONGEST_TEXT: usize = 1_000;
/// The longest name of a Secret, and of a key in it.
const LONGEST_KEY: usize = 253;

/// An error in the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// It is not YAML, or does not have the expected form.
    #[error(
        "it does not have the form `channels: [{{name, type, secret: {{name, key}}, events, texts}}]` of docs/guides/notify.md"
    )]
    Form(#[source] serde_saphyr::Error),
    /// More channels than a status can hold.
    #[error(
        "it has {0} channels, but at most {MAX_CHANNELS} are allowed: remove some, or move them to the servers that they are for"
    )]
    TooMany(usize),
    /// A name that a status cannot hold.
    #[error(
        "`channels[{at}].name` is `{name}`; write at most {LONGEST_NAME} lower-case letters, digits and dashes, with no dash at an end"
    )]
    Name {
        /// Index of the channel, from 0.
        at: usize,
        /// The name in the file.
        name: String,
    },
    /// Two channels with the same name.
    #[error("two channels are called `{0}`: rename one of them")]
    Duplicate(String),
    /// A name that no Secret and no key can have.
    #[error("`channels[{at}].secret.{field}` has {length} characters; write between 1 and {LONGEST_KEY}")]
    Secret {
        /// Index of the channel, from 0.
        at: usize,
        /// The field of the Secret reference.
        field: &'static str,
        /// The length in characters.
        length: usize,
    },
    /// A text for no event.
    #[error("`channels[{at}].texts` has the unknown field `{field}`. docs/guides/notify.md lists the events")]
    UnknownText {
        /// Index of the channel, from 0.
        at: usize,
        /// The field of `texts`.
        field: String,
    },
    /// A text that is empty or too long.
    #[error("`channels[{at}].texts.{field}` has {length} characters; write between 1 and {LONGEST_TEXT}")]
    Length {
        /// Index of the channel, from 0.
        at: usize,
        /// The field of `texts`.
        field: String,
        /// The length in characters.
        length: usize,
    },
    /// A brace that is not part of a placeholder.
    #[error(
        "`channels[{at}].texts.{field}` has the unknown placeholder `{found}`. Valid placeholders: {}",
        placeholder_list()
    )]
    Placeholder {
        /// Index of the channel, from 0.
        at: usize,
        /// The field of `texts`.
        field: String,
        /// The text from the brace up to the next brace.
        found: String,
    },
}

fn placeholder_list() -> String {
    PLACEHOLDERS.map(|placeholder| format!("`{{{placeholder}}}`")).join(", ")
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelFile {
    channels: Vec<RawChannel>,
}

/// A [`NotifyChannel`] in the file. Unknown fields are refused, because no API server prunes them here as it does in an
/// object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawChannel {
    name: String,
    #[serde(rename = "type")]
    kind: ChatKind,
    secret: RawSecret,
    #[serde(default)]
    events: Vec<NotificationEvent>,
    #[serde(default)]
    texts: BTreeMap<String, Option<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSecret {
    name: String,
    key: String,
}

impl RawChannel {
    fn read(self, at: usize) -> Result<NotifyChannel, ConfigError> {
        let Self { name, kind, secret: RawSecret { name: secret, key }, events, texts } = self;
        if !is_valid_name(&name) {
            return Err(ConfigError::Name { at, name });
        }
        for (field, text) in [("name", &secret), ("key", &key)] {
            let length = text.chars().count();
            if !(1..=LONGEST_KEY).contains(&length) {
                return Err(ConfigError::Secret { at, field, length });
            }
        }
        Ok(NotifyChannel { name, kind, secret: SecretKey { name: secret, key }, events, texts: read_texts(texts, at)? })
    }
}

/// The texts by their fields. A field that [`NotificationTexts`] does not have is missing in what it writes.
fn read_texts(texts: BTreeMap<String, Option<String>>, at: usize) -> Result<NotificationTexts, ConfigError> {
    let texts: BTreeMap<String, String> = texts.into_iter().filter_map(|(field, text)| Some((field, text?))).collect();
    let read: NotificationTexts = serde_json::from_value(json!(texts)).expect("each field is a text");
    let known = json!(read);
    for (field, text) in texts {
        if known.get(&field).is_none() {
            return Err(ConfigError::UnknownText { at, field });
        }
        let length = text.chars().count();
        if !(1..=LONGEST_TEXT).contains(&length) {
            return Err(ConfigError::Length { at, field, length });
        }
        if let Some(found) = find_invalid_placeholder(&text) {
            return Err(ConfigError::Placeholder { at, field, found: found.to_owned() });
        }
    }
    Ok(read)
}

fn is_valid_name(name: &str) -> bool {
    let is_inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(is_inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// The first brace that is not part of a placeholder, with the text up to the next brace.
fn find_invalid_placeholder(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let from = &rest[at..];
        let placeholder = PLACEHOLDERS
            .iter()
            .find_map(|placeholder| from.strip_prefix('{')?.strip_prefix(placeholder)?.strip_prefix('}'));
        let Some(after) = placeholder else {
            let end = from[1..].find(['{', '}']).map_or(from.len(), |end| end + 2);
            return Some(&from[..end]);
        };
        rest = after;
    }
    None
}

/// Reads the channels from the text of a file, YAML or JSON. Their Secrets are in `namespace`, the operator's own.
pub(crate) fn read(text: &str, namespace: &str) -> Result<Vec<Channel>, ConfigError> {
    let options = serde_saphyr::options! { with_snippet: false };
    let ChannelFile { channels } = serde_saphyr::from_str_with_options(text, options).map_err(ConfigError::Form)?;
    if channels.len() > MAX_CHANNELS {
        return Err(ConfigError::TooMany(channels.len()));
    }
    let mut names = BTreeSet::new();
    let channels = channels.into_iter().enumerate().map(|(at, channel)| {
        let channel = channel.read(at)?;
        if !names.insert(channel.name.clone()) {
            return Err(ConfigError::Duplicate(channel.name));
        }
        Ok(Channel::for_cluster(namespace, channel))
    });
    channels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_chain::ErrorChain;

    const ONE_CHANNEL: &str = "channels:
- name: staff
  type: Slack
  secret: {name: chat, key: staff}
  events: [Failed, Blocked]
  texts: {failed: '{namespace}/{server}: {what}'}
";

    fn error_text(text: &str) -> String {
        ErrorChain(&read(text, "nightshift-system").unwrap_err()).to_string()
    }

    #[test]
    fn channel_file_is_parsed_even_when_empty() {
        let channels = read(ONE_CHANNEL, "nightshift-system").unwrap();
        assert_eq!((channels.len(), channels[0].name.as_str()), (1, "cluster/staff"));
        assert_eq!(channels[0].namespace, "nightshift-system");
        assert!(
            channels[0].is_subscribed_to(NotificationEvent::Failed)
                && !channels[0].is_subscribed_to(NotificationEvent::Done)
        );
        assert_eq!(channels[0].config.texts.failed.as_deref(), Some("{namespace}/{server}: {what}"));
        let rolled_back = ONE_CHANNEL.replace("{failed: ", "{failed: null, rolledBack: ");
        let texts = read(&rolled_back, "nightshift-system").unwrap().remove(0).config.texts;
        assert_eq!((texts.failed, texts.rolled_back.as_deref()), (None, Some("{namespace}/{server}: {what}")));
        assert_eq!(read("channels: []", "nightshift-system").unwrap(), []);
    }

    #[test]
    fn channel_file_error_names_place_and_remedy() {
        let long = format!("texts: {{failed: '{}'}}", "x".repeat(1_001));
        for (from, to, parts) in [
            ("events", "event", &["unknown field", "event", "line 5"][..]),
            ("Blocked", "Block", &["Block", "line 5"]),
            ("Slack", "slack", &["slack", "Slack"]),
            ("{failed: ", "{faild: ", &["`channels[0].texts` has the unknown field `faild`"]),
            ("key: staff", "keys: staff", &["unknown field", "keys"]),
            ("key: staff", "key: ''", &["`channels[0].secret.key` has 0 characters"]),
            ("name: staff", "name: Staff", &["`channels[0].name` is `Staff`", "lower-case"]),
            ("name: staff", "name: cluster/staff", &["`channels[0].name` is `cluster/staff`"]),
            ("name: staff", "name: -staff", &["`channels[0].name`"]),
            (
                "{server}",
                "{sever}",
                &["`channels[0].texts.failed` has the unknown placeholder `{sever}`", "`{server}`"],
            ),
            ("{server}", "{server", &["placeholder `{server: {`"]),
            ("{server}", "server}", &["placeholder `}: {`"]),
            ("texts: {failed: '{namespace}/{server}: {what}'}", &long, &["texts.failed` has 1001 characters"]),
            ("channels:", "channel:", &["unknown field", "docs/guides/notify.md"]),
        ] {
            let text = error_text(&ONE_CHANNEL.replacen(from, to, 1));
            for part in parts {
                assert!(text.contains(part), "{part} is not in:\n{text}");
            }
        }
        let again = ONE_CHANNEL.trim_start_matches("channels:\n");
        assert_eq!(error_text(&format!("{ONE_CHANNEL}{again}")), "two channels are called `staff`: rename one of them");
        let many: String = (0..5).map(|at| again.replace("name: staff", &format!("name: staff{at}"))).collect();
        assert!(error_text(&format!("channels:\n{many}")).starts_with("it has 5 channels, but at most 4 are allowed"));
    }
}
