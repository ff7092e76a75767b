//! Pure. Draws the scenario of a run by its seed.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use agent_api::FileSet;
use fixtures::rng::Rng;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::catalog::Releases;
use super::cluster::SERVER;
use crate::catalog::Snapshot;

/// How often windows open, and how long they stay open.
pub(super) const WINDOW_INTERVAL: SignedDuration = SignedDuration::from_hours(3);
pub(super) const WINDOW_LENGTH: SignedDuration = SignedDuration::from_mins(40);

/// `players.deadline`: for how long an update waits for players under `WaitForEmpty`.
pub(super) const DEADLINE: SignedDuration = SignedDuration::from_mins(15);

/// `opportunistic.emptyFor`
pub(super) const EMPTY_FOR: SignedDuration = SignedDuration::from_mins(10);

/// The behaviour of a version set on this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetBehaviour {
    Good,
    /// The process exits during its start.
    CrashesAtStart,
    /// It never finishes its start.
    NeverReady,
    /// A plugin is not enabled.
    PluginDisabled,
    /// It is up, and exits within minutes, repeatedly.
    CrashesLater,
    /// Its first start migrates the worlds for this long.
    MigratesFor(SignedDuration),
    /// The additional world and datapack are missing.
    LosesWorld,
}

impl SetBehaviour {
    /// Whether the version set works.
    pub(super) const fn is_good(self) -> bool {
        matches!(self, Self::Good | Self::MigratesFor(_))
    }
}

/// The server's report of players in its ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ping {
    /// Their number.
    ReportsCount,
    /// No number.
    HidesCount,
    /// Always zero players.
    ReportsZero,
}

/// Optional features of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extra {
    /// `updateSchedule.opportunistic`: the server was empty for [`EMPTY_FOR`].
    Opportunistic,
    /// `onCrashLoop: Stop`
    StopOnCrashLoop,
    /// `approval: Required`
    Approval,
    /// `backup.schedule`, if there are backups.
    OnlineBackups,
}

const EXTRAS: [Extra; 4] = [Extra::Opportunistic, Extra::StopOnCrashLoop, Extra::Approval, Extra::OnlineBackups];

/// The position of a server in its cluster.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerIndex {
    pub(super) name: &'static str,
    pub(super) number: u32,
    /// The number of the node that its pods are placed on first.
    pub(super) node: u32,
    /// `spec.follows`: the server to follow, and how long that one runs an update first.
    pub(super) follows: Option<(&'static str, SignedDuration)>,
}

impl ServerIndex {
    /// The only server.
    pub(super) const SINGLE: Self = Self { name: SERVER, number: 0, node: 0, follows: None };
}

/// The scenario of one run.
pub(super) struct Scenario {
    pub(super) server_index: ServerIndex,
    pub(super) address: Ipv4Addr,
    pub(super) old_catalog: Arc<Snapshot>,
    pub(super) new_catalog: Arc<Snapshot>,
    /// The update has a newer Minecraft.
    pub(super) one_way: bool,
    /// The behaviour of the update.
    pub(super) behaviour: SetBehaviour,
    pub(super) policy: &'static str,
    /// `spec.backup.beforeUpdate`. `None`: no `spec.backup`, so the worlds are backed up on the server's volume.
    pub(super) backup_policy: Option<&'static str>,
    pub(super) max_players: u32,
    pub(super) ping: Ping,
    /// `spec.eviction`. `None`: the default of the policy.
    pub(super) eviction: Option<&'static str>,
    /// How long after the opening of a window scheduled restarts are due. `None`: no restarts.
    pub(super) restart_after: Option<SignedDuration>,
    pub(super) extras: BTreeSet<Extra>,
    /// How far the clock of the node is ahead of all others. It is less than the difference at which requests are
    /// refused.
    pub(super) node_clock_offset: SignedDuration,
    /// Whether more than one pod of a node may mount its volume (`storage.accessMode: ReadWriteOnce`).
    pub(super) shares_volume: bool,
    /// On average one of this number of requests gets a fault, while any are left.
    pub(super) requests_per_fault: usize,
    /// The digest of the lock that the server ran first.
    pub(super) first_lock: std::cell::OnceCell<String>,
    /// Fields that a scenario file adds to the spec. If it is set, nothing is random: each duration is the middle of
    /// its range, and players join and leave only by the file.
    pub(super) script: Option<Value>,
    /// Whether invariants are checked. They do not support a scenario file with other windows, notice or deadline.
    pub(super) checks_invariants: bool,
    /// The behaviour of version sets with these parts: `ViaVersion-5.7.1`, `Minecraft 1.21.11`. If empty,
    /// `behaviour` applies to every version set except the first.
    pub(super) behaviours: Vec<(String, SetBehaviour)>,
}

