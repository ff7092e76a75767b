//! Pure. Verifies hints: each is solved for, and the reason for skipped ones is recorded for the explanation.

use std::cell::Cell;
use std::cmp::Reverse;

use jiff::Timestamp;

use super::super::ExplainContext;
use super::apply::apply;
use crate::explain::group_context::MAX_ANALYSED_SERVERS;
use crate::explanation::{Hint, HintStep, HintsLeftOut};
use crate::model::budget::BudgetExceeded;
use crate::model::request::Request;
use crate::model::version::Minecraft;
use crate::solve::{SolveOutcome, outcome};

/// The hints that were found.
#[derive(Debug, Default)]
pub(in super::super) struct HintList {
    /// The listed hints.
    pub(in super::super) hints: Vec<Hint>,
    /// The number of further hints.
    pub(in super::super) more: usize,
    /// The reason why some possible hints were not tried.
    pub(in super::super) skipped: Option<HintsLeftOut>,
}

/// The reason why possible hints were skipped.
#[derive(Debug, Default)]
pub(super) struct SkippedHints(Cell<Option<HintsLeftOut>>);

impl SkippedHints {
    /// Records why a hint was skipped. Of several reasons, a limit of the request counts, because without it there may
    /// be no other. Of several hints with too many steps, the shortest counts: it is the minimum number of changes.
    pub(super) fn record(&self, why: HintsLeftOut) {
        let rank = |why: HintsLeftOut| match why {
            HintsLeftOut::TooManyAtOnce { steps } => (0, Reverse(steps)),
            HintsLeftOut::BudgetUsedUp => (1, Reverse(0)),
            HintsLeftOut::GroupTooLarge { .. } => (2, Reverse(0)),
        };
        if self.0.get().is_none_or(|recorded| rank(recorded) < rank(why)) {
            self.0.set(Some(why));
        }
    }

    /// Whether this number of steps is worth a try. Records the reason if not.
    fn check_length(&self, steps: usize) -> bool {
        if steps > MAX_STEPS {
            self.record(HintsLeftOut::TooManyAtOnce { steps });
        }
        steps <= MAX_STEPS
    }

    /// The recorded reason, if any.
    pub(super) fn reason(&self) -> Option<HintsLeftOut> {
        self.0.get()
    }
}

/// The verification of all hints for one explanation.
pub(super) struct HintProver<'t, 'x, 'a> {
    pub(super) context: &'t ExplainContext<'x, 'a>,
    pub(super) skipped: SkippedHints,
}

impl<'t, 'x, 'a> HintProver<'t, 'x, 'a> {
    pub(super) fn new(context: &'t ExplainContext<'x, 'a>) -> Self {
        Self { context, skipped: SkippedHints::default() }
    }

    /// Finishes with the hints that were found, sorted and shortened.
    pub(super) fn finish(self, hints: Vec<Hint>) -> HintList {
        let (hints, more) = rank_hints(hints);
        HintList { hints, more, skipped: self.skipped.reason() }
    }

    /// The hint with these steps, without the steps that are unnecessary, so that the user changes as little as
    /// possible.
    pub(super) fn verify(
        &self,
        request: &Request,
        steps: Vec<HintStep>,
        from: Option<&Minecraft>,
        better: impl Fn(&SolveOutcome) -> bool,
    ) -> Option<Hint> {
        let verify = |steps: &[HintStep]| self.outcome_after(request, steps).filter(&better);
        let (mut then, mut steps) = (verify(&steps)?, steps);
        let mut position = 0;
        while steps.len() > 1 && position < steps.len() {
            let removed = steps.remove(position);
            if let Some(without) = verify(&steps) {
                then = without;
            } else {
                steps.insert(position, removed);
                position += 1;
            }
        }
        let gives = then.paper;
        let is_irreversible = |from: &&Minecraft| gives.software.is_minecraft() && gives.minecraft > **from;
        Some(Hint { steps, irreversible_from: from.filter(is_irreversible).cloned(), gives })
    }

