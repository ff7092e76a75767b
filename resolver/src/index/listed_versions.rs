//! Pure. Interprets a list of Minecraft versions for each Paper version.

use std::collections::HashMap;

use crate::model::api_version::{ApiVersion, ApiVersionRefusal};
use crate::model::catalog::{PaperVersion, Release, Source};
use crate::model::request::{CompatibilityOverride, HotfixSiblings, OverrideMode, Request, Unlisted};
use crate::model::software::Software;
use crate::model::unusable::Unusable;
use crate::model::version::{Minecraft, glob, hotfix};

/// How the user wants lists to be interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListingPolicy {
    pub(super) software: Software,
    siblings: HotfixSiblings,
    unlisted: Unlisted,
}

impl ListingPolicy {
    /// The policy of a server.
    pub(crate) fn from_request(request: &Request) -> Self {
        Self { software: request.software, siblings: request.hotfix_siblings, unlisted: request.unlisted }
    }
}

/// The evidence that a release runs on one Paper version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListingEvidence<'a> {
    /// The version is on its list.
    Listed,
    /// This hotfix sibling of the version is on its list.
    Sibling(&'a Minecraft),
    /// An override of the user.
    Override,
    /// The page has no list.
    NoList,
}

/// For each Minecraft version that a list may name, the Paper versions it counts for.
pub(crate) struct ListingReader {
    papers: Vec<Minecraft>,
    policy: ListingPolicy,
    /// The index of a Paper version, and whether it is only the sibling of the listed one.
    papers_by_entry: HashMap<Minecraft, Vec<(usize, bool)>>,
}

impl ListingReader {
    /// For these Paper versions, oldest first. `built` holds the versions that Paper itself has built.
    pub(crate) fn new<'a>(
        papers: impl Iterator<Item = &'a PaperVersion>,
        policy: ListingPolicy,
        built: &[&Minecraft],
    ) -> Self {
        let papers: Vec<Minecraft> = papers.map(|paper| paper.minecraft.clone()).collect();
        let mut papers_by_entry: HashMap<Minecraft, Vec<(usize, bool)>> = HashMap::new();
        if !policy.software.is_minecraft() {
            for (at, proxy) in papers.iter().enumerate() {
                papers_by_entry.entry(version_line(proxy)).or_default().push((at, false));
            }
            return Self { papers, policy, papers_by_entry };
        }
        for (at, paper) in papers.iter().enumerate() {
            papers_by_entry.entry(paper.clone()).or_default().push((at, false));
            for sibling in hotfix::siblings(paper) {
                papers_by_entry.entry(sibling.clone()).or_default().push((at, true));
            }
        }
        for (at, paper) in papers.iter().enumerate() {
            if let Some(skipped) = skipped_predecessor(paper, built) {
                let counts = papers_by_entry.entry(skipped).or_default();
                if counts.is_empty() {
                    counts.push((at, true));
                }
            }
        }
        Self { papers, policy, papers_by_entry }
    }

    /// The Paper versions, oldest first.
    pub(super) fn papers(&self) -> &[Minecraft] {
        &self.papers
    }

    /// Whether both readers interpret every list in the same way.
    pub(super) fn is_equivalent(&self, other: &Self) -> bool {
        self.papers == other.papers && self.policy == other.policy
    }

    /// Per Paper version, the evidence that `release` runs on it, or `None`. `states` holds the `api-version` of the
    /// selected JARs.
    pub(crate) fn evidence<'a>(
        &self,
        source: Source,
        release: &'a Release,
        states: &[&ApiVersion],
        user_override: Option<&CompatibilityOverride>,
    ) -> Vec<Option<ListingEvidence<'a>>> {
        let list = self.policy.software.listed_versions(source, release);
        let user_override = user_override.filter(|user_override| user_override.is_about(&release.version));
        let adds = user_override.is_some_and(|user_override| user_override.mode == OverrideMode::Add);
        // Adding to a missing list creates one, unless a missing list means every version.
        let made = adds && list.is_empty() && self.policy.unlisted == Unlisted::Refuse;
        let mut evidence = if made { self.papers.iter().map(|_| None).collect() } else { self.list_evidence(list) };
        if let Some(user_override) = user_override {
            self.apply_override(user_override, &mut evidence);
        }
        // Lists and overrides state what works. A release that the server refuses does not even start.
        for (paper, evidence) in self.papers.iter().zip(&mut evidence) {
            if api_version_refusal(states.iter().copied(), paper).is_some() {
                *evidence = None;
            }
        }
        evidence
    }

    fn list_evidence<'a>(&self, list: &'a [Minecraft]) -> Vec<Option<ListingEvidence<'a>>> {
        if list.is_empty() {
            return self.papers.iter().map(|_| Some(ListingEvidence::NoList)).collect();
        }
        let mut evidence: Vec<Option<ListingEvidence<'_>>> = self.papers.iter().map(|_| None).collect();
        for listed in list {
            for &(at, sibling) in self.papers_by_entry.get(listed).into_iter().flatten() {
                if sibling && self.policy.siblings == HotfixSiblings::Ask {
                    continue;
                }
                // Of two siblings, the newest counts, at any position in the list. Next to a skipped patch, that is the
                // hotfix sibling.
                let names = match &evidence[at] {
                    None => true,
                    Some(ListingEvidence::Sibling(other)) => listed > *other,
                    Some(_) => false,
                };
                if !sibling {
                    evidence[at] = Some(ListingEvidence::Listed);
                } else if names {
                    evidence[at] = Some(ListingEvidence::Sibling(listed));
                }
            }
        }
        evidence
    }

    /// The sibling on the list of `release` that would let it run on a Paper version (by position), if siblings were
    /// trusted.
    pub(crate) fn untrusted_sibling<'a>(
        &self,
        source: Source,
        release: &'a Release,
        states: &[&ApiVersion],
        paper: usize,
    ) -> Option<&'a Minecraft> {
        let siblings_untrusted = self.policy.siblings == HotfixSiblings::Ask
            && self.evidence(source, release, states, None).get(paper)?.is_none();
        let is_refused = api_version_refusal(states.iter().copied(), &self.papers[paper]).is_some();
        let counts =
            |listed: &&Minecraft| self.papers_by_entry.get(*listed).is_some_and(|for_| for_.contains(&(paper, true)));
        release.minecraft.iter().filter(|_| siblings_untrusted && !is_refused).filter(counts).max()
    }

    fn apply_override(&self, user_override: &CompatibilityOverride, evidence: &mut [Option<ListingEvidence<'_>>]) {
        for (paper, evidence) in self.papers.iter().zip(evidence) {
            let meant = user_override.minecraft.iter().any(|pattern| glob::matches(pattern, paper));
            match user_override.mode {
                OverrideMode::Add if meant && evidence.is_none() => *evidence = Some(ListingEvidence::Override),
                OverrideMode::Replace if meant || user_override.minecraft.is_empty() => {
                    *evidence = Some(ListingEvidence::Override);
                }
                OverrideMode::Replace => *evidence = None,
                OverrideMode::Remove if meant => *evidence = None,
                OverrideMode::Add | OverrideMode::Remove => {}
            }
        }
    }
}

