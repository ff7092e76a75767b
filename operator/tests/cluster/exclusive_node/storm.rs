//! Edge (writes). Updates thirty servers at the same time, while their dependencies fail twice, at moments drawn from
//! the number of each server.
//!
//! The first servers also get a fault that affects all others: a killed part of the cluster, or a wrong clock of the
//! operator. `NIGHTSHIFT_SEED=N` begins at another number than 0. The same number repeats the same faults.

use std::collections::BTreeMap;
use std::time::Duration;

use fixtures::rng::Rng;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tokio::sync::RwLock;

use crate::cluster::eventually::{UPDATE_LIMIT, check_throughout, wait_until};
use crate::cluster::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, RELEASE_CHANGES, small_server, viabackwards,
};
use crate::cluster::node::{Blocked, kill_part, try_cut_rcon, try_kill_9};
use crate::cluster::operator_crash::Moment;
use crate::cluster::server::{Server, VersionSet, format_conditions, is_ready};
use crate::cluster::test_env::{TestEnv, in_exclusive_test_env, uid_of};
use crate::cluster::volume::SmallVolume;

const SERVERS: u64 = 30;
/// Thirty updates at once on two cores, and a cluster that restarts four times.
const STORM_LIMIT: Duration = UPDATE_LIMIT.saturating_mul(4);
/// How long a lasting fault lasts, and how long the test waits for a disk to become read-only.
const FAULT_DURATION: Duration = Duration::from_secs(20);
/// Space for two version sets, and for the free space that the agent requires.
const SMALL_VOLUME_SIZE: &str = "96m";
/// A difference that the agent does not accept.
const CLOCK_OFFSET_SECONDS: i64 = -90;
/// A test without faults verifies nothing.
const MIN_FAULTS: usize = 30;
const MIN_UPDATED: usize = 20;

/// A fault of a server, or of its dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StormFault {
    Operator,
    Agent,
    ServerProcess,
    PodDeleted,
    PodForced,
    Hang,
    /// A firewall between the agent and the server.
    RconCut,
    VolumeFull,
    VolumeReadOnly,
    /// The clock of the operator.
    ClockWrong,
    ClusterPart(&'static str),
}

const SERVER_FAULTS: [StormFault; 9] = [
    StormFault::Operator,
    StormFault::Agent,
    StormFault::ServerProcess,
    StormFault::PodDeleted,
    StormFault::PodForced,
    StormFault::Hang,
    StormFault::RconCut,
    StormFault::VolumeFull,
    StormFault::VolumeReadOnly,
];
const CLUSTER_FAULTS: [StormFault; 5] = [
    StormFault::ClusterPart("kubelet"),
    StormFault::ClusterPart("kube-apiserver"),
    StormFault::ClusterPart("etcd"),
    StormFault::ClusterPart("containerd"),
    StormFault::ClockWrong,
];

/// The faults of one server.
#[derive(Debug)]
struct StormScenario {
    number: u64,
    faults: [(Moment, StormFault); 2],
    has_backups: bool,
}

impl StormScenario {
    fn generate(number: u64, index: usize) -> Self {
        let mut rng = Rng::new(number);
        let mut fault = || (rng.choose(&Moment::ALL[2..]), rng.choose(&SERVER_FAULTS));
        let mut faults = [fault(), fault()];
        if let Some(cluster_fault) = CLUSTER_FAULTS.get(index) {
            faults[1].1 = *cluster_fault;
        }
        for (moment, fault) in &mut faults {
            if *fault == StormFault::VolumeReadOnly {
                // The kernel makes no disk read-only while a process writes to it, and a server writes its log.
                *moment = Moment::PodStops;
            }
        }
        faults.sort_by_key(|(moment, _)| Moment::ALL.iter().position(|one| one == moment));
        Self { number, faults, has_backups: rng.one_in(3) }
    }

    fn has_volume_fault(&self) -> bool {
        self.faults.iter().any(|(_, fault)| matches!(fault, StormFault::VolumeFull | StormFault::VolumeReadOnly))
    }

    fn name(&self) -> String {
        format!("storm-{}", self.number)
    }

    fn manifest(&self) -> serde_json::Value {
        let mut object = small_server(&self.name());
        if self.has_backups {
            object["spec"]["backup"] = json!({"beforeUpdate": "Always", "storage": {"size": "64Mi"}});
        }
        object
    }
}

/// The faults and restarts of a server so far.
#[derive(Debug, Default)]
struct StormResult {
    faults: Vec<(Moment, StormFault)>,
    /// Each pod, and how often its server was restarted in it.
    pods: BTreeMap<String, i32>,
}

/// The result of a fault.
enum Struck<'a> {
    /// The target did not exist at that moment.
    NoTarget,
    Once,
    /// The fault lasts until it is fixed.
    Lasting(Broken<'a>),
}

