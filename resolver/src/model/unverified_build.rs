//! Pure. Recognises unverified builds: their source gives only an md5, so their content is known only after a download.

use super::catalog::Artifact;
use super::software::PaperName;

/// The 32 hex digits of a file for which only an md5 is known.
pub fn announced_md5(file: &Artifact) -> Option<&str> {
    let digits = file.hash.as_deref()?.strip_prefix("md5:")?;
    (digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

/// The key in [`super::catalog::Catalog::unread`] of a build that could not be downloaded.
pub fn catalog_key(PaperName { software, minecraft, build }: &PaperName) -> String {
    let project = software.project();
    format!("{project}/{project}/{minecraft}/{build}")
}

/// Whether a build is published and was not downloaded for verification yet.
pub fn is_unverified(catalog: &super::catalog::Catalog, PaperName { software, minecraft, build }: &PaperName) -> bool {
    let versions = catalog.versions(*software).iter().filter(|version| version.minecraft == *minecraft);
    let mut builds = versions.flat_map(|version| &version.builds).filter(|other| other.number == *build);
    builds.any(|build| announced_md5(&build.file).is_some())
}
