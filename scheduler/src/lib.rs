//! Pure, without features. **When** may a server change, what is the next safe step, and (features `edge` and `agent`) the
//! hands at the server: RCON, the plugin directory, the alarm clock.
//!
//! The crate knows neither Kubernetes nor the resolver. The decisions are [`maintenance::Windows::gate`] and
//! [`rollout::next_step`]; both take `now` as an argument and touch nothing.

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
