//! Edge (writes). Saves a query with its input in a file, so that it gives the same answer anywhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::query::Query;
use crate::input::from_status::Schedule;
use crate::input::requests::Checked;
use crate::input::running::RunningSet;
use crate::output::atomic_write::{WriteError, write_atomically};
use resolver::model::catalog::Catalog;
use resolver::model::lock::FormatVersion;
use resolver::model::request::Request;
use resolver::model::untrusted_text::shortened;

/// A query with all its input.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SavedQuery {
    format_version: FormatVersion<1>,
    /// The query.
    pub(super) question: Query,
    /// The requests of the servers.
    pub(super) requests: Vec<Request>,
    /// The running version set of each server, as far as its object contains it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) running: BTreeMap<String, RunningSet>,
    /// When each server may be restarted, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) schedules: BTreeMap<String, Schedule>,
    /// The catalog, which contains only data that these requests name and need.
    pub(super) catalog: Catalog,
}

/// Maximum length of an error text. An invalid word in the file can be a megabyte.
const MAX_ERROR_LENGTH: usize = 400;

/// A saved query that could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum SavedQueryError {
    #[error("could not read `{}`", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}:{line}: this is not a saved query: {message} (write one with `--save-problem`)", .path.display())]
    Unreadable { path: PathBuf, line: usize, message: String },
}

impl SavedQuery {
    /// A query about servers with an empty catalog.
    pub(super) fn new(question: Query, checked: &Checked) -> Self {
        Self {
            format_version: FormatVersion::default(),
            question,
            requests: checked.requests.clone(),
            running: checked.running.clone(),
            schedules: checked.schedules.clone(),
            catalog: Catalog::empty(Timestamp::UNIX_EPOCH),
        }
    }

    /// Reads a file that [`Self::save`] wrote.
    pub(super) fn read(path: &Path) -> Result<Self, SavedQueryError> {
        let text =
            fs::read_to_string(path).map_err(|source| SavedQueryError::Read { path: path.to_owned(), source })?;
        // Some editors write a byte order mark.
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
            let message = error.to_string();
            let position = format!(" at line {} column {}", error.line(), error.column());
            let message = message.strip_suffix(&position).unwrap_or(&message);
            let message = shortened(message, MAX_ERROR_LENGTH).into_owned();
            SavedQueryError::Unreadable { path: path.to_owned(), line: error.line(), message }
        })
    }

    /// Writes the query and the catalog to a file. User names, passwords and query strings in URLs are removed.
    pub(super) fn save(&self, path: &Path, catalog: &Catalog) -> Result<(), WriteError> {
        let mut value = serde_json::to_value(self).expect("a query has string keys only");
        value["catalog"] = serde_json::to_value(catalog).expect("a catalog has string keys only");
        remove_secrets(&mut value);
        // On one line: the metadata of a few plugins already takes megabytes.
        let text = serde_json::to_string(&value).expect("a JSON value can be written");
        write_atomically(path, &(text + "\n"))
    }
}

fn remove_secrets(value: &mut Value) {
    match value {
        Value::String(text) => {
            if text.contains("://") {
                *text = without_url_secrets(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(remove_secrets),
        Value::Object(fields) => {
            let entries = std::mem::take(fields).into_iter();
            fields.extend(entries.map(|(key, mut value)| {
                remove_secrets(&mut value);
                (if key.contains("://") { without_url_secrets(&key) } else { key }, value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Removes secrets from the URLs in a text: `https://user:secret@host/x?token=1` becomes `https://host/x`. The hash
/// that names a file ([`ProjectKey::of_file`](resolver::model::catalog::ProjectKey::of_file)) is kept.
fn without_url_secrets(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
        let hash = rest.rsplit_once('#').map(|(_, hash)| hash).filter(|hash| hash.starts_with("sha256="));
        let rest = rest.split(['?', '#']).next().unwrap_or(rest);
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = host.rsplit('@').next().unwrap_or(host);
        let hash = hash.map(|hash| format!("#{hash}")).unwrap_or_default();
        format!("{scheme}://{host}{path}{hash}")
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn saved_query_urls_lose_secrets_everywhere() {
        let mut value = json!({
            "file": {"url": "https://user:secret@mirror.example/a/b.jar?token=secret#secret"},
            "unread": {"url/https://secret@a.example/x": "could not be reached at https://a:secret@b.example: timed out"},
            "project": "https://a:secret@b.example/x.jar?secret#sha256=00", "name": "A plugin with ? and @ in its name", "list": ["https://b.example?secret", 5, null],
        });
        remove_secrets(&mut value);
        assert!(!value.to_string().contains("secret"), "{value}");
        assert_eq!(value["file"]["url"], "https://mirror.example/a/b.jar");
        assert_eq!(value["unread"]["url/https://a.example/x"], "could not be reached at https://b.example: timed out");
        assert_eq!(value["project"], "https://b.example/x.jar#sha256=00");
        assert_eq!(value["name"], "A plugin with ? and @ in its name");
    }
}
