//! Edge (reads). Tests `resolver migrate`: fields are converted, or named where they have no counterpart.
//!
//! The inputs are our own. They have the fields of the types and examples of lexfrei/minecraft-operator (`api/v1beta1`,
//! `examples`), read on 29 November 2026.

use std::fmt::Write as _;

use super::{Workspace, assert_snapshot, output_text};

/// A server and its Secret, with the fields that every server there has.
const PLAIN: &str = r#"apiVersion: mc.k8s.lex.la/v1beta1
kind: PaperMCServer
metadata:
  name: lobby
  namespace: games
  labels: {tier: survival}
spec:
  updateStrategy: "auto"
  updateSchedule:
    checkCron: "0 3 * * *"
    maintenanceWindow:
      enabled: true
      cron: "0 4 * * 0"
  gracefulShutdown:
    timeout: 300s
  rcon:
    enabled: true
    port: 25575
    passwordSecret: {name: lobby-rcon, key: password}
  podTemplate:
    spec:
      containers:
      - name: minecraft
        image: docker.io/lexfrei/papermc:1.21.10-91
        resources:
          requests: {memory: "2Gi", cpu: "1000m"}
          limits: {memory: "4Gi"}
        env:
        - {name: EULA, value: "TRUE"}
        - {name: JAVA_OPTS, value: "-Xmx3G -Xms1G"}
---
apiVersion: v1
kind: Secret
metadata: {name: lobby-rcon, namespace: games}
stringData: {password: "not for the output"}
---
apiVersion: mc.k8s.lex.la/v1beta1
kind: Plugin
metadata: {name: multiverse, namespace: games}
spec:
  source: {type: hangar, project: Multiverse/Multiverse-Core}
  updateStrategy: latest
  updateDelay: 72h0m0s
  compatibilityOverride: {enabled: true, minecraftVersions: ["1.21.x"]}
  instanceSelector:
    matchLabels: {tier: survival}
"#;

/// A server with all fields, as the cluster prints it.
const EVERYTHING: &str = r#"apiVersion: mc.k8s.lex.la/v1beta1
kind: PaperMCServer
metadata:
  name: arena
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    mc.k8s.lex.la/backup-now: "1764000000"
    team: builders
  creationTimestamp: "2026-03-01T00:00:00Z"
  resourceVersion: "12"
spec:
  updateStrategy: pin
  version: "1.21.8"
  build: 40
  updateDelay: 1.5h
  updateSchedule:
    checkCron: "0 3 * * ?"
    maintenanceWindow: {enabled: false, cron: "CRON_TZ=Europe/Berlin 0 4 * * 0"}
  gracefulShutdown: {timeout: 30s}
  rcon:
    enabled: false
    passwordSecret: {name: "", key: ""}
  service:
    type: LoadBalancer
    annotations: {example.org/pool: games}
    loadBalancerIP: 192.0.2.7
  gateway:
    enabled: true
    parentRefs: [{name: edge, sectionName: minecraft}]
    tcpRoute: {enabled: true}
  backup:
    enabled: true
    schedule: "0 */6 * * *"
    beforeUpdate: false
    volumeSnapshotClassName: fast
    retention: {maxCount: 200}
  network:
    networkPolicy:
      enabled: true
      allowFrom: [{cidr: 198.51.100.0/24}]
      allowEgressTo: [{cidr: 203.0.113.0/24, port: 8080, protocol: TCP}]
  podTemplate:
    metadata:
      creationTimestamp: null
      labels: {team: builders}
    spec:
      terminationGracePeriodSeconds: 30
      nodeSelector: {disk: fast}
      containers:
      - name: papermc
        command: [java, -jar, paper.jar]
        env:
        - {name: OPS, value: somebody}
        - name: TOKEN
          valueFrom: {secretKeyRef: {name: arena, key: token}}
        volumeMounts:
        - {name: data, mountPath: /data}
        - {name: motd, mountPath: /data/config/motd}
      - name: map
        image: example.org/map:1
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: old}}
      - {name: motd, configMap: {name: motd}}
