//! Edge (reads). Tests which pages are read, how often, and which are cached.

use super::*;
use resolver::model::catalog::{BuildChannel, Channel, DependencyKind};

#[tokio::test]
async fn catalog_within_ttl_sends_no_request_and_later_revalidates() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let keys = [key("modrinth/viaversion"), key("hangar/Maintenance")];
    let oldest = "1.21".parse().unwrap();
    let wanted = CatalogQuery {
        projects: &keys,
        images: Some("itzg/minecraft-server"),
        oldest: Some(&oldest),
        ..CatalogQuery::default()
    };

    let first = fetcher.catalog(wanted, none, now()).await;
    assert!(first.problems.is_empty(), "{:?}", first.problems);
    let versions = first.catalog.paper.iter().filter(|v| v.minecraft >= oldest && !v.builds.is_empty()).count();
    let first_requests = replay.server.take_requests();
    let of = |requests: &[Seen], part: &str| requests.iter().filter(|(path, ..)| path.contains(part)).count();
    assert!(versions > 5, "{versions}");
    assert_eq!(of(&first_requests, "/fill/"), 1 + versions);
    assert_eq!(of(&first_requests, "/modrinth/"), 2);
    assert_eq!(of(&first_requests, "/hangar/"), 2);
    assert!(of(&first_requests, "/docker-hub/") <= 3);

    let again = fetcher.catalog(wanted, none, now() + minutes(4)).await;
    assert_eq!(again.catalog, first.catalog);
    assert_eq!(replay.server.take_requests(), []);

    let later = fetcher.catalog(wanted, none, now() + minutes(6)).await;
    let warm = replay.server.take_requests();
    assert_eq!(warm.len(), 1 + 3, "{warm:?}");
    assert!(warm.iter().all(|(_, conditional, status)| *conditional && *status == 304), "{warm:?}");
    assert_eq!(later.catalog.paper, first.catalog.paper);
    assert_eq!(later.catalog.paper_read_at, now() + minutes(6));

    let plugins = fetcher.catalog(wanted, none, now() + minutes(11)).await;
    let warm = replay.server.take_requests();
    assert_eq!((of(&warm, "/fill/"), of(&warm, "/modrinth/"), of(&warm, "/hangar/")), (4, 1, 1), "{warm:?}");
    assert_eq!(project(&plugins, "modrinth/viaversion").read_at, now() + minutes(11));
    assert_eq!(project(&plugins, "modrinth/viaversion").releases, project(&first, "modrinth/viaversion").releases);
}

#[tokio::test]
async fn requested_refresh_reads_each_page_once_a_minute() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let keys = [key("modrinth/viaversion"), key("modrinth/no-such-plugin")];
    let oldest = "99.0".parse().unwrap();
    let wanted = CatalogQuery { projects: &keys, oldest: Some(&oldest), ..CatalogQuery::default() };
    let anew = CatalogQuery { max_age: Some(minutes(1)), ..wanted };
    let seconds = |count| now() + SignedDuration::from_secs(count);
    fetcher.catalog(wanted, none, now()).await.problems.clear();
    // The list of Paper, a name and a list, and a project that does not exist.
    assert_eq!(replay.server.take_requests().len(), 1 + 2 + 1);

    fetcher.catalog(anew, none, seconds(59)).await.problems.clear();
    assert_eq!(replay.server.take_requests(), [], "each page was read less than a minute ago");
    let read = fetcher.catalog(anew, none, seconds(61)).await;
    assert_eq!(replay.server.take_requests().len(), 1 + 2 + 1, "a project may have been created meanwhile");
    assert_eq!(project(&read, "modrinth/viaversion").read_at, seconds(61));
    fetcher.catalog(wanted, none, seconds(62)).await.problems.clear();
    assert_eq!(replay.server.take_requests(), [], "the pages are cached for all");
}

