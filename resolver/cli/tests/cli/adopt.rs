//! Edge (reads). Tests `resolver adopt`: the manifests reproduce the directory, and uncertainties are reported.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use fixtures::jar::{self, Entry, PluginYml};
use serde_json::Value;

use super::{REPLAY, Workspace, assert_snapshot, output_text};

/// A version history with the newest build of 1.21.10 at the replay's time.
const HISTORY: &str =
    r#"{"oldVersion":"1.21.8-60-29c8822 (MC: 1.21.8)","currentVersion":"1.21.10-129-8043efd (MC: 1.21.10)"}"#;

/// A workspace with a server directory named `lobby` that contains these files.
fn workspace_with(files: &[(&str, &[u8])]) -> Workspace {
    let workspace = Workspace::new(&[]);
    for (name, bytes) in files {
        write_file(&workspace, name, bytes);
    }
    workspace
}

fn write_file(workspace: &Workspace, name: &str, bytes: &[u8]) {
    let path = workspace.path().join("lobby").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A server that was started before.
fn started_server() -> Workspace {
    let properties = "#Minecraft server properties\nenable-rcon=true\nrcon.port=25600\nserver-port=25565\n";
    workspace_with(&[
        ("version_history.json", HISTORY.as_bytes()),
        ("eula.txt", b"#by changing ...\neula=true\n"),
        ("server.properties", properties.as_bytes()),
    ])
}

/// The response of the replay, as JSON.
fn replay_json(path: &str) -> Value {
    serde_json::from_slice(&http_get(&format!("{}{path}", REPLAY.upstream.public_url()))).unwrap()
}

fn http_get(url: &str) -> Vec<u8> {
    // Not `reqwest`, which would be a dependency for this function alone.
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let head =
        format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\nUser-Agent: nightshift-tests (https://example.org)\r\n\r\n");
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let mut response = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut response).unwrap();
    let body = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    assert!(response.starts_with(b"HTTP/1.0 200"), "{url}: {}", String::from_utf8_lossy(&response[..body]));
    response.split_off(body)
}

/// Puts the file of a Modrinth release into `plugins`.
fn install_from_modrinth(workspace: &Workspace, project: &str, version: &str) {
    let release = replay_json(&format!("/modrinth/v2/project/{project}/version/{version}"));
    install(workspace, &release["files"][0], "filename", "url");
}

/// Puts the file of a Hangar release into `plugins`.
fn install_from_hangar(workspace: &Workspace, project: &str, version: &str) {
    let release = replay_json(&format!("/hangar/api/v1/projects/{project}/versions/{version}"));
    let download = &release["downloads"]["PAPER"];
    let name = download["fileInfo"]["name"].as_str().unwrap();
    write_file(workspace, &format!("plugins/{name}"), &http_get(download["downloadUrl"].as_str().unwrap()));
}

fn install(workspace: &Workspace, file: &Value, name: &str, url: &str) {
    write_file(workspace, &format!("plugins/{}", file[name].as_str().unwrap()), &http_get(file[url].as_str().unwrap()));
}

/// The files of `plugins`, by name, with their sizes and modification times.
fn directory_listing(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        found.push(format!("{} {} {:?}", entry.path().display(), metadata.len(), metadata.modified().unwrap()));
        if metadata.is_dir() {
            found.extend(directory_listing(&entry.path()));
        }
    }
    found.sort();
    found
}

