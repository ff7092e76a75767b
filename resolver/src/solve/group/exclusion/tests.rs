//! Pure. Tests which servers are accepted, against trying one after the other.

use super::*;

/// Whether no two of them conflict. Two numbers conflict if their product leaves this remainder.
fn are_compatible(positions: &[usize], odds: usize) -> bool {
    let clash = |a: usize, b: usize| (a * b + a + b) % odds == 1;
    positions.iter().enumerate().all(|(at, &a)| positions[..at].iter().all(|&b| !clash(a, b)))
}

#[test]
fn batch_exclusion_equals_one_by_one_exclusion() {
    let mut refused = 0;
    for (servers, odds) in (0..40).flat_map(|servers| (2..30).map(move |odds| (servers, odds))) {
        let order: Vec<usize> = (0..servers).rev().collect();
        let mut expected: Vec<usize> = Vec::new();
        for &at in &order {
            expected.push(at);
            if !are_compatible(&expected, odds) {
                expected.pop();
            }
        }
        expected.sort_unstable();
        let mut fits = |positions: &[usize]| {
            assert!(positions.is_sorted(), "servers must be in name order: {positions:?}");
            Ok(are_compatible(positions, odds))
        };
        assert_eq!(compatible_servers(&order, &mut fits), Ok(expected.clone()), "{servers} servers, {odds}");
        refused += servers - expected.len();
    }
    assert!(refused > 1_000, "too few cases: {refused}");
}
