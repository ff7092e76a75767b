//! Pure. Did the new set work? "Ready" proves nothing: the server's own word does.

use jiff::{SignedDuration, Timestamp};
use scheduler::protocol::{FileSet, PluginSeen, Report, Server};
use scheduler::seen::Verdict;

/// How long after a server's first answer its plugins may stay unread before the proof ends as unproven.
const READ_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// How long a proof may take in all, from its beginning: a server that crash-loops after its first Ready has no
/// start deadline any more.
const ENDS_WITHIN: SignedDuration = SignedDuration::from_mins(15);

/// What the proof is measured against.
pub(crate) struct Expected<'a> {
    /// The files the pod was made with.
    pub(crate) files: &'a FileSet,
    /// Plugins of the settled lock, by plugin name; None before anything was settled.
    pub(crate) before: Option<&'a FileSet>,
    /// Plugins that were enabled when the settled lock was proven.
    pub(crate) enabled_before: &'a [String],
    /// How long the server must stay well.
    pub(crate) settle: SignedDuration,
    /// When the pod started, or when somebody stopped the server in it.
    pub(crate) began: Timestamp,
}

/// A verdict with what it rests on, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) verdict: Verdict,
    /// Why it failed or could not be proven; empty otherwise.
    pub(crate) problem: String,
}

/// The verdict about the pod that is seen now.
pub(crate) fn prove(report: Option<&Report>, expected: &Expected<'_>, now: Timestamp) -> Proof {
    let ends = expected.began + ENDS_WITHIN;
    let pending = |until: Timestamp| Proof { verdict: Verdict::Pending { until }, problem: String::new() };
    let failed = |problem: String| Proof { verdict: Verdict::Failed, problem };
    let unproven = |problem: &str| Proof { verdict: Verdict::Unproven, problem: problem.to_owned() };

    let Some(report) = report else {
        return if now < ends { pending(ends) } else { unproven("the agent does not answer") };
    };
    let Server::Up { since, answered_at: _, minecraft, build, plugins } = &report.server else {
        return if now < ends { pending(ends) } else { failed("the server does not stay up".to_owned()) };
    };
    if *minecraft != expected.files.minecraft {
        return failed(format!("the server says it is Minecraft {minecraft}, not {}", expected.files.minecraft));
    }
    if report.lock.as_deref() != Some(expected.files.lock.as_str()) {
        return failed("the plugin directory is not what the lock says".to_owned());
    }
    let read_by = *since + READ_WITHIN.max(expected.settle);
    let (Some(build), Some(plugins)) = (build, plugins) else {
        return if now < read_by { pending(read_by) } else { unproven("the server's log could not be read") };
    };
    if *build != expected.files.build {
        return failed(format!("the server says it is build {build}, not {}", expected.files.build));
    }
    if let Some(problem) = red(plugins, expected) {
        return failed(problem);
    }
    let settled_at = *since + expected.settle;
    if now < settled_at { pending(settled_at) } else { Proof { verdict: Verdict::Passed, problem: String::new() } }
}

/// The plugins that did not enable and did before (or are new). One that was red before stays a warning: nearly every
/// real server has one, and an update is not to blame for it.
fn red(plugins: &std::collections::BTreeMap<String, PluginSeen>, expected: &Expected<'_>) -> Option<String> {
    let red: Vec<&str> = expected
        .files
        .plugins
        .iter()
        .filter_map(|file| file.plugin.as_deref())
        .filter(|name| !plugins.get(*name).is_some_and(|seen| seen.enabled))
        .filter(|name| !was_red(name, expected))
        .collect();
    match red.as_slice() {
        [] => None,
        [one] => Some(format!("{one} did not enable")),
        many => Some(format!("{} did not enable", many.join(", "))),
    }
}

fn was_red(name: &str, expected: &Expected<'_>) -> bool {
    let was_there =
        expected.before.is_some_and(|before| before.plugins.iter().any(|file| file.plugin.as_deref() == Some(name)));
    was_there && !expected.enabled_before.iter().any(|enabled| enabled == name)
}

/// The plugins that a report shows as enabled, sorted: the baseline for the next proof.
pub(crate) fn enabled(report: Option<&Report>) -> Vec<String> {
    match report.map(|report| &report.server) {
        Some(Server::Up { plugins: Some(plugins), .. }) => {
            plugins.iter().filter(|(_, seen)| seen.enabled).map(|(name, _)| name.clone()).collect()
        }
        Some(Server::Up { .. } | Server::Absent | Server::Starting { .. } | Server::Stopping { .. }) | None => {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
