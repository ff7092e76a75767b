//! Pure. Defines data that the caches keep between passes.

pub(crate) mod baseline;
pub(crate) mod image_pull;
pub(crate) mod keys;
pub(crate) mod pinned_catalog;
pub(crate) mod records;
