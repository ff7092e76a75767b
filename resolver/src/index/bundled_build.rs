//! Pure. Reads the Paper build of an image that bundles one from the tag of the pinned image.

use crate::model::catalog::Catalog;
use crate::model::request::Request;
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

/// The Paper build that a pinned image bundles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageBundledBuild<'a> {
    pub(crate) minecraft: Minecraft,
    pub(crate) build: u32,
    image: &'a str,
}

impl<'a> ImageBundledBuild<'a> {
    /// Parses a tag in the format of `lexfrei/papermc`: `1.21.10-130`. A version without Paper builds is the author's
    /// own numbering and is ignored.
    pub(crate) fn from_image(catalog: &Catalog, request: &'a Request) -> Option<Self> {
        let image = request.image.as_deref().filter(|_| request.software.is_paper())?;
        let (_, tag) = image.split('@').next()?.rsplit_once(':')?;
        let (minecraft, build) = tag.split_once('-')?;
        let minecraft: Minecraft = minecraft.parse().ok()?;
        let build = build.parse().ok()?;
        let is_paper_version =
            catalog.paper.iter().any(|paper| paper.minecraft == minecraft && !paper.builds.is_empty());
        is_paper_version.then_some(Self { minecraft, build, image })
    }

    /// The reason why no other Paper build is available.
    pub(crate) fn unusable_reason(&self) -> Unusable {
        Unusable::ImageCarries { minecraft: self.minecraft.clone(), build: self.build, image: self.image.to_owned() }
    }
}
