//! Pure. Renders explanations as text: the only place where results become sentences.
//!
//! Order of every text: the running versions and that they are safe, the blockers, the evidence, the possible actions
//! in order of risk. Wording: "listed up to", never "stops at", and no terms from the solver.

use jiff::Timestamp;

use super::phrases::{UNVERIFIED, list, read_time};
use super::{Explanation, LastRead, PaperName, Unanswerable, short_form};
use crate::software::Software;
use crate::solve::BudgetExceeded;
use crate::untrusted_text::sanitize_line;
use crate::version::Minecraft;

mod blockers;
mod hints;
mod image;
mod solved;
mod summary;
mod unsolvable;
mod why_not_release;
mod why_not_version;

pub use summary::MAX_SUMMARY_LENGTH;

/// Limit of listed known items of an unanswerable request. Further ones are counted.
const MAX_KNOWN: usize = 5;

/// Renders the text for a user at `now`. It ends with a newline.
pub fn render(explanation: &Explanation, now: Timestamp) -> String {
    let mut page = TextBuilder { text: String::new(), now, software: explanation.software() };
    page.write(explanation);
    page.text
}

/// The text so far.
struct TextBuilder {
    text: String,
    now: Timestamp,
    /// The server software.
    software: Software,
}

impl TextBuilder {
    fn write(&mut self, explanation: &Explanation) {
        match explanation {
            Explanation::Solved(solved) => solved::solved(self, solved),
            Explanation::Impossible(impossible) => unsolvable::conflict(self, impossible),
            Explanation::WhyNot(why) => why_not_version::why_not(self, why),
            Explanation::WhyNotRelease(why) => why_not_release::why_not(self, why),
            Explanation::Unanswerable(unanswerable) => self.unanswerable(unanswerable),
            Explanation::GaveUp(given_up) => gave_up(given_up).iter().for_each(|line| self.line(line)),
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(sanitize_line(line).trim_end());
        self.text.push('\n');
    }

    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Two columns, indented. The second may have several lines.
    fn table(&mut self, rows: &[(String, Vec<String>)]) {
        let width = rows.iter().map(|(head, _)| head.chars().count()).max().unwrap_or(0);
        for (head, lines) in rows {
            for (at, line) in lines.iter().enumerate() {
                let head = if at == 0 { head.as_str() } else { "" };
                let row = format!("  {head:width$}  {line}");
                self.line(&row);
            }
        }
    }

    fn lists_read_later(&mut self, read_at: Option<Timestamp>) {
        if let Some(read_at) = read_at {
            self.gap();
            let day = read_at.to_zoned(jiff::tz::TimeZone::UTC).date();
            self.line(&format!("version lists as of {day}: older lists are not recorded"));
        }
    }

    fn unanswerable(&mut self, unanswerable: &Unanswerable) {
        let Unanswerable { server, fetch, unseen, unread, known } = unanswerable;
        self.line(&format!("no result for {server}: some metadata is missing."));
        for (project, because) in unread {
            self.line(&format!("  {project}  could not be read: {because}"));
        }
        for key in fetch {
            self.line(&format!("  {}  has not been fetched yet", key.to_display()));
        }
        for build in unseen {
            self.line(&format!("  {}  {UNVERIFIED}: fetch the catalog once with network access", named(build)));
        }
        if !known.is_empty() {
            let describe =
                |LastRead { what, read_at }: &LastRead| format!("{what} ({})", read_time(*read_at, self.now));
            let known: Vec<String> = known.iter().map(describe).collect();
            self.line(&format!("Known: {}.", list(&known, MAX_KNOWN)));
        }
    }
}

/// States that a search was given up, and the remedy.
fn gave_up(gave_up: &BudgetExceeded) -> [String; 2] {
    let plugins = match gave_up.clashing.as_slice() {
        [] => "a plugin or the server",
        [_] => "it",
        _ => "one of them",
    };
    let field = if gave_up.clashing.is_empty() { "`spec.version`" } else { "`spec.version` on its Plugin" };
    [
        format!("{}. A solution may still exist.", short_form::gave_up(gave_up)),
        format!("Pin {plugins} ({field}) to make the search smaller, and please report it."),
    ]
}

/// `lobby` of `games/lobby`.
pub(super) fn short_name(server: &str) -> &str {
    server.rsplit('/').next().unwrap_or(server)
}

/// `Paper 1.21.10 (build 130)`
pub(super) fn paper(software: Software, minecraft: &Minecraft, build: u32) -> String {
    format!("{software} {minecraft} (build {build})")
}

/// The same for a [`PaperName`].
pub(crate) fn named(PaperName { software, minecraft, build }: &PaperName) -> String {
    paper(*software, minecraft, *build)
}

#[cfg(test)]
mod tests;
