//! Pure. Tests of versions.

use std::cmp::Ordering;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use proptest::prelude::*;

use super::*;

fn minecraft(text: &str) -> Minecraft {
    text.parse().unwrap()
}

#[test]
fn minecraft_versions_are_ordered_by_meaning() {
    let ascending = [
        "3D Shareware v1.34",
        "23w31a",
        "24w05a",
        "24w05b",
        "1.7.10",
        "1.8.9",
        "1.13-pre7",
        "1.13",
        "1.21",
        "1.21.9-pre2",
        "1.21.9-rc1",
        "1.21.9",
        "1.21.10",
        "1.21.11",
        "26.1-snapshot-3",
        "26.1-snapshot-11",
        "26.1-pre-1",
        "26.1-rc-2",
        "26.1",
        "26.1.1",
        "26.2-rc-2",
        "26.2",
    ];
    for pair in ascending.windows(2) {
        assert!(minecraft(pair[0]) < minecraft(pair[1]), "{} < {}", pair[0], pair[1]);
    }
}

#[test]
fn velocity_snapshot_precedes_its_release() {
    let ascending = ["3.1.0", "3.1.1-SNAPSHOT", "3.1.1", "3.4.0-SNAPSHOT", "3.4.0", "4.1.0-SNAPSHOT"];
    for pair in ascending.windows(2) {
        assert!(minecraft(pair[0]) < minecraft(pair[1]), "{} < {}", pair[0], pair[1]);
    }
    assert!(!minecraft("3.4.0-SNAPSHOT").is_release());
    assert!(minecraft("1.21.9-rc") < minecraft("1.0"), "an unnumbered Minecraft candidate follows no scheme");
}

#[test]
fn minecraft_version_prints_as_written_and_equals_longer_form() {
    assert_eq!(minecraft("26.1"), minecraft("26.1.0"));
    assert_eq!(minecraft("26.1.0").to_string(), "26.1.0");
    assert_eq!(serde_json::to_string(&minecraft("26.1")).unwrap(), "\"26.1\"");
    assert_eq!(serde_json::from_str::<Minecraft>("\"1.21.11\"").unwrap(), minecraft("1.21.11"));
    let refused = serde_json::from_str::<Minecraft>("1.21").unwrap_err().to_string();
    assert!(refused.contains("a Minecraft version such as `1.21.10`, in quotes"), "{refused}");
}

#[test]
fn malformed_versions_are_compared_by_text() {
    for (other, ordinary) in [("24w05B", "24w01a"), ("24x05b", "24w01a"), ("1.+21", "0.1"), ("1.-21", "0.1")] {
        assert!(minecraft(other) < minecraft(ordinary), "{other} follows no scheme");
        assert_eq!(minecraft(other), minecraft(other));
    }
    assert_ne!(minecraft("24x05b"), minecraft("24x06b"));
}

#[test]
fn minecraft_version_hash_agrees_with_equality() {
    let hashed = |text: &str| BuildHasherDefault::<DefaultHasher>::default().hash_one(minecraft(text));
    assert_eq!(hashed("26.1"), hashed("26.1.0"));
    assert_eq!(hashed("3D Shareware v1.34"), hashed("3D Shareware v1.34"));
    for (one, other) in [("26.1", "26.1.1"), ("24w05a", "24w05b"), ("3D Shareware v1.34", "20w14infinite")] {
        assert_ne!(hashed(one), hashed(other), "{one}, {other}");
    }
}

#[test]
fn minecraft_version_has_48_characters_at_most() {
    assert!("1".repeat(48).parse::<Minecraft>().is_ok());
    let refused = "1".repeat(49).parse::<Minecraft>().unwrap_err().to_string();
    assert!(refused.contains(&format!("`{}`", "1".repeat(48))), "the error shows only 48 characters: {refused}");
}

