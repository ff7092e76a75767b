//! Pure. Converts the unmanaged JARs of the agent's report for the solve and the status, and compares them with the files of a lock.

use std::collections::BTreeMap;

use agent_api::{AgentReport, FileSet, UnmanagedJar};
use crds::PaperMCServerSpec;
use crds::paper_mc_server::UnmanagedFile;
use resolver::model::api_version::ApiVersion;
use resolver::model::name_conflict::{JarNameConflict, find_unmanaged_conflicts};

use crate::error_chain::cut;

/// Maximum number of JARs in the status. A spec cannot list more either.
const MAX_JARS: usize = 100;

/// Maximum number of provided names of a JAR in the status.
const MAX_PROVIDED_NAMES: usize = 2;

/// Maximum number of required names of a JAR in the status.
const MAX_REQUIRED_NAMES: usize = 4;

/// All unmanaged JARs of a report, by file. An agent of an older version reports names only: such JARs count, but `spec.unmanaged` cannot
/// cover them.
pub(crate) fn unmanaged_files(report: &AgentReport) -> Vec<UnmanagedFile> {
    let names = report.unmanaged.iter().map(|file| (file, None));
    let described = report.unmanaged_jars.iter().map(|jar| (&jar.file, Some(jar)));
    let by_file: BTreeMap<&String, Option<&UnmanagedJar>> = names.chain(described).collect();
    let text = |text: &String| cut(text, 64);
    let file = |(file, jar): (&String, Option<&UnmanagedJar>)| UnmanagedFile {
        file: cut(file, 253),
        sha256: jar.map(|jar| text(&jar.sha256)),
        sha512: jar.and_then(|jar| jar.sha512.as_ref()).map(|sha512| cut(sha512, 128)),
        name: jar.and_then(|jar| jar.name.as_ref()).map(text),
        provides: jar.iter().flat_map(|jar| &jar.provides).take(MAX_PROVIDED_NAMES).map(text).collect(),
        depend: jar.iter().flat_map(|jar| &jar.depend).take(MAX_REQUIRED_NAMES).map(text).collect(),
        api_version: jar.and_then(stated_api_version),
        java: jar.and_then(|jar| jar.java),
    };
    let mut files: Vec<UnmanagedFile> = by_file.into_iter().map(file).collect();
    // The list is keyed by file. The API server rejects the whole status if an entry occurs twice.
    files.dedup_by(|a, b| a.file == b.file);
    files
}

/// The text from which `from_api` reads the `api-version` again.
fn stated_api_version(jar: &UnmanagedJar) -> Option<String> {
    let stated = ApiVersion::new(jar.api_version.as_deref()?, jar.paper_plugin);
    Some(cut(&stated.to_string(), 64))
}

/// The JARs that the status keeps: all, or first those that `spec.unmanaged` does not cover. An omitted JAR then imposes no additional
/// limit, and `resolver explain` on the object agrees with the solve.
pub(crate) fn retained(mut files: Vec<UnmanagedFile>, spec: &PaperMCServerSpec) -> Vec<UnmanagedFile> {
    let vouched = |file: &UnmanagedFile| {
        file.sha256.as_ref().is_some_and(|sha256| spec.unmanaged.iter().any(|declared| declared.sha256 == *sha256))
    };
    files.sort_by_cached_key(vouched);
    files.truncate(MAX_JARS);
    files.sort_by(|a, b| a.file.cmp(&b.file));
    files
}

