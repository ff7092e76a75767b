//! Pure. What the looks at a server's process add up to: absent, starting, up, stopping; who is on; whether it is ready.

use jiff::{SignedDuration, Timestamp};

use crate::protocol::{PlayerCount, Server};
use crate::server_list_ping;

/// Silence for this long takes a server out of service. Three pings of 5 s each may be lost to a tick stall.
const READY_FOR: SignedDuration = SignedDuration::from_secs(20);

/// How long a count of players counts: a ping every 5 s and its own deadline of 3 s. When one is missed, somebody may have
/// joined unseen, and a full server would get the short countdown of an empty one.
const COUNTED_FOR: SignedDuration = SignedDuration::from_secs(9);

/// On a volume without any world there is no lock to see: a log that changed this recently is a server that starts for the first time.
const LOG_IS_FRESH: SignedDuration = SignedDuration::from_secs(120);

/// What one server-list ping brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PingResult {
    /// The server's line.
    Answered(server_list_ping::StatusResponse),
    /// The port is open and nothing usable came.
    Silent,
    /// Nothing listens.
    Refused,
}

/// One look at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// By ping.
    pub pinged: PingResult,
    /// Whether another process holds a world's `session.lock`; None if there is no such file yet.
    pub locked: Option<bool>,
    /// The mark of the start that the log tells of.
    pub log: Option<String>,
    /// When log or world last changed; asked for only while the server is not up.
    pub progress_at: Option<Timestamp>,
}

/// What a look changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// The server answered for the first time since its process began.
    Up,
    /// The process is gone.
    Ended,
    /// Between two looks, one process ended and another one answered.
    Replaced,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProcessLife {
    Absent,
    Starting {
        progress_at: Timestamp,
    },
    Up {
        since: Timestamp,
        answered_at: Timestamp,
        minecraft: String,
        log: Option<String>,
        /// It has missed a ping since it last answered.
        missed: bool,
        /// Nothing listened at the last look.
        refused: bool,
    },
}

/// Adds up the looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerMonitor {
    life: ProcessLife,
    stopping: Option<Timestamp>,
    players: PlayerCount,
    /// The last time the number of players was said, or the beginning.
    counted_at: Timestamp,
    /// Since when each answer has said that nobody is on.
    empty_since: Option<Timestamp>,
}

impl ServerMonitor {
    /// Begins, with nothing seen.
    pub fn new(now: Timestamp) -> Self {
        Self {
            life: ProcessLife::Absent,
            stopping: None,
            players: PlayerCount::Unknown { since: now },
            counted_at: now,
            empty_since: None,
        }
    }

    /// Takes one look into account.
    pub fn look(&mut self, look: &Sample) -> Option<Transition> {
        match &look.pinged {
            PingResult::Answered(answer) => self.answered(look, answer),
            PingResult::Silent => {
                self.not_answered(look, false);
                None
            }
            // The game's port is shut before the worlds are: the process has ended when nobody holds them.
            PingResult::Refused if look.locked != Some(true) => self.nobody(look),
            PingResult::Refused => {
                self.not_answered(look, true);
                None
            }
        }
    }

    fn answered(&mut self, look: &Sample, answer: &server_list_ping::StatusResponse) -> Option<Transition> {
        let is_gapless = look.at.duration_since(self.counted_at) < COUNTED_FOR;
        self.empty_since = match answer.online {
            Some(0) => self.empty_since.filter(|_| is_gapless).or(Some(look.at)),
            Some(_) | None => None,
        };
        match answer.online {
            Some(0) => self.players = PlayerCount::Nobody,
            Some(count) => self.players = PlayerCount::Some { count },
            None => self.players = PlayerCount::Unknown { since: self.counted_at },
        }
        if answer.online.is_some() {
            self.counted_at = look.at;
        }
        let (since, change) = match &self.life {
            ProcessLife::Up { since, log, missed, .. } => {
                let other = *missed && log.is_some() && look.log.is_some() && *log != look.log;
                if other { (look.at, Some(Transition::Replaced)) } else { (*since, None) }
            }
            ProcessLife::Absent | ProcessLife::Starting { .. } => (look.at, Some(Transition::Up)),
        };
        if change == Some(Transition::Replaced) {
            self.stopping = None;
        }
        let log = match (&self.life, change) {
            // A log that went on after midnight does not tell of a start: the mark of this one stays.
            (ProcessLife::Up { log: Some(log), .. }, None) => Some(log.clone()),
            _ => look.log.clone(),
        };
        self.life = ProcessLife::Up {
            since,
            answered_at: look.at,
            minecraft: answer.minecraft.clone(),
            log,
            missed: false,
            refused: false,
        };
        change
    }

