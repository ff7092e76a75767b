//! Pure. Models a server in a crash loop, and an agent that restarts during its countdown.

use crate::action::For;
use crate::moves::{Kind, Moves};
use crate::state::{L, P, Rev, State};

impl State {
    /// Whether crashes are counted: only those of the stable revision, without a rollout in progress.
    pub(crate) fn counts_crashes(&self) -> bool {
        !self.open && self.stable.is_some() && self.pod.is_some_and(|p| Some(p.rev) == self.stable)
    }

    /// Whether players of this pod were warned in this opening, or the template is written.
    fn has_begun(&self, revision: Rev) -> bool {
        let is_announced =
            self.announced.is_some_and(|f| f.disruption == For::Update && f.revision == revision && f.pod && f.window);
        is_announced || self.template == revision
    }
}

impl Moves<'_> {
    /// No invariant may depend on the end of a crash loop.
    pub(crate) fn crash_loop(&mut self, w: &State) {
        if w.crash_loop {
            let delayed = w.delayed.map(|delayed| crate::action::DelayedStep { in_time: false, ..delayed });
            self.add(Kind::Help, "an hour passes without a crash", State { crash_loop: false, delayed, ..*w });
        } else if self.s.loops && w.counts_crashes() {
            let Some(p) = w.pod.filter(|p| matches!(p.phase, L::Up | L::Down)) else { return };
            let pod = Some(P { phase: L::Down, ..p });
            self.add(Kind::Fault, "the server is in a crash loop", State { crash_loop: true, pod, ..*w });
        }
    }

    /// An agent that has restarted, or that is unreachable, has lost the countdown of its predecessor.
    pub(crate) fn agent_restarts(&mut self, w: &State) {
        let counts_down = w.announced.is_some_and(|f| f.pod && !f.good);
        if w.faults > 0 && counts_down && !w.forgot {
            let to = State { forgot: true, faults: w.faults - 1, ..*w };
            self.add(Kind::Fault, "the agent restarts during the countdown", to);
        }
    }

    pub(crate) fn check_begins(&mut self, w: &State, revision: Rev) {
        let begins = w.crash_loop && !w.has_begun(revision);
        self.check(!begins || self.is_delayed, "15 an update begins by itself on a crash-looping server");
    }
}
