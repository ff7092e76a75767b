//! Pure. What the init container says of the plugins' data and the server's own settings: what it kept before a change of the set, and what it
//! put back.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What is kept, set aside and put back as one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DataPiece {
    /// The folder of one plugin, by its name in `plugins`.
    OfPlugin(String),
    /// A file or folder of settings of the server's own, by its name in the server's directory.
    OfServer(String),
}

/// In front of the name of a [`DataPiece::OfServer`]. No folder of a plugin has a name with it.
const OF_SERVER: &str = "./";

impl DataPiece {
    /// Where it lies, relative to the server's directory.
    pub fn path(&self) -> String {
        match self {
            Self::OfPlugin(folder) => format!("plugins/{folder}"),
            Self::OfServer(name) => name.clone(),
        }
    }
}

impl From<String> for DataPiece {
    fn from(text: String) -> Self {
        match text.strip_prefix(OF_SERVER) {
            Some(name) => Self::OfServer(name.to_owned()),
            None => Self::OfPlugin(text),
        }
    }
}

impl From<DataPiece> for String {
    fn from(piece: DataPiece) -> Self {
        piece.to_string()
    }
}

/// `LuckPerms`, `./bukkit.yml`.
impl fmt::Display for DataPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfPlugin(folder) => f.write_str(folder),
            Self::OfServer(name) => write!(f, "{OF_SERVER}{name}"),
        }
    }
}

/// What was kept before the set changed last, and what has become of it. The record `plugin-data.json` on the volume, and a part of the
/// report.
///
/// Places are relative to the server's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "PluginDataWire", into = "PluginDataWire")]
pub struct PluginData {
    /// When keeping began: nothing later is in it.
    pub at: Timestamp,
    /// The digest of the lock that had run.
    pub lock: String,
    /// The digest of the lock that it was kept before.
    pub before: String,
    /// Where those lie that were kept; None: there are none.
    pub place: Option<String>,
    /// Those that lie there, in order.
    pub kept: Vec<DataPiece>,
    /// Those that did not exist: whatever lies there later, `before` has made.
    pub absent: Vec<DataPiece>,
    /// Those that were not kept, in order.
    pub not_kept: Vec<NotKept>,
    /// What lay in the folders that were kept and cannot be copied, such as sockets. At most as many as in a
    /// [copy](crate::backup::LEFT_OUT_NAMED).
    pub left_out: Vec<String>,
    /// The settings of the plugins that stay as they are, below the names of their folders; None: none were kept. Nothing puts them back.
    pub settings: Option<Settings>,
    /// What came of it when the set went back; None: it has not.
    pub back: Option<PluginDataRestored>,
}

/// [`PluginData`] as it is written. What is the server's own stands apart: an agent of before knows plugins' folders only. It passes over the rest,
/// and puts those back.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PluginDataWire {
    at: Timestamp,
    lock: String,
    before: String,
    #[serde(default)]
    place: Option<String>,
    #[serde(default)]
    kept: Vec<DataPiece>,
    #[serde(default)]
    absent: Vec<DataPiece>,
    #[serde(default, skip_serializing_if = "ServerSettings::is_empty")]
    of_server: ServerSettings,
    #[serde(default)]
    not_kept: Vec<NotKept>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<Settings>,
    #[serde(default)]
    back: Option<PluginDataRestored>,
}

#[derive(Default, Serialize, Deserialize)]
struct ServerSettings {
    #[serde(default)]
    kept: Vec<DataPiece>,
    #[serde(default)]
    absent: Vec<DataPiece>,
}

impl ServerSettings {
    fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.absent.is_empty()
    }
}

impl From<PluginDataWire> for PluginData {
    fn from(written: PluginDataWire) -> Self {
        let PluginDataWire {
            at,
            lock,
            before,
            place,
            mut kept,
            mut absent,
            of_server,
            not_kept,
            left_out,
            settings,
            back,
        } = written;
        kept.extend(of_server.kept);
        absent.extend(of_server.absent);
        Self { at, lock, before, place, kept, absent, not_kept, left_out, settings, back }
    }
}

impl From<PluginData> for PluginDataWire {
    fn from(data: PluginData) -> Self {
        let PluginData { at, lock, before, place, kept, absent, not_kept, left_out, settings, back } = data;
        let apart =
            |pieces: Vec<DataPiece>| pieces.into_iter().partition(|piece| matches!(piece, DataPiece::OfPlugin(_)));
        let ((kept, kept_of_server), (absent, absent_of_server)) = (apart(kept), apart(absent));
        let of_server = ServerSettings { kept: kept_of_server, absent: absent_of_server };
        Self { at, lock, before, place, kept, absent, of_server, not_kept, left_out, settings, back }
    }
}

/// What was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotKept {
    /// What.
    #[serde(rename = "folder")]
    pub piece: DataPiece,
    /// Why.
    #[serde(flatten)]
    pub why: WhyNotKept,
    /// What was kept of it all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
}

/// The settings of a folder that was not kept whole, or of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// How many files were kept.
    pub files: usize,
    /// How many were found.
    pub of: usize,
    /// Where they lie, as they lay there.
    pub place: String,
}

