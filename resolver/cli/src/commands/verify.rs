//! Edge (reads). `resolver verify`: checks that a lock's facts hold, that it meets the request and would be chosen
//! again.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::diff;
use crate::answers::exit_status;
use crate::args::{Format, VerifyArgs};
use crate::output::table::table;
use crate::select_server::select_server;
use crate::session::{InputSource, gather_answers};
use crate::{ExitStatus, Output};
use resolver::Unsolvable;
use resolver::explanation::Explanation;
use resolver::lock_check::{StaleFact, Unmet, stale_facts, stale_file_facts, unmet};
use resolver::model::compatibility_facts::UsedFact;
use resolver::model::lock::{Difference, Guess, Lock, LockedPlugin};
use resolver::model::software::PaperName;
use resolver::render::phrases::{date, range, unusable};
use resolver::render::text;
use upstream::format_chain;

/// Result of checking a lock.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VerifyReport {
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
pub(crate) fn verify(verify: &VerifyArgs, now: Timestamp) -> Result<Output, Output> {
    let VerifyArgs { lock, from, server, format } = verify;
    let failed = |error: String| Output::failure(vec![error]);
    let lock = diff::read_lock(lock).map_err(|error| failed(format_chain(&error)))?;
    let mut notes = Vec::new();
    let source = InputSource::read(from, &mut notes, now)?;
    let names = source.checked.servers();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wanted = server.as_deref().unwrap_or(&lock.server);
    let wanted = select_server(&names, Some(wanted), "").map_err(|error| match server {
        Some(_) => failed(error),
        None => failed(format!("the lock is for `{}`: {error}", lock.server)),
    })?;
    let at = source.at;
    let session = gather_answers(from, source, Some(&lock.paper_name()), &mut notes)?;
    let mut output = Output { stdout: String::new(), stderr: notes, status: ExitStatus::Solved };
    let result = session.answer.iter().find(|(name, _)| name == wanted).map(|(_, result)| result);
    let request = session.requests.iter().find(|request| request.server == wanted);
    let (Some(result), Some(request)) = (result, request) else { return Ok(output) };
    session.add_read_errors(&mut output);
    let fail = |output: &mut Output, unsolvable: &Unsolvable| {
        output.stderr.push(text::render(&unsolvable.explanation(), at).trim_end().to_owned());
        output.status = ExitStatus::Failed;
    };
    let unmet = unmet(&lock, &session.catalog, request, at);
    let (unmet, solve, no_solution) = match (unmet, result) {
        (Err(unanswerable), _) => {
            fail(&mut output, &Unsolvable::Unanswerable(unanswerable));
            return Ok(output);
        }
        (Ok(_), Err(unsolvable)) if exit_status(unsolvable) == ExitStatus::Failed => {
            fail(&mut output, unsolvable);
            return Ok(output);
        }
        (Ok(unmet), Err(unsolvable)) => (unmet, None, Some(unsolvable.explanation())),
        (Ok(unmet), Ok(resolution)) => {
            (unmet, Some(lock.difference(&resolution.lock)).filter(|difference| !difference.equal), None)
        }
    };
    let mut facts = stale_file_facts(&lock, &session.catalog, at);
    match stale_facts(&lock, &session.catalog, request, at) {
        Ok(stale) => facts.extend(stale),
        Err(unanswerable) => {
            fail(&mut output, &Unsolvable::Unanswerable(unanswerable));
            return Ok(output);
        }
    }
    let holds = facts.is_empty() && unmet.is_empty() && solve.is_none() && no_solution.is_none();
    let report = VerifyReport { server: wanted.to_owned(), holds, facts, request: unmet, solve, no_solution };
    if !holds {
        output.status = output.status.max(ExitStatus::NoSolution);
    }
    output.stdout = match format {
        Format::Human => render_text(&report, &lock, at),
        Format::Json => serde_json::to_string_pretty(&report).expect("a report has string keys only") + "\n",
    };
    Ok(output)
}

