//! Pure. Answers the questions of the explanations about unmanaged JARs.

use std::collections::BTreeSet;

use super::CandidateIndex;
use super::candidates::PluginCandidates;
use super::chosen::Chosen;
use super::dependency_targets::find_project;
use super::identified_jars::{FileCompatibility, identified_files};
use super::provided_names::DeclaredNames;
use super::unmanaged_dependencies::{MissingDependency, needs_by_page};
use super::version_bounds::BoundContext;
use crate::model::catalog::Release;
use crate::model::gap::Gap;
use crate::model::unusable::Unusable;

impl CandidateIndex<'_> {
    /// The incompatibilities of a release with unmanaged JARs. For a release that was chosen they do not block it,
    /// because the conflict exists already.
    pub(crate) fn file_conflicts(&self, at: usize, position: usize) -> Vec<Unusable> {
        let catalog = self.eligibility_table.catalog;
        let positions = |which: &dyn Fn(&PluginCandidates<'_>) -> bool| -> BTreeSet<usize> {
            let members = self.plugins.iter().filter(|member| which(member));
            members.filter_map(|member| find_project(catalog, &member.project.key)).collect()
        };
        let files = identified_files(catalog, self.request, &positions(&|member| member.is_wanted()));
        let PluginCandidates { project, rules, releases, .. } = &*self.plugins[at];
        let Some(project_position) = find_project(catalog, &project.key).filter(|_| !files.is_empty()) else {
            return Vec::new();
        };
        let requested = positions(&|member| member.requested_by.is_some());
        let context = BoundContext::new(self.request, &requested, rules.requires);
        let releases: Vec<&Release> = releases.iter().map(|candidate| candidate.release).collect();
        let all = files
            .iter()
            .map(|file| FileCompatibility::new(file, (catalog, self.now), (project_position, &releases), &context));
        all.filter_map(|compatibility| compatibility.conflict(releases[position])).collect()
    }

    /// The requirements of the files' pages that are missing with these releases, too.
    pub(crate) fn missing_dependencies(&self, chosen: &Chosen) -> BTreeSet<MissingDependency<'_>> {
        let (catalog, request) = (self.eligibility_table.catalog, self.request);
        if request.unmanaged.is_empty() {
            return BTreeSet::new();
        }
        let requested_plugins = self.plugins.iter().filter(|plugin| plugin.requested_by.is_some());
        let requested: BTreeSet<usize> =
            requested_plugins.filter_map(|plugin| find_project(catalog, &plugin.project.key)).collect();
        let files = identified_files(catalog, request, &requested);
        let context = BoundContext::new(request, &requested, None);
        // All projects were read before the index was built.
        let mut needs = needs_by_page(
            &mut self.eligibility_table.for_changed_request(),
            request,
            (&files, &context),
            &mut Gap::default(),
        );
        needs.retain(|need| need.project.is_some() && !need.is_met_by_unmanaged(catalog, request, &files));
        if needs.is_empty() {
            return BTreeSet::new();
        }
        // A requested plugin that is not chosen now is reported elsewhere.
        for (plugin, release) in self.plugins.iter().zip(&chosen.releases) {
            if plugin.requested_by.is_some() || release.is_some() {
                let declared = DeclaredNames::from_jars(plugin.project, &plugin.rules.jars);
                needs.retain(|need| !need.is_met_by(plugin.project, &declared));
            }
        }
        // A project that is missing at the source of a page is assumed to be installed, as everywhere.
        let missing = needs.into_iter().filter_map(|need| Some((need.file, need.project?)));
        missing
            .map(|(file, project)| MissingDependency { file, plugin: &project.name, project: &project.key })
            .collect()
    }
}
