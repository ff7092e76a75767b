//! Pure. Limits a catalog to what was published when releases were last looked for.

use std::borrow::Cow;

use jiff::Timestamp;

use super::catalog::{Catalog, PaperVersion};
use super::request::{Request, Running};
use super::software::Software;

/// The earliest of the last checks of these requests. `None` if all of them look for releases continuously.
pub fn earliest_check<'r>(requests: impl IntoIterator<Item = &'r Request>) -> Option<Timestamp> {
    requests.into_iter().filter_map(|request| request.checked_at).min()
}

impl Catalog {
    /// The catalog as these requests, which are solved together, know it: without the builds, releases and images that
    /// were published after the earliest of their last checks. Builds and releases that run stay.
    pub fn as_checked(&self, requests: &[Request]) -> Cow<'_, Self> {
        let Some(checked_at) = earliest_check(requests) else { return Cow::Borrowed(self) };
        let running: Vec<&Running> = requests.iter().filter_map(|request| request.running.as_ref()).collect();
        let mut catalog = self.clone();
        retain_builds(Software::Paper, &mut catalog.paper, &running, checked_at);
        for (software, other) in &mut catalog.others {
            retain_builds(*software, &mut other.versions, &running, checked_at);
        }
        for project in &mut catalog.projects {
            project.releases.retain(|release| {
                release.published.is_none_or(|published| published <= checked_at)
                    || running.iter().any(|running| running.runs_release(release))
            });
        }
        catalog.images.retain(|image| image.pushed <= checked_at);
        Cow::Owned(catalog)
    }
}

fn retain_builds(software: Software, versions: &mut [PaperVersion], running: &[&Running], checked_at: Timestamp) {
    for PaperVersion { minecraft, builds, .. } in versions {
        builds.retain(|build| {
            build.published <= checked_at
                || running.iter().any(|running| running.is_build(software, minecraft, build.number))
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CHECKED_AT: &str = "2026-01-10T03:00:00Z";

    fn catalog() -> Catalog {
        let file = |name: &str| json!({"name": name, "url": "https://example.org/a.jar", "size": 1, "hash": format!("sha256:{}", "ab".repeat(32))});
        let build = |number: u32, published: &str| json!({"number": number, "channel": "STABLE", "published": published, "file": file("paper.jar")});
        let release = |id: &str, published: &str| {
            json!({
                "id": id, "version": id, "published": published, "channel": "release", "minecraft": ["1.21.10"],
                "loaders": ["paper"], "file": file("claims.jar"),
            })
        };
        let (before, after) = (CHECKED_AT, "2026-01-10T03:00:01Z");
        let catalog = json!({
            "paper": [{"minecraft": "1.21.10", "java": 21, "builds": [build(1, before), build(2, after), build(3, after)]}],
            "paperReadAt": after,
            "projects": [{
                "key": {"source": "modrinth", "project": "claims"}, "id": "c", "name": "Claims", "readAt": after,
                "releases": [release("1", before), release("2", after), release("3", after)],
            }],
        });
        serde_json::from_value(catalog).unwrap()
    }

    fn request(checked_at: Option<&str>) -> Request {
        let request = json!({
            "server": "games/lobby", "paper": {"strategy": "auto"}, "delay": "PT0S", "channel": "STABLE", "plugins": [],
            "running": {"minecraft": "1.21.10", "build": 2, "releases": ["2"]}, "checkedAt": checked_at,
        });
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn releases_after_last_check_are_unknown_unless_they_run() {
        let catalog = catalog();
        let known = |requests: &[Request]| {
            let known = catalog.as_checked(requests).into_owned();
            let builds: Vec<u32> = known.paper[0].builds.iter().map(|build| build.number).collect();
            let releases = known.projects[0].releases.iter().map(|release| release.id.clone()).collect::<String>();
            (builds, releases)
        };
        assert_eq!(known(&[request(Some(CHECKED_AT))]), (vec![1, 2], "12".to_owned()));
        assert_eq!(
            known(&[request(Some("2026-01-11T03:00:00Z")), request(Some(CHECKED_AT))]).0,
            [1, 2],
            "the earliest counts"
        );
        assert!(matches!(catalog.as_checked(&[request(None)]), Cow::Borrowed(_)));
    }
}
