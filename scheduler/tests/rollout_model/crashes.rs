//! Pure. Models a server in a crash loop, and an agent that restarts during its countdown.

use crate::deed::For;
use crate::moves::{Kind, Moves};
use crate::world::{L, P, Rev, State};

impl State {
    /// Whether crashes are counted: only those of the stable revision, without a rollout in progress.
    pub(crate) fn crashes_count(&self) -> bool {
        !self.open && self.settled.is_some() && self.pod.is_some_and(|p| Some(p.rev) == self.settled)
    }

    /// Whether players of this pod were warned in this opening, or the template is written.
    fn has_begun(&self, about: Rev) -> bool {
        let told = self.announced.is_some_and(|f| f.act == For::Update && f.about == about && f.pod && f.window);
        told || self.template == about
    }
}

impl Moves<'_> {
    /// No invariant may depend on the end of a crash loop.
    pub(crate) fn crash_loop(&mut self, w: &State) {
        if w.crash_loop {
            let held = w.held.map(|held| crate::deed::Held { in_time: false, ..held });
            self.to(Kind::Help, "an hour without a crash", State { crash_loop: false, held, ..*w });
        } else if self.s.loops && w.crashes_count() {
            let Some(p) = w.pod.filter(|p| matches!(p.life, L::Up | L::Down)) else { return };
            let pod = Some(P { life: L::Down, ..p });
            self.to(Kind::Fault, "the server crashes again and again", State { crash_loop: true, pod, ..*w });
        }
    }

    /// An agent that has restarted, or that is unreachable, has lost the countdown of its predecessor.
    pub(crate) fn agent_dies(&mut self, w: &State) {
        let counts_down = w.announced.is_some_and(|f| f.pod && !f.good);
        if w.faults > 0 && counts_down && !w.forgot {
            let to = State { forgot: true, faults: w.faults - 1, ..*w };
            self.to(Kind::Fault, "the agent dies in the countdown", to);
        }
    }

    pub(crate) fn check_begins(&mut self, w: &State, about: Rev) {
        let begins = w.crash_loop && !w.has_begun(about);
        self.must(!begins || self.sleeper, "15 an update begins by itself on a server that crashes again and again");
    }
}
