//! Pure. Builds whose source gives an md5 and nothing stronger: what they are is known once somebody has seen their bytes.
//!
//! An md5 can be made for other bytes, so no lock rests on one. Such a build takes part in the solve like any other, and the set that
//! would have it is no answer yet: only the one that is chosen has to be brought.

use crate::catalog::{Artifact, Catalog};
use crate::explain::text::named;
use crate::explain::{PaperName, Unanswerable};
use crate::index::{CandidateIndex, Gap};
use crate::solve::{Decision, Unsolvable};

/// The 32 hex digits of a file of which an md5 is all that is known.
pub(crate) fn announced_md5(file: &Artifact) -> Option<&str> {
    let digits = file.hash.as_deref()?.strip_prefix("md5:")?;
    (digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

/// What a build that nobody could look at is called in [`Catalog::unread`].
pub(crate) fn subject(PaperName { software, minecraft, build }: &PaperName) -> String {
    let project = software.project();
    format!("{project}/{project}/{minecraft}/{build}")
}

/// Whether a build is published and nobody has seen its bytes.
#[cfg(feature = "cli")]
pub(crate) fn is_unseen(catalog: &Catalog, PaperName { software, minecraft, build }: &PaperName) -> bool {
    let versions = catalog.versions(*software).iter().filter(|version| version.minecraft == *minecraft);
    let mut builds = versions.flat_map(|version| &version.builds).filter(|other| other.number == *build);
    builds.any(|build| announced_md5(&build.file).is_some())
}

/// Refuses a set of which nobody knows what its build is.
pub(crate) fn refuse_unseen(
    catalog: &Catalog,
    world: &CandidateIndex<'_>,
    decision: &Decision,
) -> Result<(), Unsolvable> {
    let place = decision.chosen.paper;
    let unseen = world.papers[place].build.filter(|build| announced_md5(&build.file).is_some());
    let Some(name) = unseen.and_then(|_| world.paper_name(place)) else { return Ok(()) };
    let (mut gap, mut unseen) = (Gap::default(), Vec::new());
    match catalog.unread.get(&subject(&name)) {
        Some(because) => drop(gap.unread.insert((named(&name), because.clone()))),
        None => unseen.push(name),
    }
    let unanswerable = Unanswerable { unseen, ..Unanswerable::lacking(catalog, world.request, gap) };
    Err(Unsolvable::Unanswerable(Box::new(unanswerable)))
}
