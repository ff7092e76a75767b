//! Edge (reads). Measures the size of a backup from the metadata of each file that it would contain, without reading
//! the worlds.

use std::io;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use super::LiveReads;
use super::contents::{self, BackupSource};
use crate::world::Worlds;
use agent_api::Contents;
use agent_api::backup_size::Sizes;

/// The size is unknown.
#[derive(Debug, thiserror::Error)]
pub enum SizeUnknown {
    /// The worlds could not be found.
    #[error("could not find the worlds")]
    Worlds(#[source] io::Error),
    /// A path could not be read.
    #[error(transparent)]
    Contents(#[from] contents::Error),
    /// The files are too many for the time limit. A partial sum would be mistaken for the whole.
    #[error("not all files were checked within {} s", .0.as_secs())]
    TooLong(SignedDuration),
}

/// Measures a backup of everything, `within` this time.
pub fn measure(data: &Path, within: SignedDuration, now: impl Fn() -> Timestamp) -> Result<Sizes, SizeUnknown> {
    let at = now();
    let worlds = Worlds::read(data).map_err(SizeUnknown::Worlds)?;
    let size = |contents| {
        let (mut bytes, mut entries) = (0_u64, 0_u64);
        // The server may be running, and files that disappear meanwhile do not count.
        let source = BackupSource { data, worlds: &worlds, contents, reading: LiveReads::Online };
        source.for_each(|item| {
            bytes = bytes.saturating_add(item.content.size());
            entries += 1;
            if now().duration_since(at) > within { Err(SizeUnknown::TooLong(within)) } else { Ok(()) }
        })?;
        Ok::<_, SizeUnknown>((bytes, entries))
    };
    let (worlds, world_entries) = size(Contents::Worlds)?;
    let (server_files, server_file_entries) = size(Contents::ServerFiles)?;
    Ok(Sizes { at, worlds, server_files, world_entries, server_file_entries })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use super::*;

    fn a_server() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, size) in [
            ("world/level.dat", 100),
            ("world/region/r.0.0.mca", 8_192),
            ("world_nether/level.dat", 50),
            ("world_nether/session.lock", 3),
            ("plugins/A.jar", 1_000),
            ("plugins/A/config.yml", 20),
            ("cache/mojang.jar", 50_000),
            (".nightshift/manifest.json", 700),
        ] {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; size]).unwrap();
        }
        directory
    }

    #[test]
    fn size_counts_exactly_the_files_a_backup_would_hold() {
        let server = a_server();
        let sizes = measure(server.path(), SignedDuration::from_secs(60), || Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((sizes.worlds, sizes.server_files), (8_342, 1_020));
        // `world`, `world/region` and two files, `world_nether` and one. `plugins`, `plugins/A` and two files.
        assert_eq!((sizes.world_entries, sizes.server_file_entries), (6, 4));
        assert_eq!(sizes.space_needed(Contents::Everything), 9_362 + 1 + 10 * 2_560 + 16_384);
        assert_eq!(sizes.total(Contents::Everything), 9_362);
        assert_eq!([Contents::Worlds, Contents::ServerFiles].map(|contents| sizes.total(contents)), [8_342, 1_020]);
    }

    #[test]
    fn size_of_too_many_files_is_unknown() {
        let server = a_server();
        let seconds = Cell::new(0);
        let slow = || {
            seconds.set(seconds.get() + 10);
            Timestamp::from_second(seconds.get()).unwrap()
        };
        let problem = measure(server.path(), SignedDuration::from_secs(60), slow).unwrap_err();
        assert_eq!(problem.to_string(), "not all files were checked within 60 s");
        assert!(seconds.get() <= 80, "the measurement must stop at once: {}", seconds.get());
    }
}
