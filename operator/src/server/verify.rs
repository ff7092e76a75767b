//! Pure. Verifies that a new set works. Readiness proves nothing, so the verification uses the server's own output.

use std::collections::BTreeMap;

use agent_api::{AgentReport, FileSet, PluginReport, Server, is_same_plugin};
use jiff::{SignedDuration, Timestamp};
use scheduler::observation::Verification;

use super::model::baseline::Baseline;

mod content;
mod deadline;
mod image;

use super::crash_loop::ProcessState;
use super::model::baseline::{EarlierState, plugin_names};
use content::MissingContent;
pub(crate) use deadline::reachable_from;
pub(crate) use image::other_image;

/// Time after a server's first answer in which plugins, worlds and datapacks must become readable. After that the result is unverified.
const READ_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);
/// Maximum time of a verification, from when the server could first be reached. A server that crashes after its first Ready has no start
/// deadline.
const VERIFICATION_TIMEOUT: SignedDuration = SignedDuration::from_mins(15);
/// Number of exits after which a process counts as failed. The last exit must be a crash, and no `/stop` may fall into the time below.
const MAX_EXITS: u32 = 5;
/// Minimum time before that. A database or a name server that is being moved is back by then, whatever back-off the kubelet uses.
const MIN_TIME_BEFORE_FAILURE: SignedDuration = SignedDuration::from_mins(5);

/// The inputs against which a pod is verified.
pub(crate) struct VerificationTarget<'a> {
    /// The files with which the pod was created.
    pub(crate) files: &'a FileSet,
    /// The files of the stable lock. `None` before any revision is stable.
    pub(crate) before: Option<&'a FileSet>,
    /// The state of plugins, worlds and datapacks before the update.
    pub(crate) baseline: &'a Baseline,
    /// How long the server must run without problems.
    pub(crate) settle: SignedDuration,
    /// When the pod started, or when a user stopped the server in it. The clock is the node's, like that of the log.
    pub(crate) began: Timestamp,
    /// When the server could first be reached, by the operator's clock. The deadline counts from here.
    pub(crate) reachable_from: Timestamp,
    /// The state of the server's process according to the kubelet.
    pub(crate) process: ProcessState,
    /// A message about an image other than the planned one. `None` if no difference is known.
    pub(crate) other_image: Option<&'a str>,
    /// The names of plugins that the server contains itself. It does not load a file with such a plugin.
    pub(crate) bundled: &'a [&'static str],
}

/// Whether the server contains a plugin of this name itself.
pub(crate) fn is_bundled(bundled: &[&str], name: &str) -> bool {
    bundled.iter().any(|bundled| is_same_plugin(bundled, name))
}

/// The managed plugins that the server did not enable. Those that it contains itself do not count.
pub(crate) fn not_enabled<'a>(
    plugins: &BTreeMap<String, PluginReport>,
    files: &'a FileSet,
    bundled: &[&str],
) -> Vec<&'a str> {
    let is_enabled = |name: &str| plugins.get(name).is_some_and(|plugin| plugin.enabled);
    plugin_names(files).filter(|name| !is_enabled(name) && !is_bundled(bundled, name)).collect()
}

/// A verification result with its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerificationResult {
    pub(crate) result: Verification,
    /// Why it failed or could not be verified. Empty otherwise.
    pub(crate) problem: String,
}

impl VerificationResult {
    /// The message for a set that is kept without verification. `None` if it is verified.
    pub(crate) fn unverified_reason(&self) -> Option<&str> {
        Some(self.problem.as_str()).filter(|problem| !problem.is_empty())
    }
}

/// How far the operator's clock is ahead of the clock that reported `at` just now, in steps of 5 s. The duration of a request then moves no
/// deadline.
pub(crate) fn clock_offset(at: Timestamp, now: Timestamp) -> SignedDuration {
    const STEP: i64 = 5;
    SignedDuration::from_secs(now.duration_since(at).as_secs() / STEP * STEP)
}

fn pending(until: Timestamp) -> VerificationResult {
    VerificationResult { result: Verification::Pending { until }, problem: String::new() }
}

fn failed(problem: String) -> VerificationResult {
    VerificationResult { result: Verification::Failed, problem }
}

fn unverified(problem: &str) -> VerificationResult {
    VerificationResult { result: Verification::Inconclusive, problem: problem.to_owned() }
}

/// The verification result of the observed pod.
pub(crate) fn verify(
    report: Option<&AgentReport>,
    expected: &VerificationTarget<'_>,
    now: Timestamp,
) -> VerificationResult {
    let ends = expected.reachable_from + VERIFICATION_TIMEOUT;
    // A first start has no earlier revision to return to. It would become stable as it is.
    if let (ProcessState::Exited { times }, Some(_)) = (expected.process, expected.before)
        && times >= MAX_EXITS
        && expected.reachable_from + MIN_TIME_BEFORE_FAILURE <= now
    {
        return failed(format!("the server's process exited {times} times"));
    }
    let Some(report) = report else { return verify_without_report(expected.process, ends, now) };
    if !matches!(report.server, Server::Up { .. }) {
        return if now < ends { pending(ends) } else { failed("the server does not keep running".to_owned()) };
    }
    if let Some(result) = verify_running_server(report, expected, now) {
        return result;
    }
    match unverified_reason(report, expected) {
        Some(problem) => unverified(&problem),
        None => VerificationResult { result: Verification::Passed, problem: String::new() },
    }
}

