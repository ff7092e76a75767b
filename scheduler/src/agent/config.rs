//! Pure. What the agent's containers are told by their environment.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::backup::due::BackupBefore;
use crate::protocol::STOP_TIMEOUT_SECONDS;
use crate::protocol::signature::Key;
use crate::rcon::RconPassword;

/// For `agent init`.
#[derive(Debug, Clone, clap::Args)]
pub struct InitConfig {
    /// Where the volume is mounted.
    #[arg(long, env = "NIGHTSHIFT_DATA", default_value = "/data")]
    pub data: PathBuf,
    /// The directory that the pod's containers share.
    #[arg(long, env = "NIGHTSHIFT_SHARED", default_value = "/nightshift")]
    pub shared: PathBuf,
    /// The files of the lock, mounted from its ConfigMap.
    #[arg(long, env = "NIGHTSHIFT_FILES", default_value = "/etc/nightshift/files.json")]
    pub files: PathBuf,
    /// The operator's store, such as `http://nightshift:8471`; empty for none.
    #[arg(long, env = "NIGHTSHIFT_STORE_URL", default_value = "")]
    pub store_url: String,
    /// The password that the server's RCON gets.
    #[arg(long, env = "NIGHTSHIFT_RCON_PASSWORD", hide_env_values = true)]
    pub rcon_password: RconPassword,
    /// The port that the server's RCON gets.
    #[arg(long, env = "NIGHTSHIFT_RCON_PORT", default_value_t = 25575)]
    pub rcon_port: u16,
    /// Whether the server gets any RCON.
    #[arg(long, env = "NIGHTSHIFT_RCON_ENABLED", default_value_t = true, action = clap::ArgAction::Set)]
    pub rcon_enabled: bool,
    /// The program that the server's container finds in the shared directory, as its preStop hook: this one.
    #[arg(long, default_value = "/proc/self/exe")]
    pub hook: PathBuf,
    /// Where the kubelet looks for the last words of a container.
    #[arg(long, default_value = "/dev/termination-log")]
    pub termination_log: PathBuf,
    /// Copies before an update.
    #[command(flatten)]
    pub copies: BackupConfig,
    /// How many bytes the data folder of a plugin may have to be kept before its JAR changes; 0: none is kept.
    #[arg(long, env = "NIGHTSHIFT_KEEP_PLUGIN_DATA", default_value_t = 0)]
    pub keep_plugin_data: u64,
}

/// Which copies `agent init` takes, and how many stay.
#[derive(Debug, Clone, clap::Args)]
pub struct BackupConfig {
    /// Where the copies of this server lie; none are taken without.
    #[arg(long, env = "NIGHTSHIFT_BACKUPS")]
    pub backups: Option<PathBuf>,
    /// Before which updates.
    #[arg(long, env = "NIGHTSHIFT_BACKUP_BEFORE", default_value = "Never")]
    pub backup_before: BackupBefore,
    /// An order to put back what a failed set has changed, mounted from its `ConfigMap`; mostly not there.
    #[arg(long, env = "NIGHTSHIFT_RESTORE_ORDER")]
    pub restore_order: Option<PathBuf>,
    /// Where the copies of other servers lie that a new volume may get, on a claim that is mounted for the first start alone.
    #[arg(long, env = "NIGHTSHIFT_RESTORE_SHELVES")]
    pub restore_shelves: Option<PathBuf>,
    /// At most so many good ones.
    #[arg(long, env = "NIGHTSHIFT_BACKUP_MAX_COUNT", default_value_t = 10)]
    pub backup_max_count: u32,
    /// How old one may get, in seconds.
    #[arg(long, env = "NIGHTSHIFT_BACKUP_MAX_AGE")]
    pub backup_max_age: Option<u32>,
}

