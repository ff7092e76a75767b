//! Pure. The explanation: the answer as data. Reasons stay enums here; text is made in [`human`] only.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::compatibility_facts::UsedFact;
use crate::ignore_unknown_fields::passing_over;
use crate::index::CandidateIndex;
use crate::software::Software;
use crate::solve::BudgetExceeded;
use crate::solve::budget::BudgetMeter;
use crate::solve::group::group_context::GroupContext;
use crate::unusable::Unusable;
use crate::version::Minecraft;

mod blockers;
mod conflict;
mod delisted;
mod hints;
mod image;
mod name_conflicts;
pub(crate) mod phrases;
mod shared_plugin;
pub(crate) mod shared_plugins;
pub mod short_form;
pub(crate) mod solved;
pub mod svg;
pub mod text;
mod unanswerable;
pub(crate) mod unsolvable;
mod upstream_actions;
mod warning;
mod why_not;
pub(crate) mod why_not_release;
pub(crate) mod why_not_version;

#[cfg(feature = "cli")]
pub(crate) use blockers::last_release;
pub(crate) use blockers::up_to;
pub use blockers::{Blocker, IneligibleCandidate, ListedRelease, UnmetNeed};
use conflict::is_zero;
pub use conflict::{
    Conflict, DowngradePermission, Hint, HintStep, HintsLeftOut, ListOverride, ProposedManifest, Reason, RunningNow,
    Span,
};
pub(crate) use hints::apply_to_others;
pub use image::{ChosenImage, ImageChoice};
pub use name_conflicts::SharedName;
pub use shared_plugin::{OneVersion, ServerChoice, SharedPlugin};
pub use unanswerable::{LastRead, Unanswerable};
pub use upstream_actions::UpstreamAction;
pub use warning::{DelistedReason, Warning};
pub use why_not::{PaperPin, PluginState, WhyNot};
pub use why_not_release::{OtherRelease, Pinned, ReleaseState, WhyNotRelease};

/// What every part of an explanation asks of.
pub(crate) struct ExplainContext<'x, 'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) world: &'x CandidateIndex<'a>,
    pub(crate) meter: &'x BudgetMeter,
    /// The others that share a plugin with the server, if there are any.
    pub(crate) company: Option<&'x GroupContext<'x, 'a>>,
}

/// What can be said about an answer. Serialises for `--format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "answer", rename_all = "camelCase")]
pub enum Explanation {
    /// A set was chosen.
    Solved(SolvedExplanation),
    /// No set meets the request today.
    Impossible(Conflict),
    /// Why a certain Paper is not what runs.
    WhyNot(WhyNot),
    /// Why a certain release of a plugin is not what runs.
    WhyNotRelease(WhyNotRelease),
    /// No metadata answers the question.
    Unanswerable(Unanswerable),
    /// The search was given up.
    GaveUp(BudgetExceeded),
}

impl Explanation {
    /// What the server runs as, as far as the answer knows it.
    pub(crate) fn software(&self) -> Software {
        match self {
            Self::Solved(solved) => solved.software,
            Self::Impossible(impossible) => impossible.software,
            Self::WhyNot(why) => why.software,
            Self::WhyNotRelease(why) => why.software,
            Self::Unanswerable(_) | Self::GaveUp(_) => Software::Paper,
        }
    }

    /// That a search was given up, so that nothing is known of an answer, or of who holds the next newer Paper.
    pub fn gave_up(&self) -> Option<&BudgetExceeded> {
        match self {
            Self::Solved(solved) => solved.newer_paper.first()?.gave_up.as_ref(),
            Self::GaveUp(gave_up) => Some(gave_up),
            Self::WhyNot(_) | Self::WhyNotRelease(_) | Self::Impossible(_) | Self::Unanswerable(_) => None,
        }
    }

    /// What keeps a chosen set from being brought, see [`SolvedExplanation::stopped_by`].
    pub fn stopped_by(&self) -> Option<(&str, &[String])> {
        match self {
            Self::Solved(solved) => solved.stopped_by(),
            Self::WhyNot(_)
            | Self::WhyNotRelease(_)
            | Self::Impossible(_)
            | Self::Unanswerable(_)
            | Self::GaveUp(_) => None,
        }
    }