/// A name that both a file of the lock and an unmanaged JAR declare or provide. The server would load only one of them, and it is unknown
/// which. A JAR with the same declared name as a plugin of the lock is no conflict: it is displaced.
pub(crate) fn name_conflict(files: &FileSet, report: &AgentReport) -> Option<JarNameConflict> {
    let managed: Vec<(&str, Vec<&str>)> = (files.plugins.iter())
        .filter_map(|file| {
            let names = file.plugin.iter().chain(&file.provides).map(String::as_str).collect();
            Some((file.path.strip_prefix("plugins/")?, names))
        })
        .collect();
    let jars = report.unmanaged_jars.iter().filter_map(|jar| {
        let names = std::iter::once(jar.name.as_deref()?).chain(jar.provides.iter().map(String::as_str));
        Some((jar.file.as_str(), names.collect()))
    });
    let found = find_unmanaged_conflicts(&managed, &jars.collect::<Vec<_>>());
    let is_managed = |file: &String| managed.iter().any(|(managed, _)| managed == file);
    found.into_iter().find(|clash| clash.files.iter().any(is_managed))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(more: &serde_json::Value) -> AgentReport {
        let mut report = json!({
            "at": "2026-01-21T12:00:00Z", "podUid": "uid", "server": {"state": "absent"}, "lock": null,
            "players": {"who": "nobody"}, "world": {"floor": null, "whole": true},
        });
        report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(report).unwrap()
    }

    fn spec(more: &serde_json::Value) -> PaperMCServerSpec {
        let mut spec = json!({"updateStrategy": "auto"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn unmanaged_jar_of_older_agent_has_no_hash() {
        let sha256 = "ab".repeat(32);
        let new = report(&json!({
            "unmanaged": ["Shop.jar", "a.jar"],
            "unmanagedJars": [{"file": "Shop.jar", "sha256": sha256, "name": "Shop", "provides": ["Economy"], "depend": ["Vault"], "apiVersion": "1.21", "java": 21}],
        }));
        let found = unmanaged_files(&new);
        let shown: Vec<_> = found.iter().map(|file| (file.file.as_str(), file.sha256.as_deref())).collect();
        assert_eq!(shown, [("Shop.jar", Some(sha256.as_str())), ("a.jar", None)]);
        assert_eq!(
            (found[0].name.as_deref(), found[0].provides.as_slice()),
            (Some("Shop"), ["Economy".to_owned()].as_slice())
        );
        assert_eq!((found[0].api_version.as_deref(), found[0].java), (Some("1.21"), Some(21)));
        assert_eq!(found[0].depend, ["Vault"]);
        let paper_plugin = json!({"file": "Shop.jar", "sha256": sha256, "apiVersion": "1.21", "paperPlugin": true});
        let found = unmanaged_files(&report(&json!({"unmanagedJars": [paper_plugin]})));
        assert_eq!(found[0].api_version.as_deref(), Some("paper-plugin.yml 1.21"));
        assert_eq!(unmanaged_files(&report(&json!({"unmanaged": ["Shop.jar"]})))[0].sha256, None);
        assert_eq!(unmanaged_files(&report(&json!({}))), []);
    }

    #[test]
    fn unmanaged_jars_in_status_list_undeclared_first() {
        let jar = |number: usize| json!({"file": format!("{number:03}.jar"), "sha256": format!("{number:064}")});
        let jars: Vec<_> = (0..150).map(jar).collect();
        let declared: Vec<_> = (0..100)
            .map(|number| json!({"file": "x.jar", "sha256": format!("{number:064}"), "minecraftVersions": ["1.21.11"]}))
            .collect();
        let jars_found = unmanaged_files(&report(&json!({"unmanagedJars": jars})));
        assert_eq!(jars_found.len(), 150);
        let in_status = retained(jars_found, &spec(&json!({"unmanaged": declared})));
        assert_eq!(in_status.len(), MAX_JARS);
        assert!(in_status.is_sorted_by(|a, b| a.file < b.file));
        assert_eq!(in_status.iter().filter(|file| file.file.as_str() >= "100.jar").count(), 50, "{in_status:?}");
    }

    #[test]
    fn unmanaged_jar_text_is_cut_to_status_limits() {
        let long = format!("{}.jar", "0".repeat(300));
        let found = unmanaged_files(&report(&json!({
            "unmanaged": [long.clone(), format!("{long}x")],
            "unmanagedJars": [{"file": "a.jar", "sha256": "00", "name": long, "provides": ["A", "B", "C"]}],
        })));
        let [cut, a] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (cut.file.len(), a.name.as_ref().map(String::len), a.provides.len()),
            (253, Some(64), MAX_PROVIDED_NAMES)
        );
    }

    #[test]
    fn name_clash_of_lock_and_unmanaged_jar_is_found() {
        let files: FileSet = serde_json::from_value(json!({
            "lock": "0", "minecraft": "1.21.11", "build": 1, "dataVersion": 1, "support": [],
            "server": {"path": "s.jar", "hash": "sha256:0", "url": "http://localhost/s.jar"},
            "plugins": [
                {"path": "plugins/FAWE-2.jar", "hash": "sha256:0", "url": "http://localhost/f.jar", "plugin": "FAWE", "provides": ["WorldEdit"]},
                {"path": "plugins/Via-5.jar", "hash": "sha256:0", "url": "http://localhost/v.jar", "plugin": "Via"},
            ],
        }))
        .unwrap();
        let conflict_with = |jars: serde_json::Value| name_conflict(&files, &report(&json!({"unmanagedJars": jars})));
        let jar = |file: &str, name: &str, provides: &[&str]| json!({"file": file, "sha256": "00", "name": name, "provides": provides});
        let clash = conflict_with(json!([jar("worldedit.jar", "worldedit", &[])])).unwrap();
        assert_eq!(
            (clash.name.as_str(), clash.files),
            ("WorldEdit", vec!["FAWE-2.jar".into(), "worldedit.jar".into()])
        );
        assert!(conflict_with(json!([jar("fork.jar", "Fork", &["Via"])])).is_some());
        assert_eq!(
            conflict_with(json!([jar("old-via.jar", "via", &[])])),
            None,
            "it is displaced by the plugin of the lock"
        );
        // The JARs were there before, so the server continues as it did.
        assert_eq!(conflict_with(json!([jar("a.jar", "A", &[]), jar("b.jar", "B", &["A"])])), None);
    }
}
