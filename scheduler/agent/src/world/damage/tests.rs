//! Edge (writes). Checks a log that grows and is rotated, and the recorded damage.

use std::fs;
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use super::*;

const START: &str = "[12:00:00] [ServerMain/INFO]: [bootstrap] Running Java 21\n";
const DAMAGE: &str = "[12:00:07] [IO-Worker-1/ERROR]: Chunk [1, 2] header is truncated: expected 4096 but read 0\n";
const CHAT: &str =
    "[12:00:09] [Async Chat Thread - #0/INFO]: <Bob> Chunk [1, 2] header is truncated: expected 4096 but read 0\n";

/// Long ago, so that files written now are newer.
fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + hours * 3600).unwrap()
}

struct Server {
    directory: tempfile::TempDir,
}

impl Server {
    fn new() -> Self {
        let server = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir_all(server.directory.path().join("logs")).unwrap();
        server
    }

    fn volume(&self) -> Volume {
        Volume::new(self.directory.path())
    }

    fn append_log(&self, text: &str) {
        let path = self.directory.path().join("logs/latest.log");
        let mut log = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        log.write_all(text.as_bytes()).unwrap();
    }

    /// Rotates the log, as at a start and at midnight. Some file systems give the next log the same inode.
    fn rotate_log(&self, first: &str) {
        fs::remove_file(self.directory.path().join("logs/latest.log")).unwrap();
        self.append_log(first);
    }

    /// Sets the log's last write to this many hours after the first instant.
    fn set_log_age(&self, hours: u64) {
        let log = fs::File::options().write(true).open(self.directory.path().join("logs/latest.log")).unwrap();
        log.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000 + hours * 3600)).unwrap();
    }

    fn damage_log(&self) -> DamageLog {
        DamageLog::new(self.volume())
    }

    fn has_record(&self) -> bool {
        self.volume().damage_path().exists()
    }
}

#[test]
fn damage_record_is_written_from_first_damage_line_on() {
    let server = Server::new();
    let mut agent = server.damage_log();
    assert_eq!(agent.scan(at(0)).unwrap(), None, "there is no log");
    server.append_log(START);
    server.append_log(CHAT);
    assert_eq!(agent.scan(at(1)).unwrap(), None);
    assert!(!server.has_record());
    server.append_log(DAMAGE);
    server.append_log("java.lang.Throwable: null\n");
    let reported = agent.scan(at(2)).unwrap().unwrap();
    let first = "Chunk [1, 2] header is truncated: expected 4096 but read 0".to_owned();
    assert_eq!(reported, DamageReport { since: at(2), last: at(2), lines: 1, first });
    server.append_log("[12:09:00] [Server thread/ERROR]: Chunk [3, 4] header is truncated: expected 4096 but read 0\n");
    let more = agent.scan(at(3)).unwrap().unwrap();
    assert_eq!(more, DamageReport { last: at(3), lines: 2, ..reported });
    assert_eq!(agent.scan(at(4)).unwrap(), Some(more), "no line is counted twice");
}

#[test]
fn restarted_agent_counts_each_damage_line_once() {
    let server = Server::new();
    for text in [START, DAMAGE, CHAT] {
        server.append_log(text);
    }
    let reported = server.damage_log().scan(at(0)).unwrap().unwrap();
    assert_eq!(server.damage_log().scan(at(1)).unwrap(), Some(reported.clone()));
    server.append_log(DAMAGE);
    let expected = DamageReport { last: at(2), lines: 2, ..reported };
    assert_eq!(server.damage_log().scan(at(2)).unwrap(), Some(expected));
}

#[test]
fn new_log_longer_than_old_is_read_from_start() {
    let server = Server::new();
    server.append_log(START);
    server.append_log(DAMAGE);
    let mut agent = server.damage_log();
    assert_eq!(agent.scan(at(0)).unwrap().unwrap().lines, 1);
    server.rotate_log("[00:00:00] [Server thread/INFO]: Bob joined the game\n");
    for text in [DAMAGE, CHAT, CHAT, CHAT] {
        server.append_log(text);
    }
    assert_eq!(agent.scan(at(1)).unwrap().unwrap().lines, 2);
    assert_eq!(server.damage_log().scan(at(2)).unwrap().unwrap().lines, 2, "another agent counts the same lines");
}

#[test]
fn log_line_counts_only_once_complete() {
    let server = Server::new();
    let mut agent = server.damage_log();
    server.append_log(START.trim_end());
    assert_eq!(agent.scan(at(0)).unwrap(), None);
    server.append_log("\n");
    let (half, rest) = DAMAGE.split_at(60);
    server.append_log(half);
    assert_eq!(agent.scan(at(1)).unwrap(), None);
    server.append_log(rest);
    assert_eq!(agent.scan(at(2)).unwrap().unwrap().lines, 1);
}

