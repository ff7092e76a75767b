//! Edge (reads). JARs as data: what a file's hash is, and what a plugin's description says. Nothing is ever executed.

mod archive;
mod error;
mod hash;
pub mod plugin_descriptor;

pub use archive::Jar;
pub use error::FactsError;
pub use hash::{Algorithm, Hash, Hasher};

#[cfg(test)]
mod tests;
