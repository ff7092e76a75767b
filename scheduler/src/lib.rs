//! Pure, without features. Decides when a server may change and which safe step is next, and (features `edge` and
//! `agent`) acts on the server.
//!
//! The features add RCON, the plugin directory, and the alarm clock. The crate depends neither on Kubernetes nor on the
//! resolver. The decisions are [`maintenance::Windows::gate`] and [`rollout::next_step`]. Both take `now` as an
//! argument and have no side effects.

#[cfg(feature = "agent")]
pub mod agent;
pub mod announcement;
pub mod backup;
pub mod maintenance;
pub mod observation;
#[cfg(feature = "edge")]
pub mod plugin_data;
pub mod protocol;
#[cfg(feature = "edge")]
pub mod rcon;
pub mod rollout;
#[cfg(feature = "edge")]
pub mod server_list_ping;
#[cfg(feature = "edge")]
pub mod server_properties;
#[cfg(feature = "edge")]
pub mod staging;
#[cfg(feature = "edge")]
pub mod timer;
#[cfg(feature = "edge")]
pub mod world;