#[tokio::test]
async fn catalog_comes_from_disk_after_restart_and_offline() {
    let replay = Replay::start().await;
    let keys = [key("modrinth/ViaVersion"), key("hangar/maintenance")];
    let wanted = CatalogQuery { projects: &keys, images: Some("itzg/minecraft-server"), ..CatalogQuery::default() };
    let first = replay.fetcher().catalog(wanted, none, now()).await;
    let requests_before = replay.requests();

    let restarted = replay.fetcher().catalog(wanted, none, now() + minutes(4)).await;
    assert_eq!(restarted.catalog, first.catalog);
    assert_eq!(replay.requests(), requests_before);

    let unremembering = Settings { keeps_in_memory: false, ..settings(replay.dir.path(), &replay.server.base) };
    let unremembering = Fetcher::new(unremembering).unwrap();
    for _ in 0..2 {
        assert_eq!(unremembering.catalog(wanted, none, now() + minutes(4)).await.catalog, first.catalog);
    }
    let later = unremembering.catalog(wanted, none, now() + minutes(6)).await;
    assert_eq!(later.catalog.paper_read_at, now() + minutes(6), "pages are revalidated after their TTL");
    let requests_later = replay.requests();
    assert_eq!(requests_later, requests_before + 1 + 3);
    let next = unremembering.catalog(wanted, none, now() + minutes(6)).await;
    assert_eq!((next.catalog, replay.requests()), (later.catalog, requests_later));
    let first = replay.fetcher().catalog(wanted, none, now() + minutes(6)).await;
    let requests_before = requests_later;

    let offline = Fetcher::offline(replay.dir.path());
    let year_later = now() + SignedDuration::from_hours(24 * 365);
    let late = offline.catalog(wanted, none, year_later).await;
    assert_eq!(late.catalog, first.catalog, "an offline catalog keeps its read times");
    assert!(late.problems.is_empty(), "{:?}", late.problems);
    let by_id = [key("modrinth/P1OZGk5p"), key("modrinth/unheard-of")];
    let other = offline.catalog(CatalogQuery { projects: &by_id, ..wanted }, none, year_later).await;
    assert_eq!(other.catalog.projects.len(), 1, "a project that was read by slug is found by id");
    assert!(other.catalog.unread["modrinth/unheard-of"].contains("fetch the catalog"), "{:?}", other.catalog.unread);
    assert_eq!(replay.requests(), requests_before);
}

#[tokio::test]
async fn catalog_sees_new_build_within_five_minutes() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let later = instant("2026-05-23T00:00:00Z");
    let wanted = CatalogQuery::default();
    let first = fetcher.catalog(wanted, none, now()).await.catalog;
    replay.server.take_requests();
    replay.state.set_now(later);
    let second = fetcher.catalog(wanted, none, now() + minutes(6)).await.catalog;
    let newest = |catalog: &Catalog| catalog.paper.iter().map(|v| v.minecraft.clone()).max().unwrap();
    assert!(newest(&second) > newest(&first), "{} {}", newest(&second), newest(&first));
    // Only the versions whose builds differ were requested, including old ones.
    let builds = |catalog: &Catalog| catalog.paper.iter().map(|v| v.builds.len()).sum::<usize>();
    assert!(builds(&second) > builds(&first));
    let requests_sent = replay.server.take_requests().len();
    assert!(requests_sent < second.paper.len() / 2, "{requests_sent} of {}", second.paper.len());
    let fresh = Replay::start().await;
    fresh.state.set_now(later);
    let whole = fresh.fetcher().catalog(wanted, none, now() + minutes(6)).await.catalog;
    let numbers = |catalog: &Catalog| -> Vec<_> {
        catalog
            .paper
            .iter()
            .map(|v| (v.minecraft.clone(), v.builds.iter().map(|b| (b.number, b.channel)).collect::<Vec<_>>()))
            .collect()
    };
    assert_eq!(numbers(&second), numbers(&whole), "an update gives the same as a full read");
}

#[tokio::test]
async fn catalog_lists_paper_oldest_first_with_java_and_hashes() {
    let replay = Replay::start().await;
    let oldest = "1.21.6".parse().unwrap();
    let wanted = CatalogQuery { oldest: Some(&oldest), ..CatalogQuery::default() };
    let paper = replay.fetcher().catalog(wanted, none, now()).await.catalog.paper;
    assert!(paper.windows(2).all(|pair| pair[0].minecraft < pair[1].minecraft));
    for version in &paper {
        assert_eq!(version.builds.is_empty(), version.minecraft < oldest, "{}", version.minecraft);
        assert!(version.builds.windows(2).all(|pair| pair[0].number < pair[1].number));
        for build in &version.builds {
            assert!(build.file.hash.as_ref().is_some_and(|hash| hash.starts_with("sha256:") && hash.len() == 71));
        }
    }
    let of = |id: &str| paper.iter().find(|version| version.minecraft.as_str() == id).unwrap();
    assert_eq!(of("1.21.8").java, Some(21));
    assert!(of("1.21.8").builds.iter().any(|build| build.channel == BuildChannel::Stable));
}

#[tokio::test]
async fn catalog_lists_all_modrinth_releases_newest_first_with_sha512() {
    let replay = Replay::start().await;
    let reading = projects(&replay.fetcher(), &["modrinth/viaversion"], now()).await;
    let via = project(&reading, "modrinth/P1OZGk5p");
    assert_eq!((via.name.as_str(), via.key.project.as_str(), via.releases.len()), ("ViaVersion", "viaversion", 886));
    assert!(via.releases.windows(2).all(|pair| pair[0].published >= pair[1].published));
    let newest = &via.releases[0];
    assert_eq!((newest.version.as_str(), newest.channel), ("5.7.2-SNAPSHOT+906", Channel::Beta));
    assert_eq!(newest.minecraft.first().map(resolver::model::version::Minecraft::as_str), Some("1.8.9"));
    assert_eq!(newest.minecraft.last().map(resolver::model::version::Minecraft::as_str), Some("1.21.11"));
    assert_eq!(newest.loaders, ["fabric", "folia", "paper", "velocity"]);
    let file = newest.file.as_ref().unwrap();
    assert!(file.hash.as_ref().is_some_and(|hash| hash.starts_with("sha512:") && hash.len() == 135));
    assert!(newest.dependencies.iter().all(|need| need.kind == DependencyKind::Optional && need.project_id.is_some()));
}

