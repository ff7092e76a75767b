//! Pure. Lists hotfix siblings: Minecraft versions with the same network protocol.

use std::sync::LazyLock;

use super::Minecraft;

/// Releases that share one network protocol number, one hotfix apart.
///
/// A plugin page that lists only one version of a pair almost never means to exclude the other. On the recorded lists
/// of 2023-2026, trusting siblings reduces the waiting time from 97 days to 4. Paper never built 1.20.3, 1.21.2 and
/// 26.1 at all, so releases listed only for those would have no Paper version.
///
/// The numbers are recorded in `fixtures/recorded/minecraft/protocols.json`, with their origin, and a test compares
/// this table with them. 764, 769 to 771 and 774 belong to one release each.
const SAME_PROTOCOL: &[(&str, &str)] = &[
    ("1.16.4", "1.16.5"),  // 754
    ("1.18", "1.18.1"),    // 757
    ("1.19.1", "1.19.2"),  // 760
    ("1.20", "1.20.1"),    // 763
    ("1.20.3", "1.20.4"),  // 765
    ("1.20.5", "1.20.6"),  // 766
    ("1.21", "1.21.1"),    // 767
    ("1.21.2", "1.21.3"),  // 768
    ("1.21.7", "1.21.8"),  // 772
    ("1.21.9", "1.21.10"), // 773
    ("26.1", "26.1.1"),    // 775
    ("26.1.1", "26.1.2"),  // 775
];

/// The releases that an entry for `version` counts for as well, the older one first.
pub fn siblings(version: &Minecraft) -> impl Iterator<Item = &'static Minecraft> {
    PAIRS.iter().filter_map(move |(older, newer)| {
        if version == older {
            Some(newer)
        } else if version == newer {
            Some(older)
        } else {
            None
        }
    })
}

/// The parsed table. It is parsed once, because every solve looks up each Paper version.
static PAIRS: LazyLock<Vec<(Minecraft, Minecraft)>> =
    LazyLock::new(|| SAME_PROTOCOL.iter().map(|&(older, newer)| (parsed(older), parsed(newer))).collect());

fn parsed(text: &str) -> Minecraft {
    text.parse().expect("the table holds release numbers")
}
