//! Pure. What the init container says of the plugins' data: which folders it kept before a change of the set, and which it put back.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What was kept before the set changed last, and what has become of it. The record `plugin-data.json` on the volume, and a part of the
/// report.
///
/// Folders are named as they lie in `plugins`, places relative to the server's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginData {
    /// When keeping began: nothing later is in it.
    pub at: Timestamp,
    /// The digest of the lock that had run.
    pub lock: String,
    /// The digest of the lock that it was kept before.
    pub before: String,
    /// Where the folders lie that were kept; None: there are none.
    #[serde(default)]
    pub place: Option<String>,
    /// Folders that lie there, in order.
    #[serde(default)]
    pub kept: Vec<String>,
    /// Folders that did not exist: whatever lies there later, `before` has made.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Folders that were not kept, in order.
    #[serde(default)]
    pub not_kept: Vec<NotKept>,
    /// What lay in the folders that were kept and cannot be copied, such as sockets. At most as many as in a
    /// [copy](crate::backup::LEFT_OUT_NAMED).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What came of it when the set went back; None: it has not.
    #[serde(default)]
    pub back: Option<PutBack>,
}

/// A folder that was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotKept {
    /// Its name in `plugins`.
    pub folder: String,
    /// Why.
    #[serde(flatten)]
    pub why: WhyNotKept,
    /// What was kept of it all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
}

/// The settings of a folder that was not kept whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// How many files were kept.
    pub files: usize,
    /// How many there are.
    pub of: usize,
    /// Where they lie, as they lay in the folder.
    pub place: String,
}

/// Why a folder was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WhyNotKept {
    /// Larger than `spec.keepPluginData.maxSize`.
    TooLarge {
        /// Its files, in bytes.
        bytes: u64,
        /// What one folder may have, in bytes.
        limit: u64,
    },
    /// The volume has no room for it.
    NoRoom {
        /// Its files, in bytes.
        bytes: u64,
        /// What is free for it, in bytes.
        free: u64,
    },
    /// It is a link or a file, or lies on another volume: it could not be exchanged for another.
    NoFolder,
    /// The file system said no, in words.
    Unreadable {
        /// What went wrong.
        problem: String,
    },
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, why, settings } = self;
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        match why {
            WhyNotKept::TooLarge { bytes, limit } => write!(
                f,
                "plugins/{folder} has {} MB, more than the {} MB of `spec.keepPluginData.maxSize`",
                megabytes(*bytes),
                megabytes(*limit)
            )?,
            WhyNotKept::NoRoom { bytes, free } => write!(
                f,
                "plugins/{folder} has {} MB and the volume has {} MB free for it: enlarge `spec.storage.size`",
                megabytes(*bytes),
                megabytes(*free)
            )?,
            WhyNotKept::NoFolder => write!(f, "plugins/{folder} is a link or a file, or lies on another volume")?,
            WhyNotKept::Unreadable { problem } => write!(f, "plugins/{folder}: {problem}")?,
        }
        match settings {
            Some(Settings { files, of, place }) if files == of => write!(f, "; its settings lie in {place}"),
            Some(Settings { files, of, place }) => write!(f, "; {files} of its {of} files of settings lie in {place}"),
            None => Ok(()),
        }
    }
}

/// What came of the folders that were kept when the set went back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PutBack {
    /// They lie in `plugins` again.
    Done {
        /// When.
        at: Timestamp,
        /// Where the folders lie that were there; None: there were none.
        set_aside: Option<String>,
    },
    /// Somebody may have played since they were kept, so what lies in `plugins` stays.
    SomebodyPlayed {
        /// When that was found.
        at: Timestamp,
    },
    /// They could not be exchanged, and nothing was touched.
    Impossible {
        /// When that was found.
        at: Timestamp,
        /// What is in the way, in words.
        problem: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_not_kept_is_named_with_the_reason_and_the_way_out() {
        let said = |why| NotKept { folder: "dynmap".into(), why, settings: None }.to_string();
        let too_large = said(WhyNotKept::TooLarge { bytes: 20_000_000_001, limit: 536_870_912 });
        assert_eq!(too_large, "plugins/dynmap has 20001 MB, more than the 537 MB of `spec.keepPluginData.maxSize`");
        assert!(said(WhyNotKept::NoRoom { bytes: 1, free: 0 }).contains("enlarge `spec.storage.size`"));
        let place = ".nightshift/kept-settings/x/dynmap";
        for (files, said) in [(2, "its settings lie in"), (1, "1 of its 2 files of settings lie in")] {
            let settings = Some(Settings { files, of: 2, place: place.into() });
            let not_kept = NotKept { folder: "dynmap".into(), why: WhyNotKept::NoRoom { bytes: 1, free: 0 }, settings };
            assert!(not_kept.to_string().ends_with(&format!("; {said} {place}")), "{not_kept}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let not_kept = [None, Some(Settings { files: 1, of: 2, place: ".nightshift/kept-settings/x/dynmap".into() })]
            .map(|settings| NotKept {
                folder: "dynmap".into(),
                why: WhyNotKept::TooLarge { bytes: 3, limit: 2 },
                settings,
            })
            .to_vec();
        for back in [
            None,
            Some(PutBack::Done { at, set_aside: Some(".nightshift/failed/bb".into()) }),
            Some(PutBack::SomebodyPlayed { at }),
            Some(PutBack::Impossible { at, problem: "x".into() }),
        ] {
            let record = PluginData {
                at,
                lock: "aa".into(),
                before: "bb".into(),
                place: Some(".nightshift/kept/x".into()),
                kept: vec!["LuckPerms".into()],
                absent: vec!["Fresh".into()],
                not_kept: not_kept.clone(),
                left_out: vec![],
                back,
            };
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<PluginData>(&text).unwrap(), record, "{text}");
        }
    }
}