#[tokio::test]
async fn catalog_fetches_missing_dependency_once_by_project_id() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let keys = [key("modrinth/viabackwards"), key("modrinth/viaversion")];
    let oldest = "99.0".parse().unwrap();
    let asked_for = |keys: &[ProjectKey]| {
        let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
        names.join(" ")
    };
    let rounds = Mutex::new(Vec::new());
    let missing = |catalog: &Catalog| {
        rounds.lock().unwrap().push(catalog.projects.len());
        let mut wanted = vec![key("modrinth/P1OZGk5p"), key("modrinth/discordsrv"), key("modrinth/nobody")];
        wanted.retain(|key| catalog.project(key).is_none());
        wanted
    };
    let reading = fetcher
        .catalog(
            CatalogQuery { projects: &keys[..1], oldest: Some(&oldest), ..CatalogQuery::default() },
            missing,
            now(),
        )
        .await;
    assert_eq!(rounds.into_inner().unwrap(), [1, 3], "a missing project is requested only once");
    let names: Vec<_> = reading.catalog.projects.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(reading.catalog.unread["modrinth/nobody"].contains("`nobody`"), "{:?}", reading.catalog.unread);
    replay.server.take_requests();
    let both = projects(&fetcher, &["modrinth/viabackwards", "modrinth/viaversion", "modrinth/P1OZGk5p"], now()).await;
    assert_eq!(both.catalog.projects.len(), 2, "two names of one project give one project: {}", asked_for(&keys));
    assert_eq!(replay.server.take_requests(), [], "the slug was cached with the id");
}

#[tokio::test]
async fn concurrent_callers_share_one_request() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let calls = (0..20).map(|_| projects(&fetcher, &["modrinth/discordsrv"], now()));
    let readings = futures::future::join_all(calls).await;
    assert!(readings.iter().all(|reading| reading.catalog == readings[0].catalog));
    assert_eq!(replay.server.take_requests().len(), 1 + 2, "Paper's version list, the project and its releases");
}

#[tokio::test]
async fn catalog_reads_image_releases_from_new_pages_only() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let oldest = "99.0".parse().unwrap();
    let wanted =
        CatalogQuery { images: Some("itzg/minecraft-server"), oldest: Some(&oldest), ..CatalogQuery::default() };
    let first = fetcher.catalog(wanted, none, now()).await.catalog.images;
    let pages = |requests: Vec<Seen>| requests.iter().filter(|(path, ..)| path.contains("/docker-hub/")).count();
    assert_eq!(pages(replay.server.take_requests()), 3);
    assert!(first.len() > 10);
    for tag in &first {
        assert_eq!(tag.repository, "docker.io/itzg/minecraft-server");
        assert!(
            tag.digest.starts_with("sha256:") && tag.tag.contains("-java") && !tag.tag.contains("alpine"),
            "{tag:?}"
        );
    }
    assert!(first.windows(2).all(|pair| pair[0].pushed <= pair[1].pushed));
    let same = fetcher.catalog(wanted, none, now() + minutes(61)).await.catalog.images;
    assert_eq!((pages(replay.server.take_requests()), same.len()), (1, first.len()));
    replay.state.set_now(instant("2026-08-15T00:00:00Z"));
    let more = fetcher.catalog(wanted, none, now() + minutes(122)).await.catalog.images;
    assert!(more.len() > first.len() && first.iter().all(|tag| more.contains(tag)), "older tags are kept");
}

#[tokio::test]
async fn catalog_marks_image_of_other_registry_unread_with_advice() {
    let replay = Replay::start().await;
    let oldest = "99.0".parse().unwrap();
    let wanted = CatalogQuery { images: Some("ghcr.io/me/server"), oldest: Some(&oldest), ..CatalogQuery::default() };
    let reading = replay.fetcher().catalog(wanted, none, now()).await;
    assert!(reading.catalog.unread["ghcr.io/me/server"].contains("digest"), "{:?}", reading.catalog.unread);
}

#[test]
fn default_endpoints_are_public_addresses() {
    let upstreams = Upstreams::default();
    assert_eq!(
        upstreams.url(super::super::Upstream::Fill, &["projects", "a/b"], &[]).as_str(),
        "https://fill.papermc.io/v3/projects/a%2Fb"
    );
    assert_eq!(upstreams.hangar.as_str(), "https://hangar.papermc.io/api/v1");
    assert_eq!(upstreams.modrinth.as_str(), "https://api.modrinth.com/v2");
    assert_eq!(upstreams.docker_hub.as_str(), "https://hub.docker.com/v2");
}