/// The reason why a Paper version refuses to load a plugin whose JARs state these versions, regardless of overrides. If
/// there are several, an older server is the last one, because a newer one does not help against the others.
pub(crate) fn api_version_refusal<'x>(
    states: impl IntoIterator<Item = &'x ApiVersion>,
    paper: &Minecraft,
) -> Option<Unusable> {
    let reasons = states.into_iter().filter_map(|states| states.refusal(paper));
    let last = reasons.max_by_key(|reason| match reason {
        ApiVersionRefusal::Newer { needs } => (false, Some(needs.clone())),
        ApiVersionRefusal::Rule { .. } => (true, None),
    });
    last.map(Into::into)
}

/// The release one patch below `paper`, if Paper skipped it: Paper built versions before and after it, but never this
/// one.
///
/// A page that lists such a version can only mean the hotfix that followed (1.20.3, 1.21.2, 26.1).
fn skipped_predecessor(paper: &Minecraft, built: &[&Minecraft]) -> Option<Minecraft> {
    let [major, minor, patch] = paper.parts().filter(|_| paper.is_release())?;
    let patch = patch.checked_sub(1)?;
    let text = if patch == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{patch}") };
    let skipped: Minecraft = text.parse().expect("numbers separated by dots are a version");
    let built_before = built.iter().any(|built| **built < skipped);
    (built_before && !built.contains(&&skipped)).then_some(skipped)
}

/// The version line of a proxy as a page lists it: `3.4` for 3.4.0, 3.4.1 and 3.4.0-SNAPSHOT.
fn version_line(proxy: &Minecraft) -> Minecraft {
    let line = proxy.parts().and_then(|[major, minor, _]| format!("{major}.{minor}").parse().ok());
    line.unwrap_or_else(|| proxy.clone())
}
