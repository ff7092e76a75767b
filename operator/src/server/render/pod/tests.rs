use agent_api::signed::Signer;
use agent_api::{File, FileHash};
use clap::Parser as _;
use jiff::Timestamp;
use resolver::model::lock::{FormatVersion, LockedFile};
use scheduler::maintenance::Gate;
use scheduler::observation::{Goal, Observation, PlayerPolicy, RecordedFacts, StableSet, StatefulSetView};
use scheduler::rollout::{Step, WaitingOn, next_step};
use serde_json::{Value, json};
use validate::image_contract::ENABLE_RCON;

use super::*;
use crate::server::online_backup::tests::{at_rest, observed};
use crate::server::test_server::{server, signer};
use crate::template_revision::revision_of;
use validate::check;

fn lock() -> Lock {
    Lock {
        software: resolver::model::software::Software::Paper,
        format_version: FormatVersion::default(),
        server: "games/lobby".to_owned(),
        minecraft: "1.21.10".parse().unwrap(),
        build: 130,
        java: 21,
        image: None,
        paper: LockedFile {
            name: "paper-1.21.10-130.jar".to_owned(),
            url: String::new(),
            size: None,
            hash: "sha256:00".to_owned(),
        },
        jvm_flags: vec!["-XX:+AlwaysPreTouch".to_owned()],
        plugins: Vec::new(),
        facts: Vec::new(),
        bounds: Vec::new(),
        guesses: Vec::new(),
        image_java: None,
    }
}

fn files() -> FileSet {
    FileSet {
        lock: "0123456789abcdef".repeat(4),
        minecraft: "1.21.10".to_owned(),
        build: 130,
        data_version: Some(4556),
        server: File {
            path: ".nightshift/server/paper-1.21.10-130.jar".to_owned(),
            hash: FileHash("sha256:00".to_owned()),
            size: None,
            url: String::new(),
            plugin: None,
            provides: Vec::new(),
        },
        support: Vec::new(),
        plugins: Vec::new(),
    }
}

fn template(spec: Value) -> PodTemplateSpec {
    let checked = check(&server(spec)).unwrap();
    build_template(&checked, &lock(), &files(), &signer().verifier(), &Config::parse_from(["operator"]))
}

fn game(template: &PodTemplateSpec) -> &Container {
    let spec = template.spec.as_ref().unwrap();
    spec.containers.iter().find(|container| container.name == SERVER_CONTAINER).unwrap()
}

fn variable<'a>(container: &'a Container, name: &str) -> Option<&'a str> {
    let found = container.env.iter().flatten().find(|variable| variable.name == name)?;
    found.value.as_deref()
}

#[test]
fn pod_template_changes_only_for_settings_that_need_restart() {
    let revision = |spec: Value| revision_of(&template(spec));
    let stable = revision(json!({}));
    for at_once in [
        json!({"service": {"type": "LoadBalancer", "annotations": {"example.com/pool": "games"}}}),
        json!({"updateSchedule": {"maintenanceWindow": {"cron": "0 5 * * *"}}, "suspend": true}),
        json!({"notify": [{"name": "staff", "type": "Discord", "secret": {"name": "chat", "key": "address"}}]}),
        json!({"players": {"policy": "WaitForEmpty", "notice": "9s", "text": "Soon: {in}"}}),
        json!({"restart": {"cron": "0 6 * * *"}, "eviction": "OnUpgrade", "updateDelay": "7d"}),
    ] {
        assert_eq!(revision(at_once.clone()), stable, "{at_once} would restart the server");
    }
    for with_a_restart in
        [json!({"gracefulShutdown": {"timeout": "9m"}}), json!({"players": {"kickText": "Back soon"}})]
    {
        assert_ne!(revision(with_a_restart.clone()), stable, "{with_a_restart} would never be applied");
    }
}

#[test]
fn pull_secrets_of_operator_and_pod_template_are_merged() {
    let names = |flags: &[&str], spec: Value| {
        let config = Config::parse_from([&["operator"][..], flags].concat());
        let template = build_template(&check(&server(spec)).unwrap(), &lock(), &files(), &signer().verifier(), &config);
        let secrets = template.spec.unwrap().image_pull_secrets.unwrap_or_default();
        secrets.into_iter().map(|secret| secret.name).collect::<Vec<_>>()
    };
    let own = json!({"podTemplate": {"spec": {"imagePullSecrets": [{"name": "mirror"}, {"name": "own"}]}}});
    assert_eq!(names(&[], json!({})), [""; 0]);
    assert_eq!(names(&["--image-pull-secrets=mirror"], json!({})), ["mirror"]);
    assert_eq!(names(&["--image-pull-secrets=mirror"], own), ["mirror", "own"]);
}

