//! Pure. Decides whether the server in this pod may be stopped for a disruption, or which step must come first.

use jiff::{SignedDuration, Timestamp};

use super::{LATEST_START, Step, WaitingOn};
use crate::maintenance::{Gate, saturating_add};
use crate::observation::{
    AgentMemory, Announced, Disruption, Goal, Observation, PlayerPolicy, Players, PodPhase, PodUid,
};

/// How long after a refused save the operator retries. The cause (a full disk, a firewall) is often fixed soon, and a window is short. The
/// interval is not shorter, because a save interrupts the game of the players online.
const SAVE_RETRY_DELAY: SignedDuration = SignedDuration::from_mins(2);

/// Whether the server may be stopped.
pub(super) enum StopPreconditions {
    /// All players online were warned, and the world is saved to disk. Or nobody can be online.
    Met,
    /// The agent could not be reached for longer than the configured timeout. The report states it.
    AgentUnreachable,
    /// This step must come first.
    NotYet(Step),
}

pub(super) fn check_stop(
    goal: &Goal,
    observation: &Observation,
    disruption: Disruption,
    not_after: Timestamp,
    now: Timestamp,
) -> StopPreconditions {
    let Some(pod) = observation.pod else { return StopPreconditions::Met };
    // No process has run in a pending pod, so nobody is online, and no agent has to be asked.
    if goal.policy == PlayerPolicy::Ignore || pod.phase == PodPhase::Pending {
        return StopPreconditions::Met;
    }
    if let Players::Unknown { since } = observation.players {
        // The agent's countdown for players continues, also while the operator cannot reach the agent.
        let announced_end = observation.announced(disruption).map(|announced| announced.ends);
        let until = saturating_add(since, goal.stop_timeout).max(announced_end.unwrap_or(since));
        return if now < until {
            StopPreconditions::NotYet(Step::Wait(WaitingOn::Agent { until }))
        } else {
            StopPreconditions::AgentUnreachable
        };
    }
    match (pod.phase, observation.players) {
        // A pod that was never Ready may have players: a full server whose agent was silent was never reported as Ready.
        (PodPhase::Up, _) | (_, Players::Some(_) | Players::Hidden) => {}
        // The agent answers and no server process is running. So the server has no players and no unsaved world.
        (
            PodPhase::Pending
            | PodPhase::Starting { .. }
            | PodPhase::Down
            | PodPhase::Refused
            | PodPhase::Stopping { .. },
            _,
        ) => {
            return StopPreconditions::Met;
        }
    }
    let saved = observation.facts.saved.filter(|saved| saved.act == disruption && saved.pod == pod.uid);
    let save = Step::Save { disruption, pod: pod.uid, not_after };
    let refused = saved.filter(|saved| !saved.confirmed);
    let after_refusal = refused.map(|refused| match saturating_add(refused.at, SAVE_RETRY_DELAY) {
        retry_at if now < retry_at => Step::Wait(WaitingOn::SaveRefused { retry_at }),
        _ => save,
    });
    let Some(announced) = observation.announced(disruption).filter(|announced| !announced.is_expired(now)) else {
        // When a stop becomes possible, players are warned once more. They are not warned again and again while its save is refused.
        let anew = || announce(goal, observation, disruption, pod.uid, not_after, now);
        return StopPreconditions::NotYet(after_refusal.unwrap_or_else(anew));
    };
    // The countdown also runs with nobody online, because players may join. It runs to the announced end, whoever joins or leaves, as long as a
    // warned player remains.
    if now < announced.ends {
        let ends = announced.ends;
        return StopPreconditions::NotYet(if can_shorten_countdown(announced, goal, observation, now) {
            Step::Announce { disruption, pod: pod.uid, notice: goal.empty_notice, not_after }
        } else if observation.agent_memory == AgentMemory::Forgotten {
            Step::Reannounce { disruption, pod: pod.uid, ends, not_after }
        } else {
            Step::Wait(WaitingOn::Countdown { ends })
        });
    }
    // A save counts for as long as the announcement does, whoever is online. The pre-stop hook saves later changes again. A rule that requires
    // nobody online since would let one idle player block every update for ever.
    let is_saved = saved.is_some_and(|saved| saved.confirmed && announced.ends <= saved.at);
    if is_saved { StopPreconditions::Met } else { StopPreconditions::NotYet(after_refusal.unwrap_or(save)) }
}

/// The same for an update that the gate has allowed since `opened_at`. Returns whether the agent was unreachable, or the step that must come
/// first. `Err(None)`: the countdown cannot end before the gate shuts, and would be a false alarm.
pub(super) fn check_update(
    goal: &Goal,
    observation: &Observation,
    (gate, opened_at): (Gate, Timestamp),
    not_after: Timestamp,
    now: Timestamp,
) -> Result<bool, Option<Step>> {
    let disruption = Disruption::Update { goal: goal.revision, window_opened_at: opened_at };
    match check_stop(goal, observation, disruption, not_after, now) {
        StopPreconditions::Met => Ok(false),
        StopPreconditions::AgentUnreachable => Ok(true),
        StopPreconditions::NotYet(Step::Announce { notice, .. })
            if gate.shuts_before(saturating_add(saturating_add(now, notice), LATEST_START)) =>
        {
            Err(None)
        }
        StopPreconditions::NotYet(step) => Err(Some(step)),
    }
}

/// Whether the last player has left and has stayed away for as long as the countdown of an empty server. A player who only lost the connection
/// keeps the announced time. The rest is cut to an empty server's countdown, for players who join during it.
fn can_shorten_countdown(announced: Announced, goal: &Goal, observation: &Observation, now: Timestamp) -> bool {
    let away = observation.empty_since.is_some_and(|since| saturating_add(since, goal.empty_notice) <= now);
    away && observation.players == Players::Nobody && saturating_add(now, goal.empty_notice) < announced.ends
}

/// No player on this pod was warned of this disruption.
fn announce(
    goal: &Goal,
    observation: &Observation,
    disruption: Disruption,
    pod: PodUid,
    not_after: Timestamp,
    now: Timestamp,
) -> Step {
    let notice = match observation.players {
        Players::Nobody => goal.empty_notice,
        Players::Some(_) | Players::Hidden | Players::Unknown { .. } => goal.notice,
    };
    let since = match disruption {
        Disruption::Update { goal: _, window_opened_at: since }
        | Disruption::Restart { due: since }
        | Disruption::Drain { since } => Some(since),
        Disruption::RollBack { .. } => None,
    };
    if let (PlayerPolicy::WaitForEmpty { deadline }, Some(since), Players::Some(_) | Players::Hidden) =
        (goal.policy, since, observation.players)
        && now < saturating_add(since, deadline)
    {
        return Step::Wait(WaitingOn::Players { until: saturating_add(since, deadline) });
    }
    Step::Announce { disruption, pod, notice, not_after }
}
