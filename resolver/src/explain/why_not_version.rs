//! Pure. Explains "why not this Paper version?": which plugins support it and which do not.

use pubgrub::VersionSet;

use super::inputs::paper_pin;
use super::version_blockers::{explain_without_hints, has_usable_build};
use super::{ExplainContext, hints, upstream_actions};
use crate::explanation::{HintsLeftOut, PluginState, WhyNot};
use crate::index::index_set::IndexSet;
use crate::model::budget::BudgetExceeded;
use crate::model::unusable;
use crate::model::version::Minecraft;
use crate::solve::provider::SolverProblem;

/// Explains why the server does not run `target`. If the budget is used up, only hints are left out.
pub(crate) fn explain(context: &ExplainContext<'_, '_>, target: &Minecraft) -> Result<WhyNot, BudgetExceeded> {
    let mut why = explain_without_hints(context, target)?;
    if why.shared_name.is_some() {
        // Only the user can decide which of the files is meant.
        return Ok(why);
    }
    if has_usable_build(context.candidates, target) {
        let found_hints = hints::for_target(context, &why);
        (why.hints, why.more_hints, why.hints_left_out) = (found_hints.hints, found_hints.more, found_hints.skipped);
        if why.pinned.is_none() && unusable::passes_by_itself(why.unusable.as_ref()) {
            why.waits = upstream_actions::for_blockers(context, (&why.blockers, &why.shared_versions), target);
        }
    } else {
        add_nearest_hints(context, &mut why);
    }
    Ok(why)
}

/// Hints if the version itself is impossible: they lead to the nearest existing version other than the current one.
fn add_nearest_hints(context: &ExplainContext<'_, '_>, why: &mut WhyNot) {
    let Some(nearest) = why.nearest.first().cloned() else { return };
    let is_pinned = paper_pin(context.candidates).is_some();
    if is_pinned {
        let found_hints = hints::for_existing_pin(context, why);
        (why.hints, why.more_hints, why.hints_left_out) = (found_hints.hints, found_hints.more, found_hints.skipped);
    }
    // Without a pin, the newest possible version is already chosen, so only a newer one has blockers. With a pin, the
    // blockers of the nearest version matter if no pin alone leads further.
    let is_held = if is_pinned {
        why.hints.is_empty() && hints::is_in_direction(why, &nearest)
    } else {
        why.nearest_possible.as_ref().is_none_or(|current| current.minecraft < nearest)
    };
    if !is_held {
        return;
    }
    match explain(context, &nearest) {
        Ok(nearest_why) => {
            (why.hints, why.more_hints, why.waits) = (nearest_why.hints, nearest_why.more_hints, nearest_why.waits);
            why.hints_left_out = why.hints_left_out.or(nearest_why.hints_left_out);
        }
        // The hints that would have to be tried are unknown.
        Err(_) => why.hints_left_out = Some(HintsLeftOut::BudgetUsedUp),
    }
}

/// The state of each requested plugin, from the explanation of a version.
pub(crate) fn states(context: &ExplainContext<'_, '_>, why: &WhyNot) -> Vec<PluginState> {
    let candidates = context.candidates;
    let Some(position) = candidates.papers.iter().position(|paper| paper.version.minecraft == why.target) else {
        return Vec::new();
    };
    let whole = SolverProblem::new(candidates, IndexSet::from_indexes([position + 1]));
    let state = |at: usize| {
        let plugin = &candidates.plugins[at];
        let usable = plugin.usable_on(position).intersection(&whole.root[at]);
        let newest = usable.highest(plugin.releases.len()).and_then(|index| index.checked_sub(1));
        let is_ready = why.ready.iter().any(|name| name == plugin.name());
        let newest = newest.filter(|_| is_ready).map(|newest| plugin.releases[newest].release);
        PluginState {
            name: plugin.name().to_owned(),
            version: newest.map(|release| release.version.clone()),
            published: newest.and_then(|release| release.published),
            last_release_at: why
                .blockers
                .iter()
                .find(|h| h.name == plugin.name())
                .and_then(|blocker| blocker.last_release_at),
        }
    };
    whole.mandatory_plugins().into_iter().map(state).collect()
}