/// `javaVersion.majorVersion` of Mojang's manifests.
#[test]
fn minecraft_java_matches_mojang_manifests() {
    let expected = [("26.1", 25), ("1.21.11", 21), ("1.20.5", 21), ("1.20.4", 17), ("1.18", 17), ("1.17.1", 16)];
    for (version, java) in expected.into_iter().chain([("1.17", 16), ("1.16.5", 8), ("26w05a", 25)]) {
        assert_eq!(minecraft(version).vanilla_java(), java, "{version}");
    }
}

#[test]
fn minecraft_release_excludes_snapshots_and_candidates() {
    for release in ["1.7.10", "1.21", "26.1", "26.1.2"] {
        assert!(minecraft(release).is_release(), "{release}");
    }
    for other in
        ["24w05b", "26w14a", "1.21.9-rc1", "26.1-snapshot-3", "1.21.x", "b1.7.3", "1", "1.2.3.4", "20w14infinite"]
    {
        assert!(!minecraft(other).is_release(), "{other}");
    }
    for nothing in ["", " 1.21", "1.21\n", "1.21\u{e9}"] {
        assert!(nothing.parse::<Minecraft>().is_err(), "{nothing:?}");
    }
}

#[test]
fn hotfix_siblings_share_protocol_and_other_neighbours_do_not() {
    for (a, b) in
        [("1.20.3", "1.20.4"), ("1.21.2", "1.21.3"), ("1.21.7", "1.21.8"), ("1.21.9", "1.21.10"), ("26.1", "26.1.1")]
    {
        assert!(hotfix::siblings(&minecraft(a)).any(|sibling| *sibling == minecraft(b)), "{a}");
        assert!(hotfix::siblings(&minecraft(b)).any(|sibling| *sibling == minecraft(a)), "{b}");
    }
    for version in ["1.20.2", "1.21.4", "1.21.11", "26.2", "1.21.9-rc1"] {
        assert_eq!(hotfix::siblings(&minecraft(version)).next(), None, "{version}");
    }
}

/// A page before this version lists all hotfixes, or was written before there were any.
const FIRST_IN_TABLE: &str = "1.16";

#[test]
fn hotfix_siblings_match_recorded_protocols() {
    #[derive(serde::Deserialize)]
    struct Recorded {
        minecraft: Minecraft,
        protocol: u32,
    }
    let recorded = include_str!("../../../../fixtures/recorded/minecraft/protocols.json");
    let recorded: Vec<Recorded> = serde_json::from_str(recorded).unwrap();
    let mut siblings = 0;
    for pair in recorded.windows(2).filter(|pair| pair[0].minecraft >= minecraft(FIRST_IN_TABLE)) {
        let [older, newer] = pair else { unreachable!("each window has two elements") };
        let same = older.protocol == newer.protocol;
        let (a, b) = (&older.minecraft, &newer.minecraft);
        assert_eq!(hotfix::siblings(a).any(|sibling| sibling == b), same, "{a} {b}");
        assert_eq!(hotfix::siblings(b).any(|sibling| sibling == a), same, "{b} {a}");
        siblings += usize::from(same);
    }
    let sibling_count: usize = recorded.iter().map(|one| hotfix::siblings(&one.minecraft).count()).sum();
    assert_eq!(sibling_count, 2 * siblings, "the table contains only the recorded pairs, each in both directions");
    assert_eq!(siblings, 12);
}

#[test]
fn version_glob_matches_release_line() {
    for (pattern, version, meant) in [
        ("1.21.x", "1.21", true),
        ("1.21.x", "1.21.11", true),
        ("1.21.*", "1.21.4", true),
        ("1.2.x", "1.21.4", false),
        ("1.21.x", "1.21.9-rc1", false),
        ("1.21.4", "1.21.4", true),
        ("26.x", "26.1.2", true),
        ("*", "1.8.8", true),
        ("1.21", "1.21.1", false),
    ] {
        assert_eq!(glob::matches(pattern, &minecraft(version)), meant, "{pattern} {version}");
    }
}

