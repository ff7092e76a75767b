//! Edge (reads). Tests a failing upstream: cached pages are used and the failure is reported.

use super::*;
use crate::{Blame, FetchError};

const PLUGIN: &str = "modrinth/discordsrv";

#[tokio::test]
async fn failing_upstream_is_retried_then_cache_is_used() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let first = projects(&fetcher, &[PLUGIN], now()).await;
    let expected = first.catalog.projects.clone();
    replay.server.take_requests();
    for (at, failure, category, tries) in
        [(20, Failure::Status(503), "status", 2), (21, Failure::Garbage, "unreadable", 1)]
    {
        replay.fail(Played::Modrinth, failure);
        // A failure is cached only for a short time.
        let at = now() + minutes(at);
        let stale = projects(&fetcher, &[PLUGIN], at).await;
        assert_eq!(stale.catalog.projects, expected, "the cached projects keep their `read_at`");
        assert!(stale.catalog.unread.is_empty());
        let [problem] = &stale.problems[..] else { panic!("{:?}", stale.problems) };
        assert_eq!(
            (problem.subject.as_str(), problem.error.category(), problem.cached_since),
            (PLUGIN, category, Some(now()))
        );
        assert_eq!(problem.error.blame(), Blame::Upstream);
        let text = problem.to_string();
        assert!(
            text.contains("Modrinth")
                && text.contains("/project/")
                && text.contains("data that was read at 2026-01-22"),
            "{text}"
        );
        let request_count =
            replay.server.take_requests().iter().filter(|(path, ..)| path.contains("/modrinth/")).count();
        assert_eq!(request_count, tries);
        let again = projects(&fetcher, &[PLUGIN], at + SignedDuration::from_secs(10)).await;
        assert_eq!(again.problems.len(), 1);
        assert_eq!(replay.server.take_requests(), [], "a failed request is not repeated at once");
    }
    replay.state.fail(Played::Modrinth, None);
    let well = projects(&fetcher, &[PLUGIN], now() + minutes(30)).await;
    assert!(well.problems.is_empty(), "{:?}", well.problems);
    assert_eq!(well.catalog.projects[0].read_at, now() + minutes(30));
}

#[tokio::test]
async fn restart_during_outage_uses_disk_cache() {
    let replay = Replay::start().await;
    let first = projects(&replay.fetcher(), &[PLUGIN], now()).await;
    for upstream in Played::ALL {
        replay.fail(upstream, Failure::Status(500));
    }
    let later = projects(&replay.fetcher(), &[PLUGIN], now() + SignedDuration::from_hours(72)).await;
    assert_eq!(later.catalog.projects, first.catalog.projects);
    assert_eq!(later.catalog.paper, first.catalog.paper);
    assert_eq!(later.catalog.paper_read_at, now(), "the catalog keeps the time of the last read");
    let subjects: Vec<_> = later.problems.iter().map(|problem| problem.subject.as_str()).collect();
    assert_eq!(subjects, ["fill/paper", PLUGIN]);
}

#[tokio::test]
async fn project_never_read_is_unread_with_reason() {
    let replay = Replay::start().await;
    replay.fail(Played::Modrinth, Failure::Status(503));
    let reading = projects(&replay.fetcher(), &[PLUGIN], now()).await;
    assert!(reading.catalog.projects.is_empty());
    let because = reading.catalog.unread_reason(&key(PLUGIN)).unwrap();
    assert!(because.contains("503") && because.contains("Modrinth"), "{because}");
    assert_eq!(reading.problems[0].cached_since, None);
}

#[tokio::test]
async fn missing_project_is_user_error_and_requested_once() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let names = ["modrinth/no-such-plugin", "hangar/NoSuchPlugin", "modrinth/../../etc"];
    let reading = projects(&fetcher, &names, now()).await;
    let blamed: Vec<_> =
        reading.problems.iter().map(|p| (p.subject.as_str(), p.error.category(), p.error.blame())).collect();
    assert_eq!(
        blamed,
        [
            ("hangar/NoSuchPlugin", "not-found", Blame::User),
            ("modrinth/../../etc", "not-a-name", Blame::User),
            ("modrinth/no-such-plugin", "not-found", Blame::User)
        ]
    );
    assert!(matches!(&*reading.problems[2].error, FetchError::NotFound { project, .. } if project == "no-such-plugin"));
    assert_eq!(replay.server.take_requests().len(), 1 + 2);
    projects(&fetcher, &names, now() + minutes(4)).await.problems.clear();
    assert_eq!(replay.server.take_requests(), []);
    projects(&fetcher, &names, now() + minutes(11)).await.problems.clear();
    assert_eq!(replay.server.take_requests().len(), 1 + 2);
}