fn verify_without_report(process: ProcessState, ends: Timestamp, now: Timestamp) -> VerificationResult {
    if now < ends {
        return pending(ends);
    }
    match process {
        ProcessState::Running => unverified("the agent does not answer"),
        ProcessState::Restarting { until } => pending(until),
        // The kubelet reports this without an agent.
        ProcessState::Exited { times: _ } => {
            failed("the server's process exits with an error repeatedly, and its agent does not answer".to_owned())
        }
    }
}

/// Verifies versions, plugins and contents of a server that answers. `None` if nothing is worse than before and nothing more is awaited.
fn verify_running_server(
    report: &AgentReport,
    expected: &VerificationTarget<'_>,
    now: Timestamp,
) -> Option<VerificationResult> {
    let Server::Up { since, answered_at: _, hangs_since: _, minecraft, build, plugins } = &report.server else {
        return None;
    };
    if *minecraft != expected.files.minecraft {
        return Some(failed(format!("the server reports Minecraft {minecraft}, not {}", expected.files.minecraft)));
    }
    if report.lock.as_deref() != Some(expected.files.lock.as_str()) {
        return Some(failed("the plugin directory differs from the lock".to_owned()));
    }
    // By the operator's clock: a node's clock that is behind would shorten the time in which a set has to run without problems.
    let since = *since + clock_offset(report.at, now);
    let read_by = since + READ_TIMEOUT.max(expected.settle);
    let (Some(build), Some(_)) = (build, plugins) else {
        let is_awaited = now < read_by;
        return Some(if is_awaited { pending(read_by) } else { unverified("the server's log could not be read") });
    };
    if *build != expected.files.build {
        return Some(failed(format!("the server reports build {build}, not {}", expected.files.build)));
    }
    let failed_plugins = FailedPlugins::new(report, expected);
    if !failed_plugins.at_fault.is_empty() {
        return Some(failed(format!("{} did not enable", failed_plugins.at_fault.join(", "))));
    }
    let stable_at = since + expected.settle;
    if now < stable_at {
        return Some(pending(stable_at));
    }
    // Only after the settling time, because a plugin may open its worlds at any time.
    let missing = MissingContent::new(report, expected);
    if !missing.at_fault.is_empty() {
        return Some(failed(missing.at_fault.join("; ")));
    }
    // Data that is not readable yet may never become readable. The next verification then has to know it.
    let is_unread = report.loaded.is_none() || !missing.unread.is_empty();
    (is_unread && now < read_by).then(|| pending(read_by))
}

/// Why a set that is not worse than before is kept without verification. `None` if it is verified.
fn unverified_reason(report: &AgentReport, expected: &VerificationTarget<'_>) -> Option<String> {
    let (failed_plugins, missing) = (FailedPlugins::new(report, expected), MissingContent::new(report, expected));
    // Damage from before this start is no fault of the set, and a roll-back would repair no chunk.
    if let Some(damage) = report.damage.as_ref().filter(|damage| expected.began <= damage.since) {
        return Some(format!("the server's log reports damage to its worlds: {}", damage.first));
    }
    if let Some(other) = expected.other_image {
        // A user or a webhook has changed the pod. The set is not at fault, and its next pod is created from the template again.
        return Some(other.to_owned());
    }
    if !report.drift.is_empty() {
        // The program that changed these files would change them after a roll-back, too.
        return Some(format!("these files differ from the lock: {}", report.drift.join(", ")));
    }
    if !failed_plugins.unknown.is_empty() {
        let names = failed_plugins.unknown.join(", ");
        return Some(format!("{names} did not enable, and it is unknown whether it did before"));
    }
    if !failed_plugins.as_before.is_empty() {
        return Some(format!("{} did not enable", failed_plugins.as_before.join(", ")));
    }
    if !failed_plugins.unmanaged.is_empty() {
        return Some(format!("{} is unmanaged and no longer enabled", failed_plugins.unmanaged.join(", ")));
    }
    if !missing.reported.is_empty() {
        return Some(missing.reported.join("; "));
    }
    (!missing.unread.is_empty()).then(|| missing.unread.join(", and "))
}

/// The plugins that did not enable.
struct FailedPlugins<'a> {
    /// They were enabled before, or an update added them.
    at_fault: Vec<&'a str>,
    /// They were not enabled before either, or this is the first start. A roll-back would not help.
    as_before: Vec<&'a str>,
    /// It is unknown whether they were enabled before.
    unknown: Vec<&'a str>,
    /// Unmanaged JARs that were enabled at the last verification. The cause of their failure is unknown. If an update were rolled back for
    /// one of them, every later update would be, too.
    unmanaged: Vec<&'a str>,
}

impl<'a> FailedPlugins<'a> {
    fn new(report: &'a AgentReport, expected: &'a VerificationTarget<'a>) -> Self {
        let mut failed_plugins =
            Self { at_fault: Vec::new(), as_before: Vec::new(), unknown: Vec::new(), unmanaged: Vec::new() };
        let Server::Up { plugins: Some(plugins), .. } = &report.server else { return failed_plugins };
        for name in not_enabled(plugins, expected.files, expected.bundled) {
            match expected.baseline.earlier_state(name, expected.before) {
                EarlierState::New if expected.before.is_none() => failed_plugins.as_before.push(name),
                EarlierState::New | EarlierState::Enabled => failed_plugins.at_fault.push(name),
                EarlierState::Unread => failed_plugins.unknown.push(name),
                EarlierState::Failed => failed_plugins.as_before.push(name),
            }
        }
        failed_plugins.unmanaged = expected.baseline.failed_unmanaged(report, expected.files);
        failed_plugins.unmanaged.retain(|name| !is_bundled(expected.bundled, name));
        failed_plugins
    }
}

#[cfg(test)]
mod tests;
