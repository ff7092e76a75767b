//! Pure. Generates invalid texts for the tests of parsers.

use std::time::{Duration, Instant};

use fixtures::fuzz::{self, Edit, mutate};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};

/// Time limit for the longest text, in a debug build on a busy machine. The limit is long, so that it detects only
/// quadratic time, which takes minutes. It does not measure performance.
pub(crate) const TIME_LIMIT: Duration = Duration::from_mins(1);

/// The maximum length of an error text, which is shown in a status, an Event or a terminal.
#[allow(dead_code, reason = "not every crate that includes this file tests errors")]
pub(crate) const MAX_ERROR_LENGTH: usize = 2_000;

/// Declares a fuzz test for each parser of foreign bytes: its name, inputs that it accepts, and the parser ([`fuzz`]).
#[allow(unused_macros, reason = "not every crate that includes this file has such a table")]
macro_rules! fuzz_targets {
    ($($name:ident($seeds:expr, $parse:expr);)*) => {
        $(
            #[test]
            fn $name() {
                mutate::fuzz(&$seeds, $parse);
            }
        )*
    };
}
#[allow(unused_imports, reason = "as above")]
pub(crate) use fuzz_targets;

/// Tests that a parser survives mutations of inputs that it accepts, and noise. `parse` returns whether it has accepted
/// the input.
#[allow(dead_code, reason = "as above")]
pub(crate) fn fuzz(seeds: &[Vec<u8>], parse: impl Fn(&[u8]) -> bool) {
    for seed in seeds {
        assert!(parse(seed), "a seed is refused: {}", String::from_utf8_lossy(seed));
    }
    let pick = |number: usize| &seeds[number % seeds.len()];
    for_all(300, &(edits(), any::<(usize, usize)>(), bytes()), |(edits, (one, other), noise)| {
        within_time_limit("a mutated input", || parse(&mutate(pick(one), pick(other), &edits)));
        within_time_limit("noise", || parse(&noise));
        Ok(())
    });
}

/// Tests `property` on values of `strategy`. The values are the same in each run, unless the environment sets another
/// number of cases, or a time.
pub(crate) fn for_all<S: Strategy>(usual: u32, strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let rng_seed = fuzz::seed().map_or(RngSeed::Random, RngSeed::Fixed);
    let config = ProptestConfig {
        cases: fuzz::cases(usual),
        rng_seed,
        // The seed is fixed, and the case is printed.
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let started = Instant::now();
    loop {
        let result = TestRunner::new(config.clone()).run(strategy, &property);
        assert!(result.is_ok(), "{}", result.map_or_else(|error| error.to_string(), |()| String::new()));
        if fuzz::time_budget().is_none_or(|budget| started.elapsed() >= budget) {
            return;
        }
    }
}

/// A few changes of a text.
pub(crate) fn edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(any::<Edit>(), 1..5)
}

/// Bytes of several kinds: noise, text in any script, and text with the special characters of the formats.
pub(crate) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        ".{0,80}".prop_map(String::into_bytes),
        r#"[-\[\]{}:,"'&*!|>%@`#0-9a-e. \n\t]{0,120}"#.prop_map(String::into_bytes),
    ]
}

/// Text of the same kinds as [`bytes`].
#[allow(dead_code, reason = "not every crate that includes this file needs text")]
pub(crate) fn text() -> impl Strategy<Value = String> {
    bytes().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs `read` and checks the time limit.
pub(crate) fn within_time_limit<T>(label: &str, read: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let value = read();
    let took = started.elapsed();
    assert!(took < TIME_LIMIT, "{label} took {took:?}, which is longer than {TIME_LIMIT:?}");
    value
}
