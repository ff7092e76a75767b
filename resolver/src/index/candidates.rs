//! Pure. Defines the releases of one plugin with their eligibility and dependency edges, and groups unusable versions
//! by reason.

use std::rc::Rc;
use std::sync::Arc;

use pubgrub::VersionSet;

use super::eligibility::position_among;
use super::index_set::IndexSet;
use super::rules::{RequestedBy, Rules};
use crate::model::catalog::{Channel, Project, Release};
use crate::model::compatibility_facts::FactSource;
use crate::model::request::Request;
use crate::model::unusable::Unusable;
use crate::model::version::range::Range;

/// Unusable versions that share one reason.
#[derive(Debug)]
pub(crate) struct UnusableClass {
    pub(crate) reason: Unusable,
    pub(crate) members: std::sync::Arc<[u64]>,
}

/// One plugin with its releases, oldest first. The index of a release in the solver is its position here plus 1.
pub(crate) struct PluginCandidates<'a> {
    pub(crate) project: &'a Project,
    /// `None` if only other plugins need it.
    pub(crate) requested_by: Option<RequestedBy<'a>>,
    /// Unmanaged JARs that need it, if it runs and no Plugin object requests it.
    pub(crate) unmanaged_dependents: Vec<String>,
    pub(crate) rules: Rules<'a>,
    /// The channel in use: that of the rules, or the most stable one available if the project has no release on it.
    pub(crate) channel: Channel,
    pub(crate) releases: Rc<Vec<Candidate<'a>>>,
    /// The dependency edges of each release. Empty for a release that may not be used.
    pub(crate) edges: Vec<Vec<Edge>>,
    pub(crate) classes: Vec<UnusableClass>,
    /// Per Paper version, the releases known to run on it, including unusable ones.
    pub(crate) supports: Vec<IndexSet>,
    /// Releases that may be used.
    pub(crate) usable: IndexSet,
    /// Releases that match the pin. Without a pin: every release, but not "not installed".
    pub(crate) allowed: IndexSet,
}

/// One release and its eligibility.
pub(crate) struct Candidate<'a> {
    pub(crate) release: &'a Release,
    pub(crate) unusable: Option<Unusable>,
    /// Required projects that are missing at its source, named as on its page.
    pub(crate) missing_at_source: Vec<String>,
}

/// A requirement of one release on another plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Position of the other plugin.
    pub(crate) to: usize,
    /// The accepted versions of it. They include "not installed" unless the plugin is required.
    pub(crate) set: IndexSet,
    pub(crate) kind: EdgeKind,
    /// The release that was guessed as the minimum.
    pub(crate) guessed: Option<usize>,
    /// The fact behind the edge, if no page states it.
    pub(crate) fact: Option<Arc<(Range, FactSource)>>,
}

impl Edge {
    /// Whether a page names the accepted releases, so that no new release is accepted.
    pub(crate) fn is_exact(&self) -> bool {
        self.fact.is_none() && self.guessed.is_none() && !IndexSet::present().subset_of(&self.set)
    }
}

/// The kinds of dependency edges that constrain the solver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeKind {
    Required,
    Optional,
    Incompatible,
}

impl PluginCandidates<'_> {
    /// The position of a release, whether the value comes from this server or from another one.
    pub(crate) fn position_of(&self, release: &Release) -> Option<usize> {
        position_among(release, self.releases.iter().map(|candidate| candidate.release))
    }

    /// The position of the newest release that may be used, with or without a pin.
    pub(crate) fn newest_usable(&self) -> Option<usize> {
        self.usable.highest(self.releases.len()).and_then(|index| index.checked_sub(1))
    }

    /// The releases that may be used and that are known to run on a Paper version (given by position).
    pub(crate) fn usable_on(&self, paper: usize) -> IndexSet {
        self.supports[paper].intersection(&self.usable)
    }

    /// The position of the release that runs now and may stay.
    pub(crate) fn running_release(&self, request: &Request) -> Option<usize> {
        let running = request.running.as_ref()?;
        self.releases
            .iter()
            .position(|candidate| candidate.unusable.is_none() && running.runs_release(candidate.release))
    }

    /// The display name.
    pub(crate) fn name(&self) -> &str {
        &self.project.name
    }

    /// Whether the server must have this plugin regardless of the needs of other plugins.
    pub(crate) fn is_wanted(&self) -> bool {
        self.requested_by.is_some() || !self.unmanaged_dependents.is_empty()
    }

    /// The Plugin object that hints refer to.
    pub(crate) fn object(&self) -> Option<&str> {
        self.requested_by.as_ref().map(|requested_by| requested_by.deciding_object)
    }
}

/// Groups unusable versions by reason. The index is the position plus 1.
pub(crate) fn group_by_reason<'x>(reasons: impl Iterator<Item = Option<&'x Unusable>>) -> Vec<UnusableClass> {
    let mut found: Vec<(&Unusable, Vec<u64>)> = Vec::new();
    for (position, reason) in reasons.enumerate() {
        let Some(reason) = reason else { continue };
        let at = found.iter().rposition(|(existing, _)| *existing == reason).unwrap_or_else(|| {
            found.push((reason, Vec::new()));
            found.len() - 1
        });
        let words = &mut found[at].1;
        let index = position + 1;
        if words.len() <= index / 64 {
            words.resize(index / 64 + 1, 0);
        }
        words[index / 64] |= 1 << (index % 64);
    }
    found.into_iter().map(|(reason, words)| UnusableClass { reason: reason.clone(), members: words.into() }).collect()
}

/// The class that contains an index.
pub(crate) fn class_of(classes: &[UnusableClass], index: usize) -> Option<&UnusableClass> {
    classes.iter().find(|class| class.members.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1))
}
