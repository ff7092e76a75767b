//! Pure. Checks by the rules of `docs/concepts/solve.md` that a reported reason against a release or a Paper is true
//! and complete. The reason excludes the release if all other reasons are removed, and without it the release is
//! eligible.

use jiff::{SignedDuration, Timestamp};
use resolver::model::catalog::{Artifact, Channel, Project, Release};
use resolver::model::request::{Dependencies, PluginRequest, Unlisted, VersionRequest};
use resolver::model::unmanaged_jar::UnmanagedPlugins;
use resolver::model::unusable::Unusable;
use resolver::model::version::Minecraft;

use super::paper_rules::is_verifiable;
use super::problem::Problem;
use super::properties::objects_of;
use super::ready::{versions_mut, with_usable_paper};
use super::rules::ServerRules;
use super::software;

/// The reported reason why a release is excluded on a Paper.
#[derive(Clone, Copy)]
pub(super) enum ExclusionReason<'u> {
    /// Neither its list nor an override allows the release on this Paper.
    List,
    /// The release is ineligible.
    Unusable(&'u Unusable),
}

/// A release on a Paper.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'p> {
    pub(super) project: &'p Project,
    pub(super) release: &'p Release,
    pub(super) minecraft: &'p Minecraft,
}

impl<'p> Candidate<'p> {
    /// The release of this version and date. `None` if there are several, or if it is delisted.
    pub(super) fn find(
        problem: &'p Problem,
        plugin: &str,
        (version, published): (&str, Option<Timestamp>),
        minecraft: &'p Minecraft,
    ) -> Option<Self> {
        let project = problem.catalog.projects.iter().find(|project| project.name == plugin)?;
        let is_same = |release: &&Release| release.version == version && release.published == published;
        let mut found = project.releases.iter().filter(is_same);
        let release = found.next().filter(|_| found.next().is_none())?;
        Some(Self { project, release, minecraft })
    }

    /// Whether the release is usable and allowed on the Paper. `None` if that is unknown.
    pub(super) fn is_allowed(self, problem: &Problem) -> Option<bool> {
        let rules = ServerRules::new(&problem.catalog, &problem.request, problem.now).ok()?;
        let at = rules.members.iter().position(|member| member.project.id == self.project.id)?;
        let paper = rules.papers.iter().position(|paper| paper.minecraft == self.minecraft)?;
        let release = rules.members[at].usable.iter().find(|release| release.id == self.release.id);
        Some(release.is_some_and(|release| rules.meets_pin(at, release) && rules.is_listed(at, release, paper)))
    }

    /// Checks that exactly this reason excludes the release.
    pub(super) fn check_excluded_by(self, problem: &Problem, reason: ExclusionReason<'_>) -> Result<(), String> {
        let Self { project, release, minecraft } = self;
        let reason_text = || match reason {
            ExclusionReason::List => "its list".to_owned(),
            ExclusionReason::Unusable(unusable) => format!("{unusable:?}"),
        };
        let name = format!("{} {} on {minecraft}", project.name, release.version);
        if self.is_allowed(problem) == Some(true) {
            return Err(format!("{name} is allowed, but is reported as excluded by {}", reason_text()));
        }
        let Some(free) = self.without_other_reasons(problem, None) else { return Ok(()) };
        if self.is_allowed(&free) == Some(false) {
            return Err(format!("{name} is not allowed although all reasons that could exclude it are removed"));
        }
        let Some(restricted) = self.without_other_reasons(problem, Some(reason)) else { return Ok(()) };
        if self.is_allowed(&restricted) == Some(true) {
            return Err(format!("{name} is not excluded by {} alone", reason_text()));
        }
        if let ExclusionReason::Unusable(Unusable::Delayed { eligible_at, .. }) = reason {
            let at = |now: Timestamp| self.is_allowed(&Problem { now, ..restricted.clone() });
            if at(*eligible_at - SignedDuration::from_nanos(1)) == Some(true) || at(*eligible_at) == Some(false) {
                return Err(format!("{name} does not become eligible exactly at {eligible_at}"));
            }
        }
        Ok(())
    }

