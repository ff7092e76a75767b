//! Edge (reads). Whose file this is: what Modrinth and Hangar answer to a hash.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::super::http::{Answer, parse};
use super::super::{FetchError, Upstream};
use super::Fetcher;
use crate::catalog::{ProjectKey, Source};

/// Hashes in one question. Modrinth states no limit; 100 of them are 13 KB, and more than most servers have plugins.
const AT_ONCE: usize = 100;

impl Fetcher {
    /// The Modrinth projects that these files belong to, by their sha512 (128 hex digits); unknown files are absent.
    ///
    /// `POST /version_files`. A file may be a further one of its version, not the one that a release here stands for.
    ///
    /// # Errors
    /// Modrinth could not be asked, or answered something else; offline always.
    pub async fn modrinth_by_hash(
        &self,
        sha512: &[String],
        now: Timestamp,
    ) -> Result<BTreeMap<String, ProjectKey>, FetchError> {
        #[derive(Deserialize)]
        struct Version {
            project_id: String,
        }
        let url = self.upstreams.at(Upstream::Modrinth, &["version_files"], &[]);
        let mut found = BTreeMap::new();
        for hashes in sha512.chunks(AT_ONCE) {
            let question = serde_json::json!({ "hashes": hashes, "algorithm": "sha512" });
            let body = self.http.post(Upstream::Modrinth, &url, question.to_string().into_bytes(), now).await?;
            let versions: BTreeMap<String, Version> = parse(Upstream::Modrinth, &url, &body)?;
            let key = |version: Version| ProjectKey { source: Source::Modrinth, project: version.project_id };
            found.extend(versions.into_iter().map(|(hash, version)| (hash, key(version))));
        }
        Ok(found)
    }

    /// The Hangar project that a file belongs to, by its sha256 (64 hex digits); None: nobody's there.
    ///
    /// `GET /versions/hash/{sha256}`, which names the project and not the version.
    ///
    /// # Errors
    /// Hangar could not be asked, or answered something else; offline always.
    pub async fn hangar_by_hash(&self, sha256: &str, now: Timestamp) -> Result<Option<ProjectKey>, FetchError> {
        #[derive(Deserialize)]
        struct Project {
            id: u64,
        }
        let url = self.upstreams.at(Upstream::Hangar, &["versions", "hash", sha256], &[]);
        match self.http.get(Upstream::Hangar, &url, None, now).await {
            Ok(Answer::New { body, etag: _ }) => {
                let Project { id } = parse(Upstream::Hangar, &url, &body)?;
                Ok(Some(ProjectKey { source: Source::Hangar, project: id.to_string() }))
            }
            Ok(Answer::Same) => unreachable!("nothing conditional was asked"),
            Err(FetchError::Status { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
