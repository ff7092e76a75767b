//! Pure. Defines the termination messages of an init container that refuses the worlds or an item on the volume, or ignores a changed `ConfigMap`.
//!
//! Users read it, and so does the operator, because a pod that does not start has no other source of information.

use std::fmt;

/// How many backups are named.
pub const MAX_NAMED: usize = 5;

/// How many characters of a reason are kept. The kubelet keeps 4,096 bytes of the whole message.
const MAX_REASON_CHARS: usize = 900;

/// How many characters of a path are kept.
const MAX_PATH_CHARS: usize = 600;

const REJECTED_PREFIX: &str = "VOLUME REJECTED: ";
const PREFIX: &str = "REFUSED: ";
const FLOOR_LABEL: &str = "Format of the worlds (DataVersion): ";
const BACKUPS_LABEL: &str = "Backups that it could open, newest first: ";
const NO_BACKUPS: &str = "none";
const NOT_EXECUTED: &str = " was not executed: ";

/// Why the worlds must not be opened, and the possible fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldRefused {
    /// The reason as text for users.
    pub why: String,
    /// The newest format of the worlds, as `DataVersion` of `level.dat`. `None`: no file states it, or the agent is too old to report it.
    pub floor: Option<u32>,
    /// The names of good backups with worlds that the version set could open, newest first, at most [`MAX_NAMED`]. `None`: they could not be read, or
    /// the agent is too old to name them.
    pub backups: Option<Vec<String>>,
    /// The restore request of a user that was not executed: the request, and the reason.
    pub refused_request: Option<(String, String)>,
}

impl fmt::Display for WorldRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, floor, backups, refused_request } = self;
        write!(f, "{PREFIX}{}", one_line(why))?;
        if let Some(floor) = floor {
            write!(f, "\n{FLOOR_LABEL}{floor}")?;
        }
        if let Some(backups) = backups {
            let names = backups.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            write!(f, "\n{BACKUPS_LABEL}{}", if names.is_empty() { NO_BACKUPS } else { &names })?;
        }
        match refused_request {
            Some((request, why)) => write!(f, "\n{request}{NOT_EXECUTED}{}", one_line(why)),
            None => Ok(()),
        }
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ").chars().take(MAX_REASON_CHARS).collect()
}

impl WorldRefused {
    /// Whether a newer Minecraft has opened the worlds. It is recognized by the text that older agents write too, which do not report the format.
    pub fn is_too_new(&self) -> bool {
        self.why.contains("has opened it, and a world cannot ")
    }

    /// Parses a termination message. `None`: it is about another failure.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_prefix(PREFIX)?.lines();
        let why = lines.next().unwrap_or_default().to_owned();
        let mut refused_text = Self { why, floor: None, backups: None, refused_request: None };
        for line in lines {
            if let Some(format) = line.strip_prefix(FLOOR_LABEL) {
                refused_text.floor = format.parse().ok();
            } else if let Some(names) = line.strip_prefix(BACKUPS_LABEL) {
                let names = names.split(", ").filter(|name| *name != NO_BACKUPS);
                refused_text.backups = Some(names.map(str::to_owned).collect());
            } else if let Some((request, why)) = line.split_once(NOT_EXECUTED) {
                refused_text.refused_request = Some((request.to_owned(), why.to_owned()));
            }
        }
        Some(refused_text)
    }
}

const NOT_SIGNED: &str = "NOT SIGNED: ";

/// Files from `ConfigMap`s that the operator did not write. The init container ignored them, and writes this also if the server starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockRejected {
    /// The keys in their `ConfigMap`s: `files.json` for the files of the lock, otherwise a request.
    pub files: Vec<String>,
}

impl fmt::Display for LockRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files } = self;
        write!(f, "{NOT_SIGNED}{}\nThese files are not as the operator wrote them, and were ignored", files.join(", "))
    }
}

impl LockRejected {
    /// Parses a termination message. `None`: it is about something else.
    pub fn parse(text: &str) -> Option<Self> {
        let files = text.strip_prefix(NOT_SIGNED)?.lines().next().unwrap_or_default();
        Some(Self { files: files.split(", ").map(str::to_owned).collect() })
    }
}

