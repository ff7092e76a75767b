//! Edge (writes). Tests a Purpur server: the chosen build is downloaded once, and its hash is used everywhere else.

use std::fs;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use md5::{Digest as _, Md5};
use sha2::Sha256;

use super::{REPLAY, Workspace, output_text, plugin, server};

const BYTES: &[u8] = b"the bytes of Purpur";

/// A fake PurpurMC with two builds of two versions, which records the paths of downloads.
struct Purpur {
    base: String,
    downloads: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Pages {
    md5: String,
    downloads: Arc<Mutex<Vec<String>>>,
}

async fn respond(State(pages): State<Pages>, uri: Uri) -> Response {
    let builds = |numbers: [u32; 2]| {
        let row = |number: u32| {
            format!(
                r#"{{"build":"{number}","result":"SUCCESS","timestamp":1765000000000,"metadata":{{}},"md5":"{}"}}"#,
                pages.md5
            )
        };
        let [first, second] = numbers.map(row);
        format!(r#"{{"project":"purpur","builds":{{"latest":{second},"all":[{first},{second}]}}}}"#).into_response()
    };
    match uri.path() {
        "/v2/purpur" => r#"{"project":"purpur","versions":["1.21.10","1.21.11"]}"#.into_response(),
        "/v2/purpur/1.21.10" => builds([2534, 2535]),
        "/v2/purpur/1.21.11" => builds([2567, 2568]),
        path if path.ends_with("/download") => {
            pages.downloads.lock().unwrap().push(path.to_owned());
            BYTES.into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A fake PurpurMC that publishes this md5 for every build.
fn fake_purpur(md5: String) -> Purpur {
    let downloads = Arc::default();
    let pages = Pages { md5, downloads: Arc::clone(&downloads) };
    let listener = REPLAY.runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let base = format!("http://{}/v2", listener.local_addr().unwrap());
    let router = Router::new().fallback(respond).with_state(pages);
    REPLAY.runtime.spawn(async move { axum::serve(listener, router).await });
    Purpur { base, downloads }
}

fn correct_md5() -> String {
    hex::encode(Md5::digest(BYTES))
}

/// `lobby` with Purpur, whose one plugin lists up to 1.21.10.
fn workspace() -> Workspace {
    let manifests = server("  software: Purpur\n  updateStrategy: auto\n") + &plugin("griefprevention", "");
    Workspace::new(&[("lobby.yaml", &manifests)])
}

impl Purpur {
    /// Runs a command with a cache of its own.
    fn run(&self, workspace: &Workspace, arguments: &[&str]) -> String {
        let mut command = workspace.command(arguments);
        command.env("XDG_CACHE_HOME", workspace.path().join("cache")).env("NIGHTSHIFT_PURPUR_URL", &self.base);
        output_text(&command.output().unwrap())
    }

    fn downloads(&self) -> Vec<String> {
        std::mem::take(&mut self.downloads.lock().unwrap())
    }
}

#[test]
fn purpur_downloads_only_chosen_build_once() {
    let (purpur, workspace) = (fake_purpur(correct_md5()), workspace());
    let explained = purpur.run(&workspace, &["explain", "-f", "lobby.yaml"]);
    assert!(explained.starts_with("exit 0\n-- stdout\nlobby can run Purpur 1.21.10 (build 2535)"), "{explained}");
    // That build is not verified, and the plugin blocks it anyway.
    assert!(explained.contains("Purpur 1.21.11 has been out since"), "{explained}");
    assert_eq!(purpur.downloads(), ["/v2/purpur/1.21.10/2535/download"]);
    let lock = purpur.run(&workspace, &["lock", "-f", "lobby.yaml"]);
    let sha256 = format!("\"hash\": \"sha256:{}\"", hex::encode(Sha256::digest(BYTES)));
    assert!(lock.contains(&sha256) && lock.contains("\"name\": \"purpur-1.21.10-2535.jar\""), "{lock}");
    assert!(!lock.contains("md5"), "{lock}");
    assert_eq!(purpur.downloads(), [""; 0]);
}

#[test]
fn purpur_fetched_catalog_suffices_for_lock_and_verify() {
    let (purpur, workspace) = (fake_purpur(correct_md5()), workspace());
    let fetched = purpur.run(&workspace, &["catalog", "fetch", "-f", "lobby.yaml", "--catalog", "kept"]);
    assert!(fetched.contains("Paper versions, 2 Purpur versions, 1 projects"), "{fetched}");
    assert_eq!(purpur.downloads(), ["/v2/purpur/1.21.10/2535/download"]);
    let offline = ["-f", "lobby.yaml", "--catalog", "kept"];
    let lock = workspace.command(&[&["lock"], &offline[..]].concat()).output().unwrap();
    assert_eq!(lock.status.code(), Some(0), "{}", output_text(&lock));
    fs::write(workspace.path().join("lobby.lock.json"), &lock.stdout).unwrap();
    let verified = purpur.run(&workspace, &[&["verify", "lobby.lock.json"], &offline[..]].concat());
    assert!(verified.starts_with("exit 0\n-- stdout\ngames/lobby: the lock holds\n"), "{verified}");
    let other = String::from_utf8(lock.stdout).unwrap().replace(&hex::encode(Sha256::digest(BYTES)), &"ab".repeat(32));
    fs::write(workspace.path().join("lobby.lock.json"), other).unwrap();
    let verified = purpur.run(&workspace, &[&["verify", "lobby.lock.json"], &offline[..]].concat());
    assert!(verified.contains("sha256:abababababab"), "{verified}");

    // In another cache, the locked build is not verified and would not be chosen now.
    let pinned = server("  software: Purpur\n  updateStrategy: build-pin\n  version: 1.21.11\n  build: 2567\n");
    fs::write(workspace.path().join("pinned.yaml"), pinned).unwrap();
    let lock =
        workspace.command(&["lock", "-f", "pinned.yaml"]).env("NIGHTSHIFT_PURPUR_URL", &purpur.base).output().unwrap();
    fs::write(workspace.path().join("pinned.lock.json"), &lock.stdout).unwrap();
    purpur.downloads();
    let newest = server("  software: Purpur\n  updateStrategy: auto\n");
    fs::write(workspace.path().join("newest.yaml"), newest).unwrap();
    let verified = purpur.run(&workspace, &["verify", "pinned.lock.json", "-f", "newest.yaml"]);
    assert!(verified.contains("facts: 1 file is published as locked"), "{verified}");
    let mut downloaded = purpur.downloads();
    downloaded.sort();
    assert_eq!(downloaded, ["/v2/purpur/1.21.11/2567/download", "/v2/purpur/1.21.11/2568/download"]);
}

#[test]
fn purpur_lock_is_refused_once_for_wrong_bytes() {
    let (purpur, workspace) = (fake_purpur("ab".repeat(16)), workspace());
    let refused = purpur.run(&workspace, &["lock", "-f", "lobby.yaml"]);
    assert!(refused.starts_with("exit 2\n-- stderr\nno result for games/lobby"), "{refused}");
    let error_text = format!("`{}/purpur/1.21.10/2535/download` has the hash md5:{}", purpur.base, correct_md5());
    assert_eq!(refused.matches(&error_text).count(), 1, "{refused}");
    assert_eq!(purpur.downloads(), ["/v2/purpur/1.21.10/2535/download"], "no other build is tried");
}

#[test]
fn purpur_saved_query_resolves_offline() {
    let (purpur, workspace) = (fake_purpur(correct_md5()), workspace());
    let explained = purpur.run(&workspace, &["explain", "-f", "lobby.yaml", "--save-problem", "problem.json"]);
    let again = workspace.run(&["explain", "--problem", "problem.json"]);
    assert_eq!(again, explained);
    let problem = fs::read_to_string(workspace.path().join("problem.json")).unwrap();
    let sha256 = format!("sha256:{}", hex::encode(Sha256::digest(BYTES)));
    fs::write(workspace.path().join("problem.json"), problem.replace(&sha256, &format!("md5:{}", correct_md5())))
        .unwrap();
    let unverified = workspace.run(&["explain", "--problem", "problem.json"]);
    let line = "  Purpur 1.21.10 (build 2535)  its source gives only an md5, and its bytes were not downloaded yet: fetch the catalog once";
    assert!(unverified.starts_with("exit 2\n-- stderr\nno result") && unverified.contains(line), "{unverified}");
}
