//! Pure. Tests the sets against a simple model.

use std::collections::BTreeSet;

use proptest::prelude::*;
use pubgrub::VersionSet;

use crate::index::index_set::*;

/// Indexes of the model: more than the words of any generated set.
const UNIVERSE: usize = 64 * 5;

fn model(set: &IndexSet) -> BTreeSet<usize> {
    set.members(0, UNIVERSE - 1).collect()
}

fn sets() -> impl Strategy<Value = IndexSet> {
    let word = prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), (0..64u32).prop_map(|bit| 1 << bit)];
    (prop::collection::vec(word, 0..4), any::<bool>()).prop_map(|(words, fill)| IndexSet::from_words(&words, fill))
}

proptest! {
    #[test]
    fn index_set_operations_match_set_model(a in sets(), b in sets(), limit in 0..UNIVERSE) {
        let all: BTreeSet<usize> = (0..UNIVERSE).collect();
        let (x, y) = (model(&a), model(&b));
        prop_assert_eq!(model(&a.intersection(&b)), &x & &y);
        prop_assert_eq!(model(&a.union(&b)), &x | &y);
        prop_assert_eq!(model(&a.complement()), &all - &x);
        prop_assert_eq!(a.is_disjoint(&b), x.is_disjoint(&y));
        prop_assert_eq!(a.subset_of(&b), x.is_subset(&y));
        prop_assert_eq!(a.highest(limit), x.range(..=limit).next_back().copied());
    }

    #[test]
    fn index_set_equality_is_canonical(a in sets(), b in sets()) {
        prop_assert_eq!(a == b, model(&a) == model(&b));
        prop_assert_eq!(&a.complement().complement(), &a);
        prop_assert_eq!(a.intersection(&b).union(&a), a.clone());
        prop_assert_eq!(a.union(&a.complement()), IndexSet::full());
    }
}

#[test]
fn index_set_is_independent_of_insertion_order() {
    assert_eq!(IndexSet::from_indexes([200, 1, 64]), IndexSet::from_indexes([1, 64, 200]));
    assert_eq!(model(&IndexSet::from_indexes([200, 1, 64])), BTreeSet::from([1, 64, 200]));
}

#[test]
fn bulk_index_is_in_set_when_one_member_is() {
    let class: Arc<[u64]> = Arc::from([0b1010, 1]);
    assert!(IndexSet::from_indexes([64]).contains(&Index::Bulk(class.clone())));
    assert!(!IndexSet::from_indexes([0, 2]).contains(&Index::Bulk(class.clone())));
    assert_eq!(IndexSet::singleton(Index::Bulk(class)), IndexSet::from_indexes([1, 3, 64]));
}
