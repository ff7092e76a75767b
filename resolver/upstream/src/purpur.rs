//! Edge (reads). PurpurMC's API v2: reads the builds of Purpur.
//!
//! The response format is taken from the source of its server (PurpurMC/papyrus) and of its site
//! (PurpurMC/PurpurWebsite). The real API was never called during development.

use jiff::Timestamp;
use reqwest::Url;

use super::fill::{FillBuilds, Listed};
use super::http::parse;
use super::project_page::format_hash;
use super::{FetchError, Upstream, Upstreams};
use resolver::model::catalog::{Artifact, Build, BuildChannel};
use resolver::model::version::Minecraft;

/// Name of the project in the API.
const PROJECT: &str = "purpur";

pub(super) fn versions_url(upstreams: &Upstreams) -> Url {
    upstreams.url(Upstream::Purpur, &[PROJECT], &[])
}

/// Without `detailed` the response contains only numbers, and each build would need a request.
pub(super) fn builds_url(upstreams: &Upstreams, version: &Minecraft) -> Url {
    upstreams.url(Upstream::Purpur, &[PROJECT, version.as_str()], &[("detailed", "true")])
}

/// The versions in a response, oldest first, at least one. The response contains no Java version and no builds.
pub(super) fn parse_versions(url: &Url, body: &[u8]) -> Result<Vec<Listed>, FetchError> {
    let wire::PurpurProject { versions } = parse(Upstream::Purpur, url, body)?;
    let rows = versions.len();
    let mut versions: Vec<Minecraft> = versions.iter().filter_map(|version| version.parse().ok()).collect();
    if versions.is_empty() {
        // An empty list would remove the version of every server.
        return Err(FetchError::NoUsableEntry { upstream: Upstream::Purpur, url: url.to_string(), rows });
    }
    versions.sort();
    versions.dedup();
    let listed = |minecraft| Listed { minecraft, java: None, jvm_flags: Vec::new(), unsupported: false, builds: None };
    Ok(versions.into_iter().map(listed).collect())
}

