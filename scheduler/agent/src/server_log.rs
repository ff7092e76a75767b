//! Edge (reads). Reads the server's `logs/latest.log`, from its start to the line `Done`, and at its end.
//!
//! All lines in between may be chat. Outside of that part, a line counts only in the exact form in which the server writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::civil::Time;
use jiff::{SignedDuration, Timestamp};

use crate::plain_fs;

/// How much of the file is read from its start. A start with 200 plugins writes some hundred KiB.
const HEAD_BYTES: u64 = 8 * 1024 * 1024;

/// How much of the file is read from its end. A stop of a server with 200 plugins writes some ten KiB.
const TAIL_BYTES: u64 = 1024 * 1024;

/// The server rotates its log after this time.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The log of one start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartLog {
    /// The identity of this start's log: the file and its first line, which begins with a time.
    pub(super) mark: String,
    /// Paper's build.
    pub(super) build: Option<u32>,
    /// The version by plugin name, of the loaded plugins.
    pub(super) versions: BTreeMap<String, String>,
    /// The names of plugins that were enabled and not disabled again before `Done`. Paper disables a plugin that fails while it is enabled.
    pub(super) enabled: BTreeSet<String>,
    /// Whether the line `Done` was written.
    pub(super) done: bool,
}

/// The log of the start that `latest.log` begins with. `None` if no such file exists, or if it continues a log that was rotated at midnight.
pub(super) fn read(data: &Path) -> io::Result<Option<StartLog>> {
    let file = match plain_fs::open(&data.join("logs/latest.log")) {
        Ok(file) => file,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(other) => return Err(other),
    };
    let inode = file.metadata()?.ino();
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(parse(inode, &String::from_utf8_lossy(&head)))
}

/// When the log last grew.
pub(super) fn changed_at(data: &Path) -> Option<Timestamp> {
    plain_fs::metadata(&data.join("logs/latest.log")).ok()?.modified().ok()?.try_into().ok()
}

/// The saves of all worlds that a log shows. A server does not log its automatic saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LoggedSaves {
    /// Whether all worlds were saved since the server began to stop. Without the file or the line this is unknown.
    pub(super) in_stop: bool,
    /// When all worlds were last saved, during the stop or before, to a second.
    pub(super) last: Option<Timestamp>,
}

/// The saves in the log of a server that has ended.
pub(super) fn logged_saves(data: &Path) -> io::Result<LoggedSaves> {
    let mut file = plain_fs::open(&data.join("logs/latest.log"))?;
    let metadata = file.metadata()?;
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let (in_stop, before_its_end) = saves_in(&String::from_utf8_lossy(&tail));
    // The time of the last line. The times in the lines have an unknown time zone.
    let written_at: Option<Timestamp> = metadata.modified().ok().and_then(|modified| modified.try_into().ok());
    let last = written_at.zip(before_its_end).and_then(|(at, before)| at.checked_sub(before).ok());
    Ok(LoggedSaves { in_stop, last })
}

/// Whether all worlds were saved since the stop began, and how long before the last line the last save of all worlds was logged. It reads the
/// lines that Paper writes while it stops (`rcon-facts.md`, section 2.1).
fn saves_in(tail: &str) -> (bool, Option<SignedDuration>) {
    let (mut stops, mut in_stop) = (false, false);
    let (mut saved, mut last) = (None, None);
    for (head, message) in tail.lines().filter_map(|line| line.split_once("]: ")) {
        let time = time_in(head);
        last = time.or(last);
        match message.trim_end() {
            "Stopping server" | "Stopping the server" => (stops, in_stop) = (true, false),
            // `save-all flush` writes this line too.
            "ThreadedAnvilChunkStorage: All dimensions are saved" => (in_stop, saved) = (stops, time),
            _ => {}
        }
    }
    let before_its_end = saved.zip(last).map(|(saved, last)| {
        let passed = last.duration_since(saved);
        // The times have no date: a later time of day was on the day before.
        if passed.is_negative() { passed + DAY } else { passed }
    });
    (in_stop, before_its_end)
}

/// `[12:00:07] [Server thread/INFO`.
fn time_in(head: &str) -> Option<Time> {
    head.strip_prefix('[')?.split_once(']')?.0.parse().ok()
}