#[test]
fn pod_template_of_newer_operator_waits_for_window() {
    let checked = check(&server(json!({}))).unwrap();
    let by = |agent: &str| {
        let config = Config::parse_from(["operator", "--agent-image", agent]);
        revision_of(&build_template(&checked, &lock(), &files(), &signer().verifier(), &config))
    };
    let (older, newer) = (by("example.com/nightshift:1"), by("example.com/nightshift:2"));
    let (goal, observation, _) = at_rest();
    let world = goal.world;
    let stateful_set = observation.stateful_set.map(|stateful_set| StatefulSetView {
        template: older,
        current: older,
        update: older,
        ..stateful_set
    });
    let pod = observation.pod.map(|pod| scheduler::observation::PodView { revision: older, ..pod });
    let facts = RecordedFacts { settled: Some(StableSet { revision: older, world }), ..observation.facts.clone() };
    let (goal, observation) =
        (Goal { revision: newer, ..goal }, Observation { stateful_set, pod, facts, ..observation });
    let at = |minute: i64| Timestamp::from_second(60 * minute).unwrap();
    let opens = Some(at(60));
    let step = next_step(&goal, &observation, Gate::Shut { opens }, at(0));
    assert_eq!(step, Step::Wait(WaitingOn::Window { opens }));
    let open = Gate::Open { opened_at: at(60), until: at(120) };
    assert!(matches!(next_step(&goal, &observation, open, at(60)), Step::Announce { .. }), "announced in the window");
}

#[test]
fn pod_template_keeps_image_contract() {
    let template = template(json!({"gracefulShutdown": {"timeout": "5m"}}));
    let game = game(&template);
    assert_eq!(game.image.as_deref(), Some("docker.io/itzg/minecraft-server:java21"));
    assert_eq!(variable(game, "PAPER_CUSTOM_JAR"), Some("/data/.nightshift/server/paper-1.21.10-130.jar"));
    assert_eq!(variable(game, "VERSION"), Some("1.21.10"));
    assert_eq!(variable(game, "STOP_DURATION"), Some("290"));
    assert!(variable(game, "CUSTOM_SERVER_PROPERTIES").unwrap().contains("rcon.ip=127.0.0.1"));
    assert_eq!((game.stdin, game.tty), (Some(true), None), "a terminal would fill the log with escape codes");
    let spec = template.spec.as_ref().unwrap();
    assert_eq!(spec.automount_service_account_token, Some(false));
}

#[test]
fn rcon_setting_reaches_image_and_agent() {
    let off = template(json!({"rcon": {"enabled": false}, "players": {"policy": "Ignore"}}));
    let on = template(json!({}));
    for (template, in_image, in_agent) in [(&off, "false", Some("false")), (&on, "true", None)] {
        assert_eq!(variable(game(template), ENABLE_RCON), Some(in_image));
        let init_containers = template.spec.as_ref().unwrap().init_containers.as_deref().unwrap();
        assert!(
            init_containers.len() == 2
                && init_containers.iter().all(|of| variable(of, "NIGHTSHIFT_RCON_ENABLED") == in_agent),
            "{in_image}"
        );
        let mut observed = observed(true, &json!({}));
        observed.pod.as_mut().unwrap().spec = template.spec.clone();
        assert_eq!(observed.runs_without_rcon(), in_image == "false");
    }
    let nightly = json!({"restart": {"cron": "0 5 * * *"}});
    let without_rcon = check(&server(nightly)).unwrap().without_rcon();
    assert_eq!(
        (without_rcon.players.policy, without_rcon.players.restart.unwrap().policy),
        (PlayerPolicy::Ignore, PlayerPolicy::Ignore)
    );
}