status:
  currentVersion: "1.21.8"
  currentBuild: 60
"#;

fn of_plugin(name: &str, spec: &str) -> String {
    format!("---\napiVersion: mc.k8s.lex.la/v1beta1\nkind: Plugin\nmetadata: {{name: {name}}}\nspec:\n{spec}\n")
}

#[test]
fn migrated_server_needs_no_action_and_gets_answer() {
    let workspace = Workspace::new(&[("lobby.yaml", PLAIN)]);
    let output = workspace.command(&["migrate", "-f", "lobby.yaml"]).output().unwrap();
    let text = output_text(&output);
    assert!(text.starts_with("exit 0\n"), "{text}");
    assert!(!text.contains("not for the output"), "{text}");
    assert_snapshot("migrate", &text);
    let manifests = String::from_utf8(output.stdout).unwrap();
    for line in [
        "  eula: Accepted",
        "  updateStrategy: auto",
        "    existingClaim: data-lobby-0",
        "        - name: papermc",
        "            - name: \"JVM_OPTS\"",
        "    project: Multiverse-Core",
        "  updateDelay: \"72h0m0s\"",
    ] {
        assert!(manifests.lines().any(|printed| printed == line), "{line}\n{manifests}");
    }
    let answer = workspace.run_with_stdin(&["explain", "-f", "-"], &manifests);
    assert!(answer.starts_with("exit 0\n") && answer.contains("Multiverse-Core"), "{answer}");
}

#[test]
fn field_without_counterpart_is_comment_and_line_on_stderr() {
    let workspace = Workspace::new(&[("arena.yaml", EVERYTHING)]);
    let output = workspace.command(&["migrate", "-f", "arena.yaml"]).output().unwrap();
    assert_snapshot("migrate-everything", &output_text(&output));
    assert_eq!(output.status.code(), Some(1));
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    for (line, field) in [
        (11, "spec.eula"),
        (18, "spec.updateSchedule.maintenanceWindow.enabled"),
        (26, "spec.service.loadBalancerIP"),
        (27, "spec.gateway"),
        (33, "spec.backup.schedule"),
        (35, "spec.backup.volumeSnapshotClassName"),
        (38, "spec.network.networkPolicy"),
        (51, "spec.podTemplate.spec.containers[papermc].command"),
        (53, "spec.podTemplate.spec.containers[papermc].env[OPS]"),
    ] {
        let start = format!("arena.yaml:{line}: PaperMCServer arena: `{field}` ");
        assert!(stderr.lines().any(|printed| printed.starts_with(&start)), "{start}\n{stderr}");
        assert!(
            stdout.lines().any(|printed| printed.trim().starts_with(&format!("# `{field}` "))),
            "{field}\n{stdout}"
        );
    }
    assert!(stderr.ends_with("1 object converted. 9 fields need an action\n"), "{stderr}");
    assert!(!stdout.contains("backup-now") && !stdout.contains("last-applied"), "{stdout}");
}

#[test]
fn plugin_without_checksum_is_comment_until_completed() {
    let release = "  source: {type: hangar, project: WorldEdit}\n  updateStrategy: build-pin\n  version: \"7.3.0\"\n";
    let selector = "{matchExpressions: [{key: tier, operator: In, values: [a, b]}]}";
    let edit = of_plugin("edit", &format!("{release}  build: 6734\n  port: 8123\n  instanceSelector: {selector}"));
    let source = "{type: url, url: \"https://example.org/Rules.jar\"}";
    let rules = format!("  source: {source}\n  version: \"2.1\"\n  instanceSelector: {{}}");
    let workspace = Workspace::new(&[("plugins.yaml", &(edit + &of_plugin("rules", &rules)))]);
    let output = workspace.command(&["migrate", "-f", "plugins.yaml"]).output().unwrap();
    assert_snapshot("migrate-plugins", &output_text(&output));
    assert_eq!(output.status.code(), Some(1));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let (_, incomplete) = stdout.split_once("---\n").unwrap();
    assert!(incomplete.lines().all(|line| line.starts_with('#')), "{incomplete}");
    let checksum = "aabbccdd00112233aabbccdd00112233aabbccdd00112233aabbccdd00112233";
    let completed = of_plugin("rules", &rules.replace("jar\"}", &format!("jar\", checksum: {checksum}}}")));
    let shown = workspace.run_with_stdin(&["migrate", "-f", "-"], &completed);
    assert!(shown.starts_with("exit 0\n") && shown.contains(checksum), "{shown}");
}

