//! Pure, without features. **When** may a server change, what is the next safe step, and (features `edge` and `agent`) the
//! hands at the server: RCON, the plugin directory, the alarm clock.
//!
//! The crate knows neither Kubernetes nor the resolver. The decisions are [`gate::Windows::gate`] and
//! [`rollout::next_step`]; both take `now` as an argument and touch nothing.

#[cfg(feature = "agent")]
pub mod agent;
#[cfg(feature = "edge")]
pub mod alarm;
pub mod backup;
pub mod countdown;
pub mod gate;
#[cfg(feature = "edge")]
pub mod ping;
#[cfg(feature = "edge")]
pub mod plugin_data;
#[cfg(feature = "edge")]
pub mod properties;
pub mod protocol;
#[cfg(feature = "edge")]
pub mod rcon;
pub mod rollout;
pub mod seen;
#[cfg(feature = "edge")]
pub mod staging;
#[cfg(feature = "edge")]
pub mod world;
