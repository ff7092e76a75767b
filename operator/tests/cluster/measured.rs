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

use super::manifests::{AFTER, ALWAYS, BEFORE, TO_AFTER, small_server, viabackwards};
use super::server::Server;
use super::update::a_minute_from_now;
use super::wait::until;
use super::witness::ServerObserver;
use super::world::{World, alone_in_a_world};

/// The number of servers whose windows open at the same moment.
const WARNED: usize = 200;
/// The number of timed updates, and how many of them run at the same time.
const UPDATES: usize = 50;
const AT_A_TIME: usize = 2;
/// The number of updates with a backup, and the bytes that it copies in addition to the small world of the fake server.
const COPIED: usize = 10;
const REGION: u64 = 24_000_000;
/// The number of restarts of a pod with one container, and its program.
const BARE: usize = 40;
const IMAGE: &str = "nightshift.dev/busybox:dev";
const UNTIL_TOLD: &str = "trap 'echo down; exit 0' TERM; echo up; while :; do sleep 1 & wait $!; done";
/// All players were warned by then.
const LONG_AFTER: SignedDuration = SignedDuration::from_secs(40);
/// The limits of the design: until the players of the last server are warned, and for Nightshift's part of the
/// downtime.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_secs(2);
const OURS: SignedDuration = SignedDuration::from_secs(1);
/// Enough for all starts on two cores, or fifty updates, two at a time.
const ALL: Duration = Duration::from_mins(25);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "fifty updates by twos, and a machine that does nothing else"]
async fn measure_update_downtime_against_plain_restart() {
    let at_a_time = format!("maxConcurrentUpdates={AT_A_TIME}");
    alone_in_a_world("downtime", BEFORE, &["refreshSeconds=30", &at_a_time], async |world| {
        let servers = settle(world, "server", UPDATES, &json!({"players": {"policy": "Ignore"}})).await;
        let backup = json!({"storage": {"size": "64Mi"}, "beforeUpdate": "Always"});
        let copied = settle(world, "copied", COPIED, &json!({"players": {"policy": "Ignore"}, "backup": backup})).await;
        for server in &copied {
            server.shell(&format!("head -c {REGION} /dev/urandom > /data/world/region/r.9.9.mca")).await;
        }
        // Measured while all servers run, because with fifty of them on two cores each step of Kubernetes takes twice
        // as long.
        let bare = Restarted::new(world, "bare", |_| json!({})).await.gaps(|runs| runs < BARE).await;
        let witnesses = join_all(servers.iter().map(ServerObserver::of)).await;
        plan(world, servers.iter().chain(&copied)).await;
        // Measured during the updates, under the same conditions.
        let same = Restarted::new(world, "shape", as_ours).await;
        let under_way = Cell::new(true);
        let (same, ()) = tokio::join!(same.gaps(|_| under_way.get()), async {
            update(&servers).await;
            under_way.set(false);
        });
        let away = witnesses.iter().map(|witness| witness.between((0, "Stopping server"), (1, "Done (")));
        println!("from `Stopping server` to `Done`, {UPDATES} updates: {}", Figures::of(away));
        let gaps = Figures::of(witnesses.iter().map(|witness| witness.gap(0)));
        println!("from the last line of the old server to the first of the new: {gaps}");
        let (restarts, same) = (same.len(), Figures::of(same));
        println!(
            "the same of a pod of our shape that does nothing and was deleted meanwhile, {restarts} times: {same}"
        );
        println!("the same of a pod with one container: {}", Figures::of(bare));
        report_copies(&copied).await;
        let ours = gaps.at(95) - same.at(95);
        assert!(ours <= OURS, "beyond its bound: {ours:#} of the time at p95 is ours, and {OURS:#} is allowed");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "two hundred servers, and a machine that does nothing else"]
async fn measure_announcement_delay_after_window_opens() {
    alone_in_a_world("announced", BEFORE, &["refreshSeconds=30"], async |world| {
        let servers =
            settle(world, "server", WARNED, &json!({"players": {"policy": "Announce", "notice": "5m"}})).await;
        for server in &servers {
            server.order("join Alice").await;
        }
        plan(world, &servers).await;
        let (cron, opens) = a_minute_from_now();
        join_all(servers.iter().map(|server| server.set_window(&cron))).await;
        // Any request in these seconds would change the measurement.
        #[expect(clippy::disallowed_methods, reason = "the window opens by the clock")]
        let until_long_after = opens.duration_since(Timestamp::now()) + LONG_AFTER;
        tokio::time::sleep(until_long_after.unsigned_abs()).await;
        let mut first = Vec::new();
        for server in &servers {
            let log = world.kubectl(&["logs", &server.pod_name(), "-c", "papermc", "--timestamps"], "").await;
            let told = log.lines().find(|line| line.contains("Alice was shown: "));
            let at = told.and_then(|line| line.split_once(' ')?.0.parse::<Timestamp>().ok());
            first.push(at.unwrap_or_else(|| panic!("{} warned nobody:\n{log}", server.name)));
        }
        let late = Figures::of(first.into_iter().map(|at| at.duration_since(opens)));
        println!("from the opening to the first words, {WARNED} servers: {late}");
        let last = late.at(100);
        assert!(
            last <= TOLD_WITHIN,
            "beyond its bound: the last warning came after {last:#}, and {TOLD_WITHIN:#} are allowed"
        );
    })
    .await;
}

/// Opens the window of all servers, and waits until the newer releases are verified on each.
async fn update(servers: &[Server<'_>]) {
    join_all(servers.iter().map(|server| server.set_window(ALWAYS))).await;
    // One after the other: requests for fifty servers four times a second load the API server and distort the figures.
    for server in servers {
        until("it is updated and proven", ALL, async || match server.condition("Updating").await {
            Some(found) if found.reason == "Stable" && server.set().await.plugins["ViaVersion"] == "5.7.1" => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }
}

/// Reports how much a backup adds to the downtime, by the backups' own records.
async fn report_copies(servers: &[Server<'_>]) {
    let witnesses = join_all(servers.iter().map(ServerObserver::of)).await;
    update(servers).await;
    let took = join_all(servers.iter().map(async |server| {
        let backup = server.object().await.status.and_then(|status| status.backup);
        let copy = backup.and_then(|backup| backup.last_backup).expect("a copy before each of these updates");
        copy.completed_at.duration_since(copy.started_at)
    }))
    .await;
    let rest = witnesses.iter().zip(&took).map(|(witness, took)| witness.gap(0) - *took);
    println!(
        "the copy before an update, {REGION} bytes and a small world, {COPIED} times: {}",
        Figures::of(took.clone())
    );
    println!("from the last line of the old server to the first of the new, less its copy: {}", Figures::of(rest));
}

/// Creates `count` small servers with these fields in their spec, and waits until they run the first releases stably.
async fn settle<'w>(world: &'w World, prefix: &str, count: usize, spec: &Value) -> Vec<Server<'w>> {
    let names: Vec<String> = (0..count).map(|number| format!("{prefix}-{number:03}")).collect();
    let fields = spec.as_object().expect("fields of a spec");
    let manifests = names.iter().map(|name| {
        let mut object = small_server(name);
        for (field, value) in fields {
            object["spec"][field] = value.clone();
        }
        object
    });
    world.apply(&[viabackwards()]).await;
    world.apply(&manifests.collect::<Vec<_>>()).await;
    let servers: Vec<_> = names.iter().map(|name| Server::new(world, name)).collect();
    for server in &servers {
        until(&format!("{} runs", server.name), ALL, async || {
            let object = server.object().await;
            let conditions = object.status.unwrap_or_default().conditions;
            let settled = conditions.iter().any(|c| c.type_ == "Updating" && c.reason == "Stable");
            if settled && server.runs().await { Ok(()) } else { Err(super::server::in_words(&conditions)) }
        })
        .await;
    }
    servers
}

/// Publishes the newer releases, and waits until they are on every volume.
async fn plan<'s, 'w: 's>(world: &World, servers: impl IntoIterator<Item = &'s Server<'w>>) {
    world.upstream.set_now(AFTER).await;
    for server in servers {
        server.planned(&TO_AFTER).await;
    }
}

/// The shape of a server's pod, for any program. It has an init container, a sidecar, a Secret, a ConfigMap, another
/// one that does not exist, and a folder that containers share. The kubelet may not read Secret and ConfigMap until a
/// moment after the pod is bound to its node. It tries again about a second later.
fn as_ours(name: &str) -> Value {
    let reads = json!([{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}}]);
    let mounts = json!([{"name": "lock", "mountPath": "/lock"}, {"name": "orders", "mountPath": "/orders"}, {"name": "shared", "mountPath": "/shared"}]);
    json!({
        "initContainers": [
            {"name": "prepare", "image": IMAGE, "command": ["true"], "env": reads, "volumeMounts": mounts},
            {"name": "agent", "image": IMAGE, "restartPolicy": "Always", "command": ["sh", "-c", UNTIL_TOLD], "env": reads},
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
    witness: ServerObserver,
}

impl<'w> Restarted<'w> {
    /// Waits until it runs.
    async fn new(world: &'w World, name: &str, around: fn(&str) -> Value) -> Self {
        let labels = json!({"app.kubernetes.io/name": "papermc", "nightshift.dev/server": name});
        let mut pod = around(name);
        pod["containers"] = json!([{
            "name": "papermc", "image": IMAGE, "command": ["sh", "-c", UNTIL_TOLD],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
        }]);
        let files = json!({"files.json": "x".repeat(8_000)});
        world
            .apply(&[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": files}),
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": "x"}}), json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
                "spec": {
                    "serviceName": name, "replicas": 1, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                    "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Mi"}},
                    }}],
                },
            })])
            .await;
        let server = Server::new(world, name);
        until("the pod runs", ALL, async || server.pod().await.map(|_| ()).ok_or_else(String::new)).await;
        let witness = ServerObserver::of(&server).await;
        Self { server, witness }
    }

    /// Deletes the pod repeatedly while `goes_on` is true for the number of restarts. Returns the times from the last
    /// line of a process to the first line of its successor, which is the time that Kubernetes alone takes.
    async fn gaps(self, goes_on: impl Fn(usize) -> bool) -> Vec<SignedDuration> {
        let Self { server, witness } = self;
        let mut runs = 0;
        while goes_on(runs) {
            server.world.kubectl(&["delete", "pod", &server.pod_name(), "--wait=false"], "").await;
            until("its successor runs", ALL, async || {
                let came = witness.lines().iter().any(|line| line.run == runs + 1);
                if came { Ok(()) } else { Err(witness.console()) }
            })
            .await;
            runs += 1;
        }
        (0..runs).map(|run| witness.gap(run)).collect()
    }
}

/// Sorted times, the shortest first.
struct Figures(Vec<SignedDuration>);

impl Figures {
    fn of(all: impl IntoIterator<Item = SignedDuration>) -> Self {
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_unstable();
        Self(all)
    }

    /// The time that this percentage does not exceed.
    fn at(&self, percent: usize) -> SignedDuration {
        self.0[(self.0.len() * percent).div_ceil(100).max(1) - 1]
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |percent| self.at(percent).as_secs_f64();
        write!(f, "{:.2} s median, {:.2} s p95, {:.2} s at most, {:.2} s at least", at(50), at(95), at(100), at(0))
    }
}
