//! Pure. Tests of the lock.

use super::*;
use crate::model::catalog::Source;

fn lock() -> Lock {
    let file = |name: &str| LockedFile {
        name: format!("{name}.jar"),
        url: format!("https://files.example/{name}"),
        size: Some(5),
        hash: format!("sha256:{:a<64}", ""),
    };
    Lock {
        software: Software::Paper,
        format_version: FormatVersion::default(),
        server: "games/lobby".to_owned(),
        minecraft: "1.21.10".parse().unwrap(),
        build: 130,
        java: 21,
        image: None,
        paper: file("paper-1.21.10-130"),
        jvm_flags: Vec::new(),
        plugins: vec![LockedPlugin {
            name: "ViaVersion".to_owned(),
            key: ProjectKey { source: Source::Modrinth, project: "viaversion".to_owned() },
            project_id: "P1OZGk5p".to_owned(),
            release_id: "afD6vgmi".to_owned(),
            version: "5.7.1".to_owned(),
            file: file("ViaVersion-5.7.1"),
            more: Vec::new(),
            reason: LockReason::NeededBy(vec!["ViaBackwards".to_owned()]),
        }],
        facts: vec![Fact { about: "Paper".to_owned(), read_at: Timestamp::UNIX_EPOCH }],
        bounds: Vec::new(),
        guesses: Vec::new(),
        image_java: None,
    }
}

fn guess() -> Guess {
    Guess {
        plugin: "ViaBackwards".to_owned(),
        version: "5.7.1".to_owned(),
        published: Some(Timestamp::UNIX_EPOCH),
        needs: "ViaVersion".to_owned(),
        at_least: "5.7.1".to_owned(),
        at_least_published: None,
    }
}

#[test]
fn lock_digest_stays_when_running_parts_stay() {
    let digest = lock().digest();
    let mut other = lock();
    other.server = "games/arena".to_owned();
    other.facts[0].read_at = Timestamp::MAX;
    other.paper.url = "https://mirror.example/paper".to_owned();
    other.paper.size = None;
    other.plugins[0].reason = LockReason::RequestedBy(vec!["viaversion".to_owned()]);
    other.jvm_flags.push("-XX:+UseG1GC".to_owned());
    other.guesses.push(guess());
    other.image_java = Some(ImageJava { has: 21, pushed: None });
    assert_eq!(other.digest(), digest);
    assert_eq!(digest.as_str().len(), 64);
    assert_eq!(digest.short(), &digest.as_str()[..16]);
}

#[test]
fn lock_digest_changes_with_each_running_part() {
    let changes: [fn(&mut Lock); 10] = [
        |lock| lock.software = Software::Folia,
        |lock| lock.plugins[0].more.push(LockedFile { name: "Via-Legacy.jar".to_owned(), ..lock.paper.clone() }),
        |lock| lock.minecraft = "1.21.11".parse().unwrap(),
        |lock| lock.build = 129,
        |lock| lock.java = 25,
        |lock| lock.image = Some("docker.io/itzg/minecraft-server@sha256:0".to_owned()),
        |lock| lock.paper.hash = format!("sha256:{:b<64}", ""),
        |lock| lock.plugins[0].file.hash = format!("sha256:{:b<64}", ""),
        |lock| lock.plugins[0].file.name = "Via.jar".to_owned(),
        |lock| lock.plugins.clear(),
    ];
    let mut seen = vec![lock().digest()];
    for change in changes {
        let mut other = lock();
        change(&mut other);
        assert!(!seen.contains(&other.digest()));
        seen.push(other.digest());
    }
}

#[test]
fn lock_json_is_read_back_as_same_lock() {
    let text = lock().to_json();
    assert_eq!(serde_json::from_str::<Lock>(&text).unwrap(), lock());
    assert!(text.ends_with("}\n"));
}

