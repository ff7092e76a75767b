//! Pure. Renders the environment of the server's container, which its image defines, and of the agent's.
//!
//! Names and meanings of the image's variables: documentation and start scripts of itzg/docker-minecraft-server.

use agent_api::signed::Verifier;
use agent_api::{FILES_KEY, FileSet, NIGHTSHIFT_DIR};
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector};
use resolver::model::lock::Lock;

use super::super::secret::{AGENT_KEY, RCON_PASSWORD, secret_name};
use super::super::service::GAME_PORT;
use super::{
    DATA_DIR, INIT_REQUESTS_DIR, KEY_DIR, LOCK_DIR, RESTORE_DIR, ROLLBACK_REQUEST_KEY, SHARED_DIR, backups_path,
};
use crate::Config;
use validate::image_contract::{BACKUP_BEFORE, BACKUPS, ENABLE_RCON, FILES_DIGEST, KEEP_PLUGIN_DATA, SIGNED_BY};
use validate::{BackupVolume, CheckedServer, Texts};

/// How much shorter the image's stop timeout is than the one in the spec. The image stops Java itself if the hook could not, and kills it
/// after this timeout (60 s by default).
const STOP_MARGIN_SECONDS: i64 = 10;
/// Minimum for the image's stop timeout. A server that stalls for a whole tick of its watchdog begins to save only after that.
const MIN_STOP_SECONDS: i64 = 60;

/// The image's variable with lines for server.properties.
const SERVER_PROPERTIES: &str = "CUSTOM_SERVER_PROPERTIES";

/// How long the image waits for Java to exit before it kills it, in seconds.
pub(super) fn stop_duration_seconds(server: &CheckedServer) -> i64 {
    (server.pod.stop_timeout.as_secs() - STOP_MARGIN_SECONDS).max(MIN_STOP_SECONDS)
}

/// The environment of the server's container.
pub(super) fn server_env(server: &CheckedServer, lock: &Lock, files: &FileSet, heap_mib: Option<u64>) -> Vec<EnvVar> {
    let mut variables = vec![
        plain_env("EULA", "TRUE"),
        plain_env("TYPE", "PAPER"),
        plain_env("VERSION", &files.minecraft),
        plain_env("PAPER_CUSTOM_JAR", &format!("/data/{}", files.server.path)),
        plain_env("SKIP_DOWNLOAD_DEFAULTS", "true"),
        plain_env(ENABLE_RCON, if server.pod.rcon.enabled { "true" } else { "false" }),
        plain_env("RCON_PORT", &server.pod.rcon.port.to_string()),
        rcon_password("RCON_PASSWORD", server),
        plain_env("STOP_DURATION", &stop_duration_seconds(server).to_string()),
        // The image rewrites server.properties from its environment after Nightshift's init container wrote it. Required lines are
        // therefore set in both places.
        plain_env(SERVER_PROPERTIES, "rcon.ip=127.0.0.1\nbroadcast-rcon-to-ops=false"),
        plain_env("TZ", &server.updates.zone),
    ];
    if let Some(mib) = heap_mib {
        variables.push(plain_env("MEMORY", ""));
        variables.push(plain_env("JVM_OPTS", &format!("-Xms{mib}M -Xmx{mib}M")));
    }
    if !lock.jvm_flags.is_empty() {
        variables.push(plain_env("JVM_XX_OPTS", &lock.jvm_flags.join(" ")));
    }
    variables
}

/// Nightshift's variables and the user's. The user's value wins for every variable that `check` allows. Lines for server.properties are
/// joined, with Nightshift's last, because both apply. The API server would reject the object if a name occurred twice.
pub(super) fn merge_env(managed: Vec<EnvVar>, users: Vec<EnvVar>) -> Vec<EnvVar> {
    let mut merged: Vec<EnvVar> = Vec::with_capacity(managed.len() + users.len());
    for mut variable in managed {
        match users.iter().find(|user_variable| user_variable.name == variable.name) {
            Some(user_variable) if variable.name == SERVER_PROPERTIES => {
                let lines = [user_variable.value.as_deref(), variable.value.as_deref()];
                variable.value = Some(lines.into_iter().flatten().collect::<Vec<_>>().join("\n"));
                merged.push(variable);
            }
            Some(_) => {}
            None => merged.push(variable),
        }
    }
    merged.extend(users.into_iter().filter(|user_variable| user_variable.name != SERVER_PROPERTIES));
    merged
}

/// The updates before which the init container takes backups. A server without backups keeps its existing template.
pub(super) fn backup_env(server: &CheckedServer) -> Option<EnvVar> {
    server.data.backup.as_ref().map(|backup| plain_env(BACKUP_BEFORE, backup.before_update.as_str()))
}