/// A fault that lasts for a while.
enum Broken<'a> {
    Rcon(Blocked),
    Full(&'a SmallVolume),
    ReadOnly(&'a SmallVolume),
    Clock(&'a TestEnv),
}

impl Broken<'_> {
    async fn repair(self) {
        match self {
            Self::Rcon(blocked) => drop(blocked),
            Self::Full(volume) => volume.free(),
            Self::ReadOnly(volume) => volume.become_writable(),
            Self::Clock(env) => {
                let _calm = CLUSTER.read().await;
                env.set_clock_ahead(0).await;
            }
        }
    }
}

/// Locked shared for requests to the API server, and exclusively to kill a part of the cluster.
static CLUSTER: RwLock<()> = RwLock::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn thirty_updates_in_a_storm_keep_worlds_and_locks_whole() {
    let first = std::env::var("NIGHTSHIFT_SEED").map_or(0, |text| text.parse().expect("NIGHTSHIFT_SEED is a number"));
    in_exclusive_test_env("storm", BEFORE_RELEASE, &[], async |env| {
        let scenarios: Vec<StormScenario> = (first..first + SERVERS).zip(0..).map(|(number, index)| StormScenario::generate(number, index)).collect();
        env.apply(&[viabackwards()]).await;
        env.apply(&scenarios.iter().map(StormScenario::manifest).collect::<Vec<_>>()).await;
        let servers: Vec<Server<'_>> = scenarios.iter().map(|scenario| Server::new(env, &scenario.name())).collect();
        for server in &servers {
            server.wait_until_stable().await;
            server.put_file("/data/world/region/r.7.7.mca", server.name.as_bytes()).await;
        }
        let volumes = join_all(scenarios.iter().zip(&servers).map(async |(scenario, server)| {
            if scenario.has_volume_fault() { Some(SmallVolume::mount_for(server, SMALL_VOLUME_SIZE).await) } else { None }
        }))
        .await;
        let before = servers[0].version_set().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        for server in &servers {
            server.wait_until_planned(&RELEASE_CHANGES).await;
        }
        let pods = join_all(servers.iter().map(async |server| server.pod().await.expect("the server is stable"))).await;
        for server in &servers {
            server.set_window(ALWAYS_OPEN).await;
        }
        let stages = scenarios.iter().zip(&servers).zip(&volumes).zip(&pods);
        let history = stages.map(|(((scenario, server), volume), pod)| inject_faults(env, scenario, server, volume.as_ref(), pod));
        let history = join_all(history).await;

        let (mut updated, mut restarts_in_pod) = (0, 0);
        for ((scenario, server), history) in scenarios.iter().zip(&servers).zip(&history) {
            // The last fault may have occurred after the update became stable.
            wait_until(&format!("{} runs again after its last fault", server.name), UPDATE_LIMIT, async || {
                is_over(server).await?;
                let ready = server.pod().await.is_some_and(|pod| is_ready(&pod));
                if ready && server.is_running().await { Ok(()) } else { Err("it does not run".to_owned()) }
            })
            .await;
            let version_set = server.version_set().await;
            let has_all_plugins = |version: &str| {
                let has_version = |plugin: &str| version_set.plugins.get(plugin).is_some_and(|found| found == version);
                version_set.plugins.len() == 2 && has_version("ViaVersion") && has_version("ViaBackwards")
            };
            let jars = server.shell("ls /data/plugins/*.jar | wc -l").await;
            let context = format!("{scenario:?} had {history:?} and runs {version_set:?}");
            assert!(if is_new(&version_set) { has_all_plugins("5.7.1") } else { has_all_plugins("5.7.0") && version_set.lock == before.lock }, "{context}");
            assert_eq!(jars.trim(), "2", "{context}");
            assert_eq!(server.shell("cat /data/world/region/r.7.7.mca").await, server.name, "{context}");
            // One for the update or its end, one for the rollback, and one for each deletion by the test.
            let taken =
                history.faults.iter().filter(|(_, fault)| matches!(fault, StormFault::PodDeleted | StormFault::PodForced)).count();
            let rollbacks = usize::from(!is_new(&version_set));
            assert!(history.pods.len() <= 2 + rollbacks + taken, "{context}");
            // A server is restarted in its pod if the test ended its process. One more is allowed for a fault of the
            // cluster. Starts on a full or read-only disk are not counted.
            let ended = history.faults.iter().filter(|(_, fault)| matches!(fault, StormFault::ServerProcess)).count();
            let restarts: i32 = history.pods.values().sum();
            assert!(scenario.has_volume_fault() || usize::try_from(restarts).unwrap() <= ended + 1, "{context}");
            restarts_in_pod += restarts;
            updated += usize::from(is_new(&version_set));
        }
        let faults: usize = history.iter().map(|history| history.faults.len()).sum();
        assert!(faults >= MIN_FAULTS, "{faults} faults of {}", 2 * SERVERS);
        assert!(updated >= MIN_UPDATED, "{updated} of {SERVERS} were updated");
        println!(
            "{SERVERS} servers, {faults} blows, {updated} updated, the others went back; {restarts_in_pod} starts in place"
        );
    })
    .await;
}

fn is_new(version_set: &VersionSet) -> bool {
    version_set.plugins.get("ViaVersion").is_some_and(|version| version == "5.7.1")
}

/// Injects the faults at their moments, and waits for the end. Then the new version set is stable, or it is given up
/// and the old one runs. `before` is its pod from before its window opened.
async fn inject_faults(
    env: &TestEnv,
    scenario: &StormScenario,
    server: &Server<'_>,
    volume: Option<&SmallVolume>,
    before: &Pod,
) -> StormResult {
    let mut history = StormResult::default();
    for (moment, fault) in scenario.faults {
        if !reach_moment(server, moment, before, &mut history).await {
            break;
        }
        match inject(env, server, volume, fault).await {
            Struck::NoTarget => continue,
            Struck::Once => {}
            Struck::Lasting(broken) => {
                check_throughout(FAULT_DURATION, async || {
                    let _calm = CLUSTER.read().await;
                    record_pods(server, &mut history).await;
                })
                .await;
                broken.repair().await;
            }
        }
        history.faults.push((moment, fault));
    }
    wait_until(&format!("the faults and the update of {} end: {scenario:?}", server.name), STORM_LIMIT, async || {
        let _calm = CLUSTER.read().await;
        record_pods(server, &mut history).await;
        is_over(server).await
    })
    .await;
    history
}

/// Waits for a moment of the update. Returns false if the update ended without it.
async fn reach_moment(server: &Server<'_>, moment: Moment, before: &Pod, history: &mut StormResult) -> bool {
    wait_until(&format!("{moment:?} of {}", server.name), STORM_LIMIT, async || {
        let _calm = CLUSTER.read().await;
        record_pods(server, history).await;
        if moment.is_reached(server, before).await {
            return Ok(true);
        }
        is_over(server).await.map(|()| false)
    })
    .await
}

async fn record_pods(server: &Server<'_>, history: &mut StormResult) {
    let of_server =
        ListParams::default().labels(&format!("app.kubernetes.io/name=papermc,nightshift.dev/server={}", server.name));
    for pod in server.env.api::<Pod>().list(&of_server).await.unwrap().items {
        let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let again: i32 =
            containers.filter(|container| container.name == "papermc").map(|server| server.restart_count).sum();
        let restarts = history.pods.entry(uid_of(&pod)).or_default();
        *restarts = again.max(*restarts);
    }
}

/// Whether the update has ended.
async fn is_over(server: &Server<'_>) -> Result<(), String> {
    let object = server.object().await;
    let generation = object.metadata.generation;
    let conditions = object.status.unwrap_or_default().conditions;
    let now = |condition_type: &str| {
        conditions.iter().find(|c| c.type_ == condition_type && c.observed_generation == generation)
    };
    let ready = now("Ready").is_some_and(|c| c.status == "True");
    let none_left = now("UpdateAvailable").is_some_and(|c| c.status == "False");
    match now("Updating") {
        Some(updating) if ready && (updating.reason == "Held" || updating.reason == "Stable" && none_left) => Ok(()),
        _ => Err(format_conditions(&conditions)),
    }
}

async fn inject<'a>(
    env: &'a TestEnv,
    server: &Server<'_>,
    volume: Option<&'a SmallVolume>,
    fault: StormFault,
) -> Struck<'a> {
    if let StormFault::ClusterPart(name) = fault {
        let _exclusive = CLUSTER.write().await;
        let killed = kill_part(name);
        // A script waits for the missing part and starts it.
        tokio::task::spawn_blocking(move || drop(killed)).await.expect("starting the cluster does not panic");
        return Struck::Once;
    }
    let _calm = CLUSTER.read().await;
    let Some(pod) = env.api::<Pod>().get_opt(&server.pod_name()).await.unwrap() else { return Struck::NoTarget };
    let volume = || volume.expect("the scenario has a volume");
    let is_hit = match fault {
        StormFault::Operator => env.try_operator().await.is_some_and(|pod| try_kill_9(&pod, "/operator")),
        StormFault::Agent => try_kill_9(&pod, "/agent"),
        StormFault::ServerProcess => try_kill_9(&pod, "/fake-paper"),
        StormFault::PodDeleted | StormFault::PodForced => {
            let how = if fault == StormFault::PodForced {
                DeleteParams::default().grace_period(0)
            } else {
                DeleteParams::default()
            };
            env.api::<Pod>().delete(&server.pod_name(), &how).await.is_ok()
        }
        StormFault::Hang => server.try_send_command("fault hang 20").await,
        StormFault::RconCut => {
            return try_cut_rcon(&pod).map_or(Struck::NoTarget, |blocked| Struck::Lasting(Broken::Rcon(blocked)));
        }
        StormFault::VolumeFull => {
            volume().fill();
            return Struck::Lasting(Broken::Full(volume()));
        }
        StormFault::VolumeReadOnly => {
            if volume().become_read_only(FAULT_DURATION).await {
                return Struck::Lasting(Broken::ReadOnly(volume()));
            }
            false
        }
        StormFault::ClockWrong => {
            env.set_clock_ahead(CLOCK_OFFSET_SECONDS).await;
            return Struck::Lasting(Broken::Clock(env));
        }
        StormFault::ClusterPart(_) => false,
    };
    if is_hit { Struck::Once } else { Struck::NoTarget }
}
