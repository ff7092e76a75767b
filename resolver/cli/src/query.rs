//! Pure. A query of `explain` with all its input, so that the same query gives the same answer anywhere.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::answers::{self, MissingFromCatalog, first_published};
use super::what_if::{self, Assumptions, NamedRelease, WhyNotArg};
use resolver::explanation::{Explanation, Pinned};
use resolver::model::catalog::Catalog;
use resolver::model::request::Request;
use resolver::model::version::Minecraft;
use resolver::{Budget, Fleet};

/// A query about the servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Query {
    /// The current time. Assumed releases are published then, or at `at` if that is earlier.
    pub(super) now: Timestamp,
    /// The time to evaluate for.
    pub(super) at: Timestamp,
    /// The Minecraft version of `--why-not`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why_not: Option<Minecraft>,
    /// The plugin release of `--why-not`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why_not_release: Option<NamedRelease>,
    /// The Minecraft version of `--target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<Minecraft>,
    /// The servers of the query. Empty means all. The other servers are solved together with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) servers: Vec<String>,
    /// Plugins to leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) without: Vec<String>,
    /// Releases to assume.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) assume: Vec<NamedRelease>,
}

/// Answer to a query.
#[derive(Debug)]
pub(super) struct QueryAnswer {
    /// One for each server.
    pub(super) explanations: Vec<Explanation>,
    /// The assumptions of the answer, if there are any.
    pub(super) assumptions: Assumptions,
    /// Mistakes in the query.
    pub(super) errors: Vec<String>,
}

impl Query {
    /// A query without assumptions and without a Minecraft version.
    pub(super) fn simple(now: Timestamp, at: Timestamp) -> Self {
        let (without, assume) = (Vec::new(), Vec::new());
        Self { now, at, why_not: None, why_not_release: None, target: None, servers: Vec::new(), without, assume }
    }

    /// Replaces the subject of the query.
    pub(super) fn set_subject(&mut self, argument: Option<&WhyNotArg>, target: Option<&Minecraft>) {
        let (why_not, release) = match argument.cloned() {
            None => (None, None),
            Some(WhyNotArg::Minecraft(version)) => (Some(version), None),
            Some(WhyNotArg::Release(release)) => (None, Some(release)),
        };
        (self.why_not, self.why_not_release, self.target) = (why_not, release, target.cloned());
    }

    /// The answer for each server, and the data that the catalog lacks.
    pub(super) fn answer(&self, catalog: &Catalog, requests: &[Request]) -> (QueryAnswer, MissingFromCatalog) {
        let Self { now, at, why_not, why_not_release, target, servers: _, without, assume } = self;
        let mut errors = Vec::new();
        let mut assumptions = Assumptions::default();
        // Copied only if needed: a catalog is large, and most queries have no assumptions.
        let mut changed: Option<(Catalog, Vec<Request>)> = None;
        if !(without.is_empty() && assume.is_empty()) {
            let mut hypothetical = (catalog.clone(), requests.to_vec());
            for name in without {
                match what_if::leave_out(&hypothetical.0, &mut hypothetical.1, name) {
                    Ok(left_out) => assumptions.without.push(left_out),
                    Err(error) => errors.push(error),
                }
            }
            for assumed in assume {
                let target_version = why_not.as_ref().or(target.as_ref());
                match what_if::release(&mut hypothetical.0, &hypothetical.1, assumed, (*now).min(*at), target_version) {
                    Ok(release) => assumptions.assumed.push(release),
                    Err(error) => errors.push(error),
                }
            }
            changed = Some(hypothetical);
        }
        let (catalog, requests) =
            changed.as_ref().map_or((catalog, requests), |(catalog, requests)| (catalog, requests.as_slice()));
        let (explanations, missing) = match why_not_release {
            None => self.explanations(catalog, requests),
            Some(release) => self.explain_release(catalog, requests, release).unwrap_or_else(|error| {
                errors.push(error);
                <_>::default()
            }),
        };
        (QueryAnswer { explanations, assumptions, errors }, missing)
    }

    fn is_about(&self, request: &Request) -> bool {
        self.servers.is_empty() || self.servers.contains(&request.server)
    }

    fn explain_release(
        &self,
        catalog: &Catalog,
        requests: &[Request],
        release: &NamedRelease,
    ) -> Result<(Vec<Explanation>, MissingFromCatalog), String> {
        let (pinned, objects) = what_if::pin(catalog, requests, release, |request| self.is_about(request))?;
        let catalog = &*catalog.with_unread_projects(requests);
        let (fleet, with_pin) = (Fleet::read(catalog, requests, self.at), Fleet::read(catalog, &pinned, self.at));
        let (decided, with_pin) = (fleet.decide(Budget::default()), with_pin.decide(Budget::default()));
        let mut missing = MissingFromCatalog::default();
        let explanations = requests.iter().filter_map(|request| {
            let object = objects.get(&request.server)?;
            let why = match decided.why_not_release(&request.server, (object, &release.version), &with_pin)? {
                Ok(why) => why,
                Err(unsolvable) => return Some(missing.add_and_explain(&unsolvable)),
            };
            // The release may need projects that are not in the catalog yet.
            if let Some(Pinned::NoSet { answer }) = &why.pinned
                && let Explanation::Unanswerable(unanswerable) = &**answer
            {
                missing.projects.extend_from_slice(&unanswerable.fetch);
                missing.builds.extend_from_slice(&unanswerable.unverified);
            }
            Some(Explanation::WhyNotRelease(why))
        });
        Ok((explanations.collect(), missing))
    }

    fn explanations(&self, catalog: &Catalog, requests: &[Request]) -> (Vec<Explanation>, MissingFromCatalog) {
        let mut missing = MissingFromCatalog::default();
        let mut explain_unsolvable = |unsolvable: resolver::Unsolvable| missing.add_and_explain(&unsolvable);
        let queried = requests.iter().filter(|request| self.is_about(request));
        let explanations = if let Some(target) = &self.target {
            let catalog = &*catalog.with_unread_projects(requests);
            let with_target = what_if::with_future_versions(catalog, target, self.at);
            let fleet = Fleet::read(with_target.as_ref().unwrap_or(catalog), requests, self.at);
            let decided = fleet.decide(Budget::default());
            let answers = queried.filter_map(|request| {
                let is_published = first_published(catalog, request.software, target, self.at).is_some();
                let answer = decided.readiness(&request.server, target)?;
                Some(answer.map(|why| if is_published || !why.exists { why } else { why.into_unreleased() }))
            });
            answers.map(|answer| answer.map_or_else(&mut explain_unsolvable, Explanation::WhyNot)).collect()
        } else if let Some(target) = &self.why_not {
            let catalog = &*catalog.with_unread_projects(requests);
            let fleet = Fleet::read(catalog, requests, self.at);
            let decided = fleet.decide(Budget::default());
            let answers = queried.filter_map(|request| decided.why_not(&request.server, target));
            answers.map(|answer| answer.map_or_else(&mut explain_unsolvable, Explanation::WhyNot)).collect()
        } else {
            let answers = answers::resolve_all(catalog, requests, self.at).into_iter();
            let mut by_server: BTreeMap<String, Explanation> = answers
                .map(|(server, answer)| {
                    (server, answer.map_or_else(&mut explain_unsolvable, |resolution| resolution.explanation))
                })
                .collect();
            // In the order of the manifests.
            queried.filter_map(|request| by_server.remove(&request.server)).collect()
        };
        (explanations, missing)
    }
}
