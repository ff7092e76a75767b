//! Pure. Tests which files of a Modrinth version are kept: the main one, and others that a server could load.

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
    let list = json!([{
        "id": "R1", "version_number": "1", "version_type": "release", "date_published": "2026-01-01T00:00:00Z",
        "files": files,
    }]);
    let url = Url::parse("https://upstream.example/list").unwrap();
    let name = Name { id: "P1".to_owned(), slug: "odd".to_owned(), title: "Odd".to_owned() };
    let read = modrinth::parse_listing(&url, list.to_string().as_bytes(), &name, now()).unwrap();
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
