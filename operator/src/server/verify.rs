//! Pure. Did the new set work? "Ready" proves nothing: the server's own word does.

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

/// How long after a server's first answer its plugins, worlds and datapacks may stay unread before the proof ends as unproven.
const READ_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// How long a proof may take in all, from when the server could first be asked: a server that crash-loops after its first Ready has no
/// start deadline any more.
const ENDS_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// A process that has ended so often in its pod (with the last of these ends an error, and none that a person asked for within the time below) has
/// no more to show.
const ENDS_AFTER: u32 = 5;
/// And not before: a database or a name server that is only being moved is there again by then, whatever pauses the kubelet makes.
const ENDS_SOONEST: SignedDuration = SignedDuration::from_mins(5);

/// What the proof is measured against.
pub(crate) struct VerificationTarget<'a> {
    /// The files the pod was made with.
    pub(crate) files: &'a FileSet,
    /// Plugins of the settled lock, by plugin name; None before anything was settled.
    pub(crate) before: Option<&'a FileSet>,
    /// What is known of plugins, worlds and datapacks before.
    pub(crate) baseline: &'a Baseline,
    /// How long the server must stay well.
    pub(crate) settle: SignedDuration,
    /// When the pod started, or when somebody stopped the server in it, by the clock of its node, as what its log tells.
    pub(crate) began: Timestamp,
    /// From when on there was something to be asked, by our clock: the proof is patient from then on.
    pub(crate) asked_from: Timestamp,
    /// Of the server, by the word of the kubelet.
    pub(crate) process: ProcessExit,
    /// What runs instead of the image that was planned, in words; None while nothing is known to.
    pub(crate) other_image: Option<&'a str>,
}

/// A verdict with what it rests on, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerificationResult {
    pub(crate) verdict: Verification,
    /// Why it failed or could not be proven; empty otherwise.
    pub(crate) problem: String,
}

impl VerificationResult {
    /// What is to be said of a set that is kept all the same. None: it is proven.
    pub(crate) fn unproven(&self) -> Option<&str> {
        Some(self.problem.as_str()).filter(|problem| !problem.is_empty())
    }
}

/// By how much our clock is ahead of the one that said `at` just now, in steps: what a request takes moves no deadline.
pub(crate) fn clocks_differ(at: Timestamp, now: Timestamp) -> SignedDuration {
    const STEP: i64 = 5;
    SignedDuration::from_secs(now.duration_since(at).as_secs() / STEP * STEP)
}

/// The verdict about the pod that is seen now.
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

    // A first start has nothing to go back to, and would be settled as it is.
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
            // That can be read without an agent.
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
    // By our clock: a node whose clock is behind would shorten the time in which a set has to stay well.
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
    // Only now: a plugin may open its worlds when it likes.
    let missing = MissingContent::of(report, expected);
    if !missing.to_blame.is_empty() {
        return failed(missing.to_blame.join("; "));
    }
    // What is not read yet may be known to nobody; then the next proof is to know it.
    if (report.loaded.is_none() || !missing.unread.is_empty()) && now < read_by {
        return pending(read_by);
    }
    // What was told of before this start is no fault of the set; and to go back from it mends no chunk.
    if let Some(damage) = report.damage.as_ref().filter(|damage| expected.began <= damage.since) {
        return unproven(&format!("the server's log tells of damage to its worlds: {}", damage.first));
    }
    if let Some(other) = expected.other_image {
        // Somebody, or a webhook, has written it into the pod: the set is not to blame, and its next pod is made from the template again.
        return unproven(other);
    }
    if !report.drift.is_empty() {
        // Whoever wrote these files would write them over what ran before, too: to go back mends nothing.
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

/// The plugins that did not enable. One that was red before is not among them: nearly every real server has one, and an update is not to
/// blame for it.
struct FailedPlugins<'a> {
    /// They did before, or are new.
    to_blame: Vec<&'a str>,
    /// Nobody knows whether they did before.
    maybe: Vec<&'a str>,
    /// JARs of people's own that did at the last proof. What became of them since nobody knows: an update that were gone back from for one would be
    /// gone back from each time.
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