#[test]
fn lock_keeps_extra_files_and_omits_empty_list() {
    assert!(!lock().to_json().contains("more"));
    assert_eq!(lock().digest().short(), "0a05d94063a91dd9", "another digest would restart every server");
    let mut lock = lock();
    lock.plugins[0].more = vec![LockedFile { name: "Via-Legacy.jar".to_owned(), ..lock.paper.clone() }];
    assert_eq!(serde_json::from_str::<Lock>(&lock.to_json()).unwrap(), lock);
    assert_eq!(lock.plugins[0].files().count(), 2);
}

#[test]
fn lock_omits_paper_software_and_changing_is_one_way() {
    assert!(!lock().to_json().contains("software"));
    let folia = Lock { software: Software::Folia, ..lock() };
    assert_eq!(serde_json::from_str::<Lock>(&folia.to_json()).unwrap(), folia);
    for (from, to) in [(lock(), folia.clone()), (folia.clone(), lock())] {
        let moves = from.difference(&to).paper.unwrap();
        assert!(moves.one_way && !moves.backwards && moves.from.software != moves.to.software);
    }
    // A newer proxy leaves no data that an older one could not read.
    let proxy = |version: &str| Lock { software: Software::Velocity, minecraft: version.parse().unwrap(), ..lock() };
    assert!(!proxy("3.4.0").difference(&proxy("3.5.1")).paper.unwrap().one_way);
}

#[test]
fn external_file_name_becomes_safe_path_component() {
    for (outside, inside) in [
        ("ViaVersion-5.7.2-SNAPSHOT.jar", "ViaVersion-5.7.2-SNAPSHOT.jar"),
        ("../../etc/passwd", "_.._etc_passwd.jar"),
        (".hidden.jar", "hidden.jar"),
        ("", "My.jar"),
        ("a b\u{e9}.JAR", "a_b_.jar"),
    ] {
        let artifact = Artifact { name: outside.to_owned(), url: String::new(), size: None, hash: None };
        assert_eq!(safe_file_name(&artifact, "M y/"), inside, "{outside}");
    }
}

#[test]
fn hostile_file_name_stays_in_its_folder() {
    let long = "x".repeat(300);
    for name in [
        "/etc/passwd",
        "..",
        "../../x.jar",
        "..\\x.jar",
        "C:\\x.jar",
        "a\0b.jar",
        "\u{202e}raj.exe",
        "\u{1b}[2J.jar",
        &long,
    ] {
        let artifact = Artifact { name: name.to_owned(), url: String::new(), size: None, hash: None };
        for project in ["warps", "../..", name] {
            let safe = safe_file_name(&artifact, project);
            let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
            assert!(safe.chars().all(is_safe) && !safe.starts_with(['.', '-']), "{name:?}: {safe}");
            let stem = safe.strip_suffix(".jar");
            assert!(stem.is_some_and(|stem| !stem.is_empty()) && safe.len() <= 124, "{name:?}: {safe}");
        }
    }
}

/// The content that an operator of format 1 wrote into an immutable `ConfigMap`.
const FORMAT_1: &str = include_str!("format-1.lock.json");

#[test]
fn lock_of_format_1_is_read_and_written_unchanged() {
    let old: Lock = serde_json::from_str(FORMAT_1).unwrap();
    assert_eq!(old.to_json(), FORMAT_1, "a lock of format 1 must be written back unchanged");
    assert_eq!(old.digest().short(), "873907b0be674812", "another digest would restart every server");
    assert_eq!((old.guesses.as_slice(), old.image_java), ([].as_slice(), None));
    // The same version set, chosen today.
    let image_java = Some(ImageJava { has: 21, pushed: None });
    let new = Lock { format_version: FormatVersion::default(), guesses: vec![guess()], image_java, ..old.clone() };
    assert!(new.to_json().starts_with("{\n  \"formatVersion\": 2,\n"));
    assert_eq!((new.digest(), old.difference(&new).equal), (old.digest(), true));
}

