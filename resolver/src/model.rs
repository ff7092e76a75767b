//! Pure. Defines the data that all parts of the resolver use: catalog, requests, locks, versions.

pub mod api_version;
pub mod budget;
pub mod bundled_plugins;
pub mod catalog;
pub mod checked_catalog;
pub mod compatibility_facts;
pub(crate) mod deciding_plugin;
pub mod delisted;
pub mod did_you_mean;
pub(crate) mod gap;
pub(crate) mod ignore_unknown_fields;
pub(crate) mod image_tag;
pub mod jar_pattern;
#[cfg(feature = "schemars")]
mod json_schema;
pub mod lock;
pub mod lock_diff;
pub mod name_conflict;
pub mod request;
pub mod software;
pub mod unmanaged_jar;
pub mod untrusted_text;
pub mod unusable;
pub mod unverified_build;
pub mod version;
