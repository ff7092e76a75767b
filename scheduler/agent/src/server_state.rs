//! Pure. Derives the state of the server process from samples: absent, starting, up or stopping, its players, and whether it is ready.

use jiff::{SignedDuration, Timestamp};

use crate::server_list_ping;
use agent_api::{PlayerCount, Server};

/// A server that is silent for this long is not ready. A tick stall may lose three pings of 5 s each.
const READY_FOR: SignedDuration = SignedDuration::from_secs(20);

/// A server whose main thread hangs for this long is not ready. By default Paper's watchdog kills it after the same time (`timeout-time` in
/// `spigot.yml`).
const HANG_TOLERATED: SignedDuration = SignedDuration::from_secs(60);

/// How long a player count is valid: a ping every 5 s plus its timeout of 3 s. When one is missed, a player may have joined unseen, and a full
/// server would get the short countdown of an empty one.
const COUNT_VALID_FOR: SignedDuration = SignedDuration::from_secs(9);

/// A volume without any world has no lock. A log that changed this recently then means that a server starts for the first time.
const LOG_FRESH_FOR: SignedDuration = SignedDuration::from_secs(120);

/// The result of one server-list ping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PingResult {
    /// The server's answer.
    Answered(server_list_ping::StatusResponse),
    /// The port is open, and no usable answer arrived.
    Silent,
    /// The port is closed.
    Refused,
}

/// One sample of the server's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// When it was taken.
    pub at: Timestamp,
    /// The result of the ping.
    pub pinged: PingResult,
    /// Whether another process holds a world's `session.lock`. `None` if no such file exists yet.
    pub locked: Option<bool>,
    /// The mark of the start that the log describes.
    pub log: Option<String>,
    /// When the log or a world last changed. It is read only while the server is not up.
    pub progress_at: Option<Timestamp>,
}

/// A change that a sample shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// The server answered for the first time since its process began.
    Up,
    /// The process has ended.
    Ended,
    /// Between two samples, one process ended and another one answered.
    Replaced,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProcessState {
    Absent,
    Starting {
        progress_at: Timestamp,
    },
    Up {
        since: Timestamp,
        answered_at: Timestamp,
        minecraft: String,
        log: Option<String>,
        /// Whether it has missed a ping since it last answered.
        missed: bool,
        /// Whether the port was closed at the last sample.
        refused: bool,
        /// When the first of the console commands was sent that were not answered.
        hangs_since: Option<Timestamp>,
    },
}

/// The state machine over the samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerMonitor {
    phase: ProcessState,
    stopping: Option<Timestamp>,
    players: PlayerCount,
    /// When a player count was last received, or the start of the monitor.
    counted_at: Timestamp,
    /// Since when each answer has reported zero players.
    empty_since: Option<Timestamp>,
}

impl ServerMonitor {
    /// A monitor without samples.
    pub fn new(now: Timestamp) -> Self {
        Self {
            phase: ProcessState::Absent,
            stopping: None,
            players: PlayerCount::Unknown { since: now },
            counted_at: now,
            empty_since: None,
        }
    }

    /// Processes one sample.
    pub fn observe(&mut self, sample: &Sample) -> Option<Transition> {
        match &sample.pinged {
            PingResult::Answered(answer) => self.handle_answer(sample, answer),
            PingResult::Silent => {
                self.handle_silence(sample, false);
                None
            }
            // The server closes the game's port before its worlds. The process has ended when the locks are free.
            PingResult::Refused if sample.locked != Some(true) => self.handle_absence(sample),
            PingResult::Refused => {
                self.handle_silence(sample, true);
                None
            }
        }
    }

    fn handle_answer(&mut self, sample: &Sample, answer: &server_list_ping::StatusResponse) -> Option<Transition> {
        let is_gapless = sample.at.duration_since(self.counted_at) < COUNT_VALID_FOR;
        self.empty_since = match answer.online {
            Some(0) => self.empty_since.filter(|_| is_gapless).or(Some(sample.at)),
            Some(_) | None => None,
        };
        match answer.online {
            Some(0) => self.players = PlayerCount::Nobody,
            Some(count) => self.players = PlayerCount::Some { count },
            None => self.players = PlayerCount::Unknown { since: self.counted_at },
        }
        if answer.online.is_some() {
            self.counted_at = sample.at;
        }
        let (since, hangs_since, change) = match &self.phase {
            ProcessState::Up { since, log, missed, hangs_since, .. } => {
                let other = *missed && log.is_some() && sample.log.is_some() && *log != sample.log;
                if other { (sample.at, None, Some(Transition::Replaced)) } else { (*since, *hangs_since, None) }
            }
            ProcessState::Absent | ProcessState::Starting { .. } => (sample.at, None, Some(Transition::Up)),
        };
        if change == Some(Transition::Replaced) {
            self.stopping = None;
        }
        let log = match (&self.phase, change) {
            // A log that was rotated at midnight does not describe a start, so the mark of this one is kept.
            (ProcessState::Up { log: Some(log), .. }, None) => Some(log.clone()),
            _ => sample.log.clone(),
        };
        self.phase = ProcessState::Up {
            since,
            answered_at: sample.at,
            minecraft: answer.minecraft.clone(),
            log,
            missed: false,
            refused: false,
            hangs_since,
        };
        change
    }

