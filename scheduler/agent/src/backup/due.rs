//! Pure. Decides whether an update needs a backup before it, and of which part.

use crate::staging::AppliedManifest;
use crate::world::{Worlds, is_irreversible};
use agent_api::Contents;
use agent_api::FileSet;

/// The updates before which a backup is taken (`spec.backup.beforeUpdate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupBefore {
    /// Back up the worlds before a Minecraft opens them that converts them irreversibly.
    OneWay,
    /// Back up everything before each change of the version set.
    Always,
    /// Take no backup.
    Never,
}

/// A text that is none of these values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write `OneWay`, `Always` or `Never`")]
pub struct ParseBeforeError;

impl std::str::FromStr for BackupBefore {
    type Err = ParseBeforeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "OneWay" => Ok(Self::OneWay),
            "Always" => Ok(Self::Always),
            "Never" => Ok(Self::Never),
            _ => Err(ParseBeforeError),
        }
    }
}

impl std::fmt::Display for BackupBefore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OneWay => "OneWay",
            Self::Always => "Always",
            Self::Never => "Never",
        })
    }
}

/// The part that must be backed up before `set` starts on this volume, where `last` ran.
///
/// A second start of the same lock needs no backup, because it has already made its changes. A rollback to the previous lock needs none either,
/// unless that has a newer Minecraft: a rollback must not be delayed. Applying a lock again after a rollback from it is not a rollback.
pub fn due(before: BackupBefore, last: Option<&AppliedManifest>, set: &FileSet, worlds: &Worlds) -> Option<Contents> {
    if last.is_some_and(|last| last.lock == set.lock) {
        return None;
    }
    let is_irreversible = is_irreversible(worlds, set, last.map(|last| last.minecraft.as_str()));
    let is_rollback = last.is_some_and(|last| last.is_rollback_to(&set.lock));
    match before {
        BackupBefore::Never => None,
        BackupBefore::OneWay => is_irreversible.then_some(Contents::Worlds),
        BackupBefore::Always if is_irreversible => Some(Contents::Everything),
        // On a volume without a previous Nightshift lock, no rollback is possible.
        BackupBefore::Always => (last.is_some() && !is_rollback).then_some(Contents::Everything),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::world::{self, LevelDat, Role, WorldFolder};
    use agent_api::Floor;

    fn set(lock: &str, minecraft: &str, data_version: Option<u32>) -> FileSet {
        FileSet { lock: lock.into(), ..world::tests::set(minecraft, data_version) }
    }

    fn ran(lock: &str, previous: Option<&str>) -> AppliedManifest {
        AppliedManifest {
            lock: lock.into(),
            previous: previous.map(str::to_owned),
            went_back: false,
            minecraft: "1.21.10".into(),
            build: 1,
            files: BTreeMap::new(),
        }
    }

    fn folder(path: &str, level: Option<LevelDat>, role: Role) -> WorldFolder {
        WorldFolder { path: path.into(), level, old_layout: true, new_layout: false, role }
    }

    fn one_world(level: Option<LevelDat>) -> Worlds {
        Worlds { folders: vec![folder("/data/world", level, Role::Level)] }
    }

    fn level(minecraft: &str, data_version: u32) -> LevelDat {
        LevelDat::OpenedBy(Floor { minecraft: minecraft.into(), data_version })
    }

    fn opened_by(minecraft: &str, data_version: u32) -> Worlds {
        one_world(Some(level(minecraft, data_version)))
    }

    #[test]
    fn worlds_are_backed_up_before_first_newer_minecraft_start() {
        let worlds = opened_by("1.21.10", 4556);
        let newer = set("b", "1.21.11", Some(4671));
        assert_eq!(due(BackupBefore::OneWay, Some(&ran("a", None)), &newer, &worlds), Some(Contents::Worlds));
        assert_eq!(
            due(BackupBefore::OneWay, None, &newer, &worlds),
            Some(Contents::Worlds),
            "the adopted world is older than the first lock"
        );
        assert_eq!(due(BackupBefore::OneWay, Some(&ran("b", Some("a"))), &newer, &worlds), None);
        assert_eq!(due(BackupBefore::Never, Some(&ran("a", None)), &newer, &worlds), None);
        assert_eq!(due(BackupBefore::Always, Some(&ran("a", None)), &newer, &worlds), Some(Contents::Everything));
    }

    #[test]
    fn lock_without_data_version_is_compared_by_version_name() {
        let by_name = set("b", "1.21.11", None);
        assert_eq!(due(BackupBefore::OneWay, None, &by_name, &opened_by("1.21.10", 4556)), Some(Contents::Worlds));
        assert_eq!(due(BackupBefore::OneWay, None, &by_name, &opened_by("1.21.11", 4671)), None);
        assert_eq!(
            due(BackupBefore::OneWay, None, &by_name, &one_world(Some(LevelDat::BeforeVersions))),
            Some(Contents::Worlds)
        );
        assert_eq!(
            due(BackupBefore::OneWay, None, &by_name, &Worlds::default()),
            None,
            "a volume without a world needs no backup"
        );
    }

    #[test]
    fn newer_unopened_world_does_not_disable_backup_of_others() {
        let of = |of_level, of_event, of_creative| Worlds {
            folders: vec![
                folder("/data/creative", of_creative, Role::Opened),
                folder("/data/event", of_event, Role::Unused),
                folder("/data/world", of_level, Role::Level),
            ],
        };
        let (old, new) = (|| Some(level("1.21.10", 4556)), || Some(level("1.21.11", 4671)));
        let newer = set("b", "1.21.11", Some(4671));
        let before = |worlds: &Worlds, last: &AppliedManifest| due(BackupBefore::OneWay, Some(last), &newer, worlds);
        assert_eq!(before(&of(old(), new(), old()), &ran("a", None)), Some(Contents::Worlds));
        assert_eq!(before(&of(Some(LevelDat::BeforeVersions), new(), new()), &ran("a", None)), Some(Contents::Worlds));
        assert_eq!(before(&of(new(), new(), old()), &ran("a", None)), Some(Contents::Worlds), "an opened world is old");
        assert_eq!(
            before(&of(new(), old(), new()), &ran("a", None)),
            None,
            "a world that the server does not open does not count"
        );
        let same = AppliedManifest { minecraft: "1.21.11".into(), ..ran("a", None) };
        assert_eq!(
            before(&of(new(), old(), old()), &same),
            None,
            "the same Minecraft has run here and may have opened it"
        );
    }

    #[test]
    fn rolled_back_lock_triggers_backup_before_its_next_try() {
        let worlds = opened_by("1.21.10", 4556);
        let tried = set("b", "1.21.10", Some(4556));
        let rolled_back = AppliedManifest { went_back: true, ..ran("a", Some("b")) };
        assert_eq!(due(BackupBefore::Always, Some(&rolled_back), &tried, &worlds), Some(Contents::Everything));
    }

    #[test]
    fn always_policy_backs_up_before_updates_but_not_rollbacks() {
        let worlds = opened_by("1.21.10", 4556);
        let same = set("b", "1.21.10", Some(4556));
        assert_eq!(due(BackupBefore::Always, Some(&ran("a", None)), &same, &worlds), Some(Contents::Everything));
        assert_eq!(due(BackupBefore::OneWay, Some(&ran("a", None)), &same, &worlds), None);
        assert_eq!(
            due(BackupBefore::Always, Some(&ran("c", Some("b"))), &same, &worlds),
            None,
            "a rollback needs no backup"
        );
        assert_eq!(due(BackupBefore::Always, None, &same, &worlds), None, "no lock ran, so no rollback is possible");
    }

    #[test]
    fn backup_policy_names_are_read_as_written() {
        for before in [BackupBefore::OneWay, BackupBefore::Always, BackupBefore::Never] {
            assert_eq!(before.to_string().parse(), Ok(before));
        }
        assert!("oneway".parse::<BackupBefore>().is_err());
    }
}
