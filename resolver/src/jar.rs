//! Edge (reads). Reads JARs as data: the hash of a file, and the content of a plugin's descriptor. No code is ever
//! executed.

mod archive;
mod error;
mod hash;
pub mod plugin_descriptor;

pub use archive::Jar;
pub use error::FactsError;
pub use hash::{Algorithm, Hash, Hasher};

#[cfg(test)]
mod tests;