impl Scenario {
    pub(super) fn draw(rng: &mut Rng, releases: &Releases, address: Ipv4Addr) -> Self {
        let one_way = rng.one_in(2);
        let [old_catalog, new_catalog] = if one_way { releases.newer_minecraft() } else { releases.plugins() };
        let behaviours = [
            SetBehaviour::Good,
            SetBehaviour::Good,
            SetBehaviour::CrashesAtStart,
            SetBehaviour::NeverReady,
            SetBehaviour::PluginDisabled,
            SetBehaviour::CrashesLater,
        ];
        let drawn = Self {
            server_index: ServerIndex::SINGLE,
            address,
            old_catalog,
            new_catalog,
            one_way,
            behaviour: rng.choose(&behaviours),
            policy: rng.choose(&["Announce", "Announce", "WaitForEmpty", "Ignore"]),
            backup_policy: rng.choose(&[None, Some("Never"), Some("OneWay"), Some("Always")]),
            max_players: rng.choose(&[0, 1, 3]),
            ping: rng.choose(&[
                Ping::ReportsCount,
                Ping::ReportsCount,
                Ping::ReportsCount,
                Ping::HidesCount,
                Ping::ReportsZero,
            ]),
            eviction: rng.choose(&[None, None, Some("OnUpgrade"), Some("Never")]),
            // In the window, or an hour after it.
            restart_after: rng.choose(&[None, None, Some(20), Some(100)]).map(SignedDuration::from_mins),
            extras: EXTRAS.into_iter().filter(|_| rng.one_in(3)).collect(),
            requests_per_fault: rng.choose(&[30, 100, 300]),
            node_clock_offset: SignedDuration::from_secs(rng.choose(&[0, 0, 20, -20])),
            shares_volume: rng.one_in(2),
            first_lock: std::cell::OnceCell::new(),
            script: None,
            checks_invariants: true,
            behaviours: Vec::new(),
        };
        // Half of the newer Minecraft versions keep their worlds in another place.
        if one_way && rng.one_in(2) { drawn.with_world_migration(releases) } else { drawn }
    }

    /// A scenario without randomness and faults, with the same releases before and after.
    pub(super) fn plain(releases: &Arc<Snapshot>, address: Ipv4Addr) -> Self {
        Self {
            server_index: ServerIndex::SINGLE,
            address,
            old_catalog: releases.clone(),
            new_catalog: releases.clone(),
            one_way: false,
            behaviour: SetBehaviour::Good,
            policy: "Announce",
            backup_policy: None,
            max_players: 3,
            ping: Ping::ReportsCount,
            eviction: None,
            restart_after: None,
            extras: BTreeSet::new(),
            node_clock_offset: SignedDuration::ZERO,
            shares_volume: false,
            requests_per_fault: usize::MAX,
            first_lock: std::cell::OnceCell::new(),
            script: None,
            checks_invariants: true,
            behaviours: Vec::new(),
        }
    }

    /// The same, but the update has a Minecraft that keeps its worlds in another place.
    pub(super) fn with_world_migration(self, releases: &Releases) -> Self {
        let [old_catalog, new_catalog] = releases.world_migration();
        Self { old_catalog, new_catalog, one_way: true, ..self }
    }

    /// The same without faults: updates begin only in windows, the update is good, and players are told of it.
    pub(super) fn undisturbed(self) -> Self {
        Self {
            behaviour: SetBehaviour::Good,
            policy: "Announce",
            max_players: 3,
            ping: Ping::ReportsCount,
            requests_per_fault: usize::MAX,
            node_clock_offset: SignedDuration::ZERO,
            restart_after: None,
            extras: BTreeSet::new(),
            ..self
        }
    }

    /// Whether the worlds are backed up before a newer Minecraft opens them.
    pub(super) fn backs_up_one_way_steps(&self) -> bool {
        self.backup_policy != Some("Never")
    }