/// For `agent sidecar`.
#[derive(Debug, Clone, clap::Args)]
pub struct SidecarConfig {
    /// Where the volume is mounted.
    #[arg(long, env = "NIGHTSHIFT_DATA", default_value = "/data")]
    pub data: PathBuf,
    /// The directory that the pod's containers share.
    #[arg(long, env = "NIGHTSHIFT_SHARED", default_value = "/nightshift")]
    pub shared: PathBuf,
    /// The operator's store; empty for none.
    #[arg(long, env = "NIGHTSHIFT_STORE_URL", default_value = "")]
    pub store_url: String,
    /// The key that requests are signed with.
    #[arg(long, env = "NIGHTSHIFT_AGENT_KEY", hide_env_values = true, value_parser = Key::from_hex)]
    pub agent_key: Key,
    /// RCON's password.
    #[arg(long, env = "NIGHTSHIFT_RCON_PASSWORD", hide_env_values = true)]
    pub rcon_password: RconPassword,
    /// RCON's port on the loopback.
    #[arg(long, env = "NIGHTSHIFT_RCON_PORT", default_value_t = 25575)]
    pub rcon_port: u16,
    /// Whether the server has RCON. One that has none is stopped by SIGTERM, and its log is all that it says.
    #[arg(long, env = "NIGHTSHIFT_RCON_ENABLED", default_value_t = true, action = clap::ArgAction::Set)]
    pub rcon_enabled: bool,
    /// The game's port.
    #[arg(long, env = "NIGHTSHIFT_GAME_PORT", default_value_t = 25565)]
    pub game_port: u16,
    /// The UID of this pod: requests for another one are refused.
    #[arg(long, env = "NIGHTSHIFT_POD_UID")]
    pub pod_uid: String,
    /// The address of this pod, on which RCON must not answer; empty for no check.
    #[arg(long, env = "NIGHTSHIFT_POD_IP", default_value = "")]
    pub pod_ip: String,
    /// Where the copies of this server lie; none are taken without.
    #[arg(long, env = "NIGHTSHIFT_BACKUPS")]
    pub backups: Option<PathBuf>,
    /// After a copy of the running server: at most so many good ones stay. Not set: all do, because nobody said how many are wanted.
    #[arg(long, env = "NIGHTSHIFT_BACKUP_MAX_COUNT")]
    pub backup_max_count: Option<u32>,
    /// The same: how old one may get, in seconds.
    #[arg(long, env = "NIGHTSHIFT_BACKUP_MAX_AGE")]
    pub backup_max_age: Option<u32>,
    /// How long a stop with its save may take, in seconds.
    #[arg(long, env = "NIGHTSHIFT_STOP_TIMEOUT", default_value_t = STOP_TIMEOUT_SECONDS)]
    pub stop_timeout: u64,
    /// What players read when they are disconnected for a stop.
    #[arg(
        long,
        env = "NIGHTSHIFT_KICK_TEXT",
        default_value = "The server stops now. Please join again in a few minutes."
    )]
    pub kick_text: String,
    /// What they read before a stop that nobody announced.
    #[arg(long, env = "NIGHTSHIFT_STOP_TEXT", default_value = "The server is stopping now.")]
    pub stop_text: String,
    /// What they read who joined during a countdown that was for an empty server only.
    #[arg(
        long,
        env = "NIGHTSHIFT_CALLED_OFF_TEXT",
        default_value = "The restart is called off, because you joined. It comes when nobody is on."
    )]
    pub called_off_text: String,
    /// Where requests and probes are answered.
    #[arg(long, default_value_t = SocketAddr::from(([0, 0, 0, 0], crate::protocol::PORT)))]
    pub listen: SocketAddr,
}

/// For `agent stop`.
#[derive(Debug, Clone, clap::Args)]
pub struct StopConfig {
    /// The directory that the pod's containers share.
    #[arg(long, env = "NIGHTSHIFT_SHARED", default_value = "/nightshift")]
    pub shared: PathBuf,
    /// How long to wait until the stop was sent, in seconds.
    #[arg(long, env = "NIGHTSHIFT_STOP_TIMEOUT", default_value_t = STOP_TIMEOUT_SECONDS)]
    pub stop_timeout: u64,
}

/// The name of the Unix socket in the shared directory.
pub const SOCKET: &str = "agent.sock";

/// The name of the note beside it that says which line of a countdown was said last.
pub const LAST_SAID: &str = "last-said.json";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        sidecar: SidecarConfig,
    }

    #[derive(Debug, Parser)]
    struct Hook {
        #[command(flatten)]
        stop: StopConfig,
    }

    #[test]
    fn a_hook_that_is_told_nothing_waits_for_five_minutes_and_else_as_long_as_it_is_told() {
        let waits = |line: &[&str]| Hook::try_parse_from(line).unwrap().stop.stop_timeout;
        assert_eq!(waits(&["stop"]), 300, "templates of servers with the default say nothing");
        assert_eq!(waits(&["stop", "--stop-timeout", "1200"]), 1_200);
    }

    #[test]
    fn no_secret_is_printed() {
        let key = "ab".repeat(32);
        let line = ["agent", "--agent-key", &key, "--rcon-password", "hunter2", "--pod-uid", "u"];
        let parsed = Line::try_parse_from(line).unwrap();
        let printed = format!("{:?}", parsed.sidecar);
        assert!(!printed.contains("hunter2") && !printed.contains("abab"), "{printed}");
    }
}
