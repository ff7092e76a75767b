//! Pure. Turns explanations into text, short text and diagrams.

pub mod phrases;
pub mod short;
pub mod svg;
pub mod text;