#[test]
fn endless_line_does_not_block_lines_behind_it() {
    let server = Server::new();
    server.append_log(START);
    let mut agent = server.damage_log();
    server.append_log(&"x".repeat(usize::try_from(3 * MAX_LINE_BYTES / 2).unwrap()));
    assert_eq!(agent.scan(at(0)).unwrap(), None);
    server.append_log("\n");
    server.append_log(DAMAGE);
    assert_eq!(agent.scan(at(1)).unwrap().map(|reported| reported.lines), Some(1));
}

#[test]
fn log_that_is_no_regular_file_is_not_awaited() {
    let server = Server::new();
    let logs = server.directory.path().join("logs");
    fs::create_dir_all(&logs).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(logs.join("latest.log")).status().unwrap().success());
    assert_eq!(server.damage_log().scan(at(0)).unwrap(), None);
}

#[test]
fn corrupt_damage_record_keeps_reporting_and_is_rewritten() {
    let server = Server::new();
    server.append_log(START);
    server.append_log(DAMAGE);
    server.damage_log().scan(at(0)).unwrap().unwrap();
    fs::write(server.volume().damage_path(), b"cut").unwrap();
    server.rotate_log("[13:00:00] [ServerMain/INFO]: [bootstrap] Running Java 21\n");
    let reported = server.damage_log().scan(at(1)).unwrap().unwrap();
    assert_eq!((reported.lines, reported.last), (0, at(1)), "the current log reports no damage");
    assert_eq!(server.damage_log().scan(at(2)).unwrap(), Some(reported), "the record is written again");
}

#[test]
fn restored_worlds_ignore_damage_logged_before() {
    let server = Server::new();
    server.append_log(START);
    server.append_log(DAMAGE);
    server.damage_log().scan(at(0)).unwrap().unwrap();
    // Written by a server whose agent did not read it any more.
    server.append_log(DAMAGE);
    reset(&server.volume(), &mut Disk::new(RealFs)).unwrap();
    let mut agent = server.damage_log();
    assert_eq!(agent.scan(at(1)).unwrap(), None);
    server.rotate_log("[13:00:00] [ServerMain/INFO]: [bootstrap] Running Java 21\n");
    assert_eq!(agent.scan(at(2)).unwrap(), None);
    server.append_log(DAMAGE);
    assert_eq!(agent.scan(at(3)).unwrap().unwrap().since, at(3));
}

#[test]
fn damage_logged_before_exit_is_dated_by_last_write() {
    let server = Server::new();
    server.append_log(START);
    server.append_log(DAMAGE);
    server.set_log_age(2);
    let reported = server.damage_log().scan(at(5)).unwrap().unwrap();
    assert_eq!((reported.since, reported.last), (at(2), at(2)));
    let server = Server::new();
    server.append_log(START);
    server.append_log(DAMAGE);
    server.set_log_age(2);
    assert_eq!(server.damage_log().scan(at(2 + 30 * 24)).unwrap(), None, "damage expires after a month");
}

#[test]
fn damage_is_forgotten_a_month_after_its_last_line() {
    let server = Server::new();
    server.append_log(START);
    server.append_log(DAMAGE);
    let mut agent = server.damage_log();
    agent.scan(at(0)).unwrap().unwrap();
    server.append_log(DAMAGE);
    let month = 30 * 24;
    let reported = agent.scan(at(month - 1)).unwrap().unwrap();
    assert_eq!((reported.since, reported.last, reported.lines), (at(0), at(month - 1), 2));
    assert_eq!(agent.scan(at(2 * month - 2)).unwrap(), Some(reported));
    assert_eq!(agent.scan(at(2 * month - 1)).unwrap(), None);
    assert_eq!(server.damage_log().scan(at(2 * month)).unwrap(), None, "another agent forgets it too");
    server.append_log(DAMAGE);
    let anew = agent.scan(at(2 * month)).unwrap().unwrap();
    assert_eq!((anew.since, anew.lines), (at(2 * month), 1));
}

#[test]
fn damage_is_reported_despite_failed_write_and_written_later() {
    let server = Server::new();
    server.append_log(START);
    let mut agent = server.damage_log();
    assert_eq!(agent.scan(at(0)).unwrap(), None);
    server.append_log(DAMAGE);
    let nightshift_dir = server.directory.path().join(agent_api::NIGHTSHIFT_DIR);
    fs::write(&nightshift_dir, b"in the way").unwrap();
    assert!(matches!(agent.scan(at(1)), Err(Error::Disk(_))));
    assert_eq!(agent.reported().map(|reported| reported.lines), Some(1));
    fs::remove_file(&nightshift_dir).unwrap();
    assert_eq!(agent.scan(at(2)).unwrap().map(|reported| reported.lines), Some(1), "counted once");
    assert!(server.has_record());
}
