//! Pure. Converts a server of minecraft-operator to ours, field by field.

use super::foreign_values::{convert_cron, convert_duration, find, find_filled, flag_at, number_at, text_at};
use super::pod_template::{accepts_eula, convert_pod_template};
use super::remarks::Remarks;
use super::yaml_block::{YamlBlock, YamlDraft};
use crate::input::yaml::YamlNode;
use crds::duration;
use crds::paper_mc_server::GracefulShutdown;

/// The largest `retention.maxCount`.
const MAX_BACKUPS: u64 = 100;

/// The spec of the server. Its schema has been checked.
pub(super) fn convert_server(server: &YamlNode, remarks: &mut Remarks) -> YamlBlock {
    let mut spec = YamlBlock::default();
    write_eula(server, &mut spec, remarks);
    write_version(server, &mut spec, remarks);
    write_schedule(server, &mut spec, remarks);
    write_stop(server, &mut spec, remarks);
    write_storage(server, &mut spec, remarks);
    write_backup(server, &mut spec, remarks);
    write_network(server, &mut spec, remarks);
    convert_pod_template(server, &mut spec, remarks);
    spec
}

fn write_eula(server: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) {
    if accepts_eula(server) {
        spec.comment("EULA is TRUE in the environment of its container");
        spec.text("eula", "Accepted");
    } else {
        let text = "is yours to accept: minecraft-operator does it for you, and Nightshift starts no server without \
                    the next line. Read https://aka.ms/MinecraftEULA, and remove its `# `";
        remarks.action_required(spec, "spec.eula", text);
        spec.comment("eula: Accepted");
    }
}

fn write_version(server: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) {
    let strategy = text_at(server, "spec.updateStrategy").unwrap_or_default();
    if let Some(version) = text_at(server, "status.currentVersion").filter(|_| strategy != "build-pin") {
        let build =
            number_at(server, "status.currentBuild").map_or_else(String::new, |build| format!(", build: {build}"));
        let text = format!(
            "may choose a newer Paper for the first start. To stay on what runs: build-pin, version: \"{version}\"\
             {build}"
        );
        remarks.note(spec, "spec.updateStrategy", &text);
    }
    spec.copy("updateStrategy", find(server, "spec.updateStrategy"));
    if let Some(version) = text_at(server, "spec.version") {
        if matches!(strategy, "pin" | "build-pin") {
            spec.text("version", version);
        } else {
            remarks.left_out(spec, "spec.version", &format!("it has no effect with `{strategy}`"));
        }
    }
    if let Some(build) = find(server, "spec.build") {
        match strategy {
            "build-pin" => spec.copy("build", Some(build)),
            "pin" => remarks.left_out(spec, "spec.build", "`pin` takes the newest build of the version"),
            _ => remarks.left_out(spec, "spec.build", &format!("it has no effect with `{strategy}`")),
        }
    }
    if let Some(delay) = text_at(server, "spec.updateDelay") {
        spec.text("updateDelay", &convert_duration(delay));
    }
}

fn write_schedule(server: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) {
    const WINDOW: &str = "spec.updateSchedule.maintenanceWindow";
    let mut schedule = YamlBlock::default();
    if let Some(check) = text_at(server, "spec.updateSchedule.checkCron") {
        let (zone, fields) = convert_cron(check);
        if let Some(zone) = zone {
            let text = format!("was in the zone {zone}, which has no counterpart: `spec.timeZone` applies");
            remarks.note(&mut schedule, "spec.updateSchedule.checkCron", &text);
        }
        schedule.text("checkCron", &fields);
    }
    let mut window = YamlBlock::default();
    if flag_at(server, &format!("{WINDOW}.enabled")) == Some(false) {
        let text = "means the opposite here: with `false`, minecraft-operator updates at any time, and Nightshift \
                    never by itself. For any time write `cron: \"0 * * * *\"` without `enabled`";
        remarks.action_required(&mut window, &format!("{WINDOW}.enabled"), text);
        window.field("enabled", YamlDraft::Scalar("false".to_owned()));
    }
    if let Some(cron) = text_at(server, &format!("{WINDOW}.cron")) {
        let (zone, fields) = convert_cron(cron);
        window.text("cron", &fields);
        if let Some(zone) = zone {
            window.text("timeZone", zone);
        }
    }
    schedule.block("maintenanceWindow", window);
    spec.block("updateSchedule", schedule);
}

