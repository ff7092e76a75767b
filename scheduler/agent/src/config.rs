//! Edge (reads). Defines the settings that the agent's containers read from their environment.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::backup::due::BackupBefore;
use crate::plain_fs;
use crate::rcon::RconPassword;
use agent_api::STOP_TIMEOUT_SECONDS;
use agent_api::signature::Key;
use agent_api::signed::Verifier;

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
    /// The digest of these files, from the pod template. Other files do not count.
    #[arg(long, env = "NIGHTSHIFT_FILES_DIGEST")]
    pub files_digest: String,
    /// The operator's store, such as `http://nightshift:8471`. Empty means no store.
    #[arg(long, env = "NIGHTSHIFT_STORE_URL", default_value = "")]
    pub store_url: String,
    /// The password for the server's RCON.
    #[arg(long, env = "NIGHTSHIFT_RCON_PASSWORD", hide_env_values = true)]
    pub rcon_password: RconPassword,
    /// The port for the server's RCON.
    #[arg(long, env = "NIGHTSHIFT_RCON_PORT", default_value_t = 25575)]
    pub rcon_port: u16,
    /// Whether RCON is enabled for the server.
    #[arg(long, env = "NIGHTSHIFT_RCON_ENABLED", default_value_t = true, action = clap::ArgAction::Set)]
    pub rcon_enabled: bool,
    /// The program that is placed in the shared directory as the preStop hook of the server's container. By default this program itself.
    #[arg(long, default_value = "/proc/self/exe")]
    pub hook: PathBuf,
    /// The file from which the kubelet reads a container's termination message.
    #[arg(long, default_value = "/dev/termination-log")]
    pub termination_log: PathBuf,
    /// Backups before an update.
    #[command(flatten)]
    pub backup: BackupConfig,
    /// The largest data folder of a plugin, in bytes, that is kept before the plugin's JAR changes. 0 means that none is kept.
    #[arg(long, env = "NIGHTSHIFT_KEEP_PLUGIN_DATA", default_value_t = 0)]
    pub keep_plugin_data: u64,
}

/// Which backups `agent init` takes, and how many it keeps.
#[derive(Debug, Clone, clap::Args)]
pub struct BackupConfig {
    /// The repository of this server's backups. Without it no backups are taken.
    #[arg(long, env = "NIGHTSHIFT_BACKUPS")]
    pub backups: Option<PathBuf>,
    /// The updates before which a backup is taken.
    #[arg(long, env = "NIGHTSHIFT_BACKUP_BEFORE", default_value = "Never")]
    pub backup_before: BackupBefore,
    /// The restore request that reverts the changes of a failed version set, mounted from its `ConfigMap`. Usually absent.
    #[arg(long = "restore-order", env = "NIGHTSHIFT_RESTORE_ORDER", requires = "signed_by")]
    pub restore_request: Option<PathBuf>,
    /// The public key of the operator for this server, with which requests are verified.
    #[arg(long, env = "NIGHTSHIFT_SIGNED_BY")]
    pub signed_by: Option<Verifier>,
    /// The repositories of other servers from which a new volume may be restored, on a claim that is mounted only for the first start.
    #[arg(long, env = "NIGHTSHIFT_RESTORE_REPOSITORIES")]
    pub restore_repositories: Option<PathBuf>,
    /// The maximum number of successful backups to keep.
    #[arg(long, env = "NIGHTSHIFT_BACKUP_MAX_COUNT", default_value_t = 10)]
    pub backup_max_count: u32,
    /// The maximum age of a backup, in seconds.
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
    /// The operator's store. Empty means no store.
    #[arg(long, env = "NIGHTSHIFT_STORE_URL", default_value = "")]
    pub store_url: String,
    /// The key with which requests are signed, from the file at this path. A variable would be readable through a link to
    /// `/proc/self/environ`.
    #[arg(long = "agent-key-file", env = "NIGHTSHIFT_AGENT_KEY_FILE", value_parser = read_key)]
    pub agent_key: Key,
    /// The password for RCON.
    #[arg(long, env = "NIGHTSHIFT_RCON_PASSWORD", hide_env_values = true)]
    pub rcon_password: RconPassword,
    /// The RCON port on the loopback interface.
    #[arg(long, env = "NIGHTSHIFT_RCON_PORT", default_value_t = 25575)]
    pub rcon_port: u16,
    /// Whether the server has RCON. A server without RCON is stopped by SIGTERM, and the agent reads only its log.
    #[arg(long, env = "NIGHTSHIFT_RCON_ENABLED", default_value_t = true, action = clap::ArgAction::Set)]
    pub rcon_enabled: bool,
    /// The game's port.
    #[arg(long, env = "NIGHTSHIFT_GAME_PORT", default_value_t = 25565)]
    pub game_port: u16,
    /// The UID of this pod. Requests for another UID are refused.
    #[arg(long, env = "NIGHTSHIFT_POD_UID")]
    pub pod_uid: String,
    /// The address of this pod, on which RCON must not answer. Empty skips the check.
    #[arg(long, env = "NIGHTSHIFT_POD_IP", default_value = "")]
    pub pod_ip: String,
    /// The repository of this server's backups. Without it no backups are taken.
    #[arg(long, env = "NIGHTSHIFT_BACKUPS")]
    pub backups: Option<PathBuf>,
    /// The maximum number of successful backups to keep after an online backup. If it is not set, all are kept, because no limit was configured.
    #[arg(long, env = "NIGHTSHIFT_BACKUP_MAX_COUNT")]
    pub backup_max_count: Option<u32>,
    /// The maximum age of a backup after an online backup, in seconds.
    #[arg(long, env = "NIGHTSHIFT_BACKUP_MAX_AGE")]
    pub backup_max_age: Option<u32>,
    /// How long a stop with its save may take, in seconds.
    #[arg(long, env = "NIGHTSHIFT_STOP_TIMEOUT", default_value_t = STOP_TIMEOUT_SECONDS)]
    pub stop_timeout: u64,
    /// The text that players read when they are disconnected for a stop.
    #[arg(
        long,
        env = "NIGHTSHIFT_KICK_TEXT",
        default_value = "The server stops now. Please join again in a few minutes."
    )]
    pub kick_text: String,
    /// The text that players read before a stop that was not announced.
    #[arg(long, env = "NIGHTSHIFT_STOP_TEXT", default_value = "The server is stopping now.")]
    pub stop_text: String,
    /// The text for players who joined during a countdown that was only for an empty server.
    #[arg(
        long,
        env = "NIGHTSHIFT_CALLED_OFF_TEXT",
        default_value = "The restart is cancelled because you joined. It takes place when no players are online."
    )]
    pub called_off_text: String,
    /// The address on which requests and probes are served.
    #[arg(long, default_value_t = SocketAddr::from(([0, 0, 0, 0], agent_api::PORT)))]
    pub listen: SocketAddr,
}

