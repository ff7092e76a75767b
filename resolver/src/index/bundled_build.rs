//! Pure. Images that carry one Paper build: what the tag of a pinned image says about it.

use crate::catalog::Catalog;
use crate::request::Request;
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// The Paper that a pinned image carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageBundledBuild<'a> {
    pub(crate) minecraft: Minecraft,
    pub(crate) build: u32,
    image: &'a str,
}

impl<'a> ImageBundledBuild<'a> {
    /// By the tag, as `lexfrei/papermc` writes it: `1.21.10-130`. A version that Paper has no builds of is somebody's own
    /// numbering, and says nothing.
    pub(crate) fn of(catalog: &Catalog, request: &'a Request) -> Option<Self> {
        let image = request.image.as_deref().filter(|_| request.software.is_paper())?;
        let (_, tag) = image.split('@').next()?.rsplit_once(':')?;
        let (minecraft, build) = tag.split_once('-')?;
        let minecraft: Minecraft = minecraft.parse().ok()?;
        let build = build.parse().ok()?;
        let known = catalog.paper.iter().any(|paper| paper.minecraft == minecraft && !paper.builds.is_empty());
        known.then_some(Self { minecraft, build, image })
    }

    /// Why no other Paper can be had.
    pub(crate) fn fault(&self) -> Unusable {
        Unusable::ImageCarries { minecraft: self.minecraft.clone(), build: self.build, image: self.image.to_owned() }
    }
}
