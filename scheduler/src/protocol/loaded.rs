//! Pure. The worlds and datapacks that a start of the server has opened, in names that are the same before and after Minecraft 26.1 moved
//! every world into the level's folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many worlds, and how many datapacks, are told apart. Where there are more (a world for each island of each player) they come and go by
/// themselves, and to compare them would be to compare nothing.
pub const MOST: usize = 200;

/// What a start of the server made of worlds and datapacks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Loaded {
    /// Worlds: `overworld`, `the_nether`, `creative`, and with its namespace where that is not Minecraft's own, `skylands:high`.
    /// None: they could not be read, or are more than [`MOST`].
    #[serde(default)]
    pub worlds: Option<BTreeMap<String, AtStart>>,
    /// There are more worlds than are told apart.
    #[serde(default)]
    pub too_many_worlds: bool,
    /// Datapacks that people put into the level's folder, as Minecraft calls them: `file/skylands.zip`. Those of the server's own and those
    /// that plugins bring are not among them. None: as for the worlds.
    #[serde(default)]
    pub datapacks: Option<BTreeMap<String, AtStart>>,
    /// There are more datapacks than are told apart.
    #[serde(default)]
    pub too_many_datapacks: bool,
}

/// What a start made of one world or datapack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AtStart {
    /// It was opened.
    Opened,
    /// It lies on the volume and was not opened, and at least three starts in a row had opened it before, the last of them with another set, and
    /// nobody closed it until its stop.
    NotAnyMore,
    /// Nor was it opened by this start; but somebody had closed it before while the server ran, and no start has opened it since.
    ClosedBefore,
    /// It lies on the volume and was not opened. Whether every start opens it nobody knows: a plugin may choose another map each time. The same is
    /// what an operator makes of a word that only newer agents know: the rest of the report counts.
    #[serde(other)]
    NotOpened,
}

/// Whether a world that had the name `before` may be the one that is called `now`. Before 26.1 the folder of a world says nothing of the
/// namespace that its plugin gave it, and the move of 26.1 brings it to light.
pub fn is_same_world(before: &str, now: &str) -> bool {
    before == now || now.split_once(':').is_some_and(|(_, path)| path == before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_the_move_of_26_1_brings_to_light_makes_no_other_world() {
        assert!(is_same_world("creative", "creative") && is_same_world("creative", "myplugin:creative"));
        assert!(is_same_world("skylands:high", "skylands:high"));
        assert!(!is_same_world("skylands:high", "other:high") && !is_same_world("creative", "creative_old"));
    }

    #[test]
    fn what_an_agent_leaves_out_is_not_known() {
        assert_eq!(serde_json::from_str::<Loaded>("{}").unwrap(), Loaded::default());
        let loaded: Loaded = serde_json::from_str(r#"{"worlds": {"creative": "closedBefore"}, "more": 1}"#).unwrap();
        assert_eq!(loaded.worlds.unwrap()["creative"], AtStart::ClosedBefore);
    }

    #[test]
    fn a_word_of_a_newer_agent_spoils_no_report_and_proves_nothing() {
        let loaded: Loaded =
            serde_json::from_str(r#"{"worlds": {"creative": "halfOpen", "lobby": "opened"}}"#).unwrap();
        let worlds = loaded.worlds.unwrap();
        assert_eq!((worlds["creative"], worlds["lobby"]), (AtStart::NotOpened, AtStart::Opened));
    }
}
