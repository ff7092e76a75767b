//! Edge (reads). Updates outside of windows (`spec.updateSchedule.opportunistic`): whether one may come now, and the last look at who is on
//! before it does. The rule is [`scheduler::rollout::opportunistic`]; this file knows to whom it applies.

use jiff::{SignedDuration, Timestamp};
use scheduler::announcement::in_words;
use scheduler::maintenance::Gate;
use scheduler::observation::{Disruption, Players};
use scheduler::rollout::{OpportunityReason, Step, WaitingOn, opportunity};
use tracing::info;

use super::changes::ServerChange;
use super::check::CheckedServer;
use super::observe::Observed;
use super::plan::Plan;
use super::update_slot;
use crate::context::Context;
use crate::error_chain::ErrorChain;
use crate::requeue::Outcome;

/// A server is not looked at more often than this only because somebody may have left it.
const APART: SignedDuration = SignedDuration::from_mins(1);

/// Whether the update that is planned may come outside of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpportunisticState {
    /// How long nobody must have been on. None: it comes in windows only.
    pub(crate) empty_for: Option<SignedDuration>,
    /// That is because it brings a newer Minecraft.
    pub(crate) is_one_way: bool,
    /// Why the gate is open now, where no window is.
    pub(crate) occasion: Option<OpportunityReason>,
    /// The gate without it.
    otherwise: Gate,
}

impl OpportunisticState {
    /// For a plan that waits for what its gate says.
    pub(crate) fn none(gate: Gate) -> Self {
        Self { empty_for: None, is_one_way: false, occasion: None, otherwise: gate }
    }

    /// Of what is planned for this server; `gate` is what it waits for otherwise.
    fn of(server: &CheckedServer, changes: &[ServerChange], gate: Gate) -> Self {
        let wish = server.opportunistic.filter(|_| server.changes_by_itself());
        let is_one_way = changes.iter().any(|change| change.one_way);
        let is_held_back = wish.is_some() && is_one_way;
        Self { empty_for: wish.filter(|_| !is_one_way), is_one_way: is_held_back, ..Self::none(gate) }
    }

    /// When somebody may have left a server that has been empty since then, or the next look is due in any case. None: nobody waits for it.
    fn next_look(&self, empty_since: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let empty_for = self.empty_for.filter(|_| self.occasion.is_none())?;
        let from = empty_since.unwrap_or(now).checked_add(empty_for).unwrap_or(Timestamp::MAX);
        // Long enough, and the list of players says otherwise: it is asked again after the same time.
        let from = if from > now { from } else { now.checked_add(empty_for).unwrap_or(Timestamp::MAX) };
        Some(from.max(now + APART))
    }

    /// When an update comes, for people: in the window that is named, if one is, or when the server is empty.
    pub(crate) fn beside(&self, window: Option<String>) -> Option<String> {
        match (self.empty_for, window) {
            (None, window) => window,
            (Some(_), Some(window)) => Some(format!("{window} or when empty")),
            (Some(_), None) => Some("when empty".to_owned()),
        }
    }

    /// What stands behind the words for a window that is waited for.
    pub(crate) fn instead_of_waiting(&self) -> String {
        match self.empty_for {
            Some(empty_for) => format!("; it also comes when nobody has been on for {}", in_words(empty_for)),
            None if self.is_one_way => {
                "; a newer Minecraft comes in a window only (`updateSchedule.opportunistic`)".to_owned()
            }
            None => String::new(),
        }
    }

    /// Why an update comes although no window is open, before what it brings.
    pub(crate) fn why_now(&self) -> String {
        match self.occasion {
            Some(OpportunityReason::Asleep) => "while the server sleeps: ".to_owned(),
            Some(OpportunityReason::Empty) => {
                format!("nobody has been on for {}: ", in_words(self.empty_for.unwrap_or_default()))
            }
            Some(OpportunityReason::Restart) => "with the restart by the clock: ".to_owned(),
            None => String::new(),
        }
    }
}

