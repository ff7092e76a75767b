//! Edge (writes). Tests abnormal ends with the fake Paper server: one that does not react to a stop, and one that restarts in place.
//!
//! The server that restarts in place finds files that a user has changed.

use std::fs;
use std::time::{Duration, Instant};

use agent::{clock, config, pre_stop_hook};
use agent_api::{AgentReport, FileSet, PlayerCount, Save, Saved, Server, UNOBSERVED_STOP, UNREQUESTED_STOP};
use fixtures::fake_paper::{Config, Handle, start};
use fixtures::jar::{self, PluginYml};
use jiff::SignedDuration;

use crate::fake_paper::{MINECRAFT, lock};
use crate::fake_server::PASSWORD;
use crate::harness::{Pod, read_last_stop, until};
use crate::volume::{Init, serve};

/// A short `gracefulShutdown.timeout`, which limits the hook.
pub(crate) const TIMEOUT: u64 = 15;
/// Allows for a busy machine.
const SLACK: Duration = Duration::from_secs(10);
/// The times in a log are whole seconds.
const LOG_PRECISION: SignedDuration = SignedDuration::from_secs(2);
/// The end of the reason for a server that counts as saved without a confirmation.
pub(crate) const SAVED_BY_LOG: &str = ". Its log says that all was saved as it stopped";

/// A pod whose init container has applied a version set to the volume, and that version set.
pub(crate) async fn prepared(rcon_enabled: bool) -> (Pod, FileSet) {
    let (mut pod, set) = prepared_with_rcon().await;
    let settings = config::SidecarConfig { stop_timeout: TIMEOUT, rcon_enabled, ..pod.settings() };
    pod.start(settings).await;
    (pod, set)
}

/// A volume that the init container has prepared.
pub(crate) async fn prepared_with_rcon() -> (Pod, FileSet) {
    let web = tempfile::tempdir().unwrap();
    let url = serve(web.path()).await;
    let (set, files) = lock('a', 129, "1.0", &url);
    for (name, content) in files {
        fs::write(web.path().join(name), content).unwrap();
    }
    let init = Init::with_volume(tempfile::tempdir().unwrap(), &set);
    let status = tokio::task::block_in_place(|| init.run());
    assert!(status.success(), "{status}");
    (Pod::without_agent(init.data), set)
}

/// The server's process, as the kubelet starts it.
pub(crate) fn server(pod: &Pod, set: &FileSet) -> Handle {
    start(config(pod, set))
}

fn config(pod: &Pod, set: &FileSet) -> Config {
    let jar = pod.data.path().join(&set.server.path);
    Config::for_tests(pod.data.path(), &jar, MINECRAFT.id, PASSWORD)
        .with("SERVER_PORT", &pod.game.port().to_string())
        .with("RCON_PORT", &pod.rcon.port().to_string())
        .with("STAND_IN_PLAYERS", "2")
}

