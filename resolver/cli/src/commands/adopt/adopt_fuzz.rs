//! Edge (reads). Fuzz tests for the files of a server directory that users and other programs write.

use std::cell::Cell;
use std::fs;

use fixtures::fuzz::mutate;

use super::server_dir::{FolderError, Properties, ServerDir};
use crate::mutate::{MAX_ERROR_LENGTH, bytes, edits, for_all, within_time_limit};
use resolver::model::version::Minecraft;

const HISTORY: &str = "version_history.json";
const MANIFEST: &str = ".papermc-manifest.json";

/// Valid content of the files.
const FILES: [(&str, &str); 4] = [
    (HISTORY, r#"{"oldVersion": "git-Paper-496 (MC: 1.20.4)", "currentVersion": "1.21.10-130-8043efd (MC: 1.21.10)"}"#),
    (
        MANIFEST,
        r#"{"@type": "x", "minecraftVersion": "1.21.10", "build": 129, "project": "paper", "files": ["a.jar"]}"#,
    ),
    ("eula.txt", "#By changing the setting below to TRUE you agree\n#Tue Jan 20 2026\neula=true\n"),
    (
        "server.properties",
        "#Minecraft server properties\nserver-port=25566\nenable-rcon=false\nrcon.port = 25575\nmotd=A\\: b\n",
    ),
];

/// Maximum number of bytes that are read of one file.
const MEBIBYTE: usize = 1 << 20;

/// Reads the directory. Every claim must be a version from an existing file, and an error must be short.
fn check_read(directory: &std::path::Path) -> bool {
    match ServerDir::read(directory) {
        Ok(folder) => {
            for claim in &folder.paper.claims {
                assert_eq!(claim.minecraft.to_string().parse::<Minecraft>().as_ref(), Ok(&claim.minecraft));
                assert!(directory.join(&claim.file).is_file(), "{claim:?}");
            }
            assert!(folder.paper.claims.iter().any(|claim| claim.minecraft == folder.paper.oldest()));
            let read = |name: &str| String::from_utf8_lossy(&fs::read(directory.join(name)).unwrap()).into_owned();
            assert!(!folder.eula || read("eula.txt").to_lowercase().contains("true"));
            let Properties { game_port, rcon_port } = folder.properties;
            for port in game_port.into_iter().chain(rcon_port) {
                assert!(read("server.properties").contains(&port.to_string()), "{port}");
            }
            true
        }
        Err(error) => {
            let message = error.to_string();
            assert!(
                message.len() < MAX_ERROR_LENGTH,
                "{} bytes: {}",
                message.len(),
                message.chars().take(400).collect::<String>()
            );
            assert!(!message.contains(char::is_control), "{message:?}");
            let expected = matches!(
                error,
                FolderError::NoPaper { .. } | FolderError::OtherSoftware { .. } | FolderError::SeveralSoftware { .. }
            );
            assert!(expected, "{error:?}");
            false
        }
    }
}

#[test]
fn server_dir_fuzzed_is_read_or_refused_briefly() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
    for (name, text) in FILES {
        write(name, text.as_bytes());
    }
    let good = ServerDir::read(directory.path()).unwrap();
    assert!(good.eula && good.paper.claims.len() == 2);
    assert_eq!(good.properties, Properties { game_port: Some(25566), rcon_port: Some(25575) });
    let (read, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    let count = |is_read: bool| {
        let cell = if is_read { &read } else { &refused };
        cell.set(cell.get() + 1);
    };
    for_all(400, &(edits(), edits(), bytes()), |(some, more, other)| {
        for (name, text) in FILES {
            // Both files describe Paper. Faults of one show only without the other.
            let edits = if name == MANIFEST { &more } else { &some };
            write(name, &mutate(text.as_bytes(), &other, edits));
        }
        count(check_read(directory.path()));
        write(MANIFEST, b"");
        count(check_read(directory.path()));
        write(HISTORY, &other);
        count(check_read(directory.path()));
        Ok(())
    });
    assert!(read.get() > 100 && refused.get() > 300, "{} were read, {} were refused", read.get(), refused.get());
}

#[test]
fn software_and_version_of_files_are_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    for (name, text) in &FILES[2..] {
        write(name, text);
    }
    let long = "x".repeat(MEBIBYTE - 100);
    let version = |version: &str| serde_json::json!({"currentVersion": version}).to_string();
    for text in [
        version(&format!("git-{}-1 (MC: 1.21.10)", &long[..MEBIBYTE / 2])),
        version("git-Fork\n\u{1b}[2Jof Paper-1 (MC: 1.21.10)"),
        version(&format!("1.21.10-1 (MC: {})", &long[..MEBIBYTE / 2])),
        version(&format!("{}-1 (MC: 1.21.10", "1.".repeat(MEBIBYTE / 4))),
        "[".repeat(MEBIBYTE),
        long.clone(),
        format!("{{\"currentVersion\": \"{long}"),
    ] {
        write(HISTORY, &text);
        within_time_limit("a long history", || check_read(directory.path()));
    }
    write(HISTORY, FILES[0].1);
    for line in ["server-port=", "server-port:=", "\n", "=", "#", "eula=true\r", "eula"] {
        let text = line.repeat(MEBIBYTE / line.len());
        write("server.properties", &text);
        write("eula.txt", &text);
        within_time_limit(line, || assert!(check_read(directory.path())));
    }
}