    fn not_answered(&mut self, look: &Sample, nothing_listens: bool) {
        match &mut self.life {
            ProcessLife::Up { missed, refused, .. } => (*missed, *refused) = (true, nothing_listens),
            ProcessLife::Absent | ProcessLife::Starting { .. } => {
                self.life = ProcessLife::Starting { progress_at: look.progress_at.unwrap_or(look.at) };
            }
        }
    }

    fn nobody(&mut self, look: &Sample) -> Option<Transition> {
        let was_up = matches!(self.life, ProcessLife::Up { .. });
        if !was_up && look.locked.is_none() {
            // The first start of all: Paper patches itself for a while before there is a world.
            let fresh = |at: &Timestamp| look.at.duration_since(*at) < LOG_IS_FRESH;
            self.life = match look.progress_at.filter(fresh) {
                Some(progress_at) => ProcessLife::Starting { progress_at },
                None => ProcessLife::Absent,
            };
            return None;
        }
        let ended = self.life != ProcessLife::Absent;
        self.life = ProcessLife::Absent;
        self.stopping = None;
        self.players = PlayerCount::Unknown { since: self.counted_at };
        self.empty_since = None;
        ended.then_some(Transition::Ended)
    }

    /// `stop` was sent, or SIGTERM was seen.
    pub fn stop_sent(&mut self, at: Timestamp) {
        if self.life != ProcessLife::Absent && self.stopping.is_none() {
            self.stopping = Some(at);
        }
    }

    /// Whether there is no process.
    pub fn is_absent(&self) -> bool {
        self.life == ProcessLife::Absent
    }

    /// Whether the server has answered since its process began.
    pub fn is_up(&self) -> bool {
        matches!(self.life, ProcessLife::Up { .. })
    }

    /// Whether it is ending.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Whether players can be sent to it.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        let ProcessLife::Up { answered_at, refused, .. } = &self.life else { return false };
        self.stopping.is_none() && !refused && now.duration_since(*answered_at) < READY_FOR
    }

    /// Who is on. An old answer is none.
    pub fn players(&self, now: Timestamp) -> PlayerCount {
        if now.duration_since(self.counted_at) < COUNTED_FOR && self.is_up() {
            self.players
        } else {
            PlayerCount::Unknown { since: self.counted_at }
        }
    }

    /// The server's own console named players, whatever its ping says: a plugin may hide them from the list that everybody sees.
    pub fn listed(&mut self, count: u32) {
        if count > 0 {
            self.empty_since = None;
        }
    }

    /// Since when nobody has been on, by answers that left no gap in which somebody could have been there unseen.
    pub fn empty_since(&self, now: Timestamp) -> Option<Timestamp> {
        self.empty_since.filter(|_| self.players(now) == PlayerCount::Nobody)
    }

    /// For the report; build and plugins are read by others.
    pub fn server(&self) -> Server {
        match (&self.life, self.stopping) {
            (ProcessLife::Absent, _) => Server::Absent,
            (_, Some(since)) => Server::Stopping { since },
            (ProcessLife::Starting { progress_at }, None) => Server::Starting { progress_at: *progress_at },
            (ProcessLife::Up { since, answered_at, minecraft, .. }, None) => Server::Up {
                since: *since,
                answered_at: *answered_at,
                minecraft: minecraft.clone(),
                build: None,
                plugins: None,
            },
        }
    }
}

#[cfg(test)]
mod tests;
