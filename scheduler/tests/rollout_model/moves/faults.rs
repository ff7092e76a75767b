//! Pure. Models faults, and changes by other actors to Nightshift's objects.
//!
//! Each costs one fault.

use super::{Kind, Moves};
use scheduler::observation::ImagesOnNode;

use crate::state::{L, P, Rev, Rule, State};

impl Moves<'_> {
    pub(super) fn faults(&mut self, w: &State) {
        let less = State { faults: w.faults - 1, ..*w };
        if let Some(p) = w.active_pod() {
            let becomes = |pod| State { pod: Some(pod), ..less };
            self.add(Kind::Fault, "a user deletes the pod", becomes(p.stopping()));
            self.add(Kind::Fault, "the node is lost", becomes(P { phase: L::Lost, late: false, ..p }));
            if p.phase == L::Up {
                self.add(Kind::Fault, "the server crashes", becomes(P { phase: L::Down, ..p }));
            }
            if p.phase == L::Migrating {
                self.add(Kind::Fault, "crashes while it converts the world", becomes(P { phase: L::Starting, ..p }));
            }
        }
        if w.pod.is_some() {
            let mut to = less;
            to.remove_pod();
            self.add(Kind::Fault, "the pod is force-deleted", to);
        }
        if self.s.pulls && w.images == ImagesOnNode::Present {
            let to = State { images: ImagesOnNode::Pulling, ..less };
            self.add(Kind::Fault, "the images must be checked again", to);
        }
        if w.exists {
            self.third_parties(w, less);
        }
    }

    fn third_parties(&mut self, w: &State, less: State) {
        let mut third_party = |name, mut to: State| {
            to.third_party();
            to.bump_resource_version();
            self.add(Kind::Fault, name, to);
        };
        if !w.scaled_to_zero {
            third_party("a user scales to 0", State { scaled_to_zero: true, ..less });
        }
        if w.current != w.template {
            let mut to = State {
                update: w.template,
                current: w.template,
                announced: None,
                saved: None,
                recreated: None,
                draining: None,
                ..less
            };
            to.tampered |= w.template != w.expect || w.pod.is_some_and(|p| p.rev != w.template);
            third_party("the StatefulSet is re-created", to);
        }
        let pod = w.pod.map(|p| if w.active_pod().is_some() { p.stopping() } else { p });
        let deleted = State {
            exists: false,
            announced: None,
            saved: None,
            recreated: None,
            draining: None,
            pod,
            scaled_to_zero: false,
            ..less
        };
        third_party("the StatefulSet is deleted", deleted);
        if w.template != Rev::M {
            let expect = if w.open { Rev::M } else { w.expect };
            third_party("a user edits the template", State { template: Rev::M, expect, ..less });
        }
        if self.s.without == Some(Rule::TemplateIsReplaced) && !w.foreign {
            let mut to = State { foreign: true, ..less };
            to.third_party();
            to.bump_resource_version();
            self.add(Kind::Fault, "another actor adds a field", to);
        }
    }
}
