//! Edge (writes). Checks that each file operation may fail once, as on a failing or full disk, while the process
//! continues.

use rustix::io::Errno;

use super::*;
use crate::staging::fs_ops::faulty::{FaultyFs, error_text};

#[test]
fn plugin_data_save_on_failing_disk_is_never_partial() {
    for left in 0.. {
        let with = if left % 2 == 0 { Errno::IO } else { Errno::NOSPC };
        let server = Server::new();
        let (steps, refused) = FaultyFs::fail_after(left, with);
        let mut disk = Disk::new(steps);
        let ended = save_data(&server.volume, &set_b(), LIMIT, &mut disk, at(0));
        if !refused.has_happened() {
            assert!(ended.is_ok() && left > 20, "only {left} operations pass through the hook");
            return;
        }
        let context = format!("when it could not {}", refused.operation());
        assert_eq!(server.files(), files(&OLD), "no plugin's files may change, {context}");
        let record = match ended {
            // A folder that cannot be saved does not block the update, and is reported.
            Ok(record) => {
                let record = record.expect(&context);
                match record.not_kept.first() {
                    Some(not_saved) => refused.assert_reported(&not_saved.to_string(), with),
                    // Settings of an unchanged plugin are never restored automatically.
                    None => assert_eq!(record.settings, None, "{context}"),
                }
                record
            }
            Err(error) => {
                refused.assert_reported(&error_text(&error), with);
                save_data(&server.volume, &set_b(), LIMIT, &mut disk, at(60))
                    .expect("the disk works again")
                    .expect(&context)
            }
        };
        assert_eq!(record.kept.len() + record.not_kept.len(), saved_before_b().len(), "{record:?}");
        assert_eq!(
            files_below(&server.path(record.place.as_deref().unwrap())),
            files_of_pieces(&OLD, &record.kept),
            "{context}"
        );
        assert!(server.saved_names().iter().all(|name| !name.starts_with('.')), "no unfinished folders, {context}");
        server.assert_settings_are_whole(&context);
    }
}

#[test]
fn plugin_data_restore_on_failing_disk_is_never_partial() {
    for left in 0.. {
        let with = if left % 2 == 0 { Errno::IO } else { Errno::NOSPC };
        let server = Server::new();
        server.save(&set_b(), 0).unwrap();
        server.run_b();
        let (steps, refused) = FaultyFs::fail_after(left, with);
        let mut disk = Disk::new(steps);
        let ended = restore_data(&server.volume, &set_a().lock, &set_b().lock, |_| false, &mut disk, at(60));
        if !refused.has_happened() {
            assert!(ended.is_ok() && left > 25, "only {left} operations pass through the hook");
            return;
        }
        let context = format!("when it could not {}", refused.operation());
        refused.assert_reported(&error_text(&ended.expect_err(&context)), with);
        let found = server.files();
        let is_whole = found == files(&NEW) || found == after_rollback();
        assert!(
            is_whole || server.volume.plugin_data_journal_path().exists(),
            "mixed files without a journal, {context}"
        );

        finish(&server.volume, &mut disk).expect("the disk works again");
        restore_data(&server.volume, &set_a().lock, &set_b().lock, |_| false, &mut disk, at(120)).unwrap();
        assert_eq!(server.files(), after_rollback(), "at the second try, {context}");
        assert!(matches!(server.record().unwrap().back, Some(PluginDataRestored::Done { .. })), "{context}");
        assert!(!server.volume.plugin_data_journal_path().exists(), "{context}");
    }
}
