//! Edge (writes). Tests an agent that restarts during a countdown, and an agent whose clock differs from the operator's.

use std::fs;

use agent::clock;
use agent_api::Announce;
use jiff::SignedDuration;

use crate::fake_server::Paper;
use crate::harness::{Pod, restart_in, until};

const LAST_ANNOUNCED: &str = "last-said.json";

/// The remaining times that players read, in seconds.
pub(crate) fn shown(paper: &Paper) -> Vec<u64> {
    let number = |line: &String| line.split("Restart in ").nth(1)?.split(' ').next()?.parse().ok();
    paper.commands().iter().filter_map(number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn countdown_resumed_by_next_agent_continues_without_repeats() {
    let mut pod = Pod::without_agent(tempfile::tempdir().unwrap());
    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 1).await;
    let mut agent = pod.start_process().await;
    let announce = restart_in(SignedDuration::from_secs(18), "update-1");
    assert_eq!(pod.send("POST", "/v1/announce", &announce).await.status(), 202);
    let record_path = pod.shared.path().join(LAST_ANNOUNCED);
    until("the first line", async || record_path.exists()).await;
    agent.0.kill().unwrap();
    agent.0.wait().unwrap();
    assert_eq!(shown(&paper), [18]);

    pod.start(pod.settings()).await;
    assert_eq!(pod.report().await.announced, None, "only the operator resumes a countdown");
    assert_eq!(pod.send("POST", "/v1/announce", &announce).await.status(), 202);
    assert_eq!(pod.report().await.announced, Some(announce.clone()));
    until("the next line", async || shown(&paper).len() > 1).await;
    assert!(shown(&paper)[1] <= 10, "the next line of this countdown is at 10 s: {:?}", shown(&paper));

    // An invalid record suppresses no line.
    let running = fs::read(&record_path).unwrap();
    fs::write(&record_path, &running[..running.len() / 2]).unwrap();
    let other = Announce { act: "update-2".into(), ends: clock::now() + SignedDuration::from_secs(40), ..announce };
    assert_eq!(pod.send("POST", "/v1/announce", &other).await.status(), 202);
    until("the line of the other countdown", async || shown(&paper).contains(&40)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn countdown_follows_clock_of_the_operator() {
    let mut pod = Pod::without_agent(tempfile::tempdir().unwrap());
    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 1).await;
    pod.start(pod.settings()).await;
    let operators = clock::now() + SignedDuration::from_secs(20);
    let announce =
        Announce { ends: operators + SignedDuration::from_secs(12), ..restart_in(SignedDuration::ZERO, "update-1") };
    assert_eq!(pod.send_at(operators, "POST", "/v1/announce", &announce).await.status(), 202);
    until("the countdown is over", async || shown(&paper).last() == Some(&1)).await;
    let lines = shown(&paper);
    // Accurate to a second, plus the delay of the machine.
    assert!((10..=13).contains(&lines[0]), "{lines:?}");
    let ended = clock::now() + SignedDuration::from_secs(20);
    assert!(ended < announce.ends + SignedDuration::from_secs(5), "{lines:?} by {ended}");
}
