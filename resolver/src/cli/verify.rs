//! Edge (reads). `resolver verify`: checks that a lock's facts hold, that it meets the request and would be chosen
//! again.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::args::{Format, VerifyArgs as Asked};
use super::session::{InputSource, end_of, gather_answers, one_server};
use super::table::table;
use super::{ExitStatus, Output, diff};
use crate::Unsolvable;
use crate::compatibility_facts::UsedFact;
use crate::explain::phrases::{date, range, unusable};
use crate::explain::{Explanation, PaperName, text};
use crate::lock::{Difference, Guess, Lock, LockedPlugin};
use crate::lock_check::{StaleFact, Unmet, broken_facts, unmet, unsaid};
use crate::upstream::in_words;

/// Result of checking a lock.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VerifyReport {
    /// The server that the lock was checked for.
    server: String,
    /// Whether the lock is correct.
    holds: bool,
    /// Facts that no longer hold.
    facts: Vec<StaleFact>,
    /// Parts of the request that are not met.
    request: Vec<Unmet>,
    /// The version set that would be chosen instead, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    solve: Option<Difference>,
    /// Why there is no version set, if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_solution: Option<Explanation>,
}

/// Runs `resolver verify`.
pub(super) fn verify(verify: &Asked, now: Timestamp) -> Result<Output, Output> {
    let Asked { lock, from, server, format } = verify;
    let failed = |said: String| Output::nothing_but(vec![said]);
    let lock = diff::read_lock(lock).map_err(|error| failed(in_words(&error)))?;
    let mut notes = Vec::new();
    let start = InputSource::of(from, &mut notes, now)?;
    let names = start.checked.servers();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wanted = server.as_deref().unwrap_or(&lock.server);
    let wanted = one_server(&names, Some(wanted), "").map_err(|said| match server {
        Some(_) => failed(said),
        None => failed(format!("the lock is for `{}`: {said}", lock.server)),
    })?;
    let at = start.at;
    let gathered = gather_answers(from, start, Some(&lock.paper_name()), &mut notes)?;
    let mut said = Output { answer: String::new(), notes, end: ExitStatus::Solved };
    let answer = gathered.answer.iter().find(|(name, _)| name == wanted).map(|(_, answer)| answer);
    let request = gathered.requests.iter().find(|request| request.server == wanted);
    let (Some(answer), Some(request)) = (answer, request) else { return Ok(said) };
    gathered.say_problems(&mut said);
    let trouble = |said: &mut Output, unsolvable: &Unsolvable| {
        said.notes.push(text::render(&unsolvable.explanation(), at).trim_end().to_owned());
        said.end = ExitStatus::Failed;
    };
    let unmet = unmet(&lock, &gathered.catalog, request, at);
    let (unmet, solve, no_solution) = match (unmet, answer) {
        (Err(unanswerable), _) => {
            trouble(&mut said, &Unsolvable::Unanswerable(unanswerable));
            return Ok(said);
        }
        (Ok(_), Err(unsolvable)) if end_of(unsolvable) == ExitStatus::Failed => {
            trouble(&mut said, unsolvable);
            return Ok(said);
        }
        (Ok(unmet), Err(unsolvable)) => (unmet, None, Some(unsolvable.explanation())),
        (Ok(unmet), Ok(resolution)) => {
            (unmet, Some(lock.difference(&resolution.lock)).filter(|difference| !difference.equal), None)
        }
    };
    let mut facts = broken_facts(&lock, &gathered.catalog, at);
    match unsaid(&lock, &gathered.catalog, request, at) {
        Ok(unsaid) => facts.extend(unsaid),
        Err(unanswerable) => {
            trouble(&mut said, &Unsolvable::Unanswerable(unanswerable));
            return Ok(said);
        }
    }
    let holds = facts.is_empty() && unmet.is_empty() && solve.is_none() && no_solution.is_none();
    let verdict = VerifyReport { server: wanted.to_owned(), holds, facts, request: unmet, solve, no_solution };
    if !holds {
        said.end = said.end.max(ExitStatus::NoSolution);
    }
    said.answer = match format {
        Format::Human => human_verdict(&verdict, &lock, at),
        Format::Json => serde_json::to_string_pretty(&verdict).expect("a verdict has string keys only") + "\n",
    };
    Ok(said)
}

fn human_verdict(verdict: &VerifyReport, lock: &Lock, at: Timestamp) -> String {
    let VerifyReport { server, holds, facts, request, solve, no_solution } = verdict;
    let files = 1 + lock.plugins.iter().flat_map(LockedPlugin::files).count();
    let plural = if files == 1 { "file is" } else { "files are" };
    if *holds {
        return format!(
            "{server}: the lock holds\n  facts    {files} {plural} published as locked\n  request  met\n  solve    \
             gives the same\n"
        );
    }
    let mut text = format!("{server}: the lock does not hold\n");
    if facts.is_empty() {
        text = format!("{text}\nfacts: {files} {plural} published as locked\n");
    } else {
        text.push_str("\nfacts that hold no longer\n");
        text.push_str(&table("  ", &facts.iter().map(broken_words).collect::<Vec<_>>()));
    }
    if request.is_empty() {
        let known = if facts.is_empty() { "met" } else { "met, as far as its files are known" };
        text = format!("{text}\nrequest: {known}\n");
    } else {
        text.push_str("\nwhat is asked for and not met\n");
        text.push_str(&table("  ", &request.iter().map(|unmet| unmet_words(unmet, lock)).collect::<Vec<_>>()));
    }
    match (solve, no_solution) {
        (Some(difference), _) => {
            text.push_str("\nwhat would be chosen instead\n");
            text.push_str(&diff::lines(difference));
        }
        (None, Some(explanation)) => {
            text.push('\n');
            text.push_str(&text::render(explanation, at));
        }
        (None, None) => text.push_str("\nsolve: gives the same\n"),
    }
    text
}