fn parse(inode: u64, text: &str) -> Option<StartLog> {
    let first = text.lines().next()?;
    let mark = format!("{inode} {first}");
    let (versions, enabled) = (BTreeMap::new(), BTreeSet::new());
    let mut log = StartLog { mark, build: None, versions, enabled, done: false };
    let mut is_start = false;
    for line in text.lines() {
        let Some((_, message)) = line.split_once("]: ") else { continue };
        if message.starts_with("Starting minecraft server version ") {
            is_start = true;
        } else if let Some(rest) = message.strip_prefix("This server is running ") {
            is_start = true;
            log.build = build_in(rest);
        } else if message.starts_with("Done (") {
            log.done = true;
            break;
        } else if let Some((name, version)) = plugin_in(message, "Loading server plugin ") {
            log.versions.insert(name.to_owned(), version.to_owned());
        } else if let Some((name, version)) = plugin_in(message, "Enabling ") {
            log.versions.insert(name.to_owned(), version.to_owned());
            log.enabled.insert(name.to_owned());
        } else if let Some((name, _)) = plugin_in(message, "Disabling ") {
            log.enabled.remove(name);
        }
    }
    is_start.then_some(log)
}

/// `Paper version 1.21.10-130-main@abc1234 (…)`, or, before 1.20.5, `Paper version git-Paper-496 (MC: 1.20.4)`.
fn build_in(rest: &str) -> Option<u32> {
    let version = rest.split_once(" version ")?.1.split_whitespace().next()?;
    version.split('-').skip(1).find_map(|part| part.parse().ok())
}

