//! Pure. What a walk is about, drawn by its number.

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

/// Windows open this often, and are open for so long.
pub(super) const EVERY: SignedDuration = SignedDuration::from_hours(3);
pub(super) const OPEN_FOR: SignedDuration = SignedDuration::from_mins(40);

/// `players.deadline`: for how long an update waits for players under `WaitForEmpty`.
pub(super) const DEADLINE: SignedDuration = SignedDuration::from_mins(15);

/// `opportunistic.emptyFor`
pub(super) const EMPTY_FOR: SignedDuration = SignedDuration::from_mins(10);

/// What becomes of a set on this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetBehaviour {
    Good,
    /// The process ends in its start.
    Crashes,
    /// It starts for ever.
    NeverUp,
    /// A plugin is not enabled.
    Red,
    /// It is up, and ends within minutes, again and again.
    DiesLater,
    /// Its first start moves the worlds for so long.
    MovesFor(SignedDuration),
    /// The other world and the other datapack are not there any more.
    LosesWorld,
}

impl SetBehaviour {
    /// Nothing is wrong with it.
    pub(super) const fn is_good(self) -> bool {
        matches!(self, Self::Good | Self::MovesFor(_))
    }
}

/// What the server's ping says of who is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ping {
    /// How many.
    Counts,
    /// Not how many.
    Hides,
    /// That nobody is, whoever is.
    SaysNobody,
}

/// What a spec may say beside all that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extra {
    /// `updateSchedule.opportunistic`: nobody is on for [`EMPTY_FOR`].
    Opportunistic,
    /// `onCrashLoop: Stop`
    StopInALoop,
    /// `approval: Required`
    Approval,
    /// `backup.schedule`, where there are copies.
    HotCopies,
}

const EXTRAS: [Extra; 4] = [Extra::Opportunistic, Extra::StopInALoop, Extra::Approval, Extra::HotCopies];

/// Which server of the cluster it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerIndex {
    pub(super) name: &'static str,
    pub(super) number: u32,
    /// The number of the node that its pods are placed on first.
    pub(super) node: u32,
    /// `spec.follows`: who goes first, and for how long.
    pub(super) follows: Option<(&'static str, SignedDuration)>,
}

impl ServerIndex {
    /// There is no other one.
    pub(super) const ALONE: Self = Self { name: SERVER, number: 0, node: 0, follows: None };
}

/// One walk.
pub(super) struct Scenario {
    pub(super) seat: ServerIndex,
    pub(super) address: Ipv4Addr,
    pub(super) before: Arc<Snapshot>,
    pub(super) after: Arc<Snapshot>,
    /// The update brings a newer Minecraft.
    pub(super) one_way: bool,
    /// Of what the update brings.
    pub(super) fate: SetBehaviour,
    pub(super) policy: &'static str,
    /// `spec.backup.beforeUpdate`; None: no copies.
    pub(super) copies: Option<&'static str>,
    pub(super) most_players: u32,
    pub(super) ping: Ping,
    /// `spec.eviction`; None: what follows from the policy.
    pub(super) eviction: Option<&'static str>,
    /// Restarts by the clock are due so long after a window opens; None: there are none.
    pub(super) restarts: Option<SignedDuration>,
    pub(super) extras: BTreeSet<Extra>,
    /// By so much the clock of the node is ahead of all others: by less than a request would be refused for.
    pub(super) node_ahead: SignedDuration,
    /// Its volume may be mounted by more than one pod of its node (`storage.accessMode: ReadWriteOnce`).
    pub(super) shares_volume: bool,
    /// One request of so many meets a mishap, while there are any left.
    pub(super) requests_for_a_mishap: usize,
    /// The digest of the lock that the server ran first.
    pub(super) first: std::cell::OnceCell<String>,
    /// What a scenario file adds to the spec. Then nothing is drawn: whatever takes time takes the middle of what it may take, and players come
    /// and go only as the file says.
    pub(super) script: Option<Value>,
    /// The rules say what must be true. They do not know the windows, the notice and the deadline of a scenario file that has others.
    pub(super) has_rules: bool,
    /// What becomes of sets that have this: `ViaVersion-5.7.1`, `Minecraft 1.21.11`. Without any, `fate` is that of every set but the first.
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
        // Half of the newer Minecrafts keep their worlds elsewhere.
        if one_way && dice.once_in(2) { drawn.moving_worlds(releases) } else { drawn }
    }

    /// One in which nothing is drawn and nothing goes wrong, with these releases before and after.
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

    /// The same where the update brings a Minecraft that keeps its worlds elsewhere.
    pub(super) fn moving_worlds(self, releases: &Releases) -> Self {
        let [before, after] = releases.moves_worlds();
        Self { before, after, one_way: true, ..self }
    }

    /// The same where no request meets a mishap, nothing but the window lets an update begin, the update is good, and players are told of it.
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

    /// What becomes of the set with these files.
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

    /// Whether players are told before an eviction of their server is let through.
    pub(super) fn announces_evictions(&self) -> bool {
        match self.eviction {
            Some(eviction) => eviction == "OnUpgrade",
            None => self.policy == "WaitForEmpty",
        }
    }

    /// When the window opened that is open, or was open last.
    pub(super) fn opened_at(at: Timestamp) -> Timestamp {
        Timestamp::from_second(at.as_second().div_euclid(EVERY.as_secs()) * EVERY.as_secs()).expect("a time soon")
    }

    /// The instant of the restart by the clock that came last before this one.
    pub(super) fn restart_due(&self, at: Timestamp) -> Option<Timestamp> {
        let after = self.restarts?.as_secs();
        let due = (at.as_second() - after).div_euclid(EVERY.as_secs()) * EVERY.as_secs() + after;
        Timestamp::from_second(due).ok()
    }

    /// The object that a person writes.
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