/// Limit of the file with the key, which has 64 hex digits.
const MAX_KEY_BYTES: u64 = 1024;

fn read_key(path: &str) -> Result<Key, String> {
    let bytes = plain_fs::read_provided(Path::new(path), MAX_KEY_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    Key::from_hex(&text).map_err(|error| error.to_string())
}

/// For `agent backup-directory`.
#[derive(Debug, Clone, clap::Args)]
pub struct BackupDirectoryConfig {
    /// The repository of this server's backups, on the backup volume.
    #[arg(long, env = "NIGHTSHIFT_BACKUPS")]
    pub backups: PathBuf,
}

/// For `agent stop`.
#[derive(Debug, Clone, clap::Args)]
pub struct StopConfig {
    /// The directory that the pod's containers share.
    #[arg(long, env = "NIGHTSHIFT_SHARED", default_value = "/nightshift")]
    pub shared: PathBuf,
    /// How long to wait until the sidecar has prepared the stop, in seconds.
    #[arg(long, env = "NIGHTSHIFT_STOP_TIMEOUT", default_value_t = STOP_TIMEOUT_SECONDS)]
    pub stop_timeout: u64,
}

/// The name of the Unix socket in the shared directory.
pub const SOCKET: &str = "agent.sock";

/// The name of the file beside it that records the last line sent of a countdown.
pub const LAST_ANNOUNCED: &str = "last-said.json";

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
    fn stop_hook_waits_five_minutes_by_default() {
        let waits = |line: &[&str]| Hook::try_parse_from(line).unwrap().stop.stop_timeout;
        assert_eq!(waits(&["stop"]), 300, "pod templates omit the option for the default");
        assert_eq!(waits(&["stop", "--stop-timeout", "1200"]), 1_200);
    }

    #[test]
    fn secrets_are_never_printed() {
        let key = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(key.path(), "ab".repeat(32)).unwrap();
        let path = key.path().display().to_string();
        let line = ["agent", "--agent-key-file", &path, "--rcon-password", "hunter2", "--pod-uid", "u"];
        let parsed = Line::try_parse_from(line).unwrap();
        let printed = format!("{:?}", parsed.sidecar);
        assert!(!printed.contains("hunter2") && !printed.contains("abab"), "{printed}");

        std::fs::write(key.path(), "abc").unwrap();
        let error = Line::try_parse_from(line).unwrap_err().to_string();
        assert!(error.contains("the agent key must be 64 hex digits") && !error.contains("abc"), "{error}");
    }
}
