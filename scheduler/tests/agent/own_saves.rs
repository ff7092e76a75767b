//! Edge (writes). Tests requests to the agent during an online backup: a save, and a countdown.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use jiff::SignedDuration;
use scheduler::backup::Contents;
use scheduler::protocol::{HotCopy, HotCopyOutcome, RequestRefusal, Save, Saved};

use crate::hot_copy::{LONG, MIB, asked, begin, is_as_before, outcome, saves, up, why_failed};
use crate::pod::{restart_in, until};

#[tokio::test(flavor = "multi_thread")]
async fn requested_save_during_backup_reads_fails_the_backup() {
    let (pod, server) = up(LONG).await;
    begin(&pod, &asked("asked-1")).await;
    until("saving is off", async || !saves(&server)).await;
    let save: Saved = pod.json("POST", "/v1/save", &Save { timeout_seconds: 60 }).await;
    assert!(save.confirmed && save.problem.is_none(), "{save:?}");
    let why = why_failed(&pod, "asked-1").await;
    assert!(why.contains("the worlds were saved for a stop or a drain") && why.contains("another copy"), "{why}");
    // The server continues: the drain was cancelled.
    is_as_before(&pod, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requested_save_during_backup_flush_does_not_wait() {
    let (pod, server) = up(MIB).await;
    server.control("fault slow-save 2");
    begin(&pod, &asked("asked-1")).await;
    until("saving is off", async || !saves(&server)).await;
    let save: Saved = pod.json("POST", "/v1/save", &Save { timeout_seconds: 60 }).await;
    assert!(save.confirmed, "{save:?}");
    let why = why_failed(&pod, "asked-1").await;
    assert!(why.contains("the worlds were saved"), "{why}");
    is_as_before(&pod, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_write_fails_online_backup_and_names_file() {
    let (pod, server) = up(MIB).await;
    let region = pod.data.path().join("world/region/r.9.9.mca");
    File::create(&region).unwrap().set_len(256 * MIB).unwrap();
    let plugin = tokio::spawn(async move {
        let mut file = File::options().write(true).open(region).unwrap();
        loop {
            file.write_all(b"x").unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    begin(&pod, &HotCopy { contents: Contents::Worlds, ..asked("asked-1") }).await;
    let why = why_failed(&pod, "asked-1").await;
    assert!(why.contains("`world/region/r.9.9.mca` was written to") && why.contains("two moments"), "{why}");
    is_as_before(&pod, &server).await;
    plugin.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn countdown_waits_for_backup_flush_and_backup_completes() {
    let (pod, server) = up(MIB).await;
    server.control("fault slow-save 3");
    begin(&pod, &asked("asked-1")).await;
    until("saving is off", async || !saves(&server)).await;
    let announce = restart_in(SignedDuration::from_mins(5), "restart-1");
    let answer = pod.ask("POST", "/v1/announce", &announce).await;
    assert_eq!(answer.status(), 409);
    let refusal: RequestRefusal = answer.json().await.unwrap();
    assert!(refusal.not_now && refusal.error.contains("a copy of the running server"), "{refusal:?}");
    assert_eq!(pod.report().await.announced, None, "nobody was promised anything");

    until("it begins", async || pod.ask("POST", "/v1/announce", &announce).await.status() == 202).await;
    assert_eq!(pod.report().await.announced, Some(announce.clone()));
    let outcome = outcome(&pod, "asked-1").await;
    assert!(matches!(outcome, HotCopyOutcome::Taken { .. }), "the console is free while files are read: {outcome:?}");
}
