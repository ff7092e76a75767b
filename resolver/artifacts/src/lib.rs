//! Edge (writes). Downloads files, stores them by their hashes, and reads the descriptors in JARs. No code in them is
//! ever executed.

mod archive;
pub mod content_store;
mod descriptor_rules;
pub mod download;
mod error;
mod hash;
pub mod http_client;
pub mod http_server;
pub mod java_properties;
pub mod plugin_descriptor;
mod update_folder;
mod url_text;
mod yaml;

pub use archive::Jar;
pub use descriptor_rules::DescriptorRule;
pub use error::FactsError;
pub use hash::{Algorithm, Hash, Hasher};
pub use update_folder::update_folder_name;
pub use url_text::url_for_display;

#[cfg(test)]
mod tests;