#[test]
fn objects_are_read_from_stdin_and_lists() {
    let workspace = Workspace::new(&[]);
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [{
        "apiVersion": "mc.k8s.lex.la/v1beta1", "kind": "Plugin",
        "metadata": {"name": "via", "namespace": "games", "uid": "1", "finalizers": ["mc.k8s.lex.la/plugin-cleanup"]},
        "spec": {"source": {"type": "hangar", "project": "ViaVersion"}, "instanceSelector": {}},
        "status": {"repositoryStatus": "available"}}]}"#;
    let expected = "exit 0\n-- stdout\n# From stdin:1, converted by `resolver migrate`.\n\
                    apiVersion: nightshift.dev/v1alpha1\nkind: Plugin\n\
                    metadata:\n  name: via\n  namespace: games\n\
                    spec:\n  source:\n    type: hangar\n    project: ViaVersion\n  instanceSelector: {}\n\
                    -- stderr\n1 object converted. No action is needed\n";
    assert_eq!(workspace.run_with_stdin(&["migrate", "-f", "-"], list), expected);
}

#[test]
fn invalid_foreign_manifest_is_refused_with_place() {
    // Each change of the input, and the line that the error names.
    let cases = [
        ("checkCron:", "chekCron:", 10),
        ("cron: \"0 4 * * 0\"", "cron: 4", 13),
        ("0 4 * * 0", "0 25 * * 0", 13),
        ("updateStrategy: \"auto\"", "updateStrategy: newest", 8),
        ("name: lobby", "name: 2lobby", 4),
        ("lex.la/v1beta1", "lex.la/v1alpha1", 1),
        ("kind: PaperMCServer", "kind: PaperServer", 2),
        // The name of the container changes, so only the list of containers is found in the input.
        ("        env:", "        volumeMounts: [{name: w, mountPath: /data/world}]\n        env:", 22),
    ];
    let mut shown = String::new();
    for (from, to, line) in cases {
        let text = PLAIN.replacen(from, to, 1);
        assert_ne!(text, PLAIN, "{from}");
        let workspace = Workspace::new(&[("lobby.yaml", &text)]);
        let refused = workspace.run(&["migrate", "-f", "lobby.yaml"]);
        assert!(refused.starts_with("exit 2\n-- stderr\n"), "{to}: {refused}");
        assert!(refused.contains(&format!("lobby.yaml:{line}: ")), "{to}, line {line}: {refused}");
        writeln!(shown, "{to}: {refused}").unwrap();
    }
    assert_snapshot("migrate-refused", &shown);
    let workspace = Workspace::new(&[("lobby.yaml", &PLAIN.replace("  rcon:", "\trcon:"))]);
    let refused = workspace.run(&["migrate", "-f", "lobby.yaml"]);
    assert!(refused.starts_with("exit 2\n-- stderr\nlobby.yaml:") && refused.contains("is not YAML"), "{refused}");
}

#[test]
fn explain_of_foreign_manifest_names_migrate() {
    let workspace = Workspace::new(&[("lobby.yaml", PLAIN)]);
    let refused = workspace.run(&["explain", "-f", "lobby.yaml"]);
    assert!(refused.contains("lobby.yaml:1: `apiVersion` cannot be `mc.k8s.lex.la/v1beta1`. Convert"), "{refused}");
}

#[test]
fn input_without_foreign_objects_is_refused() {
    let workspace = Workspace::new(&[("lobby.yaml", &super::lobby())]);
    assert_snapshot("migrate-nothing", &workspace.run(&["migrate", "-f", "lobby.yaml"]));
    assert_snapshot("migrate-no-file", &workspace.run(&["migrate"]));
}
