//! Pure. Renders explanations as text: the only place where results become sentences.
//!
//! Order of every text: the running versions and that they are safe, the blockers, the evidence, the possible actions
//! in order of risk. Wording: "listed up to", never "stops at", and no terms from the solver.

use jiff::Timestamp;

use crate::explanation::Explanation;

mod blockers;
mod builder;
mod hints;
mod image;
mod solved;
mod summary;
mod unsolvable;
mod why_not_release;
mod why_not_version;

use builder::TextBuilder;
pub use summary::MAX_SUMMARY_LENGTH;

/// Renders the text for a user at `now`. It ends with a newline.
pub fn render(explanation: &Explanation, now: Timestamp) -> String {
    let mut page = TextBuilder { text: String::new(), now, software: explanation.software() };
    write(&mut page, explanation);
    page.text
}

/// Adds the answer to the text.
fn write(page: &mut TextBuilder, explanation: &Explanation) {
    match explanation {
        Explanation::Solved(solved) => solved::solved(page, solved),
        Explanation::Impossible(impossible) => unsolvable::conflict(page, impossible),
        Explanation::WhyNot(why) => why_not_version::why_not(page, why),
        Explanation::WhyNotRelease(why) => why_not_release::why_not(page, why),
        Explanation::Unanswerable(unanswerable) => page.unanswerable(unanswerable),
        Explanation::GaveUp(given_up) => builder::gave_up(given_up).iter().for_each(|line| page.line(line)),
    }
}

#[cfg(test)]
mod tests;
