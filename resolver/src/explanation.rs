//! Pure. Defines the explanation of a result as data. Reasons are enums, and only `render` turns them into text.

pub(crate) mod blocker;
pub(crate) mod conflict;
pub(crate) mod image;
pub(crate) mod shared_name;
mod shared_plugin;
pub(crate) mod solved;
pub(crate) mod unanswerable;
mod unread;
pub(crate) mod upstream_action;
mod warning;
mod why_not;
pub(crate) mod why_not_release;

use serde::{Deserialize, Serialize};

use crate::model::budget::BudgetExceeded;
use crate::model::software::Software;
use crate::model::unusable::Unusable;
pub use blocker::{Blocker, IneligibleCandidate, ListedRelease, UnmetNeed};
pub use conflict::{
    Conflict, DowngradePermission, Hint, HintStep, HintsLeftOut, ListOverride, ProposedManifest, Reason, RunningNow,
    Span,
};
pub use image::{ChosenImage, ImageChoice};
pub use shared_name::SharedName;
pub use shared_plugin::{ServerChoice, SharedPlugin, SharedVersion};
pub use solved::{
    ChosenPaper, ChosenPlugin, LaterRelease, Listing, NewerBuild, NewerPaper, NewerRelease, NotUpdatedWithLatest,
    SolvedExplanation, WhyOlder,
};
pub use unanswerable::{LastRead, Unanswerable};
pub use unread::{UnreadKind, UnreadPart};
pub use upstream_action::UpstreamAction;
pub use warning::{DelistedReason, Warning};
pub use why_not::{PaperPin, PluginState, WhyNot};
pub use why_not_release::{OtherRelease, Pinned, ReleaseState, WhyNotRelease};

/// The explanation of a result. Serialised for `--format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "answer", rename_all = "camelCase")]
pub enum Explanation {
    /// A version set was chosen.
    Solved(SolvedExplanation),
    /// No version set satisfies the request today.
    Impossible(Conflict),
    /// Why the server does not run a certain Paper version.
    WhyNot(WhyNot),
    /// Why the server does not run a certain release of a plugin.
    WhyNotRelease(WhyNotRelease),
    /// The available metadata cannot answer the request.
    Unanswerable(Unanswerable),
    /// The search stopped at its budget.
    GaveUp(BudgetExceeded),
}

impl Explanation {
    /// The server software, as far as the explanation knows it.
    pub(crate) fn software(&self) -> Software {
        match self {
            Self::Solved(solved) => solved.software,
            Self::Impossible(impossible) => impossible.software,
            Self::WhyNot(why) => why.software,
            Self::WhyNotRelease(why) => why.software,
            Self::Unanswerable(_) | Self::GaveUp(_) => Software::Paper,
        }
    }

    /// Returns the exceeded budget if a search was given up. Then the result, or the blockers of the next newer Paper
    /// version, are unknown.
    pub fn gave_up(&self) -> Option<&BudgetExceeded> {
        match self {
            Self::Solved(solved) => solved.newer_paper.first()?.gave_up.as_ref(),
            Self::GaveUp(gave_up) => Some(gave_up),
            Self::WhyNot(_) | Self::WhyNotRelease(_) | Self::Impossible(_) | Self::Unanswerable(_) => None,
        }
    }

    /// The reason why a chosen version set is not deployed, see [`SolvedExplanation::deploy_blocker`].
    pub fn deploy_blocker(&self) -> Option<(&str, &[String])> {
        match self {
            Self::Solved(solved) => solved.deploy_blocker(),
            Self::WhyNot(_)
            | Self::WhyNotRelease(_)
            | Self::Impossible(_)
            | Self::Unanswerable(_)
            | Self::GaveUp(_) => None,
        }
    }

    /// The blockers of a newer Paper version, by display name, in order. Empty if there are none or if they are
    /// unknown. Used for the `HELD BY` column.
    pub fn blocked_by(&self) -> Vec<&str> {
        match self {
            Self::Solved(solved) => {
                let newer = solved.newer_paper.first();
                newer
                    .map(|newer| blocker_names(newer.unusable.as_ref(), &newer.blocked_by, &newer.shared_versions))
                    .unwrap_or_default()
            }
            Self::WhyNot(why) => blocker_names(why.unusable.as_ref(), &why.blockers, &why.shared_versions),
            Self::WhyNotRelease(_) | Self::Impossible(_) | Self::Unanswerable(_) | Self::GaveUp(_) => Vec::new(),
        }
    }
}

/// Unmanaged JARs by file name, before the plugins.
fn blocker_names<'x>(
    unusable: Option<&'x Unusable>,
    blockers: &'x [Blocker],
    shared: &'x [SharedVersion],
) -> Vec<&'x str> {
    let files = unusable.map_or(&[][..], Unusable::unmanaged_files);
    let blockers = blockers.iter().map(|blocker| blocker.name.as_str());
    files.iter().map(String::as_str).chain(blockers).chain(shared.iter().flat_map(SharedVersion::names)).collect()
}
