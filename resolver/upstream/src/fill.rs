//! Edge (reads). Fill v3, PaperMC's build service: reads the builds of Paper and of other software.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::http::parse;
use super::project_page::format_hash;
use super::rows::read_row;
use super::{FetchError, Upstream, Upstreams};
use resolver::model::catalog::{Artifact, Build, BuildChannel};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;

/// One entry of `/projects/{project}/versions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) minecraft: Minecraft,
    pub(super) java: Option<u32>,
    pub(super) jvm_flags: Vec<String>,
    pub(super) unsupported: bool,
    /// Build numbers, ascending. Fill returns them in no defined order. `None` means that the list does not name them.
    pub(super) builds: Option<Vec<u32>>,
}

/// `/projects/{project}/versions/{version}/builds`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FillBuilds {
    /// All build numbers in the response, usable or not, ascending. They are compared with [`Listed::builds`], where
    /// the list names any.
    pub(super) numbers: Vec<u32>,
    /// Builds with a server JAR, by number, ascending.
    pub(super) builds: Vec<Build>,
}

pub(super) fn versions_url(upstreams: &Upstreams, software: Software) -> reqwest::Url {
    upstreams.url(Upstream::Fill, &["projects", software.project(), "versions"], &[])
}

pub(super) fn builds_url(upstreams: &Upstreams, software: Software, version: &Minecraft) -> reqwest::Url {
    upstreams.url(Upstream::Fill, &["projects", software.project(), "versions", version.as_str(), "builds"], &[])
}

/// The versions in a response, oldest first, at least one.
pub(super) fn parse_versions(url: &reqwest::Url, body: &[u8]) -> Result<Vec<Listed>, FetchError> {
    let listed = read_versions(&parse(Upstream::Fill, url, body)?);
    if listed.is_empty() {
        // Every software has at least one version. An empty list would remove the version of every server.
        return Err(FetchError::NoUsableEntry { upstream: Upstream::Fill, url: url.to_string(), rows: 0 });
    }
    Ok(listed)
}

/// The builds in a response.
pub(super) fn parse_builds(url: &reqwest::Url, body: &[u8]) -> Result<FillBuilds, FetchError> {
    Ok(read_builds(&parse::<Vec<Value>>(Upstream::Fill, url, body)?))
}

fn read_versions(answer: &wire::FillVersions) -> Vec<Listed> {
    let mut listed: Vec<Listed> = answer
        .versions
        .iter()
        .filter_map(|row| {
            let entry: wire::FillEntry = readable(row)?;
            let java = entry.version.java.unwrap_or_default();
            let mut builds = entry.builds;
            builds.sort_unstable();
            builds.dedup();
            Some(Listed {
                minecraft: entry.version.id.parse().ok()?,
                java: java.version.minimum,
                jvm_flags: java.flags.recommended,
                unsupported: entry.version.support.status.as_deref() == Some("UNSUPPORTED"),
                builds: Some(builds),
            })
        })
        .collect();
    listed.sort_by(|a, b| a.minecraft.cmp(&b.minecraft));
    listed.dedup_by(|a, b| a.minecraft == b.minecraft);
    listed
}

fn read_builds(answer: &[Value]) -> FillBuilds {
    let number = |row: &Value| u32::try_from(row.get("id")?.as_u64()?).ok();
    let mut numbers: Vec<u32> = answer.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut builds: Vec<Build> = answer.iter().filter_map(|row| read_build(readable(row)?)).collect();
    builds.sort_by_key(|build| build.number);
    builds.dedup_by_key(|build| build.number);
    FillBuilds { numbers, builds }
}

/// A row, or `None` for an unreadable one, which costs only one version or build.
fn readable<T: DeserializeOwned>(row: &Value) -> Option<T> {
    let read = read_row(row, &["id"]);
    if let Err(unreadable) = &read {
        tracing::warn!(?unreadable, "PaperMC Fill sent an unreadable entry");
    }
    read.ok()
}

/// `None` for a build without a server JAR.
fn read_build(build: wire::FillBuild) -> Option<Build> {
    let file = build.downloads.server?;
    Some(Build {
        number: build.id,
        published: build.time,
        channel: match build.channel.as_str() {
            "RECOMMENDED" => BuildChannel::Recommended,
            "STABLE" => BuildChannel::Stable,
            "BETA" => BuildChannel::Beta,
            // ALPHA, and every unknown channel: users have to request the least stable channel to get such a build.
            _ => BuildChannel::Alpha,
        },
        file: Artifact {
            hash: format_hash("sha256", 32, file.checksums.sha256.as_deref()),
            name: file.name,
            url: file.url,
            size: file.size,
        },
    })
}

/// Response format of Fill, reduced to the fields that are used.
mod wire {
    use jiff::Timestamp;
    use serde::Deserialize;
    use serde_json::Value;

    #[derive(Deserialize)]
    pub(super) struct FillVersions {
        pub(super) versions: Vec<Value>,
    }

