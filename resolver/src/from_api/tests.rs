use std::collections::BTreeMap;

use crds::LabelSelector;
use serde_json::{Value, json};

use super::*;
use crate::catalog::{ProjectKey, Source};
use crate::compatibility_facts::Requirement;

fn server(spec: &Value) -> PaperMCServer {
    serde_json::from_value(json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer",
        "metadata": {"name": "lobby", "namespace": "games", "labels": {"tier": "survival"}},
        "spec": spec,
    }))
    .unwrap()
}

fn plugin(name: &str, namespace: &str, more: &Value) -> Plugin {
    let mut spec = json!({"source": {"type": "modrinth", "project": "warps"}, "instanceSelector": {}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    }))
    .unwrap()
}

fn complaints(server: &PaperMCServer, plugins: &[Plugin]) -> Vec<String> {
    request(server, plugins, None, None).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn proxy_request_omits_world_state() {
    let opened = || Some("26.1".parse().unwrap());
    let asked = |software: &str| {
        let mut server = server(&json!({"updateStrategy": "auto", "software": software}));
        server.status = serde_json::from_value(json!({"unmanaged": [{"file": "Shop.jar", "size": 1}]})).unwrap();
        let asked = request(&server, &[], opened(), None).unwrap();
        (asked.software, asked.floor, asked.unmanaged.len())
    };
    assert_eq!(asked("Paper"), (Software::Paper, opened(), 1));
    assert_eq!(asked("Purpur"), (Software::Purpur, opened(), 1));
    assert_eq!(asked("Folia"), (Software::Folia, opened(), 1));
    assert_eq!(asked("Velocity"), (Software::Velocity, None, 0));
}

#[test]
fn requirement_error_points_at_position() {
    let requires = json!([
        {"plugin": "WorldEdit", "version": ">=7.4, <<7.5"}, {"plugin": "LuckPerms", "version": "*"},
        {"plugin": "luckperms", "version": ">=5"}, {"plugin": " ", "version": "*"},
    ]);
    let complaints = complaints(
        &server(&json!({"updateStrategy": "auto"})),
        &[plugin("guard", "games", &json!({"requires": requires}))],
    );
    let expected = [
        "Plugin games/guard: `spec.requires[0].version` is no version range: `<` begins neither a comparison nor a \
         version; write `>=`, `>`, `<=`, `<`, `=` or a version; write conditions with commas between them, such as \
         `>=7.4, <7.5`\n    >=7.4, <<7.5\n            ^",
        "Plugin games/guard: `spec.requires[2].plugin` names `luckperms` a second time; write one line for it, with a \
         comma between its conditions: `>=7.4, <7.5`",
        "Plugin games/guard: `spec.requires[3].plugin` is empty; write the name of the plugin it needs, such as `WorldEdit`",
    ];
    assert_eq!(complaints, expected);
}

#[test]
fn hold_of_unknown_plugin_is_refused_with_known_names() {
    let asks = server(&json!({"updateStrategy": "auto", "hold": ["claims", "clams"]}));
    let plugins = [plugin("claims", "games", &json!({})), plugin("maps", "games", &json!({}))];
    let problem = "PaperMCServer games/lobby: `spec.hold[1]` names `clams`, which is no Plugin for this server";
    assert_eq!(complaints(&asks, &plugins), [format!("{problem}; write claims or maps, or remove it")]);
    let elsewhere = plugin("claims", "other", &json!({}));
    assert_eq!(complaints(&asks, &[elsewhere]).len(), 2, "in another namespace it is for others");
}

#[test]
fn hold_of_star_is_no_plugin_in_request() {
    let asks = |hold: &Value| server(&json!({"updateStrategy": "auto", "hold": hold}));
    let plugins = [plugin("claims", "games", &json!({})), plugin("maps", "games", &json!({}))];
    let asked = |hold: &Value| request(&asks(hold), &plugins, None, None).unwrap();
    assert_eq!(asked(&json!(["*"])), asked(&json!([])));
    assert_eq!(asked(&json!(["*", "maps"])), asked(&json!(["maps"])), "what is named besides is held as ever");
    assert_ne!(asked(&json!(["*", "maps"])), asked(&json!(["*"])));
    assert!(request(&asks(&json!(["*"])), [], None, None).is_ok(), "it needs no plugin");
    let problem = "PaperMCServer games/lobby: `spec.hold[1]` names `clams`, which is no Plugin for this server";
    let wrong = complaints(&asks(&json!(["*", "clams"])), &plugins);
    assert_eq!(wrong, [format!("{problem}; write claims or maps, or remove it")]);
}

#[test]
fn server_and_plugins_become_request() {
    let server = server(&json!({
        "updateStrategy": "build-pin", "version": "1.21.10", "build": 130, "updateDelay": "72h", "channel": "Beta",
        "dependencies": "Propose", "hold": ["claims"], "hotfixSiblings": "Ask", "unlisted": "Refuse", "image": "itzg/minecraft-server:java21",
    }));
    let plugins = [
        plugin(
            "claims",
            "games",
            &json!({
                "source": {"type": "modrinth", "project": "warps", "jars": ["Warps", "*Signs"]},
                "updateStrategy": "build-pin", "version": "2.0", "updateDelay": "0s",
            }),
        ),
        plugin(
            "anvil",
            "games",
            &json!({
                "source": {"type": "hangar", "project": "Anvil"}, "channel": "Alpha",
                "compatibilityOverride": {"enabled": true, "mode": "Add", "minecraftVersions": ["1.21.x"], "releases": ["3"]},
                "requires": [{"plugin": " WorldEdit", "version": ">=7.4, <7.5"}], "delayTogether": ["Hammer"],
                "allowDowngrade": true, "hold": true,
            }),
        ),
    ];
    let running = Running {
        software: Software::Paper,
        minecraft: "1.21.8".parse().unwrap(),
        build: 60,
        releases: vec![],
        image: None,
        unasked: Vec::new(),
        versions: Vec::new(),
        lost: Vec::new(),
        java: None,
        since: None,
    };
    let request = request(&server, &plugins, Some("1.21.8".parse().unwrap()), Some(running.clone())).unwrap();
    let expected = Request {
        server: "games/lobby".to_owned(),
        software: Software::Paper,
        paper: PaperRequest::BuildPin { version: "1.21.10".parse().unwrap(), build: 130 },
        delay: SignedDuration::from_hours(72),
        channel: BuildChannel::Beta,
        floor: Some("1.21.8".parse().unwrap()),
        running: Some(running),
        plugins: vec![
            PluginRequest {
                object: "anvil".to_owned(),
                key: ProjectKey { source: Source::Hangar, project: "Anvil".to_owned() },
                jars: Vec::new(),
                version: VersionRequest::Latest,
                delay: SignedDuration::from_hours(72),
                channel: Channel::Alpha,
                compatibility: Some(CompatibilityOverride {
                    mode: OverrideMode::Add,
                    minecraft: vec!["1.21.x".to_owned()],
                    releases: vec!["3".to_owned()],
                }),
                requires: vec![Requirement { plugin: "WorldEdit".to_owned(), version: ">=7.4, <7.5".parse().unwrap() }],
                allow_downgrade: true,
                hold: Some(Hold::Plugin),
                delay_together: vec!["Hammer".to_owned()],
                selector: Some("{}".to_owned()),
            },
            PluginRequest {
                object: "claims".to_owned(),
                key: ProjectKey { source: Source::Modrinth, project: "warps".to_owned() },
                jars: vec!["Warps".to_owned(), "*Signs".to_owned()],
                version: VersionRequest::Pin { version: "2.0".to_owned() },
                delay: SignedDuration::ZERO,
                channel: Channel::Release,
                compatibility: None,
                requires: Vec::new(),
                allow_downgrade: false,
                hold: Some(Hold::Server),
                delay_together: Vec::new(),
                selector: Some("{}".to_owned()),
            },
        ],
        dependencies: Dependencies::Propose,
        image: Some("itzg/minecraft-server:java21".to_owned()),
        image_is_given: false,
        image_policy: ImagePolicy::Follow,
        unmanaged: Vec::new(),
        unmanaged_plugins: UnmanagedPlugins::Hold,
        hotfix_siblings: HotfixSiblings::Ask,
        unlisted: Unlisted::Refuse,
        facts: crate::compatibility_facts::CompatibilityFacts::default(),
    };
    assert_eq!(request, expected);
}

#[test]
fn urgent_plugin_ignores_all_update_delays() {
    let server = server(&json!({"updateStrategy": "auto", "updateDelay": "72h"}));
    let delay =
        |more: &Value| request(&server, &[plugin("geyser", "games", more)], None, None).unwrap().plugins[0].delay;
    assert_eq!(delay(&json!({})), SignedDuration::from_hours(72));
    assert_eq!(delay(&json!({"updateDelay": "24h"})), SignedDuration::from_hours(24));
    for urgent in [json!({"urgent": true}), json!({"urgent": true, "updateDelay": "24h"})] {
        assert_eq!(delay(&urgent), SignedDuration::ZERO);
    }
}

#[test]
fn image_policy_is_read_and_refused_with_pinned_image() {
    let policy = |spec: Value| request(&server(&spec), [], None, None).map(|request| request.image_policy);
    assert_eq!(policy(json!({"updateStrategy": "auto"})), Ok(ImagePolicy::Follow));
    assert_eq!(policy(json!({"updateStrategy": "auto", "imagePolicy": "SameJava"})), Ok(ImagePolicy::SameJava));
    assert_eq!(policy(json!({"updateStrategy": "auto", "imagePolicy": "Keep"})), Ok(ImagePolicy::Keep));
    let both = policy(json!({"updateStrategy": "auto", "imagePolicy": "Keep", "image": "x:java21"})).unwrap_err();
    assert_eq!(
        both[0].to_string(),
        "PaperMCServer games/lobby: `spec.imagePolicy` says how a chosen image may change, and `spec.image` pins one; remove one of the two"
    );
}

#[test]
fn disabled_override_has_no_effect() {
    let plugins = [plugin("warps", "games", &json!({"compatibilityOverride": {"minecraftVersions": ["1.21.11"]}}))];
    let request = request(&server(&json!({"updateStrategy": "auto"})), &plugins, None, None).unwrap();
    assert_eq!(request.plugins[0].compatibility, None);
}

#[test]
fn plugins_of_other_namespaces_and_servers_are_ignored() {
    let plugins = [
        plugin("near", "games", &json!({"instanceSelector": {"matchLabels": {"tier": "survival"}}})),
        plugin("far", "shop", &json!({})),
        plugin("creative", "games", &json!({"instanceSelector": {"matchLabels": {"tier": "creative"}}})),
        plugin("all", "games", &json!({})),
    ];
    let request = request(&server(&json!({"updateStrategy": "latest"})), &plugins, None, None).unwrap();
    let names: Vec<&str> = request.plugins.iter().map(|wish| wish.object.as_str()).collect();
    assert_eq!(names, ["all", "near"]);
}

#[test]
fn selectors_match_like_kubernetes() {
    let labels: BTreeMap<String, String> = [("tier".to_owned(), "survival".to_owned())].into();
    let with = |expression: Value| {
        let selector: LabelSelector = serde_json::from_value(json!({"matchExpressions": [expression]})).unwrap();
        matches(&selector, &labels)
    };
    assert!(matches(&LabelSelector::default(), &BTreeMap::new()), "an empty one matches everything");
    assert!(with(json!({"key": "tier", "operator": "In", "values": ["creative", "survival"]})));
    assert!(!with(json!({"key": "tier", "operator": "In", "values": ["creative"]})));
    assert!(!with(json!({"key": "zone", "operator": "In", "values": ["a"]})));
    assert!(!with(json!({"key": "tier", "operator": "NotIn", "values": ["survival"]})));
    assert!(with(json!({"key": "tier", "operator": "NotIn", "values": ["creative"]})));
    assert!(with(json!({"key": "zone", "operator": "NotIn", "values": ["a"]})), "an absent label is not in the list");
    assert!(with(json!({"key": "tier", "operator": "Exists"})));
    assert!(!with(json!({"key": "zone", "operator": "Exists"})));
    assert!(with(json!({"key": "zone", "operator": "DoesNotExist"})));
    assert!(!with(json!({"key": "tier", "operator": "DoesNotExist"})));
    assert!(!with(json!({"key": "tier", "operator": "Matches"})));
    let both: LabelSelector = serde_json::from_value(json!({
        "matchLabels": {"tier": "survival"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}],
    }))
    .unwrap();
    assert!(!matches(&both, &labels), "all parts must match");
}