/// An item on the volume that the agent does not open. It was neither read nor changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeRejected {
    /// Its path in the pod.
    pub path: String,
    /// What is wrong with it: `is a link`.
    pub problem: String,
}

impl fmt::Display for VolumeRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, problem } = self;
        write!(f, "{REJECTED_PREFIX}{}\n{}", plain(path, MAX_PATH_CHARS), plain(problem, MAX_REASON_CHARS))
    }
}

impl VolumeRejected {
    /// Parses a termination message. `None`: it is about another failure.
    pub fn parse(text: &str) -> Option<Self> {
        let (path, problem) = text.strip_prefix(REJECTED_PREFIX)?.split_once('\n')?;
        Some(Self { path: path.to_owned(), problem: problem.trim_end().to_owned() })
    }
}

/// One line of text without characters that change the direction of what follows: a plugin chooses the names on its volume.
fn plain(text: &str, most: usize) -> String {
    let is_harmless = |letter: &char| {
        !letter.is_control()
            && !matches!(letter, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    one_line(text).chars().filter(is_harmless).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_files_are_read_as_written() {
        let rejected = LockRejected { files: vec!["files.json".to_owned(), "restore.json".to_owned()] };
        assert_eq!(LockRejected::parse(&rejected.to_string()), Some(rejected));
        assert_eq!(LockRejected::parse("REFUSED: a world cannot go back"), None);
    }

    #[test]
    fn rejected_volume_is_read_as_written_on_one_line_each() {
        let rejected = |path: &str| VolumeRejected { path: path.to_owned(), problem: "is a link".to_owned() };
        let written = rejected("/data/plugins");
        assert_eq!(VolumeRejected::parse(&written.to_string()), Some(written));
        let hostile = rejected("/data/a\nREFUSED: b\u{202e}\u{1b}[31m").to_string();
        assert_eq!(VolumeRejected::parse(&hostile), Some(rejected("/data/a REFUSED: b[31m")));
        assert_eq!(WorldRefused::parse(&hostile), None);
        assert!(rejected(&"ä".repeat(5_000)).to_string().len() < 4_096);
        assert_eq!(VolumeRejected::parse("REFUSED: a world cannot go back"), None);
    }

    fn refused() -> WorldRefused {
        WorldRefused { why: "a world cannot go back".to_owned(), floor: None, backups: None, refused_request: None }
    }

    #[test]
    fn termination_message_is_read_as_written() {
        let names = ["20261122T030000Z-aaaaaaaa".to_owned(), "20261121T030000Z-aaaaaaaa".to_owned()];
        for backups in [None, Some(Vec::new()), Some(names.to_vec())] {
            for refused_request in [None, Some(("asked-1".to_owned(), "there is no backup `x`".to_owned()))] {
                for floor in [None, Some(4_440)] {
                    let refused_request = refused_request.clone();
                    let refused_text = WorldRefused { floor, backups: backups.clone(), refused_request, ..refused() };
                    assert_eq!(WorldRefused::parse(&refused_text.to_string()), Some(refused_text));
                }
            }
        }
    }

    #[test]
    fn termination_message_of_older_agent_is_read() {
        assert_eq!(WorldRefused::parse("REFUSED: a world cannot go back"), Some(refused()));
        assert_eq!(WorldRefused::parse("NO BACKUP: no room"), None);
    }

    #[test]
    fn multi_line_or_long_reason_ends_before_next_part() {
        let why = format!("two\nlines{}", "x".repeat(5_000));
        let refused_request = Some(("asked-1".to_owned(), why.clone()));
        let refused_text = WorldRefused { why, floor: Some(4_440), backups: Some(Vec::new()), refused_request };
        let text = refused_text.to_string();
        assert!(text.len() < 4_096, "{}", text.len());
        let read = WorldRefused::parse(&text).unwrap();
        assert!(read.why.starts_with("two linesxx") && read.backups == Some(Vec::new()));
        assert_eq!(read.refused_request.unwrap().0, "asked-1");
    }
}
