//! Pure. Defines the init container's report on plugins' data and the server's own settings that were saved before an update, or restored.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A folder or file that is saved, displaced and restored as a unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DataPiece {
    /// The folder of one plugin, by its name in `plugins`.
    OfPlugin(String),
    /// A file or folder with the server's own settings, by its name in the server's directory.
    OfServer(String),
}

/// The prefix of the name of a [`DataPiece::OfServer`]. No plugin folder has a name with it.
const SERVER_PREFIX: &str = "./";

impl DataPiece {
    /// Its path, relative to the server's directory.
    pub fn path(&self) -> String {
        match self {
            Self::OfPlugin(folder) => format!("plugins/{folder}"),
            Self::OfServer(name) => name.clone(),
        }
    }
}

impl From<String> for DataPiece {
    fn from(text: String) -> Self {
        match text.strip_prefix(SERVER_PREFIX) {
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
            Self::OfServer(name) => write!(f, "{SERVER_PREFIX}{name}"),
        }
    }
}

/// The data that was saved before the last change of the version set, and its later state. It is the record `plugin-data.json` on the volume, and
/// a part of the report.
///
/// Paths are relative to the server's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "PluginDataWire", into = "PluginDataWire")]
pub struct PluginData {
    /// When saving began. It contains no later data.
    pub at: Timestamp,
    /// The digest of the lock that had run.
    pub lock: String,
    /// The digest of the lock before whose start it was saved.
    pub before: String,
    /// The directory of the saved pieces. `None`: no piece was saved.
    pub place: Option<String>,
    /// The saved pieces, in order.
    pub kept: Vec<DataPiece>,
    /// The pieces that did not exist. If one exists later, `before` has created it.
    pub absent: Vec<DataPiece>,
    /// The pieces that were not saved, in order.
    pub not_kept: Vec<NotSaved>,
    /// Items in the saved folders that cannot be copied, such as sockets. At most as many as for a backup.
    pub left_out: Vec<String>,
    /// The settings of unchanged plugins, below the names of their folders. `None`: no settings were saved. They are never restored
    /// automatically.
    pub settings: Option<Settings>,
    /// The result of the restore after a rollback. `None`: no rollback has happened.
    pub back: Option<PluginDataRestored>,
}

/// The serialized form of [`PluginData`]. The server's own settings are in separate fields, because an older agent supports only plugins'
/// folders. It ignores the other fields, and restores the folders.
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
    not_kept: Vec<NotSaved>,
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
        let ((kept, server_kept), (absent, absent_of_server)) = (apart(kept), apart(absent));
        let of_server = ServerSettings { kept: server_kept, absent: absent_of_server };
        Self { at, lock, before, place, kept, absent, of_server, not_kept, left_out, settings, back }
    }
}

/// A piece that was not saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotSaved {
    /// The piece.
    #[serde(rename = "folder")]
    pub piece: DataPiece,
    /// The reason.
    #[serde(flatten)]
    pub why: NotSavedReason,
    /// The part of it that was still saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
}

/// The settings of a folder that was not saved whole, or of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// How many files were saved.
    pub files: usize,
    /// How many were found.
    pub of: usize,
    /// The directory in which they are stored, with their original layout.
    pub place: String,
}

/// Why a piece was not saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum NotSavedReason {
    /// Larger than `spec.keepPluginData.maxSize`.
    TooLarge {
        /// The size of its files, in bytes.
        bytes: u64,
        /// The limit for one folder, in bytes.
        limit: u64,
    },
    /// The volume has too little space for it.
    NoRoom {
        /// The size of its files, in bytes.
        bytes: u64,
        /// The free space for it, in bytes.
        free: u64,
    },
    /// It is a link, or a file in place of a folder, or on another volume, so it could not be exchanged.
    #[serde(rename = "noFolder")]
    NotMovable,
    /// The file system returned an error.
    Unreadable {
        /// The error as text.
        problem: String,
    },
}

