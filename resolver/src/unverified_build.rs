//! Pure. Handles unverified builds, whose source gives only an md5: their content is known after a download.
//!
//! Other bytes with the same md5 can be produced, so a lock never relies on one. Such a build takes part in the solve
//! like any other, but a version set with it is not a result yet. Only the chosen build has to be downloaded.

use crate::catalog::{Artifact, Catalog};
use crate::explain::text::named;
use crate::explain::{PaperName, Unanswerable};
use crate::index::{CandidateIndex, Gap};
use crate::solve::{Decision, Unsolvable};

/// The 32 hex digits of a file for which only an md5 is known.
pub(crate) fn announced_md5(file: &Artifact) -> Option<&str> {
    let digits = file.hash.as_deref()?.strip_prefix("md5:")?;
    (digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

/// The key in [`Catalog::unread`] of a build that could not be downloaded.
pub(crate) fn catalog_key(PaperName { software, minecraft, build }: &PaperName) -> String {
    let project = software.project();
    format!("{project}/{project}/{minecraft}/{build}")
}

/// Whether a build is published and was not downloaded for verification yet.
#[cfg(feature = "cli")]
pub(crate) fn is_unverified(catalog: &Catalog, PaperName { software, minecraft, build }: &PaperName) -> bool {
    let versions = catalog.versions(*software).iter().filter(|version| version.minecraft == *minecraft);
    let mut builds = versions.flat_map(|version| &version.builds).filter(|other| other.number == *build);
    builds.any(|build| announced_md5(&build.file).is_some())
}

/// Refuses a version set with an unverified build.
pub(crate) fn reject_unverified(
    catalog: &Catalog,
    candidates: &CandidateIndex<'_>,
    decision: &Decision,
) -> Result<(), Unsolvable> {
    let position = decision.chosen.paper;
    let unverified = candidates.papers[position].build.filter(|build| announced_md5(&build.file).is_some());
    let Some(name) = unverified.and_then(|_| candidates.paper_name(position)) else { return Ok(()) };
    let (mut gap, mut unverified) = (Gap::default(), Vec::new());
    match catalog.unread.get(&catalog_key(&name)) {
        Some(because) => drop(gap.unread.insert((named(&name), because.clone()))),
        None => unverified.push(name),
    }
    let unanswerable = Unanswerable { unseen: unverified, ..Unanswerable::from_gap(catalog, candidates.request, gap) };
    Err(Unsolvable::Unanswerable(Box::new(unanswerable)))
}
