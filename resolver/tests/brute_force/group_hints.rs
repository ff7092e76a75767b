//! Pure. Tests the hints for servers that are solved together, on random small pairs: a followed hint must lead to the
//! stated versions.

use std::cell::Cell;

use resolver::explanation::{Explanation, Hint, HintStep};
use resolver::model::request::Hold;
use resolver::render::text;
use resolver::{Budget, Resolution, Unsolvable, resolve_fleet};

use super::group::{self, Pair};
use super::properties::{apply_steps, excluded_count};
use super::{checker, required_count, scaled_to_run};

/// Number of tested pairs in a thorough run. Each hint needs one more solve of two servers.
const PAIR_COUNT: u64 = 3_000;

type Answer = Result<Resolution, Unsolvable>;

/// The answers, sorted by server name like the requests of a pair.
fn resolve_pair(pair: &Pair) -> Vec<Answer> {
    let results = resolve_fleet(&pair.catalog, &pair.requests, pair.now, Budget::default());
    results.into_iter().map(|(_, result)| result).collect()
}

/// Whether a step changes a Plugin, and therefore all servers that the Plugin selects. Other steps change one server.
fn is_plugin_step(step: &HintStep) -> bool {
    match step {
        HintStep::AllowMinecraft { .. }
        | HintStep::ChangeOverride { .. }
        | HintStep::DropOverride { .. }
        | HintStep::NoPluginDelay { .. }
        | HintStep::PluginChannel { .. }
        | HintStep::UnpinPlugin { .. }
        | HintStep::PluginPerServer { .. }
        | HintStep::DropRequirement { .. }
        | HintStep::AllowDowngrade { .. }
        | HintStep::PinPlugin { .. }
        | HintStep::Release { object: _, by: Hold::Plugin } => true,
        HintStep::Release { object: _, by: Hold::Server }
        | HintStep::WaitUntil { .. }
        | HintStep::NoServerDelay
        | HintStep::ServerChannel { .. }
        | HintStep::UnpinServer
        | HintStep::UnpinImage
        | HintStep::ImageFollows
        | HintStep::PinImage { .. }
        | HintStep::InstallDependencies
        | HintStep::TrustFiles { .. }
        | HintStep::WarnUnmanaged
        | HintStep::IgnoreUnmanaged
        | HintStep::AddPlugins { .. }
        | HintStep::TrustSiblings
        | HintStep::AssumeUnlisted
        | HintStep::PinServer { .. } => false,
    }
}

/// The pair after the user of the server at `server_index` followed a hint.
fn apply_hint(pair: &Pair, server_index: usize, hint: &Hint) -> Pair {
    let (mut requests, mut now) = (pair.requests.clone(), pair.now);
    apply_steps(&mut requests[server_index], &mut now, &hint.steps);
    let shared_steps: Vec<HintStep> = hint.steps.iter().filter(|step| is_plugin_step(step)).cloned().collect();
    apply_steps(&mut requests[1 - server_index], &mut now, &shared_steps);
    Pair { catalog: pair.catalog.clone(), requests, now }
}

/// Checks that the server gets the stated versions, and that its answer changes.
fn check_hint(pair: &Pair, server_index: usize, before: &Answer, hint: &Hint) -> Result<(), String> {
    let after = apply_hint(pair, server_index, hint);
    let then = resolve_pair(&after)
        .swap_remove(server_index)
        .map_err(|unsolvable| format!("the steps {:?} lead to: {unsolvable}", hint.steps))?;
    let gives = (&hint.gives.minecraft, hint.gives.build);
    if gives != (&then.lock.minecraft, then.lock.build) {
        return Err(format!(
            "the steps {:?} lead to {} build {}, but the hint states {gives:?}",
            hint.steps, then.lock.minecraft, then.lock.build
        ));
    }
    let left = |result: &Resolution| {
        let Explanation::Solved(solved) = &result.explanation else { panic!("expected a solved explanation") };
        excluded_count(solved)
    };
    if let Ok(before) = before
        && before.lock.plugins == then.lock.plugins
        && (&before.lock.minecraft, before.lock.build) == gives
        && left(before) <= left(&then)
    {
        return Err(format!("the steps {:?} do not change the answer", hint.steps));
    }
    let violations = checker::violations(&after.catalog, &after.requests[server_index], after.now, &then.lock);
    if violations.is_empty() { Ok(()) } else { Err(violations.join("; ")) }
}

fn hints(result: &Answer) -> Vec<Hint> {
    match result {
        Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) => solved.hints.clone(),
        Err(Unsolvable::NoSolution(impossible)) => impossible.hints.clone(),
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// The answers for both servers, as text.
fn output_text(pair: &Pair) -> String {
    let explanation =
        |result: Answer| result.map_or_else(|unsolvable| unsolvable.explanation(), |resolution| resolution.explanation);
    resolve_pair(pair)
        .into_iter()
        .map(|result| text::render(&explanation(result), pair.now))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn followed_hint_of_group_gives_stated_versions() {
    let (of_yes, of_no, per_server) = (Cell::new(0_u64), Cell::new(0_u64), Cell::new(0_u64));
    let count = |cell: &Cell<u64>, one: bool| cell.set(cell.get() + u64::from(one));
    group::for_all(17_000_000..17_000_000 + scaled_to_run(PAIR_COUNT), |pair| {
        for (server_index, result) in resolve_pair(pair).iter().enumerate() {
            for hint in hints(result) {
                check_hint(pair, server_index, result, &hint).map_err(|error| {
                    let (server, then) = (&pair.requests[server_index].server, apply_hint(pair, server_index, &hint));
                    let (before, after) = (output_text(pair), output_text(&then));
                    format!("{server}: {error}\n{before}\n-- after the hint is followed --\n{after}")
                })?;
                count(if result.is_ok() { &of_yes } else { &of_no }, true);
                count(&per_server, hint.steps.iter().any(|step| matches!(step, HintStep::PluginPerServer { .. })));
            }
        }
        Ok(())
    });
    let counts = [of_yes.get(), of_no.get(), per_server.get()];
    let [yes, no, each] = [150, 150, 20].map(required_count);
    assert!(counts[0] > yes && counts[1] > no && counts[2] > each, "too few hints were followed: {counts:?}");
}