    fn handle_silence(&mut self, sample: &Sample, is_refused: bool) {
        match &mut self.phase {
            ProcessState::Up { missed, refused, .. } => (*missed, *refused) = (true, is_refused),
            ProcessState::Absent | ProcessState::Starting { .. } => {
                self.phase = ProcessState::Starting { progress_at: sample.progress_at.unwrap_or(sample.at) };
            }
        }
    }

    fn handle_absence(&mut self, sample: &Sample) -> Option<Transition> {
        let was_up = matches!(self.phase, ProcessState::Up { .. });
        if !was_up && sample.locked.is_none() {
            // At the very first start, Paper patches itself for a while before a world exists.
            let fresh = |at: &Timestamp| sample.at.duration_since(*at) < LOG_FRESH_FOR;
            self.phase = match sample.progress_at.filter(fresh) {
                Some(progress_at) => ProcessState::Starting { progress_at },
                None => ProcessState::Absent,
            };
            return None;
        }
        let ended = self.phase != ProcessState::Absent;
        self.phase = ProcessState::Absent;
        self.stopping = None;
        self.players = PlayerCount::Unknown { since: self.counted_at };
        self.empty_since = None;
        ended.then_some(Transition::Ended)
    }

    /// Records whether the console has answered a command that was sent at `asked_at`.
    pub fn observe_console(&mut self, asked_at: Timestamp, has_answered: bool) {
        if let ProcessState::Up { hangs_since, .. } = &mut self.phase {
            *hangs_since = if has_answered { None } else { hangs_since.or(Some(asked_at)) };
        }
    }

    /// Records that the hook has prepared the stop, or that SIGTERM was received.
    pub fn stop_requested(&mut self, at: Timestamp) {
        if self.phase != ProcessState::Absent && self.stopping.is_none() {
            self.stopping = Some(at);
        }
    }

    /// Whether no process exists.
    pub fn is_absent(&self) -> bool {
        self.phase == ProcessState::Absent
    }

    /// Whether the server has answered since its process began.
    pub fn is_up(&self) -> bool {
        matches!(self.phase, ProcessState::Up { .. })
    }

    /// Whether it is stopping.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Whether players can be sent to it.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        let ProcessState::Up { answered_at, refused, hangs_since, .. } = &self.phase else { return false };
        let hangs = hangs_since.is_some_and(|since| now.duration_since(since) >= HANG_TOLERATED);
        self.stopping.is_none() && !refused && !hangs && now.duration_since(*answered_at) < READY_FOR
    }

    /// The players online. An outdated answer counts as unknown.
    pub fn players(&self, now: Timestamp) -> PlayerCount {
        if now.duration_since(self.counted_at) < COUNT_VALID_FOR && self.is_up() {
            self.players
        } else {
            PlayerCount::Unknown { since: self.counted_at }
        }
    }

    /// Ends [`Self::empty_since`] if the server's own console lists players: a plugin may hide them from the ping.
    pub fn observe_console_count(&mut self, count: u32) {
        if count > 0 {
            self.empty_since = None;
        }
    }

    /// Since when the server has been empty, by answers without a gap in which a player could have joined unseen.
    pub fn empty_since(&self, now: Timestamp) -> Option<Timestamp> {
        self.empty_since.filter(|_| self.players(now) == PlayerCount::Nobody)
    }

    /// The state for the report. Build and plugins are added elsewhere.
    pub fn server(&self) -> Server {
        match (&self.phase, self.stopping) {
            (ProcessState::Absent, _) => Server::Absent,
            (_, Some(since)) => Server::Stopping { since },
            (ProcessState::Starting { progress_at }, None) => Server::Starting { progress_at: *progress_at },
            (ProcessState::Up { since, answered_at, hangs_since, minecraft, .. }, None) => Server::Up {
                since: *since,
                answered_at: *answered_at,
                hangs_since: *hangs_since,
                minecraft: minecraft.clone(),
                build: None,
                plugins: None,
            },
        }
    }
}

#[cfg(test)]
mod tests;
