//! Edge (writes). Tests online backups, with the fake Paper server and with one that misbehaves.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use agent::backup::Backup;
use agent::backup::repository::BackupRepository;
use agent::backup::restore::unpack;
use agent::staging::fs_ops::{Disk, RealFs};
use agent::{config, pre_stop_hook};
use agent_api::{
    AgentReport, CancelAnnouncement, OnlineBackupOutcome, OnlineBackupReport, OnlineBackupRequest, ProtectBackup,
    Server,
};
use agent_api::{Contents, Trigger};
use fastnbt::Value;
use fixtures::fake_paper::{Config, Handle, start};
use fixtures::jar::{self, Minecraft};

use crate::fake_server::{PASSWORD, Paper};
use crate::harness::{Pod, restart_in, until};

const MINECRAFT: Minecraft<'_> = Minecraft { id: "1.21.10", world_version: 4556, protocol: Some(773), java: 21 };
pub(crate) const MIB: u64 = 1024 * 1024;
/// Zeros that take no space on the disk and many seconds to read.
pub(crate) const LARGE_BYTES: u64 = 4096 * MIB;
/// More than any backup volume has.
const TOO_MANY_BYTES: u64 = 8 * 1024 * 1024 * MIB;
const SAVING_OFF: &str = ".nightshift/saving-off.json";
const RECORD: &str = ".nightshift/online-backup.json";

pub(crate) fn backup_request(request: &str) -> OnlineBackupRequest {
    OnlineBackupRequest {
        request: request.into(),
        trigger: Trigger::OnDemand,
        contents: Contents::Everything,
        timeout_seconds: 600,
    }
}

/// A fake server with players who build, which saves twenty times a second.
async fn play(pod: &Pod) -> Handle {
    let jar = pod.data.path().join(".nightshift/server/paper.jar");
    for (path, content) in [
        (jar.clone(), jar::paper(&MINECRAFT, 130, "http://127.0.0.1:1/server.jar")),
        (pod.data.path().join("cache/mojang_1.21.10.jar"), jar::mojang(&MINECRAFT)),
    ] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let config = Config::for_tests(pod.data.path(), &jar, MINECRAFT.id, PASSWORD)
        .with("SERVER_PORT", &pod.game.port().to_string())
        .with("RCON_PORT", &pod.rcon.port().to_string())
        .with("STAND_IN_PLAYERS", "5")
        .with("STAND_IN_SAVES_EVERY_MS", "50");
    let server = start(config);
    assert!(server.ready().await.is_some(), "{:?}", server.lines());
    server
}

/// A pod whose server is up, with this many zeros among its plugins' files.
pub(crate) async fn running(zeros: u64) -> (Pod, Handle) {
    let pod = Pod::new("").await;
    put_zeros(&pod, zeros);
    let server = play(&pod).await;
    wait_until_up(&pod).await;
    (pod, server)
}

async fn wait_until_up(pod: &Pod) {
    pod.report_when("up", |report| matches!(report.server, Server::Up { .. })).await;
}

fn put_zeros(pod: &Pod, zeros: u64) {
    let folder = pod.data.path().join("plugins/Map");
    fs::create_dir_all(&folder).unwrap();
    File::create(folder.join("zeros.bin")).unwrap().set_len(zeros).unwrap();
}

async fn send(pod: &Pod, request: &OnlineBackupRequest) -> (u16, String) {
    let answer = pod.send("POST", "/v1/backup", request).await;
    (answer.status().as_u16(), answer.text().await.unwrap())
}

pub(crate) async fn begin(pod: &Pod, request: &OnlineBackupRequest) {
    assert_eq!(send(pod, request).await, (202, String::new()));
}

fn last_online_backup(report: &AgentReport) -> Option<OnlineBackupReport> {
    report.backups.as_ref().unwrap().online.clone()
}

/// The result of the request.
pub(crate) async fn outcome(pod: &Pod, request: &str) -> OnlineBackupOutcome {
    let is_over = |last: OnlineBackupReport| last.request == request && last.outcome != OnlineBackupOutcome::Running;
    let report = pod.report_when("the backup ended", |report| last_online_backup(report).is_some_and(is_over)).await;
    last_online_backup(&report).unwrap().outcome
}

pub(crate) async fn failure(pod: &Pod, request: &str) -> String {
    let outcome = outcome(pod, request).await;
    let OnlineBackupOutcome::Failed { why } = outcome else { unreachable!("{outcome:?}") };
    why
}

pub(crate) fn is_autosave_on(server: &Handle) -> bool {
    serde_json::from_str::<serde_json::Value>(&server.control("status")).unwrap()["saving"].as_bool().unwrap()
}

