//! Edge (writes). Checks a swap in which each file operation fails once, as on a failing or full disk, while the
//! process continues.

use rustix::io::Errno;

use super::super::super::fs_ops::faulty::{FaultyFs, error_text};
use super::*;

/// For each n, operation n fails on the way from one version set to the other. The files are checked, and the swap is
/// repeated, forward or back.
fn fail_everywhere(is_rollback: bool, links: bool, with_error: Errno) {
    for left in 0.. {
        let (server, old, new) = prepared();
        server.swap(&old.files);
        let (steps, refused) = FaultyFs::fail_after(left, with_error);
        let mut disk = if links { Disk::new(steps) } else { Disk::without_links(steps) };
        let ended = swap(&server.volume, &new.files, &mut HashCache::default(), &mut disk);
        if !refused.has_happened() {
            assert!(ended.is_ok() && left > 20, "only {left} operations pass through the hook");
            return;
        }
        let context = format!("when it could not {}", refused.operation());
        refused.assert_reported(&error_text(&ended.expect_err(&context)), with_error);
        assert_old_or_new(&server, &old, &new, &context);

        let goal = if is_rollback { &old } else { &new };
        swap(&server.volume, &goal.files, &mut HashCache::default(), &mut disk).expect("the disk works again");
        assert_eq!(server.files(), merged(goal, &unmanaged()), "at the second try, {context}");
        assert_eq!(server.volume.manifest().unwrap().unwrap().lock, goal.files.lock);
        assert!(!server.volume.journal_path().exists());
        assert_eq!(server.displaced(), BTreeMap::new(), "no managed file is displaced, {context}");
    }
}

#[test]
fn swap_on_failing_disk_is_never_partial_and_retries() {
    fail_everywhere(false, true, Errno::IO);
    fail_everywhere(false, false, Errno::NOSPC);
}

#[test]
fn swap_back_after_failing_disk_restores_whole_previous_lock() {
    fail_everywhere(true, true, Errno::NOSPC);
    fail_everywhere(true, false, Errno::IO);
}

#[test]
fn displaced_jar_is_never_lost_to_failing_disk() {
    for left in 0.. {
        let (server, old) = (Server::new(), old());
        old.store_on(&server);
        server.put("plugins/Warps.jar", &plugin_jar("Warps", "hand made"));
        let (steps, refused) = FaultyFs::fail_after(left, Errno::IO);
        let mut disk = Disk::new(steps);
        let ended = swap(&server.volume, &old.files, &mut HashCache::default(), &mut disk);
        if !refused.has_happened() {
            return;
        }
        refused.assert_reported(&error_text(&ended.unwrap_err()), Errno::IO);
        swap(&server.volume, &old.files, &mut HashCache::default(), &mut disk).unwrap();
        assert_eq!(server.files(), old.by_path());
        let expected = BTreeMap::from([("Warps.jar".into(), plugin_jar("Warps", "hand made"))]);
        assert_eq!(server.displaced(), expected, "when it could not {}", refused.operation());
    }
}
