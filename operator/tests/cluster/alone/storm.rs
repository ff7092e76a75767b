//! Edge (writes). Updates thirty servers at the same time, while their dependencies fail twice, at moments drawn from
//! the number of each server.
//!
//! The first servers also get a fault that affects all others: a killed part of the cluster, or a wrong clock of the
//! operator. `NIGHTSHIFT_SEED=N` begins at another number than 0. The same number repeats the same faults.

use std::collections::BTreeMap;
use std::time::Duration;

use fixtures::dice::Rng;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tokio::sync::RwLock;

use crate::cluster::crash::Moment;
use crate::cluster::manifests::{AFTER, ALWAYS, BEFORE, TO_AFTER, small_server, viabackwards};
use crate::cluster::node::{Blocked, kill_part, try_cut_rcon, try_kill_9};
use crate::cluster::server::{Server, Set, in_words, is_ready};
use crate::cluster::volume::SmallVolume;
use crate::cluster::wait::{AN_UPDATE, all_the_while, until};
use crate::cluster::world::{World, alone_in_a_world, uid_of};

const SERVERS: u64 = 30;
/// Thirty updates at once on two cores, and a cluster that restarts four times.
const A_STORM: Duration = AN_UPDATE.saturating_mul(4);
/// How long a lasting fault lasts, and how long the test waits for a disk to become read-only.
const A_WHILE: Duration = Duration::from_secs(20);
/// Space for two version sets, and for the free space that the agent requires.
const LITTLE_ROOM: &str = "96m";
/// A difference that the agent does not accept.
const WRONG_BY_SECONDS: i64 = -90;
/// A test without faults verifies nothing.
const BLOWS_AT_LEAST: usize = 30;
const UPDATED_AT_LEAST: usize = 20;

/// A fault of a server, or of its dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    Operator,
    Agent,
    Process,
    PodDeleted,
    PodForced,
    Hangs,
    /// A firewall between the agent and the server.
    RconCut,
    VolumeFull,
    VolumeReadOnly,
    /// The clock of the operator.
    ClockWrong,
    Part(&'static str),
}

const OF_ONE: [Blow; 9] = [
    Blow::Operator,
    Blow::Agent,
    Blow::Process,
    Blow::PodDeleted,
    Blow::PodForced,
    Blow::Hangs,
    Blow::RconCut,
    Blow::VolumeFull,
    Blow::VolumeReadOnly,
];
const OF_ALL: [Blow; 5] = [
    Blow::Part("kubelet"),
    Blow::Part("kube-apiserver"),
    Blow::Part("etcd"),
    Blow::Part("containerd"),
    Blow::ClockWrong,
];

/// The faults of one server.
#[derive(Debug)]
struct Story {
    number: u64,
    blows: [(Moment, Blow); 2],
    copies: bool,
}

impl Story {
    fn of(number: u64, at: usize) -> Self {
        let mut dice = Rng::new(number);
        let mut blow = || (dice.one_of(&Moment::ALL[2..]), dice.one_of(&OF_ONE));
        let mut blows = [blow(), blow()];
        if let Some(of_all) = OF_ALL.get(at) {
            blows[1].1 = *of_all;
        }
        for (moment, blow) in &mut blows {
            if *blow == Blow::VolumeReadOnly {
                // The kernel makes no disk read-only while a process writes to it, and a server writes its log.
                *moment = Moment::PodStops;
            }
        }
        blows.sort_by_key(|(moment, _)| Moment::ALL.iter().position(|one| one == moment));
        Self { number, blows, copies: dice.once_in(3) }
    }

    fn is_of_volume(&self) -> bool {
        self.blows.iter().any(|(_, blow)| matches!(blow, Blow::VolumeFull | Blow::VolumeReadOnly))
    }

    fn name(&self) -> String {
        format!("storm-{}", self.number)
    }

    fn manifest(&self) -> serde_json::Value {
        let mut object = small_server(&self.name());
        if self.copies {
            object["spec"]["backup"] = json!({"beforeUpdate": "Always", "storage": {"size": "64Mi"}});
        }
        object
    }
}

/// The faults and restarts of a server so far.
#[derive(Debug, Default)]
struct Lived {
    blows: Vec<(Moment, Blow)>,
    /// Each pod, and how often its server was restarted in it.
    pods: BTreeMap<String, i32>,
}

/// The result of a fault.
enum Struck<'a> {
    /// The target did not exist at that moment.
    Nothing,
    Once,
    /// The fault lasts until it is fixed.
    Lasting(Broken<'a>),
}

