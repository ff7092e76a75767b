//! Edge (reads). `resolver explain` and `resolver catalog fetch`: reads manifests and upstreams, and renders the
//! answers.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::answers::{missing_data, resolve_all};
use crate::args::{ExplainArgs, ExplainFormat, FetchArgs};
use crate::input::{block_on, cache_directory, online_fetcher, read, unknown_projects};
use crate::query::{Query, QueryAnswer};
use crate::saved_query::SavedQuery;
use crate::schedule::when::ServerSchedules;
use crate::session::{gather, read_until_complete};
use crate::what_if::{Assumptions, WhatIf};
use crate::{ExitStatus, Output};
use resolver::explanation::{Explanation, ReleaseState};
use resolver::model::catalog::Catalog;
use resolver::model::request::Request;
use resolver::model::software::Software;
use resolver::model::untrusted_text::hide_secrets_in_text;
use resolver::render::{svg, text};
use upstream::format_chain;

/// Runs `resolver explain`.
pub(crate) fn explain(explain: &ExplainArgs, now: Timestamp) -> Result<Output, Output> {
    let ExplainArgs { reading, at, why_not, target, without, assume, format, catalog, save_problem, problem } = explain;
    if let Some(file) = problem {
        let mut problem = SavedQuery::read(file).map_err(|error| Output::failure(vec![format_chain(&error)]))?;
        let question = &mut problem.question;
        question.at = at.unwrap_or(question.at);
        if why_not.is_some() || target.is_some() {
            question.set_subject(why_not.as_ref(), target.as_ref());
        }
        question.without.extend(without.iter().cloned());
        question.assume.extend(assume.iter().cloned());
        let SavedQuery { question, requests, schedules, catalog, .. } = &problem;
        let (answered, _) = question.answer(catalog, requests);
        let times = ServerSchedules { schedules, requests, now: question.now, at: question.at };
        let mut output = render_answer(&answered, *format, &times, Vec::new())?;
        add_lists_note(&mut output, catalog, question.at);
        return Ok(output);
    }
    let mut notes = Vec::new();
    let checked = read(reading, &mut notes)?;
    let mut question = Query {
        without: without.clone(),
        assume: assume.clone(),
        servers: if checked.queries_all() { Vec::new() } else { checked.servers() },
        ..Query::simple(now, at.unwrap_or(now))
    };
    question.set_subject(why_not.as_ref(), target.as_ref());
    let saved_query = SavedQuery::new(question, &checked);
    let SavedQuery { question, schedules, .. } = &saved_query;
    let session = gather(&reading.sources, catalog.as_deref(), checked, &mut notes, now, |catalog, requests| {
        question.answer(catalog, requests)
    })?;
    let times = ServerSchedules { schedules, requests: &session.requests, now, at: question.at };
    let mut output = render_answer(&session.answer, *format, &times, notes)?;
    session.add_read_errors(&mut output);
    add_lists_note(&mut output, &session.catalog, question.at);
    if let Some(file) = save_problem
        && let Err(error) = saved_query.save(file, &session.catalog)
    {
        output.stderr.push(format_chain(&error));
        output.status = ExitStatus::Failed;
    }
    Ok(output)
}

/// The rendered answer, or the mistakes in the query as an error.
fn render_answer(
    answered: &QueryAnswer,
    format: ExplainFormat,
    times: &ServerSchedules<'_>,
    notes: Vec<String>,
) -> Result<Output, Output> {
    let QueryAnswer { explanations, assumptions, errors } = answered;
    if !errors.is_empty() {
        return Err(Output::failure(notes.into_iter().chain(errors.iter().cloned()).collect()));
    }
    let mut output = Output { stdout: String::new(), stderr: notes, status: ExitStatus::Solved };
    if format == ExplainFormat::Human {
        output.stdout = assumptions.lines().into_iter().map(|line| line + "\n").collect();
    }
    for explanation in explanations {
        add_explanation(&mut output, explanation, assumptions, format, times);
    }
    let answers: Vec<Explanation> =
        explanations.iter().filter(|one| exit_status(one) != ExitStatus::Failed).cloned().collect();
    if format == ExplainFormat::Svg && !answers.is_empty() {
        output.stdout = svg::render(&answers, &assumptions.lines());
    }
    Ok(output)
}

/// Adds a note if the lists are newer than the time of the query.
fn add_lists_note(output: &mut Output, catalog: &Catalog, at: Timestamp) {
    if at < catalog.paper_read_at {
        let day = catalog.paper_read_at.to_zoned(TimeZone::UTC).date();
        output.stderr.push(format!("version lists as of {day}: older lists are not recorded"));
    }
}

