//! Edge (writes). Formats answers, and writes files.

pub(crate) mod atomic_write;
pub(crate) mod changes;
pub(crate) mod hotfix_note;
pub(crate) mod join;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod yaml_scalar;