impl Plan {
    /// Opens the gate where nobody would mind. Not against the want of an approval, nor before the server that is followed, nor in a
    /// loop of crashes, nor beside a restore that a person asked for.
    pub(crate) fn look_for_opportunity(&mut self, server: &CheckedServer, now: Timestamp) {
        self.opportunistic = OpportunisticState::of(server, &self.changes, self.gate);
        let Some(empty_for) = self.opportunistic.empty_for.filter(|_| !self.is_held()) else { return };
        if let Some(found) = opportunity(&self.goal, &self.seen, self.gate, &server.windows, empty_for, now) {
            (self.gate, self.goal.policy) = (found.gate, found.policy);
            self.opportunistic.occasion = Some(found.occasion);
        }
    }

    /// Whether it would come where nobody minds as soon as nobody is on for long enough: nothing else keeps it.
    pub(crate) fn comes_when_empty(&self, server: &CheckedServer) -> bool {
        let wish = OpportunisticState::of(server, &self.changes, self.gate).empty_for;
        wish.is_some() && !self.is_held() && self.outlook.blackout.is_none()
    }

    fn is_held(&self) -> bool {
        self.consent.needs_approval
            || self.held_by_followed().is_some()
            || self.held_by_crashes
            || self.restores.due.is_some()
    }

    /// When a server whose update waits for an opportunity has to be looked at: when nobody has been on for long enough, if nobody is.
    pub(crate) fn in_time_for_opportunity(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        let waits = self.is_update() && self.seen.pod.is_some();
        let next = self.opportunistic.next_look(self.seen.empty_since, now).filter(|_| waits);
        next.map_or(outcome, |next| outcome.no_later_than(next, now))
    }
}

/// The next step, in its turn. What rests upon nobody being on is not begun before the server's own list has said so: a ping may hide
/// players, and is seconds old.
pub(crate) async fn next_step(
    ctx: &Context,
    server: &CheckedServer,
    seen: &Observed,
    plan: &mut Plan,
    by_hand: bool,
    now: Timestamp,
) -> Step {
    let step = update_slot::next_in_turn(ctx, server, seen, plan, by_hand, now);
    let is_alone = plan.opportunistic.occasion == Some(OpportunityReason::Empty);
    if is_alone && rests_on_nobody(step) {
        if list(ctx, seen).await == Some(Players::Nobody) {
            return step;
        }
        plan.gate = plan.opportunistic.otherwise;
        plan.opportunistic.occasion = None;
    } else if rests_on_the_count(step, plan.seen.players)
        && let Some(listed) = list(ctx, seen).await
    {
        plan.seen.players = listed;
    } else {
        return step;
    }
    update_slot::next_in_turn(ctx, server, seen, plan, by_hand, now)
}

/// What would be another one if somebody were on whom the ping hides, or nobody were.
fn rests_on_the_count(step: Step, players: Players) -> bool {
    match players {
        Players::Nobody => matches!(step, Step::Announce { .. }),
        Players::Hidden => matches!(step, Step::Announce { .. } | Step::Wait(WaitingOn::Players { .. })),
        Players::Some(_) | Players::Unknown { .. } => false,
    }
}

/// What players would be told, or stopped by.
fn rests_on_nobody(step: Step) -> bool {
    let tells = matches!(
        step,
        Step::Announce { act: Disruption::Update { .. }, .. } | Step::Reannounce { act: Disruption::Update { .. }, .. }
    );
    tells || matches!(step, Step::Commit { .. } | Step::RollForward { .. })
}

/// Who is on by the server's own list. None: nobody could say.
async fn list(ctx: &Context, seen: &Observed) -> Option<Players> {
    match seen.agent(ctx)?.players().await.map(Players::from) {
        Ok(listed @ (Players::Nobody | Players::Some(_))) => {
            info!(?listed, "the server's own list was asked");
            Some(listed)
        }
        Ok(Players::Unknown { .. } | Players::Hidden) => {
            info!("the server's own list does not say who is on");
            None
        }
        Err(error) => {
            info!(error = %ErrorChain(&error), "nobody could say who is on");
            None
        }
    }
}

#[cfg(test)]
mod tests;
