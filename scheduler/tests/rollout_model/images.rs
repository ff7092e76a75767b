//! Pure. Models the operator's knowledge whether the server's node has the images of the goal.

use scheduler::observation::ImagesOnNode;

use crate::moves::{Kind, Moves};
use crate::world::{Scenario, State};

impl State {
    /// The state for a goal, or a node, that was not checked yet.
    pub(crate) fn not_asked(s: &Scenario) -> ImagesOnNode {
        if s.pulls { ImagesOnNode::OnTheirWay } else { ImagesOnNode::Here }
    }

    /// Another pod may be on another node, and images of the stable revision are not checked.
    pub(crate) fn images_folded(&self, s: &Scenario) -> ImagesOnNode {
        let is_asked = self.pod.is_some() && Some(self.goal) != self.settled;
        if is_asked { self.images } else { Self::not_asked(s) }
    }
}

impl Moves<'_> {
    /// The node reports whether it has them. A failed pull may succeed later.
    pub(crate) fn node(&mut self, w: &State) {
        if w.images != ImagesOnNode::Here {
            self.to(Kind::World, "the images are pulled", State { images: ImagesOnNode::Here, ..*w });
        }
        if w.images == ImagesOnNode::OnTheirWay {
            self.to(Kind::World, "the node cannot be asked", State { images: ImagesOnNode::Unknown, ..*w });
        }
        if matches!(w.images, ImagesOnNode::OnTheirWay | ImagesOnNode::Unknown) {
            self.to(Kind::World, "an image cannot be pulled", State { images: ImagesOnNode::Failed, ..*w });
        }
    }
}