/// The builds in a response.
pub(super) fn parse_builds(
    url: &Url,
    upstreams: &Upstreams,
    version: &Minecraft,
    body: &[u8],
) -> Result<FillBuilds, FetchError> {
    let wire::PurpurVersion { builds } = parse(Upstream::Purpur, url, body)?;
    let mut numbers: Vec<u32> = builds.all.iter().filter_map(|build| build.number.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut builds: Vec<Build> =
        builds.all.into_iter().filter_map(|build| read_build(upstreams, version, build)).collect();
    builds.sort_by_key(|build| build.number);
    builds.dedup_by_key(|build| build.number);
    Ok(FillBuilds { numbers, builds })
}

/// `None` for a failed build, which has no JAR, and for one without a number or a date.
fn read_build(upstreams: &Upstreams, version: &Minecraft, build: wire::PurpurBuild) -> Option<Build> {
    let number: u32 = build.number.parse().ok().filter(|_| build.result == "SUCCESS")?;
    let text = number.to_string();
    Some(Build {
        number,
        published: Timestamp::from_millisecond(build.timestamp).ok()?,
        channel: match build.metadata.and_then(|metadata| metadata.kind) {
            // PurpurMC has no channels. Builds that its site offers without a mark are stable.
            None => BuildChannel::Stable,
            // `experimental`, which its site calls not ready for production, and every unknown type.
            Some(_) => BuildChannel::Alpha,
        },
        file: Artifact {
            name: format!("{PROJECT}-{version}-{text}.jar"),
            url: upstreams.url(Upstream::Purpur, &[PROJECT, version.as_str(), &text, "download"], &[]).into(),
            size: None,
            hash: format_hash("md5", 16, build.md5.as_deref()),
        },
    })
}

/// Response format of PurpurMC, reduced to the fields that are used.
mod wire {
    use serde::Deserialize;

    #[derive(Deserialize)]
    pub(super) struct PurpurProject {
        pub(super) versions: Vec<String>,
    }

    #[derive(Deserialize)]
    pub(super) struct PurpurVersion {
        pub(super) builds: PurpurBuilds,
    }

    #[derive(Deserialize)]
    pub(super) struct PurpurBuilds {
        pub(super) all: Vec<PurpurBuild>,
    }

    #[derive(Deserialize)]
    pub(super) struct PurpurBuild {
        #[serde(rename = "build")]
        pub(super) number: String,
        pub(super) result: String,
        /// Milliseconds.
        pub(super) timestamp: i64,
        pub(super) metadata: Option<Metadata>,
        pub(super) md5: Option<String>,
    }

    #[derive(Deserialize)]
    pub(super) struct Metadata {
        #[serde(rename = "type")]
        pub(super) kind: Option<String>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builds(all: &str) -> Result<FillBuilds, FetchError> {
        let (upstreams, version) = (Upstreams::default(), "26.2".parse().unwrap());
        let body = format!(r#"{{"project":"purpur","version":"26.2","builds":{{"latest":null,"all":{all}}}}}"#);
        parse_builds(&builds_url(&upstreams, &version), &upstreams, &version, body.as_bytes())
    }

    #[test]
    fn purpur_versions_are_sorted_and_invalid_ones_skipped() {
        let url = versions_url(&Upstreams::default());
        let read = |body: &str| parse_versions(&url, body.as_bytes());
        let listed = read(
            r#"{"project":"purpur","metadata":{"current":"26.2"},"versions":["1.15","1.14.1","26.2","26.2 ",""]}"#,
        );
        let listed = listed.unwrap();
        let names: Vec<&str> = listed.iter().map(|listed| listed.minecraft.as_str()).collect();
        assert_eq!(names, ["1.14.1", "1.15", "26.2"]);
        for nothing in ["[]", r#"[""]"#] {
            let hollow = read(&format!(r#"{{"versions":{nothing}}}"#)).unwrap_err();
            assert_eq!(hollow.category(), "hollow");
        }
    }

    #[test]
    fn purpur_failed_build_is_only_counted() {
        let md5 = "9E107D9D372BB6826BD81D3542A419D6";
        let all = format!(
            r#"[{{"build":"2621","result":"SUCCESS","timestamp":1760000000000,"metadata":{{}},"md5":"{md5}","commits":[]}},
                {{"build":"2622","result":"FAILURE","timestamp":1760000100000,"metadata":{{}},"md5":null}},
                {{"build":"2620","result":"SUCCESS","timestamp":1759999999000}},
                {{"build":"nightly","result":"SUCCESS","timestamp":1760000000000,"md5":"{md5}"}}]"#
        );
        let read = builds(&all).unwrap();
        assert_eq!(read.numbers, [2620, 2621, 2622]);
        let parsed: Vec<_> = read.builds.iter().map(|build| (build.number, build.file.hash.clone())).collect();
        assert_eq!(parsed, [(2620, None), (2621, Some(format!("md5:{}", md5.to_lowercase())))]);
        let build = &read.builds[1];
        assert_eq!(build.published, "2025-10-09T08:53:20Z".parse().unwrap());
        assert_eq!(build.file.name, "purpur-26.2-2621.jar");
        assert_eq!(build.file.url, "https://api.purpurmc.org/v2/purpur/26.2/2621/download");
    }

    #[test]
    fn purpur_experimental_build_is_least_stable() {
        let channel = |metadata: &str| {
            let all = format!(r#"[{{"build":"1","result":"SUCCESS","timestamp":0,"metadata":{metadata}}}]"#);
            builds(&all).unwrap().builds[0].channel
        };
        assert_eq!(channel("{}"), BuildChannel::Stable);
        assert_eq!(channel("null"), BuildChannel::Stable);
        assert_eq!(channel(r#"{"by":"hand"}"#), BuildChannel::Stable);
        assert_eq!(channel(r#"{"type":"experimental"}"#), BuildChannel::Alpha);
        assert_eq!(channel(r#"{"type":"a-later-word"}"#), BuildChannel::Alpha);
    }

    #[test]
    fn purpur_build_numbers_alone_are_unreadable_with_url() {
        let error = builds(r#"["2620","2621"]"#).unwrap_err();
        assert_eq!(error.category(), "unreadable");
        assert!(error.to_string().contains("https://api.purpurmc.org/v2/purpur/26.2?detailed=true"), "{error}");
    }
}