    /// Who holds Paper back, by the name people know, in order; empty when nobody does, or when it was not found out. For the `HELD BY` column.
    pub fn held_by(&self) -> Vec<&str> {
        match self {
            Self::Solved(solved) => {
                let newer = solved.newer_paper.first();
                newer
                    .map(|newer| names(newer.unusable.as_ref(), &newer.held_by, &newer.one_version))
                    .unwrap_or_default()
            }
            Self::WhyNot(why) => names(why.unusable.as_ref(), &why.holders, &why.one_version),
            Self::WhyNotRelease(_) | Self::Impossible(_) | Self::Unanswerable(_) | Self::GaveUp(_) => Vec::new(),
        }
    }
}

/// JARs of one's own by their files, before the plugins.
fn names<'x>(unusable: Option<&'x Unusable>, holders: &'x [Blocker], shared: &'x [OneVersion]) -> Vec<&'x str> {
    let files = unusable.map_or(&[][..], Unusable::own_files);
    let holders = holders.iter().map(|holder| holder.name.as_str());
    files.iter().map(String::as_str).chain(holders).chain(shared.iter().flat_map(OneVersion::names)).collect()
}

/// The yes: what was chosen, and why nothing newer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SolvedExplanation {
    /// The server as the request names it.
    pub server: String,
    /// What it runs as; absent for Paper. Whatever is called Paper here is of this.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The chosen Paper.
    pub paper: ChosenPaper,
    /// Its Java and its image.
    pub image: ChosenImage,
    /// The chosen plugins, in the lock's order.
    pub plugins: Vec<ChosenPlugin>,
    /// Plugins that run now and are removed, because nobody asks for them and nothing needs them: name and version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<(String, String)>,
    /// Newer Papers that were not chosen: the next one up, then the newest of all if that is another; at most two.
    pub newer_paper: Vec<NewerPaper>,
    /// Plugins that strategy `latest` left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfollowed: Vec<NotUpdatedWithLatest>,
    /// Facts about versions that bind the chosen plugins and that no page states, each with who says so.
    #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<UsedFact>,
    /// What was assumed on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What can be done; each was proven by solving with it applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Hint>,
    /// How many further ways were left out to stay short; they change or risk more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_hints: usize,
    /// Set when not every way was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints_left_out: Option<HintsLeftOut>,
    /// Who would have to release or list what. Not proven: it changes nothing of yours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<UpstreamAction>,
    /// Set when lists were read after the instant of the question: older text is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists_read_later: Option<Timestamp>,
}

impl SolvedExplanation {
    /// Whether anything of what runs would be another.
    #[cfg(feature = "cli")]
    pub(crate) fn is_change(&self) -> bool {
        is_change(&self.paper, &self.plugins, &self.removed)
    }

    /// What keeps the set from being brought: a plugin name that several files have, with those files.
    pub fn stopped_by(&self) -> Option<(&str, &[String])> {
        self.warnings.iter().find_map(|warning| {
            let Warning::SharedName { name, files, stops: true } = warning else { return None };
            Some((name.as_str(), files.as_slice()))
        })
    }
}

/// Whether anything of what runs would be another.
fn is_change(paper: &ChosenPaper, plugins: &[ChosenPlugin], removed: &[(String, String)]) -> bool {
    let changes = |plugin: &ChosenPlugin| !plugin.runs_now || plugin.instead_of.is_some();
    !paper.runs_now || !removed.is_empty() || plugins.iter().any(changes)
}

/// The chosen Paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChosenPaper {
    /// Its Minecraft version.
    pub minecraft: Minecraft,
    /// Its build.
    pub build: u32,
    /// When the build was published.
    pub published: Timestamp,
    /// What runs now, when that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<PaperName>,
    /// Whether exactly this build runs now.
    pub runs_now: bool,
    /// A newer build of the same Minecraft version that may not be used yet, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer_build: Option<NewerBuild>,
}