    /// The result for the request after these steps. `None` if there is no solution or it could not be tried.
    fn outcome_after(&self, request: &Request, steps: &[HintStep]) -> Option<SolveOutcome> {
        let context = self.context;
        let mut changed = request.clone();
        let mut now: Timestamp = context.candidates.now;
        for step in steps {
            apply(&mut changed, &mut now, step);
        }
        let then: Result<Option<SolveOutcome>, BudgetExceeded> = match context.group {
            Some(group) if group.views.len() > MAX_ANALYSED_SERVERS => {
                self.skipped.record(HintsLeftOut::GroupTooLarge { servers: group.views.len() });
                return None;
            }
            Some(group) => group.outcome(&changed, steps, now, context.meter),
            None => outcome(|| context.candidates.with_request(&changed, now), context.meter),
        };
        then.unwrap_or_else(|_| {
            self.skipped.record(HintsLeftOut::BudgetUsedUp);
            None
        })
    }
}

/// The hints in order, without hints that contain another one, and the number of further hints.
pub(super) fn rank_hints(mut hints: Vec<Hint>) -> (Vec<Hint>, usize) {
    hints.sort_by(|a, b| a.steps.len().cmp(&b.steps.len()).then_with(|| a.steps.cmp(&b.steps)));
    let mut ranked: Vec<Hint> = Vec::new();
    for hint in hints {
        // A hint with more steps must lead further.
        let contains = |less: &Hint| less.steps.iter().all(|step| hint.steps.contains(step));
        if !ranked.iter().any(|less| contains(less) && less.gives.minecraft >= hint.gives.minecraft) {
            ranked.push(hint);
        }
    }
    let more = ranked.len().saturating_sub(MAX_HINTS);
    ranked.truncate(MAX_HINTS);
    (ranked, more)
}

/// Combines one step for each blocker. With a single blocker, each step is a candidate. Otherwise the candidates are
/// all the waiting combined, and the first step of each blocker that is not waiting.
pub(super) fn combinations(blockers: &[Vec<HintStep>], skipped: &SkippedHints) -> Vec<Vec<HintStep>> {
    if blockers.is_empty() || blockers.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    if let [steps] = blockers {
        return steps.iter().map(|step| vec![step.clone()]).collect();
    }
    let wait = |steps: &Vec<HintStep>| {
        steps.iter().find_map(|step| if let HintStep::WaitUntil { at } = step { Some(*at) } else { None })
    };
    let mut found = Vec::new();
    // Also if not all blockers have a date: the date of one plugin may resolve the others, too. The verification
    // decides.
    if let Some(at) = blockers.iter().filter_map(wait).max() {
        found.push(vec![HintStep::WaitUntil { at }]);
    }
    let acts = |steps: &Vec<HintStep>| steps.iter().find(|step| !matches!(step, HintStep::WaitUntil { .. })).cloned();
    let together: Option<Vec<HintStep>> = blockers.iter().map(acts).collect();
    let together = together.map(|mut steps| {
        steps.sort();
        steps.dedup();
        steps
    });
    found.extend(together.filter(|steps| skipped.check_length(steps.len())));
    found
}

/// Adds another step to each of these step lists. Lists with a wait are dropped.
pub(super) fn with_step(step_lists: Vec<Vec<HintStep>>, step: &HintStep, skipped: &SkippedHints) -> Vec<Vec<HintStep>> {
    let acts = |steps: &Vec<HintStep>| !steps.iter().any(|step| matches!(step, HintStep::WaitUntil { .. }));
    let with = |mut steps: Vec<HintStep>| {
        steps.push(step.clone());
        steps.sort();
        skipped.check_length(steps.len()).then_some(steps)
    };
    step_lists.into_iter().filter(acts).filter_map(with).collect()
}

/// Limit of listed hints. The first ones have the lowest risk.
pub(crate) const MAX_HINTS: usize = 5;

/// Limit of steps in one hint. Users would not apply more, and each step costs a solver run.
pub(crate) const MAX_STEPS: usize = 6;
