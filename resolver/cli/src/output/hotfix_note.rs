//! Pure. Lists plugins that run because their page lists a hotfix sibling, as lines of a plan.

use schemars::JsonSchema;
use serde::Serialize;

use resolver::explanation::{Listing, SolvedExplanation};
use resolver::model::version::Minecraft;
use resolver::render::phrases::listed_for_sibling;

/// A release whose page lists not the Minecraft version of the server but its hotfix sibling, or one that Paper never
/// built.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HotfixListing {
    /// The display name of the plugin.
    pub(crate) name: String,
    /// The chosen version.
    version: String,
    /// The Minecraft version of the server.
    on: Minecraft,
    /// The Minecraft version on its list.
    listed_for: Minecraft,
}

impl HotfixListing {
    /// All such releases of a chosen version set, changed or not.
    pub(crate) fn from_solved(solved: &SolvedExplanation) -> Vec<Self> {
        let listings = solved.plugins.iter().filter_map(|plugin| {
            let Listing::Sibling { of } = &plugin.listing else { return None };
            Some(Self {
                name: plugin.name.clone(),
                version: plugin.version.clone(),
                on: solved.paper.minecraft.clone(),
                listed_for: of.clone(),
            })
        });
        listings.collect()
    }

    /// A table row: release, Minecraft version of the server, and listed Minecraft version.
    pub(crate) fn row(&self) -> Vec<String> {
        let Self { name, version, on, listed_for } = self;
        vec![format!("{name} {version} on {on}"), listed_for_sibling(listed_for, on)]
    }
}