/// The message for [`NotSavedReason::NotMovable`], after the path.
pub const NOT_MOVABLE: &str = "is a link, has an unexpected type, or is on another volume";

impl fmt::Display for NotSaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { piece, why, settings } = self;
        let path = piece.path();
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        match why {
            NotSavedReason::TooLarge { bytes, limit } => write!(
                f,
                "{path} has {} MB, more than the {} MB of `spec.keepPluginData.maxSize`",
                megabytes(*bytes),
                megabytes(*limit)
            )?,
            NotSavedReason::NoRoom { bytes, free } => write!(
                f,
                "{path} has {} MB and the volume has {} MB free for it: enlarge `spec.storage.size`",
                megabytes(*bytes),
                megabytes(*free)
            )?,
            NotSavedReason::NotMovable => write!(f, "{path} {NOT_MOVABLE}")?,
            NotSavedReason::Unreadable { problem } => write!(f, "{path}: {problem}")?,
        }
        match settings {
            Some(Settings { files, of, place }) if files == of => write!(f, ". Its settings are in {place}"),
            Some(Settings { files, of, place }) => write!(f, ". {files} of its {of} settings files are in {place}"),
            None => Ok(()),
        }
    }
}

/// The result for the saved data after a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PluginDataRestored {
    /// The saved data is in place again.
    Done {
        /// When it was restored.
        at: Timestamp,
        /// The directory of the displaced data. `None`: no data was displaced.
        set_aside: Option<String>,
    },
    /// Players may have been online since it was saved, so the current data stays.
    SomebodyPlayed {
        /// When that was detected.
        at: Timestamp,
    },
    /// The data could not be exchanged, and no file was changed.
    Impossible {
        /// When that was detected.
        at: Timestamp,
        /// The cause as text.
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
    fn unsaved_folder_is_named_with_reason_and_remedy() {
        let text = |why| NotSaved { piece: dynmap(), why, settings: None }.to_string();
        let too_large = text(NotSavedReason::TooLarge { bytes: 20_000_000_001, limit: 536_870_912 });
        assert_eq!(too_large, "plugins/dynmap has 20001 MB, more than the 537 MB of `spec.keepPluginData.maxSize`");
        assert!(text(NotSavedReason::NoRoom { bytes: 1, free: 0 }).contains("enlarge `spec.storage.size`"));
        let place = ".nightshift/kept-settings/x/dynmap";
        for (files, text) in [(2, "Its settings are in"), (1, "1 of its 2 settings files are in")] {
            let settings = Some(Settings { files, of: 2, place: place.into() });
            let not_kept = NotSaved { piece: dynmap(), why: NotSavedReason::NoRoom { bytes: 1, free: 0 }, settings };
            assert!(not_kept.to_string().ends_with(&format!(". {text} {place}")), "{not_kept}");
        }
    }

    #[test]
    fn plugin_data_record_is_read_as_written() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let not_kept = [None, Some(Settings { files: 1, of: 2, place: ".nightshift/kept-settings/x/dynmap".into() })]
            .map(|settings| NotSaved {
                piece: dynmap(),
                why: NotSavedReason::TooLarge { bytes: 3, limit: 2 },
                settings,
            })
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
            assert!(text.contains(r#""kept":["LuckPerms"],"#), "as an older agent reads it: {text}");
            assert!(text.contains(r#""ofServer":{"kept":["./bukkit.yml"]"#), "{text}");
        }
    }

    #[test]
    fn plugin_data_record_of_older_agent_is_read_unchanged() {
        let before = r#"{"at":"2027-01-15T08:00:00Z","lock":"aa","before":"bb","place":null,"kept":[],"absent":["Fresh"],"notKept":[],"back":null}"#;
        let record: PluginData = serde_json::from_str(before).unwrap();
        assert_eq!(record.settings, None);
        assert_eq!(serde_json::to_string(&record).unwrap(), before);
    }
}
