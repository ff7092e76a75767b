//! Pure. Draws the scenario of a run by its seed.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use fixtures::dice::Rng;
use jiff::{SignedDuration, Timestamp};
use scheduler::protocol::FileSet;
use serde_json::{Value, json};

use super::catalog::Releases;
use super::cluster::SERVER;
use crate::catalog::Snapshot;

/// How often windows open, and how long they stay open.
pub(super) const EVERY: SignedDuration = SignedDuration::from_hours(3);
pub(super) const OPEN_FOR: SignedDuration = SignedDuration::from_mins(40);

/// `players.deadline`: for how long an update waits for players under `WaitForEmpty`.
pub(super) const DEADLINE: SignedDuration = SignedDuration::from_mins(15);

/// `opportunistic.emptyFor`
pub(super) const EMPTY_FOR: SignedDuration = SignedDuration::from_mins(10);

/// The behaviour of a version set on this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetBehaviour {
    Good,
    /// The process exits during its start.
    Crashes,
    /// It never finishes its start.
    NeverUp,
    /// A plugin is not enabled.
    Red,
    /// It is up, and exits within minutes, repeatedly.
    DiesLater,
    /// Its first start migrates the worlds for this long.
    MovesFor(SignedDuration),
    /// The additional world and datapack are missing.
    LosesWorld,
}

impl SetBehaviour {
    /// Whether the version set works.
    pub(super) const fn is_good(self) -> bool {
        matches!(self, Self::Good | Self::MovesFor(_))
    }
}

/// The server's report of players in its ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ping {
    /// Their number.
    Counts,
    /// No number.
    Hides,
    /// Always zero players.
    SaysNobody,
}

/// Optional features of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extra {
    /// `updateSchedule.opportunistic`: the server was empty for [`EMPTY_FOR`].
    Opportunistic,
    /// `onCrashLoop: Stop`
    StopInALoop,
    /// `approval: Required`
    Approval,
    /// `backup.schedule`, if there are backups.
    HotCopies,
}

const EXTRAS: [Extra; 4] = [Extra::Opportunistic, Extra::StopInALoop, Extra::Approval, Extra::HotCopies];

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
    pub(super) const ALONE: Self = Self { name: SERVER, number: 0, node: 0, follows: None };
}

/// The scenario of one run.
pub(super) struct Scenario {
    pub(super) seat: ServerIndex,
    pub(super) address: Ipv4Addr,
    pub(super) before: Arc<Snapshot>,
    pub(super) after: Arc<Snapshot>,
    /// The update has a newer Minecraft.
    pub(super) one_way: bool,
    /// The behaviour of the update.
    pub(super) fate: SetBehaviour,
    pub(super) policy: &'static str,
    /// `spec.backup.beforeUpdate`. `None`: no backups.
    pub(super) copies: Option<&'static str>,
    pub(super) most_players: u32,
    pub(super) ping: Ping,
    /// `spec.eviction`. `None`: the default of the policy.
    pub(super) eviction: Option<&'static str>,
    /// How long after the opening of a window scheduled restarts are due. `None`: no restarts.
    pub(super) restarts: Option<SignedDuration>,
    pub(super) extras: BTreeSet<Extra>,
    /// How far the clock of the node is ahead of all others. It is less than the difference at which requests are
    /// refused.
    pub(super) node_ahead: SignedDuration,
    /// Whether more than one pod of a node may mount its volume (`storage.accessMode: ReadWriteOnce`).
    pub(super) shares_volume: bool,
    /// On average one of this number of requests gets a fault, while any are left.
    pub(super) requests_for_a_mishap: usize,
    /// The digest of the lock that the server ran first.
    pub(super) first: std::cell::OnceCell<String>,
    /// Fields that a scenario file adds to the spec. If it is set, nothing is random: each duration is the middle of
    /// its range, and players join and leave only by the file.
    pub(super) script: Option<Value>,
    /// Whether invariants are checked. They do not support a scenario file with other windows, notice or deadline.
    pub(super) has_rules: bool,
    /// The behaviour of version sets with these parts: `ViaVersion-5.7.1`, `Minecraft 1.21.11`. If empty, `fate`
    /// applies to every version set except the first.
    pub(super) fates: Vec<(String, SetBehaviour)>,
}

impl Scenario {
    pub(super) fn draw(dice: &mut Rng, releases: &Releases, address: Ipv4Addr) -> Self {
        let one_way = dice.once_in(2);
        let [before, after] = if one_way { releases.newer_minecraft() } else { releases.plugins() };
        let fates = [
            SetBehaviour::Good,
            SetBehaviour::Good,
            SetBehaviour::Crashes,
            SetBehaviour::NeverUp,
            SetBehaviour::Red,
            SetBehaviour::DiesLater,
        ];
        let drawn = Self {
            seat: ServerIndex::ALONE,
            address,
            before,
            after,
            one_way,
            fate: dice.one_of(&fates),
            policy: dice.one_of(&["Announce", "Announce", "WaitForEmpty", "Ignore"]),
            copies: dice.one_of(&[None, Some("OneWay"), Some("Always")]),
            most_players: dice.one_of(&[0, 1, 3]),
            ping: dice.one_of(&[Ping::Counts, Ping::Counts, Ping::Counts, Ping::Hides, Ping::SaysNobody]),
            eviction: dice.one_of(&[None, None, Some("OnUpgrade"), Some("Never")]),
            // In the window, or an hour after it.
            restarts: dice.one_of(&[None, None, Some(20), Some(100)]).map(SignedDuration::from_mins),
            extras: EXTRAS.into_iter().filter(|_| dice.once_in(3)).collect(),
            requests_for_a_mishap: dice.one_of(&[30, 100, 300]),
            node_ahead: SignedDuration::from_secs(dice.one_of(&[0, 0, 20, -20])),
            shares_volume: dice.once_in(2),
            first: std::cell::OnceCell::new(),
            script: None,
            has_rules: true,
            fates: Vec::new(),
        };
        // Half of the newer Minecraft versions keep their worlds in another place.
        if one_way && dice.once_in(2) { drawn.moving_worlds(releases) } else { drawn }
    }

