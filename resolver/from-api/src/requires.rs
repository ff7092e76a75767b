//! Pure. Reads `spec.requires` of a Plugin: the user's constraints on its versions and those of other plugins.

use crds::plugin::RequiredPlugin;

use super::ManifestViolations;
use resolver::model::compatibility_facts::Requirement;
use resolver::model::version::range::NotARange;

impl ManifestViolations {
    /// An error is reported for every entry that is left out.
    pub(super) fn requires(&mut self, written: &[RequiredPlugin]) -> Vec<Requirement> {
        let mut requires: Vec<Requirement> = Vec::new();
        for (at, RequiredPlugin { plugin, version }) in written.iter().enumerate() {
            let path = |field: &str| format!("spec.requires[{at}].{field}");
            let plugin = plugin.trim();
            if plugin.is_empty() {
                self.report(&path("plugin"), "is empty", "write the name of the plugin it needs, such as `WorldEdit`");
                continue;
            }
            if requires.iter().any(|other| other.plugin.eq_ignore_ascii_case(plugin)) {
                let fix = "write one line for it, with a comma between its conditions: `>=7.4, <7.5`";
                self.report(&path("plugin"), format!("names `{plugin}` a second time"), fix);
                continue;
            }
            match version.parse() {
                Ok(version) => requires.push(Requirement { plugin: plugin.to_owned(), version }),
                Err(error) => self.range(&path("version"), &error),
            }
        }
        requires
    }

    fn range(&mut self, path: &str, error: &NotARange) {
        let (problem, fix) = range_error(error);
        self.report(path, problem, fix);
    }
}

/// The error in a version range, and how to fix it.
pub fn range_error(error: &NotARange) -> (String, String) {
    let fix = match error.accepted_spelling() {
        Some(spelling) => format!("write `{spelling}`"),
        None => "write conditions with commas between them, such as `>=7.4, <7.5`".to_owned(),
    };
    // The lines that point to the error come last: every report of an error ends with its fix.
    (format!("is not a version range: {}", error.kind()), format!("{fix}\n{}", error.with_marker()))
}