fn is_read(report: &AgentReport) -> bool {
    matches!(&report.server, Server::Up { plugins: Some(_), .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn unresponsive_server_blocks_no_hook_and_exits_unsaved() {
    let (pod, set) = prepared(true).await;
    let hung = server(&pod, &set);
    let before = pod.report_when("plugins read", is_read).await;
    assert_eq!(before.players, PlayerCount::Some { count: 2 });
    let saved_from = clock::now();
    assert!(pod.json::<Saved>("POST", "/v1/save", &Save { timeout_seconds: 20 }).await.confirmed);
    let saved_until = clock::now() + LOG_PRECISION;
    let answer = hung.control("fault hang");
    assert!(!answer.contains("no such"), "{answer}");

    let begun = Instant::now();
    let config = config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: TIMEOUT };
    let outcome = pre_stop_hook::run(&config).await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(TIMEOUT) + SLACK, "{outcome:?} after {took:?}");
    // The hook has ended, and the agent has tried all its commands, each with its timeout.
    pod.report_when("stopping", |report| matches!(report.server, Server::Stopping { .. })).await;
    // SIGTERM has no effect, and the kubelet kills it at the end of the grace period.
    hung.terminate();
    hung.kill().await;
    let report = pod.report_when("exited", |report| report.last_stop.is_some()).await;
    let last_stop = report.last_stop.unwrap();
    assert!(!last_stop.saved, "{last_stop:?}");
    assert!(last_stop.why.starts_with("stopped on request, but `save-all flush` was not confirmed: "), "{last_stop:?}");
    assert!(last_stop.why.contains("no answer to `minecraft:save-all` within"), "{last_stop:?}");
    assert_eq!(last_stop.players, Some(2));
    let is_plausible = last_stop.saved_at.is_some_and(|at| saved_from <= at && at <= saved_until);
    assert!(is_plausible, "{last_stop:?}, and saved from {saved_from} to {saved_until}");
    assert_eq!(read_last_stop(pod.data.path()), last_stop);
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_main_thread_is_reported_while_pings_are_answered() {
    let (pod, set) = prepared(true).await;
    let hung = server(&pod, &set);
    pod.report_when("plugins read", is_read).await;
    let from = clock::now();
    assert_eq!(hung.control("fault hang"), "ok");
    let hangs = |report: &AgentReport| matches!(report.server, Server::Up { hangs_since: Some(_), .. });
    let report = pod.report_when("the hang is reported", hangs).await;
    let Server::Up { answered_at, hangs_since: Some(since), .. } = report.server else { unreachable!() };
    assert!(from <= since && since < answered_at, "{since}, and the last ping was answered at {answered_at}");
    hung.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_saved_without_confirmation_is_reported_with_evidence() {
    let (mut pod, set) = prepared_with_rcon().await;
    let refusing = server(&pod, &set);
    let settings = config::SidecarConfig { stop_timeout: TIMEOUT, ..pod.settings() };
    pod.start(settings).await;
    pod.report_when("plugins read", is_read).await;
    assert_eq!(refusing.control("fault save-fails"), "ok");
    let begun = clock::now();
    let config = config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: TIMEOUT };
    assert_eq!(pre_stop_hook::run(&config).await, pre_stop_hook::HookResult::Done("ok".into()));
    refusing.terminate();
    assert_eq!(refusing.wait().await, 143);
    let last_stop = pod.report_when("exited", |report| report.last_stop.is_some()).await.last_stop.unwrap();
    assert!(last_stop.saved, "{last_stop:?}");
    let why = &last_stop.why;
    assert!(
        why.starts_with("stopped on request, but the server answered `save-all flush` with `Saving the game"),
        "{why}"
    );
    assert!(why.ends_with(&format!("`{SAVED_BY_LOG}")), "{why}");
    let is_of_this_stop = last_stop.saved_at.is_some_and(|at| begun - LOG_PRECISION <= at && at <= last_stop.at);
    assert!(is_of_this_stop, "{last_stop:?}, requested at {begun}");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_restarted_in_place_reports_files_differing_from_lock() {
    let (pod, set) = prepared(true).await;
    let first = server(&pod, &set);
    let report = pod.report_when("plugins read", is_read).await;
    assert_eq!(report.drift, Vec::<String>::new());

    // A plugin that updates itself, as the next start of the process would find it.
    let demo = &set.plugins[0].path;
    fs::write(pod.data.path().join(demo), jar::plugin(&PluginYml::new("Demo", "9.9"))).unwrap();
    first.console("stop");
    assert_eq!(first.wait().await, 0, "`stop` must exit with 0");
    pod.report_when("exited", |report| report.server == Server::Absent && report.last_stop.is_some()).await;

    let _second = server(&pod, &set);
    let report = pod.report_when("plugins read again", is_read).await;
    assert_eq!(report.drift, std::slice::from_ref(demo));
    assert_eq!(report.lock, Some(set.lock), "the manifest still names the intended lock");
    let last_stop = report.last_stop.unwrap();
    assert!(last_stop.why.starts_with(UNREQUESTED_STOP), "{last_stop:?}");
    assert!(last_stop.saved && last_stop.why.ends_with(SAVED_BY_LOG), "`/stop` saves the world: {last_stop:?}");
    assert!(last_stop.saved_at.is_some_and(|at| at <= last_stop.at), "the log contains the save: {last_stop:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn start_exiting_early_names_files_differing_from_lock() {
    let (pod, set) = prepared(true).await;
    let demo = &set.plugins[0].path;
    let jar_path = pod.data.path().join(demo);
    let as_locked = fs::read(&jar_path).unwrap();
    // The file of a plugin that has updated itself.
    fs::write(&jar_path, jar::plugin(&PluginYml::new("Demo", "9.9"))).unwrap();
    let dying = start(config(&pod, &set).with("STAND_IN_FAULTS", "never-ready"));
    pod.report_when("starting", |report| matches!(report.server, Server::Starting { .. })).await;
    dying.kill().await;
    let is_named = |report: &AgentReport| report.server == Server::Absent && report.drift == std::slice::from_ref(demo);
    let report = pod.report_when("exited, and the file is named", is_named).await;
    let last_stop = report.last_stop.unwrap();
    assert!(!last_stop.saved && last_stop.why.starts_with(UNREQUESTED_STOP), "{last_stop:?}");
    assert_eq!(last_stop.saved_at, None, "its log contains no save");
    assert_eq!((report.loaded, report.rcon_exposed), (None, false));

    fs::write(&jar_path, as_locked).unwrap();
    let found = pod.report().await.drift;
    assert_eq!(found, std::slice::from_ref(demo), "the drift stays until the next check");
    let _sound = server(&pod, &set);
    let report = pod.report_when("plugins read", is_read).await;
    assert_eq!(report.drift, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_with_agent_is_reported_once_by_next_pod() {
    let (pod, set) = prepared_with_rcon().await;
    let begun = clock::now();
    let forced = server(&pod, &set);
    // A separate process, because it is killed.
    let mut agent = pod.start_process().await;
    pod.report_when("plugins read", is_read).await;
    let record = pod.data.path().join(".nightshift/running.json");
    until("the process is recorded", async || record.exists()).await;
    // No process is left to write a record.
    agent.0.kill().unwrap();
    agent.0.wait().unwrap();
    forced.kill().await;

    let mut volume = pod.data;
    let mut reported = Vec::new();
    for _ in 0..2 {
        let init = Init::with_volume(volume, &set);
        let status = tokio::task::block_in_place(|| init.run());
        assert!(status.success(), "{status}");
        let mut next = Pod::with_volume(init.data, "").await;
        reported.push(next.report_when("exit reported", |report| report.last_stop.is_some()).await.last_stop.unwrap());
        // Otherwise it would mistake the locks of the next init container for those of a server.
        next.terminate.take().unwrap().send(()).unwrap();
        (&mut next.running).await.unwrap();
        volume = next.data;
    }
    let last_stop = &reported[0];
    let reason = ": its pod was force-deleted, or its node failed or was restarted";
    assert_eq!(last_stop.why, format!("{UNOBSERVED_STOP}{reason}"));
    assert!(!last_stop.saved && last_stop.players.is_none(), "{last_stop:?}");
    assert!(begun <= last_stop.at && last_stop.at <= clock::now(), "{last_stop:?}, and started at {begun}");
    assert_eq!(reported[1], reported[0], "a later pod must not change the record");
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_missed_by_killed_agent_is_reported_later() {
    let (mut pod, set) = prepared_with_rcon().await;
    let first = server(&pod, &set);
    let mut agent = pod.start_process().await;
    pod.report_when("plugins read", is_read).await;
    let record = pod.data.path().join(".nightshift/running.json");
    let is_complete = || fs::read_to_string(&record).is_ok_and(|text| text.contains("\"log\""));
    until("the process is recorded with its log", async || is_complete()).await;
    agent.0.kill().unwrap();
    agent.0.wait().unwrap();
    first.kill().await;

    // The kubelet restarts the server, and then the agent.
    let _second = server(&pod, &set);
    pod.start(config::SidecarConfig { stop_timeout: TIMEOUT, ..pod.settings() }).await;
    let report = pod.report_when("exit reported", |report| report.last_stop.is_some() && is_read(report)).await;
    let last_stop = report.last_stop.unwrap();
    assert!(!last_stop.saved && last_stop.why.starts_with(UNOBSERVED_STOP), "{last_stop:?}");
    assert_eq!(read_last_stop(pod.data.path()), last_stop);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_rcon_is_stopped_by_sigterm() {
    for is_saved in [true, false] {
        let (pod, set) = prepared(false).await;
        let mute = start(config(&pod, &set).with("ENABLE_RCON", "false"));
        let report = pod.report_when("plugins read", is_read).await;
        let Server::Up { plugins: Some(plugins), .. } = &report.server else { panic!("{report:?}") };
        assert!(plugins["Demo"].enabled && plugins.len() == 1, "{plugins:?}");

        let (begun, begun_at) = (Instant::now(), clock::now());
        let config = config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: TIMEOUT };
        pre_stop_hook::run(&config).await;
        assert!(begun.elapsed() < Duration::from_secs(TIMEOUT), "without RCON the hook must not wait");
        pod.report_when("stopping before SIGTERM", |report| matches!(report.server, Server::Stopping { .. })).await;
        if is_saved {
            mute.terminate();
            assert_eq!(mute.wait().await, 143);
        } else {
            mute.console("save-all flush");
            until("the save is logged", async || {
                mute.lines().iter().any(|line| line.contains("All dimensions are saved"))
            })
            .await;
            mute.kill().await;
        }
        let last_stop = pod.report_when("exited", |report| report.last_stop.is_some()).await.last_stop.unwrap();
        assert_eq!(last_stop.saved, is_saved, "{last_stop:?}");
        let by_its_log = if is_saved { SAVED_BY_LOG } else { "" };
        assert_eq!(last_stop.why, format!("stopped by SIGTERM, because RCON is disabled{by_its_log}"));
        assert_eq!(last_stop.players, Some(2));
        // The save of the stop, or the save that a user made before the server was killed.
        let is_plausible = last_stop.saved_at.is_some_and(|at| begun_at - LOG_PRECISION <= at && at <= last_stop.at);
        assert!(is_plausible, "{last_stop:?}, requested at {begun_at}");
    }
}
