//! Pure. Reads the rows of a list one by one, so that an unreadable row costs one release and not the whole project.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FetchError, Upstream};
use resolver::model::untrusted_text::shortened;

/// Maximum length of a name or a field in a note, in characters.
const MAX_LENGTH: usize = 80;

/// A row that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnreadableRow {
    /// The release, as its authors name it.
    pub(super) release: String,
    /// The path of the field that is missing or has another form than the API documents.
    field: String,
}

impl UnreadableRow {
    /// The reason for users.
    pub(super) fn reason(&self) -> String {
        format!("the field `{}` of its entry is unreadable, so it is left out", self.field)
    }
}

/// Reads one row. An unreadable one is named by the first of the fields `named_by` that it has.
pub(super) fn read_row<T: DeserializeOwned>(row: &Value, named_by: &[&str]) -> Result<T, UnreadableRow> {
    serde_path_to_error::deserialize(row).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { "" } else { path.as_str() };
        let message = error.inner().to_string();
        let missing = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
        let field = match missing {
            Some(field) if path.is_empty() => field.to_owned(),
            Some(field) => format!("{path}.{field}"),
            None => path.to_owned(),
        };
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let release = named_by.iter().find_map(|field| text(row.get(field)?));
        UnreadableRow {
            release: shortened(&release.unwrap_or_else(|| "?".to_owned()), MAX_LENGTH).into_owned(),
            field: shortened(&field, MAX_LENGTH).into_owned(),
        }
    })
}

/// Reads all rows of a list.
///
/// # Errors
/// The list has rows, and none can be read. Without this error the project would seem to have no release.
pub(super) fn read_rows<T: DeserializeOwned>(
    upstream: Upstream,
    url: &reqwest::Url,
    rows: &[Value],
    named_by: &[&str],
) -> Result<(Vec<T>, Vec<UnreadableRow>), FetchError> {
    let (mut read, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        match read_row(row, named_by) {
            Ok(row) => read.push(row),
            Err(row) => unreadable.push(row),
        }
    }
    if read.is_empty() && !rows.is_empty() {
        return Err(FetchError::NoUsableEntry { upstream, url: url.to_string(), rows: rows.len() });
    }
    Ok((read, unreadable))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct ReleaseRow {
        #[expect(dead_code, reason = "only its form matters")]
        files: Vec<ReleaseFile>,
    }

    #[derive(Debug, Deserialize)]
    struct ReleaseFile {
        #[expect(dead_code, reason = "only its form matters")]
        name: String,
    }

    #[test]
    fn unreadable_row_names_release_and_field() {
        for (row, release, field) in [
            (json!({"v": "1.0", "files": null}), "1.0", "files"),
            (json!({"v": "1.0"}), "1.0", "files"),
            (json!({"v": null, "id": 7, "files": [{"name": "a"}, {"name": 3}]}), "7", "files[1].name"),
            (json!({"files": [{}]}), "?", "files[0].name"),
            (json!("text"), "?", ""),
        ] {
            let found = read_row::<ReleaseRow>(&row, &["v", "id"]).unwrap_err();
            assert_eq!((found.release.as_str(), found.field.as_str()), (release, field), "{row}");
        }
        assert!(read_row::<ReleaseRow>(&json!({"files": [{"name": "a", "new": 1}]}), &[]).is_ok());
    }
}
