//! Pure. Tests properties of all answers for servers that are solved together, and of their texts, on two and on three
//! random small servers.

use std::cell::Cell;

use jiff::SignedDuration;
use resolver::explanation::Explanation;
use resolver::model::request::{PaperRequest, Request};
use resolver::render::text;
use resolver::{Budget, Fleet, Resolution, Unsolvable};

use super::generate::Rng;
use super::group::{self, Pair};
use super::problem::Problem;
use super::properties::{check_text, shuffled, with_unrelated_project};
use super::{required_count, scaled_to_run};

/// Number of seeds of each property in a thorough run.
const SEEDS: u64 = 300;

/// The requests of a pair, in some cases with a third server that shares the plugins of the second. The third server is
/// pinned to an old Paper, so that it often conflicts with the others.
fn group_requests(pair: &Pair) -> Vec<Request> {
    let mut requests = pair.requests.to_vec();
    let oldest = pair.catalog.paper.iter().map(|paper| &paper.minecraft).min();
    if let Some(oldest) = oldest.filter(|_| pair.requests[0].plugins.len().is_multiple_of(2)) {
        let mut third = requests[1].clone();
        "games/mines".clone_into(&mut third.server);
        third.paper = PaperRequest::Pin { version: oldest.clone() };
        (third.running, third.floor) = (None, None);
        requests.push(third);
    }
    requests
}

type Answers = Vec<(String, Result<Resolution, Unsolvable>)>;

/// The answers by server, and the "why not" answers for the newest Paper.
fn resolve_group(pair: &Pair, requests: &[Request]) -> (Answers, Vec<(String, Explanation)>) {
    let fleet = Fleet::read(&pair.catalog, requests, pair.now);
    let decided = fleet.decide(Budget::default());
    let mut results = decided.resolutions();
    results.sort_by(|(one, _), (other, _)| one.cmp(other));
    let newest = pair.catalog.paper.iter().map(|paper| &paper.minecraft).max();
    let explained = results.iter().flat_map(|(server, result)| {
        let explanation = match result {
            Ok(resolution) => resolution.explanation.clone(),
            Err(unsolvable) => unsolvable.explanation(),
        };
        let why = newest.and_then(|newest| decided.why_not(server, newest));
        let why = why.map(|why| why.map_or_else(|error| error.explanation(), Explanation::WhyNot));
        [Some(explanation), why].into_iter().flatten().map(move |explanation| (server.clone(), explanation))
    });
    let explained = explained.collect();
    (results, explained)
}

/// All output for all servers, as text.
fn output_text(pair: &Pair, requests: &[Request]) -> String {
    let (results, explained) = resolve_group(pair, requests);
    let locks = results.iter().map(|(server, result)| {
        let lock = result.as_ref().map_or_else(|error| format!("{error:?}"), |resolution| resolution.lock.to_json());
        format!("{server}: {lock}")
    });
    let explanation_texts = explained.iter().map(|(server, explanation)| {
        let json = serde_json::to_string_pretty(explanation).unwrap();
        format!("{server}: {json}\n{}", text::render(explanation, pair.now))
    });
    locks.chain(explanation_texts).collect::<Vec<_>>().join("\n")
}

/// Compares two outputs. The message names the difference between their inputs.
fn check_same(one: &str, other: &str, difference: &str) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{one}\n-- {difference} --\n{other}")) }
}

#[test]
fn group_answer_bytes_are_independent_of_input_order() {
    group::for_all(21_000_000..21_000_000 + scaled_to_run(SEEDS), |pair| {
        let requests = group_requests(pair);
        let mut others = requests.clone();
        let mut rng = Rng::new(7);
        rng.shuffle(&mut others);
        let mut changed = pair.clone();
        for request in &mut others {
            let problem = Problem { catalog: pair.catalog.clone(), request: request.clone(), now: pair.now };
            let Problem { catalog, request: mixed, now: _ } = shuffled(&problem, 8);
            (*request, changed.catalog) = (mixed, catalog);
        }
        check_same(&output_text(pair, &requests), &output_text(&changed, &others), "with the input in another order")
    });
}

#[test]
fn group_answer_bytes_are_independent_of_unrelated_project() {
    group::for_all(22_000_000..22_000_000 + scaled_to_run(SEEDS), |pair| {
        let more = Pair { catalog: with_unrelated_project(&pair.catalog), ..pair.clone() };
        let requests = group_requests(pair);
        check_same(&output_text(pair, &requests), &output_text(&more, &requests), "with an unrelated project")
    });
}

#[test]
fn group_answer_bytes_are_independent_of_other_namespaces() {
    group::for_all(23_000_000..23_000_000 + scaled_to_run(SEEDS), |pair| {
        let requests = group_requests(pair);
        let mut more = requests.clone();
        more.extend(requests.iter().map(|request| {
            let server = request.server.replace("games/", "shop/");
            Request { server, delay: request.delay + SignedDuration::from_hours(1), ..request.clone() }
        }));
        let fleet = Fleet::read(&pair.catalog, &more, pair.now);
        let decided = fleet.decide(Budget::default());
        let (own_results, _) = resolve_group(pair, &requests);
        for (server, result) in own_results {
            if decided.resolution(&server).as_ref() != Some(&result) {
                return Err(format!(
                    "{server}: {result:?}\n-- with servers of another namespace --\n{:?}",
                    decided.resolution(&server)
                ));
            }
        }
        Ok(())
    });
}

#[test]
fn group_explanation_round_trips_through_json() {
    let (shared, blocked) = (Cell::new(0_u64), Cell::new(0_u64));
    group::for_all(24_000_000..24_000_000 + scaled_to_run(SEEDS), |pair| {
        let (_, explained) = resolve_group(pair, &group_requests(pair));
        for (server, explanation) in explained {
            let text = serde_json::to_string(&explanation).unwrap();
            let parsed: Explanation = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
            if parsed != explanation {
                return Err(format!("{server}: {text}"));
            }
            check_text(&text::render(&explanation, pair.now))?;
            shared.set(shared.get() + u64::from(text.contains("sharedVersion")));
            blocked.set(blocked.get() + u64::from(text.contains("\"blockedBy\":[{")));
        }
        Ok(())
    });
    let counts = [shared.get(), blocked.get()];
    assert!(
        counts[0] > required_count(3) && counts[1] > required_count(10),
        "too few answers with a shared version or with a blocker: {counts:?}"
    );
}
