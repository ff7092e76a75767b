//! Edge (writes). Tests the agent from outside: its binary as init container, and its sidecar over real sockets beside
//! a server.
#![expect(clippy::unwrap_used, reason = "test code; clippy's exemption covers only the test functions themselves")]
#![expect(clippy::disallowed_methods, reason = "tests prepare and inspect files")]

#[path = "agent/bad_exits.rs"]
mod bad_exits;
#[path = "agent/countdown.rs"]
mod countdown;
#[path = "agent/disk_space.rs"]
mod disk_space;
#[path = "agent/early_stop.rs"]
mod early_stop;
#[path = "agent/fake_paper.rs"]
mod fake_paper;
#[path = "agent/fake_server.rs"]
mod fake_server;
#[path = "agent/harness.rs"]
mod harness;
#[path = "agent/hostile_network.rs"]
mod hostile_network;
#[path = "agent/hostile_volume.rs"]
mod hostile_volume;
#[path = "agent/init.rs"]
mod init;
#[path = "agent/loaded_content.rs"]
mod loaded_content;
#[path = "agent/online_backup.rs"]
mod online_backup;
#[path = "agent/plugin_data.rs"]
mod plugin_data;
#[path = "agent/pre_update_backup.rs"]
mod pre_update_backup;
#[path = "agent/requested_restore.rs"]
mod requested_restore;
#[path = "agent/save_during_backup.rs"]
mod save_during_backup;
#[path = "agent/save_tracking.rs"]
mod save_tracking;
#[path = "agent/seed_volume.rs"]
mod seed_volume;
#[path = "agent/volume.rs"]
mod volume;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use agent::{clock, config, pre_stop_hook};
use agent_api::signature::{Key, Parts, sign};
use agent_api::{
    AgentReport, Announce, AnnouncementTarget, CancelAnnouncement, PlayerCount, PluginReport, Save, Saved, Server,
    in_the_chat,
};
use fake_server::Paper;
use harness::{KEY, POD, Pod, TEST_TIMEOUT, read_last_stop, until};
use jiff::SignedDuration;

#[tokio::test(flavor = "multi_thread")]
async fn server_is_observed_from_first_response_to_saved_exit() {
    let pod = Pod::new("").await;
    assert_eq!((pod.probe("/started").await, pod.probe("/ready").await), (503, 503));
    assert_eq!(pod.report().await.server, Server::Absent);

    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 3).await;
    let is_read = |report: &AgentReport| matches!(&report.server, Server::Up { plugins: Some(_), .. });
    let report = pod.report_when("plugins read", is_read).await;
    assert_eq!((pod.probe("/started").await, pod.probe("/ready").await), (200, 200));
    let Server::Up { minecraft, build, plugins, .. } = report.server else { unreachable!() };
    assert_eq!((minecraft.as_str(), build), ("1.21.10", Some(130)));
    let seen = |version: &str, enabled| PluginReport { version: Some(version.to_owned()), enabled };
    assert_eq!(plugins.unwrap(), [("Demo".into(), seen("2.0", true)), ("Red".into(), seen("1", false))].into());
    assert_eq!(report.players, PlayerCount::Some { count: 3 });
    assert_eq!(report.pod_uid, POD);
    assert_eq!(pod.json::<PlayerCount>("POST", "/v1/players", &()).await, PlayerCount::Some { count: 3 });

    let save: Saved = pod.json("POST", "/v1/save", &Save { timeout_seconds: 20 }).await;
    assert!(save.confirmed && save.problem.is_none(), "{save:?}");

    let requested_at = clock::now();
    let config = config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: 60 };
    assert_eq!(pre_stop_hook::run(&config).await, pre_stop_hook::HookResult::Done("ok".into()));
    pod.report_when("stopping", |report| matches!(report.server, Server::Stopping { .. })).await;
    paper.end();
    let report = pod.report_when("exited", |report| report.last_stop.is_some()).await;
    assert_eq!(
        paper.commands(),
        [
            "bukkit:plugins",
            "minecraft:list",
            "minecraft:save-all flush",
            r#"minecraft:tellraw @a {"color":"yellow","text":"This server stops in a moment."}"#,
            "minecraft:save-all flush",
            "minecraft:kick @a The server stops now. Please join again in a few minutes.",
        ],
        "players who were not warned are warned, and disconnected with a reason, and SIGTERM stops the server"
    );
    assert_eq!(paper.state.lock().unwrap().connections, 4, "one connection per task");
    assert_eq!(report.server, Server::Absent);
    let last_stop = report.last_stop.unwrap();
    assert!(last_stop.saved, "{last_stop:?}");
    let is_from_this_stop = last_stop.saved_at.is_some_and(|at| requested_at <= at && at <= last_stop.at);
    assert!(is_from_this_stop, "only the save of the stop counts: {last_stop:?}");
    assert_eq!(last_stop.players, Some(3), "the count of the last ping before the kick");
    assert_eq!(read_last_stop(pod.data.path()), last_stop);
    assert_eq!((pod.probe("/started").await, pod.probe("/ready").await), (503, 503));
}

