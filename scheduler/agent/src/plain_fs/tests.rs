//! Edge (writes). Checks that no operation follows a link or touches anything but plain files, and that trees of any depth are removed.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use rustix::fs::{CWD, mknodat};

use super::hostile_tree::{Canary, deep};
use super::*;

/// A volume, and a tree beside it that no operation may touch.
struct Scene {
    _directory: tempfile::TempDir,
    volume: PathBuf,
    canary: Canary,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (volume, canary) = (directory.path().join("data"), Canary::new(directory.path().join("canary")));
        fs::create_dir(&volume).unwrap();
        Self { _directory: directory, volume, canary }
    }

    /// Links to a file and to a directory of the tree.
    fn linked(&self) -> [PathBuf; 2] {
        let links = [self.volume.join("file"), self.volume.join("directory")];
        symlink(self.canary.path().join("secret.txt"), &links[0]).unwrap();
        symlink(self.canary.path(), &links[1]).unwrap();
        links
    }
}

fn assert_refused<T>(result: io::Result<T>, problem: &str) {
    let error = result.err().unwrap_or_else(|| panic!("it was not refused: {problem}"));
    assert!(refused_in(&error).is_some_and(|refused| refused.problem == problem), "{error}");
}

#[test]
fn link_is_refused_as_file_and_as_directory_of_a_path() {
    let scene = Scene::new();
    let [file, directory] = scene.linked();
    let below = directory.join("secret.txt");
    for path in [&file, &below] {
        assert_refused(open(path), "is a link");
        assert_refused(open_or_create(path), "is a link");
        assert_refused(read(path, 1_000), "is a link");
    }
    let new = directory.join("new");
    assert_refused(create_new(&new, 0o600), "is a link");
    assert_refused(create_anew(&below, 0o600), "is a link");
    assert_refused(create_directory(&new), "is a link");
    assert_refused(create_directories(&new.join("below")), "is a link");
    assert_refused(remove_file(&below), "is a link");
    assert_refused(remove_tree(&below), "is a link");
    assert_refused(metadata(&below), "is a link");
    assert_refused(entries(&directory), "is a link");
    assert_refused(open_directory(&directory), "is a link");
    assert_refused(sync_directory(&directory), "is a link");
    assert_refused(set_mode(&file, 0o777), "is a link");
    assert_refused(free_bytes(&directory), "is a link");
    fs::write(scene.volume.join("own"), "x").unwrap();
    let own = scene.volume.join("own");
    assert_refused(rename(&own, &new), "is a link");
    assert_refused(rename(&below, &scene.volume.join("stolen")), "is a link");
    assert_refused(hard_link(&below, &scene.volume.join("stolen")), "is a link");
    assert_refused(hard_link(&file, &scene.volume.join("stolen")), "is a link");
    assert!(check_writable(&directory).is_err() && !exists(&below) && !is_directory(&directory));
    assert!(!has_name(&directory, |_| true));
    let found: Vec<_> = Walk::new(&scene.volume).map(|walked| walked.unwrap().entry.path().to_owned()).collect();
    assert_eq!(found, [&scene.volume, &directory, &file, &own].map(Clone::clone), "links are listed, not followed");
    scene.canary.assert_untouched("operations on links");
}

#[test]
fn link_itself_is_moved_copied_and_removed() {
    let scene = Scene::new();
    let [file, directory] = scene.linked();
    rename(&file, &scene.volume.join("moved")).unwrap();
    copy_link(&directory, &scene.volume.join("copied")).unwrap();
    assert_eq!(fs::read_link(scene.volume.join("copied")).unwrap(), scene.canary.path());
    remove_file(&scene.volume.join("moved")).unwrap();
    remove_tree(&directory).unwrap();
    create_anew(&scene.volume.join("copied"), 0o600).unwrap().write_all(b"own").unwrap();
    assert_eq!(fs::read(scene.volume.join("copied")).unwrap(), b"own");
    scene.canary.assert_untouched("operations on the links themselves");
}

#[test]
fn pipe_device_and_directory_are_refused_without_waiting() {
    let scene = Scene::new();
    let (pipe, folder) = (scene.volume.join("pipe"), scene.volume.join("folder"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    fs::create_dir(&folder).unwrap();
    for (path, problem) in
        [(pipe.as_path(), "is a named pipe"), (&folder, "is a directory"), (Path::new("/dev/zero"), "is a device")]
    {
        assert_refused(open(path), problem);
        assert_refused(read(path, 1_000), problem);
        assert_refused(open_or_create(path), problem);
    }
    assert_refused(remove_file(&folder), "is a directory");
    assert_refused(create_anew(&folder, 0o600), "is a directory");
    assert_refused(entries(&pipe), "is a named pipe");
}

#[test]
fn path_that_leads_upwards_is_refused() {
    let scene = Scene::new();
    for path in ["../canary/secret.txt", "a/../../canary/secret.txt"] {
        assert_refused(open(&scene.volume.join(path)), "leads upwards");
        assert_refused(remove_tree(&scene.volume.join(path)), "leads upwards");
    }
    assert_refused(entries(&scene.volume.join("..")), "leads upwards");
    assert!(open(&scene.volume.join("missing")).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
}

#[test]
fn file_larger_than_the_limit_is_refused() {
    let scene = Scene::new();
    let path = scene.volume.join("file");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read(&path, 5).unwrap(), b"12345");
    assert_refused(read(&path, 4), "has more than 4 bytes");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert_refused(read(&path, 1_000), "has more than 1000 bytes");
}

#[test]
fn tree_of_any_depth_and_mode_is_removed_without_following_links() {
    let scene = Scene::new();
    let top = scene.volume.join("top");
    deep(&top, 500);
    symlink(scene.canary.path(), top.join("out")).unwrap();
    fs::create_dir_all(top.join("closed/below")).unwrap();
    fs::write(top.join("closed/below/file"), "x").unwrap();
    set_mode(&top.join("closed/below"), 0o000).unwrap();
    set_mode(&top.join("closed"), 0o500).unwrap();
    let errors = Walk::new(&top).filter_map(Result::err).map(|error| error.source.to_string());
    assert!(errors.into_iter().any(|error| error.ends_with("is more than 128 levels deep")));
    remove_tree(&top).unwrap();
    assert!(!exists(&top));
    assert!(remove_tree(&top).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
    scene.canary.assert_untouched("a tree was removed");
}

#[test]
fn refusal_is_found_behind_other_errors() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);
    let refused = || Refused::new(Path::new("/data/a\nb"), "is a link");
    assert_eq!(refused_in(&Outer(refused().into())), Some(&refused()));
    assert_eq!(refused_in(&Outer(io::Error::other(Outer(refused().into())))), Some(&refused()));
    assert_eq!(refused_in(&Outer(io::ErrorKind::NotFound.into())), None);
    assert_eq!(refused().to_string(), "`/data/a%0Ab` is a link");
}

proptest! {
    #[test]
    fn escaped_path_is_unique_and_printable(a in proptest::collection::vec(any::<u8>(), 0..12), b in proptest::collection::vec(any::<u8>(), 0..12)) {
        prop_assert_eq!(escape_path(&a) == escape_path(&b), a == b);
        prop_assert!(!escape_path(&a).chars().any(char::is_control));
    }
}
