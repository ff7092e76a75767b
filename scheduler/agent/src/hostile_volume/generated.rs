//! Edge (writes). Runs everything that the agent does with a volume on generated hostile volumes.

use super::*;

/// What a plugin may replace: everything that the agent opens by name.
const TARGETS: [&str; 40] = [
    ".nightshift",
    ".nightshift/.journal.json.nightshift",
    ".nightshift/.manifest.json.nightshift",
    ".nightshift/.plugin-data.json.nightshift",
    ".nightshift/damage.json",
    ".nightshift/failed",
    ".nightshift/journal.json",
    ".nightshift/kept",
    ".nightshift/kept-settings",
    ".nightshift/manifest.json",
    ".nightshift/opened.json",
    ".nightshift/plugin-data.json",
    ".nightshift/ran.json",
    ".nightshift/replaced",
    ".nightshift/restored.json",
    ".nightshift/restoring",
    ".nightshift/server",
    ".nightshift/server/paper.jar",
    ".nightshift/set-aside",
    ".nightshift/staged",
    ".nightshift/store",
    ".nightshift/store/sha256",
    ".nightshift/store/unfinished",
    "bukkit.yml",
    "config",
    "logs",
    "plugins",
    "plugins/Demo",
    "plugins/Demo.jar",
    "plugins/Demo/config.yml",
    "plugins/Other.jar",
    "plugins/update",
    "server.properties",
    "world",
    "world/level.dat",
    "world/playerdata",
    "world/region",
    "world/region/r.0.0.mca",
    "world/session.lock",
    "world_nether",
];

/// How many volumes are generated.
const SEEDS: u64 = 60;

/// How often each kind of work succeeded. A volume on which all of it fails shows nothing.
#[derive(Debug, Default)]
struct Succeeded {
    staged: u32,
    swapped: u32,
    backed_up: u32,
    restored: u32,
    saved: u32,
    filled: u32,
}

#[test]
fn generated_hostile_volumes_affect_nothing_beside_them() {
    let mut succeeded = Succeeded::default();
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let server = Server::new();
        let count = 1 + random.below(3);
        let spoiled: Vec<String> = (0..count)
            .map(|_| {
                let target = *random.pick(&TARGETS);
                spoil(server.volume.root(), target, &server.canary, &mut random)
            })
            .collect();
        let label = format!("seed {seed}: {}", spoiled.join(", "));
        run_all(&server, &label, &mut succeeded);
        Canary::assert_not_copied_to(server.volume.root(), &label);
        Canary::assert_not_copied_to(&server.directory.path().join("copies"), &label);
        let archived = server.archived();
        assert!(!has_canary(&archived), "{label}");
        // A variable of this process, from `/proc/self/environ`.
        assert!(!archived.windows(17).any(|part| part == b"CARGO_MANIFEST_DI"), "{label}");
    }
    let Succeeded { staged, swapped, backed_up, restored, saved, filled } = succeeded;
    for (work, count) in [staged, swapped, backed_up, restored, saved, filled].into_iter().enumerate() {
        assert!(count > 5, "work {work} succeeded on {count} volumes only");
    }
}

/// Everything that the agent does with a volume. Any of it may fail.
fn run_all(server: &Server, label: &str, succeeded: &mut Succeeded) {
    let (volume, [runs, next]) = (&server.volume, &server.sets);
    let mut disk = Disk::new(RealFs);
    let check = |work: &str| server.canary.assert_untouched(&format!("{label}: {work}"));

    let store = VolumeStore::new(volume.clone());
    succeeded.staged += u32::from(server.fill_store(next).is_ok());
    drop((store.staged(None), store.record_run(), store.prune_for_worlds(), store.prune()));
    check("staging");
    let mut locks = SessionLocks::default();
    let worlds = Worlds::read(volume.root());
    if let Ok(worlds) = &worlds {
        drop(locks.acquire(&worlds.session_locks()));
        worlds.changed_at();
        crate::play_record::may_have_played_since(volume, worlds, at(0));
    }
    drop((server_log::read(volume.root()), server_log::logged_saves(volume.root())));
    drop(DamageLog::new(volume.clone()).scan(at(0)));
    drop(VolumeReport::read(volume, Some(server.repository.root())));
    check("reports");

    succeeded.saved += u32::from(plugin_data::save_data(volume, next, 1 << 20, &mut disk, at(0)).is_ok());
    check("saving plugin data");
    let worlds = worlds.unwrap_or_default();
    for (second, reading) in [(0, LiveReads::Offline), (60, LiveReads::Online)] {
        succeeded.backed_up += u32::from(server.back_up(&worlds, reading, second).is_ok());
        check("backup");
    }
    succeeded.swapped += u32::from(server.swap(next).is_ok());
    check("swap");
    drop(plugin_data::restore_data(volume, &runs.lock, &next.lock, |_| false, &mut disk, at(60)));
    drop((plugin_data::finish(volume, &mut disk), plugin_data::prune_saved(volume, &mut disk)));
    check("restoring plugin data");
    let password = "secret".into();
    drop(server_properties::write(
        volume.root(),
        server_properties::Rcon { enabled: true, port: 1, password: &password },
    ));
    check("server.properties");

    for stored in server.repository.list().unwrap() {
        let Ok(backup) = stored.state else { continue };
        let target = RestoreTarget { part: RestorePart::Everything, request: None };
        let restored = restore::restore(&server.repository, &backup, volume, &worlds, target, &mut disk, at(120));
        succeeded.restored += u32::from(restored.is_ok());
        drop(restore::finish(volume, &mut disk));
        check("restore");
    }
    succeeded.filled += u32::from(matches!(fill(server), Ok(Some(_))));
    check("adopt");
    let retention = RetentionInput::from_init_config(&backup_config(server), volume);
    retention.prune(&server.repository, None, &mut disk);
    check("prune");
}

fn backup_config(server: &Server) -> BackupConfig {
    BackupConfig {
        backups: Some(server.repository.root().to_owned()),
        backup_before: crate::backup::due::BackupBefore::Always,
        restore_request: Some(requests_of(server).rollback),
        signed_by: Some(requests_of(server).verifier),
        restore_repositories: None,
        backup_max_count: 1,
        backup_max_age: None,
    }
}

fn requests_of(server: &Server) -> SignedRequests {
    SignedRequests::at(server.directory.path().join("requests/restore.json"))
}

/// The restore of a volume without a world.
fn fill(server: &Server) -> Result<Option<agent_api::Restored>, seed_volume::Error> {
    let config = backup_config(server);
    let request =
        SeedRequest { server: "lobby".into(), backup: "latest".into(), claim: "backup-lobby-0".into(), apart: false };
    fs::create_dir_all(server.directory.path().join("requests")).unwrap();
    requests_of(server).write(Document::NewVolume, &request);
    seed_volume::fill_if_new(&config, &server.volume, &Worlds::default(), &server.sets[0])
}
