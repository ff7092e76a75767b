//! Pure. Models the `StatefulSet` controller, as measured (kubernetes-notes 1a to 1f) and read
//! (`completeRollingUpdate`).

use super::{Kind, Moves};
use crate::world::{ByUs, Judged, L, P, State, WindowNow};

impl Moves<'_> {
    pub(super) fn controller(&mut self, w: &State) {
        if !w.exists {
            return;
        }
        if w.update != w.template {
            let mut to = State { update: w.template, ..*w };
            to.set_written();
            self.to(Kind::World, "controller sees the template", to);
            return;
        }
        match w.pod {
            None if !w.asleep => self.controller_creates(w),
            None if w.current != w.update => {
                let mut to = State { current: w.update, ..*w };
                to.tampered |= to.template != to.expect;
                to.set_written();
                self.to(Kind::World, "controller completes at 0 replicas", to);
            }
            Some(p) if w.busy().is_some() => self.controller_looks_at(w, p),
            None | Some(_) => {}
        }
    }

    fn controller_creates(&mut self, w: &State) {
        let rev = if w.open { w.update } else { w.current };
        if rev != w.expect {
            if w.tampered {
                self.note("3 exempt: came back as something else after history was lost by a third party");
            } else {
                self.must(false, "3 a lost pod comes back as something else");
            }
        }
        let pod = Some(P { rev, life: L::Init, late: false, judged: Judged::NotYet });
        let mut to = State { pod, ..*w };
        to.set_written();
        self.to(Kind::World, "controller creates the pod", to);
    }

    fn controller_looks_at(&mut self, w: &State, p: P) {
        if w.open && p.rev != w.update {
            if w.by_us == ByUs::Update {
                if w.window == WindowNow::Shut && !w.nobody_minds(self.s) {
                    self.note(
                        "2 late controller: a commit took effect after its window shut, or when somebody had joined",
                    );
                }
                if w.restarted & w.update.bit() > 0 {
                    if w.raced {
                        self.note("4 exempt: second restart after a commit was taken back while it took effect");
                    } else {
                        self.must(false, "4 a second deliberate restart for one goal");
                    }
                }
            }
            if w.by_us != ByUs::Nothing {
                self.must(!p.is_starting() || p.late, "5 a starting pod is deleted before its deadline");
            }
            let mut to = State { pod: Some(p.stopping()), ..*w };
            if w.by_us == ByUs::Update {
                to.restarted |= w.update.bit();
            }
            self.to(Kind::World, "controller deletes the pod", to);
        }
        if p.rev == w.update && p.life == L::Up && w.current != w.update {
            let mut to = State { current: w.update, ..*w };
            to.tampered &= to.current != to.expect; // history is whole again
            to.set_written();
            self.to(Kind::World, "controller completes", to);
        }
        if w.asleep {
            self.to(Kind::World, "controller scales down", State { pod: Some(p.stopping()), ..*w });
        }
    }
}
