use regex::Regex;

use super::*;

fn pattern_of(field: fn(&mut SchemaGenerator) -> Schema) -> Regex {
    let schema = field(&mut SchemaGenerator::default());
    Regex::new(schema.get("pattern").unwrap().as_str().unwrap()).unwrap()
}

#[test]
fn a_schedule_is_five_fields_with_their_real_ranges_or_a_word() {
    let cron = pattern_of(cron);
    for good in [
        "0 4 * * 0",
        "0 4 * * 7",
        "30 23 31 12 sun",
        "*/15 0-6/2 1,15 JAN-Mar 1-5",
        "05 04 08 02 *",
        "0 4 * * MON,Wed",
        "@daily",
        "@weekly",
    ] {
        assert!(cron.is_match(good), "{good}");
    }
    for wrong in [
        "",
        "daily",
        "@fortnightly",
        "0 4 * *",
        "0 0 4 * * 0",
        "61 4 * * 0",
        "60 4 * * 0",
        "0 24 * * 0",
        "0 4 0 * *",
        "0 4 32 * *",
        "0 4 * 13 *",
        "0 4 * * 8",
        "0 4 * * sunday",
        "0/15 4 * * *",
        "*/0 4 * * *",
        "0 4 * * 0 ",
        "0 4 * * 0\n",
        "-1 4 * * 0",
        "L 4 * * 0",
    ] {
        assert!(!cron.is_match(wrong), "{wrong:?}");
    }
}

#[test]
fn a_duration_that_matches_is_one_that_is_read() {
    let duration = pattern_of(duration);
    for text in ["90s", "5m", "72h", "7d", "1h30m", "0s", "", "5", "m", "-5m", "5 m", "1.5h", "2w", "5M", "1h30"] {
        assert_eq!(duration.is_match(text), crate::duration::parse(text).is_ok(), "{text:?}");
    }
}

#[test]
fn a_zone_is_a_name_and_no_offset() {
    let zone = pattern_of(zone);
    for good in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+3"] {
        assert!(zone.is_match(good), "{good}");
    }
    for wrong in ["", "+02:00", "../etc/passwd", "Europe/Berlin "] {
        assert!(!zone.is_match(wrong), "{wrong:?}");
    }
}

#[test]
fn a_pinned_minecraft_is_one_version() {
    let minecraft = pattern_of(minecraft);
    for good in ["1.21", "1.21.10", "26.1", "26.1.2", "1.21.9-rc1", "1.21-pre2"] {
        assert!(minecraft.is_match(good), "{good}");
    }
    for wrong in ["", "latest", "1.21.x", ">=1.21", "1.21.10 ", "v1.21", "21"] {
        assert!(!minecraft.is_match(wrong), "{wrong:?}");
    }
}

#[test]
fn an_address_has_a_host_and_neither_a_user_nor_a_fragment() {
    let url = pattern_of(url);
    for good in [
        "https://example.org/x.jar",
        "http://example.org/x.jar",
        "https://example.org",
        "https://[2001:4860::1]:8443/a?b=c@d",
    ] {
        assert!(url.is_match(good), "{good}");
    }
    for wrong in [
        "",
        "example.org/x.jar",
        "https:///x.jar",
        "https://me:secret@example.org/x.jar",
        "https://example.org/x.jar#v2",
        "https://example.org/my plugin.jar",
        "x",
    ] {
        assert!(!url.is_match(wrong), "{wrong:?}");
    }
}

#[test]
fn a_checksum_is_64_hex_digits_with_or_without_its_name() {
    let sha256 = pattern_of(sha256);
    let digits = "0123456789abcdefABCDEF0123456789".repeat(2);
    for good in [digits.clone(), format!("sha256:{digits}")] {
        assert!(sha256.is_match(&good), "{good}");
    }
    for wrong in
        [format!("{digits}0"), format!("sha512:{digits}"), digits[1..].to_owned(), format!("sha256:{}", "g".repeat(64))]
    {
        assert!(!sha256.is_match(&wrong), "{wrong}");
    }
}

#[test]
fn an_instant_has_seconds_and_an_offset() {
    let instant = pattern_of(instant);
    for good in ["2026-12-20T00:00:00Z", "2026-12-20T00:00:00+01:00", "2026-12-20T23:59:59-05:30"] {
        assert!(instant.is_match(good), "{good}");
        good.parse::<jiff::Timestamp>().unwrap();
    }
    for wrong in [
        "",
        "2026-12-20",
        "2026-12-20T00:00:00",
        "2026-12-20T00:00Z",
        "2026-12-20 00:00:00Z",
        "2026-12-20T00:00:00 CET",
    ] {
        assert!(!instant.is_match(wrong), "{wrong:?}");
    }
}

#[test]
fn a_server_holds_plugins_by_the_names_of_their_objects_or_all_that_runs() {
    let hold = hold(&mut SchemaGenerator::default());
    let hold = Regex::new(hold.get("items").unwrap()["pattern"].as_str().unwrap()).unwrap();
    let name = pattern_of(object_name);
    for good in ["luckperms", "essentials-x", "a", "9.b"] {
        assert!(hold.is_match(good) && name.is_match(good), "{good}");
    }
    assert!(hold.is_match("*") && !name.is_match("*"));
    for wrong in ["", "**", "lu*", "*perms", "* ", "LuckPerms", "-luckperms", "luckperms.", "plugin/luckperms"] {
        assert!(!hold.is_match(wrong) && !name.is_match(wrong), "{wrong:?}");
    }
}