/// `[Demo] Loading server plugin Demo v2.0`, `[Demo] Enabling Demo v2.0`, `[Demo] Disabling Demo v2.0` (an asterisk marks legacy plugins). The
/// text in brackets is the plugin's own prefix, which may differ from its name.
fn plugin_in<'a>(message: &'a str, action: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = message.strip_prefix('[')?.split_once("] ")?;
    let (name, version) = rest.strip_prefix(action)?.trim_end().trim_end_matches('*').split_once(" v")?;
    (!name.contains(' ') && !version.is_empty()).then_some((name, version))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const LOG: &str = "\
[12:00:00] [ServerMain/INFO]: [bootstrap] Running Java 21
[12:00:01] [ServerMain/INFO]: [bootstrap] Loading Paper 1.21.10-130-main@8043efd (2025-12-01T00:00:00Z) for Minecraft 1.21.10
[12:00:04] [Server thread/INFO]: Starting minecraft server version 1.21.10
[12:00:05] [Server thread/INFO]: This server is running Paper version 1.21.10-130-main@8043efd (2025-12-01T00:00:00Z) (Implementing API version 1.21.10-R0.1-SNAPSHOT)
[12:00:05] [Server thread/INFO]: [ViaVersion] Loading server plugin ViaVersion v5.7.1
[12:00:05] [Server thread/INFO]: [WorldGuard] Loading server plugin WorldGuard v7.0.14+c4c1b76
[12:00:06] [Server thread/INFO]: [ViaVersion] Enabling ViaVersion v5.7.1
[12:00:06] [Server thread/INFO]: [Vault] Enabling Vault v1.7.3-b131*
[12:00:07] [Server thread/INFO]: [WorldGuard] Enabling WorldGuard v7.0.14+c4c1b76
[12:00:07] [Server thread/ERROR]: Error occurred while enabling WorldGuard v7.0.14+c4c1b76 (Is it up to date?)
[12:00:07] [Server thread/INFO]: [WorldGuard] Disabling WorldGuard v7.0.14+c4c1b76
[12:00:09] [Server thread/INFO]: Done (5.331s)! For help, type \"help\"
[12:00:10] [Async Chat Thread - #0/INFO]: <Bob> hi
[12:00:11] [Server thread/INFO]: [Bob] Enabling ViaVersion v9.9
";

    #[test]
    fn build_and_plugins_are_read_from_startup_not_chat() {
        let log = parse(7, LOG).unwrap();
        assert_eq!(log.build, Some(130));
        let expected = [("Vault", "1.7.3-b131"), ("ViaVersion", "5.7.1"), ("WorldGuard", "7.0.14+c4c1b76")];
        let found: Vec<_> = log.versions.iter().map(|(name, version)| (name.as_str(), version.as_str())).collect();
        assert_eq!(found, expected);
        assert!(log.done);
        assert_eq!(log.enabled.iter().map(String::as_str).collect::<Vec<_>>(), ["Vault", "ViaVersion"]);
        assert_eq!(log.mark, "7 [12:00:00] [ServerMain/INFO]: [bootstrap] Running Java 21");
    }

    #[test]
    fn log_continued_after_midnight_is_not_a_startup_log() {
        assert_eq!(parse(7, "[00:00:00] [Server thread/INFO]: Bob joined the game\n"), None);
        assert_eq!(
            parse(7, "[00:00:00] [Async Chat Thread - #0/INFO]: <Bob> Starting minecraft server version 1\n"),
            None
        );
        assert_eq!(parse(7, ""), None);
    }

    #[test]
    fn server_is_saved_if_log_of_this_stop_confirms() {
        let ends_saved = |tail: &str| saves_in(tail).0;
        let line = |message: &str| format!("[04:00:00] [Server thread/INFO]: {message}\n");
        let (stop, saved) = (line("Stopping server"), line("ThreadedAnvilChunkStorage: All dimensions are saved"));
        let chat = line("<Bob> ThreadedAnvilChunkStorage: All dimensions are saved");
        assert!(ends_saved(&format!("{stop}{}{saved}{}", line("Saving worlds"), line("Closing Server"))));
        assert!(!ends_saved(&format!("{saved}{stop}{}", line("Saving worlds"))), "the save was before the stop");
        assert!(!ends_saved(&saved), "the server was killed after a save");
        assert!(!ends_saved(&format!("{stop}{chat}")));
        assert!(!ends_saved(""));
    }

    #[test]
    fn age_of_last_save_is_computed_across_midnight() {
        const SAVED: &str = "ThreadedAnvilChunkStorage: All dimensions are saved";
        let line = |time: &str, message: &str| format!("[{time}] [Server thread/INFO]: {message}\n");
        let ago = |lines: &[String]| saves_in(&lines.concat()).1.map(|ago| ago.as_secs());
        let (joined, stop) = (line("04:10:05", "Bob joined the game"), line("04:10:07", "Stopping server"));
        assert_eq!(ago(&[line("03:59:59", SAVED), joined.clone()]), Some(606));
        assert_eq!(ago(&[line("03:00:00", SAVED), line("04:00:05", SAVED), joined.clone()]), Some(600), "last save");
        assert_eq!(ago(&[line("04:00:00", SAVED), stop, line("04:10:09", SAVED)]), Some(0), "the save of the stop");
        assert_eq!(ago(&[line("23:59:55", SAVED), line("00:00:05", "Bob joined the game")]), Some(10));
        assert_eq!(ago(&[line("04:00:00", &format!("<Bob> {SAVED}")), joined.clone()]), None, "it is a chat line");
        assert_eq!(ago(&[line("yesterday", SAVED), joined]), None, "the time is invalid");
        assert_eq!(ago(&[line("04:00:00", SAVED), "\tat java.base/java.lang.Thread.run\n".to_owned()]), Some(0));
    }

    #[test]
    fn last_save_is_dated_back_from_last_log_write() {
        let data = tempfile::tempdir().unwrap();
        assert!(logged_saves(data.path()).is_err(), "there is no log");
        std::fs::create_dir(data.path().join("logs")).unwrap();
        let log = data.path().join("logs/latest.log");
        // In an unknown time zone.
        let lines = "[04:00:00] [Server thread/INFO]: ThreadedAnvilChunkStorage: All dimensions are saved\n\
                     [04:05:00] [Server thread/INFO]: Bob joined the game\n";
        std::fs::write(&log, lines).unwrap();
        let written_at: Timestamp = "2026-11-22T03:12:10Z".parse().unwrap();
        File::options().write(true).open(&log).unwrap().set_modified(written_at.into()).unwrap();
        let saves = logged_saves(data.path()).unwrap();
        assert_eq!(saves, LoggedSaves { in_stop: false, last: Some("2026-11-22T03:07:10Z".parse().unwrap()) });
    }

    #[test]
    fn builds_are_read_in_old_and_new_format() {
        assert_eq!(build_in("Paper version git-Paper-496 (MC: 1.20.4) (Implementing …)"), Some(496));
        assert_eq!(build_in("Paper version 26.1-15-main@abc (…)"), Some(15));
        assert_eq!(build_in("Paper version 1.21.11-pre3-7-main@abc"), Some(7));
        assert_eq!(build_in("CraftBukkit version 3856-Spigot"), None);
    }
}
