//! Pure. Lists changes that a user may make to a request, and compares two indexes.

use jiff::SignedDuration;

use super::small_fleets::Problem;
use crate::index::CandidateIndex;
use crate::index::candidates::{PluginCandidates, UnusableClass};
use crate::model::catalog::Channel;
use crate::model::request::{
    CompatibilityOverride, Dependencies, HotfixSiblings, OverrideMode, PaperRequest, Request, VersionRequest,
};

/// The possible changes of a problem, given one of the requested plugins.
pub(super) const CHANGES: [fn(&mut Problem, usize); 12] = [
    |_, _| {},
    |problem, at| problem.request.plugins[at].delay = SignedDuration::ZERO,
    |problem, at| problem.request.plugins[at].version = VersionRequest::Pin { version: "1.0".to_owned() },
    |problem, at| problem.request.plugins[at].version = VersionRequest::Latest,
    |problem, at| problem.request.plugins[at].channel = Channel::Alpha,
    |problem, at| problem.request.plugins[at].allow_downgrade = true,
    |problem, at| {
        let (mode, minecraft) = (OverrideMode::Add, vec!["1.21.x".to_owned()]);
        problem.request.plugins[at].compatibility =
            Some(CompatibilityOverride { mode, minecraft, releases: Vec::new() });
    },
    |problem, at| {
        problem.request.plugins.remove(at);
    },
    |Problem { request, .. }, _| request.dependencies = Dependencies::Propose,
    |Problem { request, .. }, _| request.paper = PaperRequest::Latest,
    |Problem { request, .. }, _| request.hotfix_siblings = HotfixSiblings::Ask,
    |problem, _| problem.now += SignedDuration::from_hours(24 * 3),
];

/// Fails unless both indexes hold the same data.
pub(super) fn assert_same(one: &CandidateIndex<'_>, other: &CandidateIndex<'_>) {
    let shown = |request: &Request| format!("{request:?}");
    assert_eq!(shown(one.request), shown(other.request));
    assert_eq!(one.now, other.now);
    assert_eq!(format!("{:?}", one.papers), format!("{:?}", other.papers));
    assert_eq!(one.warnings, other.warnings);
    assert_eq!(one.plugins.len(), other.plugins.len());
    for (one, other) in one.plugins.iter().zip(&other.plugins) {
        assert_same_plugin(one, other);
    }
}

fn assert_same_plugin(one: &PluginCandidates<'_>, other: &PluginCandidates<'_>) {
    let PluginCandidates {
        project,
        requested_by,
        unmanaged_dependents,
        rules,
        channel,
        releases,
        edges,
        classes,
        supports,
        usable,
        allowed,
    } = one;
    assert!(std::ptr::eq(*project, other.project));
    assert_eq!(
        (requested_by, unmanaged_dependents, rules, channel),
        (&other.requested_by, &other.unmanaged_dependents, &other.rules, &other.channel)
    );
    let summary = |plugin: &PluginCandidates<'_>| {
        let releases = plugin.releases.iter();
        let summary = releases.map(|candidate| {
            (candidate.release.id.clone(), candidate.unusable.clone(), candidate.missing_at_source.clone())
        });
        summary.collect::<Vec<_>>()
    };
    assert_eq!(summary(one), summary(other), "{} releases", releases.len());
    assert_eq!(edges, &other.edges);
    let debug_text = |classes: &[UnusableClass]| format!("{classes:?}");
    assert_eq!(debug_text(classes), debug_text(&other.classes));
    assert_eq!((supports, usable, allowed), (&other.supports, &other.usable, &other.allowed));
}
