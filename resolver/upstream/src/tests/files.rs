//! Edge (writes). Tests files that are named by URL and hash.

use axum::routing::get;
use fixtures::jar::{self, Entry, PluginYml};
use sha2::{Digest, Sha256};

use super::*;
use crate::ReadError;
use resolver::model::api_version::ApiVersion;
use resolver::model::catalog::{Declared, FALLBACK_VERSION};

/// A server with JARs, trusted because it has the origin of an upstream.
async fn serve(files: &[(&str, Vec<u8>)]) -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut router = Router::new();
    for (path, bytes) in files {
        let bytes = bytes.clone();
        router = router.route(path, get(move || std::future::ready(bytes)));
    }
    Server::start(listener, router)
}

fn rules() -> Vec<u8> {
    let mut yml = PluginYml::new("HouseRules", "2.1");
    yml.api_version = Some("1.21".to_owned());
    yml.depend = vec!["Vault".to_owned()];
    yml.soft_depend = vec!["LuckPerms".to_owned()];
    yml.provides = vec!["Rules".to_owned()];
    jar::plugin(&yml)
}

fn hash_of(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

async fn read(fetcher: &Fetcher, key: &ProjectKey) -> CatalogBuild {
    let keys = [key.clone()];
    fetcher.catalog(CatalogQuery { projects: &keys, ..CatalogQuery::default() }, none, now()).await
}

/// The error of the file. The catalog has more errors, because this server has no Paper.
fn problem<'a>(reading: &'a CatalogBuild, key: &ProjectKey) -> Option<&'a ReadError> {
    reading.problems.iter().find(|problem| problem.subject == key.to_string())
}

fn fetcher(dir: &TempDir, server: &Server) -> Fetcher {
    Fetcher::new(settings(dir.path(), &server.base)).unwrap()
}

#[tokio::test]
async fn jar_url_is_downloaded_once_and_cached_forever() {
    let server = serve(&[("/rules.jar", rules())]).await;
    let dir = tempfile::tempdir().unwrap();
    let (url, sha256) = (format!("{}/rules.jar", server.base), hash_of(&rules()));
    let key = ProjectKey::from_file(&url, &sha256.to_uppercase());
    let reading = read(&fetcher(&dir, &server), &key).await;
    let project = reading.catalog.project(&key).unwrap_or_else(|| panic!("{:?}", reading.problems));
    assert_eq!((project.name.as_str(), &project.key, project.releases.len()), ("HouseRules", &key, 1));
    let release = &project.releases[0];
    assert_eq!((release.version.as_str(), release.published), ("2.1", None));
    assert_eq!(release.api_version.as_ref().map(ToString::to_string).as_deref(), Some("1.21"));
    let declared = release.declared.as_ref().unwrap();
    assert_eq!((release.minecraft.len(), &declared.provides), (0, &vec!["Rules".to_owned()]));
    assert_eq!(declared.depend, ["Vault"], "soft dependencies are left out");
    let file = release.file.as_ref().unwrap();
    assert_eq!((file.name.as_str(), &file.url, file.size), ("HouseRules-2.1.jar", &url, Some(rules().len() as u64)));
    assert_eq!(file.hash.as_deref(), Some(format!("sha256:{sha256}").as_str()));
    let stored = dir.path().join("files/sha256").join(&sha256);
    assert_eq!(std::fs::read(&stored).unwrap(), rules(), "the file is stored as in the operator's store");

    let count_downloads = |requests: &[Seen]| requests.iter().filter(|(path, _, _)| path == "/rules.jar").count();
    assert_eq!(count_downloads(&server.take_requests()), 1);
    let again = read(&fetcher(&dir, &server), &key).await;
    assert_eq!(again.catalog.projects, reading.catalog.projects);
    std::fs::remove_file(&stored).unwrap();
    let offline = read(&Fetcher::offline(dir.path()), &key).await;
    assert_eq!(offline.catalog.projects, reading.catalog.projects, "cached metadata does not need the file");
    assert_eq!(count_downloads(&server.take_requests()), 0);
}

#[tokio::test]
async fn jar_in_disk_cache_is_not_downloaded() {
    let server = serve(&[]).await;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("files/sha256");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(hash_of(&rules())), rules()).unwrap();
    let key = ProjectKey::from_file("https://example.invalid/rules.jar", &hash_of(&rules()));
    for fetcher in [fetcher(&dir, &server), Fetcher::offline(dir.path())] {
        let reading = read(&fetcher, &key).await;
        assert_eq!(reading.catalog.project(&key).unwrap().name, "HouseRules");
    }
}

