//! Pure. Runs long random traces with many faults, changes and windows in random scenarios.
//!
//! The exhaustive runs cover every state that one or two faults reach. These cover a thousandth of the states that
//! twelve faults reach, and find errors that need a long trace. Every trace is generated from its number alone, so that
//! any number can be repeated anywhere.

use std::collections::BTreeMap;

use fixtures::rng::Rng;
use scheduler::rollout::Step;

use crate::explore::is_end;
use crate::moves::{Kind, Moves};
use crate::state::{Asking, Scenario, SetBehaviour, State};

/// How many more moves a trace may need to end once no fault occurs. Every remaining move is taken sooner or later, so
/// an end that is not found within this many does not exist.
const MAX_EXTRA_MOVES: usize = 20_000;

/// The result of one trace.
pub(crate) struct Walk {
    pub(crate) moves: usize,
    pub(crate) faults: usize,
    /// The answer at its end.
    pub(crate) end: &'static str,
}

/// An invariant that a trace breaks, and the trace.
pub(crate) struct Broken {
    pub(crate) invariant: &'static str,
    pub(crate) trace: Vec<String>,
}

/// A random scenario: the behaviour of each revision, and its effect on the world, are drawn.
fn random_scenario(rng: &mut Rng) -> Scenario {
    use SetBehaviour::{Bad, Flaky, Good, NeverReady, Unreadable};
    let any = [Good, Good, NeverReady, Bad, Flaky, Unreadable];
    let first_start = rng.one_in(6);
    // A stable revision at the beginning has been good at least once.
    let first = if first_start { rng.choose(&any) } else { rng.choose(&[Good, Good, Flaky]) };
    Scenario {
        name: "drawn",
        behaviour: [first, rng.choose(&any), rng.choose(&any), rng.choose(&any)],
        format: [1, rng.choose(&[1, 2]), rng.choose(&[1, 2, 3]), rng.choose(&[1, 2])],
        policy: rng.choose(&[Asking::Announce, Asking::Announce, Asking::EmptyFirst, Asking::Ignore]),
        saves: !rng.one_in(8),
        backups: !rng.one_in(4),
        first_start,
        restarts: rng.one_in(2),
        one_night: false,
        opportunistic: rng.one_in(2),
        faults: u8::try_from(rng.number_below(13)).expect("at most 12"),
        changes: u8::try_from(rng.number_below(7)).expect("at most 6"),
        agent_costs: true,
        drains: rng.one_in(2),
        requests_restore: rng.one_in(2),
        pulls: rng.one_in(2),
        loops: rng.one_in(3),
        waits: false,
        without: None,
    }
}

/// Which move is next: first its actor is drawn, then one of the actor's moves. The operator acts often, and faults are
/// rarer than normal moves.
fn choose_move(rng: &mut Rng, moves: &[(Kind, &'static str, State)]) -> Option<usize> {
    const ACTOR_WEIGHTS: [(Kind, usize); 5] =
        [(Kind::Operator, 8), (Kind::Environment, 12), (Kind::Help, 1), (Kind::User, 1), (Kind::Fault, 2)];
    let of = |actor: Kind| (0..moves.len()).filter(|i| moves[*i].0 == actor).collect::<Vec<_>>();
    let mut by_actor: Vec<(usize, Vec<usize>)> = ACTOR_WEIGHTS.map(|(actor, weight)| (weight, of(actor))).to_vec();
    by_actor.retain(|(_, moves_of_actor)| !moves_of_actor.is_empty());
    let mut left = rng.number_below(by_actor.iter().map(|(weight, _)| weight).sum::<usize>().max(1));
    for (weight, moves_of_actor) in &by_actor {
        if left < *weight {
            return Some(rng.choose(moves_of_actor));
        }
        left -= weight;
    }
    None
}

/// Runs one trace to its end.
pub(crate) fn run_trace(seed: u64) -> Result<Walk, Broken> {
    let mut rng = Rng::new(seed);
    // Not drawn, so that traces of other numbers stay the same.
    let s = Scenario { waits: seed.is_multiple_of(3), ..random_scenario(&mut rng) };
    let mut moves = Moves::new(&s);
    let mut state = State::start(&s);
    let mut trace = vec![format!("{s:?}")];
    let mut faults = 0;
    let fault_moves = 20 + rng.number_below(220);
    for at in 0..fault_moves + MAX_EXTRA_MOVES {
        if at == fault_moves {
            (state.faults, state.changes) = (0, 0);
            trace.push("no more faults occur".to_owned());
        }
        let step = moves.all_moves(&state);
        let decision = if let Step::Wait(why) = step { why.name() } else { step.name() };
        if let Some(invariant) = moves.broken.first() {
            trace.push(format!("{state:?}"));
            trace.push(format!("answer: {step:?}"));
            return Err(Broken { invariant, trace });
        }
        if at >= fault_moves {
            if is_end(&state, &step) && state.delayed.is_none() {
                return Ok(Walk { moves: at, faults, end: decision });
            }
            moves.successors.retain(|(kind, ..)| matches!(kind, Kind::Operator | Kind::Environment));
        }
        let Some(next) = choose_move(&mut rng, &moves.successors) else { break };
        let (kind, name, to) = moves.successors[next];
        faults += usize::from(kind == Kind::Fault);
        trace.push(if kind == Kind::Operator { format!("{name}: {decision}") } else { name.to_owned() });
        state = to;
    }
    trace.push(format!("{state:?}"));
    trace.push(format!("answer: {:?}", state.decide(&s)));
    Err(Broken { invariant: "7 no end was found after the last fault", trace })
}

/// The combined result of many traces.
#[derive(Default)]
pub(crate) struct RunResult {
    pub(crate) moves: usize,
    pub(crate) faults: usize,
    pub(crate) ends: BTreeMap<&'static str, usize>,
    /// By broken invariant: the shortest trace, and its number.
    pub(crate) broken: BTreeMap<&'static str, (u64, Vec<String>)>,
}

pub(crate) fn run_traces(seeds: impl Iterator<Item = u64>) -> RunResult {
    let mut all = RunResult::default();
    for seed in seeds {
        match run_trace(seed) {
            Ok(result) => {
                all.moves += result.moves;
                all.faults += result.faults;
                *all.ends.entry(result.end).or_insert(0) += 1;
            }
            Err(Broken { invariant, trace }) => {
                let shortest = all.broken.entry(invariant).or_insert_with(|| (seed, trace.clone()));
                if trace.len() < shortest.1.len() {
                    *shortest = (seed, trace);
                }
            }
        }
    }
    all
}