    /// The problem without all reasons that could exclude the release on this Paper, except `reason`. `None` if that
    /// depends on other plugins, which cannot be separated here.
    fn without_other_reasons(self, problem: &Problem, reason: Option<ExclusionReason<'_>>) -> Option<Problem> {
        use Unusable as U;
        let unusable = if let Some(ExclusionReason::Unusable(unusable)) = reason { Some(unusable) } else { None };
        let by_list = matches!(reason, Some(ExclusionReason::List));
        let mut free = with_usable_paper(problem, self.minecraft);
        let request = &mut free.request;
        request.plugins = self.plugin_requests(problem, unusable)?;
        let needs = matches!(unusable, Some(U::NeedsForbidden { .. } | U::NeedsProposed { .. }));
        let is_beside_file = matches!(unusable, Some(U::BesideFile { .. }));
        if !is_beside_file {
            request.unmanaged_plugins = UnmanagedPlugins::Ignore;
        }
        if !needs && !is_beside_file && !matches!(unusable, Some(U::NeedsUnknown { .. })) {
            request.facts = Vec::new().into();
            request.plugins.iter_mut().for_each(|plugin_request| plugin_request.requires.clear());
        }
        if !by_list {
            request.plugins.iter_mut().for_each(|plugin_request| plugin_request.compatibility = None);
        }
        if !matches!(unusable, Some(U::Unlisted)) {
            request.unlisted = Unlisted::Assume;
        }
        if !needs {
            request.dependencies = Dependencies::Install;
        }
        let stays = matches!(unusable, Some(U::Older { .. } | U::Held { .. }));
        if let Some(running) = request.running.as_mut().filter(|_| !stays) {
            running.releases.clear();
        }
        if let Some(U::Superseded { .. }) = unusable {
            // A superseded release is itself older than its delay.
            let eligible_at = request
                .plugins
                .iter()
                .filter_map(|plugin_request| self.release.published?.checked_add(plugin_request.delay).ok());
            free.now = eligible_at.max()?.max(free.now);
        }
        let runs = free.request.running.iter().flat_map(|running| &running.releases).cloned().collect::<Vec<_>>();
        let project = free.catalog.projects.iter_mut().find(|project| project.id == self.project.id)?;
        project.releases.retain(|other| {
            other.id == self.release.id
                || matches!(unusable, Some(U::Channel { .. }))
                || matches!(unusable, Some(U::Superseded { by }) if other.version == *by)
                || stays && runs.contains(&other.id)
        });
        let release = project.releases.iter_mut().find(|other| other.id == self.release.id)?;
        clear_defects(release, unusable, by_list);
        // A running release may be installed before its date.
        release.published = release.published.map(|published| published.min(free.now));
        Some(free)
    }