    #[derive(Deserialize)]
    pub(super) struct FillEntry {
        pub(super) version: FillVersion,
        #[serde(default)]
        pub(super) builds: Vec<u32>,
    }

    #[derive(Deserialize)]
    pub(super) struct FillVersion {
        pub(super) id: String,
        #[serde(default)]
        pub(super) support: Support,
        pub(super) java: Option<Java>,
    }

    #[derive(Deserialize, Default)]
    pub(super) struct Support {
        pub(super) status: Option<String>,
    }

    #[derive(Deserialize, Default)]
    pub(super) struct Java {
        #[serde(default)]
        pub(super) version: JavaVersion,
        #[serde(default)]
        pub(super) flags: FillFlags,
    }

    #[derive(Deserialize, Default)]
    pub(super) struct JavaVersion {
        pub(super) minimum: Option<u32>,
    }

    #[derive(Deserialize, Default)]
    pub(super) struct FillFlags {
        #[serde(default)]
        pub(super) recommended: Vec<String>,
    }

    #[derive(Deserialize)]
    pub(super) struct FillBuild {
        pub(super) id: u32,
        pub(super) time: Timestamp,
        pub(super) channel: String,
        pub(super) downloads: FillDownloads,
    }

    #[derive(Deserialize)]
    pub(super) struct FillDownloads {
        #[serde(rename = "server:default")]
        pub(super) server: Option<FillFile>,
    }

    #[derive(Deserialize)]
    pub(super) struct FillFile {
        pub(super) name: String,
        pub(super) url: String,
        pub(super) size: Option<u64>,
        #[serde(default)]
        pub(super) checksums: Checksums,
    }

    #[derive(Deserialize, Default)]
    pub(super) struct Checksums {
        pub(super) sha256: Option<String>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_versions_and_builds_are_sorted() {
        let text = r#"{"versions":[
            {"version":{"id":"1.21.10","support":{"status":"SUPPORTED"},
              "java":{"version":{"minimum":21},"flags":{"recommended":["-XX:+UseG1GC"]}}},"builds":[130,61,99]},
            {"version":{"id":"1.21.9-rc1","support":{"status":"UNSUPPORTED","end":"2025-09-29"}},"builds":[]},
            {"version":{"id":"1.8.8","support":{"status":"WHATEVER"}},"builds":[1]}]}"#;
        let listed = read_versions(&serde_json::from_str(text).unwrap());
        let parsed: Vec<_> =
            listed.iter().map(|l| (l.minecraft.as_str(), l.java, l.unsupported, l.builds.clone())).collect();
        assert_eq!(
            parsed,
            [
                ("1.8.8", None, false, Some(vec![1])),
                ("1.21.9-rc1", None, true, Some(vec![])),
                ("1.21.10", Some(21), false, Some(vec![61, 99, 130]))
            ]
        );
        assert_eq!(listed[2].jvm_flags, ["-XX:+UseG1GC"]);
    }

    #[test]
    fn fill_unreadable_entry_costs_one_version_or_build() {
        let text = r#"{"versions":[{"version":{"id":"1.21.10"},"builds":[1]},{"version":{"id":"1.21.9"},"builds":"1"},
            {"version":null},7]}"#;
        let listed = read_versions(&serde_json::from_str(text).unwrap());
        assert_eq!(listed.iter().map(|listed| listed.minecraft.as_str()).collect::<Vec<_>>(), ["1.21.10"]);
        let good = |id: u32| {
            format!(
                r#"{{"id":{id},"time":"2026-01-02T00:00:00Z","channel":"STABLE","downloads":{{"server:default":
                     {{"name":"p.jar","url":"https://x/p.jar","size":7,"checksums":{{}}}}}}}}"#
            )
        };
        let text = format!(r#"[{},{{"id":8,"time":"yesterday","channel":"STABLE","downloads":{{}}}},{{}}]"#, good(9));
        let builds = read_builds(&serde_json::from_str::<Vec<Value>>(&text).unwrap());
        assert_eq!((builds.numbers, builds.builds.len()), (vec![8, 9], 1));
    }

    #[test]
    fn fill_build_of_unknown_channel_is_least_stable() {
        let sha = "ab".repeat(32);
        let text = format!(
            r#"[{{"id":9,"time":"2026-01-02T00:00:00Z","channel":"NIGHTLY","downloads":{{"server:default":
                 {{"name":"p.jar","url":"https://x/p.jar","size":7,"checksums":{{"sha256":"{sha}"}}}}}}}},
                {{"id":8,"time":"2026-01-01T00:00:00Z","channel":"STABLE","downloads":{{}}}}]"#
        );
        let builds = read_builds(&serde_json::from_str::<Vec<Value>>(&text).unwrap());
        assert_eq!(builds.numbers, [8, 9]);
        assert_eq!(builds.builds.len(), 1);
        assert_eq!((builds.builds[0].number, builds.builds[0].channel), (9, BuildChannel::Alpha));
        assert_eq!(builds.builds[0].file.hash, Some(format!("sha256:{sha}")));
    }
}
