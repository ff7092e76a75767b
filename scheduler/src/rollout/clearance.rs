//! Pure. May the server in this pod be stopped for this act, or what comes first?

use jiff::{SignedDuration, Timestamp};

use super::{Step, WaitingOn};
use crate::gate::later;
use crate::seen::{Act, Goal, Life, Players, PodUid, Policy, Seen};

/// How long a save counts, whoever is on: the hook that stops the server saves again what is built since. Longer than two
/// writes and a slow API server need. A rule "nobody was on since" would let one sleeping player stop every update for ever.
const SAVE_COUNTS: SignedDuration = SignedDuration::from_mins(10);

/// May the server be stopped?
pub(super) enum Clearance {
    /// Everybody who is on was told, and the world is on the disk; or nobody can be on.
    Asked,
    /// Nobody could be asked, for longer than our patience. Goes into the report.
    Unasked,
    /// This comes first.
    NotYet(Step),
}

pub(super) fn clear_to_stop(goal: &Goal, seen: &Seen, act: Act, not_after: Timestamp, now: Timestamp) -> Clearance {
    let Some(pod) = seen.pod else { return Clearance::Asked };
    if goal.policy == Policy::Ignore {
        return Clearance::Asked;
    }
    if let Players::Unknown { since } = seen.players {
        let until = later(since, goal.patience);
        return if now < until {
            Clearance::NotYet(Step::Wait(WaitingOn::Agent { until }))
        } else {
            Clearance::Unasked
        };
    }
    match (pod.life, seen.players) {
        // "Never Ready" is not "nobody": a server whose agent was silent is full of players and was never called Ready.
        (Life::Up, _) | (_, Players::Some(_)) => {}
        // The agent answers and there is no server process: nobody is on, and nothing could be saved.
        (Life::Starting { .. } | Life::Down | Life::Refused | Life::Stopping { .. }, _) => return Clearance::Asked,
    }
    let Some(announced) = seen.told(act) else {
        return Clearance::NotYet(announce(goal, seen, act, pod.uid, not_after, now));
    };
    // Also with nobody on: somebody may join. And as promised, whoever joined or left since: a countdown never jumps.
    if now < announced.ends {
        return Clearance::NotYet(Step::Wait(WaitingOn::Countdown { ends: announced.ends }));
    }
    match seen.facts.saved.filter(|it| it.act == act && it.pod == pod.uid && now < later(it.at, SAVE_COUNTS)) {
        Some(saved) if saved.confirmed => Clearance::Asked,
        Some(saved) => Clearance::NotYet(Step::Wait(WaitingOn::SaveRefused { again: later(saved.at, SAVE_COUNTS) })),
        None => Clearance::NotYet(Step::Save { act, pod: pod.uid, not_after }),
    }
}

/// Nobody on this pod was told about this act.
fn announce(goal: &Goal, seen: &Seen, act: Act, pod: PodUid, not_after: Timestamp, now: Timestamp) -> Step {
    let notice = match seen.players {
        Players::Nobody => goal.empty_notice,
        Players::Some(_) | Players::Unknown { .. } => goal.notice,
    };
    let since = match act {
        Act::Update { goal: _, window_opened_at: since } | Act::Restart { due: since } | Act::Drain { since } => {
            Some(since)
        }
        Act::RollBack { .. } => None,
    };
    if let (Policy::WaitForEmpty { deadline }, Some(since), Players::Some(_)) = (goal.policy, since, seen.players)
        && now < later(since, deadline)
    {
        return Step::Wait(WaitingOn::Players { until: later(since, deadline) });
    }
    Step::Announce { act, pod, notice, not_after }
}
