//! Pure. JARs in `plugins` that people put there themselves: as the agent reports them, for the status and the solve.

use std::collections::BTreeMap;

use crds::paper_mc_server::UnmanagedFile;
use scheduler::protocol::{Report, UnmanagedJar};

use crate::chain::cut;

/// As many as the schema lets in. One more would change nothing: these hold a new Minecraft version as well.
const MOST: usize = 30;

/// As many names of one JAR as the schema lets in.
const MOST_NAMES: usize = 4;

/// The JARs of a report, by file. An agent of an older version names them only: they count, and nobody can vouch for them.
pub(crate) fn strangers(report: &Report) -> Vec<UnmanagedFile> {
    let names = report.unmanaged.iter().map(|file| (file, None));
    let told = report.unmanaged_jars.iter().map(|jar| (&jar.file, Some(jar)));
    let by_file: BTreeMap<&String, Option<&UnmanagedJar>> = names.chain(told).collect();
    let text = |text: &String| cut(text, 64);
    let file = |(file, jar): (&String, Option<&UnmanagedJar>)| UnmanagedFile {
        file: cut(file, 253),
        sha256: jar.map(|jar| text(&jar.sha256)),
        name: jar.and_then(|jar| jar.name.as_ref()).map(text),
        version: jar.and_then(|jar| jar.version.as_ref()).map(text),
        provides: jar.iter().flat_map(|jar| &jar.provides).take(MOST_NAMES).map(text).collect(),
    };
    let mut files: Vec<UnmanagedFile> = by_file.into_iter().map(file).collect();
    // A list keyed by file: the API server refuses the whole status if one stands twice.
    files.dedup_by(|a, b| a.file == b.file);
    files.truncate(MOST);
    files
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(more: &serde_json::Value) -> Report {
        let mut report = json!({
            "at": "2026-01-21T12:00:00Z", "podUid": "uid", "server": {"state": "absent"}, "lock": null,
            "players": {"who": "nobody"}, "world": {"floor": null, "whole": true},
        });
        report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn what_an_older_agent_names_only_counts_without_a_hash() {
        let sha256 = "ab".repeat(32);
        let new = report(&json!({
            "unmanaged": ["Shop.jar", "a.jar"],
            "unmanagedJars": [{"file": "Shop.jar", "sha256": sha256, "name": "Shop", "provides": ["Economy"]}],
        }));
        let found = strangers(&new);
        let shown: Vec<_> = found.iter().map(|file| (file.file.as_str(), file.sha256.as_deref())).collect();
        assert_eq!(shown, [("Shop.jar", Some(sha256.as_str())), ("a.jar", None)]);
        assert_eq!(
            (found[0].name.as_deref(), found[0].provides.as_slice()),
            (Some("Shop"), ["Economy".to_owned()].as_slice())
        );
        assert_eq!(strangers(&report(&json!({"unmanaged": ["Shop.jar"]})))[0].sha256, None);
        assert_eq!(strangers(&report(&json!({}))), []);
    }

    #[test]
    fn no_more_are_kept_than_the_status_takes() {
        let files: Vec<String> = (0..150).map(|number| format!("{number:0>300}.jar")).collect();
        let found = strangers(&report(&json!({"unmanaged": files})));
        assert!(found.len() <= MOST && found.iter().all(|file| file.file.len() <= 253), "{}", found.len());
    }
}
