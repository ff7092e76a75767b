//! Pure. Simulates a disk for tests on which one operation fails, as on a failing disk, and all others succeed.
//!
//! A crash ends the process at an operation. Here the process continues, and its error handling runs against the same disk.

use std::cell::RefCell;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::io::Errno;

use super::FsHook;

/// Allows `remaining` operations, refuses the next one, and allows all others.
pub(crate) struct FaultyFs {
    remaining: Option<usize>,
    errno: Errno,
    fault: InjectedFault,
}

/// The refused operation, if any.
#[derive(Clone, Default)]
pub(crate) struct InjectedFault(Rc<RefCell<Option<(&'static str, PathBuf)>>>);

impl FaultyFs {
    /// A disk that returns `with` once, and the record of it.
    pub(crate) fn fail_after(left: usize, with: Errno) -> (Self, InjectedFault) {
        let refused = InjectedFault::default();
        (Self { remaining: Some(left), errno: with, fault: refused.clone() }, refused)
    }
}

impl FsHook for FaultyFs {
    fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
        let Some(left) = self.remaining else { return Ok(()) };
        self.remaining = left.checked_sub(1);
        if self.remaining.is_some() {
            return Ok(());
        }
        *self.fault.0.borrow_mut() = Some((operation, path.to_owned()));
        Err(self.errno.into())
    }
}

impl InjectedFault {
    /// Whether the fault has happened.
    pub(crate) fn has_happened(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// The refused operation, for messages.
    pub(crate) fn operation(&self) -> String {
        self.0
            .borrow()
            .as_ref()
            .map_or_else(String::new, |(operation, path)| format!("{operation} `{}`", path.display()))
    }

    /// Asserts that this text names the file and the error of the disk.
    pub(crate) fn assert_reported(&self, text: &str, with: Errno) {
        let path = self.0.borrow().as_ref().map(|(_, path)| path.display().to_string()).unwrap();
        assert!(
            text.contains(&path) && text.contains(&io::Error::from(with).to_string()),
            "{}: {text}",
            self.operation()
        );
    }
}

/// An error with all its causes, as it is logged.
pub(crate) fn error_text(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
