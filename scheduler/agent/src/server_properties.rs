//! Edge (writes). Sets the five managed keys of server.properties, and changes no other line.
//!
//! Minecraft binds RCON to every address of the pod unless Paper's own `rcon.ip` overrides it (`rcon-facts.md`, 4.13), so these keys are set at
//! every pod start. An adopted file may contain an old password, an old port or RCON switched off.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use artifacts::java_properties::{self, key_of, logical_lines};

use crate::plain_fs::{self, Refused, refused_in};
use crate::rcon::RconPassword;

/// The largest file that is read, in bytes. A real one has 2 KiB.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;

/// The prefix of files that may contain the content of `server.properties`, including its password. These are files that wait to replace it, and
/// files that an editor leaves.
pub(crate) const TEMPORARY_PREFIX: &str = ".server.properties.";

/// The prefix of Nightshift's own files among them. Leftover ones are removed.
const OWN_PREFIX: &str = ".server.properties.nightshift-";

/// The file could not be updated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading or writing failed.
    #[error("could not {operation} `server.properties`")]
    File {
        /// `read`, `write`, or `remove the remains of`.
        operation: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The password has characters that the file and the game may read differently.
    #[error("the RCON password must consist of printable ASCII without spaces and backslashes")]
    Password,
}

/// The RCON settings of the server.
#[derive(Debug, Clone, Copy)]
pub struct Rcon<'a> {
    /// Whether RCON is enabled.
    pub enabled: bool,
    /// Its port.
    pub port: u16,
    /// Its password.
    pub password: &'a RconPassword,
}

/// Sets the managed keys in `<directory>/server.properties` atomically, and keeps the file's mode. It writes nothing if they are already set. It
/// removes files that a killed process left beside it, because they contain the password.
pub fn write(directory: &Path, rcon: Rcon<'_>) -> Result<(), Error> {
    let password = rcon.password;
    let wrong = |byte: u8| !byte.is_ascii_graphic() || byte == b'\\';
    if password.expose().is_empty() || password.expose().bytes().any(wrong) {
        return Err(Error::Password);
    }
    clear(directory).map_err(|source| Error::File { operation: "remove the remains of", source })?;
    let path = directory.join("server.properties");
    let (before, mode) = match plain_fs::read(&path, MAX_BYTES) {
        Ok(bytes) => {
            let metadata = plain_fs::metadata(&path).map_err(|source| Error::File { operation: "read", source })?;
            (bytes, metadata.permissions().mode() & 0o7777)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), 0o640),
        Err(source) => return Err(Error::File { operation: "read", source }),
    };
    let after = with_keys(&before, rcon);
    if after == before {
        return Ok(());
    }
    replace(&path, &after, mode).map_err(|source| Error::File { operation: "write", source })
}

/// The name of the server's level, by `<directory>/server.properties`. Minecraft's own default is used if the file is unreadable or does not
/// contain it.
///
/// # Errors
/// The file is not a plain file, or the level is outside of the directory. Then it is unknown where the world is.
pub fn level_name(directory: &Path) -> io::Result<String> {
    let path = directory.join("server.properties");
    let bytes = match plain_fs::read(&path, MAX_BYTES) {
        Err(error) if refused_in(&error).is_some() => return Err(error),
        read => read.unwrap_or_default(),
    };
    let name = java_properties::value(&bytes, "level-name").filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "world".to_owned());
    let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(&name).components().all(is_below) {
        Ok(name)
    } else {
        Err(Refused::new(&path, "has a `level-name` outside of the server's directory").into())
    }
}