#[test]
fn adopt_manifests_resolve_to_existing_files() {
    let workspace = started_server();
    install_from_modrinth(&workspace, "viaversion", "5.5.1");
    install_from_modrinth(&workspace, "viabackwards", "5.5.1");
    install_from_modrinth(&workspace, "griefprevention", "16.18.5");
    // Its page does not list 1.21.10.
    install_from_hangar(&workspace, "Multiverse-Core", "4.3.12");
    let before = directory_listing(&workspace.path().join("lobby"));
    let output = workspace.command(&["adopt", "lobby", "--namespace", "games"]).output().unwrap();
    assert_snapshot("adopt", &output_text(&output));
    assert_eq!(directory_listing(&workspace.path().join("lobby")), before, "the directory is not changed");

    let manifests = String::from_utf8(output.stdout).unwrap();
    assert_snapshot("adopt-explained", &workspace.run_with_stdin(&["explain", "-f", "-"], &manifests));
    fs::write(workspace.path().join("lobby.yaml"), manifests).unwrap();
    let lock = workspace.command(&["lock", "-f", "lobby.yaml"]).output().unwrap();
    let lock: Value = serde_json::from_slice(&lock.stdout).unwrap();
    assert_eq!((&lock["minecraft"], &lock["build"]), (&"1.21.10".into(), &129.into()));
    let hash = |name: &str, sha512: bool| {
        use sha2::{Digest, Sha256, Sha512};
        let bytes = fs::read(workspace.path().join("lobby/plugins").join(name)).unwrap();
        let sha512 = sha512.then(|| format!("sha512:{}", hex::encode(Sha512::digest(&bytes))));
        sha512.unwrap_or_else(|| format!("sha256:{}", hex::encode(Sha256::digest(&bytes))))
    };
    let mut locked: Vec<(&str, &str)> = lock["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| (plugin["file"]["name"].as_str().unwrap(), plugin["file"]["hash"].as_str().unwrap()))
        .collect();
    locked.sort_unstable();
    let mut files: Vec<String> = fs::read_dir(workspace.path().join("lobby/plugins"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(locked.len(), files.len());
    for ((name, locked), file) in locked.iter().zip(&files) {
        assert_eq!((*name, *locked), (file.as_str(), hash(file, locked.starts_with("sha512:")).as_str()));
    }
}

#[test]
fn adopt_writes_guess_by_name_and_version_as_comment() {
    let workspace = started_server();
    // The authors' own build, with other bytes than the one on Modrinth.
    write_file(&workspace, "plugins/gp.jar", &jar::plugin(&PluginYml::new("GriefPrevention", "16.18.5")));
    write_file(&workspace, "plugins/ViaVersion.jar", &jar::plugin(&PluginYml::new("ViaVersion", "99.0-custom")));
    write_file(&workspace, "plugins/ShopGUIPlus.jar", &jar::plugin(&PluginYml::new("ShopGUIPlus", "1.80.0")));
    assert_snapshot("adopt-guess", &workspace.run(&["adopt", "lobby"]));
}

#[test]
fn adopt_reports_unmanaged_dependency_as_duplicate() {
    let workspace = started_server();
    install_from_modrinth(&workspace, "viabackwards", "5.5.1");
    write_file(&workspace, "plugins/Via.jar", &jar::plugin(&PluginYml::new("ViaVersion", "99.0-custom")));
    assert_snapshot("adopt-further", &workspace.run(&["adopt", "lobby"]));
}

#[test]
fn adopt_ignores_unloadable_files_and_follows_links() {
    let workspace = started_server();
    install_from_modrinth(&workspace, "griefprevention", "16.18.5");
    write_file(&workspace, "plugins/broken.jar", &jar::corrupt());
    write_file(
        &workspace,
        "plugins/library.jar",
        &jar::archive(&[Entry::new("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")]),
    );
    write_file(&workspace, "plugins/notes.txt", b"not a jar");
    write_file(&workspace, "plugins/update/GriefPrevention.jar", b"waits");
    fs::create_dir_all(workspace.path().join("lobby/plugins/folder.jar")).unwrap();
    fs::write(workspace.path().join("own.jar"), jar::plugin(&PluginYml::new("Own", "1.0"))).unwrap();
    symlink("../../own.jar", workspace.path().join("lobby/plugins/own.jar")).unwrap();
    symlink("nowhere", workspace.path().join("lobby/plugins/dangling.jar")).unwrap();
    // A name that would end a comment of the manifests.
    write_file(&workspace, "plugins/a\nkind: b.jar", &jar::plugin(&PluginYml::new("Evil", "1.0\nkind: c")));
    assert_snapshot("adopt-odd-files", &workspace.run(&["adopt", "lobby"]));
}

#[test]
fn adopt_names_the_rule_by_which_paper_refuses_a_file() {
    let workspace = started_server();
    let put = |name: &str, entry: &str, yml: &str| {
        write_file(&workspace, &format!("plugins/{name}.jar"), &jar::archive(&[Entry::new(entry, yml)]));
    };
    put("NoVersion", "plugin.yml", "name: NoVersion\nmain: a.B\n");
    put("Bell", "paper-plugin.yml", "name: Bell\nversion: 2.0.0\nmain: a.B\napi-version: 1.20\n");
    put("Line", "plugin.yml", "name: Line\nversion: 1\nmain: a.B\napi-version: 1.21.x\n");
    put("Float", "plugin.yml", "name: Float\nversion: 1\nmain: a.B\napi-version: 1.20\n");
    let old_form = "name: Home\nversion: 4.1.1\nmain: a.B\napi-version: '1.19'\ndependencies:\n  - name: Vault\n    required: true\n";
    put("Home", "paper-plugin.yml", old_form);
    put("Slash", "plugin.yml/", "name: Slash\nversion: 1\nmain: a.B\napi-version: '1.21'\n");
    put(
        "Tps",
        "plugin.yml",
        "name: spark\nversion: 1\nmain: me.lucko.spark.bukkit.BukkitSparkPlugin\napi-version: '1.13'\n",
    );
    put("Odd", "plugin.yml", "name: [\n");
    let shown = workspace.run(&["adopt", "lobby"]);
    for expected in [
        "plugins/NoVersion.jar: Paper refuses it: its `plugin.yml` has no `version`. It is left out",
        "plugins/Bell.jar: Paper 1.21.10 does not load it: it states `api-version: 1.2` (YAML reads an unquoted 1.20 as 1.2) in \
         `paper-plugin.yml`, and Paper refuses a version below 1.19 there. It is left out",
        "plugins/Line.jar: Paper 1.21.10 does not load it: it states `api-version: 1.21.x`, which Paper refuses: it must have two or \
         three numbers, as 1.21 or 1.21.4. It is left out",
        "plugins/Float.jar: it states `api-version: 1.2` (YAML reads an unquoted 1.20 as 1.2), older than 1.13, so Paper loads it in legacy mode",
        "plugins/Tps.jar: Paper 1.21 and later contain spark, and do not load this file. You can delete it and its Plugin",
        "plugins/Home.jar: Home 4.1.1 stays unmanaged",
        "plugins/Slash.jar: Slash 1 stays unmanaged",
        "plugins/Odd.jar: Nightshift could not read its `plugin.yml`: ",
    ] {
        assert!(shown.contains(expected), "{expected}\n\n{shown}");
    }
    assert!(!shown.contains("Paper does not load it either"), "{shown}");
}

#[test]
fn adopt_refuses_duplicate_plugin_files_before_requests() {
    let workspace = started_server();
    let mut fawe = PluginYml::new("FastAsyncWorldEdit", "2.12.0");
    fawe.provides = vec!["WorldEdit".to_owned()];
    write_file(&workspace, "plugins/FAWE.jar", &jar::plugin(&fawe));
    write_file(&workspace, "plugins/worldedit.jar", &jar::plugin(&PluginYml::new("WorldEdit", "7.3.10")));
    write_file(&workspace, "plugins/LuckPerms-5.4.jar", &jar::plugin(&PluginYml::new("LuckPerms", "5.4")));
    write_file(&workspace, "plugins/LuckPerms-5.5.jar", &jar::plugin(&PluginYml::new("LuckPerms", "5.5")));
    assert_snapshot("adopt-twice", &workspace.run(&["adopt", "lobby"]));
}

#[test]
fn adopt_refuses_directory_without_paper_server_with_advice() {
    let workspace = workspace_with(&[
        ("../empty/readme.txt", b"hello"),
        ("../purpur/version_history.json", br#"{"currentVersion":"git-Purpur-2416 (MC: 1.21.4)"}"#),
        ("../9lives/version_history.json", HISTORY.as_bytes()),
        ("file", b""),
    ]);
    fs::create_dir_all(workspace.path().join("lobby")).unwrap();
    let runs = [
        vec!["adopt", "nowhere"],
        vec!["adopt", "empty"],
        vec!["adopt", "lobby/file"],
        vec!["adopt", "purpur"],
        vec!["adopt", "9lives"],
        vec!["adopt", "9lives", "--name", "Nine"],
        vec!["adopt", "9lives", "--name", "nine", "--namespace", "Games"],
    ];
    let shown: Vec<String> = runs.iter().map(|run| format!("$ {}\n{}", run.join(" "), workspace.run(run))).collect();
    assert_snapshot("adopt-refused", &shown.join("\n"));
}

#[test]
fn adopt_finds_paper_version_without_history_file() {
    let itzg = workspace_with(&[(
        ".papermc-manifest.json",
        br#"{"minecraftVersion":"1.21.10","build":129,"project":"paper"}"#,
    )]);
    let manifest = Entry::new("META-INF/MANIFEST.MF", "Implementation-Version: 1.21.10-129-8043efd\r\n");
    let unpacked = workspace_with(&[("versions/1.21.10/paper-1.21.10.jar", &jar::archive(&[manifest]))]);
    let build = replay_json("/fill/v3/projects/paper/versions/1.21.10/builds/129");
    let paper = http_get(build["downloads"]["server:default"]["url"].as_str().unwrap());
    let named = workspace_with(&[("paper-1.21.10-129.jar", &paper)]);
    // The same bytes under a name without a version.
    let renamed = workspace_with(&[("server.jar", &paper)]);
    for workspace in [&itzg, &unpacked, &named, &renamed] {
        let shown = workspace.run(&["adopt", "lobby"]);
        assert!(shown.starts_with("exit 0\n") && shown.contains("  build: 129\n"), "{shown}");
    }
    let mut changed_jar = paper.clone();
    changed_jar.extend_from_slice(b"changed");
    assert_snapshot("adopt-no-build", &workspace_with(&[("server.jar", &changed_jar)]).run(&["adopt", "lobby"]));
    let workspace = workspace_with(&[("version_history.json", HISTORY.as_bytes()), ("server.jar", &changed_jar)]);
    let shown = workspace.run(&["adopt", "lobby"]);
    assert!(
        shown.contains("server.jar is not published by PaperMC: its published file of Paper 1.21.10-129"),
        "{shown}"
    );
    // The version that started last counts. A JAR that was installed later is reported.
    let since = workspace_with(&[
        ("version_history.json", HISTORY.as_bytes()),
        ("paper-1.21.11-69.jar", &{
            let build = replay_json("/fill/v3/projects/paper/versions/1.21.11/builds/69");
            http_get(build["downloads"]["server:default"]["url"].as_str().unwrap())
        }),
    ]);
    assert_snapshot("adopt-newer-jar", &since.run(&["adopt", "lobby"]));
}

#[test]
fn adopt_knows_cached_projects_offline() {
    let workspace = started_server();
    install_from_modrinth(&workspace, "griefprevention", "16.18.5");
    write_file(&workspace, "plugins/ShopGUIPlus.jar", &jar::plugin(&PluginYml::new("ShopGUIPlus", "1.80.0")));
    let manifests = super::server("  updateStrategy: auto\n") + &super::plugin("griefprevention", "");
    fs::write(workspace.path().join("other.yaml"), manifests).unwrap();
    workspace.run(&["catalog", "fetch", "-f", "other.yaml", "--catalog", "kept"]);
    assert_snapshot("adopt-offline", &workspace.run(&["adopt", "lobby", "--catalog", "kept"]));
}

#[test]
fn adopt_works_offline_from_directory_alone() {
    let workspace = started_server();
    install_from_modrinth(&workspace, "griefprevention", "16.18.5");
    let mut command = workspace.command(&["adopt", "lobby", "--offline"]);
    command.env("XDG_CACHE_HOME", workspace.path().join("none"));
    assert_snapshot("adopt-without-cache", &output_text(&command.output().unwrap()));
}

#[test]
fn adopt_refuses_forks_by_their_files() {
    let unpacked = jar::archive(&[Entry::new(
        "META-INF/MANIFEST.MF",
        "Implementation-Version: 1.21.10-129-8043efd\r\nBrand-Name: Leaf\r\n",
    )]);
    let bundle = jar::archive(&[
        Entry::new("version.json", r#"{"id":"1.21.10"}"#),
        Entry::new("META-INF/versions.list", "0\t1.21.10\t1.21.10/folia-1.21.10.jar\n"),
    ]);
    let history = ("version_history.json", HISTORY.as_bytes());
    for (file, bytes, software) in [
        ("purpur.yml", b"settings: {}".as_slice(), "Purpur"),
        ("config/leaf-global.yml", b"".as_slice(), "Leaf"),
        ("config/gale-global.yml", b"".as_slice(), "Gale"),
        ("pufferfish.yml", b"".as_slice(), "Pufferfish"),
        ("purpur-1.21.10-2535.jar", b"not read".as_slice(), "Purpur"),
        ("leaf-1.21.10-129.jar", b"not read".as_slice(), "Leaf"),
        ("server.jar", bundle.as_slice(), "Folia"),
        ("versions/1.21.10/server.jar", unpacked.as_slice(), "Leaf"),
    ] {
        // The history has the same form in Paper and its forks.
        let shown = workspace_with(&[history, (file, bytes)]).run(&["adopt", "lobby"]);
        let refused = format!("`lobby` runs {software}, as {file} says, and only Paper can be adopted");
        assert!(shown.starts_with("exit 2\n") && shown.contains(&refused) && !shown.contains("kind:"), "{shown}");
    }
    // Purpur ran here once, and Paper started last.
    let old = br#"{"currentVersion":"git-Paper-496 (MC: 1.20.4)"}"#;
    let shown = workspace_with(&[("version_history.json", old), ("purpur.yml", b"")]).run(&["adopt", "lobby"]);
    assert!(shown.contains("kind: PaperMCServer"), "{shown}");
    let shown = workspace_with(&[("paper-1.21.10-129.jar", b""), ("purpur-1.21.10-2535.jar", b"")]);
    let shown = shown.run(&["adopt", "lobby"]);
    assert!(shown.contains("purpur-1.21.10-2535.jar of Purpur and paper-1.21.10-129.jar of Paper"), "{shown}");
}

#[test]
fn adopt_refuses_build_that_paper_did_not_publish() {
    let history = br#"{"currentVersion":"1.21.10-2535-8043efd (MC: 1.21.10)"}"#;
    let shown = workspace_with(&[("version_history.json", history)]).run(&["adopt", "lobby"]);
    let refused = "`lobby` runs build 2535 of Minecraft 1.21.10, as version_history.json says, and PaperMC does not publish it. It may be a fork";
    assert!(shown.starts_with("exit 2\n") && shown.contains(refused) && !shown.contains("kind:"), "{shown}");
}

#[test]
fn adopt_names_unreachable_site_and_exits_with_1() {
    let workspace = started_server();
    install_from_modrinth(&workspace, "griefprevention", "16.18.5");
    let mut command = workspace.command(&["adopt", "lobby"]);
    command.env("NIGHTSHIFT_MODRINTH_URL", "http://127.0.0.1:9/modrinth/v2");
    assert_snapshot("adopt-no-modrinth", &output_text(&command.output().unwrap()));
}