#[tokio::test(flavor = "multi_thread")]
async fn countdown_shows_correct_times_once_per_disruption() {
    let pod = Pod::new("").await;
    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 1).await;
    pod.report_when("plugins read", |report| matches!(&report.server, Server::Up { plugins: Some(_), .. })).await;
    let announce = Announce {
        act: "update-1".into(),
        ends: clock::now() + SignedDuration::from_millis(2900),
        text: "Restart in {in}".into(),
        short: None,
        show: in_the_chat(),
        only_empty: false,
        in_languages: false,
    };
    for _ in 0..3 {
        assert_eq!(pod.send("POST", "/v1/announce", &announce).await.status(), 202);
    }
    assert_eq!(pod.report().await.announced, Some(announce.clone()));
    until("three lines", || async { paper.commands().len() >= 4 }).await;
    let shown: Vec<_> = paper.commands()[1..].iter().map(|line| line.split('"').nth(7).unwrap().to_owned()).collect();
    assert_eq!(shown, ["Restart in 3 seconds", "Restart in 2 seconds", "Restart in 1 second"]);
    assert_eq!(paper.state.lock().unwrap().connections, 2, "the countdown used one connection");

    // The stop that follows does not warn a second time.
    pre_stop_hook::run(&config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: 60 }).await;
    let kick = "minecraft:kick @a The server stops now. Please join again in a few minutes.";
    assert_eq!(paper.commands()[4..], ["minecraft:save-all flush", kick]);
}

