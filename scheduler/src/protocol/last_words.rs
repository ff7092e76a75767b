//! Pure. Defines the termination message of an init container whose version set must not open the worlds.
//!
//! Users read it, and so does the operator, because a pod that does not start has no other source of information.

use std::fmt;

/// How many backups are named.
pub const NAMED: usize = 5;

/// How many characters of a reason are kept. The kubelet keeps 4,096 bytes of the whole message.
const LONGEST: usize = 900;

const FIRST: &str = "REFUSED: ";
const FLOOR: &str = "Format of the worlds (DataVersion): ";
const COPIES: &str = "Copies that it could open, newest first: ";
const NO_COPIES: &str = "none";
const NOT_OBEYED: &str = " was not obeyed: ";

/// Why the worlds must not be opened, and the possible fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldRefused {
    /// The reason as text for users.
    pub why: String,
    /// The newest format of the worlds, as `DataVersion` of `level.dat`. `None`: no file states it, or the agent is too old to report it.
    pub floor: Option<u32>,
    /// The names of good backups with worlds that the version set could open, newest first, at most [`NAMED`]. `None`: they could not be read, or
    /// the agent is too old to name them.
    pub copies: Option<Vec<String>>,
    /// The restore request of a user that was not executed: the request, and the reason.
    pub not_obeyed: Option<(String, String)>,
}

impl fmt::Display for WorldRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, floor, copies, not_obeyed } = self;
        write!(f, "{FIRST}{}", one_line(why))?;
        if let Some(floor) = floor {
            write!(f, "\n{FLOOR}{floor}")?;
        }
        if let Some(copies) = copies {
            let names = copies.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            write!(f, "\n{COPIES}{}", if names.is_empty() { NO_COPIES } else { &names })?;
        }
        match not_obeyed {
            Some((request, why)) => write!(f, "\n{request}{NOT_OBEYED}{}", one_line(why)),
            None => Ok(()),
        }
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ").chars().take(LONGEST).collect()
}

impl WorldRefused {
    /// Whether a newer Minecraft has opened the worlds. It is recognized by the text that older agents write too, which do not report the format.
    pub fn is_for_their_age(&self) -> bool {
        self.why.contains("has opened it, and a world cannot go back")
    }

    /// Parses a termination message. `None`: it is about another failure.
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.strip_prefix(FIRST)?.lines();
        let why = lines.next().unwrap_or_default().to_owned();
        let mut said = Self { why, floor: None, copies: None, not_obeyed: None };
        for line in lines {
            if let Some(format) = line.strip_prefix(FLOOR) {
                said.floor = format.parse().ok();
            } else if let Some(names) = line.strip_prefix(COPIES) {
                let names = names.split(", ").filter(|name| *name != NO_COPIES);
                said.copies = Some(names.map(str::to_owned).collect());
            } else if let Some((request, why)) = line.split_once(NOT_OBEYED) {
                said.not_obeyed = Some((request.to_owned(), why.to_owned()));
            }
        }
        Some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> WorldRefused {
        WorldRefused { why: "a world cannot go back".to_owned(), floor: None, copies: None, not_obeyed: None }
    }

    #[test]
    fn termination_message_is_read_as_written() {
        let names = ["20261122T030000Z-aaaaaaaa".to_owned(), "20261121T030000Z-aaaaaaaa".to_owned()];
        for copies in [None, Some(Vec::new()), Some(names.to_vec())] {
            for not_obeyed in [None, Some(("asked-1".to_owned(), "there is no copy `x`".to_owned()))] {
                for floor in [None, Some(4_440)] {
                    let not_obeyed = not_obeyed.clone();
                    let said = WorldRefused { floor, copies: copies.clone(), not_obeyed, ..refused() };
                    assert_eq!(WorldRefused::read(&said.to_string()), Some(said));
                }
            }
        }
    }

    #[test]
    fn termination_message_of_older_agent_is_read() {
        assert_eq!(WorldRefused::read("REFUSED: a world cannot go back"), Some(refused()));
        assert_eq!(WorldRefused::read("NO BACKUP: no room"), None);
    }

    #[test]
    fn multi_line_or_long_reason_ends_before_next_part() {
        let why = format!("two\nlines{}", "x".repeat(5_000));
        let not_obeyed = Some(("asked-1".to_owned(), why.clone()));
        let said = WorldRefused { why, floor: Some(4_440), copies: Some(Vec::new()), not_obeyed };
        let text = said.to_string();
        assert!(text.len() < 4_096, "{}", text.len());
        let read = WorldRefused::read(&text).unwrap();
        assert!(read.why.starts_with("two linesxx") && read.copies == Some(Vec::new()));
        assert_eq!(read.not_obeyed.unwrap().0, "asked-1");
    }
}