fn render_text(report: &VerifyReport, lock: &Lock, at: Timestamp) -> String {
    let VerifyReport { server, holds, facts, request, solve, no_solution } = report;
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
        text.push_str("\nfacts that no longer hold\n");
        text.push_str(&table("  ", &facts.iter().map(stale_fact_cells).collect::<Vec<_>>()));
    }
    if request.is_empty() {
        let request_state = if facts.is_empty() { "met" } else { "met, as far as its files are known" };
        text = format!("{text}\nrequest: {request_state}\n");
    } else {
        text.push_str("\nunmet requests\n");
        text.push_str(&table("  ", &request.iter().map(|unmet| unmet_cells(unmet, lock)).collect::<Vec<_>>()));
    }
    match (solve, no_solution) {
        (Some(difference), _) => {
            text.push_str("\nchosen instead\n");
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
fn short_hash(hash: &str) -> String {
    hash.chars().take("sha256:".len() + 12).chain(['…']).collect()
}

fn stale_fact_cells(fact: &StaleFact) -> Vec<String> {
    let changed_phrase = |locked: &str, published: Option<&String>| {
        let published = published.map_or_else(|| "none".to_owned(), |published| short_hash(published));
        format!("the file at its source differs: {} -> {published}", short_hash(locked))
    };
    let unpublished_phrase = |out_from: Option<Timestamp>| match out_from {
        Some(out_from) => format!("was not published before {}", date(out_from)),
        None => "is not published".to_owned(),
    };
    let unknown = "is not known here, so its file was not checked".to_owned();
    let named = |paper: &PaperName| format!("{} {}-{}", paper.software, paper.minecraft, paper.build);
    let (head, phrase) = match fact {
        StaleFact::PaperGone { paper, out_from } => (named(paper), unpublished_phrase(*out_from)),
        StaleFact::PaperUnknown { paper } => (named(paper), unknown),
        StaleFact::PaperChanged { paper, locked, published } => {
            (named(paper), changed_phrase(locked, published.as_ref()))
        }
        StaleFact::Java { locked, published } => {
            ("Java".to_owned(), format!("{locked} in the lock, {published} needed"))
        }
        StaleFact::ReleaseGone { plugin, version, out_from } => {
            (format!("{plugin} {version}"), unpublished_phrase(*out_from))
        }
        StaleFact::ProjectUnknown { plugin, version } => (format!("{plugin} {version}"), unknown),
        StaleFact::FileChanged { plugin, version, locked, published } => {
            (format!("{plugin} {version}"), changed_phrase(locked, published.as_ref()))
        }
        StaleFact::FactGone { said: UsedFact { plugin, version, needs, range: within, says: _ } } => {
            (format!("{plugin} {version}"), format!("the need for {needs} {} is no longer stated", range(within)))
        }
        StaleFact::GuessChanged { guess: Guess { plugin, version, needs, at_least, .. }, now } => {
            let now = match now {
                Some(now) if now.at_least == *at_least => "the dates of the two have changed".to_owned(),
                Some(now) => format!("by their dates it is {} now", now.at_least),
                None => "it is no longer guessed".to_owned(),
            };
            (format!("{plugin} {version}"), format!("was assumed to need {needs} {at_least} or newer: {now}"))
        }
        StaleFact::ImageJava { locked, says } => {
            let says = says.map_or_else(|| "says no Java".to_owned(), |says| format!("says Java {says}"));
            ("image".to_owned(), format!("its tag {says}, but the lock says Java {locked}"))
        }
    };
    vec![head, phrase]
}

fn unmet_cells(unmet: &Unmet, lock: &Lock) -> Vec<String> {
    let paper = || format!("{} {}-{}", lock.software, lock.minecraft, lock.build);
    let (head, phrase) = match unmet {
        Unmet::Software { software } => (paper(), format!("the server runs as {software}: the rest was not checked")),
        Unmet::PaperPin { pin } => {
            let build = pin.build.map(|build| format!("-{build}")).unwrap_or_default();
            (paper(), format!("you pinned {}{build}", pin.version))
        }
        Unmet::Paper { unusable: reason } => (paper(), unusable(reason)),
        Unmet::Image { pinned } => ("image".to_owned(), format!("the server's image is {pinned}")),
        Unmet::Missing { plugin, objects } => {
            (plugin.clone(), format!("is not in the lock, but Plugin {} requests it", objects.join(", ")))
        }
        Unmet::MissingForFiles { plugin, files } => {
            (plugin.clone(), format!("is not in the lock, but needed by {}", files.join(", ")))
        }
        Unmet::NotRequested { plugin, version } => {
            (format!("{plugin} {version}"), "is in the lock, but not requested or needed".to_owned())
        }
        Unmet::Pinned { plugin, version, pin } => (format!("{plugin} {version}"), format!("you pinned {pin}")),
        Unmet::Release { plugin, version, unusable: reason } => (format!("{plugin} {version}"), unusable(reason)),
        Unmet::Files { plugin, version, wanted } => {
            (format!("{plugin} {version}"), format!("is requested as {}", wanted.join(", ")))
        }
        Unmet::NotListed { plugin, version, by_override: true, .. } => {
            (format!("{plugin} {version}"), format!("your `compatibilityOverride` excludes {}", lock.minecraft))
        }
        Unmet::NotListed { plugin, version, up_to, by_override: false } => {
            let list = up_to.as_ref().map(|up_to| format!(" (listed up to {up_to})")).unwrap_or_default();
            (format!("{plugin} {version}"), format!("is not listed for {}{list}", lock.minecraft))
        }
        Unmet::Together { plugin, version, with, locked } => {
            let other = match locked {
                Some(locked) => format!("conflicts with {with} {locked}"),
                None => format!("needs {with}, which is not in the lock"),
            };
            (format!("{plugin} {version}"), other)
        }
    };
    vec![head, phrase]
}
