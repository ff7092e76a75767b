use regex::Regex;

use super::*;

fn pattern_regex(field: fn(&mut SchemaGenerator) -> Schema) -> Regex {
    let schema = field(&mut SchemaGenerator::default());
    Regex::new(schema.get("pattern").unwrap().as_str().unwrap()).unwrap()
}

#[test]
fn cron_pattern_accepts_five_fields_in_range_or_keyword() {
    let cron = pattern_regex(cron);
    for good in [
        "0 4 * * 0",
        "0 4 * * 7",
        "30 23 31 12 sun",
        "*/15 0-6/2 1,15 JAN-Mar 1-5",
        "05 04 08 02 *",
        "0 4 * * MON,Wed",
        "@daily",
        "@weekly",
        // As the scheduler reads them.
        "00 04 * * 00",
        "0\t4\t*\t*\t0",
        "0 4 * * 0 ",
        " @daily",
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
        "0 4 * * 0\n",
        "-1 4 * * 0",
        "L 4 * * 0",
    ] {
        assert!(!cron.is_match(wrong), "{wrong:?}");
    }
}

#[test]
fn duration_pattern_agrees_with_parser() {
    let duration = pattern_regex(duration);
    for text in ["90s", "5m", "72h", "7d", "1h30m", "0s", "", "5", "m", "-5m", "5 m", "1.5h", "2w", "5M", "1h30"] {
        assert_eq!(duration.is_match(text), crate::duration::parse(text).is_ok(), "{text:?}");
    }
}

#[test]
fn time_zone_pattern_accepts_names_and_refuses_offsets() {
    let zone = pattern_regex(zone);
    for good in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+3"] {
        assert!(zone.is_match(good), "{good}");
    }
    for wrong in ["", "+02:00", "../etc/passwd", "Europe/Berlin "] {
        assert!(!zone.is_match(wrong), "{wrong:?}");
    }
}

#[test]
fn minecraft_pin_pattern_accepts_single_version() {
    let minecraft = pattern_regex(minecraft);
    for good in ["1.21", "1.21.10", "26.1", "26.1.2", "1.21.9-rc1", "1.21-pre2"] {
        assert!(minecraft.is_match(good), "{good}");
    }
    for wrong in ["", "latest", "1.21.x", ">=1.21", "1.21.10 ", "v1.21", "21"] {
        assert!(!minecraft.is_match(wrong), "{wrong:?}");
    }
}

#[test]
fn url_pattern_requires_host_and_refuses_user_or_fragment() {
    let url = pattern_regex(url);
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
fn checksum_pattern_accepts_64_hex_digits_with_optional_prefix() {
    let sha256 = pattern_regex(sha256);
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
fn instant_pattern_requires_seconds_and_offset() {
    let instant = pattern_regex(instant);
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
fn hold_pattern_accepts_object_names_or_star() {
    let hold = hold(&mut SchemaGenerator::default());
    let hold = Regex::new(hold.get("items").unwrap()["pattern"].as_str().unwrap()).unwrap();
    let name = pattern_regex(object_name);
    for good in ["luckperms", "essentials-x", "a", "9.b"] {
        assert!(hold.is_match(good) && name.is_match(good), "{good}");
    }
    assert!(hold.is_match("*") && !name.is_match("*"));
    for wrong in ["", "**", "lu*", "*perms", "* ", "LuckPerms", "-luckperms", "luckperms.", "plugin/luckperms"] {
        assert!(!hold.is_match(wrong) && !name.is_match(wrong), "{wrong:?}");
    }
}