#[tokio::test]
async fn project_that_was_read_before_is_never_unknown() {
    let replay = Replay::start().await;
    let first = projects(&replay.fetcher(), &[PLUGIN], now()).await;
    replay.server.take_requests();
    replay.fail(Played::Modrinth, Failure::Status(404));
    // The name is read again after a day.
    for hours in [1, 30] {
        let later = projects(&replay.fetcher(), &[PLUGIN], now() + SignedDuration::from_hours(hours)).await;
        assert_eq!(later.catalog.projects, first.catalog.projects, "the cached page is used");
        let [problem] = &later.problems[..] else { panic!("{:?}", later.problems) };
        assert_eq!((problem.error.category(), problem.error.blame()), ("status", Blame::Upstream), "{problem}");
        assert_eq!(problem.cached_since, Some(now()));
    }
    let paths = replay.server.take_requests().into_iter().filter(|(path, ..)| path.contains("/modrinth/"));
    assert_eq!(paths.count(), 2 + 2 + 2, "each 404 is retried: a list, then a name and a list");
}

#[tokio::test]
async fn upstream_retry_after_is_respected() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    replay.fail(Played::Modrinth, Failure::Status(429));
    let reading = projects(&fetcher, &[PLUGIN], now()).await;
    // The first answer says it too.
    assert_eq!(reading.problems[0].error.category(), "resting");
    assert_eq!(
        reading.problems[0].error.to_string(),
        "Modrinth allows no requests until 2026-01-22T00:01:00Z",
        "the pause is shown as a time"
    );
    assert_eq!(replay.server.take_requests().len(), 1 + 1, "no retry before `Retry-After` has passed");
    replay.state.fail(Played::Modrinth, None);
    let resting = projects(&fetcher, &[PLUGIN], now() + SignedDuration::from_secs(45)).await;
    assert_eq!(resting.problems[0].error.category(), "resting");
    assert!(resting.problems[0].error.to_string().contains("2026-01-22T00:01:00Z"), "{}", resting.problems[0]);
    let (keys, oldest) = ([key(PLUGIN)], "99.0".parse().unwrap());
    let anew = CatalogQuery {
        projects: &keys,
        oldest: Some(&oldest),
        max_age: Some(SignedDuration::from_secs(10)),
        ..CatalogQuery::default()
    };
    fetcher.catalog(anew, none, now() + SignedDuration::from_secs(50)).await.problems.clear();
    let is_modrinth = |(path, ..): &Seen| path.contains("/modrinth/");
    assert!(!replay.server.take_requests().iter().any(is_modrinth), "a requested refresh waits too");
    let rested = projects(&fetcher, &[PLUGIN], now() + SignedDuration::from_secs(80)).await;
    assert!(rested.problems.is_empty(), "{:?}", rested.problems);
}

#[tokio::test]
async fn docker_hub_retry_after_is_respected() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    replay.fail(Played::DockerHub, Failure::Status(429));
    let oldest = "99.0".parse().unwrap();
    let wanted =
        CatalogQuery { images: Some("itzg/minecraft-server"), oldest: Some(&oldest), ..CatalogQuery::default() };
    fetcher.catalog(wanted, none, now()).await.problems.clear();
    let again = fetcher.catalog(wanted, none, now() + SignedDuration::from_secs(40)).await;
    assert_eq!(again.problems[0].error.category(), "resting", "{}", again.problems[0]);
}

#[tokio::test]
async fn damaged_disk_cache_is_fetched_again() {
    let replay = Replay::start().await;
    let first = projects(&replay.fetcher(), &[PLUGIN], now()).await;
    let mut damaged = 0;
    let mut folders = vec![replay.dir.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                std::fs::write(path, "{").unwrap();
                damaged += 1;
            }
        }
    }
    assert!(damaged >= 3, "{damaged}");
    let second = projects(&replay.fetcher(), &[PLUGIN], now()).await;
    assert_eq!(second.catalog, first.catalog);
    assert!(second.problems.is_empty());
}

#[tokio::test]
async fn disk_cache_of_other_endpoint_is_not_used() {
    let (one, other) = (Replay::start().await, Replay::start().await);
    projects(&one.fetcher(), &[PLUGIN], now()).await.problems.clear();
    let moved = Fetcher::new(settings(one.dir.path(), &other.server.base)).unwrap();
    projects(&moved, &[PLUGIN], now()).await.problems.clear();
    assert_eq!(other.server.take_requests().len(), 1 + 2);
}

#[tokio::test]
async fn endpoint_without_listener_is_unreachable() {
    let dir = tempfile::tempdir().unwrap();
    let fetcher = Fetcher::new(settings(dir.path(), "http://127.0.0.1:1")).unwrap();
    let reading = projects(&fetcher, &[PLUGIN], now()).await;
    let errors: Vec<_> = reading.problems.iter().map(|problem| problem.error.category()).collect();
    assert_eq!(errors, ["unreachable", "unreachable"]);
    assert!(reading.catalog.unread.contains_key("fill/paper"));
}
