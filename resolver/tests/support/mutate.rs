//! Pure. Generates invalid texts for the tests of parsers.

use std::time::{Duration, Instant};

use fixtures::fuzz::{self, Edit};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};

/// Time limit for the longest text, in a debug build on a busy machine. The limit is long, so that it detects only
/// quadratic time, which takes minutes. It does not measure performance.
pub(crate) const TIME_LIMIT: Duration = Duration::from_mins(1);

/// The maximum length of an error text, which is shown in a status, an Event or a terminal.
pub(crate) const MAX_ERROR_LENGTH: usize = 2_000;

/// Tests `property` on values of `strategy`. The values are the same in each run, unless the environment sets another
/// number of cases.
pub(crate) fn for_all<S: Strategy>(usual: u32, strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let rng_seed = fuzz::seed().map_or(RngSeed::Random, RngSeed::Fixed);
    let config = ProptestConfig {
        cases: fuzz::cases(usual),
        rng_seed,
        // The seed is fixed, and the case is printed.
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(strategy, property);
    assert!(result.is_ok(), "{}", result.map_or_else(|error| error.to_string(), |()| String::new()));
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
