//! Edge (writes). Runs inside each server pod: [`init`] before the server, [`sidecar`] beside it, and [`pre_stop_hook`] as its preStop hook.
//!
//! One static binary has three commands. The init container prepares the volume or waits. The sidecar observes, stages, announces and saves. The
//! hook only asks the sidecar to prepare the stop. SIGTERM, which follows the hook, stops the server.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests prepare and inspect files; the build without tests checks the agent"
    )
)]

mod announce;
mod api;
pub mod backup;
mod backup_size;
mod backups_report;
pub mod clock;
pub mod config;
mod console_session;
mod damage_scan;
mod error_chain;
pub mod fetch;
mod graceful_stop;
mod heartbeat;
#[cfg(test)]
mod hostile_volume;
pub mod init;
mod loaded_content;
mod monitor;
mod mounted_lock;
mod online_backup;
mod persistent_failure;
mod plain_fs;
pub mod play_record;
pub mod plugin_data;
mod plugin_data_step;
pub mod pre_stop_hook;
mod pre_update_backup;
pub mod process_record;
mod prune;
pub mod rcon;
mod requested_restore;
mod retry;
mod rollback_restore;
mod seed_volume;
pub mod server_list_ping;
mod server_log;
pub mod server_properties;
pub mod server_state;
pub mod sidecar;
mod signed_requests;
mod stage;
pub mod staging;
mod state;
pub mod volume_report;
pub mod world;

pub use error_chain::ErrorChain;

#[cfg(test)]
mod tests;
