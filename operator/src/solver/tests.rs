//! Pure. Tests which questions share a decision, and how many decisions are made.

use jiff::SignedDuration;
use serde_json::json;

use super::*;
use crate::telemetry::metrics::Metrics;

fn at(seconds: i64) -> Timestamp {
    "2026-01-21T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

/// Build 1 (`ready`) is a day old. Build 2 (`young`) is old enough five seconds after twelve.
fn snapshot() -> Arc<Snapshot> {
    let build = |number: u32, published: Timestamp| {
        json!({
            "number": number, "channel": "STABLE", "published": published,
            "file": {"name": format!("paper-{number}.jar"), "url": "https://example.org/paper.jar", "size": 1, "hash": format!("sha256:{}", "ab".repeat(32))},
        })
    };
    let (ready, young) = (at(-86_400), at(5) - SignedDuration::from_hours(1));
    let catalog = json!({
        "paper": [{"minecraft": "1.21.10", "java": 21, "builds": [build(1, ready), build(2, young)]}],
        "paperReadAt": at(0), "projects": [],
    });
    Arc::new(Snapshot::new(serde_json::from_value(catalog).unwrap(), std::collections::BTreeMap::new()))
}

fn group(servers: &[&str]) -> Group {
    let request = |server: &&str| json!({"server": server, "paper": {"strategy": "auto"}, "delay": "PT1H", "channel": "STABLE", "plugins": []});
    Arc::new(servers.iter().map(|server| serde_json::from_value(request(server)).unwrap()).collect())
}

/// Answers the questions in this order. Returns the build of each answer and the number of decisions.
fn solve_all(snapshot: &Arc<Snapshot>, requests: &[(&Group, &str, i64)]) -> (Vec<u32>, usize) {
    let (sender, receiver) = channel();
    let replies: Vec<_> = requests
        .iter()
        .map(|&(group, server, seconds)| {
            let (reply, result) = oneshot::channel();
            let subject = SolveSubject { snapshot: snapshot.clone(), group: group.clone(), now: at(seconds) };
            sender.send(SolveRequest { subject, server: server.to_owned(), reply }).unwrap();
            result
        })
        .collect();
    drop(sender);
    let metrics = Metrics::default();
    serve_requests(&receiver, &metrics.solves);
    let builds = replies.into_iter().map(|result| result.blocking_recv().unwrap().0.unwrap().lock.build).collect();
    (builds, count(&metrics, "solve"))
}

/// The number of observations of this histogram.
fn count(metrics: &Metrics, phase: &str) -> usize {
    let (exposition, name) = (metrics.renderer()(), format!("nightshift_{phase}_seconds_count "));
    let count = exposition.lines().find_map(|line| line.strip_prefix(&name));
    count.unwrap().parse().unwrap()
}

#[test]
fn group_is_solved_once_for_all_members() {
    let (one, other) = (group(&["games/a", "games/b", "games/c"]), group(&["games/x", "games/y"]));
    let requests = [
        (&one, "games/a", 0),
        (&other, "games/x", 0),
        (&one, "games/b", 1),
        (&other, "games/y", 2),
        (&one, "games/c", 2),
    ];
    assert_eq!(solve_all(&snapshot(), &requests), (vec![1; 5], 2));
}

#[test]
fn solution_is_reused_for_ten_seconds_and_same_requests() {
    let one = group(&["games/a", "games/b"]);
    let late = [(&one, "games/a", 0), (&one, "games/b", 9), (&one, "games/b", 10)];
    assert_eq!(solve_all(&snapshot(), &late), (vec![1, 1, 2], 2), "the delay of build 2 has ended");
    let same_again = group(&["games/a", "games/b"]);
    assert_eq!(solve_all(&snapshot(), &[(&one, "games/a", 0), (&same_again, "games/a", 0)]).1, 2);
}

#[tokio::test]
async fn solution_is_cached_until_its_inputs_change() {
    let metrics = Metrics::default();
    let solver = Solver::start(metrics.solves.clone()).unwrap();
    let build = async |snapshot: &Arc<Snapshot>, group: &Group, seconds| {
        solver.solve(snapshot.clone(), group.clone(), "games/a", at(seconds)).await.unwrap().unwrap().lock.build
    };
    let (one, two) = (group(&["games/a"]), group(&["games/a", "games/b"]));
    assert_eq!(build(&snapshot(), &one, -3_000).await, 1);
    assert_eq!(build(&snapshot(), &group(&["games/a"]), 4).await, 1);
    assert_eq!(count(&metrics, "explain"), 1, "an equal catalog and group reuse the answer");
    assert_eq!(build(&snapshot(), &two, 4).await, 1);
    assert_eq!(build(&snapshot(), &one, 4).await, 1);
    assert_eq!(count(&metrics, "explain"), 2, "another group does not evict the answer");
    assert_eq!(build(&snapshot(), &one, 5).await, 2, "the delay of build 2 has ended");
    let mut catalog = snapshot().catalog.clone();
    catalog.paper[0].builds.truncate(1);
    let other = Arc::new(Snapshot::new(catalog, std::collections::BTreeMap::new()));
    assert_eq!(build(&other, &one, 5).await, 1);
    assert_eq!(count(&metrics, "explain"), 4);
    solver.evict("games/a");
    assert_eq!(build(&other, &one, 5).await, 1);
    assert_eq!(count(&metrics, "explain"), 5);
}
