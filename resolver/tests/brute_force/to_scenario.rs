//! Pure. Prints a query as a file for `tests/scenarios`.

use jiff::Timestamp;
use resolver::model::catalog::Catalog;
use resolver::model::request::Request;
use serde::{Deserialize, Serialize};

use super::delisted;
use super::raw_scenario::{Parts, Verbatim};

/// Placeholder for the expected answer, which the author of the scenario fills in.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    solvable: bool,
}

/// A named scenario of the query about these servers.
pub(crate) fn scenario(name: &str, catalog: &Catalog, requests: &[Request], now: Timestamp) -> String {
    let (request, others) = requests.split_first().expect("a query must have at least one server");
    let text = toml::to_string(&Verbatim {
        name: name.to_owned(),
        why: "Found by exhaustive search. State here what this scenario tests.".to_owned(),
        at: now,
        expect: Expect { solvable: true },
        others: others.iter().map(|_| Expect { solvable: true }).collect(),
        problem: Parts { request: request.clone(), others: others.to_vec(), catalog: catalog.clone() },
    });
    text.expect("names, numbers and dates must be valid TOML")
}

#[test]
fn scenario_text_is_read_back_as_same_query() {
    let pairs = (0..200).filter_map(delisted::pair).map(|pair| (pair.catalog, pair.requests.to_vec(), pair.now));
    let single = (0..200).map(delisted::problem).map(|problem| (problem.catalog, vec![problem.request], problem.now));
    let mut servers = [0, 0];
    for (catalog, requests, now) in pairs.chain(single) {
        let text = scenario("some", &catalog, &requests, now);
        let Verbatim::<Expect> { name: _, why: _, at, expect: _, others, problem } = toml::from_str(&text).unwrap();
        let Parts { request, others: further, catalog: read } = problem;
        assert_eq!(others.len(), further.len(), "{text}");
        let read_requests: Vec<Request> = std::iter::once(request).chain(further).collect();
        assert!((at, &read_requests, &read) == (now, &requests, &catalog), "{text}");
        servers[requests.len() - 1] += 1;
    }
    assert!(servers[0] == 200 && servers[1] > 50, "too few queries with one or with two servers: {servers:?}");
}