    /// The Plugins that request the project, without settings that could exclude the release. For an unrequested
    /// project, one Plugin that requests it with the terms of its dependents.
    fn plugin_requests(self, problem: &Problem, unusable: Option<&Unusable>) -> Option<Vec<PluginRequest>> {
        use Unusable as U;
        let objects = objects_of(problem, &self.project.name);
        let is_requester =
            |plugin_request: &&PluginRequest| objects.is_empty() || objects.contains(&plugin_request.object);
        let mut plugin_requests: Vec<PluginRequest> =
            problem.request.plugins.iter().filter(is_requester).cloned().collect();
        if objects.is_empty() {
            plugin_requests.truncate(1);
            let plugin_request = plugin_requests.first_mut()?;
            (plugin_request.key, plugin_request.jars, plugin_request.compatibility) =
                (self.project.key.clone(), Vec::new(), None);
            if let Some(U::Superseded { .. } | U::NeedsUnknown { .. } | U::DelayedWithCompanion { .. }) = unusable {
                return None;
            }
            if let Some(U::Delayed { delay, .. }) = unusable {
                plugin_request.delay = *delay;
            } else if let Some(U::Channel { allowed, .. }) = unusable {
                plugin_request.channel = *allowed;
            }
        }
        // Of several Plugins, the first without a pin decides. Its settings are copied to all others here.
        let mut others: Vec<&PluginRequest> = plugin_requests
            .iter()
            .filter(|plugin_request| !matches!(plugin_request.version, VersionRequest::Pin { .. }))
            .collect();
        others.sort_by_key(|plugin_request| &plugin_request.object);
        let decides = others.first().copied().or((plugin_requests.len() == 1).then(|| &plugin_requests[0]))?.clone();
        for plugin_request in &mut plugin_requests {
            let (object, jars, hold) =
                (plugin_request.object.clone(), plugin_request.jars.clone(), plugin_request.hold);
            *plugin_request = PluginRequest { object, jars, hold, ..decides.clone() };
            plugin_request.version = VersionRequest::Auto;
            if !matches!(unusable, Some(U::Delayed { .. } | U::Superseded { .. })) {
                plugin_request.delay = SignedDuration::ZERO;
            }
            if !matches!(unusable, Some(U::Channel { .. })) {
                plugin_request.channel = Channel::Alpha;
            }
            plugin_request.allow_downgrade = !matches!(unusable, Some(U::Older { .. }));
            if !matches!(unusable, Some(U::Held { .. })) {
                plugin_request.hold = None;
            }
            if !unusable.is_some_and(is_about_files) {
                plugin_request.jars.clear();
            }
            plugin_request.delay_together.clear();
        }
        // The other plugins of its group are requested too.
        if let Some(U::DelayedWithCompanion { object, .. }) = unusable {
            plugin_requests.clone_from(&problem.request.plugins);
            for plugin_request in plugin_requests.iter_mut().filter(|plugin_request| plugin_request.object != *object) {
                (plugin_request.delay, plugin_request.channel, plugin_request.version) =
                    (SignedDuration::ZERO, Channel::Alpha, VersionRequest::Auto);
                (plugin_request.allow_downgrade, plugin_request.hold) = (true, None);
            }
        }
        Some(plugin_requests)
    }
}

/// Removes the defects of a release itself, except one.
fn clear_defects(release: &mut Release, except: Option<&Unusable>, by_list: bool) {
    use Unusable as U;
    if !by_list && !matches!(except, Some(U::Unlisted)) {
        release.minecraft.clear();
    }
    if !matches!(except, Some(U::WrongSoftware { .. } | U::SoftwareUnsaid { .. })) {
        release.loaders.clear();
        release.folia = None;
        release.further.iter_mut().for_each(|jar| jar.folia = None);
    }
    if !matches!(except, Some(U::ApiVersion { .. } | U::ApiVersionRefused { .. })) {
        release.api_version = None;
        release.further.iter_mut().for_each(|jar| jar.api_version = None);
    }
    if !matches!(except, Some(U::JavaTooOld { .. } | U::JavaHeld { .. } | U::NoImage { .. })) {
        release.java = None;
        release.further.iter_mut().for_each(|jar| jar.java = None);
    }
    if !matches!(
        except,
        Some(U::NeedsUnread { .. } | U::NeedsForbidden { .. } | U::NeedsProposed { .. } | U::BesideFile { .. })
    ) {
        release.dependencies.clear();
    }
    if !matches!(except, Some(U::NeedsMissing { .. } | U::NeedsForbidden { .. } | U::NeedsProposed { .. })) {
        let further = release.further.iter_mut().filter_map(|jar| jar.declared.as_mut());
        release.declared.iter_mut().chain(further).for_each(|declared| declared.depend.clear());
    }
    if !matches!(except, Some(U::NoFile)) {
        let name = format!("{}.jar", release.id);
        let file = release.file.get_or_insert_with(|| Artifact {
            url: format!("https://files.example/{name}"),
            name,
            size: None,
            hash: None,
        });
        if !matches!(except, Some(U::NoChecksum)) {
            file.hash = Some(software::sha256());
            release.further.iter_mut().for_each(|jar| jar.file.hash = Some(software::sha256()));
        }
    }
}