fn clear(directory: &Path) -> io::Result<()> {
    for entry in plain_fs::entries(directory)? {
        if entry.name().as_bytes().starts_with(OWN_PREFIX.as_bytes()) && !entry.is_directory() {
            plain_fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let temporary = directory.join(format!("{OWN_PREFIX}new"));
    let mut file = plain_fs::create_anew(&temporary, 0o600)?;
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()?;
    plain_fs::rename(&temporary, path)?;
    plain_fs::sync_directory(directory)
}

/// The file's bytes with the managed keys set. Bytes are used because old files are in Latin-1. Every other line is unchanged.
fn with_keys(before: &[u8], rcon: Rcon<'_>) -> Vec<u8> {
    let Rcon { enabled, port, password } = rcon;
    let port = port.to_string();
    let wanted: [(&str, &str); 5] = [
        ("broadcast-rcon-to-ops", "false"),
        ("enable-rcon", if enabled { "true" } else { "false" }),
        ("rcon.ip", "127.0.0.1"),
        ("rcon.password", password.expose()),
        ("rcon.port", &port),
    ];
    let mut done = [false; 5];
    let mut after = Vec::with_capacity(before.len() + 128);
    for line in logical_lines(before) {
        let Some(which) = wanted.iter().position(|(key, _)| key_of(line) == key.as_bytes()) else {
            after.extend_from_slice(line);
            continue;
        };
        // The game uses the last of several, so only one is kept.
        if !std::mem::replace(&mut done[which], true) {
            let (key, value) = wanted[which];
            let end: &[u8] = if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
            after.extend_from_slice(format!("{key}={value}").as_bytes());
            after.extend_from_slice(end);
        }
    }
    if !after.is_empty() && !after.ends_with(b"\n") {
        after.push(b'\n');
    }
    // A last line with a continuation would swallow the first managed line, so an empty line ends it.
    if logical_lines(&[&after[..], b"x"].concat()).last() != Some(&&b"x"[..]) {
        after.push(b'\n');
    }
    for ((key, value), done) in wanted.iter().zip(done) {
        if !done {
            after.extend_from_slice(format!("{key}={value}\n").as_bytes());
        }
    }
    after
}

/// Keys whose values are secrets: RCON's password, and that of the management server (Minecraft 1.21.9 and later, which generates a new one).
const SECRETS: [&[u8]; 2] = [b"rcon.password", b"management-server-secret"];

/// The file's bytes without the lines that contain secret keys, including comments. This form may be kept in a backup.
pub(crate) fn without_secrets(bytes: &[u8]) -> Vec<u8> {
    let names = |line: &[u8], key: &[u8]| line.windows(key.len()).any(|part| part == key);
    let harmless = |line: &&[u8]| !SECRETS.iter().any(|key| names(line, key));
    logical_lines(bytes).into_iter().filter(harmless).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    const MANAGED: &str =
        "broadcast-rcon-to-ops=false\nenable-rcon=true\nrcon.ip=127.0.0.1\nrcon.password=secret\nrcon.port=25575\n";

    fn rcon(password: &RconPassword) -> Rcon<'_> {
        Rcon { enabled: true, port: 25575, password }
    }

    fn with_managed_keys(text: &str) -> String {
        String::from_utf8(with_keys(text.as_bytes(), rcon(&RconPassword::new("secret")))).unwrap()
    }

    #[test]
    fn missing_file_gets_the_five_managed_keys() {
        assert_eq!(with_managed_keys(""), MANAGED);
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), rcon(&RconPassword::new("secret"))).unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("server.properties")).unwrap(), MANAGED);
    }

    #[test]
    fn disabled_rcon_is_written_and_other_keys_are_unchanged() {
        let password = RconPassword::new("secret");
        let off = with_keys(b"enable-rcon=true\n", Rcon { enabled: false, ..rcon(&password) });
        assert_eq!(
            String::from_utf8(off).unwrap(),
            with_managed_keys("enable-rcon=true\n").replace("rcon=true", "rcon=false")
        );
    }

    #[test]
    fn unmanaged_lines_keep_position_and_bytes() {
        let before = "#Minecraft server properties\n# rcon.port=1\nmotd=a\\\n  rcon.port=2\nrcon.port: 25580\nlevel-name=world\n  enable-rcon = false\nrcon.password=old\\\nlonger\nmax-players=20";
        let after = "#Minecraft server properties\n# rcon.port=1\nmotd=a\\\n  rcon.port=2\nrcon.port=25575\nlevel-name=world\nenable-rcon=true\nrcon.password=secret\nmax-players=20\nbroadcast-rcon-to-ops=false\nrcon.ip=127.0.0.1\n";
        assert_eq!(with_managed_keys(before), after);
    }

    #[test]
    fn level_name_is_read_as_by_the_game() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(level_name(directory.path()).unwrap(), "world", "no file");
        for (text, name) in [
            ("motd=x\n", "world"),
            ("level-name=\n", "world"),
            ("#level-name=old\nlevel-name=lobby\r\n", "lobby"),
            ("level-name=first\n  level-name : My World \n", "My World "),
            ("level-name=worlds\\:a\\\\b\n", "worlds:a\\b"),
        ] {
            fs::write(directory.path().join("server.properties"), text).unwrap();
            assert_eq!(level_name(directory.path()).unwrap(), name, "{text}");
        }
    }

    #[test]
    fn level_outside_of_server_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["../other/world", "/backups/other", "worlds/../../other"] {
            fs::write(directory.path().join("server.properties"), format!("level-name={name}\n")).unwrap();
            let refused = level_name(directory.path()).unwrap_err();
            assert!(refused_in(&refused).is_some(), "{name}: {refused}");
        }
    }

    #[test]
    fn duplicate_key_is_written_once() {
        assert_eq!(with_managed_keys("enable-rcon=false\nx=1\nenable-rcon=false\n").matches("enable-rcon").count(), 1);
    }

    #[test]
    fn non_utf_8_bytes_and_windows_line_ends_survive() {
        let after = with_keys(b"motd=\xa7cred\r\nrcon.port=1\r\n", rcon(&RconPassword::new("secret")));
        assert!(after.starts_with(b"motd=\xa7cred\r\nrcon.port=25575\r\n"), "{after:?}");
    }

    #[test]
    fn file_mode_is_kept_and_correct_file_not_rewritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.properties");
        fs::write(&path, "motd=x\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
        let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap());
        let first = inode();
        write(directory.path(), rcon(&RconPassword::new("secret"))).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o604);
        let second = inode();
        assert_ne!(first, second, "replaced by rename");
        write(directory.path(), rcon(&RconPassword::new("secret"))).unwrap();
        assert_eq!(inode(), second);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn temporary_file_of_killed_process_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), rcon(&RconPassword::new("secret"))).unwrap();
        // Killed before the rename.
        fs::write(directory.path().join(format!("{OWN_PREFIX}x1")), "rcon.password=secret\n").unwrap();
        fs::write(directory.path().join(".server.properties.swp"), "of an editor").unwrap();
        write(directory.path(), rcon(&RconPassword::new("secret"))).unwrap();
        let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, [".server.properties.swp", "server.properties"]);
        assert!(OWN_PREFIX.starts_with(TEMPORARY_PREFIX), "backups leave it out too");
    }

    #[test]
    fn password_that_could_break_its_line_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        for password in ["", "a\nop=true", "a b", "a\\", "pässword"] {
            assert!(
                matches!(write(directory.path(), rcon(&RconPassword::new(password))), Err(Error::Password)),
                "{password}"
            );
        }
    }

    #[test]
    fn redacted_file_contains_no_secret_on_any_line() {
        let file = b"motd=\xa7c\n#rcon.password=old\nrcon.password=new\\\n  goes on\n management-server-secret : x\r\nlevel-name=world";
        assert_eq!(without_secrets(file), b"motd=\xa7c\nlevel-name=world");
        assert_eq!(without_secrets(b""), b"");
    }

    proptest! {
        #[test]
        fn properties_update_is_idempotent(text in "([a-z.=#:\\\\ -]{0,12}|rcon.port=1|enable-rcon:x|rcon.ip)(\n|\r\n|\\\\\n)?([a-z=\\\\\n]{0,20})") {
            let once = with_managed_keys(&text);
            prop_assert_eq!(with_managed_keys(&once), once);
        }
    }
}
