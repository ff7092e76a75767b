//! Pure. Defines the API types of Nightshift: `PaperMCServer` and `Plugin` of the group `nightshift.dev`, with schema, CEL rules and printer
//! columns. It has no client and no tokio.

pub mod annotations;
pub mod crd;
pub mod duration;
#[expect(unreachable_pub, reason = "KubeSchema copies each struct into a private block to derive its schema there")]
pub mod paper_mc_server;
#[expect(unreachable_pub, reason = "KubeSchema copies each struct into a private block to derive its schema there")]
pub mod plugin;
pub mod pod_template;
pub mod schema;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
pub use paper_mc_server::{PaperMCServer, PaperMCServerSpec, PaperMCServerStatus};
pub use plugin::{Plugin, PluginSpec, PluginStatus};