#[test]
fn request_errors_are_all_reported_with_fixes() {
    let server = server(&json!({"updateStrategy": "build-pin", "updateDelay": "5 minutes"}));
    let plugins =
        [plugin("warps", "games", &json!({"source": {"type": "hangar", "project": ""}, "updateStrategy": "pin"}))];
    insta::assert_snapshot!(complaints(&server, &plugins).join("\n"), @r##"
    PaperMCServer games/lobby: `spec.version` is missing, and updateStrategy `build-pin` needs it; write the Minecraft version to stay on, such as `version: 1.21.10`
    PaperMCServer games/lobby: `spec.build` is missing, and updateStrategy `build-pin` needs it; write the build to stay on, such as `build: 130`, or use updateStrategy `pin`
    PaperMCServer games/lobby: `spec.updateDelay` is `5 minutes`, which is no duration; write numbers with d, h, m or s, such as `72h` or `1h30m`
    Plugin games/warps: `spec.version` is missing, and a pin needs it; write the release to stay on as its authors write it, such as `version: "5.7.1"`
    Plugin games/warps: `spec.source.project` is missing; write the slug, the last part of the project page's address
    "##);
}

#[test]
fn pin_without_valid_version_is_refused() {
    let server = server(&json!({"updateStrategy": "pin", "version": "\u{1F600}"}));
    insta::assert_snapshot!(complaints(&server, &[]).join("\n"), @r##"
    PaperMCServer games/lobby: `spec.version` is `😀`, which is no Minecraft version; write one such as `1.21.10` or `26.1`
    "##);
}

fn of_url(more: &Value) -> Vec<String> {
    let mut source = json!({"type": "url", "url": "https://example.org/x.jar", "checksum": "AB".repeat(32)});
    for (key, value) in more.as_object().unwrap() {
        source[key] = value.clone();
    }
    let complaints = check_plugin(&plugin("rules", "games", &json!({"source": source})));
    complaints.iter().map(|complaint| format!("{} {}", complaint.path, complaint.problem)).collect()
}

#[test]
fn url_source_is_own_project_per_checksum() {
    let key = |checksum: &str| {
        let source = json!({"type": "url", "url": "https://example.org/x.jar", "checksum": checksum});
        project_key(&serde_json::from_value(source).unwrap()).unwrap()
    };
    let (one, two) = (key(&"AB".repeat(32)), key(&format!("sha256:{}", "cd".repeat(32))));
    assert_ne!(one, two);
    assert_eq!(one, key(&format!("sha256:{}", "ab".repeat(32))), "however it is written");
    let digits = "ab".repeat(32);
    assert_eq!(one.to_string(), format!("url/https://example.org/x.jar#sha256={digits}"));
    assert_eq!(one.file(), Some(("https://example.org/x.jar", digits.as_str())));
    assert_eq!(one.shown(), "https://example.org/x.jar");
    let request = request(
        &server(&json!({"updateStrategy": "auto", "updateSchedule": {"maintenanceWindow": {"cron": "@daily"}}})),
        [&plugin(
            "rules",
            "games",
            &json!({"source": {"type": "url", "url": "https://example.org/x.jar", "checksum": digits}}),
        )],
        None,
        None,
    );
    assert_eq!(request.unwrap().plugins[0].key, one);
}

#[test]
fn url_source_requires_https_and_plain_host() {
    assert_eq!(of_url(&json!({})), Vec::<String>::new());
    for good in ["https://example.org", "HTTPS://example.org:8443/a/b?c=d@e", "https://[2606:4700::1]/x"] {
        assert_eq!(of_url(&json!({"url": good})), Vec::<String>::new(), "{good}");
    }
    for (wrong, what) in [
        ("http://example.org/x.jar", "plain http"),
        ("ftp://example.org/x.jar", "not https"),
        ("example.org/x.jar", "no address"),
        ("https:///x.jar", "no host"),
        ("https://me:hunter2@example.org/x.jar", "a user in it"),
        ("https://example.org/x.jar#v2", "`#`"),
        ("https://example.org/my plugin.jar", "blank"),
        ("", "missing"),
        (&format!("https://example.org/{}", "x".repeat(2048)), "characters"),
    ] {
        let said = of_url(&json!({"url": wrong}));
        assert!(said.len() == 1 && said[0].starts_with("spec.source.url ") && said[0].contains(what), "{said:?}");
        assert!(!said[0].contains("hunter2"), "{said:?}");
    }
}

#[test]
fn url_source_is_one_release_and_requires_hash() {
    for (more, what) in [
        (json!({"checksum": null}), "spec.source.checksum is missing"),
        (json!({"checksum": "md5:00"}), "spec.source.checksum is `md5:00`, which is no sha256"),
        (json!({"checksum": "sha512:00"}), "spec.source.checksum is `sha512:00`"),
        (json!({"project": "warps"}), "spec.source.project is for `type: hangar`"),
        (json!({"type": "modrinth", "project": "warps", "checksum": null}), "spec.source.url is for `type: url`"),
        (json!({"type": "hangar", "project": "warps", "url": null}), "spec.source.checksum is for `type: url`"),
    ] {
        let said = of_url(&more);
        assert!(said.len() == 1 && said[0].starts_with(what), "{more}: {said:?}");
    }
    let source = json!({"type": "url", "url": "https://example.org/x.jar", "checksum": "ab".repeat(32)});
    let pinned = plugin("rules", "games", &json!({"source": source, "updateStrategy": "pin", "version": "2"}));
    let paths: Vec<String> = check_plugin(&pinned).into_iter().map(|complaint| complaint.path).collect();
    assert_eq!(paths, ["spec.updateStrategy", "spec.version"]);
}
