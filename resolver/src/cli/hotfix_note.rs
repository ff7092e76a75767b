//! Pure. What runs because the list of its page counts for a hotfix sibling, as lines of a plan.

use schemars::JsonSchema;
use serde::Serialize;

use crate::explain::phrases::listed_for_sibling;
use crate::explain::{Listing, SolvedExplanation};
use crate::version::Minecraft;

/// A release whose page does not list the Minecraft version that it would run on, and lists its hotfix sibling, or one that Paper never built.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HotfixListing {
    /// The name that people know the plugin by.
    pub(super) name: String,
    /// What would run.
    version: String,
    /// The Minecraft version that it would run on.
    on: Minecraft,
    /// The one on its list.
    listed_for: Minecraft,
}

impl HotfixListing {
    /// All of a chosen set, whether they are another than now or not.
    pub(super) fn of(solved: &SolvedExplanation) -> Vec<Self> {
        let counted = solved.plugins.iter().filter_map(|plugin| {
            let Listing::Sibling { of } = &plugin.listing else { return None };
            Some(Self {
                name: plugin.name.clone(),
                version: plugin.version.clone(),
                on: solved.paper.minecraft.clone(),
                listed_for: of.clone(),
            })
        });
        counted.collect()
    }

    /// For people: what runs where, and what its page lists.
    pub(super) fn row(&self) -> Vec<String> {
        let Self { name, version, on, listed_for } = self;
        vec![format!("{name} {version} on {on}"), listed_for_sibling(listed_for, on)]
    }
}