    pub(super) fn has_extra(&self, extra: Extra) -> bool {
        self.extras.contains(&extra)
    }

    /// The behaviour of the version set with these files.
    pub(super) fn behaviour_of(&self, files: &FileSet) -> SetBehaviour {
        let first_lock = self.first_lock.get_or_init(|| files.lock.clone());
        let has = |part: &str| {
            let is_file = |file: &agent_api::File| file.path == format!("plugins/{part}.jar");
            part == format!("Minecraft {}", files.minecraft) || files.plugins.iter().any(is_file)
        };
        if !self.behaviours.is_empty() {
            return self
                .behaviours
                .iter()
                .find(|(part, _)| has(part))
                .map_or(SetBehaviour::Good, |(_, behaviour)| *behaviour);
        }
        if *first_lock == files.lock { SetBehaviour::Good } else { self.behaviour }
    }

    /// Whether windows are open.
    pub(super) fn is_window_open(at: Timestamp) -> bool {
        at.as_second() % WINDOW_INTERVAL.as_secs() < WINDOW_LENGTH.as_secs()
    }

    /// Whether players are warned before an eviction of their server is allowed.
    pub(super) fn announces_evictions(&self) -> bool {
        match self.eviction {
            Some(eviction) => eviction == "OnUpgrade",
            None => self.policy == "WaitForEmpty",
        }
    }

    /// When the current or last window opened.
    pub(super) fn opened_at(at: Timestamp) -> Timestamp {
        Timestamp::from_second(at.as_second().div_euclid(WINDOW_INTERVAL.as_secs()) * WINDOW_INTERVAL.as_secs())
            .expect("a valid time")
    }

    /// The time of the last scheduled restart before `at`.
    pub(super) fn restart_due(&self, at: Timestamp) -> Option<Timestamp> {
        let after = self.restart_after?.as_secs();
        let due = (at.as_second() - after).div_euclid(WINDOW_INTERVAL.as_secs()) * WINDOW_INTERVAL.as_secs() + after;
        Timestamp::from_second(due).ok()
    }

    /// The object that a user creates.
    pub(super) fn server(&self) -> Value {
        let mut spec = json!({
            "eula": "Accepted", "updateStrategy": "auto",
            "updateSchedule": {"maintenanceWindow": {"cron": "0 */3 * * *", "duration": "40m", "timeZone": "UTC"}},
            "players": {"policy": self.policy, "notice": "5m", "deadline": format!("{}m", DEADLINE.as_mins())},
            "gracefulShutdown": {"timeout": "60s"},
            "storage": {"size": "1Gi"},
        });
        if self.shares_volume {
            spec["storage"]["accessMode"] = json!("ReadWriteOnce");
        }
        if let Some(after) = self.restart_after {
            let (hour, minute) = (after.as_mins() / 60, after.as_mins() % 60);
            spec["restart"] = json!({"cron": format!("{minute} {hour}-23/3 * * *"), "timeZone": "UTC"});
        }
        if let Some((server, soak)) = self.server_index.follows {
            spec["follows"] = json!({"server": server, "soak": format!("{}s", soak.as_secs())});
        }
        if let Some(eviction) = self.eviction {
            spec["eviction"] = json!(eviction);
        }
        if self.has_extra(Extra::Opportunistic) {
            spec["updateSchedule"]["opportunistic"] = json!({"emptyFor": EMPTY_FOR.as_secs().to_string() + "s"});
        }
        if self.has_extra(Extra::StopOnCrashLoop) {
            spec["onCrashLoop"] = json!("Stop");
        }
        if self.has_extra(Extra::Approval) {
            spec["approval"] = json!("Required");
        }
        if let Some(policy) = self.backup_policy {
            spec["backup"] = json!({"beforeUpdate": policy, "storage": {"size": "1Gi"}});
            if self.has_extra(Extra::OnlineBackups) {
                spec["backup"]["schedule"] = json!({"cron": "*/50 * * * *"});
            }
        }
        if let Some(script) = &self.script {
            json_patch::merge(&mut spec, script);
        }
        json!({
            "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer",
            "metadata": {"name": self.server_index.name, "namespace": super::fake_api_server::NAMESPACE, "labels": {"tier": "test"}},
            "spec": spec,
        })
    }
}
