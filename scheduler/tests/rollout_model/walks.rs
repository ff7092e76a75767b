//! Pure. Runs long random traces with many faults, changes and windows in random scenarios.
//!
//! The exhaustive runs cover every state that one or two faults reach. These cover a thousandth of the states that
//! twelve faults reach, and find errors that need a long trace. Every trace is generated from its number alone, so that
//! any number can be repeated anywhere.

use std::collections::BTreeMap;

use fixtures::dice::Rng;
use scheduler::rollout::Step;

use crate::explore::is_end;
use crate::moves::{Kind, Moves};
use crate::world::{Asking, Fate, Scenario, State};

/// How many more moves a trace may need to end once no fault occurs. Every remaining move is taken sooner or later, so
/// an end that is not found within this many does not exist.
const PATIENCE: usize = 20_000;

/// The result of one trace.
pub(crate) struct Walk {
    pub(crate) moves: usize,
    pub(crate) faults: usize,
    /// The answer at its end.
    pub(crate) end: &'static str,
}

/// An invariant that a trace breaks, and the trace.
pub(crate) struct Broken {
    pub(crate) what: &'static str,
    pub(crate) story: Vec<String>,
}

/// A random scenario: the behaviour of each revision, and its effect on the world, are drawn.
fn drawn(dice: &mut Rng) -> Scenario {
    use Fate::{Bad, Flaky, Good, NeverReady, Unreadable};
    let any = [Good, Good, NeverReady, Bad, Flaky, Unreadable];
    let first_start = dice.once_in(6);
    // A stable revision at the beginning has been good at least once.
    let first = if first_start { dice.one_of(&any) } else { dice.one_of(&[Good, Good, Flaky]) };
    Scenario {
        name: "drawn",
        fate: [first, dice.one_of(&any), dice.one_of(&any), dice.one_of(&any)],
        format: [1, dice.one_of(&[1, 2]), dice.one_of(&[1, 2, 3]), dice.one_of(&[1, 2])],
        policy: dice.one_of(&[Asking::Announce, Asking::Announce, Asking::EmptyFirst, Asking::Ignore]),
        saves: !dice.once_in(8),
        copies: !dice.once_in(4),
        first_start,
        restarts: dice.once_in(2),
        one_night: false,
        opportunistic: dice.once_in(2),
        faults: u8::try_from(dice.below(13)).expect("at most 12"),
        changes: u8::try_from(dice.below(7)).expect("at most 6"),
        agent_costs: true,
        drains: dice.once_in(2),
        asks: dice.once_in(2),
        pulls: dice.once_in(2),
        loops: dice.once_in(3),
        without: None,
    }
}

/// Which move is next: first its actor is drawn, then one of the actor's moves. The operator acts often, and faults are
/// rarer than normal moves.
fn chosen(dice: &mut Rng, out: &[(Kind, &'static str, State)]) -> Option<usize> {
    const OFTEN: [(Kind, usize); 5] =
        [(Kind::Operator, 8), (Kind::World, 12), (Kind::Help, 1), (Kind::Person, 1), (Kind::Fault, 2)];
    let of = |whose: Kind| (0..out.len()).filter(|i| out[*i].0 == whose).collect::<Vec<_>>();
    let mut by_whom: Vec<(usize, Vec<usize>)> = OFTEN.map(|(whose, often)| (often, of(whose))).to_vec();
    by_whom.retain(|(_, theirs)| !theirs.is_empty());
    let mut left = dice.below(by_whom.iter().map(|(often, _)| often).sum::<usize>().max(1));
    for (often, theirs) in &by_whom {
        if left < *often {
            return Some(dice.one_of(theirs));
        }
        left -= often;
    }
    None
}

/// Runs one trace to its end.
pub(crate) fn walk(seed: u64) -> Result<Walk, Broken> {
    let mut dice = Rng::new(seed);
    let s = drawn(&mut dice);
    let mut moves = Moves::new(&s);
    let mut state = State::start(&s);
    let mut story = vec![format!("{s:?}")];
    let mut faults = 0;
    let troubled = 20 + dice.below(220);
    for at in 0..troubled + PATIENCE {
        if at == troubled {
            (state.faults, state.changes) = (0, 0);
            story.push("nothing goes wrong any more".to_owned());
        }
        let step = moves.all(&state);
        let answer = if let Step::Wait(why) = step { why.name() } else { step.name() };
        if let Some(what) = moves.broken.first() {
            story.push(format!("{state:?}"));
            story.push(format!("answer: {step:?}"));
            return Err(Broken { what, story });
        }
        if at >= troubled {
            if is_end(&state, &step) && state.held.is_none() {
                return Ok(Walk { moves: at, faults, end: answer });
            }
            moves.out.retain(|(kind, ..)| matches!(kind, Kind::Operator | Kind::World));
        }
        let Some(next) = chosen(&mut dice, &moves.out) else { break };
        let (kind, name, to) = moves.out[next];
        faults += usize::from(kind == Kind::Fault);
        story.push(if kind == Kind::Operator { format!("{name}: {answer}") } else { name.to_owned() });
        state = to;
    }
    story.push(format!("{state:?}"));
    story.push(format!("answer: {:?}", state.answer(&s)));
    Err(Broken { what: "7 no end was found when nothing went wrong any more", story })
}

/// The combined result of many traces.
#[derive(Default)]
pub(crate) struct Walked {
    pub(crate) moves: usize,
    pub(crate) faults: usize,
    pub(crate) ends: BTreeMap<&'static str, usize>,
    /// By broken invariant: the shortest trace, and its number.
    pub(crate) broken: BTreeMap<&'static str, (u64, Vec<String>)>,
}

pub(crate) fn walk_all(seeds: impl Iterator<Item = u64>) -> Walked {
    let mut all = Walked::default();
    for seed in seeds {
        match walk(seed) {
            Ok(walk) => {
                all.moves += walk.moves;
                all.faults += walk.faults;
                *all.ends.entry(walk.end).or_insert(0) += 1;
            }
            Err(Broken { what, story }) => {
                let known = all.broken.entry(what).or_insert_with(|| (seed, story.clone()));
                if story.len() < known.1.len() {
                    *known = (seed, story);
                }
            }
        }
    }
    all
}
