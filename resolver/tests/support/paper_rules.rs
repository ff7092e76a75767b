//! Pure. Decides which builds a server can have: a second implementation without the solver's code.

use jiff::Timestamp;
use resolver::model::catalog::{Artifact, Build, BuildChannel, Catalog, PaperVersion};
use resolver::model::request::{ImagePolicy, PaperRequest, Request, Running};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;

use super::texts;

/// One Minecraft version that has a build.
pub(crate) struct Paper<'a> {
    pub(crate) minecraft: &'a Minecraft,
    /// The chosen build. `None` means that this Minecraft version may not be used.
    pub(crate) build: Option<&'a Build>,
    pub(crate) java: u32,
}

/// A Minecraft version with the build that the rules choose for the request. `None` if it has no published build.
pub(crate) fn paper<'a>(
    catalog: &'a Catalog,
    request: &Request,
    version: &'a PaperVersion,
    now: Timestamp,
) -> Option<Paper<'a>> {
    let minecraft = &version.minecraft;
    let same = |running: &&Running| running.software == request.software && running.minecraft == *minecraft;
    let running = request.running.as_ref().filter(same);
    let runs = |build: &Build| running.is_some_and(|running| running.build == build.number);
    let mut available: Vec<&Build> =
        version.builds.iter().filter(|build| build.published <= now || runs(build)).collect();
    available.sort_by_key(|build| build.number);
    if available.is_empty() {
        return None;
    }
    let old_enough =
        |build: &Build| build.published.checked_add(request.delay).is_ok_and(|eligible_at| eligible_at <= now);
    let by_rule = |build: &&&Build| runs(build) || build.channel >= request.channel && old_enough(build);
    let pinned = match &request.paper {
        PaperRequest::BuildPin { version, build } if version == minecraft => Some(*build),
        PaperRequest::BuildPin { .. } | PaperRequest::Auto | PaperRequest::Latest | PaperRequest::Pin { .. } => None,
    };
    // An image that bundles a build allows no other build.
    let is_built =
        |text: &str| catalog.paper.iter().any(|paper| paper.minecraft.as_str() == text && !paper.builds.is_empty());
    let bundled = request.image.as_deref().and_then(texts::bundled_paper);
    let bundled = bundled.filter(|(text, _)| request.software == Software::Paper && is_built(text));
    let is_bundled_here = bundled.is_none_or(|(text, build)| {
        text == minecraft.as_str()
            && available.iter().any(|other| other.number == build)
            && pinned.is_none_or(|pin| pin == build)
    });
    let pinned = bundled.map(|(_, build)| build).or(pinned);
    let build = match pinned {
        Some(number) => available.iter().find(|build| build.number == number && is_selectable(&build.file)).copied(),
        None => available.iter().filter(|build| is_selectable(&build.file)).rfind(by_rule).copied(),
    };
    let named = match &request.paper {
        PaperRequest::BuildPin { version, .. } | PaperRequest::Pin { version } => version == minecraft,
        PaperRequest::Auto | PaperRequest::Latest => false,
    };
    let default_java = if request.software == Software::Velocity { 21 } else { minecraft.vanilla_java() };
    let java = version.java.unwrap_or(default_java);
    let fits = minecraft.is_release() || named || running.is_some() || request.channel == BuildChannel::Alpha;
    let above_floor = request.software == Software::Velocity
        || request
            .floor
            .as_ref()
            .is_none_or(|floor| texts::minecraft_order(minecraft) >= texts::minecraft_order(floor));
    let java_fits = can_use_java(catalog, request, now, java);
    Some(Paper { minecraft, build: build.filter(|_| fits && above_floor && java_fits && is_bundled_here), java })
}

/// Whether the server can have an image with this Java.
pub(crate) fn can_use_java(catalog: &Catalog, request: &Request, now: Timestamp, java: u32) -> bool {
    let runs = request.running.as_ref().and_then(|running| running.java);
    match (&request.image, request.image_policy, runs) {
        (Some(image), _, _) => texts::java_in(image).is_none_or(|has| has >= java),
        // Nightshift does not choose the image of a proxy.
        _ if request.software == Software::Velocity => true,
        (None, ImagePolicy::SameJava | ImagePolicy::Keep, Some(has)) => has >= java,
        (None, ImagePolicy::Follow, _) | (None, _, None) => {
            catalog.images.is_empty() || texts::newest_image(&catalog.images, java, now).is_some()
        }
    }
}

/// Whether a file has a checksum that can verify it.
pub(crate) fn is_verifiable(file: &Artifact) -> bool {
    let Some(hash) = &file.hash else { return false };
    let (length, digits) = match (hash.strip_prefix("sha256:"), hash.strip_prefix("sha512:")) {
        (Some(digits), _) => (64, digits),
        (None, Some(digits)) => (128, digits),
        (None, None) => return false,
    };
    digits.len() == length && digits.chars().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a build can be chosen: it has a checksum, or its md5 allows it to be verified after a download.
fn is_selectable(file: &Artifact) -> bool {
    let md5 = file.hash.as_ref().and_then(|hash| hash.strip_prefix("md5:"));
    is_verifiable(file) || md5.is_some_and(|md5| md5.len() == 32 && md5.chars().all(|digit| digit.is_ascii_hexdigit()))
}

/// The builds that a server chooses from.
pub(crate) fn builds(catalog: &Catalog, software: Software) -> &[PaperVersion] {
    match software {
        Software::Paper => &catalog.paper,
        Software::Purpur | Software::Folia | Software::Velocity => {
            catalog.others.get(&software).map_or(&[], |other| &other.versions)
        }
    }
}
