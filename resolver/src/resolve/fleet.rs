//! Pure. Answers for a fleet: decides its groups, and explains the result of each server.

use jiff::Timestamp;

use super::{GroupContext, Resolution, Unsolvable, reject_unverified, resolve_in_group, resolve_within, unanswerable};
use crate::explain::{self, unsolvable};
use crate::explanation::Explanation;
use crate::index::CandidateIndex;
use crate::model::budget::{Budget, BudgetExceeded};
use crate::model::catalog::Catalog;
use crate::model::request::Request;
use crate::model::version::Minecraft;
use crate::solve::budget::BudgetMeter;
use crate::solve::build_lock;
use crate::solve::group::MemberDecision;
use crate::{DecidedFleet, Fleet};

/// Returns the single best version set for each server, with the explanation of the choice, in the order of the server
/// names.
///
/// Servers that share a Plugin with strategy `latest` get the same release of it and are solved together (see
/// [`crate::groups`]). All others get the result of [`crate::resolve`]. The order is lexicographic. The newest Paper
/// version comes first, server by server in the order of their names. Then follows the newest release of each requested
/// plugin, in the order of the object names (for equal names, of the server names). A shared plugin counts once. The
/// dependencies come last. The order of the input does not matter.
///
/// A server without a solution is excluded: it never blocks the other servers of its group (see `docs/concepts`). A
/// server that runs a newer release than the others have in common gets its own solution. A server that exceeds its
/// budget alone is given up, and the others are decided without it.
pub fn resolve_fleet(
    catalog: &Catalog,
    requests: &[Request],
    now: Timestamp,
    budget: Budget,
) -> Vec<(String, Result<Resolution, Unsolvable>)> {
    Fleet::read(&catalog.with_unread_projects(requests), requests, now).decide(budget).resolutions()
}

impl<'a> DecidedFleet<'_, 'a> {
    pub(crate) fn group_context(&self, group: usize, member: usize) -> Option<GroupContext<'_, 'a>> {
        let outcome = self.outcomes[group].as_ref()?;
        let fleet = self.fleet;
        Some(GroupContext {
            catalog: fleet.catalog,
            tables: &fleet.tables,
            views: &fleet.views[group],
            outcome,
            server: member,
        })
    }

    /// The answers for all servers, by name.
    pub fn resolutions(&self) -> Vec<(String, Result<Resolution, Unsolvable>)> {
        let mut resolutions: Vec<(String, Result<Resolution, Unsolvable>)> = self
            .positions()
            .map(|(group, member)| (self.name(group, member), self.resolve_member(group, member)))
            .collect();
        resolutions.sort_by(|(a, _), (b, _)| a.cmp(b));
        resolutions
    }

    /// The answer for one server. `None` if it is not part of this fleet.
    pub fn resolution(&self, server: &str) -> Option<Result<Resolution, Unsolvable>> {
        let (group, member) = self.position_of(server)?;
        Some(self.resolve_member(group, member))
    }

    /// Explains why a server does not run `target`, considering the others of its group. `None` if it is not part of
    /// this fleet.
    pub fn why_not(&self, server: &str, target: &Minecraft) -> Option<Result<crate::explanation::WhyNot, Unsolvable>> {
        self.explain_with(server, |context| explain::why_not_version::explain(context, target))
    }

    /// Like `why_not`, with the state of each plugin: which support `target`, which do not, and how long those had no
    /// release.
    pub fn readiness(
        &self,
        server: &str,
        target: &Minecraft,
    ) -> Option<Result<crate::explanation::WhyNot, Unsolvable>> {
        self.explain_with(server, |context| {
            let why = explain::why_not_version::explain(context, target)?;
            Ok(crate::explanation::WhyNot { plugins: explain::why_not_version::states(context, &why), ..why })
        })
    }

    /// Explains why a server does not get this release of a plugin (given by its object), considering the others of its
    /// group. `pinned` holds the same servers with that release pinned. `None` if the server is not part of this fleet
    /// or does not request the plugin.
    pub fn why_not_release(
        &self,
        server: &str,
        (object, version): (&str, &str),
        pinned: &DecidedFleet<'_, '_>,
    ) -> Option<Result<crate::explanation::WhyNotRelease, Unsolvable>> {
        let pinned = || {
            Some(
                pinned
                    .resolution(server)?
                    .map_or_else(|unsolvable| unsolvable.explanation(), |resolution| resolution.explanation),
            )
        };
        self.explain_with(server, |context| explain::why_not_release::explain(context, object, version, pinned))?
            .transpose()
    }

    fn explain_with<T>(
        &self,
        server: &str,
        f: impl FnOnce(&explain::ExplainContext<'_, '_>) -> Result<T, BudgetExceeded>,
    ) -> Option<Result<T, Unsolvable>> {
        let (group, member) = self.position_of(server)?;
        let request = self.request(group, member);
        let group_context = self.group_context(group, member);
        let candidates = match CandidateIndex::build(self.fleet.catalog, request, self.fleet.now) {
            Ok(candidates) => candidates,
            Err(gap) => return Some(Err(unanswerable(self.fleet.catalog, request, gap))),
        };
        let meter = BudgetMeter::new(self.budget);
        let context = explain::ExplainContext {
            catalog: self.fleet.catalog,
            candidates: &candidates,
            meter: &meter,
            group: group_context.as_ref(),
        };
        Some(f(&context).map_err(Unsolvable::GaveUp))
    }

    fn resolve_member(&self, group: usize, member: usize) -> Result<Resolution, Unsolvable> {
        let (catalog, now, request) = (self.fleet.catalog, self.fleet.now, self.request(group, member));
        let Some(group_context) = self.group_context(group, member) else {
            return resolve_within(catalog, request, now, self.budget);
        };
        let choice = match group_context.decision() {
            MemberDecision::UnsolvableAlone => {
                return resolve_in_group(catalog, request, now, self.budget, Some(&group_context));
            }
            MemberDecision::GaveUp(gave_up) => return Err(Unsolvable::GaveUp(gave_up.clone())),
            // The releases of the other servers are too old for this one. Plugins rarely read data that a newer release
            // of them wrote.
            MemberDecision::Excluded if self.shares_older_release(group, member) => {
                return resolve_within(catalog, request, now, self.budget);
            }
            MemberDecision::Excluded => None,
            MemberDecision::Member(choice) => Some(choice),
        };
        let candidates =
            CandidateIndex::build(catalog, request, now).map_err(|gap| unanswerable(catalog, request, gap))?;
        let meter = BudgetMeter::new(self.budget);
        let context =
            explain::ExplainContext { catalog, candidates: &candidates, meter: &meter, group: Some(&group_context) };
        match choice {
            None => Err(Unsolvable::NoSolution(Box::new(unsolvable::explain_excluded(&context, &group_context)))),
            Some(choice) => {
                let decision = choice.decision(&candidates);
                reject_unverified(catalog, &candidates, &decision)?;
                Ok(Resolution {
                    lock: build_lock::build_lock(catalog, &candidates, &decision),
                    explanation: Explanation::Solved(explain::solved::explain(&context, &decision)),
                })
            }
        }
    }
}