/// The plugin data that the init container saves, and the path of the restore request. A server without saved data and backups keeps its
/// existing template.
pub(super) fn rollback_env(server: &CheckedServer) -> Vec<EnvVar> {
    let mut variables = Vec::new();
    if server.accepts_restore_requests() {
        variables.push(plain_env("NIGHTSHIFT_RESTORE_ORDER", &format!("{INIT_REQUESTS_DIR}/{ROLLBACK_REQUEST_KEY}")));
    }
    if server.data.keep_plugin_data > 0 {
        variables.push(plain_env(KEEP_PLUGIN_DATA, &server.data.keep_plugin_data.to_string()));
    }
    variables.extend(server.foreign_restore().map(|_| plain_env("NIGHTSHIFT_RESTORE_REPOSITORIES", RESTORE_DIR)));
    variables
}

/// What the init container accepts: files of the lock with this digest, and requests with a signature for this key.
pub(super) fn trust_env(files: &FileSet, verifier: &Verifier) -> [EnvVar; 2] {
    [plain_env(FILES_DIGEST, &files.digest()), plain_env(SIGNED_BY, &verifier.to_string())]
}

/// The file with the agent's key.
pub(super) fn key_env() -> EnvVar {
    plain_env("NIGHTSHIFT_AGENT_KEY_FILE", &format!("{KEY_DIR}/{AGENT_KEY}"))
}

/// The directory of the backups.
pub(super) fn repository_env(server: &CheckedServer) -> Option<EnvVar> {
    Some(plain_env(BACKUPS, &repository(server, &server.data.backup.as_ref()?.volume)))
}

/// The environment of the init container and the sidecar.
pub(super) fn agent_env(server: &CheckedServer, config: &Config) -> Vec<EnvVar> {
    let mut variables = vec![
        plain_env("NIGHTSHIFT_DATA", DATA_DIR),
        plain_env("NIGHTSHIFT_SHARED", SHARED_DIR),
        plain_env("NIGHTSHIFT_FILES", &format!("{LOCK_DIR}/{FILES_KEY}")),
        plain_env("NIGHTSHIFT_STORE_URL", &config.store_url),
        rcon_password("NIGHTSHIFT_RCON_PASSWORD", server),
        plain_env("NIGHTSHIFT_RCON_PORT", &server.pod.rcon.port.to_string()),
        plain_env("NIGHTSHIFT_GAME_PORT", &GAME_PORT.to_string()),
        field_env("NIGHTSHIFT_POD_UID", "metadata.uid"),
        field_env("NIGHTSHIFT_POD_IP", "status.podIP"),
        plain_env("NIGHTSHIFT_STOP_TIMEOUT", &server.pod.stop_timeout.as_secs().to_string()),
    ];
    if !server.pod.rcon.enabled {
        // Set only if RCON is off: an additional variable would change the template of every server.
        variables.push(plain_env("NIGHTSHIFT_RCON_ENABLED", "false"));
    }
    if let Some(backup) = &server.data.backup {
        variables.extend(repository_env(server));
        // The init container and the sidecar both take backups, and each prunes after its own.
        variables.push(plain_env("NIGHTSHIFT_BACKUP_MAX_COUNT", &backup.max_count.to_string()));
        variables.extend(backup.max_age.map(|age| plain_env("NIGHTSHIFT_BACKUP_MAX_AGE", &age.as_secs().to_string())));
    }
    // Set only if configured: a new default must not change the template of every server. The kubelet expands `$(NAME)` as a variable, and
    // `$$` as a dollar sign.
    let Texts { kick, stop, cancelled } = &server.players.texts;
    let texts =
        [("NIGHTSHIFT_KICK_TEXT", kick), ("NIGHTSHIFT_STOP_TEXT", stop), ("NIGHTSHIFT_CALLED_OFF_TEXT", cancelled)];
    variables
        .extend(texts.into_iter().filter_map(|(name, text)| Some(plain_env(name, &text.as_ref()?.replace('$', "$$")))));
    variables
}

/// The directory of the backups. Each server has its own, because several servers may share a claim.
fn repository(server: &CheckedServer, volume: &BackupVolume) -> String {
    match volume {
        BackupVolume::Data => format!("{DATA_DIR}/{NIGHTSHIFT_DIR}/backups"),
        BackupVolume::Created { .. } | BackupVolume::Existing(_) => backups_path(&server.name),
    }
}

fn rcon_password(name: &str, server: &CheckedServer) -> EnvVar {
    match &server.pod.rcon.secret {
        Some((of, key)) => secret_env(name, of, key),
        None => secret_env(name, &secret_name(&server.name), RCON_PASSWORD),
    }
}

fn plain_env(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.to_owned()), ..EnvVar::default() }
}

fn secret_env(name: &str, of: &str, key: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: of.to_owned(),
                key: key.to_owned(),
                ..SecretKeySelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

fn field_env(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { field_path: path.to_owned(), ..ObjectFieldSelector::default() }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}
