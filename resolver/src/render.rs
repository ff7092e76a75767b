//! Pure. Turns explanations into text, short text and diagrams.

pub(crate) mod phrases;
pub mod short;
pub mod svg;
pub mod text;
