//! Edge (reads). Docker Hub: reads the release tags of the server image and the digest of each.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::disk_cache::StoredPage;
use super::http::{Existence, Http, HttpResponse, parse};
use super::page_cache::Fetched;
use super::{FetchError, Upstream, Upstreams};
use resolver::model::catalog::ImageTag;

/// The documented maximum for one page.
const PAGE_SIZE: &str = "100";

/// Only the newest pages are read: Docker Hub refuses deep anonymous paging, and older tags are cached already or not
/// needed.
const MAX_PAGES: u32 = 3;

/// A repository on Docker Hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DockerHubRepository {
    namespace: String,
    name: String,
}

impl DockerHubRepository {
    /// Parses `itzg/minecraft-server` or `docker.io/itzg/minecraft-server`. `None` for another registry or for text that
    /// is no repository.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("docker.io/").or_else(|| text.strip_prefix("index.docker.io/")).unwrap_or(text);
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, name) = match parts[..] {
            [name] => ("library", name),
            // `ghcr.io/x` and `localhost:5000/x` name a registry.
            [namespace, name] if !namespace.contains(['.', ':']) => (namespace, name),
            _ => return None,
        };
        let plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
                && !part.bytes().all(|b| b == b'.')
        };
        (plain(namespace) && plain(name)).then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Name with its registry, as it is written to the pod.
    pub(super) fn full_name(&self) -> String {
        format!("docker.io/{}/{}", self.namespace, self.name)
    }

    pub(super) fn url(&self, upstreams: &Upstreams) -> reqwest::Url {
        upstreams.url(Upstream::DockerHub, &["namespaces", &self.namespace, "repositories", &self.name, "tags"], &[])
    }
}

/// Reads the newest pages and merges them into the cached tags, until a page contains no new tag.
pub(super) async fn fetch_tags(
    http: &Http,
    url: &reqwest::Url,
    repository: &DockerHubRepository,
    stored: Option<StoredPage<Vec<ImageTag>>>,
    now: Timestamp,
) -> Result<Fetched<Vec<ImageTag>>, FetchError> {
    let stored = stored.map_or_else(Vec::new, |stored| stored.body.as_ref().clone());
    let mut tags: BTreeMap<String, ImageTag> = stored.into_iter().map(|tag| (tag.tag.clone(), tag)).collect();
    for number in 1..=MAX_PAGES {
        let mut url = url.clone();
        url.query_pairs_mut()
            .append_pair("page_size", PAGE_SIZE)
            .append_pair("page", &number.to_string())
            .append_pair("ordering", "last_updated");
        let body = match http.get(Upstream::DockerHub, &url, Existence::Unknown, None, now).await {
            Ok(HttpResponse::New { body, etag: _ }) => body,
            Ok(HttpResponse::NotModified) => unreachable!("the request was not conditional"),
            // The limit of anonymous paging, or a page past the end.
            Err(FetchError::Status { status: 403 | 404, .. }) if number > 1 => break,
            Err(error) => return Err(error),
        };
        let (page, is_last) = parse_page(&url, &body, repository)?;
        let mut new = 0;
        for tag in page {
            if tags.get(&tag.tag).is_none_or(|cached| cached.digest != tag.digest) {
                new += 1;
                tags.insert(tag.tag.clone(), tag);
            }
        }
        if new == 0 || is_last {
            break;
        }
    }
    let mut body: Vec<ImageTag> = tags.into_values().collect();
    body.sort_by(|a, b| a.pushed.cmp(&b.pushed).then_with(|| a.tag.cmp(&b.tag)));
    Ok(Fetched::New { body, etag: None })
}

/// The release tags of a page, and whether it is the last one.
pub(super) fn parse_page(
    url: &reqwest::Url,
    body: &[u8],
    repository: &DockerHubRepository,
) -> Result<(Vec<ImageTag>, bool), FetchError> {
    let wire::TagPage { next, results } = parse(Upstream::DockerHub, url, body)?;
    Ok((results.into_iter().filter_map(|tag| read_tag(repository, tag)).collect(), next.is_none()))
}

/// `None` for a moving tag, another variant, or a tag without an index digest, because it could not be pinned.
fn read_tag(repository: &DockerHubRepository, tag: wire::DockerHubTag) -> Option<ImageTag> {
    let digest = super::project_page::format_hash("sha256", 32, tag.digest?.strip_prefix("sha256:"))?;
    is_release(&tag.name).then_some(())?;
    Some(ImageTag {
        repository: repository.full_name(),
        tag: tag.name,
        digest,
        pushed: tag.pushed.or(tag.last_updated)?,
    })
}

/// Accepts `2026.8.1-java21`: exactly a release and a plain Java version.
fn is_release(tag: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    tag.split_once("-java")
        .is_some_and(|(release, java)| number(java) && release.contains('.') && release.split('.').all(number))
}

/// Response format of Docker Hub, reduced to the fields that are used.
mod wire {
    use jiff::Timestamp;
    use serde::Deserialize;

    #[derive(Deserialize)]
    pub(super) struct TagPage {
        pub(super) next: Option<String>,
        pub(super) results: Vec<DockerHubTag>,
    }

    #[derive(Deserialize)]
    pub(super) struct DockerHubTag {
        pub(super) name: String,
        /// Digest of the index. Older responses have none.
        pub(super) digest: Option<String>,
        #[serde(rename = "tag_last_pushed")]
        pub(super) pushed: Option<Timestamp>,
        pub(super) last_updated: Option<Timestamp>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_release_requires_plain_java_tag() {
        for good in ["2026.8.1-java21", "2026.10.1-java8"] {
            assert!(is_release(good), "{good}");
        }
        for bad in
            ["latest", "java21", "stable-java21", "2026.8.1", "2026.8.1-java21-alpine", "2026.8.1-java", "2026-java21"]
        {
            assert!(!is_release(bad), "{bad}");
        }
    }

    #[test]
    fn docker_hub_repository_refuses_other_registries() {
        let full = |text| DockerHubRepository::parse(text).map(|repository| repository.full_name());
        let expected = Some("docker.io/itzg/minecraft-server".to_owned());
        assert_eq!(full("itzg/minecraft-server"), expected);
        assert_eq!(full("docker.io/itzg/minecraft-server"), expected);
        assert_eq!(full("nginx"), Some("docker.io/library/nginx".to_owned()));
        for other in
            ["ghcr.io/itzg/minecraft-server", "localhost:5000/x", "ghcr.io/x", "a/../b", "", "a/b/c", "../x", "A/b"]
        {
            assert_eq!(full(other), None, "{other}");
        }
    }
}
