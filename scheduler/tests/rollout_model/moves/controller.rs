//! Pure. Models the `StatefulSet` controller, as measured (kubernetes-notes 1a to 1f) and read
//! (`completeRollingUpdate`).

use super::{Kind, Moves};
use crate::state::{ByUs, Judged, L, P, State, WindowNow};

impl Moves<'_> {
    pub(super) fn controller(&mut self, w: &State) {
        if !w.exists {
            return;
        }
        if w.update != w.template {
            let mut to = State { update: w.template, ..*w };
            to.bump_resource_version();
            self.add(Kind::Environment, "controller sees the template", to);
            return;
        }
        match w.pod {
            None if !w.scaled_to_zero => self.controller_creates(w),
            None if w.current != w.update => {
                let mut to = State { current: w.update, ..*w };
                to.tampered |= to.template != to.expect;
                to.bump_resource_version();
                self.add(Kind::Environment, "controller completes at 0 replicas", to);
            }
            Some(p) if w.active_pod().is_some() => self.reconcile_pod(w, p),
            None | Some(_) => {}
        }
    }

    fn controller_creates(&mut self, w: &State) {
        let rev = if w.open { w.update } else { w.current };
        if rev != w.expect {
            if w.tampered {
                self.record_event("3 exempt: recreated with another revision after another actor removed history");
            } else {
                self.check(false, "3 a lost pod is recreated with another revision");
            }
        }
        let pod = Some(P { rev, phase: L::Init, late: false, verification: Judged::Pending });
        let mut to = State { pod, ..*w };
        to.bump_resource_version();
        self.add(Kind::Environment, "controller creates the pod", to);
        if self.s.waits {
            let pod = to.pod.map(|p| P { phase: L::Pending, ..p });
            self.add(Kind::Environment, "controller creates a pod that the cluster does not run", State { pod, ..to });
        }
    }

    fn reconcile_pod(&mut self, w: &State, p: P) {
        if w.open && p.rev != w.update {
            if w.by_operator == ByUs::Update {
                if w.window == WindowNow::Shut && !w.is_unobtrusive(self.s) {
                    self.record_event("2 late controller: a commit took effect after the gate had shut");
                }
                if w.restarted & w.update.bit() > 0 {
                    if w.raced {
                        self.record_event(
                            "4 exempt: a second restart after a commit was reverted while it took effect",
                        );
                    } else {
                        self.check(false, "4 a second deliberate restart for one goal");
                    }
                }
            }
            if w.by_operator != ByUs::Nothing {
                self.check(!p.is_starting() || p.late, "5 a starting pod is deleted before its deadline");
            }
            let mut to = State { pod: Some(p.stopping()), ..*w };
            if w.by_operator == ByUs::Update {
                to.restarted |= w.update.bit();
            }
            self.add(Kind::Environment, "controller deletes the pod", to);
        }
        if p.rev == w.update && p.phase == L::Up && w.current != w.update {
            let mut to = State { current: w.update, ..*w };
            to.tampered &= to.current != to.expect; // history is whole again
            to.bump_resource_version();
            self.add(Kind::Environment, "controller completes", to);
        }
        if w.scaled_to_zero {
            self.add(Kind::Environment, "controller scales down", State { pod: Some(p.stopping()), ..*w });
        }
    }
}
