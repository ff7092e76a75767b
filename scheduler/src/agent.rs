//! Edge (writes). What runs inside each server pod: [`init`] before the server, [`sidecar`] beside it, [`stop`] as its preStop hook.
//!
//! One static binary, three commands. The init container makes the volume ready or waits; the sidecar sees, stages, announces and
//! saves; the hook only asks the sidecar to stop the server, and returns as soon as that was sent.

mod announce;
mod asked_restore;
mod backoff;
pub mod clock;
mod copies;
mod damage;
mod desk;
mod error;
pub mod fetch;
mod hot_copy;
mod http;
pub mod init;
mod keeping;
mod loaded;
mod log;
mod new_volume;
mod observe;
mod obstacle;
pub mod on_volume;
mod plugin_data;
pub mod running;
pub mod settings;
mod shared;
pub mod sidecar;
mod sizes;
mod stage;
pub mod stop;
mod stopping;
pub mod watch;

pub use error::Chain;
