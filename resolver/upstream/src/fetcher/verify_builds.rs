//! Edge (writes). Adds sha256 and size to builds whose source publishes only an md5, and downloads those that a version
//! set needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::super::FetchError;
use super::super::catalog_builder::CatalogBuild;
use super::super::page_cache::Fetched;
use super::Fetcher;
use resolver::model::catalog::Artifact;
use resolver::model::software::{PaperName, Software};
use resolver::model::unverified_build::{announced_md5, catalog_key};

/// Identity of a build, from the bytes of its first download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VerifiedBuild {
    /// `sha256:<hex>`
    hash: String,
    size: u64,
}

impl Fetcher {
    /// Writes the identity of every verified build to the catalog, and downloads the builds of `wanted` that are not
    /// verified.
    pub(super) async fn verify_builds(&self, reading: &mut CatalogBuild, wanted: &[PaperName], now: Timestamp) {
        let software = Software::Purpur;
        if reading.catalog.versions(software).is_empty() {
            return;
        }
        // There are thousands of builds, and few are verified.
        let verified_names: BTreeSet<String> = self.verified.names().into_iter().collect();
        let mut failed = Vec::new();
        for version in reading.catalog.versions_mut(software).into_iter().flatten() {
            for build in &mut version.builds {
                let Some(md5) = announced_md5(&build.file).map(str::to_owned) else { continue };
                let name = PaperName { software, minecraft: version.minecraft.clone(), build: build.number };
                let is_wanted = wanted.contains(&name);
                // A different md5 is a different build.
                let page = format!("{}/{md5}", catalog_key(&name));
                if !is_wanted && !verified_names.contains(&page) {
                    continue;
                }
                match self.verified_build(&page, &build.file, is_wanted.then_some(md5.as_str()), now).await {
                    Ok(VerifiedBuild { hash, size }) => (build.file.hash, build.file.size) = (Some(hash), Some(size)),
                    Err(error) if is_wanted => failed.push((catalog_key(&name), error)),
                    Err(_) => {}
                }
            }
        }
        for (subject, error) in failed {
            reading.record_error(subject, error, None);
        }
    }

    /// Identity of one build. With `md5` the build may be downloaded and must match it.
    async fn verified_build(
        &self,
        page: &str,
        file: &Artifact,
        md5: Option<&str>,
        now: Timestamp,
    ) -> Result<VerifiedBuild, Arc<FetchError>> {
        let offline = || FetchError::FileOffline { url: file.url.clone() };
        let url = Url::parse(&file.url).map_err(|_| Arc::new(offline()))?;
        let fetch = |_| async {
            let (hash, size) = self.files.fetch_unverified(&file.url, md5.ok_or_else(offline)?).await?;
            Ok(Fetched::New { body: VerifiedBuild { hash: hash.to_string(), size }, etag: None })
        };
        let found = self.verified.get(page, &url, now, |_| true, fetch).await?;
        Ok(found.stored.body.as_ref().clone())
    }
}
