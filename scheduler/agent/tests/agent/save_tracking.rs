//! Edge (writes). Tests which save of a crashed server is known: the last one that it confirmed to its agent.
//!
//! Its log contains no save here.

use std::fs;

use agent::clock;
use agent_api::{Contents, Trigger};
use agent_api::{LastStop, OnlineBackupRequest, Save, Saved, Server};
use jiff::Timestamp;

use crate::fake_server::Paper;
use crate::harness::{Pod, until};

async fn start(pod: &Pod) -> Paper {
    let paper = Paper::start(pod.game, pod.rcon, 1).await;
    pod.report_when("up", |report| matches!(report.server, Server::Up { .. })).await;
    paper
}

/// A pod whose server is up.
async fn running() -> (Pod, Paper) {
    let pod = Pod::new("").await;
    pod.write_log();
    let paper = start(&pod).await;
    (pod, paper)
}

/// The recorded end of a server that crashes after this instant.
async fn crashed(pod: &Pod, paper: &Paper) -> LastStop {
    let before = clock::now();
    paper.end();
    let is_reported = |last: &LastStop| last.at >= before;
    let report = pod.report_when("exited", |report| report.last_stop.as_ref().is_some_and(is_reported)).await;
    report.last_stop.unwrap()
}

async fn is_confirmed(pod: &Pod) -> bool {
    pod.json::<Saved>("POST", "/v1/save", &Save { timeout_seconds: 20 }).await.confirmed
}

fn is_between(last: &LastStop, from: Timestamp, saved_by: Timestamp) -> bool {
    last.saved_at.is_some_and(|at| from <= at && at <= saved_by)
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_save_is_known_only_for_current_process() {
    let (pod, paper) = running().await;
    let from = clock::now();
    assert!(is_confirmed(&pod).await);
    let saved_by = clock::now();
    paper.state.lock().unwrap().odd_answers.insert("minecraft:save-all flush", "Unable to save the game");
    assert!(!is_confirmed(&pod).await);
    let last = crashed(&pod, &paper).await;
    assert!(!last.saved && is_between(&last, from, saved_by), "{last:?}, and saved from {from} to {saved_by}");

    let paper = start(&pod).await;
    let last = crashed(&pod, &paper).await;
    assert_eq!((last.saved, last.saved_at), (false, None), "this process has saved nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn save_made_for_online_backup_is_known() {
    let (pod, paper) = running().await;
    let request = OnlineBackupRequest {
        request: "asked-1".into(),
        trigger: Trigger::OnDemand,
        contents: Contents::ServerFiles,
        timeout_seconds: 600,
    };
    let settings = pod.data.path().join("plugins/Map/config.yml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(settings, "tiles: 8").unwrap();
    let from = clock::now();
    assert_eq!(pod.send("POST", "/v1/backup", &request).await.status(), 202);
    let is_on = |commands: &[String]| commands.iter().any(|command| command == "minecraft:save-on");
    until("saving is on again", async || is_on(&paper.commands())).await;
    let saved_by = clock::now();
    let last = crashed(&pod, &paper).await;
    assert!(!last.saved && is_between(&last, from, saved_by), "{last:?}, and saved from {from} to {saved_by}");
}
