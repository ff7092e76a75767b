//! Edge (writes). Tests requests to the agent during an online backup: a save, and a countdown.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use agent_api::Contents;
use agent_api::{OnlineBackupOutcome, OnlineBackupRequest, RequestRefusal, Save, Saved};
use jiff::SignedDuration;

use crate::harness::{restart_in, until};
use crate::online_backup::{
    LARGE_BYTES, MIB, assert_unchanged, backup_request, begin, failure, is_autosave_on, outcome, running,
};

#[tokio::test(flavor = "multi_thread")]
async fn requested_save_during_backup_reads_fails_the_backup() {
    let (pod, server) = running(LARGE_BYTES).await;
    begin(&pod, &backup_request("asked-1")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    let save: Saved = pod.json("POST", "/v1/save", &Save { timeout_seconds: 60 }).await;
    assert!(save.confirmed && save.problem.is_none(), "{save:?}");
    let why = failure(&pod, "asked-1").await;
    assert!(why.contains("the worlds were saved for a stop or a drain") && why.contains("another backup"), "{why}");
    // The server continues: the drain was cancelled.
    assert_unchanged(&pod, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requested_save_during_backup_flush_does_not_wait() {
    let (pod, server) = running(MIB).await;
    server.control("fault slow-save 2");
    begin(&pod, &backup_request("asked-1")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    let save: Saved = pod.json("POST", "/v1/save", &Save { timeout_seconds: 60 }).await;
    assert!(save.confirmed, "{save:?}");
    let why = failure(&pod, "asked-1").await;
    assert!(why.contains("the worlds were saved"), "{why}");
    assert_unchanged(&pod, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_write_fails_online_backup_and_names_file() {
    let (pod, server) = running(MIB).await;
    let region = pod.data.path().join("world/region/r.9.9.mca");
    File::create(&region).unwrap().set_len(256 * MIB).unwrap();
    let plugin = tokio::spawn(async move {
        let mut file = File::options().write(true).open(region).unwrap();
        loop {
            file.write_all(b"x").unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    begin(&pod, &OnlineBackupRequest { contents: Contents::Worlds, ..backup_request("asked-1") }).await;
    let why = failure(&pod, "asked-1").await;
    assert!(why.contains("`world/region/r.9.9.mca` was written to") && why.contains("would be inconsistent"), "{why}");
    assert_unchanged(&pod, &server).await;
    plugin.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn countdown_waits_for_backup_flush_and_backup_completes() {
    let (pod, server) = running(MIB).await;
    server.control("fault slow-save 3");
    begin(&pod, &backup_request("asked-1")).await;
    until("saving is off", async || !is_autosave_on(&server)).await;
    let announce = restart_in(SignedDuration::from_mins(5), "restart-1");
    let answer = pod.send("POST", "/v1/announce", &announce).await;
    assert_eq!(answer.status(), 409);
    let refusal: RequestRefusal = answer.json().await.unwrap();
    assert!(refusal.not_now && refusal.error.contains("an online backup"), "{refusal:?}");
    assert_eq!(pod.report().await.announced, None, "no countdown was announced");

    until("the countdown begins", async || pod.send("POST", "/v1/announce", &announce).await.status() == 202).await;
    assert_eq!(pod.report().await.announced, Some(announce.clone()));
    let outcome = outcome(&pod, "asked-1").await;
    assert!(
        matches!(outcome, OnlineBackupOutcome::Taken { .. }),
        "the console is free while files are read: {outcome:?}"
    );
}
