//! Pure. Java: compares the version in a server's image with the one a version set needs, and selects an image.
//!
//! Paper and plugins declare a minimum Java version and never a maximum. So each one is available or not independently
//! of the others: only the newest Java counts. The image follows from the chosen version set.

use jiff::Timestamp;

use crate::model::catalog::{Catalog, ImageTag};
use crate::model::image_tag::java_of_image;
use crate::model::lock::ImageJava;
use crate::model::request::{ImagePolicy, Request};
use crate::model::unusable::Unusable;

/// The Java version that a server can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AvailableJava<'a> {
    /// Unknown: the image does not state it, or no tags were read. Rules out no release.
    Unknown,
    /// The image is pinned, and its tag states the version.
    Pinned {
        /// The image as the user wrote it.
        image: &'a str,
        /// Its Java version.
        has: u32,
    },
    /// That of the running image: the policy holds it.
    Held {
        /// `SameJava` or `Keep`.
        policy: ImagePolicy,
        /// Its Java version.
        has: u32,
    },
    /// Any published image. Contains the newest Java version among them.
    Published(Option<u32>),
}

impl<'a> AvailableJava<'a> {
    /// The Java that the server of `request` can have. `published` is the [`newest_published`] of the catalog.
    pub(crate) fn from_request(request: &'a Request, published: Option<NewestImageJava>) -> Self {
        if let Some(image) = &request.image {
            return java_of_image(image).map_or(Self::Unknown, |has| Self::Pinned { image, has });
        }
        if !request.software.is_minecraft() {
            // The selectable images are those for Minecraft servers.
            return Self::Unknown;
        }
        let runs = request.running.as_ref().and_then(|running| running.java);
        match (request.image_policy, runs) {
            (policy @ (ImagePolicy::SameJava | ImagePolicy::Keep), Some(has)) => Self::Held { policy, has },
            // A server that does not run yet has no image to keep.
            (ImagePolicy::SameJava | ImagePolicy::Keep, None) | (ImagePolicy::Follow, _) => {
                published.map_or(Self::Unknown, |NewestImageJava(most)| Self::Published(most))
            }
        }
    }

    /// The reason why a release that needs this Java version is not available.
    pub(crate) fn unusable_for(self, needs: u32) -> Option<Unusable> {
        match self {
            Self::Pinned { image, has } if has < needs => {
                Some(Unusable::JavaTooOld { needs, has, image: image.to_owned() })
            }
            Self::Held { policy, has } if has < needs => Some(Unusable::JavaHeld { needs, has, policy }),
            Self::Published(most) if most.is_none_or(|most| most < needs) => Some(Unusable::NoImage { java: needs }),
            Self::Unknown | Self::Pinned { .. } | Self::Held { .. } | Self::Published(_) => None,
        }
    }
}

/// The newest Java version of the images published at that instant. The inner value is `None` if no image was
/// published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewestImageJava(Option<u32>);

/// The newest Java version of all images. `None` if no tags were requested.
pub(crate) fn newest_published(catalog: &Catalog, now: Timestamp) -> Option<NewestImageJava> {
    let published = || catalog.images.iter().filter(|image| image.pushed <= now);
    (!catalog.images.is_empty())
        .then(|| NewestImageJava(published().filter_map(|image| Some(parse_tag(image)?.0)).max()))
}

/// The Java version of an image, and the time its tag was pushed if that tag was read.
pub(crate) fn image_java(catalog: &Catalog, image: &str) -> Option<ImageJava> {
    let pushed = catalog.images.iter().find(|tag| full_name(tag) == image).map(|tag| tag.pushed);
    Some(ImageJava { has: java_of_image(image)?, pushed })
}

/// The name by which an image with this tag is pulled.
fn full_name(image: &ImageTag) -> String {
    format!("{}:{}@{}", image.repository, image.tag, image.digest)
}

/// Selects the newest `<release>-java<N>` with the requested Java, otherwise with the next higher Java available. The
/// result is pinned by digest.
///
/// Releases are compared as numbers: `2026.10.1` is newer than `2026.8.1` (PEP 440, not padded).
pub(crate) fn choose_image<'x>(
    images: impl IntoIterator<Item = &'x ImageTag>,
    java: u32,
    now: Timestamp,
) -> Option<String> {
    images
        .into_iter()
        .filter(|image| image.pushed <= now)
        .filter_map(|image| {
            let (has, release) = parse_tag(image)?;
            (has >= java).then_some((has, release, image))
        })
        .min_by(|(java_a, release_a, a), (java_b, release_b, b)| {
            java_a.cmp(java_b).then_with(|| release_b.cmp(release_a)).then_with(|| a.tag.cmp(&b.tag))
        })
        .map(|(_, _, image)| full_name(image))
}

/// The image for a version set that needs this Java version: the pinned one, otherwise as the image policy allows.
pub(crate) fn image_for(catalog: &Catalog, request: &Request, java: u32, now: Timestamp) -> Option<String> {
    if request.image.is_some() || !request.software.is_minecraft() {
        return request.image.clone();
    }
    let runs = || request.running.as_ref().and_then(|running| running.image.clone());
    match AvailableJava::from_request(request, newest_published(catalog, now)) {
        AvailableJava::Held { policy: ImagePolicy::Keep, .. } => runs(),
        AvailableJava::Held { has, .. } => {
            let same = catalog.images.iter().filter(|image| parse_tag(image).is_some_and(|(java, _)| java == has));
            choose_image(same, has, now).or_else(runs)
        }
        AvailableJava::Unknown | AvailableJava::Pinned { .. } | AvailableJava::Published(_) => {
            choose_image(&catalog.images, java, now)
        }
    }
}

/// The image with this Java version from the repository of a pinned image. The user could change the pin to it.
pub(crate) fn sibling_image(catalog: &Catalog, pinned: &str, java: u32, now: Timestamp) -> Option<String> {
    let repository = |image: &str| {
        let name = image.split('@').next().unwrap_or_default();
        let name = match name.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => name,
            Some(_) | None => name,
        };
        name.trim_start_matches("index.").trim_start_matches("docker.io/").to_owned()
    };
    let pinned_repository = repository(pinned);
    choose_image(catalog.images.iter().filter(|image| repository(&image.repository) == pinned_repository), java, now)
}

/// Splits `2026.8.1-java21` into Java version and release.
fn parse_tag(image: &ImageTag) -> Option<(u32, Vec<u32>)> {
    let (release, java) = image.tag.split_once('-')?;
    let has = java.strip_prefix("java")?.parse().ok()?;
    let release = release.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    Some((has, release))
}