#[tokio::test(flavor = "multi_thread")]
async fn countdown_is_shown_everywhere_despite_one_failing_place() {
    let pod = Pod::new("").await;
    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 1).await;
    pod.report_when("plugins read", |report| matches!(&report.server, Server::Up { plugins: Some(_), .. })).await;
    let chat = r#"minecraft:tellraw @a {"color":"yellow","text":"Restart in 2 seconds.\nNeustart in 2 Sekunden."}"#;
    paper.state.lock().unwrap().unanswered.insert(chat);
    let announce = Announce {
        act: "update-1".into(),
        ends: clock::now() + SignedDuration::from_millis(1900),
        text: "Restart in {in}.\nNeustart in {in:de}.".into(),
        short: Some("In {in:de}".into()),
        show: [AnnouncementTarget::Chat, AnnouncementTarget::ActionBar, AnnouncementTarget::Title].into(),
        only_empty: false,
        in_languages: true,
    };
    assert_eq!(pod.send("POST", "/v1/announce", &announce).await.status(), 202);
    assert_eq!(pod.report().await.announced, Some(announce));
    let last = r#"minecraft:title @a title {"color":"yellow","text":"1 Sekunde"}"#;
    until("the last line", || async { paper.commands().iter().any(|command| command == last) }).await;
    let expected = |left: &str, german: &str| {
        [
            format!(r#"minecraft:tellraw @a {{"color":"yellow","text":"Restart in {left}.\nNeustart in {german}."}}"#),
            format!(r#"minecraft:title @a actionbar {{"color":"yellow","text":"In {german}"}}"#),
            format!(r#"minecraft:title @a subtitle {{"color":"yellow","text":"In {german}"}}"#),
            format!(r#"minecraft:title @a title {{"color":"yellow","text":"{german}"}}"#),
        ]
    };
    assert_eq!(
        paper.commands()[1..],
        [expected("2 seconds", "2 Sekunden"), expected("1 second", "1 Sekunde")].concat()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_server_countdown_ends_when_player_joins() {
    let pod = Pod::new("").await;
    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 0).await;
    let report = pod.report_when("an empty server", |report| report.players == PlayerCount::Nobody).await;
    assert!(report.empty_since.is_some_and(|since| since <= report.at), "{report:?}");
    let announce = Announce {
        act: "update-1".into(),
        ends: clock::now() + SignedDuration::from_secs(4),
        text: "Restart in {in}".into(),
        short: None,
        show: in_the_chat(),
        only_empty: true,
        in_languages: false,
    };
    assert_eq!(pod.send("POST", "/v1/announce", &announce).await.status(), 202);
    let count_lines = |text: &str| paper.commands().iter().filter(|command| command.contains(text)).count();
    until("the first line", || async { count_lines("Restart in") == 1 }).await;
    // The ping does not include the player yet.
    paper.state.lock().unwrap().players = 1;
    until("the countdown is cancelled", || async { count_lines("cancelled") == 1 }).await;
    let lines = count_lines("Restart in");
    assert_eq!(pod.report().await.empty_since, None);
    pre_stop_hook::run(&config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: 60 }).await;
    assert_eq!(
        (count_lines("Restart in"), count_lines("This server stops in a moment.")),
        (lines, 1),
        "{:?}",
        paper.commands()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_countdown_is_announced_once_and_another_disruption_continues() {
    let pod = Pod::new("").await;
    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 1).await;
    pod.report_when("plugins read", |report| matches!(&report.server, Server::Up { plugins: Some(_), .. })).await;
    let announce = Announce {
        act: "drain-1".into(),
        ends: clock::now() + SignedDuration::from_secs(4),
        text: "Move in {in}".into(),
        short: None,
        show: in_the_chat(),
        only_empty: false,
        in_languages: false,
    };
    assert_eq!(pod.send("POST", "/v1/announce", &announce).await.status(), 202);
    let count_lines = |text: &str| paper.commands().iter().filter(|command| command.contains(text)).count();
    until("the first line", || async { count_lines("Move in") >= 1 }).await;
    let cancellation = |act: &str| CancelAnnouncement { act: act.to_owned(), text: "It stays.".to_owned() };
    assert_eq!(pod.send("POST", "/v1/cancel-announcement", &cancellation("drain-2")).await.status(), 204);
    assert_eq!(pod.report().await.announced, Some(announce.clone()), "another disruption was cancelled");
    for _ in 0..2 {
        assert_eq!(pod.send("POST", "/v1/cancel-announcement", &cancellation("drain-1")).await.status(), 204);
    }
    let lines = count_lines("Move in");
    assert_eq!(pod.report().await.announced, None);
    // A countdown that begins after the first has run out would have sent its last lines by then.
    let next = Announce { act: "update-1".into(), text: "Restart in {in}".into(), ..announce };
    let ends = next.ends + SignedDuration::from_secs(1);
    assert_eq!(pod.send("POST", "/v1/announce", &Announce { ends, ..next }).await.status(), 202);
    until("the other countdown is over", || async { count_lines("Restart in 1 second") == 1 }).await;
    assert_eq!((count_lines("Move in"), count_lines("It stays.")), (lines, 1), "{:?}", paper.commands());
}

#[tokio::test(flavor = "multi_thread")]
async fn player_joining_before_stop_is_warned_and_disconnected() {
    let pod = Pod::new("").await;
    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 0).await;
    pod.report_when("plugins read", |report| matches!(&report.server, Server::Up { plugins: Some(_), .. })).await;
    pre_stop_hook::run(&config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: 60 }).await;
    assert_eq!(
        paper.commands()[1..],
        [
            r#"minecraft:tellraw @a {"color":"yellow","text":"This server stops in a moment."}"#,
            "minecraft:save-all flush",
            "minecraft:kick @a The server stops now. Please join again in a few minutes.",
        ],
        "no sample is recent enough to prove that the server is empty"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unrequested_exit_is_recorded_as_not_saved() {
    let mut pod = Pod::new("").await;
    let paper = Paper::start(pod.game, pod.rcon, 0).await;
    until("ready", || async { pod.probe("/ready").await == 200 }).await;
    assert_eq!(pod.report().await.players, PlayerCount::Nobody);
    paper.end();
    let report = pod.report_when("exited", |report| report.last_stop.is_some()).await;
    let last_stop = report.last_stop.unwrap();
    assert_eq!((last_stop.saved, last_stop.saved_at), (false, None));
    assert!(read_last_stop(pod.data.path()).why.contains("without a request"));
    assert!(matches!(report.players, PlayerCount::Unknown { .. }));

    pod.terminate.take().unwrap().send(()).unwrap();
    tokio::time::timeout(TEST_TIMEOUT, &mut pod.running)
        .await
        .expect("a sidecar without a server ends at once")
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_sidecar_waits_for_exit_of_its_server() {
    let mut pod = Pod::new("").await;
    let paper = Paper::start(pod.game, pod.rcon, 0).await;
    until("ready", || async { pod.probe("/ready").await == 200 }).await;
    pod.terminate.take().unwrap().send(()).unwrap();
    pod.report_when("stopping", |report| matches!(report.server, Server::Stopping { .. })).await;
    assert_eq!(pod.probe("/ready").await, 503);
    paper.end();
    tokio::time::timeout(TEST_TIMEOUT, &mut pod.running).await.expect("the sidecar ends with its server").unwrap();
    let last_stop = read_last_stop(pod.data.path());
    assert!(!last_stop.saved && last_stop.why.contains("SIGTERM"), "{last_stop:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_not_signed_for_this_pod_are_refused() {
    let pod = Pod::new("").await;
    let url = format!("http://{}/v1/report", pod.agent);
    assert_eq!(pod.client.get(&url).send().await.unwrap().status(), 401);
    let key = Key::from_hex(KEY).unwrap();
    let send = async |nonce: &str, fence: u64, pod_uid: &str, signed: &str| {
        let parts = Parts { method: "GET", path: signed, body: b"", pod_uid, at: clock::now(), nonce, fence };
        let headers = sign(&key, &parts);
        let mut request = pod.client.get(&url);
        for (name, value) in headers.pairs() {
            request = request.header(name, value);
        }
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(send("aaaaaaaaaaaaaaaa", 5, "another pod", "/v1/report").await, 401);
    assert_eq!(send("aaaaaaaaaaaaaaaa", 5, POD, "/v1/stage").await, 401);
    assert_eq!(send("aaaaaaaaaaaaaaaa", 5, POD, "/v1/report").await, 200);
    assert_eq!(send("aaaaaaaaaaaaaaaa", 5, POD, "/v1/report").await, 409, "a replayed request");
    assert_eq!(send("bbbbbbbbbbbbbbbb", 4, POD, "/v1/report").await, 409, "a request of a replaced operator");
}

#[tokio::test(flavor = "multi_thread")]
async fn hook_without_sidecar_or_server_returns_at_once() {
    let empty = tempfile::tempdir().unwrap();
    let config = config::StopConfig { shared: empty.path().to_owned(), stop_timeout: 60 };
    let begun = Instant::now();
    assert!(matches!(pre_stop_hook::run(&config).await, pre_stop_hook::HookResult::NoAnswer(_)));
    // A socket whose owner hangs.
    let deaf = tokio::net::UnixListener::bind(empty.path().join("agent.sock")).unwrap();
    assert!(matches!(pre_stop_hook::run(&config).await, pre_stop_hook::HookResult::NoAnswer(_)));
    drop(deaf);
    let pod = Pod::new("").await;
    let config = config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: 60 };
    assert!(
        matches!(pre_stop_hook::run(&config).await, pre_stop_hook::HookResult::Done(message) if message.contains("SIGTERM"))
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(fs::metadata(pod.shared.path().join("agent.sock")).unwrap().permissions().mode() & 0o777, 0o666);
}
