//! Edge (writes). Opens files that the image or Kubernetes provides, which no server can write. Their paths may contain links: a mounted
//! `ConfigMap` consists of them.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::{create_anew, rename, set_mode};

/// Limit of a file from a `ConfigMap`. Kubernetes limits the whole object to 1 MiB, a little more with the names.
pub(crate) const MAX_CONFIG_MAP_BYTES: u64 = 2 * 1024 * 1024;

/// Reads a mounted file of at most `most` bytes.
pub(crate) fn read_provided(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    super::read_open(File::open(path)?, path, most)
}

/// Writes to the file from which the kubelet reads a message. It is mounted by itself, so it cannot be replaced.
pub(crate) fn overwrite_provided(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// Replaces `target` by a copy of `program`, which all users may execute and none may write.
pub(crate) fn replace_with_program(program: &Path, target: &Path) -> io::Result<()> {
    let temporary = target.with_extension("new");
    io::copy(&mut File::open(program)?, &mut create_anew(&temporary, 0o600)?)?;
    set_mode(&temporary, 0o555)?;
    rename(&temporary, target)
}
