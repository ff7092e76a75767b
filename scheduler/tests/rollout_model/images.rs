//! Pure. The images of the goal, as far as the operator knows whether the node of the server has them.

use scheduler::observation::ImagesOnNode;

use crate::moves::{Kind, Moves};
use crate::world::{Scenario, State};

impl State {
    /// Of a goal, or on a node, of which nothing is known yet.
    pub(crate) fn not_asked(s: &Scenario) -> ImagesOnNode {
        if s.pulls { ImagesOnNode::OnTheirWay } else { ImagesOnNode::Here }
    }

    /// Another pod may be on another node, and what is settled is not asked for.
    pub(crate) fn images_folded(&self, s: &Scenario) -> ImagesOnNode {
        let is_asked = self.pod.is_some() && Some(self.goal) != self.settled;
        if is_asked { self.images } else { Self::not_asked(s) }
    }
}

impl Moves<'_> {
    /// The node says whether it has them. One that could not be pulled may come in the end.
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
