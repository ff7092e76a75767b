//! Pure. Tests which files of a Modrinth version are kept: the main JAR, and others that a server could load.

use serde_json::{Value, json};

use super::*;
use crate::modrinth;
use crate::project_page::{Name, ProjectListing};
use resolver::model::catalog::Release;

fn file(name: &str, primary: bool, kind: Option<&str>) -> Value {
    json!({
        "url": format!("https://cdn.example/{name}"), "filename": name, "primary": primary, "size": 7,
        "file_type": kind, "hashes": {"sha1": "00", "sha512": "ab".repeat(64)},
    })
}

/// The one release of a list after it is parsed, stored and read.
fn release(files: &[Value]) -> Release {
    release_of(&Name { id: "P1".to_owned(), slug: "odd".to_owned(), title: "Odd".to_owned() }, files)
}

fn release_of(name: &Name, files: &[Value]) -> Release {
    let list = json!([{
        "id": "R1", "version_number": "1", "version_type": "release", "date_published": "2026-01-01T00:00:00Z",
        "files": files,
    }]);
    let url = Url::parse("https://upstream.example/list").unwrap();
    let read = modrinth::parse_listing(&url, list.to_string().as_bytes(), name, now()).unwrap();
    let restored: ProjectListing = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
    assert_eq!(restored, read);
    restored.project.releases[0].clone()
}

fn names(release: &Release) -> Vec<&str> {
    let main = release.file.iter().map(|file| file.name.as_str());
    main.chain(release.further.iter().map(|jar| jar.file.name.as_str())).collect()
}

/// `DiscordSRV` 1.26.1: three JARs without a type, of which a server loads one.
#[test]
fn sources_and_javadoc_jars_are_recognised_by_name() {
    let files = [
        file("DiscordSRV-1.26.1.jar", true, None),
        file("DiscordSRV-1.26.1-javadoc.jar", false, None),
        file("DiscordSRV-1.26.1-sources.jar", false, None),
    ];
    assert_eq!(names(&release(&files)), ["DiscordSRV-1.26.1.jar"]);
}

#[test]
fn module_jars_are_sorted_without_non_runnable_files() {
    let files = [
        file("EssentialsXSpawn-2.21.0.jar", false, None),
        file("EssentialsXChat-2.21.0.jar", false, Some("unknown")),
        file("EssentialsX-2.21.0.jar", true, None),
        file("a.jar", false, Some("sources-jar")),
        file("b.jar", false, Some("dev-jar")),
        file("c.jar", false, Some("javadoc-jar")),
        file("d.jar", false, Some("signature")),
        file("EssentialsX-2.21.0.jar.asc", false, None),
        file("pack.zip", false, Some("required-resource-pack")),
    ];
    let read = release(&files);
    assert_eq!(names(&read), ["EssentialsX-2.21.0.jar", "EssentialsXChat-2.21.0.jar", "EssentialsXSpawn-2.21.0.jar"]);
    assert!(read.further.iter().all(|jar| jar.file.hash.is_some() && jar.file.size == Some(7)));
}

#[test]
fn main_file_is_jar_whatever_is_marked() {
    let cases: [(&str, &[&str], &[&str]); 9] = [
        ("Odd-1.zip", &["Odd-1.zip", "Odd-1.jar"], &["Odd-1.jar"]),
        ("Odd-1-sources.jar", &["Odd-1-sources.jar", "Odd-1.jar"], &["Odd-1.jar"]),
        ("Odd-1-javadoc.JAR", &["Odd-1-javadoc.JAR", "Odd-1.JAR"], &["Odd-1.JAR"]),
        ("Odd-1-dev.jar", &["Odd-1-dev.jar", "Odd-1.jar"], &["Odd-1.jar"]),
        ("", &["Odd-api-1.jar", "Odd-bukkit-1.jar"], &["Odd-bukkit-1.jar"]),
        ("", &["OddAPI-1.jar", "Odd-1.jar"], &["Odd-1.jar"]),
        ("", &["Odd-1-all.tar.gz", "Odd-1.jar", "Odd-1-api.jar"], &["Odd-1.jar"]),
        // Which of two is the plugin is not known: the marked one is the main one, and the answer names both.
        ("Odd-Spigot-1.jar", &["Odd-Extras-1.jar", "Odd-Spigot-1.jar"], &["Odd-Spigot-1.jar", "Odd-Extras-1.jar"]),
        ("", &["Odd-Spigot-1.jar", "Odd-Extras-1.jar"], &["Odd-Spigot-1.jar", "Odd-Extras-1.jar"]),
    ];
    for (marked, files, expected) in cases {
        let listed: Vec<Value> = files.iter().map(|name| file(name, *name == marked, None)).collect();
        assert_eq!(names(&release(&listed)), expected, "{files:?}, marked {marked}");
    }
}

#[test]
fn jar_is_left_out_only_beside_another() {
    for files in [
        ["Odd-1-dev.jar"].as_slice(),
        // Builds from a branch, and a plugin of the project's own name.
        &["OddChat-2.0-dev+12-abc.jar", "OddSpawn-2.0-dev+12-abc.jar"],
        &["Odd-1-dev.jar", "OddChat-1-dev.jar"],
    ] {
        let listed: Vec<Value> = files.iter().map(|name| file(name, false, None)).collect();
        assert_eq!(names(&release(&listed)), files);
    }
    let name = Name { id: "P1".to_owned(), slug: "odd-api".to_owned(), title: "Odd".to_owned() };
    let list = ["Odd-API-1.jar", "Odd-API-1-sources.jar", "OddExtras-1.jar"].map(|name| file(name, false, None));
    assert_eq!(names(&release_of(&name, &list)), ["Odd-API-1.jar", "OddExtras-1.jar"]);
}

#[test]
fn archive_without_jar_is_named() {
    let listed = [file("Odd-1.jar.asc", false, Some("signature")), file("Odd-1.zip", true, None)];
    assert_eq!(names(&release(&listed)), ["Odd-1.zip"]);
}
