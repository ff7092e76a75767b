//! Pure. Explores every reachable state, breadth first, and then, backwards, every state from which an end can be
//! reached.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use scheduler::rollout::{Step, WaitingOn};

use crate::moves::{Kind, Moves};
use crate::state::{Scenario, State};

/// Multiply and rotate. The states are not attacker-controlled, and the default hasher would take half of the run time.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u8(&mut self, i: u8) {
        self.write_u64(u64::from(i));
    }
    fn write_isize(&mut self, i: isize) {
        self.write_u64(u64::from_ne_bytes(i64::try_from(i).expect("isize has at most 64 bits").to_ne_bytes()));
    }
    fn write_u64(&mut self, i: u64) {
        self.0 = (self.0.rotate_left(5) ^ i).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

/// The result of one scenario.
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) moves: usize,
    pub(crate) ends: usize,
    /// Broken invariants, each with the shortest trace that leads to it.
    pub(crate) broken: BTreeMap<&'static str, Vec<String>>,
    /// Events that break no invariant, and how often they occurred.
    pub(crate) events: BTreeMap<&'static str, usize>,
    /// How often each answer was given.
    pub(crate) decisions: BTreeMap<&'static str, usize>,
}

const NO_END: &str = "7 no end can be reached any more";

/// Whether this answer is an end: no step is due, or none is possible for the operator.
pub(crate) fn is_end(w: &State, step: &Step) -> bool {
    match step {
        Step::UpToDate => true,
        // A crash loop is reported, and an admin must fix it.
        Step::Wait(WaitingOn::Window { .. }) => w.crash_loop,
        Step::Wait(why) => why.needs_admin() || *why == WaitingOn::Eviction,
        Step::Create { .. }
        | Step::Stage
        | Step::Announce { .. }
        | Step::Reannounce { .. }
        | Step::Save { .. }
        | Step::WriteTemplate { .. }
        | Step::Commit { .. }
        | Step::Restore { .. }
        | Step::MarkFailed { .. }
        | Step::RequestRestore { .. }
        | Step::RequestPluginDataRestore { .. }
        | Step::RollBack { .. }
        | Step::RollForward { .. }
        | Step::MarkStable { .. }
        | Step::Restart { .. }
        | Step::EndRestart
        | Step::BeginDrain { .. }
        | Step::EndDrain
        | Step::CancelAnnouncement { .. } => false,
    }
}

pub(crate) fn explore(s: &Scenario) -> Found {
    let start = State::start(s);
    let mut states = vec![start];
    let mut from = vec![(0_usize, "start")];
    let mut indices: HashMap<State, usize, BuildHasherDefault<Quick>> = HashMap::default();
    indices.insert(start, 0);
    // (to, from), over moves that need neither luck nor help.
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let mut ends: Vec<bool> = Vec::new();
    let mut first_broken: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut events, mut decisions) = (BTreeMap::new(), BTreeMap::new());
    let mut count = 0;
    let mut moves = Moves::new(s);
    let mut i = 0;
    while i < states.len() {
        let state = states[i];
        let step = moves.all_moves(&state);
        for invariant in &moves.broken {
            first_broken.entry(invariant).or_insert(i);
        }
        for event in &moves.events {
            *events.entry(*event).or_insert(0) += 1;
        }
        let decision = if let Step::Wait(why) = step { why.name() } else { step.name() };
        *decisions.entry(decision).or_insert(0) += 1;
        ends.push(is_end(&state, &step) && state.delayed.is_none());
        for (kind, name, to) in &moves.successors {
            count += 1;
            let j = *indices.entry(*to).or_insert_with(|| {
                states.push(*to);
                from.push((i, name));
                states.len() - 1
            });
            if matches!(kind, Kind::Operator | Kind::Environment) {
                edges.push((j, i));
            }
        }
        i += 1;
    }
    if let Some(state) = find_stuck(&ends, &edges) {
        first_broken.insert(NO_END, state);
    }
    let broken = first_broken.into_iter().map(|(invariant, i)| (invariant, trace(s, &states, &from, i))).collect();
    let ends = ends.iter().filter(|end| **end).count();
    Found { states: states.len(), moves: count, ends, broken, events, decisions }
}

/// The first state from which no end can be reached.
fn find_stuck(ends: &[bool], edges: &[(usize, usize)]) -> Option<usize> {
    let mut start = vec![0_usize; ends.len() + 1];
    for (to, _) in edges {
        start[to + 1] += 1;
    }
    for k in 0..ends.len() {
        start[k + 1] += start[k];
    }
    let mut fill = start.clone();
    let mut predecessors = vec![0_usize; edges.len()];
    for (to, from) in edges {
        predecessors[fill[*to]] = *from;
        fill[*to] += 1;
    }
    let mut good = ends.to_vec();
    let mut queue: Vec<usize> = (0..ends.len()).filter(|i| ends[*i]).collect();
    while let Some(to) = queue.pop() {
        for from in &predecessors[start[to]..start[to + 1]] {
            if !good[*from] {
                good[*from] = true;
                queue.push(*from);
            }
        }
    }
    good.iter().position(|good| !good)
}

/// The trace to a state, and its answer.
fn trace(s: &Scenario, states: &[State], from: &[(usize, &'static str)], mut i: usize) -> Vec<String> {
    let mut trace = vec![format!("answer: {:?}", states[i].decide(s)), format!("{:?}", states[i])];
    while i != 0 {
        trace.push(from[i].1.to_owned());
        i = from[i].0;
    }
    trace.reverse();
    trace
}
