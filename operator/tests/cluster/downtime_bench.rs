//! Edge (writes). Measures how long players wait on a real node, and checks the figures of `make bench` against the
//! limits of the design.
//!
//! Not part of `make test`, because the figures need a machine without other work.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::eventually::wait_until;
use super::manifests::{AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, RELEASE_CHANGES, small_server, viabackwards};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::{TestEnv, in_exclusive_test_env};
use super::update::next_minute;

/// The number of servers whose windows open at the same moment.
const WARNED_SERVERS: usize = 200;
/// The number of timed updates, and how many of them run at the same time.
const UPDATES: usize = 50;
const CONCURRENT_UPDATES: usize = 2;
/// The number of updates with a backup, and the bytes that it copies in addition to the small world of the fake server.
const BACKUP_UPDATES: usize = 10;
const REGION_BYTES: u64 = 24_000_000;
/// The number of restarts of a pod with one container, and its program.
const BARE_RESTARTS: usize = 40;
const IMAGE: &str = "nightshift.dev/busybox:dev";
const RUN_UNTIL_TERM: &str = "trap 'echo down; exit 0' TERM; echo up; while :; do sleep 1 & wait $!; done";
/// All players were warned by then.
const LONG_AFTER: SignedDuration = SignedDuration::from_secs(40);
/// The limits of the design: until the players of the last server are warned, and for Nightshift's part of the
/// downtime.
const MAX_WARNING_DELAY: SignedDuration = SignedDuration::from_secs(2);
const MAX_OVERHEAD: SignedDuration = SignedDuration::from_secs(1);
/// Enough for all starts on two cores, or fifty updates, two at a time.
const OVERALL_LIMIT: Duration = Duration::from_mins(25);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an idle machine: fifty updates, two at a time"]
async fn measure_update_downtime_against_plain_restart() {
    let concurrent_updates = format!("maxConcurrentUpdates={CONCURRENT_UPDATES}");
    in_exclusive_test_env("downtime", BEFORE_RELEASE, &["refreshSeconds=30", &concurrent_updates], async |env| {
        let servers = create_stable(env, "server", UPDATES, &json!({"players": {"policy": "Ignore"}})).await;
        let backup = json!({"storage": {"size": "64Mi"}, "beforeUpdate": "Always"});
        let with_backup =
            create_stable(env, "copied", BACKUP_UPDATES, &json!({"players": {"policy": "Ignore"}, "backup": backup}))
                .await;
        for server in &with_backup {
            server.shell(&format!("head -c {REGION_BYTES} /dev/urandom > /data/world/region/r.9.9.mca")).await;
        }
        // Measured while all servers run, because with fifty of them on two cores each step of Kubernetes takes twice
        // as long.
        let bare = Restarted::new(env, "bare", |_| json!({})).await.gaps(|runs| runs < BARE_RESTARTS).await;
        let observers = join_all(servers.iter().map(ServerObserver::start)).await;
        publish_newer(env, servers.iter().chain(&with_backup)).await;
        // Measured during the updates, under the same conditions.
        let same_shape = Restarted::new(env, "shape", server_pod_shape).await;
        let updating = Cell::new(true);
        let (same_shape, ()) = tokio::join!(same_shape.gaps(|_| updating.get()), async {
            update(&servers).await;
            updating.set(false);
        });
        let away = observers.iter().map(|observer| observer.time_between((0, "Stopping server"), (1, "Done (")));
        println!("from `Stopping server` to `Done`, {UPDATES} updates: {}", Figures::new(away));
        let gaps = Figures::new(observers.iter().map(|observer| observer.gap(0)));
        println!("from the last line of the old server to the first of the new: {gaps}");
        let (restarts, same_shape) = (same_shape.len(), Figures::new(same_shape));
        println!(
            "the same of a pod of our shape that does nothing and was deleted meanwhile, {restarts} times: {same_shape}"
        );
        println!("the same of a pod with one container: {}", Figures::new(bare));
        report_backup_durations(&with_backup).await;
        let overhead = gaps.percentile(95) - same_shape.percentile(95);
        assert!(
            overhead <= MAX_OVERHEAD,
            "at p95 Nightshift adds {overhead:#} to the downtime, and {MAX_OVERHEAD:#} is allowed"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an idle machine: two hundred servers"]
async fn measure_announcement_delay_after_window_opens() {
    in_exclusive_test_env("announced", BEFORE_RELEASE, &["refreshSeconds=30"], async |env| {
        let servers =
            create_stable(env, "server", WARNED_SERVERS, &json!({"players": {"policy": "Announce", "notice": "5m"}}))
                .await;
        for server in &servers {
            server.send_command("join Alice").await;
        }
        publish_newer(env, &servers).await;
        let (cron, opens) = next_minute();
        join_all(servers.iter().map(|server| server.set_window(&cron))).await;
        // Any request in these seconds would change the measurement.
        #[expect(clippy::disallowed_methods, reason = "the window opens at a real time")]
        let until_long_after = opens.duration_since(Timestamp::now()) + LONG_AFTER;
        tokio::time::sleep(until_long_after.unsigned_abs()).await;
        let mut first = Vec::new();
        for server in &servers {
            let log = env.kubectl(&["logs", &server.pod_name(), "-c", "papermc", "--timestamps"], "").await;
            let shown = log.lines().find(|line| line.contains("Alice was shown: "));
            let shown_at = shown.and_then(|line| line.split_once(' ')?.0.parse::<Timestamp>().ok());
            first.push(shown_at.unwrap_or_else(|| panic!("{} warned no player:\n{log}", server.name)));
        }
        let late = Figures::new(first.into_iter().map(|shown_at| shown_at.duration_since(opens)));
        println!("from the opening to the first words, {WARNED_SERVERS} servers: {late}");
        let last = late.percentile(100);
        assert!(
            last <= MAX_WARNING_DELAY,
            "the last warning came {last:#} after the opening, and {MAX_WARNING_DELAY:#} are allowed"
        );
    })
    .await;
}

/// Opens the window of all servers, and waits until the newer releases are verified on each.
async fn update(servers: &[Server<'_>]) {
    join_all(servers.iter().map(|server| server.set_window(ALWAYS_OPEN))).await;
    // One after the other: requests for fifty servers four times a second load the API server and distort the figures.
    for server in servers {
        wait_until("the update is verified", OVERALL_LIMIT, async || match server.condition("Updating").await {
            Some(found) if found.reason == "Stable" && server.version_set().await.plugins["ViaVersion"] == "5.7.1" => {
                Ok(())
            }
            other => Err(format!("{other:?}")),
        })
        .await;
    }
}

/// Reports how much a backup adds to the downtime, by the backups' own records.
async fn report_backup_durations(servers: &[Server<'_>]) {
    let observers = join_all(servers.iter().map(ServerObserver::start)).await;
    update(servers).await;
    let took = join_all(servers.iter().map(async |server| {
        let backup = server.object().await.status.and_then(|status| status.backup);
        let last_backup = backup.and_then(|backup| backup.last_backup).expect("a backup before each update");
        last_backup.completed_at.duration_since(last_backup.started_at)
    }))
    .await;
    let rest = observers.iter().zip(&took).map(|(observer, took)| observer.gap(0) - *took);
    println!(
        "the backup before an update, {REGION_BYTES} bytes and a small world, {BACKUP_UPDATES} times: {}",
        Figures::new(took.clone())
    );
    println!("from the last line of the old server to the first of the new, less its backup: {}", Figures::new(rest));
}

/// Creates `count` small servers with these fields in their spec, and waits until they run the first releases stably.
async fn create_stable<'w>(env: &'w TestEnv, prefix: &str, count: usize, spec: &Value) -> Vec<Server<'w>> {
    let names: Vec<String> = (0..count).map(|number| format!("{prefix}-{number:03}")).collect();
    let fields = spec.as_object().expect("fields of a spec");
    let manifests = names.iter().map(|name| {
        let mut object = small_server(name);
        for (field, value) in fields {
            object["spec"][field] = value.clone();
        }
        object
    });
    env.apply(&[viabackwards()]).await;
    env.apply(&manifests.collect::<Vec<_>>()).await;
    let servers: Vec<_> = names.iter().map(|name| Server::new(env, name)).collect();
    for server in &servers {
        wait_until(&format!("{} runs", server.name), OVERALL_LIMIT, async || {
            let object = server.object().await;
            let conditions = object.status.unwrap_or_default().conditions;
            let stable = conditions.iter().any(|c| c.type_ == "Updating" && c.reason == "Stable");
            if stable && server.is_running().await {
                Ok(())
            } else {
                Err(super::server::format_conditions(&conditions))
            }
        })
        .await;
    }
    servers
}

/// Publishes the newer releases, and waits until they are on every volume.
async fn publish_newer<'s, 'w: 's>(env: &TestEnv, servers: impl IntoIterator<Item = &'s Server<'w>>) {
    env.upstream.set_now(AFTER_RELEASE).await;
    for server in servers {
        server.wait_until_planned(&RELEASE_CHANGES).await;
    }
}

/// The shape of a server's pod, for any program. It has an init container, a sidecar, a Secret, a ConfigMap, another
/// one that does not exist, and a folder that containers share. The kubelet may not read Secret and ConfigMap until a
/// moment after the pod is bound to its node. It tries again about a second later.
fn server_pod_shape(name: &str) -> Value {
    let reads = json!([{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}}]);
    let mounts = json!([{"name": "lock", "mountPath": "/lock"}, {"name": "orders", "mountPath": "/orders"}, {"name": "shared", "mountPath": "/shared"}]);
    json!({
        "initContainers": [
            {"name": "prepare", "image": IMAGE, "command": ["true"], "env": reads, "volumeMounts": mounts},
            {"name": "agent", "image": IMAGE, "restartPolicy": "Always", "command": ["sh", "-c", RUN_UNTIL_TERM], "env": reads},
        ],
        "volumes": [
            {"name": "lock", "configMap": {"name": name}},
            {"name": "orders", "configMap": {"name": format!("{name}-init-requests"), "optional": true}},
            {"name": "shared", "emptyDir": {}},
        ],
    })
}

/// A pod that only Kubernetes manages.
struct Restarted<'w> {
    server: Server<'w>,
    observer: ServerObserver,
}

impl<'w> Restarted<'w> {
    /// Waits until it runs.
    async fn new(env: &'w TestEnv, name: &str, around: fn(&str) -> Value) -> Self {
        let labels = json!({"app.kubernetes.io/name": "papermc", "nightshift.dev/server": name});
        let mut pod = around(name);
        pod["containers"] = json!([{
            "name": "papermc", "image": IMAGE, "command": ["sh", "-c", RUN_UNTIL_TERM],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
        }]);
        let files = json!({"files.json": "x".repeat(8_000)});
        env.apply(&[
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": files}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"nightshift.dev/allow-use": "true"}}, "stringData": {"password": "x"}}),
            json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
                "spec": {
                    "serviceName": name, "replicas": 1, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                    "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Mi"}},
                    }}],
                },
            }),
        ])
        .await;
        let server = Server::new(env, name);
        wait_until("the pod runs", OVERALL_LIMIT, async || server.pod().await.map(|_| ()).ok_or_else(String::new))
            .await;
        let observer = ServerObserver::start(&server).await;
        Self { server, observer }
    }

    /// Deletes the pod repeatedly while `should_continue` is true for the number of restarts. Returns the times from the last
    /// line of a process to the first line of its successor, which is the time that Kubernetes alone takes.
    async fn gaps(self, should_continue: impl Fn(usize) -> bool) -> Vec<SignedDuration> {
        let Self { server, observer } = self;
        let mut runs = 0;
        while should_continue(runs) {
            server.env.kubectl(&["delete", "pod", &server.pod_name(), "--wait=false"], "").await;
            wait_until("its successor runs", OVERALL_LIMIT, async || {
                let is_up = observer.lines().iter().any(|line| line.run == runs + 1);
                if is_up { Ok(()) } else { Err(observer.console()) }
            })
            .await;
            runs += 1;
        }
        (0..runs).map(|run| observer.gap(run)).collect()
    }
}

/// Sorted times, the shortest first.
struct Figures(Vec<SignedDuration>);

impl Figures {
    fn new(all: impl IntoIterator<Item = SignedDuration>) -> Self {
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_unstable();
        Self(all)
    }

    /// The time that this percentage does not exceed.
    fn percentile(&self, percent: usize) -> SignedDuration {
        self.0[(self.0.len() * percent).div_ceil(100).max(1) - 1]
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds_at = |percent| self.percentile(percent).as_secs_f64();
        write!(
            f,
            "{:.2} s median, {:.2} s p95, {:.2} s at most, {:.2} s at least",
            seconds_at(50),
            seconds_at(95),
            seconds_at(100),
            seconds_at(0)
        )
    }
}
