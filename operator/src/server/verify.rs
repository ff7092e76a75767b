//! Pure. Verifies that a new set works. Readiness proves nothing, so the verification uses the server's own output.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::Verification;
use scheduler::protocol::{AgentReport, FileSet, Server};

mod baseline;
mod content;
mod deadline;
mod image;

pub(crate) use baseline::{Baseline, count_enabled};
use baseline::{EarlierState, names};
use content::MissingContent;
pub(crate) use deadline::asked_from;
pub(crate) use image::other_image;

use super::crash_loop::ProcessExit;

/// Time after a server's first answer in which plugins, worlds and datapacks must become readable. After that the result is unverified.
const READ_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// Maximum time of a verification, from when the server could first be reached. A server that crashes after its first Ready has no start
/// deadline.
const ENDS_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// Number of exits after which a process counts as failed. The last exit must be a crash, and no `/stop` may fall into the time below.
const ENDS_AFTER: u32 = 5;
/// Minimum time before that. A database or a name server that is being moved is back by then, whatever back-off the kubelet uses.
const ENDS_SOONEST: SignedDuration = SignedDuration::from_mins(5);

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
    pub(crate) asked_from: Timestamp,
    /// The state of the server's process according to the kubelet.
    pub(crate) process: ProcessExit,
    /// A message about an image other than the planned one. `None` if no difference is known.
    pub(crate) other_image: Option<&'a str>,
}

/// A verification result with its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerificationResult {
    pub(crate) verdict: Verification,
    /// Why it failed or could not be verified. Empty otherwise.
    pub(crate) problem: String,
}

impl VerificationResult {
    /// The message for a set that is kept without verification. `None` if it is verified.
    pub(crate) fn unproven(&self) -> Option<&str> {
        Some(self.problem.as_str()).filter(|problem| !problem.is_empty())
    }
}

/// How far the operator's clock is ahead of the clock that reported `at` just now, in steps of 5 s. The duration of a request then moves no
/// deadline.
pub(crate) fn clocks_differ(at: Timestamp, now: Timestamp) -> SignedDuration {
    const STEP: i64 = 5;
    SignedDuration::from_secs(now.duration_since(at).as_secs() / STEP * STEP)
}

/// The verification result of the observed pod.
pub(crate) fn prove(
    report: Option<&AgentReport>,
    expected: &VerificationTarget<'_>,
    now: Timestamp,
) -> VerificationResult {
    let ends = expected.asked_from + ENDS_WITHIN;
    let pending =
        |until: Timestamp| VerificationResult { verdict: Verification::Pending { until }, problem: String::new() };
    let failed = |problem: String| VerificationResult { verdict: Verification::Failed, problem };
    let unproven = |problem: &str| VerificationResult { verdict: Verification::Unproven, problem: problem.to_owned() };

    // A first start has no earlier revision to return to. It would become stable as it is.
    if let (ProcessExit::Ends { times }, Some(_)) = (expected.process, expected.before)
        && times >= ENDS_AFTER
        && expected.asked_from + ENDS_SOONEST <= now
    {
        return failed(format!("the server's process has ended {times} times"));
    }
    let Some(report) = report else {
        if now < ends {
            return pending(ends);
        }
        return match expected.process {
            ProcessExit::Stays => unproven("the agent does not answer"),
            ProcessExit::Unsettled { until } => pending(until),
            // The kubelet reports this without an agent.
            ProcessExit::Ends { times: _ } => failed(
                "the server's process ends with an error again and again, and its agent does not answer".to_owned(),
            ),
        };
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
    // By the operator's clock: a node's clock that is behind would shorten the time in which a set has to run without problems.
    let since = *since + clocks_differ(report.at, now);
    let read_by = since + READ_WITHIN.max(expected.settle);
    let (Some(build), Some(_)) = (build, plugins) else {
        return if now < read_by { pending(read_by) } else { unproven("the server's log could not be read") };
    };
    if *build != expected.files.build {
        return failed(format!("the server says it is build {build}, not {}", expected.files.build));
    }
    let red = FailedPlugins::of(report, expected);
    if !red.to_blame.is_empty() {
        return failed(format!("{} did not enable", red.to_blame.join(", ")));
    }
    let settled_at = since + expected.settle;
    if now < settled_at {
        return pending(settled_at);
    }
    // Only after the settling time, because a plugin may open its worlds at any time.
    let missing = MissingContent::of(report, expected);
    if !missing.to_blame.is_empty() {
        return failed(missing.to_blame.join("; "));
    }
    // Data that is not readable yet may never become readable. The next verification then has to know it.
    if (report.loaded.is_none() || !missing.unread.is_empty()) && now < read_by {
        return pending(read_by);
    }
    // Damage from before this start is no fault of the set, and a roll-back would repair no chunk.
    if let Some(damage) = report.damage.as_ref().filter(|damage| expected.began <= damage.since) {
        return unproven(&format!("the server's log tells of damage to its worlds: {}", damage.first));
    }
    if let Some(other) = expected.other_image {
        // A user or a webhook has changed the pod. The set is not at fault, and its next pod is created from the template again.
        return unproven(other);
    }
    if !report.drift.is_empty() {
        // The program that changed these files would change them after a roll-back, too.
        return unproven(&format!("not as locked: {}", report.drift.join(", ")));
    }
    if !red.maybe.is_empty() {
        return unproven(&format!("{} did not enable, and nobody knows whether it did before", red.maybe.join(", ")));
    }
    if !red.own.is_empty() {
        return unproven(&format!("{} is no managed plugin, and is not enabled any more", red.own.join(", ")));
    }
    if !missing.told.is_empty() {
        return unproven(&missing.told.join("; "));
    }
    if !missing.unread.is_empty() {
        return unproven(&missing.unread.join(", and "));
    }
    VerificationResult { verdict: Verification::Passed, problem: String::new() }
}

/// The plugins that did not enable. A plugin that had failed before is excluded: nearly every real server has one, and an update is not the
/// cause.
struct FailedPlugins<'a> {
    /// They were enabled before, or are new.
    to_blame: Vec<&'a str>,
    /// It is unknown whether they were enabled before.
    maybe: Vec<&'a str>,
    /// Unmanaged JARs that were enabled at the last verification. The cause of their failure is unknown. If an update were rolled back for
    /// one of them, every later update would be, too.
    own: Vec<&'a str>,
}

impl<'a> FailedPlugins<'a> {
    fn of(report: &'a AgentReport, expected: &'a VerificationTarget<'a>) -> Self {
        let mut red = Self { to_blame: Vec::new(), maybe: Vec::new(), own: Vec::new() };
        let Server::Up { plugins: Some(plugins), .. } = &report.server else { return red };
        for name in names(expected.files).filter(|name| !plugins.get(*name).is_some_and(|seen| seen.enabled)) {
            match expected.baseline.was(name, expected.before) {
                EarlierState::New | EarlierState::Enabled => red.to_blame.push(name),
                EarlierState::Unread => red.maybe.push(name),
                EarlierState::Red => {}
            }
        }
        red.own = expected.baseline.lost_of_ones_own(report, expected.files);
        red
    }
}

#[cfg(test)]
mod tests;