#[test]
fn server_and_agents_take_rcon_password_from_one_secret() {
    let own = template(json!({"rcon": {"passwordSecret": {"name": "lobby-rcon", "key": "password"}}}));
    let generated = template(json!({}));
    for (template, secret, key) in [(&own, "lobby-rcon", "password"), (&generated, "lobby-nightshift", "rcon-password")]
    {
        let from = |container: &Container, name: &str| {
            let variable = container.env.iter().flatten().find(|variable| variable.name == name).unwrap();
            assert_eq!(variable.value, None, "a password is never written into the template");
            let found = variable.value_from.as_ref().unwrap().secret_key_ref.clone().unwrap();
            (found.name, found.key)
        };
        let expected = (secret.to_owned(), key.to_owned());
        assert_eq!(from(game(template), "RCON_PASSWORD"), expected);
        let agents = template.spec.as_ref().unwrap().init_containers.as_deref().unwrap();
        let passwords: Vec<_> = agents.iter().map(|agent| from(agent, "NIGHTSHIFT_RCON_PASSWORD")).collect();
        assert_eq!(passwords, [expected.clone(), expected]);
    }
}

#[test]
fn runner_kills_hanging_server_before_kubelet() {
    for (timeout, seconds) in [("60s", 60), ("65s", 65), ("70s", 70), ("2m", 120), ("5m", 300)] {
        let template = template(json!({"gracefulShutdown": {"timeout": timeout}}));
        let image: i64 = variable(game(&template), "STOP_DURATION").unwrap().parse().unwrap();
        assert!(image >= 60 && image >= seconds - 10, "{timeout}: {image} s");
        // A hook that finds no sidecar for 2 s and then uses all its time, and a runner whose own command is not answered for 120 s.
        let grace = template.spec.as_ref().unwrap().termination_grace_period_seconds.unwrap();
        assert!(grace >= 2 + seconds + 120 + image + 10, "{timeout}: {grace} s");
    }
}

#[test]
fn stop_hook_and_probes_are_on_server_container() {
    let template = template(json!({}));
    let game = game(&template);
    let hook = game.lifecycle.as_ref().unwrap().pre_stop.as_ref().unwrap().exec.as_ref().unwrap();
    assert_eq!(hook.command.as_deref().unwrap(), ["/nightshift/agent", "stop"]);
    let start = game.startup_probe.as_ref().unwrap();
    let seconds = start.period_seconds.unwrap() * start.failure_threshold.unwrap();
    assert!(seconds >= 24 * 60 * 60, "a kill while the world is still being rewritten would damage it");
    assert!(game.liveness_probe.is_none(), "a dead agent must not kill a server");
    let spec = template.spec.as_ref().unwrap();
    let agent =
        spec.init_containers.as_ref().unwrap().iter().find(|container| container.name == AGENT_CONTAINER).unwrap();
    assert_eq!(agent.restart_policy.as_deref(), Some("Always"));
    assert!(agent.startup_probe.is_none(), "a startup probe on the sidecar would be a deadlock");
}

#[test]
fn stop_hook_waits_for_spec_timeout() {
    for (timeout, variable) in [("5m", None), ("20m", Some("1200")), ("60s", Some("60"))] {
        let template = template(json!({"gracefulShutdown": {"timeout": timeout}}));
        let hook = game(&template).lifecycle.as_ref().unwrap().pre_stop.as_ref().unwrap().exec.as_ref().unwrap();
        let arguments: Vec<&str> = hook.command.iter().flatten().skip(2).map(String::as_str).collect();
        let expected: Vec<&str> = variable.iter().flat_map(|seconds| ["--stop-timeout", *seconds]).collect();
        assert_eq!(arguments, expected, "{timeout}");
    }
}

#[test]
fn player_texts_reach_agent_unchanged() {
    let text = |name: &str, players: Value| {
        let template = template(json!({ "players": players }));
        let containers = template.spec.unwrap().init_containers.unwrap();
        let agent = containers.into_iter().find(|container| container.name == AGENT_CONTAINER).unwrap();
        variable(&agent, name).map(str::to_owned)
    };
    for (variable, field) in [
        ("NIGHTSHIFT_KICK_TEXT", "kickText"),
        ("NIGHTSHIFT_STOP_TEXT", "stopText"),
        ("NIGHTSHIFT_CALLED_OFF_TEXT", "calledOffText"),
    ] {
        assert_eq!(text(variable, json!({})), None, "a new default changes no template");
        assert_eq!(text(variable, json!({field: "Back in $(TZ) a minute"})).unwrap(), "Back in $$(TZ) a minute");
    }
}

