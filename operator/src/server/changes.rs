//! Pure. Compares two locks and renders the differences for a plan.

use std::collections::BTreeSet;

use resolver::model::lock::{Lock, LockedPlugin};
use resolver::model::software::PaperName;

/// One line of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerChange {
    /// Name of the package, such as `Paper` or `ViaVersion`.
    pub(crate) package: String,
    /// `None` if it is new.
    pub(crate) from: Option<String>,
    /// `None` if it is removed.
    pub(crate) to: Option<String>,
    /// The world cannot be downgraded afterwards.
    pub(crate) one_way: bool,
}

/// Why the pod template differs although the version set is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateChange {
    /// Settings in the spec or of the operator.
    Settings,
    /// Another agent, in this image.
    Agent { image: String },
    /// The same agent, in this image of another repository.
    AgentImage { image: String },
}

impl TemplateChange {
    /// The change as a line of a plan.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Settings => "settings of the pod".to_owned(),
            Self::Agent { image } => format!("another version of the agent in the pod ({image})"),
            Self::AgentImage { image } => format!("another image of the agent in the pod ({image})"),
        }
    }
}

/// All differences: Paper first, then plugins by name. Empty for equal sets. Without `from`, everything is new.
pub(crate) fn diff_locks(from: Option<&Lock>, to: &Lock) -> Vec<ServerChange> {
    let build = |paper: &PaperName| format!("{}-{}", paper.minecraft, paper.build);
    let (paper, plugins) = if let Some(from) = from {
        let difference = from.difference(to);
        let paper = difference.paper.map(|change| ServerChange {
            package: "Paper".to_owned(),
            from: Some(build(&change.from)),
            to: Some(build(&change.to)),
            one_way: change.one_way,
        });
        (paper, difference.plugins)
    } else {
        let package = "Paper".to_owned();
        let paper = ServerChange { package, from: None, to: Some(build(&to.paper_name())), one_way: false };
        (Some(paper), Lock { plugins: Vec::new(), ..to.clone() }.difference(to).plugins)
    };
    let plugins = plugins.into_iter().map(|change| ServerChange {
        package: change.name,
        from: change.from.map(|release| release.version),
        to: change.to.map(|release| release.version),
        one_way: false,
    });
    paper.into_iter().chain(plugins).collect()
}

/// Whether two locks have the same server JAR, by name and build.
pub(super) fn is_same_paper(a: &Lock, b: &Lock) -> bool {
    (a.software, &a.minecraft, a.build) == (b.software, &b.minecraft, b.build)
}

/// Whether both are the same plugin, of any release.
pub(super) fn is_same_project(a: &LockedPlugin, b: &LockedPlugin) -> bool {
    a.key.source == b.key.source && a.project_id == b.project_id
}

/// Whether both are the same release of one plugin, with the same JARs.
pub(super) fn is_same_release(a: &LockedPlugin, b: &LockedPlugin) -> bool {
    a.release_id == b.release_id && has_same_files(a, b)
}

fn has_same_files(a: &LockedPlugin, b: &LockedPlugin) -> bool {
    let hashes = |plugin: &LockedPlugin| plugin.files().map(|file| file.hash.clone()).collect::<BTreeSet<_>>();
    hashes(a) == hashes(b)
}

/// For example `Paper 1.21.10-130 -> 1.21.11-132 (one-way), ViaVersion 5.6.0 -> 5.7.1`. For equal locks the text is `settings of the pod`,
/// because only the template differs then.
pub(crate) fn format_changes(changes: &[ServerChange]) -> String {
    if changes.is_empty() {
        return TemplateChange::Settings.describe();
    }
    let parts = changes.iter().map(|change| {
        let one_way = if change.one_way { " (one-way)" } else { "" };
        match (&change.from, &change.to) {
            (Some(from), Some(to)) if from == to => format!("{} {to} (other files)", change.package),
            (Some(from), Some(to)) => format!("{} {from} -> {to}{one_way}", change.package),
            (None, Some(to)) => format!("{} {to} (new)", change.package),
            (Some(from), None) => format!("{} {from} (removed)", change.package),
            (None, None) => change.package.clone(),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use resolver::model::catalog::ProjectKey;
    use resolver::model::catalog::Source;
    use resolver::model::lock::FormatVersion;
    use resolver::model::lock::LockReason;
    use resolver::model::lock::LockedFile;

    use super::*;

    fn file(hash: &str) -> LockedFile {
        LockedFile { name: "x.jar".to_owned(), url: String::new(), size: None, hash: hash.to_owned() }
    }

    fn plugin(name: &str, version: &str) -> LockedPlugin {
        LockedPlugin {
            name: name.to_owned(),
            key: ProjectKey { source: Source::Modrinth, project: name.to_lowercase() },
            project_id: format!("id-{name}"),
            release_id: format!("{name}-{version}"),
            version: version.to_owned(),
            file: file(version),
            more: Vec::new(),
            reason: LockReason::RequestedBy(vec![name.to_lowercase()]),
        }
    }

    fn lock(minecraft: &str, build: u32, plugins: Vec<LockedPlugin>) -> Lock {
        Lock {
            software: resolver::model::software::Software::Paper,
            format_version: FormatVersion::default(),
            server: "games/lobby".to_owned(),
            minecraft: minecraft.parse().unwrap(),
            build,
            java: 21,
            image: None,
            paper: file("paper"),
            jvm_flags: Vec::new(),
            plugins,
            facts: Vec::new(),
            bounds: Vec::new(),
            guesses: Vec::new(),
            image_java: None,
        }
    }

    #[test]
    fn change_summary_lists_paper_first_and_marks_one_way() {
        let from = lock("1.21.10", 130, vec![plugin("ViaVersion", "5.6.0"), plugin("Old", "1")]);
        let to = lock("1.21.11", 132, vec![plugin("ViaVersion", "5.7.1"), plugin("Chat", "2")]);
        assert_eq!(
            format_changes(&diff_locks(Some(&from), &to)),
            "Paper 1.21.10-130 -> 1.21.11-132 (one-way), Chat 2 (new), Old 1 (removed), ViaVersion 5.6.0 -> 5.7.1"
        );
    }

    #[test]
    fn change_summary_includes_extra_file_of_same_release() {
        let from = lock("1.21.10", 130, vec![plugin("EssentialsX", "2.21.0")]);
        let mut to = from.clone();
        to.plugins[0].more.push(file("chat"));
        for (from, to) in [(&from, &to), (&to, &from)] {
            assert_eq!(format_changes(&diff_locks(Some(from), to)), "EssentialsX 2.21.0 (other files)");
        }
    }

    #[test]
    fn change_summary_includes_other_file_of_same_paper_build() {
        let from = lock("1.21.10", 130, Vec::new());
        let to = Lock { paper: file("again"), ..from.clone() };
        assert_eq!(format_changes(&diff_locks(Some(&from), &to)), "Paper 1.21.10-130 (other files)");
        assert_eq!(format_changes(&diff_locks(None, &to)), "Paper 1.21.10-130 (new)");
    }

    #[test]
    fn change_summary_of_newer_build_is_not_one_way() {
        let from = lock("1.21.10", 129, Vec::new());
        let to = lock("1.21.10", 130, Vec::new());
        assert_eq!(format_changes(&diff_locks(Some(&from), &to)), "Paper 1.21.10-129 -> 1.21.10-130");
        assert!(diff_locks(Some(&to), &to).is_empty());
    }
}
