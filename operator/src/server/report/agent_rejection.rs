//! Pure. Reports an agent that rejects the operator's requests.

use jiff::SignedDuration;

use super::context::PassReport;

/// Set while the pod's agent is reachable and rejects the operator's requests. The condition is absent otherwise.
pub(crate) const AGENT_REJECTS: &str = "AgentRejectsRequests";

/// How long a rejection is tolerated. An agent that has just started rejects requests that were signed before. An operator that has just
/// lost its lease is rejected once.
pub(crate) const REJECTION_TOLERANCE: SignedDuration = SignedDuration::from_secs(20);

/// Why a reachable agent rejects all requests, if this has lasted longer than its own start explains.
pub(crate) fn agent_rejection<'a>(report: &PassReport<'a>) -> Option<(&'static str, &'a str)> {
    let is_news = report.pass.now < report.pass.observed.reply.silent_since + REJECTION_TOLERANCE;
    let refusal = report.pass.observed.reply.refusal.as_ref().filter(|_| !is_news)?;
    Some((refusal.0, &refusal.1))
}
