use std::collections::BTreeMap;

use crds::LabelSelector;
use serde_json::{Value, json};

use super::*;
use resolver::model::catalog::{ProjectKey, Source};
use resolver::model::compatibility_facts::Requirement;

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

fn violations(server: &PaperMCServer, plugins: &[Plugin]) -> Vec<String> {
    request(server, plugins, None, None).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn proxy_request_omits_world_state() {
    let opened = || Some("26.1".parse().unwrap());
    let facets = |software: &str| {
        let mut server = server(&json!({"updateStrategy": "auto", "software": software}));
        server.status = serde_json::from_value(json!({"unmanaged": [{"file": "Shop.jar", "size": 1}]})).unwrap();
        let facets = request(&server, &[], opened(), None).unwrap();
        (facets.software, facets.floor, facets.unmanaged.len())
    };
    assert_eq!(facets("Paper"), (Software::Paper, opened(), 1));
    assert_eq!(facets("Purpur"), (Software::Purpur, opened(), 1));
    assert_eq!(facets("Folia"), (Software::Folia, opened(), 1));
    assert_eq!(facets("Velocity"), (Software::Velocity, None, 0));
}

#[test]
fn requirement_error_points_at_position() {
    let requires = json!([
        {"plugin": "WorldEdit", "version": ">=7.4, <<7.5"}, {"plugin": "LuckPerms", "version": "*"},
        {"plugin": "luckperms", "version": ">=5"}, {"plugin": " ", "version": "*"},
    ]);
    let violations = violations(
        &server(&json!({"updateStrategy": "auto"})),
        &[plugin("guard", "games", &json!({"requires": requires}))],
    );
    let expected = [
        "Plugin games/guard: `spec.requires[0].version` is not a version range: `<` begins neither a comparison nor a \
         version: write `>=`, `>`, `<=`, `<`, `=` or a version. Write \
         `>=7.4, <7.5`\n    >=7.4, <<7.5\n            ^",
        "Plugin games/guard: `spec.requires[2].plugin` names `luckperms` a second time. Write one line for it, with a \
         comma between its conditions: `>=7.4, <7.5`",
        "Plugin games/guard: `spec.requires[3].plugin` is empty. Write the name of the plugin it needs, such as `WorldEdit`",
    ];
    assert_eq!(violations, expected);
}

#[test]
fn hold_of_unknown_plugin_is_refused_with_known_names() {
    let server = server(&json!({"updateStrategy": "auto", "hold": ["claims", "clams"]}));
    let plugins = [plugin("claims", "games", &json!({})), plugin("maps", "games", &json!({}))];
    let problem = "PaperMCServer games/lobby: `spec.hold[1]` names `clams`, which is not a Plugin for this server";
    assert_eq!(violations(&server, &plugins), [format!("{problem}. Write claims or maps, or remove it")]);
    let elsewhere = plugin("claims", "other", &json!({}));
    assert_eq!(violations(&server, &[elsewhere]).len(), 2, "a Plugin of another namespace does not count");
}

#[test]
fn hold_of_star_is_no_plugin_in_request() {
    let held_server = |hold: &Value| server(&json!({"updateStrategy": "auto", "hold": hold}));
    let plugins = [plugin("claims", "games", &json!({})), plugin("maps", "games", &json!({}))];
    let request_with_hold = |hold: &Value| request(&held_server(hold), &plugins, None, None).unwrap();
    assert_eq!(request_with_hold(&json!(["*"])), request_with_hold(&json!([])));
    assert_eq!(
        request_with_hold(&json!(["*", "maps"])),
        request_with_hold(&json!(["maps"])),
        "`*` does not change the other holds"
    );
    assert_ne!(request_with_hold(&json!(["*", "maps"])), request_with_hold(&json!(["*"])));
    assert!(request(&held_server(&json!(["*"])), [], None, None).is_ok(), "`*` is valid without Plugins");
    let problem = "PaperMCServer games/lobby: `spec.hold[1]` names `clams`, which is not a Plugin for this server";
    let wrong = violations(&held_server(&json!(["*", "clams"])), &plugins);
    assert_eq!(wrong, [format!("{problem}. Write claims or maps, or remove it")]);
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
        unrequested: Vec::new(),
        versions: Vec::new(),
        delisted: Vec::new(),
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
        checked_at: None,
        hotfix_siblings: HotfixSiblings::Ask,
        unlisted: Unlisted::Refuse,
        facts: resolver::model::compatibility_facts::CompatibilityFacts::default(),
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
        "PaperMCServer games/lobby: `spec.imagePolicy` says how a chosen image may change, and `spec.image` pins one. Remove one of the two"
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
    let names: Vec<&str> = request.plugins.iter().map(|plugin_request| plugin_request.object.as_str()).collect();
    assert_eq!(names, ["all", "near"]);
}

#[test]
fn selectors_match_like_kubernetes() {
    let labels: BTreeMap<String, String> = [("tier".to_owned(), "survival".to_owned())].into();
    let with = |expression: Value| {
        let selector: LabelSelector = serde_json::from_value(json!({"matchExpressions": [expression]})).unwrap();
        matches(&selector, &labels)
    };
    assert!(matches(&LabelSelector::default(), &BTreeMap::new()), "an empty selector matches everything");
    assert!(with(json!({"key": "tier", "operator": "In", "values": ["creative", "survival"]})));
    assert!(!with(json!({"key": "tier", "operator": "In", "values": ["creative"]})));
    assert!(!with(json!({"key": "zone", "operator": "In", "values": ["a"]})));
    assert!(!with(json!({"key": "tier", "operator": "NotIn", "values": ["survival"]})));
    assert!(with(json!({"key": "tier", "operator": "NotIn", "values": ["creative"]})));
    assert!(with(json!({"key": "zone", "operator": "NotIn", "values": ["a"]})), "`NotIn` matches an absent label");
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
    insta::assert_snapshot!(violations(&server, &plugins).join("\n"), @r##"
    PaperMCServer games/lobby: `spec.version` is missing, and updateStrategy `build-pin` needs it. Write the Minecraft version to stay on, such as `version: 1.21.10`
    PaperMCServer games/lobby: `spec.build` is missing, and updateStrategy `build-pin` needs it. Write the build to stay on, such as `build: 130`, or use updateStrategy `pin`
    PaperMCServer games/lobby: `spec.updateDelay` is `5 minutes`, which is not a duration. Write numbers with d, h, m or s, such as `72h` or `1h30m`
    Plugin games/warps: `spec.version` is missing, and a pin needs it. Write the release to stay on as its authors write it, such as `version: "5.7.1"`
    Plugin games/warps: `spec.source.project` is missing. Write the slug, the last part of the project page's address
    "##);
}

#[test]
fn pin_without_valid_version_is_refused() {
    let server = server(&json!({"updateStrategy": "pin", "version": "\u{1F600}"}));
    insta::assert_snapshot!(violations(&server, &[]).join("\n"), @r##"
    PaperMCServer games/lobby: `spec.version` is `😀`, which is not a Minecraft version. Write one such as `1.21.10` or `26.1`
    "##);
}

fn url_violations(more: &Value) -> Vec<String> {
    let mut source = json!({"type": "url", "url": "https://example.org/x.jar", "checksum": "AB".repeat(32)});
    for (key, value) in more.as_object().unwrap() {
        source[key] = value.clone();
    }
    let violations = check_plugin(&plugin("rules", "games", &json!({"source": source})));
    violations.iter().map(|violation| format!("{} {}", violation.path, violation.problem)).collect()
}

#[test]
fn url_source_is_own_project_per_checksum() {
    let key = |checksum: &str| {
        let source = json!({"type": "url", "url": "https://example.org/x.jar", "checksum": checksum});
        project_key(&serde_json::from_value(source).unwrap()).unwrap()
    };
    let (one, two) = (key(&"AB".repeat(32)), key(&format!("sha256:{}", "cd".repeat(32))));
    assert_ne!(one, two);
    assert_eq!(one, key(&format!("sha256:{}", "ab".repeat(32))), "prefix and case of the checksum do not matter");
    let digits = "ab".repeat(32);
    assert_eq!(one.to_string(), format!("url/https://example.org/x.jar#sha256={digits}"));
    assert_eq!(one.file(), Some(("https://example.org/x.jar", digits.as_str())));
    assert_eq!(one.to_display(), "https://example.org/x.jar");
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
    assert_eq!(url_violations(&json!({})), Vec::<String>::new());
    for good in ["https://example.org", "HTTPS://example.org:8443/a/b?c=d@e", "https://[2606:4700::1]/x"] {
        assert_eq!(url_violations(&json!({"url": good})), Vec::<String>::new(), "{good}");
    }
    for (wrong, expected) in [
        ("http://example.org/x.jar", "plain http"),
        ("ftp://example.org/x.jar", "not https"),
        ("example.org/x.jar", "not a URL"),
        ("https:///x.jar", "no host"),
        ("https://me:hunter2@example.org/x.jar", "a user name"),
        ("https://example.org/x.jar#v2", "`#`"),
        ("https://example.org/my plugin.jar", "space"),
        ("", "missing"),
        (&format!("https://example.org/{}", "x".repeat(2048)), "characters"),
    ] {
        let messages = url_violations(&json!({"url": wrong}));
        assert!(
            messages.len() == 1 && messages[0].starts_with("spec.source.url ") && messages[0].contains(expected),
            "{messages:?}"
        );
        assert!(!messages[0].contains("hunter2"), "{messages:?}");
    }
}

#[test]
fn url_source_is_one_release_and_requires_hash() {
    for (more, expected) in [
        (json!({"checksum": null}), "spec.source.checksum is missing"),
        (json!({"checksum": "md5:00"}), "spec.source.checksum is `md5:00`, which is not a sha256"),
        (json!({"checksum": "sha512:00"}), "spec.source.checksum is `sha512:00`"),
        (json!({"project": "warps"}), "spec.source.project is for `type: hangar`"),
        (json!({"type": "modrinth", "project": "warps", "checksum": null}), "spec.source.url is for `type: url`"),
        (json!({"type": "hangar", "project": "warps", "url": null}), "spec.source.checksum is for `type: url`"),
    ] {
        let messages = url_violations(&more);
        assert!(messages.len() == 1 && messages[0].starts_with(expected), "{more}: {messages:?}");
    }
    let source = json!({"type": "url", "url": "https://example.org/x.jar", "checksum": "ab".repeat(32)});
    let pinned = plugin("rules", "games", &json!({"source": source, "updateStrategy": "pin", "version": "2"}));
    let paths: Vec<String> = check_plugin(&pinned).into_iter().map(|violation| violation.path).collect();
    assert_eq!(paths, ["spec.updateStrategy", "spec.version"]);
}