#[tokio::test]
async fn jar_with_wrong_hash_fails_finally_with_both_hashes() {
    let server = serve(&[("/rules.jar", rules())]).await;
    let dir = tempfile::tempdir().unwrap();
    let (url, expected) = (format!("{}/rules.jar", server.base), "ab".repeat(32));
    let key = ProjectKey::from_file(&url, &expected);
    let fetcher = fetcher(&dir, &server);
    for minute in [0, 5, 500] {
        let keys = [key.clone()];
        let wanted = CatalogQuery { projects: &keys, ..CatalogQuery::default() };
        let reading = fetcher.catalog(wanted, none, now() + minutes(minute)).await;
        let problem = problem(&reading, &key).unwrap();
        assert_eq!(problem.error.category(), "wrong-hash");
        let text = problem.to_string();
        for part in [&url, &format!("sha256:{expected}"), &format!("sha256:{}", hash_of(&rules()))] {
            assert!(text.contains(part.as_str()), "{text}");
        }
        assert!(reading.catalog.unread_reason(&key).is_some() && reading.catalog.project(&key).is_none());
    }
    assert_eq!(
        server.take_requests().iter().filter(|(path, _, _)| path == "/rules.jar").count(),
        1,
        "a URL with wrong content is requested once"
    );
    assert!(!dir.path().join("files/sha256").exists());
}

#[tokio::test]
async fn jar_errors_distinguish_non_plugin_missing_and_private_address() {
    let html = b"<html>please log in</html>".to_vec();
    let server = serve(&[("/login", html.clone())]).await;
    let dir = tempfile::tempdir().unwrap();
    let fetcher = fetcher(&dir, &server);
    let any = "ab".repeat(32);
    let cases = [
        (format!("{}/login", server.base), hash_of(&html), "not-a-plugin"),
        (format!("{}/gone.jar", server.base), any.clone(), "status"),
        ("https://169.254.169.254/latest/meta-data".to_owned(), any.clone(), "private-address"),
        ("https://localhost/x.jar".to_owned(), any.clone(), "private-address"),
        ("http://example.org/x.jar".to_owned(), any.clone(), "not-https"),
        ("nonsense".to_owned(), any.clone(), "not-a-file"),
    ];
    for (url, sha256, category) in cases {
        let key = ProjectKey::from_file(&url, &sha256);
        let reading = read(&fetcher, &key).await;
        let problem = problem(&reading, &key).unwrap();
        assert_eq!(problem.error.category(), category, "{problem}");
        assert!(problem.to_string().contains(&url), "{problem}");
    }
    let key = ProjectKey::from_file("https://example.org/x.jar", &any);
    let reading = read(&Fetcher::offline(dir.path()), &key).await;
    let message = problem(&reading, &key).unwrap().to_string();
    assert_eq!(
        message,
        "there is no stored data of `https://example.org/x.jar`: fetch the catalog once with network access"
    );
}

#[tokio::test]
async fn jar_without_version_gets_substitute_version() {
    let jar = jar::archive(&[Entry::new("plugin.yml", "name: Bare\nmain: a.B\nversion: ''\n")]);
    let server = serve(&[("/download", jar.clone())]).await;
    let dir = tempfile::tempdir().unwrap();
    let key = ProjectKey::from_file(&format!("{}/download?id=7", server.base), &hash_of(&jar));
    let reading = read(&fetcher(&dir, &server), &key).await;
    let release = &reading.catalog.project(&key).unwrap().releases[0];
    assert_eq!(release.version, FALLBACK_VERSION);
    assert_eq!(release.file.as_ref().unwrap().name, "Bare-0.0.0.jar");
}

#[tokio::test]
async fn api_version_keeps_which_descriptor_states_it() {
    let paper = "name: Rules\nversion: '2'\nmain: a.B\napi-version: '1.21'\n";
    // The text of a `plugin.yml` cannot claim to be from the other file.
    let bukkit = "name: Rules\nversion: '2'\nmain: a.B\napi-version: 'paper-plugin.yml 1.21'\n";
    for (entry, yml, stated) in [
        ("paper-plugin.yml", paper, ApiVersion::new("1.21", true)),
        ("plugin.yml", bukkit, ApiVersion::new("paper-plugin.yml 1.21", false)),
    ] {
        let jar = jar::archive(&[Entry::new(entry, yml)]);
        let server = serve(&[("/rules.jar", jar.clone())]).await;
        let dir = tempfile::tempdir().unwrap();
        let key = ProjectKey::from_file(&format!("{}/rules.jar", server.base), &hash_of(&jar));
        // The second time, the facts are in the cache.
        for fetcher in [fetcher(&dir, &server), Fetcher::offline(dir.path())] {
            let reading = read(&fetcher, &key).await;
            let release = &reading.catalog.project(&key).unwrap().releases[0];
            assert_eq!(release.api_version.as_ref(), Some(&stated), "{entry}");
        }
    }
}

