//! Pure. Defines the names in the pod that users, the image and other parts of the operator rely on.

/// The server's container. A user's `podTemplate` refers to it to set resources.
pub const SERVER_CONTAINER: &str = "papermc";

/// The init container. A user's `podTemplate` may not use its name.
pub const PREPARE_CONTAINER: &str = "prepare";

/// The native sidecar. A user's `podTemplate` may not use its name.
pub const AGENT_CONTAINER: &str = "agent";

/// The init container that makes the server's directory on the backup volume. A user's `podTemplate` may not use its name.
pub const BACKUP_DIRECTORY_CONTAINER: &str = "backup-directory";

/// The containers with the agent's image.
pub const AGENT_CONTAINERS: [&str; 3] = [BACKUP_DIRECTORY_CONTAINER, PREPARE_CONTAINER, AGENT_CONTAINER];

/// Nightshift's volumes. A user's `podTemplate` may not use their names.
pub const MANAGED_VOLUMES: [&str; 7] =
    ["data", "nightshift", "lock", KEY_VOLUME, BACKUP_VOLUME, RESTORE_VOLUME, INIT_REQUESTS_VOLUME];

/// The volume with the agent's key. Only the sidecar mounts it.
pub const KEY_VOLUME: &str = "nightshift-key";

/// The backup volume in the pod of a server with `spec.backup`.
pub const BACKUP_VOLUME: &str = "nightshift-backup";

/// The volume of another claim from which a new volume is restored, in the pod of a first start.
pub const RESTORE_VOLUME: &str = "nightshift-restore";

/// The volume with the restore requests, in the pod of a server with backups or saved plugin data.
pub const INIT_REQUESTS_VOLUME: &str = "nightshift-init-requests";

/// The image's variable that enables RCON.
pub const ENABLE_RCON: &str = "ENABLE_RCON";

/// The variable of both agent containers with the directory of the backups. A template without it can take and restore none.
pub const BACKUPS: &str = "NIGHTSHIFT_BACKUPS";

/// The variable of the init container with the digest of the lock's files. Other files do not count.
pub const FILES_DIGEST: &str = "NIGHTSHIFT_FILES_DIGEST";

/// The variable of the init container with the public key that verifies requests.
pub const SIGNED_BY: &str = "NIGHTSHIFT_SIGNED_BY";

/// The variable of the init container that names the updates before which it takes a backup.
pub const BACKUP_BEFORE: &str = "NIGHTSHIFT_BACKUP_BEFORE";

/// The variable with which the init container saves plugin data. A template without it cannot restore any.
pub const KEEP_PLUGIN_DATA: &str = "NIGHTSHIFT_KEEP_PLUGIN_DATA";

/// Variables that Nightshift sets, or that would add a second writer to `plugins/`, stop a server unnoticed, or need the Internet at each
/// start. `check` rejects them in a user's spec, with the reason.
pub const RESERVED_VARIABLES: [(&str, &str); 30] = [
    ("EULA", "set `spec.eula: Accepted`"),
    ("TYPE", "Nightshift runs Paper"),
    ("VERSION", "set `spec.version`"),
    ("PAPER_CUSTOM_JAR", "Nightshift provides the server's JAR"),
    ("PAPER_BUILD", "set `spec.build`"),
    ("PAPER_CHANNEL", "set `spec.channel`"),
    ("SKIP_DOWNLOAD_DEFAULTS", "Nightshift sets it"),
    (ENABLE_RCON, "set `spec.rcon.enabled`"),
    ("RCON_PORT", "set `spec.rcon.port`"),
    ("RCON_PASSWORD", "set `spec.rcon.passwordSecret`"),
    ("STOP_DURATION", "set `spec.gracefulShutdown.timeout`"),
    ("STOP_SERVER_ANNOUNCE_DELAY", "players would be warned twice; set `spec.players.notice`"),
    ("MEMORY", "set `spec.jvm.heap`"),
    ("INIT_MEMORY", "set `spec.jvm.heap`"),
    ("MAX_MEMORY", "set `spec.jvm.heap`"),
    ("PLUGINS", "write a Plugin"),
    ("PLUGINS_FILE", "write a Plugin"),
    ("MODS", "write a Plugin"),
    ("MODS_FILE", "write a Plugin"),
    ("MODPACK", "write a Plugin"),
    ("MODRINTH_PROJECTS", "write a Plugin"),
    ("SPIGET_RESOURCES", "write a Plugin"),
    ("VERSION_FROM_MODRINTH_PROJECTS", "set `spec.updateStrategy: auto`"),
    ("GENERIC_PACK", "it would unpack over what Nightshift manages"),
    ("GENERIC_PACKS", "it would unpack over what Nightshift manages"),
    ("REMOVE_OLD_MODS", "it deletes every JAR at start"),
    ("ENABLE_AUTOPAUSE", "a paused server answers no ping and cannot be saved"),
    ("ENABLE_AUTOSTOP", "a server that stops by itself looks crashed"),
    ("OPS", "names are looked up on the Internet at each start; the server does not start when that fails"),
    ("WHITELIST", "names are looked up on the Internet at each start; the server does not start when that fails"),
];
