use fixtures::manifest::paper_mc_server;
use serde_json::{Value, json};

use super::*;

pub(crate) fn server(spec: Value) -> PaperMCServer {
    serde_json::from_value(paper_mc_server(spec)).unwrap()
}

fn paths(spec: Value) -> Vec<String> {
    match check(&server(spec)) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.into_iter().map(|violation| violation.path).collect(),
    }
}

#[test]
fn minimal_spec_is_valid() {
    let checked = check(&server(json!({}))).unwrap();
    assert_eq!(checked.claim_name(), "data-lobby-0");
    assert!(!checked.eula);
    assert_eq!(checked.players.notice, SignedDuration::from_mins(5));
}

#[test]
fn spec_check_reports_all_invalid_fields_at_once() {
    let wrong = json!({
        "players": {"notice": "soon"},
        "updateSchedule": {"maintenanceWindow": {"cron": "61 4 * * 0"}},
        "jvm": {"heap": "lots"},
    });
    let expected = ["spec.updateSchedule.maintenanceWindow.cron", "spec.players.notice", "spec.jvm.heap"];
    assert_eq!(paths(wrong), expected);
}

#[test]
fn spec_rejects_software_other_than_paper() {
    for software in ["Purpur", "Folia", "Velocity"] {
        let violations = check(&server(json!({"software": software}))).unwrap_err();
        let message = violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        assert!(message.starts_with("spec.software: Nightshift runs Paper only"), "{message}");
        assert!(message.contains(&format!("`resolver explain` also answers for {software}")), "{message}");
    }
    assert_eq!(paths(json!({"software": "Paper"})), [""; 0]);
}