/// A Minecraft version and a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PaperName {
    /// The software; absent for Paper.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// Minecraft version.
    pub minecraft: Minecraft,
    /// Build number.
    pub build: u32,
}

/// A newer build and why it was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewerBuild {
    /// Its number.
    pub build: u32,
    /// Why not; `None`: the user pinned another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
}

/// One chosen plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChosenPlugin {
    /// The name people know.
    pub name: String,
    /// Plugin objects that ask for it; empty when only other plugins need it.
    pub objects: Vec<String>,
    /// Names of the chosen plugins that need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed_by: Vec<String>,
    /// The chosen version.
    pub version: String,
    /// When it was published, if anybody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// How we know that it runs on the chosen Paper.
    pub listing: Listing,
    /// What runs now, when that is another version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// Whether it runs now, in any version.
    pub runs_now: bool,
    /// The newest release on its channel, when that was not chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<NewerRelease>,
    /// The newest one that only a date or other plugins keep back, where something else stands against [`Self::newest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NewerRelease>,
}

impl ChosenPlugin {
    /// The newer releases that are told of, each with whom it is of; of one plugin the newest first.
    pub fn newer(plugins: &[Self]) -> impl Iterator<Item = (&Self, &NewerRelease)> {
        plugins.iter().flat_map(|plugin| plugin.newest.iter().chain(&plugin.next).map(move |newer| (plugin, newer)))
    }
}

/// How we know that a release runs on a Paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "known", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Listing {
    /// Its page lists the version.
    Listed,
    /// Its page lists a version with the same network protocol, or one that Paper never built.
    Sibling {
        /// The version on the list.
        of: Minecraft,
    },
    /// The user said so.
    Override,
    /// Nobody said anything about any version: allowed, with a warning.
    NoList,
    /// Not listed; it runs now and stays (strategy `latest`).
    RunsNow,
    /// On its page no more; it runs now and stays.
    Lost,
}

/// A newer release that was not chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewerRelease {
    /// Its version.
    pub version: String,
    /// When it was published, if anybody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// Why not this one.
    pub because: WhyOlder,
}

/// Why a newer release was not chosen although the plugin was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WhyOlder {
    /// It may not be used.
    Unusable {
        /// Why.
        unusable: Unusable,
    },
    /// Its list does not name the chosen Paper.
    NotListed {
        /// The newest version on its list.
        up_to: Option<Minecraft>,
    },
    /// The user pinned another one.
    Pinned,
    /// It does not go together with these others, as they were chosen.
    Others {
        /// Names people know, with the chosen versions.
        with: Vec<String>,
        /// What says so that no page states.
        #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
        facts: Vec<UsedFact>,
    },
    /// It needs these, which cannot be had with the rest.
    Needs {
        /// Names people know.
        needs: Vec<String>,
    },
    /// It is one version on several servers, and some of them cannot take this one.
    OneVersion {
        /// Who.
        one_version: OneVersion,
    },
}

/// A newer Paper that was not chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewerPaper {
    /// Its Minecraft version.
    pub minecraft: Minecraft,
    /// When its first build was published.
    pub since: Timestamp,
    /// Why it may not be used at all, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
    /// Set when a pin of the user's holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<PaperPin>,
    /// The plugins that hold it, by name; also beside a reason why it may not be used at all.
    pub held_by: Vec<Blocker>,
    /// Set when who holds it was not found out within the budget: nobody is named then, and nobody counted as ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gave_up: Option<BudgetExceeded>,
    /// The plugins that are one version on several servers and hold it so; also where something else stands against it besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_version: Vec<OneVersion>,
    /// How many of the chosen plugins are ready for it.
    pub ready: usize,
    /// Whether there is a way back: false when a world opened by it cannot return to the chosen one.
    pub one_way: bool,
}

/// A plugin that strategy `latest` could not take along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotUpdatedWithLatest {
    /// The name people know.
    pub name: String,
    /// The Plugin object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Why: the same facts as for a holder. Its own, or those of something it needs.
    pub holder: Blocker,
    /// The version that stays because it runs now; `None`: it is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays: Option<String>,
}
