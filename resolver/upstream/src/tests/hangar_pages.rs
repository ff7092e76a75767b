//! Edge (reads). Tests Hangar's pages of 25, and updates that read only the first page.

use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::*;
use resolver::model::catalog::{Channel, DependencyKind, Release};

/// The requested offsets.
fn offsets(requests: &[Seen]) -> Vec<usize> {
    let of = |path: &str| path.split("offset=").nth(1).map(|offset| offset.parse().unwrap());
    requests.iter().filter_map(|(path, ..)| of(path)).collect()
}

const BIG: &str = "hangar/Big";

/// A fake Hangar with one project, whose versions (newest first) can be changed. Every third is for Velocity only, and
/// of the others every fifth is for Waterfall only.
struct Hangar {
    server: Server,
    versions: Arc<Mutex<Vec<u64>>>,
    fetcher: Fetcher,
    _dir: TempDir,
}

impl Hangar {
    async fn with(count: u64) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let versions: Arc<Mutex<Vec<u64>>> = Arc::new(Mutex::new((1..=count).rev().collect()));
        let shown = Arc::clone(&versions);
        let router = Router::new().fallback(move |uri: Uri| {
            let answer = page(&uri, &shown.lock().unwrap());
            async move { answer }
        });
        let server = Server::start(listener, router);
        let dir = tempfile::tempdir().unwrap();
        let fetcher = Fetcher::new(settings(dir.path(), &server.base)).unwrap();
        Self { server, versions, fetcher, _dir: dir }
    }

    /// The ids of the releases, and the requested offsets.
    async fn read(&self, now: Timestamp) -> (Vec<u64>, Vec<usize>) {
        let reading = projects(&self.fetcher, &[BIG], now).await;
        let id =
            |release: &resolver::model::catalog::Release| release.id.trim_end_matches("@velocity").parse().unwrap();
        let releases = project(&reading, BIG).releases.iter().map(id).collect();
        let mut offsets = offsets(&self.server.take_requests());
        offsets.sort_unstable();
        (releases, offsets)
    }

    fn publish(&self, count: u64) {
        let mut versions = self.versions.lock().unwrap();
        let newest = versions[0];
        for id in newest + 1..=newest + count {
            versions.insert(0, id);
        }
    }

    fn expected_ids(&self) -> Vec<u64> {
        self.versions.lock().unwrap().iter().copied().filter(|id| platform(*id) != "WATERFALL").collect()
    }
}

