//! Pure. Models the operator's knowledge whether the server's node has the images of the goal.

use scheduler::observation::ImagesOnNode;

use crate::moves::{Kind, Moves};
use crate::state::{Scenario, State};

impl State {
    /// The state for a goal, or a node, that was not checked yet.
    pub(crate) fn unchecked(s: &Scenario) -> ImagesOnNode {
        if s.pulls { ImagesOnNode::Pulling } else { ImagesOnNode::Present }
    }

    /// Another pod may be on another node, and images of the stable revision are not checked.
    pub(crate) fn normalized_images(&self, s: &Scenario) -> ImagesOnNode {
        let is_checked = self.pod.is_some() && Some(self.goal) != self.stable;
        if is_checked { self.images } else { Self::unchecked(s) }
    }
}

impl Moves<'_> {
    /// The node reports whether it has them. A failed pull may succeed later.
    pub(crate) fn node(&mut self, w: &State) {
        if w.images != ImagesOnNode::Present {
            self.add(Kind::Environment, "the images are pulled", State { images: ImagesOnNode::Present, ..*w });
        }
        if w.images == ImagesOnNode::Pulling {
            self.add(Kind::Environment, "the node is unreachable", State { images: ImagesOnNode::Unknown, ..*w });
        }
        if matches!(w.images, ImagesOnNode::Pulling | ImagesOnNode::Unknown) {
            self.add(Kind::Environment, "an image cannot be pulled", State { images: ImagesOnNode::Failed, ..*w });
        }
    }
}
