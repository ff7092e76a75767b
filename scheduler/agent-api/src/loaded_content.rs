//! Pure. Defines the report on worlds and datapacks that a start of the server has opened.
//!
//! The names are the same before and after Minecraft 26.1, which moved every world into the level's folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many worlds, and how many datapacks, are tracked. Servers with more (a world for each island of each player) create and delete them
/// automatically, so a comparison would be meaningless.
pub const MAX_TRACKED: usize = 200;

/// The worlds and datapacks of one start of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Loaded {
    /// Worlds: `overworld`, `the_nether`, `creative`, and with its namespace if that is not Minecraft's own, `skylands:high`. `None`: they could
    /// not be read, or are more than [`MAX_TRACKED`].
    #[serde(default)]
    pub worlds: Option<BTreeMap<String, AtStart>>,
    /// Whether more worlds exist than are tracked.
    #[serde(default)]
    pub too_many_worlds: bool,
    /// Datapacks that users put into the level's folder, by Minecraft's name for them: `file/skylands.zip`. Datapacks of the server itself and of
    /// plugins are not included. `None`: as for the worlds.
    #[serde(default)]
    pub datapacks: Option<BTreeMap<String, AtStart>>,
    /// Whether more datapacks exist than are tracked.
    #[serde(default)]
    pub too_many_datapacks: bool,
}

/// The result of a start for one world or datapack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AtStart {
    /// It was opened.
    Opened,
    /// It is on the volume and was not opened. At least three starts in a row had opened it before, the last of them with another version set,
    /// and it was not closed until the stop.
    NotAnyMore,
    /// It was not opened by this start either. It had been closed before while the server ran, and no start has opened it since.
    ClosedBefore,
    /// It is on the volume and was not opened. Whether every start opens it is unknown: a plugin may choose another map each time. An operator
    /// also uses this value for a word that only newer agents know, so that the rest of the report stays usable.
    #[serde(other)]
    NotOpened,
}

/// Whether a world named `before` may be the one that is called `now`. Before 26.1 the folder of a world does not contain the namespace that its
/// plugin gave it, and the move of 26.1 reveals it.
pub fn is_same_world(before: &str, now: &str) -> bool {
    before == now || now.split_once(':').is_some_and(|(_, path)| path == before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn world_is_same_after_26_1_adds_its_namespace() {
        assert!(is_same_world("creative", "creative") && is_same_world("creative", "myplugin:creative"));
        assert!(is_same_world("skylands:high", "skylands:high"));
        assert!(!is_same_world("skylands:high", "other:high") && !is_same_world("creative", "creative_old"));
    }

    #[test]
    fn fields_omitted_by_agent_are_unknown() {
        assert_eq!(serde_json::from_str::<Loaded>("{}").unwrap(), Loaded::default());
        let loaded: Loaded = serde_json::from_str(r#"{"worlds": {"creative": "closedBefore"}, "more": 1}"#).unwrap();
        assert_eq!(loaded.worlds.unwrap()["creative"], AtStart::ClosedBefore);
    }

    #[test]
    fn unknown_world_state_of_newer_agent_means_not_opened() {
        let loaded: Loaded =
            serde_json::from_str(r#"{"worlds": {"creative": "halfOpen", "lobby": "opened"}}"#).unwrap();
        let worlds = loaded.worlds.unwrap();
        assert_eq!((worlds["creative"], worlds["lobby"]), (AtStart::NotOpened, AtStart::Opened));
    }
}