#[test]
fn spec_without_rcon_is_valid_if_rcon_is_unused() {
    let without = |more: Value| {
        let mut spec = json!({"rcon": {"enabled": false}, "players": {"policy": "Ignore"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        paths(spec)
    };
    let nightly = |policy: Option<&str>| json!({"restart": {"cron": "0 5 * * *", "policy": policy}});
    for fine in [json!({}), nightly(None), nightly(Some("Ignore")), json!({"backup": {}})] {
        assert_eq!(without(fine.clone()), [""; 0], "{fine}");
    }
    for wrong in [
        json!({"players": {}}),
        json!({"players": {"policy": "WaitForEmpty"}}),
        nightly(Some("Announce")),
        json!({"backup": {"schedule": {"cron": "0 5 * * *"}}}),
        json!({"updateSchedule": {"opportunistic": {}}}),
    ] {
        assert_eq!(without(wrong.clone()), ["spec.rcon.enabled"], "{wrong}");
    }
}

#[test]
fn backup_schedule_is_parsed_and_errors_named() {
    let backup = |backup: Value| json!({"backup": backup, "timeZone": "Europe/Berlin"});
    let of = |schedule: Value| check(&server(backup(json!({"schedule": schedule})))).unwrap().data.backup.unwrap();
    let next = |schedule: Value| of(schedule).schedule.unwrap().next("2026-11-22T00:00:00Z".parse().unwrap()).unwrap();
    assert_eq!(next(json!({"cron": "0 5 * * *"})).to_string(), "2026-11-22T04:00:00Z");
    assert_eq!(next(json!({"cron": "0 5 * * *", "timeZone": "UTC"})).to_string(), "2026-11-22T05:00:00Z");
    assert_eq!(of(json!({"cron": "@daily"})).online_contents, Contents::Everything);
    assert_eq!(of(json!({"cron": "@daily", "contents": "Worlds"})).online_contents, Contents::Worlds);
    let manual_only = check(&server(backup(json!({})))).unwrap().data.backup.unwrap();
    assert!(manual_only.schedule.is_none() && manual_only.online_contents == Contents::Everything);
    let disabled = json!({"enabled": false, "schedule": {"cron": "0 5 * * *"}});
    assert_eq!(paths(backup(disabled)), ["spec.backup.schedule"], "the two settings contradict each other");
}

#[test]
fn worlds_are_backed_up_on_own_volume_without_spec() {
    let of = |spec: Value| check(&server(spec)).unwrap();
    let default = of(json!({}));
    let backup = default.data.backup.clone().unwrap();
    assert_eq!(
        (backup.before_update, backup.max_count, &backup.volume),
        (BeforeUpdate::OneWay, 1, &BackupVolume::Data)
    );
    assert_eq!((default.backup_volume_claim(), default.accepts_restore_requests()), (None, true));
    let written = of(json!({"backup": {}}));
    assert_eq!(written.backup_volume_claim().as_deref(), Some("backup-lobby-0"), "a written `backup` means a volume");
    assert_eq!(written.data.backup.unwrap().max_count, 10);
    assert!(of(json!({"backup": {"enabled": false}})).data.backup.is_none());
    for (spec, before_update) in [
        (json!({}), BeforeUpdate::OneWay),
        (json!({"backup": {"enabled": false}}), BeforeUpdate::Never),
        (json!({"backup": {"beforeUpdate": "Always"}}), BeforeUpdate::Always),
    ] {
        assert_eq!(server(spec).spec.backup_before_update(), before_update);
    }
}

#[test]
fn invalid_backup_schedule_leaves_rest_of_spec_valid() {
    for (wrong, why) in [
        (json!({"cron": "0 5 * *", "contents": "Worlds"}), "`0 5 * *` has 4 fields, a schedule has five"),
        (json!({"cron": "0 0 30 2 *", "contents": "Worlds"}), "`0 0 30 2 *` never occurs"),
        (
            json!({"cron": "@daily", "timeZone": "europe/berlin", "contents": "Worlds"}),
            "`europe/berlin` is not a time zone: write `Europe/Berlin`",
        ),
    ] {
        let checked = check(&server(json!({
            "backup": {"schedule": wrong, "beforeUpdate": "Always"}, "restart": {"cron": "0 5 * * *"},
            "updateSchedule": {"maintenanceWindow": {"cron": "0 4 * * 0"}},
        })));
        let checked = checked.unwrap();
        assert!(checked.updates_automatically() && checked.players.restart.is_some(), "{wrong}");
        let backup = checked.data.backup.unwrap();
        assert!(backup.schedule.is_none(), "{wrong}");
        assert_eq!((backup.before_update, backup.online_contents), (BeforeUpdate::Always, Contents::Worlds), "{wrong}");
        let message = backup.schedule_problem.unwrap().to_string();
        assert!(message.starts_with("spec.backup.schedule.") && message.contains(&format!(": {why}")), "{message}");
    }
    let right = check(&server(json!({"backup": {"schedule": {"cron": "@daily"}}}))).unwrap().data.backup.unwrap();
    assert_eq!(right.schedule_problem, None);
}

#[test]
fn unknown_zone_of_server_is_one_violation() {
    let schedule = |time_zone: Option<&str>| {
        let schedule = json!({"cron": "0 5 * * *", "timeZone": time_zone});
        paths(json!({"timeZone": "Mars", "backup": {"schedule": schedule}}))
    };
    assert_eq!(schedule(None), ["spec.timeZone"], "one violation for one field");
    assert_eq!(schedule(Some("UTC")), ["spec.timeZone"]);
}

#[test]
fn stop_timeout_shorter_than_save_is_refused() {
    let violations = |timeout: &str| {
        let spec = json!({"gracefulShutdown": {"timeout": timeout}});
        check(&server(spec)).err().unwrap_or_default()
    };
    for timeout in ["0s", "10s", "59s", "0d"] {
        let found = violations(timeout);
        assert_eq!(found.len(), 1, "{timeout}");
        assert_eq!(found[0].path, "spec.gracefulShutdown.timeout");
        let why = format!(
            "`{timeout}` is too short: the server would be killed while it still writes the world, because one tick \
            of a busy server may take a minute. Write 60s or more"
        );
        assert!(found[0].problem.starts_with(&why), "{}", found[0].problem);
    }
    assert_eq!(violations("soon").len(), 1, "one violation for one field");
    for enough in ["60s", "1m", "5m", "1d"] {
        assert_eq!(violations(enough).len(), 0, "{enough}");
    }
}

#[test]
fn pod_template_cannot_override_world_safety() {
    let template = |container: Value| json!({"podTemplate": {"spec": {"containers": [container]}}});
    let variable = template(json!({"name": "papermc", "env": [{"name": "STOP_DURATION", "value": "1"}]}));
    assert_eq!(paths(variable), ["spec.podTemplate.spec.containers[papermc].env[STOP_DURATION]"]);
    let hook = template(json!({"name": "papermc", "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}));
    assert_eq!(paths(hook), ["spec.podTemplate.spec.containers[papermc].lifecycle"]);
    let volume = json!({"podTemplate": {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}}});
    assert_eq!(paths(volume), ["spec.podTemplate.spec.volumes[data]"]);
    let harmless = template(json!({"name": "papermc", "env": [{"name": "DIFFICULTY", "value": "hard"}]}));
    assert_eq!(paths(harmless), Vec::<String>::new());
}

#[test]
fn backup_claim_must_differ_from_world_claim() {
    let of = |storage: Value, backup: Value| paths(json!({"storage": storage, "backup": {"storage": backup}}));
    let named = |claim: &str| json!({"existingClaim": claim});
    let refused = ["spec.backup.storage.existingClaim"];
    assert_eq!(of(json!({}), named("data-lobby-0")), refused);
    assert_eq!(of(named("old-world"), named("old-world")), refused);
    assert_eq!(of(named("backup-lobby-0"), json!({})), refused);
    assert_eq!(of(named("old-world"), named("data-lobby-0")), [""; 0], "`data-lobby-0` is not the data claim then");
    assert_eq!(of(json!({}), named("nas")), [""; 0]);
    assert_eq!(of(json!({}), json!({})), [""; 0]);
    assert_eq!(paths(json!({"storage": named("backup-lobby-0"), "backup": {"enabled": false}})), [""; 0]);
}

#[test]
fn blackouts_and_latest_starts_are_parsed_and_errors_named() {
    let schedule = |more: Value| {
        let mut schedule = json!({"maintenanceWindow": {"cron": "0 4 * * 0", "duration": "2h"}});
        for (key, value) in more.as_object().unwrap() {
            schedule[key] = value.clone();
        }
        json!({"updateSchedule": schedule, "timeZone": "Europe/Berlin"})
    };
    let good = schedule(json!({
        "windows": [{"name": "late", "cron": "@daily", "latestStart": "30m"}],
        "blackouts": [
            {"name": "christmas", "from": "2026-12-20T00:00:00+01:00", "to": "2027-01-07T00:00:00+01:00"},
            {"name": "evenings", "cron": "0 18 * * 5", "duration": "6h"},
        ],
    }));
    let windows = check(&server(good)).unwrap().updates.windows;
    let evening = "2026-11-20T17:00:00Z".parse().unwrap();
    let (blackout, until) = windows.blackout_at(evening).unwrap();
    assert_eq!((blackout.name(), until.to_string().as_str()), ("evenings", "2026-11-20T23:00:00Z"));
    assert!(windows.blackout_at("2026-12-19T23:00:00Z".parse().unwrap()).is_some(), "the offset counts");

    let wrong = schedule(json!({
        "maintenanceWindow": {"cron": "0 4 * * 0", "latestStart": "1h"},
        "windows": [{"name": "a", "cron": "@daily", "latestStart": "soon"}],
        "blackouts": [
            {"name": "none"},
            {"name": "both", "from": "2026-12-20T00:00:00Z", "to": "2026-12-21T00:00:00Z", "cron": "@daily"},
            {"name": "backwards", "from": "2026-12-20T00:00:00Z", "to": "2026-12-19T00:00:00Z"},
            {"name": "february", "from": "2026-02-30T00:00:00Z", "to": "2026-12-19T00:00:00Z"},
            {"name": "short", "cron": "@daily", "duration": "5s"},
            {"name": "zone", "cron": "@daily", "duration": "5h", "timeZone": "Mars"},
        ],
    }));
    let schedule = "spec.updateSchedule";
    let mut expected =
        vec![format!("{schedule}.maintenanceWindow.latestStart"), format!("{schedule}.windows[a].latestStart")];
    for (name, field) in [
        ("none", ""),
        ("both", ""),
        ("backwards", ".to"),
        ("february", ".from"),
        ("short", ".duration"),
        ("zone", ".timeZone"),
    ] {
        expected.push(format!("{schedule}.blackouts[{name}]{field}"));
    }
    assert_eq!(paths(wrong), expected);
}

#[test]
fn announcement_needs_short_text_and_display_target() {
    let checked = |players: Value| check(&server(json!({"players": players, "restart": {"cron": "@daily"}}))).unwrap();
    let defaults = checked(json!({}));
    assert_eq!(
        (defaults.players.announcement.short.as_str(), defaults.players.show),
        ("Restart in {in}", agent_api::in_the_chat())
    );
    let two = checked(json!({"text": "Restart in {in}.\nNeustart in {in}.\n", "show": ["Title", "Chat"]}));
    assert_eq!(two.players.announcement.short, "Restart in {in}.");
    assert_eq!(two.players.restart_announcement, two.players.announcement);
    assert_eq!(two.players.show, [agent_api::AnnouncementTarget::Chat, agent_api::AnnouncementTarget::Title].into());
    assert_eq!(paths(json!({"players": {"show": []}})), ["spec.players.show"]);
}

#[test]
fn announcement_in_unknown_language_is_refused() {
    let text = json!({"text": "Restart in {in}\nNeustart in {in:ge}"});
    let of_field = |field: &str| paths(json!({"players": {field: "Restart in {in:ge}"}}));
    assert_eq!(of_field("drainText"), ["spec.players.drainText"]);
    assert_eq!(of_field("restoreText"), ["spec.players.restoreText"]);
    assert_eq!(of_field("scaleDownText"), ["spec.players.scaleDownText"]);
    let restart = json!({"cron": "@daily", "text": "{in:"});
    let wrong = json!({"players": text, "restart": restart});
    assert_eq!(paths(wrong.clone()), ["spec.players.text", "spec.restart.text"]);
    let message = check(&server(wrong)).unwrap_err()[0].to_string();
    assert!(
        message.starts_with("spec.players.text: `{in:ge}` names an unknown language") && message.contains("da, de, el"),
        "{message}"
    );
    let good = json!({"players": {"text": "{in} {in:de} {in:zh-TW} {not a place}"}});
    assert_eq!(paths(good), Vec::<String>::new());
}

#[test]
fn schema_languages_match_announcement_languages() {
    assert_eq!(crds::schema::LANGUAGES, scheduler::announcement::locale::LANGUAGES.map(|language| language.code));
}
