//! Pure. Finds the decision for a server, with its group if it is a member.

use super::group_context::GroupContext;
use super::{ExplainContext, name_conflicts};
use crate::index::CandidateIndex;
use crate::model::budget::BudgetExceeded;
use crate::model::request::Running;
use crate::model::software::PaperName;
use crate::solve::group::MemberDecision;
use crate::solve::{Decision, decide};

/// The Paper version that the server would run, with its group if it is a member.
pub(crate) fn nearest_possible(context: &ExplainContext<'_, '_>) -> Result<Option<PaperName>, BudgetExceeded> {
    Ok(decision(context)?.and_then(|decision| resulting_paper(context.candidates, &decision)))
}

/// The decision for the server, with its group if it is a member.
pub(crate) fn decision(context: &ExplainContext<'_, '_>) -> Result<Option<Decision>, BudgetExceeded> {
    match context.group.map(GroupContext::decision) {
        Some(MemberDecision::Member(choice)) => Ok(Some(choice.decision(context.candidates))),
        Some(MemberDecision::UnsolvableAlone | MemberDecision::Excluded | MemberDecision::GaveUp(_)) | None => {
            decide(context.candidates, context.meter)
        }
    }
}

/// The Paper version of a result. If the version set would not be deployed, the running version.
pub(crate) fn resulting_paper(candidates: &CandidateIndex<'_>, decision: &Decision) -> Option<PaperName> {
    let chosen = candidates.paper_name(decision.chosen.paper);
    let running = candidates.request.running.as_ref().map(Running::paper_name);
    let is_news = chosen != running;
    if is_news && name_conflicts::blocking_conflict(candidates, &decision.chosen).is_some() { running } else { chosen }
}