/// Runs `resolver catalog fetch`.
pub(crate) fn fetch(fetch: &FetchArgs, now: Timestamp) -> Output {
    let mut notes = Vec::new();
    let checked = match read(&fetch.reading, &mut notes) {
        Ok(checked) => checked,
        Err(output) => return output,
    };
    let directory = match fetch.catalog.clone().map_or_else(cache_directory, Ok) {
        Ok(directory) => directory,
        Err(error) => return Output::failure(vec![error]),
    };
    let fetcher = match online_fetcher(&fetch.reading.sources, directory.clone()) {
        Ok(fetcher) => fetcher,
        Err(error) => return Output::failure(vec![error]),
    };
    // Solves the requests, so that everything that a later offline query would choose is fetched.
    let solve = |catalog: &Catalog, requests: &[Request]| ((), missing_data(&resolve_all(catalog, requests, now)));
    let read = block_on(read_until_complete(&fetcher, &fetch.reading.sources, &checked, now, solve));
    let catalog_build = match read {
        Ok((catalog_build, ())) => catalog_build,
        Err(error) => return Output::failure(vec![error]),
    };
    let violations = unknown_projects(&fetcher, &checked, &catalog_build.problems);
    notes.extend(violations.iter().cloned());
    let mut output = Output { stdout: String::new(), stderr: notes, status: ExitStatus::Solved };
    if violations.is_empty() {
        output.stderr.extend(catalog_build.problems.iter().map(ToString::to_string));
    }
    // Cached data is complete but old, and the user asked for current data.
    if !catalog_build.problems.is_empty() {
        output.status = ExitStatus::Failed;
    }
    let Catalog { projects, images, .. } = &catalog_build.catalog;
    let count = |software: Software| format!("{} {software} versions", catalog_build.catalog.versions(software).len());
    let versions: Vec<String> = checked.software().into_iter().map(count).collect();
    output.stdout = format!(
        "{}: {}, {} projects, {} image tags\n",
        directory.display(),
        versions.join(", "),
        projects.len(),
        images.len()
    );
    output
}

fn add_explanation(
    output: &mut Output,
    explanation: &Explanation,
    assumptions: &Assumptions,
    format: ExplainFormat,
    times: &ServerSchedules<'_>,
) {
    let status = exit_status(explanation);
    output.status = output.status.max(status);
    if status == ExitStatus::Failed {
        // This is not an answer, so it does not go to stdout.
        output.stderr.push(text::render(explanation, times.at).trim_end().to_owned());
        return;
    }
    match format {
        // One diagram contains all servers.
        ExplainFormat::Svg => {}
        ExplainFormat::Human => {
            if !output.stdout.is_empty() {
                output.stdout.push('\n');
            }
            output.stdout.push_str(&text::render(&without_lists_note(explanation), times.at));
            if let Some(when) = times.schedule_sentences(explanation) {
                output.stdout.extend(["\n", &when, "\n"]);
            }
        }
        ExplainFormat::Json => {
            let json = if assumptions.is_empty() {
                serde_json::to_string_pretty(explanation)
            } else {
                serde_json::to_string_pretty(&WhatIf::new(assumptions, explanation))
            };
            output.stdout.push_str(&hide_secrets_in_text(&json.expect("an explanation has string keys only")));
            output.stdout.push('\n');
        }
    }
}

/// The exit status for this explanation.
fn exit_status(explanation: &Explanation) -> ExitStatus {
    match explanation {
        Explanation::Solved(solved) if solved.deploy_blocker().is_some() => ExitStatus::NoSolution,
        Explanation::Solved(_) => ExitStatus::Solved,
        Explanation::WhyNot(why) if why.possible => ExitStatus::Solved,
        Explanation::WhyNotRelease(why) if why.state == ReleaseState::Chosen => ExitStatus::Solved,
        Explanation::WhyNot(_) | Explanation::WhyNotRelease(_) | Explanation::Impossible(_) => ExitStatus::NoSolution,
        Explanation::Unanswerable(_) | Explanation::GaveUp(_) => ExitStatus::Failed,
    }
}

/// Removes the remark that the note about a past time already makes once for all servers.
fn without_lists_note(explanation: &Explanation) -> Explanation {
    let mut explanation = explanation.clone();
    match &mut explanation {
        Explanation::Solved(solved) => solved.lists_read_later = None,
        Explanation::Impossible(impossible) => impossible.lists_read_later = None,
        Explanation::WhyNot(_)
        | Explanation::WhyNotRelease(_)
        | Explanation::Unanswerable(_)
        | Explanation::GaveUp(_) => {}
    }
    explanation
}
