//! Pure. Reads the Java version from the name of a server image.

/// The Java version in the name of an image of itzg's scheme (`…:2026.8.1-java21`, `…:java25-alpine`). `None` if the
/// name does not state it.
pub(crate) fn java_of_image(image: &str) -> Option<u32> {
    let name = image.split('@').next()?;
    let tag = name.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/'))?;
    let digits = tag.split('-').find_map(|part| part.strip_prefix("java"))?;
    digits.parse().ok()
}