/// Why it was not kept.
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
    /// It is a link, or a file in a folder's place, or lies on another volume: it could not be exchanged for another.
    #[serde(rename = "noFolder")]
    NotMovable,
    /// The file system said no, in words.
    Unreadable {
        /// What went wrong.
        problem: String,
    },
}

/// What is said of [`WhyNotKept::NotMovable`], behind the path.
pub(crate) const CANNOT_BE_MOVED: &str = "is a link, or of another kind than it should be, or lies on another volume";

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { piece, why, settings } = self;
        let path = piece.path();
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        match why {
            WhyNotKept::TooLarge { bytes, limit } => write!(
                f,
                "{path} has {} MB, more than the {} MB of `spec.keepPluginData.maxSize`",
                megabytes(*bytes),
                megabytes(*limit)
            )?,
            WhyNotKept::NoRoom { bytes, free } => write!(
                f,
                "{path} has {} MB and the volume has {} MB free for it: enlarge `spec.storage.size`",
                megabytes(*bytes),
                megabytes(*free)
            )?,
            WhyNotKept::NotMovable => write!(f, "{path} {CANNOT_BE_MOVED}")?,
            WhyNotKept::Unreadable { problem } => write!(f, "{path}: {problem}")?,
        }
        match settings {
            Some(Settings { files, of, place }) if files == of => write!(f, "; its settings lie in {place}"),
            Some(Settings { files, of, place }) => write!(f, "; {files} of its {of} files of settings lie in {place}"),
            None => Ok(()),
        }
    }
}

/// What came of what was kept when the set went back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PluginDataRestored {
    /// They lie in their places again.
    Done {
        /// When.
        at: Timestamp,
        /// Where those lie that were there; None: there were none.
        set_aside: Option<String>,
    },
    /// Somebody may have played since they were kept, so what lies there stays.
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

    fn dynmap() -> DataPiece {
        DataPiece::OfPlugin("dynmap".into())
    }

    #[test]
    fn a_folder_that_was_not_kept_is_named_with_the_reason_and_the_way_out() {
        let said = |why| NotKept { piece: dynmap(), why, settings: None }.to_string();
        let too_large = said(WhyNotKept::TooLarge { bytes: 20_000_000_001, limit: 536_870_912 });
        assert_eq!(too_large, "plugins/dynmap has 20001 MB, more than the 537 MB of `spec.keepPluginData.maxSize`");
        assert!(said(WhyNotKept::NoRoom { bytes: 1, free: 0 }).contains("enlarge `spec.storage.size`"));
        let place = ".nightshift/kept-settings/x/dynmap";
        for (files, said) in [(2, "its settings lie in"), (1, "1 of its 2 files of settings lie in")] {
            let settings = Some(Settings { files, of: 2, place: place.into() });
            let not_kept = NotKept { piece: dynmap(), why: WhyNotKept::NoRoom { bytes: 1, free: 0 }, settings };
            assert!(not_kept.to_string().ends_with(&format!("; {said} {place}")), "{not_kept}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let not_kept = [None, Some(Settings { files: 1, of: 2, place: ".nightshift/kept-settings/x/dynmap".into() })]
            .map(|settings| NotKept { piece: dynmap(), why: WhyNotKept::TooLarge { bytes: 3, limit: 2 }, settings })
            .to_vec();
        let place = ".nightshift/kept-settings/x";
        for back in [
            None,
            Some(PluginDataRestored::Done { at, set_aside: Some(".nightshift/failed/bb".into()) }),
            Some(PluginDataRestored::SomebodyPlayed { at }),
            Some(PluginDataRestored::Impossible { at, problem: "x".into() }),
        ] {
            let record = PluginData {
                at,
                lock: "aa".into(),
                before: "bb".into(),
                place: Some(".nightshift/kept/x".into()),
                kept: vec![DataPiece::OfPlugin("LuckPerms".into()), DataPiece::OfServer("bukkit.yml".into())],
                absent: vec![DataPiece::OfPlugin("Fresh".into())],
                not_kept: not_kept.clone(),
                left_out: vec![],
                settings: Some(Settings { files: 3, of: 4, place: place.into() }),
                back,
            };
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<PluginData>(&text).unwrap(), record, "{text}");
            assert!(text.contains(r#""settings":{"files":3,"of":4,"place":".nightshift/kept-settings/x"}"#), "{text}");
            assert!(text.contains(r#""kept":["LuckPerms"],"#), "as an agent of before reads it: {text}");
            assert!(text.contains(r#""ofServer":{"kept":["./bukkit.yml"]"#), "{text}");
        }
    }

    #[test]
    fn a_record_of_an_agent_of_before_is_read_and_one_without_settings_is_written_as_that_agent_did() {
        let before = r#"{"at":"2027-01-15T08:00:00Z","lock":"aa","before":"bb","place":null,"kept":[],"absent":["Fresh"],"notKept":[],"back":null}"#;
        let record: PluginData = serde_json::from_str(before).unwrap();
        assert_eq!(record.settings, None);
        assert_eq!(serde_json::to_string(&record).unwrap(), before);
    }
}
