use super::*;
use crate::input::manifests::schemas;
use crate::input::yaml;

fn violations(kind: usize, spec: &str) -> String {
    let text = format!("metadata: {{name: lobby}}\nspec:\n{spec}");
    let node = &yaml::read(&text).unwrap()[0];
    let schema = &schemas()[kind];
    let lines: Vec<String> = check(node, schema, &text)
        .iter()
        .map(|violation| format!("{} `{}` {}; {}", violation.line, violation.path, violation.problem, violation.fix))
        .map(|line| line.trim_end_matches("; ").to_owned())
        .collect();
    lines.join("\n")
}

#[test]
fn schema_check_accepts_valid_specs() {
    let spec = "  updateStrategy: auto\n  updateDelay: 72h\n  image: null\n  updateSchedule: {maintenanceWindow: {cron: '0 4 * * sun'}}\n  podTemplate: {metadata: {labels: {a: b}}, spec: {containers: [{name: papermc, resources: {limits: {memory: 6Gi, cpu: 2}}}]}}\n";
    assert_eq!(violations(0, spec), "");
    assert_eq!(violations(1, "  source: {type: hangar, project: ViaVersion}\n  instanceSelector: {}\n"), "");
}

#[test]
fn schema_check_corrects_misspelt_and_misplaced_fields() {
    let spec = "  updateStrateg: auto\n  cron: '0 4 * * 0'\n  slots: 3\n  heap: auto\n  jvm: {sizes: 1}\n  podTemplate: {spec: {contaners: []}}\n";
    insta::assert_snapshot!(violations(0, spec), @r##"
    2 `spec.updateStrategy` is missing; write `latest`, `auto`, `pin` or `build-pin`
    3 `spec.updateStrateg` does not exist; did you mean `updateStrategy`?
    4 `spec.cron` does not exist; it belongs in `spec.backup.schedule`, `spec.restart`, `spec.updateSchedule.blackouts[]`, `spec.updateSchedule.maintenanceWindow` or `spec.updateSchedule.windows[]`
    5 `spec.slots` does not exist; allowed here: `approval`, `backup`, `build`, `channel`, `dependencies`, `eula`, `eviction`, `follows`, `gracefulShutdown`, `hold`, `hotfixSiblings`, `image`, `imagePolicy`, `jvm`, `keepPluginData`, `notify`, `notifyCluster`, `onCrashLoop`, `onHang`, `players`, `podTemplate`, `rcon`, `replicas`, `restart`, `restoreFrom`, `service`, `software`, `storage`, `suspend`, `timeZone`, `unlisted`, `unmanaged`, `unmanagedPlugins`, `updateDelay`, `updateSchedule`, `updateStrategy` or `version`
    6 `spec.heap` does not exist; it belongs in `spec.jvm`
    7 `spec.jvm.sizes` does not exist; allowed here: `heap`
    8 `spec.podTemplate.spec.contaners` does not exist; did you mean `containers`?
    "##);
}

#[test]
fn schema_check_suggests_nearest_enum_value() {
    let spec = "  updateStrategy: latset\n  channel: nightly\n  players: {policy: waitforempty}\n";
    insta::assert_snapshot!(violations(0, spec), @r##"
    3 `spec.updateStrategy` cannot be `latset`; did you mean `latest`? It can be `latest`, `auto`, `pin` or `build-pin`
    4 `spec.channel` cannot be `nightly`; it can be `Stable`, `Beta` or `Alpha`
    5 `spec.players.policy` cannot be `waitforempty`; did you mean `WaitForEmpty`? It can be `Announce`, `WaitForEmpty` or `Ignore`
    "##);
}

#[test]
fn schema_check_explains_invalid_values() {
    let spec = "  updateStrategy: pin\n  version: 26.10\n  build: many\n  updateDelay: 5 minutes\n  replicas: 2\n  jvm: {heap: huge}\n  image: ''\n  rcon: yes\n  updateSchedule:\n    checkCron: '0 0 3 * * *'\n    maintenanceWindow: {enabled: 1, cron: '61 4 * * 0'}\n    windows:\n    - {name: a, cron: '@daily'}\n    - {name: a, cron: '@daily'}\n    - {name: b}\n  podTemplate: {spec: {containers: [{name: papermc, resources: {limits: {cpu: two}}}]}}\n";
    insta::assert_snapshot!(violations(0, spec), @r##"
    4 `spec.version` is the number 26.10, and should be text; put it into quotes: `version: "26.10"`
    5 `spec.build` is the text `many`, and should be a whole number; write digits, without quotes
    6 `spec.updateDelay` is `5 minutes`, which is not a valid duration; write numbers with d, h, m or s, such as `72h` or `1h30m`
    7 `spec.replicas` cannot be 2; write a number from 0 to 1
    8 `spec.jvm.heap` is `huge`, which is not a valid heap size; write `auto`, or a size such as `4Gi`
    9 `spec.image` is empty; write something, or leave the field out
    10 `spec.rcon` is the truth value yes, and should be a set of fields; write its fields below it, further to the right
    12 `spec.updateSchedule.checkCron` `0 0 3 * * *` has 6 fields, a schedule has five and no seconds: try `0 3 * * *`
    13 `spec.updateSchedule.maintenanceWindow.enabled` is the number 1, and should be `true` or `false`; write one of the two, without quotes
    13 `spec.updateSchedule.maintenanceWindow.cron` `61` is wrong as minute of a schedule: write 0 to 59
    16 `spec.updateSchedule.windows[1]` exists twice; give each item another `name`
    17 `spec.updateSchedule.windows[2].cron` is missing; write five cron fields, such as `cron: "0 4 * * 0"`
    18 `spec.podTemplate.spec.containers[0].resources.limits.cpu` is `two`, which is not a valid quantity; write a number with an optional unit, such as `2`, `500m` or `6Gi`
    "##);
}

#[test]
fn schema_check_names_missing_plugin_fields() {
    insta::assert_snapshot!(violations(1, "  source: {project: 'https://modrinth.com/plugin/viaversion/'}\n"), @r##"
    2 `spec.instanceSelector` is missing; select its servers, such as `{matchLabels: {tier: survival}}`, or `{}` for all of its namespace
    3 `spec.source.project` is `https://modrinth.com/plugin/viaversion/`, which is not a valid project; write its slug alone: `viaversion`
    3 `spec.source.type` is missing; write `hangar`, `modrinth` or `url`
    "##);
}

#[test]
fn schema_check_repeats_operator_words_for_schedules_and_zones() {
    let of = |cron: &str, zone: &str| {
        violations(
            0,
            &format!(
                "  updateStrategy: auto\n  timeZone: '{zone}'\n  updateSchedule: {{maintenanceWindow: {{cron: \"{cron}\"}}}}\n"
            ),
        )
    };
    for valid in ["00 04 * * 00", "0 4 * * 0  ", "0\\t4\\t*\\t*\\t0", "0 4 * * 0,0,0"] {
        assert_eq!(of(valid, "UTC"), "", "{valid}");
    }
    insta::assert_snapshot!(of("60 24 * * sunday", "+02:00"), @r##"
    4 `spec.timeZone` `+02:00` is an offset and not a time zone: write the place, such as `Europe/Berlin`, whose clocks also change in summer, or `Etc/GMT-2` for exactly this offset (its sign is reversed)
    5 `spec.updateSchedule.maintenanceWindow.cron` `60` is wrong as minute of a schedule: write 0 to 59; `24` is wrong as hour of a schedule: write 0 to 23; `sunday` is wrong as day of week of a schedule: write 0 to 7 or sun, mon, tue, wed, thu, fri, sat
    "##);
    insta::assert_snapshot!(of("CRON_TZ=Europe/Berlin 0 4 * * *", "UTC"), @"5 `spec.updateSchedule.maintenanceWindow.cron` `CRON_TZ=Europe/Berlin` is not part of a schedule: write `0 4 * * *`, and `timeZone: Europe/Berlin` beside it");
}

#[test]
fn schema_check_points_at_error_in_range_of_other_tool() {
    let of = |range: &str| {
        violations(
            1,
            &format!(
                "  source: {{type: modrinth, project: guard}}\n  instanceSelector: {{}}\n  requires: [{{plugin: Edit, version: '{range}'}}]\n"
            ),
        )
    };
    assert_eq!(of(">=7.4, <7.5"), "");
    insta::assert_snapshot!(of(">=7.4 <7.5"), @r##"
    5 `spec.requires[0].version` is not a version range: a version ends at the space: write a comma between two conditions; write `>=7.4, <7.5`
        >=7.4 <7.5
             ^
    "##);
    assert!(of("^7.4").contains("write `>=7.4, <8`\n    ^7.4\n    ^"), "{}", of("^7.4"));
}
