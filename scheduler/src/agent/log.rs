//! Edge (reads). What a server says about itself in `logs/latest.log`, from its start to the line `Done`, and at its end.
//!
//! Everything between may be chat; elsewhere a line counts only in the exact shape in which the server writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;

/// How much of the file is read. A start with 200 plugins writes some hundred KiB.
const HEAD: u64 = 8 * 1024 * 1024;

/// How much of the file is read from its end. A stop of a server with 200 plugins writes some ten KiB.
const TAIL: u64 = 1024 * 1024;

/// The log of one start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartLog {
    /// Tells this start's log from every other: the file and its first line, which begins with a time.
    pub(super) mark: String,
    /// Paper's build.
    pub(super) build: Option<u32>,
    /// Version by plugin name, of those that were loaded.
    pub(super) versions: BTreeMap<String, String>,
    /// Names of the plugins that were enabled, and not disabled again before `Done`. Paper disables whoever fails while it is enabled.
    pub(super) enabled: BTreeSet<String>,
    /// The line `Done` was written.
    pub(super) done: bool,
}

/// The log of the start that `latest.log` begins with; None if there is no such file, or it goes on from one that was put away at
/// midnight.
pub(super) fn read(data: &Path) -> io::Result<Option<StartLog>> {
    let file = match File::open(data.join("logs/latest.log")) {
        Ok(file) => file,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(other) => return Err(other),
    };
    let inode = file.metadata()?.ino();
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head)?;
    Ok(parse(inode, &String::from_utf8_lossy(&head)))
}

/// When the log last grew.
pub(super) fn changed_at(data: &Path) -> Option<Timestamp> {
    std::fs::metadata(data.join("logs/latest.log")).ok()?.modified().ok()?.try_into().ok()
}

/// Whether the server has written, since it began to stop, that all its worlds are saved. Without the file, or the line, nobody knows.
pub(super) fn says_saved(data: &Path) -> io::Result<bool> {
    let mut file = File::open(data.join("logs/latest.log"))?;
    let from = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    Ok(ends_saved(&String::from_utf8_lossy(&tail)))
}

/// By the lines that Paper writes while it stops (`rcon-facts.md`, section 3).
fn ends_saved(tail: &str) -> bool {
    let (mut stops, mut is_saved) = (false, false);
    for message in tail.lines().filter_map(|line| Some(line.split_once("]: ")?.1)) {
        match message.trim_end() {
            "Stopping server" | "Stopping the server" => (stops, is_saved) = (true, false),
            // `save-all flush` writes it too.
            "ThreadedAnvilChunkStorage: All dimensions are saved" => is_saved = stops,
            _ => {}
        }
    }
    is_saved
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

/// `[Demo] Loading server plugin Demo v2.0`, `[Demo] Enabling Demo v2.0`, `[Demo] Disabling Demo v2.0` (an asterisk marks legacy plugins). What stands in
/// brackets is the plugin's own prefix, which need not be its name.
fn plugin_in<'a>(message: &'a str, what: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = message.strip_prefix('[')?.split_once("] ")?;
    let (name, version) = rest.strip_prefix(what)?.trim_end().trim_end_matches('*').split_once(" v")?;
    (!name.contains(' ') && !version.is_empty()).then_some((name, version))
}

#[cfg(test)]
mod tests {
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
    fn build_and_plugins_are_read_from_the_start_and_not_from_what_people_say_later() {
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
    fn a_log_that_goes_on_after_midnight_is_not_the_log_of_a_start() {
        assert_eq!(parse(7, "[00:00:00] [Server thread/INFO]: Bob joined the game\n"), None);
        assert_eq!(
            parse(7, "[00:00:00] [Async Chat Thread - #0/INFO]: <Bob> Starting minecraft server version 1\n"),
            None
        );
        assert_eq!(parse(7, ""), None);
    }

    #[test]
    fn a_server_is_saved_when_its_log_says_so_of_this_stop() {
        let line = |message: &str| format!("[04:00:00] [Server thread/INFO]: {message}\n");
        let (stop, saved) = (line("Stopping server"), line("ThreadedAnvilChunkStorage: All dimensions are saved"));
        let chat = line("<Bob> ThreadedAnvilChunkStorage: All dimensions are saved");
        assert!(ends_saved(&format!("{stop}{}{saved}{}", line("Saving worlds"), line("Closing Server"))));
        assert!(!ends_saved(&format!("{saved}{stop}{}", line("Saving worlds"))), "of a save before it");
        assert!(!ends_saved(&saved), "somebody has saved, and then it was killed");
        assert!(!ends_saved(&format!("{stop}{chat}")));
        assert!(!ends_saved(""));
    }

    #[test]
    fn builds_are_read_in_the_old_and_the_new_form() {
        assert_eq!(build_in("Paper version git-Paper-496 (MC: 1.20.4) (Implementing …)"), Some(496));
        assert_eq!(build_in("Paper version 26.1-15-main@abc (…)"), Some(15));
        assert_eq!(build_in("Paper version 1.21.11-pre3-7-main@abc"), Some(7));
        assert_eq!(build_in("CraftBukkit version 3856-Spigot"), None);
    }
}