fn write_stop(server: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) {
    const TIMEOUT: &str = "spec.gracefulShutdown.timeout";
    let mut shutdown = YamlBlock::default();
    if let Some(written) = text_at(server, TIMEOUT) {
        let timeout = convert_duration(written);
        match duration::parse(&timeout) {
            // Go's zero value, for which minecraft-operator takes its default.
            Ok(zero) if zero.is_zero() => {}
            Ok(short) if short < GracefulShutdown::MIN_TIMEOUT => {
                let minimum = format!("{}s", GracefulShutdown::MIN_TIMEOUT.as_secs());
                let text = format!("was {written}: {minimum} is the shortest time that Nightshift accepts for a save");
                remarks.note(&mut shutdown, TIMEOUT, &text);
                shutdown.text("timeout", &minimum);
            }
            Ok(_) | Err(_) => shutdown.text("timeout", &timeout),
        }
    }
    let uses_rcon = uses_rcon(server);
    if !uses_rcon {
        let text = "is false: without RCON, Nightshift neither warns players nor confirms a save before a stop";
        remarks.note(spec, "spec.rcon.enabled", text);
        let mut players = YamlBlock::default();
        players.text("policy", "Ignore");
        spec.block("players", players);
    }
    spec.block("gracefulShutdown", shutdown);
    let mut rcon = YamlBlock::default();
    rcon.copy("enabled", find(server, "spec.rcon.enabled"));
    // Go's zero value stands for the default, which is the same.
    rcon.copy("port", find(server, "spec.rcon.port").filter(|_| number_at(server, "spec.rcon.port") != Some(0)));
    if uses_rcon {
        remarks.note(&mut rcon, "spec.rcon", "listens inside the pod only: the Service has no port for it");
        let is_named = text_at(server, "spec.rcon.passwordSecret.name").is_some();
        rcon.copy("passwordSecret", find(server, "spec.rcon.passwordSecret").filter(|_| is_named));
    }
    spec.block("rcon", rcon);
}

/// RCON is on unless it is switched off, here as there.
fn uses_rcon(server: &YamlNode) -> bool {
    flag_at(server, "spec.rcon.enabled") != Some(false)
}

fn write_storage(server: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) {
    let name = text_at(server, "metadata.name").unwrap_or_default();
    let mut storage = YamlBlock::default();
    let text = "names the volume that minecraft-operator made. Remove it for a server that does not exist yet";
    remarks.note(&mut storage, "spec.storage.existingClaim", text);
    storage.text("existingClaim", &format!("data-{name}-0"));
    spec.block("storage", storage);
}

fn write_backup(server: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) {
    const CLASS: &str = "spec.backup.volumeSnapshotClassName";
    const COUNT: &str = "spec.backup.retention.maxCount";
    if find(server, "spec.backup").is_none() {
        return;
    }
    let mut backup = YamlBlock::default();
    if flag_at(server, "spec.backup.enabled") == Some(false) {
        backup.field("enabled", YamlDraft::Scalar("false".to_owned()));
        return spec.block("backup", backup);
    }
    let text = "stores files on a volume of its own (`spec.backup.storage`, 20Gi), and no VolumeSnapshots";
    remarks.note(&mut backup, "spec.backup", text);
    write_backup_schedule(server, &mut backup, remarks);
    let before = flag_at(server, "spec.backup.beforeUpdate").unwrap_or(true);
    backup.text("beforeUpdate", if before { "Always" } else { "Never" });
    if let Some(class) = find_filled(server, CLASS) {
        remarks.no_counterpart(&mut backup, CLASS, class, "Nightshift takes no VolumeSnapshots");
    }
    if let Some(count) = number_at(server, COUNT).filter(|count| *count > 0) {
        let mut retention = YamlBlock::default();
        if count > MAX_BACKUPS {
            remarks.note(&mut retention, COUNT, &format!("was {count}: Nightshift keeps at most {MAX_BACKUPS}"));
        }
        retention.field("maxCount", YamlDraft::Scalar(count.min(MAX_BACKUPS).to_string()));
        backup.block("retention", retention);
    }
    spec.block("backup", backup);
}

fn write_backup_schedule(server: &YamlNode, backup: &mut YamlBlock, remarks: &mut Remarks) {
    const SCHEDULE: &str = "spec.backup.schedule";
    let Some(schedule) = find_filled(server, SCHEDULE) else { return };
    if !uses_rcon(server) {
        let why = "a backup of a running server needs RCON, which is off";
        return remarks.no_counterpart(backup, SCHEDULE, schedule, why);
    }
    let (zone, fields) = convert_cron(schedule.text().unwrap_or_default());
    let mut times = YamlBlock::default();
    times.text("cron", &fields);
    if let Some(zone) = zone {
        times.text("timeZone", zone);
    }
    backup.block("schedule", times);
}

fn write_network(server: &YamlNode, spec: &mut YamlBlock, remarks: &mut Remarks) {
    const ADDRESS: &str = "spec.service.loadBalancerIP";
    const GATEWAY: &str = "spec.gateway";
    const POLICY: &str = "spec.network.networkPolicy";
    let name = text_at(server, "metadata.name").unwrap_or_default();
    let is_on = |path: &str| flag_at(server, &format!("{path}.enabled")) == Some(true);
    let mut service = YamlBlock::default();
    service.copy("type", find_filled(server, "spec.service.type"));
    service.copy("annotations", find(server, "spec.service.annotations"));
    if let Some(address) = find_filled(server, ADDRESS) {
        let why = "write the annotation with which your load balancer takes an address";
        remarks.no_counterpart(&mut service, ADDRESS, address, why);
    }
    spec.block("service", service);
    if let Some(gateway) = find(server, GATEWAY).filter(|_| is_on(GATEWAY)) {
        let why = format!("Nightshift makes no routes. Write them to port 25565 of the Service `{name}`");
        remarks.no_counterpart(spec, GATEWAY, gateway, &why);
    }
    if let Some(policy) = find(server, POLICY).filter(|_| is_on(POLICY)) {
        let why = format!(
            "Nightshift makes no NetworkPolicy. Write one for pods with the label `nightshift.dev/server: {name}`, \
             with port 25565 for players and 8470 for the operator"
        );
        remarks.no_counterpart(spec, POLICY, policy, &why);
    }
}
