//! Pure. Models faults, and changes by other actors to Nightshift's objects.
//!
//! Each costs one fault.

use super::{Kind, Moves};
use scheduler::observation::ImagesOnNode;

use crate::world::{L, P, Rev, Rule, State};

impl Moves<'_> {
    pub(super) fn faults(&mut self, w: &State) {
        let less = State { faults: w.faults - 1, ..*w };
        if let Some(p) = w.busy() {
            let becomes = |pod| State { pod: Some(pod), ..less };
            self.to(Kind::Fault, "somebody deletes the pod", becomes(p.stopping()));
            self.to(Kind::Fault, "the node is lost", becomes(P { life: L::Lost, late: false, ..p }));
            if p.life == L::Up {
                self.to(Kind::Fault, "the server crashes", becomes(P { life: L::Down, ..p }));
            }
            if p.life == L::Migrating {
                self.to(Kind::Fault, "crashes while it moves the world", becomes(P { life: L::Starting, ..p }));
            }
        }
        if w.pod.is_some() {
            let mut to = less;
            to.pod_gone();
            self.to(Kind::Fault, "the pod is force-deleted", to);
        }
        if self.s.pulls && w.images == ImagesOnNode::Here {
            let to = State { images: ImagesOnNode::OnTheirWay, ..less };
            self.to(Kind::Fault, "whether the images are there is not known any more", to);
        }
        if w.exists {
            self.third_parties(w, less);
        }
    }

    fn third_parties(&mut self, w: &State, less: State) {
        let mut by_somebody = |name, mut to: State| {
            to.third_party();
            to.set_written();
            self.to(Kind::Fault, name, to);
        };
        if !w.asleep {
            by_somebody("somebody scales to 0", State { asleep: true, ..less });
        }
        if w.current != w.template {
            let mut to = State {
                update: w.template,
                current: w.template,
                announced: None,
                saved: None,
                again: None,
                draining: None,
                ..less
            };
            to.tampered |= w.template != w.expect || w.pod.is_some_and(|p| p.rev != w.template);
            by_somebody("the StatefulSet is re-created", to);
        }
        let pod = w.pod.map(|p| if w.busy().is_some() { p.stopping() } else { p });
        let gone = State {
            exists: false,
            announced: None,
            saved: None,
            again: None,
            draining: None,
            pod,
            asleep: false,
            ..less
        };
        by_somebody("the StatefulSet is deleted", gone);
        if w.template != Rev::M {
            let expect = if w.open { Rev::M } else { w.expect };
            by_somebody("somebody edits the template", State { template: Rev::M, expect, ..less });
        }
        if self.s.without == Some(Rule::TemplateIsReplaced) && !w.foreign {
            let mut to = State { foreign: true, ..less };
            to.third_party();
            to.set_written();
            self.to(Kind::Fault, "somebody adds a field of their own", to);
        }
    }
}
