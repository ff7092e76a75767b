//! Pure. May the server in this pod be stopped for this act, or what comes first?

use jiff::{SignedDuration, Timestamp};

use super::{LATEST_START, Step, WaitingOn};
use crate::maintenance::{Gate, later};
use crate::observation::{
    AgentMemory, Announced, Disruption, Goal, Observation, PlayerPolicy, Players, PodPhase, PodUid,
};

/// How long after a refusal the server is asked again: what kept it (a full disk, a firewall) is often soon over, and a window is short. Not
/// sooner: a save holds up the game of whoever is on.
const REFUSED_COUNTS: SignedDuration = SignedDuration::from_mins(2);

/// May the server be stopped?
pub(super) enum StopPreconditions {
    /// Everybody who is on was told, and the world is on the disk; or nobody can be on.
    Asked,
    /// Nobody could be asked, for longer than our patience. Goes into the report.
    Unasked,
    /// This comes first.
    NotYet(Step),
}

pub(super) fn clear_to_stop(
    goal: &Goal,
    seen: &Observation,
    act: Disruption,
    not_after: Timestamp,
    now: Timestamp,
) -> StopPreconditions {
    let Some(pod) = seen.pod else { return StopPreconditions::Asked };
    if goal.policy == PlayerPolicy::Ignore {
        return StopPreconditions::Asked;
    }
    if let Players::Unknown { since } = seen.players {
        // Players count down to what their agent has told them, also while it says nothing to us.
        let promised = seen.told(act).map(|told| told.ends);
        let until = later(since, goal.patience).max(promised.unwrap_or(since));
        return if now < until {
            StopPreconditions::NotYet(Step::Wait(WaitingOn::Agent { until }))
        } else {
            StopPreconditions::Unasked
        };
    }
    match (pod.life, seen.players) {
        // "Never Ready" is not "nobody": a server whose agent was silent is full of players and was never called Ready.
        (PodPhase::Up, _) | (_, Players::Some(_) | Players::Hidden) => {}
        // The agent answers and there is no server process: nobody is on, and nothing could be saved.
        (PodPhase::Starting { .. } | PodPhase::Down | PodPhase::Refused | PodPhase::Stopping { .. }, _) => {
            return StopPreconditions::Asked;
        }
    }
    let saved = seen.facts.saved.filter(|it| it.act == act && it.pod == pod.uid);
    let save = Step::Save { act, pod: pod.uid, not_after };
    let refused = saved.filter(|saved| !saved.confirmed);
    let after_refusal = refused.map(|refused| match later(refused.at, REFUSED_COUNTS) {
        again if now < again => Step::Wait(WaitingOn::SaveRefused { again }),
        _ => save,
    });
    let Some(announced) = seen.told(act).filter(|told| !told.is_long_ago(now)) else {
        // Players are told of a stop once more when it can come, and not again and again while its save is refused.
        let anew = || announce(goal, seen, act, pod.uid, not_after, now);
        return StopPreconditions::NotYet(after_refusal.unwrap_or_else(anew));
    };
    // Also with nobody on: somebody may join. As promised, whoever joined or left since, as long as there is somebody whom it was promised to.
    if now < announced.ends {
        let ends = announced.ends;
        return StopPreconditions::NotYet(if nobody_waits_for(announced, goal, seen, now) {
            Step::Announce { act, pod: pod.uid, notice: goal.empty_notice, not_after }
        } else if seen.agent_memory == AgentMemory::Lost {
            Step::Reannounce { act, pod: pod.uid, ends, not_after }
        } else {
            Step::Wait(WaitingOn::Countdown { ends })
        });
    }
    // As long as what players were told, and whoever is on: the hook that stops the server saves again what is built since. A rule "nobody was on
    // since" would let one sleeping player stop every update for ever.
    let is_saved = saved.is_some_and(|saved| saved.confirmed && announced.ends <= saved.at);
    if is_saved { StopPreconditions::Asked } else { StopPreconditions::NotYet(after_refusal.unwrap_or(save)) }
}

/// The same for an update that a gate lets in since then. Whether nobody could be asked; or what comes first. None: the countdown cannot end
/// before the gate shuts, and would be a false alarm.
pub(super) fn clear_to_update(
    goal: &Goal,
    seen: &Observation,
    (gate, opened_at): (Gate, Timestamp),
    not_after: Timestamp,
    now: Timestamp,
) -> Result<bool, Option<Step>> {
    let act = Disruption::Update { goal: goal.revision, window_opened_at: opened_at };
    match clear_to_stop(goal, seen, act, not_after, now) {
        StopPreconditions::Asked => Ok(false),
        StopPreconditions::Unasked => Ok(true),
        StopPreconditions::NotYet(Step::Announce { notice, .. })
            if gate.shuts_before(later(later(now, notice), LATEST_START)) =>
        {
            Err(None)
        }
        StopPreconditions::NotYet(step) => Err(Some(step)),
    }
}

/// The last player has left, and stays away for as long as a countdown of an empty server takes: who only lost the connection finds the time
/// that they were told. What is left is cut short to such a countdown, for those who join in it.
fn nobody_waits_for(announced: Announced, goal: &Goal, seen: &Observation, now: Timestamp) -> bool {
    let away = seen.empty_since.is_some_and(|since| later(since, goal.empty_notice) <= now);
    away && seen.players == Players::Nobody && later(now, goal.empty_notice) < announced.ends
}

/// Nobody on this pod was told about this act.
fn announce(
    goal: &Goal,
    seen: &Observation,
    act: Disruption,
    pod: PodUid,
    not_after: Timestamp,
    now: Timestamp,
) -> Step {
    let notice = match seen.players {
        Players::Nobody => goal.empty_notice,
        Players::Some(_) | Players::Hidden | Players::Unknown { .. } => goal.notice,
    };
    let since = match act {
        Disruption::Update { goal: _, window_opened_at: since }
        | Disruption::Restart { due: since }
        | Disruption::Drain { since } => Some(since),
        Disruption::RollBack { .. } => None,
    };
    if let (PlayerPolicy::WaitForEmpty { deadline }, Some(since), Players::Some(_) | Players::Hidden) =
        (goal.policy, since, seen.players)
        && now < later(since, deadline)
    {
        return Step::Wait(WaitingOn::Players { until: later(since, deadline) });
    }
    Step::Announce { act, pod, notice, not_after }
}