#[test]
fn lock_without_format_is_of_format_1() {
    let without = FORMAT_1.replace("  \"formatVersion\": 1,\n", "");
    assert_eq!(serde_json::from_str::<Lock>(&without).unwrap().to_json(), FORMAT_1);
    for unknown in ["0", "3"] {
        let text = FORMAT_1.replace("\"formatVersion\": 1", &format!("\"formatVersion\": {unknown}"));
        let refused = serde_json::from_str::<Lock>(&text).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("it is of format {unknown}, and the newest that this version reads is 2")),
            "{refused}"
        );
    }
}

#[test]
fn lock_difference_is_empty_exactly_when_digest_stays() {
    let changes: [fn(&mut Lock); 16] = [
        |lock| lock.software = Software::Folia,
        |lock| lock.plugins[0].more.push(LockedFile { name: "Via-Legacy.jar".to_owned(), ..lock.paper.clone() }),
        |lock| lock.minecraft = "1.21.11".parse().unwrap(),
        |lock| lock.minecraft = "1.21.10.0".parse().unwrap(),
        |lock| lock.build = 129,
        |lock| lock.java = 25,
        |lock| lock.image = Some("docker.io/itzg/minecraft-server@sha256:0".to_owned()),
        |lock| lock.paper.hash = format!("sha256:{:b<64}", ""),
        |lock| lock.plugins[0].release_id = "other".to_owned(),
        |lock| lock.plugins[0].file.name = "Via.jar".to_owned(),
        |lock| lock.plugins.clear(),
        |lock| lock.jvm_flags.push("-Xmx1G".to_owned()),
        |lock| lock.plugins[0].file.url = "https://mirror.example".to_owned(),
        |lock| lock.server = "games/arena".to_owned(),
        |lock| lock.guesses.push(guess()),
        |lock| lock.image_java = Some(ImageJava { has: 21, pushed: None }),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut other = lock();
        change(&mut other);
        for (old, new) in [(lock(), other.clone()), (other.clone(), lock())] {
            let Difference { equal, paper, java, image, plugins, old: _, new: _ } = old.difference(&new);
            let nothing = paper.is_none() && java.is_none() && image.is_none() && plugins.is_empty();
            assert_eq!((equal, nothing), (at >= 11, at >= 11), "change {at}");
        }
    }
}

#[test]
fn lock_difference_marks_newer_minecraft_as_one_way() {
    let mut newer = lock();
    newer.minecraft = "1.21.11".parse().unwrap();
    let ways = |old: &Lock, new: &Lock| old.difference(new).paper.map(|paper| (paper.one_way, paper.backwards));
    assert_eq!(ways(&lock(), &newer), Some((true, false)));
    assert_eq!(ways(&newer, &lock()), Some((false, true)));
    newer = lock();
    newer.build = 131;
    assert_eq!(ways(&lock(), &newer), Some((false, false)));
}

#[test]
fn lock_difference_matches_plugins_by_project_then_name() {
    let mut new = lock();
    let before = lock().plugins[0].clone();
    new.plugins = vec![
        LockedPlugin { version: "5.6.0".to_owned(), release_id: "older".to_owned(), ..before.clone() },
        LockedPlugin { name: "Chunky".to_owned(), project_id: "chunky".to_owned(), ..before.clone() },
    ];
    let kinds = |new: &Lock| -> Vec<(String, ChangeKind)> {
        lock().difference(new).plugins.into_iter().map(|plugin| (plugin.name, plugin.change)).collect()
    };
    let named = |name: &str, kind| (name.to_owned(), kind);
    assert_eq!(kinds(&new), [named("Chunky", ChangeKind::Added), named("ViaVersion", ChangeKind::Downgraded)]);
    // The same plugin from Hangar: another project, but the same plugin for users.
    let key = ProjectKey { source: Source::Hangar, project: "ViaVersion".to_owned() };
    new.plugins = vec![LockedPlugin { key, project_id: "31".to_owned(), release_id: "9".to_owned(), ..before }];
    assert_eq!(kinds(&new), [named("ViaVersion", ChangeKind::Replaced)]);
    new.plugins.clear();
    assert_eq!(kinds(&new), [named("ViaVersion", ChangeKind::Removed)]);
}