fn page(uri: &Uri, versions: &[u64]) -> Response {
    match uri.path() {
        "/hangar/api/v1/projects/Big" => {
            r#"{"id":7,"name":"Big","namespace":{"owner":"o","slug":"Big"}}"#.into_response()
        }
        "/hangar/api/v1/projects/7/versions" => {
            let offset: usize = uri.query().unwrap().split("offset=").nth(1).unwrap().parse().unwrap();
            let rows: Vec<String> = versions.iter().skip(offset).take(25).copied().map(row).collect();
            let (count, rows) = (versions.len(), rows.join(","));
            format!(r#"{{"pagination":{{"limit":25,"offset":{offset},"count":{count}}},"result":[{rows}]}}"#)
                .into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn platform(id: u64) -> &'static str {
    match id {
        id if id.is_multiple_of(3) => "VELOCITY",
        id if id.is_multiple_of(5) => "WATERFALL",
        _ => "PAPER",
    }
}

fn row(id: u64) -> String {
    let platform = platform(id);
    let at = instant("2025-01-01T00:00:00Z") + SignedDuration::from_mins(i64::try_from(id).unwrap());
    format!(
        r#"{{"id":{id},"name":"{id}","createdAt":"{at}","channel":{{"name":"Nightly","flags":["UNSTABLE"]}},
            "downloads":{{"{platform}":{{"fileInfo":null,"externalUrl":"https://elsewhere/x.jar","downloadUrl":null}}}},
            "pluginDependencies":{{"PAPER":[{{"name":"Vault","projectId":null,"required":true}},
                                            {{"name":"Via","projectId":31,"required":false}}]}},
            "platformDependencies":{{"PAPER":["1.8"]}},"platformDependenciesFormatted":{{"PAPER":["1.8"]}}}}"#
    )
}

#[tokio::test]
async fn hangar_reads_all_pages_once_a_day() {
    let hangar = Hangar::with(110).await;
    let all = hangar.expected_ids();
    let every = [0, 0, 25, 50, 75, 100];
    assert_eq!(hangar.read(now()).await, (all.clone(), every.to_vec()), "the first page is read again at the end");
    assert_eq!(hangar.read(now() + minutes(11)).await, (all.clone(), vec![0]));
    assert_eq!(hangar.read(now() + SignedDuration::from_hours(25)).await, (all, every.to_vec()));
}

#[tokio::test]
async fn hangar_few_new_versions_cost_one_page_many_all() {
    let hangar = Hangar::with(60).await;
    hangar.read(now()).await;
    hangar.publish(24);
    assert_eq!(hangar.read(now() + minutes(11)).await, (hangar.expected_ids(), vec![0]));
    hangar.publish(25);
    assert_eq!(hangar.read(now() + minutes(22)).await, (hangar.expected_ids(), vec![0, 0, 25, 50, 75, 100]));
    hangar.versions.lock().unwrap().remove(80);
    assert_eq!(hangar.read(now() + minutes(33)).await, (hangar.expected_ids(), vec![0, 0, 25, 50, 75, 100]));
    hangar.versions.lock().unwrap().remove(3);
    hangar.publish(1);
    assert_eq!(
        hangar.read(now() + minutes(44)).await.0,
        hangar.expected_ids(),
        "equal counts do not hide a changed list"
    );
}

#[tokio::test]
async fn hangar_project_of_one_page_costs_one_page() {
    let hangar = Hangar::with(25).await;
    assert_eq!(hangar.read(now()).await, (hangar.expected_ids(), vec![0]));
}

#[tokio::test]
async fn hangar_external_download_has_no_file() {
    let hangar = Hangar::with(1).await;
    let reading = projects(&hangar.fetcher, &[BIG], now()).await;
    let release = &project(&reading, BIG).releases[0];
    assert_eq!((release.channel, &release.file), (Channel::Beta, &None));
    let needs: Vec<_> =
        release.dependencies.iter().map(|n| (n.project_id.as_deref(), n.name.as_deref(), n.kind)).collect();
    assert_eq!(
        needs,
        [(None, Some("Vault"), DependencyKind::Required), (Some("31"), Some("Via"), DependencyKind::Optional)]
    );
}

#[tokio::test]
async fn hangar_version_has_file_and_dependencies_per_software() {
    let replay = Replay::start().await;
    let reading = projects(&replay.fetcher(), &["hangar/Maintenance"], now()).await;
    let maintenance = project(&reading, "hangar/maintenance");
    let (velocity, paper): (Vec<&Release>, Vec<&Release>) =
        maintenance.releases.iter().partition(|release| release.id.ends_with("@velocity"));
    assert_eq!((maintenance.name.as_str(), paper.len(), velocity.len()), ("Maintenance", 4, 4));
    let newest = paper[0];
    assert_eq!((newest.version.as_str(), newest.channel), ("4.2.1", Channel::Release));
    let listed: Vec<_> = newest.minecraft.iter().map(resolver::model::version::Minecraft::as_str).collect();
    assert_eq!((listed[0], *listed.last().unwrap()), ("1.8", "1.21"), "sorted by version number, not as text");
    assert_eq!(newest.loaders, ["paper", "waterfall"], "the Velocity download is a separate release");
    let proxy: Vec<_> = velocity[0].minecraft.iter().map(resolver::model::version::Minecraft::as_str).collect();
    assert_eq!(proxy, ["3.0", "3.1", "3.2", "3.3"], "the versions are those of Velocity");
    assert_eq!((velocity[0].version.as_str(), &velocity[0].loaders[..]), ("4.2.1", &["velocity".to_owned()][..]));
    assert!(velocity[0].file.is_some() && velocity[0].dependencies.iter().all(|need| need.name.is_some()));
    let file = newest.file.as_ref().unwrap();
    assert!(file.hash.as_ref().is_some_and(|hash| hash.starts_with("sha256:")) && file.name.contains("Maintenance"));
    let need = newest.dependencies.iter().find(|need| need.name.as_deref() == Some("ProtocolLib")).unwrap();
    assert_eq!(need.kind, DependencyKind::Optional);
}
