//! Edge (reads). Looks up on Modrinth and Hangar which project a file belongs to, by its hash.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use serde::Deserialize;

use super::super::http::{Existence, HttpResponse, parse};
use super::super::page_cache::{CachedPage, Fetched, is_younger};
use super::super::{FetchError, Upstream};
use super::Fetcher;
use resolver::model::catalog::{Owner, ProjectKey, Source};
use resolver::model::unmanaged_jar::UnmanagedJar;

/// Hashes in one request. Modrinth states no limit. 100 of them are 13 KB, and most servers have fewer plugins.
const MAX_HASHES_PER_REQUEST: usize = 100;

impl Fetcher {
    /// Owners of these files, by sha256. Files without a known owner are absent. An unknown file is looked up again
    /// after a day, and a failed lookup is repeated with the next catalog.
    pub(super) async fn owners(&self, files: &[UnmanagedJar], now: Timestamp) -> BTreeMap<String, Owner> {
        let hashes: BTreeMap<&str, Option<&str>> =
            files.iter().filter_map(|jar| Some((jar.sha256.as_deref()?, jar.sha512.as_deref()))).collect();
        let hashes: Vec<_> = hashes
            .into_iter()
            .map(|(sha256, sha512)| async move { (sha256.to_owned(), self.owner(sha256, sha512, now).await) })
            .collect();
        let found: Vec<_> = stream::iter(hashes).buffered(super::MAX_CONCURRENT).collect().await;
        let mut owners = BTreeMap::new();
        for (sha256, owner) in found {
            match owner {
                Ok(CachedPage { stored, stale: _ }) => {
                    owners.extend(stored.body.as_ref().clone().map(|owner| (sha256, owner)));
                }
                Err(error) => tracing::debug!(sha256, error = %error, "could not look up a file by its hash"),
            }
        }
        owners
    }

    /// Owner of one file. Modrinth is asked first, because it names the release.
    async fn owner(
        &self,
        sha256: &str,
        sha512: Option<&str>,
        now: Timestamp,
    ) -> Result<CachedPage<Option<Owner>>, Arc<FetchError>> {
        let url = self.upstreams.url(Upstream::Modrinth, &["version_files"], &[]);
        let fresh = |stored: &super::StoredPage<Option<Owner>>| {
            // The owner of given bytes does not change.
            stored.body.is_some() || is_younger(&stored.stamp, self.ttl.project, now)
        };
        let fetch = |_| async {
            let of_modrinth = match sha512 {
                Some(sha512) => self.modrinth_by_hash(&[sha512.to_owned()], now).await?.remove(sha512),
                None => None,
            };
            let owner = match of_modrinth {
                Some(owner) => Some(owner),
                None => self.hangar_by_hash(sha256, now).await?.map(|project| Owner { project, release: None }),
            };
            Ok(Fetched::New { body: owner, etag: None })
        };
        self.owners.get(sha256, &url, now, fresh, fetch).await
    }

    /// Releases on Modrinth that contain these files, by their sha512 (128 hex digits). Unknown files are absent.
    ///
    /// Sends `POST /version_files`. A file may be a further file of its version and not the main file of a release
    /// here.
    ///
    /// # Errors
    /// Modrinth could not be reached or sent an unexpected response. Always an error offline.
    pub async fn modrinth_by_hash(
        &self,
        sha512: &[String],
        now: Timestamp,
    ) -> Result<BTreeMap<String, Owner>, FetchError> {
        #[derive(Deserialize)]
        struct HashLookupVersion {
            id: String,
            project_id: String,
        }
        let url = self.upstreams.url(Upstream::Modrinth, &["version_files"], &[]);
        let mut found = BTreeMap::new();
        for hashes in sha512.chunks(MAX_HASHES_PER_REQUEST) {
            let query = serde_json::json!({ "hashes": hashes, "algorithm": "sha512" });
            let body = self.http.post(Upstream::Modrinth, &url, query.to_string().into_bytes(), now).await?;
            let versions: BTreeMap<String, HashLookupVersion> = parse(Upstream::Modrinth, &url, &body)?;
            let owner = |HashLookupVersion { id, project_id }: HashLookupVersion| Owner {
                project: ProjectKey { source: Source::Modrinth, project: project_id },
                release: Some(id),
            };
            found.extend(versions.into_iter().map(|(hash, version)| (hash, owner(version))));
        }
        Ok(found)
    }

    /// The Hangar project that a file belongs to, by its sha256 (64 hex digits). `None` means that Hangar does not know
    /// the file.
    ///
    /// Sends `GET /versions/hash/{sha256}`, which names the project and not the version.
    ///
    /// # Errors
    /// Hangar could not be reached or sent an unexpected response. Always an error offline.
    pub async fn hangar_by_hash(&self, sha256: &str, now: Timestamp) -> Result<Option<ProjectKey>, FetchError> {
        #[derive(Deserialize)]
        struct HashLookupProject {
            id: u64,
        }
        let url = self.upstreams.url(Upstream::Hangar, &["versions", "hash", sha256], &[]);
        match self.http.get(Upstream::Hangar, &url, Existence::Unknown, None, now).await {
            Ok(HttpResponse::New { body, etag: _ }) => {
                let HashLookupProject { id } = parse(Upstream::Hangar, &url, &body)?;
                Ok(Some(ProjectKey { source: Source::Hangar, project: id.to_string() }))
            }
            Ok(HttpResponse::NotModified) => unreachable!("the request was not conditional"),
            Err(FetchError::Status { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
