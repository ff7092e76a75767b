//! Edge (writes). Checks that each file operation may fail once, as on a failing or full disk, while the process
//! continues.

use rustix::io::Errno;

use super::*;
use crate::staging::fs_ops::faulty::{FaultyFs, told};

#[test]
fn plugin_data_save_on_failing_disk_is_never_partial() {
    for left in 0.. {
        let with = if left % 2 == 0 { Errno::IO } else { Errno::NOSPC };
        let server = Server::new();
        let (steps, refused) = FaultyFs::after(left, with);
        let mut disk = Disk::new(steps);
        let ended = keep(&server.volume, &b(), LIMIT, &mut disk, at(0));
        if !refused.has_happened() {
            assert!(ended.is_ok() && left > 20, "only {left} operations: the test does not see them all");
            return;
        }
        let story = format!("when it could not {}", refused.what());
        assert_eq!(server.files(), files(&OLD), "no plugin is touched, {story}");
        let record = match ended {
            // A folder that cannot be saved does not block the update, and is reported.
            Ok(record) => {
                let record = record.expect(&story);
                match record.not_kept.first() {
                    Some(not_kept) => refused.assert_told(&not_kept.to_string(), with),
                    // Settings of an unchanged plugin are never restored automatically.
                    None => assert_eq!(record.settings, None, "{story}"),
                }
                record
            }
            Err(error) => {
                refused.assert_told(&told(&error), with);
                keep(&server.volume, &b(), LIMIT, &mut disk, at(60)).expect("the disk is well again").expect(&story)
            }
        };
        assert_eq!(record.kept.len() + record.not_kept.len(), kept_before_b().len(), "{record:?}");
        assert_eq!(below(&server.path(record.place.as_deref().unwrap())), of_pieces(&OLD, &record.kept), "{story}");
        assert!(server.kept().iter().all(|name| !name.starts_with('.')), "no remains, {story}");
        server.assert_settings_are_whole(&story);
    }
}

#[test]
fn plugin_data_restore_on_failing_disk_is_never_partial() {
    for left in 0.. {
        let with = if left % 2 == 0 { Errno::IO } else { Errno::NOSPC };
        let server = Server::new();
        server.keep(&b(), 0).unwrap();
        server.changed_by_b();
        let (steps, refused) = FaultyFs::after(left, with);
        let mut disk = Disk::new(steps);
        let ended = put_back(&server.volume, &a().lock, &b().lock, |_| false, &mut disk, at(60));
        if !refused.has_happened() {
            assert!(ended.is_ok() && left > 25, "only {left} operations: the test does not see them all");
            return;
        }
        let story = format!("when it could not {}", refused.what());
        refused.assert_told(&told(&ended.expect_err(&story)), with);
        let found = server.files();
        let is_whole = found == files(&NEW) || found == back();
        assert!(
            is_whole || server.volume.plugin_data_journal_path().exists(),
            "without a journal it is whole, {story}"
        );

        finish(&server.volume, &mut disk).expect("the disk is well again");
        put_back(&server.volume, &a().lock, &b().lock, |_| false, &mut disk, at(120)).unwrap();
        assert_eq!(server.files(), back(), "at the second try, {story}");
        assert!(matches!(server.record().unwrap().back, Some(PluginDataRestored::Done { .. })), "{story}");
        assert!(!server.volume.plugin_data_journal_path().exists(), "{story}");
    }
}