/// A fault that lasts for a while.
enum Broken<'a> {
    Rcon(Blocked),
    Full(&'a SmallVolume),
    ReadOnly(&'a SmallVolume),
    Clock(&'a World),
}

impl Broken<'_> {
    async fn mend(self) {
        match self {
            Self::Rcon(blocked) => drop(blocked),
            Self::Full(volume) => volume.free(),
            Self::ReadOnly(volume) => volume.become_writable(),
            Self::Clock(world) => {
                let _calm = CLUSTER.read().await;
                world.set_clock_ahead(0).await;
            }
        }
    }
}

/// Locked shared for requests to the API server, and exclusively to kill a part of the cluster.
static CLUSTER: RwLock<()> = RwLock::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn thirty_updates_in_a_storm_keep_worlds_and_locks_whole() {
    let first = std::env::var("NIGHTSHIFT_SEED").map_or(0, |text| text.parse().expect("NIGHTSHIFT_SEED is a number"));
    alone_in_a_world("storm", BEFORE, &[], async |world| {
        let stories: Vec<Story> = (first..first + SERVERS).zip(0..).map(|(number, at)| Story::of(number, at)).collect();
        world.apply(&[viabackwards()]).await;
        world.apply(&stories.iter().map(Story::manifest).collect::<Vec<_>>()).await;
        let servers: Vec<Server<'_>> = stories.iter().map(|story| Server::new(world, &story.name())).collect();
        for server in &servers {
            server.settled().await;
            server.put_file("/data/world/region/r.7.7.mca", server.name.as_bytes()).await;
        }
        let volumes = join_all(stories.iter().zip(&servers).map(async |(story, server)| {
            if story.is_of_volume() { Some(SmallVolume::under(server, LITTLE_ROOM).await) } else { None }
        }))
        .await;
        let before = servers[0].set().await;
        world.upstream.set_now(AFTER).await;
        for server in &servers {
            server.planned(&TO_AFTER).await;
        }
        let pods = join_all(servers.iter().map(async |server| server.pod().await.expect("it has settled"))).await;
        for server in &servers {
            server.set_window(ALWAYS).await;
        }
        let stages = stories.iter().zip(&servers).zip(&volumes).zip(&pods);
        let lived = stages.map(|(((story, server), volume), pod)| live(world, story, server, volume.as_ref(), pod));
        let lived = join_all(lived).await;

        let (mut updated, mut in_place) = (0, 0);
        for ((story, server), lived) in stories.iter().zip(&servers).zip(&lived) {
            // The last fault may have occurred after the update became stable.
            until(&format!("{} is back after its last blow", server.name), AN_UPDATE, async || {
                is_over(server).await?;
                let ready = server.pod().await.is_some_and(|pod| is_ready(&pod));
                if ready && server.runs().await { Ok(()) } else { Err("it is not".to_owned()) }
            })
            .await;
            let set = server.set().await;
            let whole = |version: &str| {
                let of = |plugin: &str| set.plugins.get(plugin).is_some_and(|found| found == version);
                set.plugins.len() == 2 && of("ViaVersion") && of("ViaBackwards")
            };
            let jars = server.shell("ls /data/plugins/*.jar | wc -l").await;
            let told = format!("{story:?} lived through {lived:?} and runs {set:?}");
            assert!(if is_new(&set) { whole("5.7.1") } else { whole("5.7.0") && set.lock == before.lock }, "{told}");
            assert_eq!(jars.trim(), "2", "{told}");
            assert_eq!(server.shell("cat /data/world/region/r.7.7.mca").await, server.name, "{told}");
            // One for the update or its end, one for the rollback, and one for each deletion by the test.
            let taken =
                lived.blows.iter().filter(|(_, blow)| matches!(blow, Blow::PodDeleted | Blow::PodForced)).count();
            let back = usize::from(!is_new(&set));
            assert!(lived.pods.len() <= 2 + back + taken, "{told}");
            // A server is restarted in its pod if the test ended its process. One more is allowed for a fault of the
            // cluster. Starts on a full or read-only disk are not counted.
            let ended = lived.blows.iter().filter(|(_, blow)| matches!(blow, Blow::Process)).count();
            let again: i32 = lived.pods.values().sum();
            assert!(story.is_of_volume() || usize::try_from(again).unwrap() <= ended + 1, "{told}");
            in_place += again;
            updated += usize::from(is_new(&set));
        }
        let blows: usize = lived.iter().map(|lived| lived.blows.len()).sum();
        assert!(blows >= BLOWS_AT_LEAST, "{blows} blows of {}", 2 * SERVERS);
        assert!(updated >= UPDATED_AT_LEAST, "{updated} of {SERVERS} were updated");
        println!(
            "{SERVERS} servers, {blows} blows, {updated} updated, the others went back; {in_place} starts in place"
        );
    })
    .await;
}

fn is_new(set: &Set) -> bool {
    set.plugins.get("ViaVersion").is_some_and(|version| version == "5.7.1")
}

/// Injects the faults at their moments, and waits for the end. Then the new version set is stable, or it is given up
/// and the old one runs. `before` is its pod from before its window opened.
async fn live(world: &World, story: &Story, server: &Server<'_>, volume: Option<&SmallVolume>, before: &Pod) -> Lived {
    let mut lived = Lived::default();
    for (moment, blow) in story.blows {
        if !comes(server, moment, before, &mut lived).await {
            break;
        }
        match strike(world, server, volume, blow).await {
            Struck::Nothing => continue,
            Struck::Once => {}
            Struck::Lasting(broken) => {
                all_the_while(A_WHILE, async || {
                    let _calm = CLUSTER.read().await;
                    note_pods(server, &mut lived).await;
                })
                .await;
                broken.mend().await;
            }
        }
        lived.blows.push((moment, blow));
    }
    until(&format!("the storm over {} ends: {story:?}", server.name), A_STORM, async || {
        let _calm = CLUSTER.read().await;
        note_pods(server, &mut lived).await;
        is_over(server).await
    })
    .await;
    lived
}

/// Waits for a moment of the update. Returns false if the update ended without it.
async fn comes(server: &Server<'_>, moment: Moment, before: &Pod, lived: &mut Lived) -> bool {
    until(&format!("{moment:?} of {}", server.name), A_STORM, async || {
        let _calm = CLUSTER.read().await;
        note_pods(server, lived).await;
        if moment.has_come(server, before).await {
            return Ok(true);
        }
        is_over(server).await.map(|()| false)
    })
    .await
}

async fn note_pods(server: &Server<'_>, lived: &mut Lived) {
    let of_server =
        ListParams::default().labels(&format!("app.kubernetes.io/name=papermc,nightshift.dev/server={}", server.name));
    for pod in server.world.api::<Pod>().list(&of_server).await.unwrap().items {
        let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let again: i32 =
            containers.filter(|container| container.name == "papermc").map(|server| server.restart_count).sum();
        let known = lived.pods.entry(uid_of(&pod)).or_default();
        *known = again.max(*known);
    }
}

/// Whether the update has ended.
async fn is_over(server: &Server<'_>) -> Result<(), String> {
    let object = server.object().await;
    let generation = object.metadata.generation;
    let conditions = object.status.unwrap_or_default().conditions;
    let now = |of: &str| conditions.iter().find(|c| c.type_ == of && c.observed_generation == generation);
    let ready = now("Ready").is_some_and(|c| c.status == "True");
    let none_left = now("UpdateAvailable").is_some_and(|c| c.status == "False");
    match now("Updating") {
        Some(updating) if ready && (updating.reason == "Held" || updating.reason == "Stable" && none_left) => Ok(()),
        _ => Err(in_words(&conditions)),
    }
}

async fn strike<'a>(world: &'a World, server: &Server<'_>, volume: Option<&'a SmallVolume>, blow: Blow) -> Struck<'a> {
    if let Blow::Part(name) = blow {
        let _alone = CLUSTER.write().await;
        let killed = kill_part(name);
        // A script waits for the missing part and starts it.
        tokio::task::spawn_blocking(move || drop(killed)).await.expect("the script says itself what is wrong");
        return Struck::Once;
    }
    let _calm = CLUSTER.read().await;
    let Some(pod) = world.api::<Pod>().get_opt(&server.pod_name()).await.unwrap() else { return Struck::Nothing };
    let volume = || volume.expect("the story knows that it is about a volume");
    let is_hit = match blow {
        Blow::Operator => world.operator_of_now().await.is_some_and(|pod| try_kill_9(&pod, "/operator")),
        Blow::Agent => try_kill_9(&pod, "/agent"),
        Blow::Process => try_kill_9(&pod, "/paper-stand-in"),
        Blow::PodDeleted | Blow::PodForced => {
            let how =
                if blow == Blow::PodForced { DeleteParams::default().grace_period(0) } else { DeleteParams::default() };
            world.api::<Pod>().delete(&server.pod_name(), &how).await.is_ok()
        }
        Blow::Hangs => server.try_order("fault hang 20").await,
        Blow::RconCut => {
            return try_cut_rcon(&pod).map_or(Struck::Nothing, |blocked| Struck::Lasting(Broken::Rcon(blocked)));
        }
        Blow::VolumeFull => {
            volume().fill();
            return Struck::Lasting(Broken::Full(volume()));
        }
        Blow::VolumeReadOnly => {
            if volume().become_read_only(A_WHILE).await {
                return Struck::Lasting(Broken::ReadOnly(volume()));
            }
            false
        }
        Blow::ClockWrong => {
            world.set_clock_ahead(WRONG_BY_SECONDS).await;
            return Struck::Lasting(Broken::Clock(world));
        }
        Blow::Part(_) => false,
    };
    if is_hit { Struck::Once } else { Struck::Nothing }
}