#[tokio::test]
async fn cached_jar_adds_facts_missing_from_page() {
    let dir = tempfile::tempdir().unwrap();
    let mut yml = PluginYml::new("Claims", "3");
    yml.api_version = Some("1.21".to_owned());
    yml.provides = vec!["Regions".to_owned()];
    yml.depend = vec!["Vault".to_owned()];
    let bytes = jar::plugin_with(&yml, 25, &[]);
    let sha256 = hash_of(&bytes);
    let release = |id: &str, hash: &str| {
        serde_json::json!({
            "id": id, "version": id, "published": "2025-01-01T00:00:00Z", "channel": "release", "minecraft": [],
            "loaders": ["paper"], "dependencies": [],
            "file": {"name": "x.jar", "url": "https://files.example/x.jar", "hash": hash},
        })
    };
    let mut with_module = release("1", &format!("sha256:{}", "0".repeat(64)));
    with_module["further"] = serde_json::json!([{
        "file": {"name": "y.jar", "url": "https://files.example/y.jar", "hash": format!("sha256:{sha256}")},
    }]);
    let mut catalog: Catalog = serde_json::from_value(serde_json::json!({
        "paper": [], "paperReadAt": now(),
        "projects": [{
            "key": {"source": "modrinth", "project": "claims"}, "id": "c", "name": "Claims", "readAt": now(),
            "releases": [release("3", &format!("sha256:{sha256}")), release("2", &format!("sha256:{}", "0".repeat(64))), with_module],
        }],
    }))
    .unwrap();
    let store = crate::disk_cache::DiskStore::open(&dir.path().join("store")).unwrap();
    let files = crate::url::Files::offline(&dir.path().join("files"), &store);
    let facts = |catalog: &Catalog| {
        let releases = &catalog.projects[0].releases;
        let api = releases.iter().map(|release| release.api_version.as_ref().map(ToString::to_string));
        releases.iter().map(|release| release.java).zip(api).collect::<Vec<_>>()
    };
    files.add_metadata(&mut catalog, now()).await;
    assert_eq!(facts(&catalog), [(None, None), (None, None), (None, None)], "no JAR is stored yet");
    let path = dir.path().join("files/sha256").join(&sha256);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, b"half of it").unwrap();
    files.add_metadata(&mut catalog, now()).await;
    assert_eq!(facts(&catalog), [(None, None), (None, None), (None, None)], "a file with another hash is ignored");
    std::fs::write(&path, &bytes).unwrap();
    files.add_metadata(&mut catalog, now() + minutes(1)).await;
    assert_eq!(facts(&catalog), [(Some(25), Some("1.21".to_owned())), (None, None), (None, None)]);
    let module = &catalog.projects[0].releases[2].further[0];
    assert_eq!(
        (module.java, module.api_version.as_ref().map(ToString::to_string)),
        (Some(25), Some("1.21".to_owned()))
    );
    let (provides, depend) = (vec!["Regions".to_owned()], vec!["Vault".to_owned()]);
    let main = Some(PluginYml::new("Claims", "").main);
    let declared = Some(Declared { name: "Claims".to_owned(), main, provides, depend });
    assert_eq!((&catalog.projects[0].releases[0].declared, &module.declared), (&declared, &declared));
    assert_eq!(catalog.projects[0].releases[1].declared, None);
}

#[tokio::test]
async fn cached_jar_without_plugin_is_refused() {
    for (bytes, rule) in [
        (
            jar::archive(&[Entry::new("README", "")]),
            Some("it is not a plugin for Paper: it has neither paper-plugin.yml nor plugin.yml"),
        ),
        (
            jar::archive(&[Entry::new("velocity-plugin.json", "{}")]),
            Some("it is a plugin for Velocity, not for Paper: it has velocity-plugin.json and no plugin.yml"),
        ),
        (b"<!DOCTYPE html>".to_vec(), None),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let sha256 = hash_of(&bytes);
        let path = dir.path().join("files/sha256").join(&sha256);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let mut catalog: Catalog = serde_json::from_value(serde_json::json!({
            "paper": [], "paperReadAt": now(),
            "projects": [{
                "key": {"source": "modrinth", "project": "claims"}, "id": "c", "name": "Claims", "readAt": now(),
                "releases": [{
                    "id": "1", "version": "1", "published": "2025-01-01T00:00:00Z", "channel": "release",
                    "minecraft": [], "loaders": ["paper"],
                    "file": {
                        "name": "x.jar", "url": "https://files.example/x.jar", "hash": format!("sha256:{sha256}"),
                    },
                }],
            }],
        }))
        .unwrap();
        let store = crate::disk_cache::DiskStore::open(&dir.path().join("store")).unwrap();
        let files = crate::url::Files::offline(&dir.path().join("files"), &store);
        files.add_metadata(&mut catalog, now()).await;
        assert_eq!(catalog.projects[0].releases[0].refused.as_deref(), rule);
    }
}