    /// A scenario without randomness and faults, with the same releases before and after.
    pub(super) fn plain(releases: &Arc<Snapshot>, address: Ipv4Addr) -> Self {
        Self {
            seat: ServerIndex::ALONE,
            address,
            before: releases.clone(),
            after: releases.clone(),
            one_way: false,
            fate: SetBehaviour::Good,
            policy: "Announce",
            copies: None,
            most_players: 3,
            ping: Ping::Counts,
            eviction: None,
            restarts: None,
            extras: BTreeSet::new(),
            node_ahead: SignedDuration::ZERO,
            shares_volume: false,
            requests_for_a_mishap: usize::MAX,
            first: std::cell::OnceCell::new(),
            script: None,
            has_rules: true,
            fates: Vec::new(),
        }
    }

    /// The same, but the update has a Minecraft that keeps its worlds in another place.
    pub(super) fn moving_worlds(self, releases: &Releases) -> Self {
        let [before, after] = releases.moves_worlds();
        Self { before, after, one_way: true, ..self }
    }

    /// The same without faults: updates begin only in windows, the update is good, and players are told of it.
    pub(super) fn undisturbed(self) -> Self {
        Self {
            fate: SetBehaviour::Good,
            policy: "Announce",
            most_players: 3,
            ping: Ping::Counts,
            requests_for_a_mishap: usize::MAX,
            node_ahead: SignedDuration::ZERO,
            restarts: None,
            extras: BTreeSet::new(),
            ..self
        }
    }

    pub(super) fn has(&self, extra: Extra) -> bool {
        self.extras.contains(&extra)
    }

    /// The behaviour of the version set with these files.
    pub(super) fn fate_of(&self, files: &FileSet) -> SetBehaviour {
        let first = self.first.get_or_init(|| files.lock.clone());
        let has = |part: &str| {
            let is_file = |file: &scheduler::protocol::File| file.path == format!("plugins/{part}.jar");
            part == format!("Minecraft {}", files.minecraft) || files.plugins.iter().any(is_file)
        };
        if !self.fates.is_empty() {
            return self.fates.iter().find(|(part, _)| has(part)).map_or(SetBehaviour::Good, |(_, fate)| *fate);
        }
        if *first == files.lock { SetBehaviour::Good } else { self.fate }
    }

    /// Whether windows are open.
    pub(super) fn is_open(at: Timestamp) -> bool {
        at.as_second() % EVERY.as_secs() < OPEN_FOR.as_secs()
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
        Timestamp::from_second(at.as_second().div_euclid(EVERY.as_secs()) * EVERY.as_secs()).expect("a time soon")
    }

    /// The time of the last scheduled restart before `at`.
    pub(super) fn restart_due(&self, at: Timestamp) -> Option<Timestamp> {
        let after = self.restarts?.as_secs();
        let due = (at.as_second() - after).div_euclid(EVERY.as_secs()) * EVERY.as_secs() + after;
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
        if let Some(after) = self.restarts {
            let (hour, minute) = (after.as_mins() / 60, after.as_mins() % 60);
            spec["restart"] = json!({"cron": format!("{minute} {hour}-23/3 * * *"), "timeZone": "UTC"});
        }
        if let Some((server, soak)) = self.seat.follows {
            spec["follows"] = json!({"server": server, "soak": format!("{}s", soak.as_secs())});
        }
        if let Some(eviction) = self.eviction {
            spec["eviction"] = json!(eviction);
        }
        if self.has(Extra::Opportunistic) {
            spec["updateSchedule"]["opportunistic"] = json!({"emptyFor": EMPTY_FOR.as_secs().to_string() + "s"});
        }
        if self.has(Extra::StopInALoop) {
            spec["onCrashLoop"] = json!("Stop");
        }
        if self.has(Extra::Approval) {
            spec["approval"] = json!("Required");
        }
        if let Some(before) = self.copies {
            spec["backup"] = json!({"beforeUpdate": before, "storage": {"size": "1Gi"}});
            if self.has(Extra::HotCopies) {
                spec["backup"]["schedule"] = json!({"cron": "*/50 * * * *"});
            }
        }
        if let Some(script) = &self.script {
            json_patch::merge(&mut spec, script);
        }
        json!({
            "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer",
            "metadata": {"name": self.seat.name, "namespace": super::fake_api_server::NAMESPACE, "labels": {"tier": "test"}},
            "spec": spec,
        })
    }
}
