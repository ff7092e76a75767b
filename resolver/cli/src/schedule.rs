//! Pure. Says in which maintenance windows a change would be applied.

pub(crate) mod partial;
pub(crate) mod when;
pub(crate) mod written;
