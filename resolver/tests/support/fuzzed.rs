//! Pure. How texts are made that nobody meant, for the tests of whatever reads texts.

use std::time::{Duration, Instant};

use fixtures::fuzz::{self, Edit};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};

/// What the longest text may take, in a debug build on a busy machine. Wide, so that only what grows with the square of a length,
/// and takes minutes, is caught: this is no measurement.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The longest error: it goes into a status, an Event or a terminal.
pub(crate) const LONGEST_ERROR: usize = 2_000;

/// Tries `property` on values of `strategy`: always the same ones, unless the environment asks for another number of them.
pub(crate) fn always<S: Strategy>(usual: u32, strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let rng_seed = fuzz::seed().map_or(RngSeed::Random, RngSeed::Fixed);
    let config = ProptestConfig {
        cases: fuzz::cases(usual),
        rng_seed,
        // The seed is fixed, and the case is printed.
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let tried = TestRunner::new(config).run(strategy, property);
    assert!(tried.is_ok(), "{}", tried.map_or_else(|error| error.to_string(), |()| String::new()));
}

/// A few changes of a text.
pub(crate) fn edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(any::<Edit>(), 1..5)
}

/// Bytes of every kind: none, noise, text in any script, and text of what means something to the formats.
pub(crate) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        ".{0,80}".prop_map(String::into_bytes),
        r#"[-\[\]{}:,"'&*!|>%@`#0-9a-e. \n\t]{0,120}"#.prop_map(String::into_bytes),
    ]
}

/// The same, when it is text.
pub(crate) fn text() -> impl Strategy<Value = String> {
    bytes().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// What `read` gives, in time.
pub(crate) fn in_time<T>(what: &str, read: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let value = read();
    let took = started.elapsed();
    assert!(took < PATIENCE, "{what} took {took:?}");
    value
}