/// Checks that exactly this reason excludes a Paper.
pub(super) fn check_paper_excluded_by(
    problem: &Problem,
    minecraft: &Minecraft,
    unusable: &Unusable,
) -> Result<(), String> {
    let is_used = |problem: &Problem| -> Option<bool> {
        let rules = ServerRules::new(&problem.catalog, &problem.request, problem.now).ok()?;
        rules.papers.iter().find(|paper| paper.minecraft == minecraft).map(|paper| paper.build.is_some())
    };
    let mut problem = problem.clone();
    if !matches!(unusable, Unusable::NoChecksum) {
        // If another reason is reported, a build without a checksum is not reported. Builds of other Papers are kept,
        // because the catalog must contain the build that the image bundles.
        let all = versions_mut(&mut problem.catalog, problem.request.software).iter_mut();
        for version in all.filter(|version| version.minecraft == *minecraft) {
            version.builds.retain(|build| is_verifiable(&build.file));
        }
    }
    let problem = &problem;
    let free = with_usable_paper(problem, minecraft);
    let restricted = with_reason(problem, &free, unusable);
    if let Unusable::Delayed { eligible_at, .. } = unusable {
        let at = |now: Timestamp| is_used(&Problem { now, ..restricted.clone() });
        if at(*eligible_at - SignedDuration::from_nanos(1)) == Some(true) || at(*eligible_at) == Some(false) {
            return Err(format!("{minecraft} does not become eligible exactly at {eligible_at}"));
        }
    }
    match (is_used(problem), is_used(&restricted), is_used(&free)) {
        (Some(true), _, _) => Err(format!("{minecraft} is eligible, but is reported as excluded by {unusable:?}")),
        (_, Some(true), _) => Err(format!("{minecraft} is not excluded by {unusable:?} alone")),
        (_, _, Some(false)) => Err(format!("{minecraft} is excluded by another reason than {unusable:?}")),
        _ => Ok(()),
    }
}

/// The problem without reasons against a Paper, except one of the original problem.
fn with_reason(problem: &Problem, free: &Problem, unusable: &Unusable) -> Problem {
    use Unusable as U;
    let mut restricted = free.clone();
    let (before, request) = (&problem.request, &mut restricted.request);
    if matches!(unusable, U::BelowFloor { .. } | U::Unmanaged { .. } | U::UnmanagedRefused { .. }) {
        request.floor.clone_from(&before.floor);
    }
    if matches!(unusable, U::Delayed { .. }) {
        request.delay = before.delay;
    }
    // An older or less stable build may be excluded by another reason, which is not reported.
    if matches!(unusable, U::BuildChannel { .. } | U::Preview | U::Delayed { .. }) {
        request.channel = before.channel;
    }
    if matches!(unusable, U::Unmanaged { .. }) {
        request.unmanaged_plugins = before.unmanaged_plugins;
    }
    if matches!(unusable, U::UnmanagedRefused { .. }) {
        request.unmanaged.clone_from(&before.unmanaged);
    }
    if matches!(unusable, U::Preview | U::NoBuild { .. } | U::ImageCarries { .. } | U::NoChecksum) {
        request.paper.clone_from(&before.paper);
    }
    let of_the_image = matches!(unusable, U::ImageCarries { .. } | U::JavaTooOld { .. });
    if of_the_image || matches!(unusable, U::NoBuild { .. } | U::NoChecksum) {
        request.image.clone_from(&before.image);
    }
    if of_the_image || matches!(unusable, U::JavaHeld { .. } | U::NoImage { .. } | U::NoBuild { .. } | U::NoChecksum) {
        restricted.catalog = problem.catalog.clone();
    }
    restricted
}

/// Whether the reason may depend on which files of a release are installed.
fn is_about_files(unusable: &Unusable) -> bool {
    use Unusable as U;
    matches!(
        unusable,
        U::NoSuchJar { .. }
            | U::SeveralJars { .. }
            | U::NoChecksum
            | U::ApiVersion { .. }
            | U::ApiVersionRefused { .. }
            | U::DescriptorRefused { .. }
            | U::JavaTooOld { .. }
            | U::JavaHeld { .. }
            | U::NoImage { .. }
            | U::NeedsMissing { .. }
            | U::WrongSoftware { .. }
            | U::SoftwareUnsaid { .. }
    )
}