/// A file by the first digits of its hash.
fn short(hash: &str) -> String {
    hash.chars().take("sha256:".len() + 12).chain(['…']).collect()
}

fn broken_words(broken: &StaleFact) -> Vec<String> {
    let changed = |locked: &str, published: Option<&String>| {
        let published = published.map_or_else(|| "none".to_owned(), |published| short(published));
        format!("the file is another one at its source: {} -> {published}", short(locked))
    };
    let gone = |out_from: Option<Timestamp>| match out_from {
        Some(out_from) => format!("came out on {} only", date(out_from)),
        None => "is not published".to_owned(),
    };
    let unknown = "is not known here, so its file was not checked".to_owned();
    let named = |paper: &PaperName| format!("{} {}-{}", paper.software, paper.minecraft, paper.build);
    let (head, words) = match broken {
        StaleFact::PaperGone { paper, out_from } => (named(paper), gone(*out_from)),
        StaleFact::PaperUnknown { paper } => (named(paper), unknown),
        StaleFact::PaperChanged { paper, locked, published } => (named(paper), changed(locked, published.as_ref())),
        StaleFact::Java { locked, published } => {
            ("Java".to_owned(), format!("{locked} in the lock, {published} needed"))
        }
        StaleFact::ReleaseGone { plugin, version, out_from } => (format!("{plugin} {version}"), gone(*out_from)),
        StaleFact::ProjectUnknown { plugin, version } => (format!("{plugin} {version}"), unknown),
        StaleFact::FileChanged { plugin, version, locked, published } => {
            (format!("{plugin} {version}"), changed(locked, published.as_ref()))
        }
        StaleFact::FactGone { said: UsedFact { plugin, version, needs, range: within, says: _ } } => {
            (format!("{plugin} {version}"), format!("nobody says any more that it needs {needs} {}", range(within)))
        }
        StaleFact::GuessChanged { guess: Guess { plugin, version, needs, at_least, .. }, now } => {
            let now = match now {
                Some(now) if now.at_least == *at_least => "the dates of the two are others now".to_owned(),
                Some(now) => format!("by their dates it is {} now", now.at_least),
                None => "that is not guessed any more".to_owned(),
            };
            (format!("{plugin} {version}"), format!("was taken to need {needs} {at_least} or newer; {now}"))
        }
        StaleFact::ImageJava { locked, says } => {
            let says = says.map_or_else(|| "says no Java".to_owned(), |says| format!("says Java {says}"));
            ("image".to_owned(), format!("its tag {says}; it was read to have Java {locked}"))
        }
    };
    vec![head, words]
}

fn unmet_words(unmet: &Unmet, lock: &Lock) -> Vec<String> {
    let paper = || format!("{} {}-{}", lock.software, lock.minecraft, lock.build);
    let (head, words) = match unmet {
        Unmet::Software { software } => (paper(), format!("the server runs as {software}; nothing more was checked")),
        Unmet::PaperPin { pin } => {
            let build = pin.build.map(|build| format!("-{build}")).unwrap_or_default();
            (paper(), format!("you pinned {}{build}", pin.version))
        }
        Unmet::Paper { unusable: reason } => (paper(), unusable(reason)),
        Unmet::Image { pinned } => ("image".to_owned(), format!("the server's image is {pinned}")),
        Unmet::Missing { plugin, objects } => {
            (plugin.clone(), format!("is not in the lock; Plugin {} asks for it", objects.join(", ")))
        }
        Unmet::MissingForFiles { plugin, files } => {
            (plugin.clone(), format!("is not in the lock; needed by {}", files.join(", ")))
        }
        Unmet::NotAskedFor { plugin, version } => {
            (format!("{plugin} {version}"), "is in the lock; nobody asks for it or needs it".to_owned())
        }
        Unmet::Pinned { plugin, version, pin } => (format!("{plugin} {version}"), format!("you pinned {pin}")),
        Unmet::Release { plugin, version, unusable: reason } => (format!("{plugin} {version}"), unusable(reason)),
        Unmet::Files { plugin, version, wanted } => {
            (format!("{plugin} {version}"), format!("is asked for as {}", wanted.join(", ")))
        }
        Unmet::NotListed { plugin, version, by_override: true, .. } => {
            (format!("{plugin} {version}"), format!("your `compatibilityOverride` rules {} out", lock.minecraft))
        }
        Unmet::NotListed { plugin, version, up_to, by_override: false } => {
            let list = up_to.as_ref().map(|up_to| format!(" (listed up to {up_to})")).unwrap_or_default();
            (format!("{plugin} {version}"), format!("is not listed for {}{list}", lock.minecraft))
        }
        Unmet::Together { plugin, version, with, locked } => {
            let other = match locked {
                Some(locked) => format!("does not go with {with} {locked}"),
                None => format!("needs {with}, which is not in the lock"),
            };
            (format!("{plugin} {version}"), other)
        }
    };
    vec![head, words]
}