#[test]
fn plugin_versions_are_ordered_with_build_numbers() {
    let ascending = [
        "4.10.0-24w05b-SNAPSHOT+210",
        "4.10.0",
        "5.7.2-SNAPSHOT+9",
        "5.7.2-SNAPSHOT+905",
        "5.7.2-SNAPSHOT+906",
        "5.7.2",
        "v24.0",
        "24.1",
        "2026.8.1",
        "2026.10.0",
    ];
    for pair in ascending.windows(2) {
        assert_eq!(lenient::compare(pair[0], pair[1]), Ordering::Less, "{} < {}", pair[0], pair[1]);
    }
    assert_eq!(lenient::compare("v24.0", "24.0.0"), Ordering::Equal);
    assert_eq!(lenient::compare("1.14.1-Release", "1.14.1"), Ordering::Equal);
    assert!(lenient::names_a_snapshot("4.10.0-24w05b-SNAPSHOT+210"));
    assert!(!lenient::names_a_snapshot("5.7.2-SNAPSHOT+906"));
    assert!(lenient::is_patch_of("4.9.1", "4.9.0") && lenient::is_patch_of("5.0.1", "5.0"));
    assert!(!lenient::is_patch_of("4.10.0", "4.9.0") && !lenient::is_patch_of("4.9.0", "4.9.1"));
    assert!(!lenient::is_patch_of("5.0", "5.0.0"), "the same version");
}

#[test]
fn version_is_lower_only_if_number_decides() {
    let lower = [
        ("5.9.9", "6.0.1"),
        ("v2.9", "2.10.0"),
        ("1.0.0", "2025.4"),
        ("2026.1.9", "2026.1.10"),
        ("3.0.0-beta.9", "3.0.0-beta.39"),
        ("5.7.2-SNAPSHOT", "5.7.2"),
        ("5.7.2-SNAPSHOT+905", "5.7.2-SNAPSHOT+906"),
        ("905", "906"),
    ];
    for (lower, higher) in lower {
        assert!(lenient::is_lower(lower, higher), "{lower} < {higher}");
        assert!(!lenient::is_lower(higher, lower), "{higher} < {lower}");
    }
    let undecided =
        [("b9", "b10"), ("1.0-b9", "1.0-b10"), ("1.1", "1.1+4"), ("1.0", "v1.0.0"), ("1.0-paper", "1.0-folia")];
    for (a, b) in undecided {
        assert!(!lenient::is_lower(a, b) && !lenient::is_lower(b, a), "{a} and {b}");
    }
}

proptest! {
    #[test]
    fn lenient_order_agrees_with_semver(
        a in "[0-9]\\.[0-9]\\.[0-3](-[a-c]{1,3}(\\.[1-9])?)?(\\+[1-9][0-9]?)?",
        b in "[0-9]\\.[0-9]\\.[0-3](-[a-c]{1,3}(\\.[1-9])?)?(\\+[1-9][0-9]?)?",
        same in any::<bool>(),
    ) {
        // Every second time, two texts with the same number: only the rest differs there.
        let b = if same { format!("{}{}", &a[..5], &b[5..]) } else { b };
        if let (Ok(x), Ok(y)) = (semver::Version::parse(&a), semver::Version::parse(&b)) {
            prop_assert_eq!(lenient::compare(&a, &b), x.cmp(&y), "{} {}", a, b);
        }
    }

    #[test]
    fn lenient_order_is_consistent(texts in prop::collection::vec("[v]?[0-9]{0,2}[.+-]?[0-9a-z]{0,2}[.+-]?[0-9a-zA-Z]{0,3}", 3)) {
        let [a, b, c] = [&texts[0], &texts[1], &texts[2]];
        prop_assert_eq!(lenient::compare(a, b), lenient::compare(b, a).reverse());
        if lenient::compare(a, b).is_le() && lenient::compare(b, c).is_le() {
            prop_assert!(lenient::compare(a, c).is_le(), "{a} {b} {c}");
        }
    }

    #[test]
    fn minecraft_version_parser_never_panics(text in ".{0,60}") {
        if let Ok(version) = text.parse::<Minecraft>() {
            prop_assert_eq!(version.to_string(), text);
        }
    }
}