#[test]
fn heap_follows_container_memory_limit() {
    let limits = json!({"podTemplate": {"spec": {"containers": [
        {"name": "papermc", "resources": {"limits": {"memory": "6Gi"}}},
    ]}}});
    let template = template(limits);
    assert_eq!(variable(game(&template), "JVM_OPTS"), Some("-Xms4608M -Xmx4608M"));
    assert_eq!(variable(game(&template), "MEMORY"), Some(""));
}

#[test]
fn user_variables_are_kept_without_duplicates() {
    let users = json!({"podTemplate": {"spec": {"containers": [{"name": "papermc", "env": [
        {"name": "TZ", "value": "Asia/Tokyo"},
        {"name": "CUSTOM_SERVER_PROPERTIES", "value": "difficulty=hard"},
    ]}]}}});
    let template = template(users);
    let game = game(&template);
    assert_eq!(variable(game, "TZ"), Some("Asia/Tokyo"));
    let properties = variable(game, "CUSTOM_SERVER_PROPERTIES").unwrap();
    assert!(properties.starts_with("difficulty=hard\nrcon.ip=127.0.0.1"), "{properties}");
    let mut names: Vec<&str> = game.env.iter().flatten().map(|variable| variable.name.as_str()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn agent_runs_as_server_user() {
    let users = json!({"podTemplate": {"spec": {"containers": [
        {"name": "papermc", "securityContext": {"runAsUser": 2000, "runAsGroup": 3000}},
    ]}}});
    let template = template(users);
    for container in template.spec.as_ref().unwrap().init_containers.as_ref().unwrap() {
        let context = container.security_context.as_ref().unwrap();
        assert_eq!((context.run_as_user, context.run_as_group), (Some(2000), Some(3000)), "{}", container.name);
    }
}

#[test]
fn server_without_backup_spec_keeps_one_backup_on_its_volume() {
    let template = template(json!({"storage": {"existingClaim": "old-world"}}));
    let spec = template.spec.as_ref().unwrap();
    assert!(!spec.volumes.iter().flatten().any(|volume| volume.name == BACKUP_VOLUME));
    let prepare = spec.init_containers.iter().flatten().find(|container| container.name == PREPARE_CONTAINER).unwrap();
    assert!(!prepare.volume_mounts.iter().flatten().any(|mount| mount.name == BACKUP_VOLUME));
    let values =
        ["NIGHTSHIFT_BACKUPS", "NIGHTSHIFT_BACKUP_BEFORE", "NIGHTSHIFT_BACKUP_MAX_COUNT", "NIGHTSHIFT_BACKUP_MAX_AGE"];
    assert_eq!(
        values.map(|name| variable(prepare, name)),
        [Some("/data/.nightshift/backups"), Some("OneWay"), Some("1"), None]
    );
    assert!(crate::server::observe::supports_backups(&template), "a failed update is rolled back with its worlds");
}

#[test]
fn backup_settings_appear_in_template_only_when_enabled() {
    let disabled = template(json!({"backup": {"enabled": false}}));
    assert!(!crate::server::observe::supports_backups(&disabled));
    let with = template(json!({"backup": {"beforeUpdate": "Always", "retention": {"maxCount": 3, "maxAge": "1d"}}}));
    let spec = with.spec.as_ref().unwrap();
    let claim = |volume: &Volume| volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.clone());
    let volume = spec.volumes.as_ref().unwrap().iter().find(|volume| volume.name == BACKUP_VOLUME).unwrap();
    assert_eq!(claim(volume).as_deref(), Some("backup-lobby-0"));
    let mounted = |container: &Container| {
        let mounts = container.volume_mounts.iter().flatten().filter(|mount| mount.name == BACKUP_VOLUME);
        mounts.map(|mount| (mount.mount_path.clone(), mount.sub_path.clone())).collect::<Vec<_>>()
    };
    assert_eq!(mounted(game(&with)), [], "server and plugins must not access the backups");
    let [directory, init_containers @ ..] = spec.init_containers.as_deref().unwrap() else { panic!() };
    assert_eq!(mounted(directory), [("/backups".to_owned(), None)]);
    assert_eq!((directory.name.as_str(), directory.volume_mounts.as_ref().unwrap().len()), ("backup-directory", 1));
    for container in init_containers {
        let own = ("/backups/lobby".to_owned(), Some("lobby".to_owned()));
        assert_eq!(mounted(container), [own], "{}: other servers' backups are out of reach", container.name);
    }
    let values: Vec<_> =
        ["NIGHTSHIFT_BACKUPS", "NIGHTSHIFT_BACKUP_BEFORE", "NIGHTSHIFT_BACKUP_MAX_COUNT", "NIGHTSHIFT_BACKUP_MAX_AGE"]
            .map(|name| variable(&init_containers[0], name))
            .into();
    assert_eq!(values, [Some("/backups/lobby"), Some("Always"), Some("3"), Some("86400")]);
    let variables = ["NIGHTSHIFT_BACKUPS", "NIGHTSHIFT_BACKUP_MAX_COUNT", "NIGHTSHIFT_BACKUP_MAX_AGE"];
    assert_eq!(
        variables.map(|name| variable(&init_containers[1], name)),
        [Some("/backups/lobby"), Some("3"), Some("86400")]
    );
    let retention = json!({"maxCount": 3, "maxAge": "1d"});
    let schedule = json!({"cron": "@hourly", "contents": "Worlds"});
    let scheduled = json!({"backup": {"beforeUpdate": "Always", "retention": retention, "schedule": schedule}});
    assert_eq!(template(scheduled), with, "a new schedule restarts no server");
    let yours = template(json!({"backup": {"storage": {"existingClaim": "nas"}}}));
    let yours = yours.spec.unwrap().volumes.unwrap().into_iter().find(|volume| volume.name == BACKUP_VOLUME).unwrap();
    assert_eq!(claim(&yours).as_deref(), Some("nas"));
}

#[test]
fn plugin_data_support_is_rendered_unless_disabled() {
    let request_mount = |template: &PodTemplateSpec| {
        let spec = template.spec.as_ref().unwrap();
        let prepare = spec
            .init_containers
            .as_ref()
            .unwrap()
            .iter()
            .find(|container| container.name == PREPARE_CONTAINER)
            .unwrap();
        let mounted = prepare.volume_mounts.iter().flatten().any(|mount| mount.name == INIT_REQUESTS_VOLUME);
        let volume = spec.volumes.iter().flatten().any(|volume| volume.name == INIT_REQUESTS_VOLUME);
        let value = ["NIGHTSHIFT_KEEP_PLUGIN_DATA", "NIGHTSHIFT_RESTORE_ORDER"].map(|name| variable(prepare, name));
        (mounted && volume, value.map(|value| value.map(str::to_owned)))
    };
    let file = Some("/etc/nightshift-init-requests/restore.json".to_owned());
    assert_eq!(request_mount(&template(json!({}))), (true, [Some("536870912".to_owned()), file.clone()]));
    let large = json!({"keepPluginData": {"maxSize": "2Gi"}});
    assert_eq!(request_mount(&template(large)), (true, [Some("2147483648".to_owned()), file.clone()]));
    let none = json!({"keepPluginData": {"maxSize": "0"}, "backup": {"enabled": false}});
    assert_eq!(request_mount(&template(none.clone())), (false, [None, None]));
    let backups_only = json!({"keepPluginData": {"maxSize": "0"}, "backup": {}});
    assert_eq!(request_mount(&template(backups_only)), (true, [None, file]));
    let saves_data = |spec| crate::server::observe::saves_plugin_data(&template(spec));
    assert!(saves_data(json!({})) && !saves_data(none));
}

#[test]
fn first_start_mounts_foreign_backup_claim_read_only() {
    let mounted = |template: &PodTemplateSpec| {
        let spec = template.spec.as_ref().unwrap();
        let prepare = spec
            .init_containers
            .as_ref()
            .unwrap()
            .iter()
            .find(|container| container.name == PREPARE_CONTAINER)
            .unwrap();
        let mount = prepare.volume_mounts.iter().flatten().find(|mount| mount.name == RESTORE_VOLUME);
        let volume = spec.volumes.iter().flatten().find(|volume| volume.name == RESTORE_VOLUME);
        let claim = volume.map(|volume| volume.persistent_volume_claim.as_ref().unwrap().claim_name.clone());
        (
            mount.map(|mount| (mount.mount_path.clone(), mount.sub_path.clone(), mount.read_only)),
            claim,
            variable(prepare, "NIGHTSHIFT_RESTORE_REPOSITORIES").map(str::to_owned),
        )
    };
    let other = json!({"backup": {}, "restoreFrom": {"server": "survival"}});
    let directory = ("/restore/survival".to_owned(), Some("survival".to_owned()), Some(true));
    let expected = (Some(directory.clone()), Some("backup-survival-0".to_owned()), Some("/restore".to_owned()));
    assert_eq!(mounted(&template(other.clone())), expected);
    let shared = template(json!({
        "backup": {"storage": {"existingClaim": "nas"}}, "restoreFrom": {"server": "survival", "claim": "nas"},
    }));
    let containers = shared.spec.as_ref().unwrap().init_containers.as_ref().unwrap();
    let prepare = containers.iter().find(|container| container.name == PREPARE_CONTAINER).unwrap();
    let of_survival = prepare.volume_mounts.iter().flatten().filter(|mount| mount.mount_path == directory.0);
    let of_survival: Vec<_> = of_survival.map(|mount| (mount.name.as_str(), mount.sub_path.clone())).collect();
    assert_eq!(of_survival, [(BACKUP_VOLUME, directory.1)], "of one claim for several servers");
    let stable_server = check(&server(other)).unwrap().after_first_start();
    let stable_server =
        build_template(&stable_server, &lock(), &files(), &signer().verifier(), &Config::parse_from(["operator"]));
    assert_eq!(
        stable_server,
        template(json!({"backup": {}})),
        "a stable server does not mount the claim of another one"
    );
    assert_eq!(
        template(json!({"backup": {}, "restoreFrom": {}})),
        template(json!({"backup": {}})),
        "the field restarts no server"
    );
}

#[test]
fn new_volume_request_stays_while_spec_has_it() {
    let new_volume_map =
        |spec: Value| super::super::init_requests::build_new_volume_map(&check(&server(spec)).unwrap(), &signer()).data;
    let data = new_volume_map(json!({"backup": {}, "restoreFrom": {"backup": "20261122T030000Z-1a2b3c4d"}})).unwrap();
    let parse_request = |text: &String| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(
        parse_request(&data["new-volume.json"]),
        json!({"server": "lobby", "backup": "20261122T030000Z-1a2b3c4d", "claim": "backup-lobby-0", "apart": false})
    );
    assert_eq!(new_volume_map(json!({"backup": {}})), None);
}

#[test]
fn agent_key_is_a_file_of_the_sidecar_only() {
    let template = template(json!({"backup": {}}));
    let spec = template.spec.as_ref().unwrap();
    let volume = spec.volumes.iter().flatten().find(|volume| volume.name == KEY_VOLUME).unwrap();
    let secret = volume.secret.as_ref().unwrap();
    assert_eq!((secret.secret_name.as_deref(), secret.default_mode), (Some("lobby-nightshift"), Some(0o400)));
    let keys: Vec<_> = secret.items.iter().flatten().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["agent-key"], "neither the private key nor the password");
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        let is_mounted = container.volume_mounts.iter().flatten().any(|mount| mount.name == KEY_VOLUME);
        assert_eq!(is_mounted, container.name == AGENT_CONTAINER, "{}", container.name);
        let secrets = container
            .env
            .iter()
            .flatten()
            .filter_map(|variable| Some(variable.value_from.as_ref()?.secret_key_ref.as_ref()?.key.as_str()));
        assert!(secrets.into_iter().all(|key| key == "rcon-password"), "{}", container.name);
    }
}

#[test]
fn template_names_files_and_public_key() {
    let prepare = |files: &FileSet, signer: &Signer| {
        let config = Config::parse_from(["operator"]);
        let template = build_template(&check(&server(json!({}))).unwrap(), &lock(), files, &signer.verifier(), &config);
        let containers = template.spec.unwrap().init_containers.unwrap();
        containers.into_iter().find(|container| container.name == PREPARE_CONTAINER).unwrap()
    };
    let found = prepare(&files(), &signer());
    assert_eq!(variable(&found, "NIGHTSHIFT_FILES_DIGEST"), Some(files().digest().as_str()));
    assert_eq!(variable(&found, "NIGHTSHIFT_SIGNED_BY"), Some(signer().verifier().to_string().as_str()));
    let mut foreign = files();
    foreign.server.url = "http://example.com/paper.jar".to_owned();
    assert_ne!(prepare(&foreign, &signer()), found, "another address is another template");
}
