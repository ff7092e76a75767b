//! Pure. Hotfix siblings: Minecraft versions that speak the same network protocol.

use std::sync::LazyLock;

use super::Minecraft;

/// Releases that share one network protocol number, one hotfix apart.
///
/// A plugin page that lists one of a pair and not the other has almost never meant to exclude it: on the recorded lists
/// of 2023-2026 trusting them takes 97 days of waiting down to 4. Paper never built 1.20.3, 1.21.2 and 26.1 at all, so
/// what is listed for those alone would be listed for nothing.
///
/// The numbers are recorded in `fixtures/recorded/minecraft/protocols.json`, with where they come from; a test holds this table to
/// them. 764, 769 to 771 and 774 belong to one release each.
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

/// The releases that a listing for `version` counts for as well, the older one first.
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

/// The same, read once: every solve asks for each Paper there is.
static PAIRS: LazyLock<Vec<(Minecraft, Minecraft)>> =
    LazyLock::new(|| SAME_PROTOCOL.iter().map(|&(older, newer)| (parsed(older), parsed(newer))).collect());

fn parsed(text: &str) -> Minecraft {
    text.parse().expect("the table holds release numbers")
}