fn backups(pod: &Pod) -> Vec<Backup> {
    BackupRepository::new(pod.backups_dir()).list().unwrap().into_iter().map(|backup| backup.state.unwrap()).collect()
}

/// No backup or part of one exists, autosave is on, and no record states that it may be off.
pub(crate) async fn assert_unchanged(pod: &Pod, server: &Handle) {
    until("saving is on", async || is_autosave_on(server)).await;
    until("the record is removed", async || !pod.data.path().join(SAVING_OFF).exists()).await;
    until("no backup is left", async || fs::read_dir(pod.backups_dir()).unwrap().count() == 0).await;
}

/// When the world was saved, by its parts. All are equal if they belong to one save.
fn saved_at(data: &Path) -> Vec<i64> {
    let mut found = Vec::new();
    for world in ["world", "world_nether", "world_the_end"] {
        let mut bytes = Vec::new();
        let file = File::open(data.join(world).join("level.dat")).unwrap();
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        let root: HashMap<String, Value> = fastnbt::from_bytes(&bytes).unwrap();
        let Value::Compound(data) = &root["Data"] else { unreachable!("no Data") };
        let Value::Long(at) = data["LastPlayed"] else { unreachable!("no LastPlayed") };
        found.push(at);
    }
    let blocks: serde_json::Value =
        serde_json::from_slice(&fs::read(data.join("world/fake-paper-blocks.json")).unwrap()).unwrap();
    let at: jiff::Timestamp = blocks["saved_at"].as_str().unwrap().parse().unwrap();
    found.push(at.as_millisecond());
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn online_backup_holds_one_save_and_reenables_saving_early() {
    let (pod, server) = running(MIB).await;
    // Between two files of the world that each save writes.
    let between = pod.data.path().join("world/region/between.bin");
    File::create(&between).unwrap().set_len(256 * MIB).unwrap();
    begin(&pod, &backup_request("asked-1")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    assert!(pod.data.path().join(SAVING_OFF).exists());
    until("saving is on", async || is_autosave_on(&server)).await;
    assert_eq!(
        last_online_backup(&pod.report().await).unwrap().outcome,
        OnlineBackupOutcome::Running,
        "the backup is being verified"
    );
    assert!(backups(&pod).is_empty(), "an unverified backup does not count");
    let OnlineBackupOutcome::Taken { id } = outcome(&pod, "asked-1").await else { panic!("not taken") };
    assert!(is_autosave_on(&server) && !pod.data.path().join(SAVING_OFF).exists());

    let [backup] = backups(&pod).try_into().unwrap();
    assert_eq!((backup.id.as_str(), backup.trigger), (id.as_str(), Trigger::OnDemand));
    assert_eq!((backup.request.as_deref(), backup.before.as_deref()), (Some("asked-1"), None));
    assert!(backup.changed.is_empty() && backup.left_out.is_empty(), "{backup:?}");
    let into = pod.shared.path().join("restored");
    unpack(&BackupRepository::new(pod.backups_dir()), &backup, &into, &mut Disk::new(RealFs)).unwrap();
    let saved = saved_at(&into);
    assert!(saved.iter().all(|at| *at == saved[0]), "the files are of several saves: {saved:?}");
    assert!(saved[0] <= backup.started_at.as_millisecond(), "the save must be on the disk before any file is read");

    let backups = pod.report().await.backups.unwrap();
    assert_eq!((backups.last.unwrap().id, backups.last_of_worlds), (id, None), "it is no rollback backup");
}

#[tokio::test(flavor = "multi_thread")]
async fn online_backup_after_logged_damage_is_marked() {
    let (mut pod, server) = running(MIB).await;
    assert_eq!(pod.report().await.damage, None);
    begin(&pod, &backup_request("asked-1")).await;
    let OnlineBackupOutcome::Taken { id: before } = outcome(&pod, "asked-1").await else { panic!("not taken") };
    assert_eq!(server.control("damage"), "ok");
    begin(&pod, &backup_request("asked-2")).await;
    let OnlineBackupOutcome::Taken { id: after } = outcome(&pod, "asked-2").await else { panic!("not taken") };
    let report = pod.report().await;
    let backups = report.backups.unwrap();
    assert_eq!(backups.last.map(|last| (last.id, last.after_damage)), Some((after, true)));
    assert_eq!(backups.last_before_damage.map(|backup| (backup.id, backup.after_damage)), Some((before, false)));
    let damage = report.damage.unwrap();
    assert_eq!((damage.lines, damage.first.starts_with("Chunk [1, 2] header is truncated: ")), (2, true), "{damage:?}");

    pod.running.abort();
    pod.start(pod.settings()).await;
    assert_eq!(pod.report().await.damage, Some(damage), "the next agent counts no line twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn same_request_takes_one_backup_even_across_agents() {
    let (mut pod, server) = running(MIB).await;
    for _ in 0..2 {
        begin(&pod, &backup_request("asked-1")).await;
    }
    let taken = outcome(&pod, "asked-1").await;
    begin(&pod, &backup_request("asked-1")).await;
    pod.running.abort();
    pod.start(pod.settings()).await;
    wait_until_up(&pod).await;
    begin(&pod, &backup_request("asked-1")).await;
    assert_eq!(outcome(&pod, "asked-1").await, taken);
    assert_eq!(backups(&pod).len(), 1);
    assert!(is_autosave_on(&server));
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_save_fails_online_backup_and_reenables_saving() {
    let (pod, server) = running(MIB).await;
    server.control("fault save-fails");
    begin(&pod, &backup_request("asked-1")).await;
    let why = failure(&pod, "asked-1").await;
    assert!(why.contains("`save-all flush` with `") && why.contains("Unable to save"), "{why}");
    assert_unchanged(&pod, &server).await;

    server.control("fault none");
    server.control("fault hang 4");
    begin(&pod, &OnlineBackupRequest { timeout_seconds: 3, ..backup_request("asked-2") }).await;
    let why = failure(&pod, "asked-2").await;
    assert!(why.contains("could not be disabled: no answer to `minecraft:save-off`"), "{why}");
    assert_unchanged(&pod, &server).await;
    begin_when_free(&pod, &backup_request("asked-3")).await;
    assert!(matches!(outcome(&pod, "asked-3").await, OnlineBackupOutcome::Taken { .. }));
}

/// Begins when the previous backup has finished, which is when autosave was confirmed.
async fn begin_when_free(pod: &Pod, request: &OnlineBackupRequest) {
    until("the request is accepted", async || send(pod, request).await.0 == 202).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_save_response_is_reported_and_reenables_saving() {
    let pod = Pod::new("").await;
    put_zeros(&pod, MIB);
    let paper = Paper::start(pod.game, pod.rcon, 0).await;
    paper.state.lock().unwrap().odd_answers.insert("minecraft:save-off", "Command not found");
    wait_until_up(&pod).await;
    begin(&pod, &OnlineBackupRequest { contents: Contents::ServerFiles, ..backup_request("asked-1") }).await;
    let why = failure(&pod, "asked-1").await;
    assert!(why.contains("answered `save-off` with `Command not found`"), "{why}");
    until("save-on", async || paper.commands().last().is_some_and(|last| last == "minecraft:save-on")).await;
    until("the record is removed", async || !pod.data.path().join(SAVING_OFF).exists()).await;

    paper.state.lock().unwrap().odd_answers = [("minecraft:save-on", "Command not found")].into();
    begin_when_free(&pod, &OnlineBackupRequest { contents: Contents::ServerFiles, ..backup_request("asked-2") }).await;
    let why = failure(&pod, "asked-2").await;
    assert!(why.contains("saving may still be disabled"), "{why}");
    assert!(pod.data.path().join(SAVING_OFF).exists(), "the next agent needs the record");
    assert!(backups(&pod).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_after_killed_one_reenables_saving() {
    let mut pod = Pod::without_agent(tempfile::tempdir().unwrap());
    put_zeros(&pod, LARGE_BYTES);
    let server = play(&pod).await;
    let mut agent = pod.start_process().await;
    begin(&pod, &backup_request("asked-1")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    agent.0.kill().unwrap();
    agent.0.wait().unwrap();
    assert!(!is_autosave_on(&server) && pod.data.path().join(SAVING_OFF).exists());

    pod.start(pod.settings()).await;
    let why = failure(&pod, "asked-1").await;
    assert!(why.contains("the agent was restarted meanwhile"), "{why}");
    until("saving is on", async || is_autosave_on(&server)).await;
    until("the record is removed", async || !pod.data.path().join(SAVING_OFF).exists()).await;
    put_zeros(&pod, MIB);
    begin_when_free(&pod, &backup_request("asked-2")).await;
    assert!(matches!(outcome(&pod, "asked-2").await, OnlineBackupOutcome::Taken { .. }));
    assert_eq!(fs::read_dir(pod.backups_dir()).unwrap().count(), 1, "the unfinished backup is removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn online_backup_fails_at_read_timeout_and_reenables_saving() {
    let (pod, server) = running(LARGE_BYTES).await;
    begin(&pod, &OnlineBackupRequest { timeout_seconds: 3, ..backup_request("asked-1") }).await;
    let why = failure(&pod, "asked-1").await;
    assert!(
        why.contains("in the 3 s for which") && why.contains("`plugins/Map/zeros.bin`: back up the worlds only"),
        "{why}"
    );
    assert_unchanged(&pod, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_during_online_backup_is_not_delayed() {
    let (pod, server) = running(LARGE_BYTES).await;
    begin(&pod, &backup_request("asked-1")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    let other = send(&pod, &backup_request("asked-2")).await;
    assert!(other.0 == 409 && other.1.contains("another online backup"), "{other:?}");
    let config = config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: 60 };
    assert_eq!(pre_stop_hook::run(&config).await, pre_stop_hook::HookResult::Done("ok".into()));
    server.terminate();
    assert_eq!(server.wait().await, 143);
    let has_exited = |report: &AgentReport| report.server == Server::Absent && report.last_stop.is_some();
    let report = pod.report_when("exited", has_exited).await;
    assert!(report.last_stop.unwrap().saved);
    let why = failure(&pod, "asked-1").await;
    assert!(why.contains("the server was stopped while its files were read"), "{why}");
    until("the record is removed", async || !pod.data.path().join(SAVING_OFF).exists()).await;
    until("no backup is left", async || fs::read_dir(pod.backups_dir()).unwrap().count() == 0).await;
    let late = send(&pod, &backup_request("asked-3")).await;
    assert!(late.0 == 409 && late.1.contains("does not run"), "{late:?}");
    let record: OnlineBackupReport = serde_json::from_slice(&fs::read(pod.data.path().join(RECORD)).unwrap()).unwrap();
    assert_eq!((record.request, record.outcome), ("asked-1".into(), OnlineBackupOutcome::Failed { why }));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_crash_during_online_backup_leaves_no_backup() {
    let (pod, server) = running(LARGE_BYTES).await;
    begin(&pod, &backup_request("asked-1")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    server.kill().await;
    let why = failure(&pod, "asked-1").await;
    assert!(why.contains("exited while its files were read"), "{why}");
    put_zeros(&pod, MIB);
    let server = play(&pod).await;
    assert_unchanged(&pod, &server).await;
    begin_when_free(&pod, &backup_request("asked-2")).await;
    assert!(matches!(outcome(&pod, "asked-2").await, OnlineBackupOutcome::Taken { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_switched_on_externally_fails_the_online_backup() {
    let (pod, server) = running(256 * MIB).await;
    begin(&pod, &backup_request("asked-1")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    server.console("minecraft:save-on");
    let why = failure(&pod, "asked-1").await;
    assert!(why.contains("saving was enabled while the files were read"), "{why}");
    assert_unchanged(&pod, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_backup_requests_are_refused_with_a_reason() {
    let (mut pod, _server) = running(MIB).await;
    for name in ["", "a b", "a/b", "../x", "ä", &"x".repeat(65)] {
        let (status, body) = send(&pod, &backup_request(name)).await;
        assert!(status == 400 && body.contains("`request` must have 1 to 64"), "{name}: {status} {body}");
    }
    let (status, body) = send(&pod, &OnlineBackupRequest { timeout_seconds: 0, ..backup_request("asked-1") }).await;
    assert!(status == 400 && body.contains("`timeoutSeconds`"), "{status} {body}");
    let (status, body) =
        send(&pod, &OnlineBackupRequest { trigger: Trigger::BeforeUpdate, ..backup_request("asked-1") }).await;
    assert!(status == 400 && body.contains("`trigger`"), "{status} {body}");
    assert_eq!(pod.send("POST", "/v1/backup", &"nonsense").await.status(), 400);
    assert_eq!(last_online_backup(&pod.report().await), None, "no backup was begun");

    pod.running.abort();
    pod.start(config::SidecarConfig { backups: None, ..pod.settings() }).await;
    wait_until_up(&pod).await;
    let (status, body) = send(&pod, &backup_request("asked-1")).await;
    assert!(status == 400 && body.contains("`spec.backup`"), "{status} {body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_online_backups_are_pruned_only_to_requested_count() {
    let mut pod = Pod::without_agent(tempfile::tempdir().unwrap());
    put_zeros(&pod, MIB);
    let _server = play(&pod).await;
    for (number, (wanted, left)) in [(None, 1), (None, 2), (None, 3), (Some(2), 2)].into_iter().enumerate() {
        pod.running.abort();
        pod.start(config::SidecarConfig { backup_max_count: wanted, ..pod.settings() }).await;
        wait_until_up(&pod).await;
        let request = format!("asked-{number}");
        begin(&pod, &backup_request(&request)).await;
        assert!(matches!(outcome(&pod, &request).await, OnlineBackupOutcome::Taken { .. }));
        assert_eq!(backups(&pod).len(), left);
    }
}

async fn back_up(pod: &Pod, request: &str) -> String {
    begin_when_free(pod, &backup_request(request)).await;
    let outcome = outcome(pod, request).await;
    let OnlineBackupOutcome::Taken { id } = outcome else { unreachable!("{outcome:?}") };
    id
}

/// Without order: within one second a new backup gets the name of a removed one.
fn names(pod: &Pod) -> BTreeSet<String> {
    backups(pod).into_iter().map(|backup| backup.id).collect()
}

/// A pod whose agent keeps one backup, with a server that is up and has a backup.
async fn with_one_backup() -> (Pod, Handle, String) {
    let mut pod = Pod::without_agent(tempfile::tempdir().unwrap());
    put_zeros(&pod, MIB);
    let server = play(&pod).await;
    pod.start(config::SidecarConfig { backup_max_count: Some(1), ..pod.settings() }).await;
    wait_until_up(&pod).await;
    let backup = back_up(&pod, "asked-1").await;
    (pod, server, backup)
}

#[tokio::test(flavor = "multi_thread")]
async fn prune_before_backup_frees_space_but_keeps_wanted_backups() {
    let mut pod = Pod::without_agent(tempfile::tempdir().unwrap());
    put_zeros(&pod, MIB);
    let server = play(&pod).await;
    pod.start(pod.settings()).await;
    wait_until_up(&pod).await;
    let taken = [back_up(&pod, "asked-1").await, back_up(&pod, "asked-2").await, back_up(&pod, "asked-3").await];
    put_zeros(&pod, TOO_MANY_BYTES);
    for (request, (wanted, left)) in [("asked-4", (10, 3)), ("asked-5", (2, 2))] {
        pod.running.abort();
        pod.start(config::SidecarConfig { backup_max_count: Some(wanted), ..pod.settings() }).await;
        wait_until_up(&pod).await;
        begin(&pod, &backup_request(request)).await;
        let why = failure(&pod, request).await;
        assert!(why.contains("may need") && why.contains(&format!("(backups there now: {left})")), "{why}");
        let newest: BTreeSet<String> = taken[3 - left..].iter().cloned().collect();
        assert_eq!(names(&pod), newest);
    }
    assert!(is_autosave_on(&server));
    put_zeros(&pod, MIB);
    let next = back_up(&pod, "asked-6").await;
    assert_eq!(names(&pod), [taken[2].clone(), next].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn prune_is_paused_during_countdown() {
    let (pod, _server, first) = with_one_backup().await;
    let announce = restart_in(jiff::SignedDuration::from_mins(5), "restart-1");
    assert_eq!(pod.send("POST", "/v1/announce", &announce).await.status(), 202);
    let second = back_up(&pod, "asked-2").await;
    assert_eq!(names(&pod), [first, second].into());

    let call_off = CancelAnnouncement { act: announce.act, text: "It stays.".into() };
    assert_eq!(pod.send("POST", "/v1/cancel-announcement", &call_off).await.status(), 204);
    let third = back_up(&pod, "asked-3").await;
    assert_eq!(names(&pod), [third].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_named_during_another_backup_is_kept() {
    let (pod, server, first) = with_one_backup().await;
    // Its verification takes seconds.
    put_zeros(&pod, 128 * MIB);
    begin_when_free(&pod, &backup_request("asked-2")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    let in_an_hour = agent::clock::now() + jiff::SignedDuration::from_hours(1);
    let retained_backup = ProtectBackup { backup: first.clone(), until: in_an_hour };
    assert_eq!(pod.send("POST", "/v1/protect-backup", &retained_backup).await.status(), 204);
    let outcome = outcome(&pod, "asked-2").await;
    let OnlineBackupOutcome::Taken { id } = outcome else { panic!("{outcome:?}") };
    assert_eq!(names(&pod), [first, id].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn prune_is_skipped_when_server_stops_during_verification() {
    let (mut pod, server, first) = with_one_backup().await;
    // Its verification takes seconds.
    put_zeros(&pod, 256 * MIB);
    begin_when_free(&pod, &backup_request("asked-2")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    until("saving is on", async || is_autosave_on(&server)).await;
    pod.terminate.take().unwrap().send(()).unwrap();
    let outcome = outcome(&pod, "asked-2").await;
    let OnlineBackupOutcome::Taken { id } = outcome else { panic!("{outcome:?}") };
    assert_eq!(names(&pod), [first, id].into());
}
