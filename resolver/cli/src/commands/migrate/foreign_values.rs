//! Pure. Reads single values of minecraft-operator's objects, and converts those that it writes in another format.

use crate::input::yaml::{YamlNode, YamlValue};
use crds::duration;
use jiff::SignedDuration;

/// The value at a path such as `spec.rcon.port`. A `null` counts as absent, as for the API server.
pub(super) fn find<'n>(node: &'n YamlNode, path: &str) -> Option<&'n YamlNode> {
    path.split('.').try_fold(node, |node, key| node.get(key)).filter(|found| found.tree != YamlValue::Null)
}

/// The value at a path, unless it is an empty text.
pub(super) fn find_filled<'n>(node: &'n YamlNode, path: &str) -> Option<&'n YamlNode> {
    find(node, path).filter(|found| found.text() != Some(""))
}

/// The text at a path. An empty text counts as absent, as for Go.
pub(super) fn text_at<'n>(node: &'n YamlNode, path: &str) -> Option<&'n str> {
    find_filled(node, path).and_then(YamlNode::text)
}

/// The truth value at a path.
pub(super) fn flag_at(node: &YamlNode, path: &str) -> Option<bool> {
    match find(node, path)?.tree {
        YamlValue::Bool(value) => Some(value),
        YamlValue::Null | YamlValue::Number(_) | YamlValue::Text(_) | YamlValue::List(_) | YamlValue::Map(_) => None,
    }
}

/// The number at a path.
pub(super) fn number_at(node: &YamlNode, path: &str) -> Option<u64> {
    match &find(node, path)?.tree {
        YamlValue::Number(number) => number.as_u64(),
        YamlValue::Null | YamlValue::Bool(_) | YamlValue::Text(_) | YamlValue::List(_) | YamlValue::Map(_) => None,
    }
}

/// The items of a list.
pub(super) fn items(node: &YamlNode) -> &[YamlNode] {
    if let YamlValue::List(items) = &node.tree { items } else { &[] }
}

/// A duration as Nightshift writes it. Go also writes fractions and units below a second, which are rounded up. A text
/// that is no duration is returned as it is: the check of the result rejects it.
pub(super) fn convert_duration(text: &str) -> String {
    if text == "0" {
        return "0s".to_owned();
    }
    let foreign = || text.parse::<SignedDuration>().ok().filter(|duration| !duration.is_negative());
    match (duration::parse(text), foreign()) {
        (Err(_), Some(duration)) => {
            let seconds = duration.as_secs() + i64::from(duration.subsec_nanos() > 0);
            match (seconds % 3600, seconds % 60) {
                (0, _) => format!("{}h", seconds / 3600),
                (_, 0) => format!("{}m", seconds / 60),
                (_, _) => format!("{seconds}s"),
            }
        }
        (Ok(_), _) | (Err(_), None) => text.to_owned(),
    }
}

/// A cron expression of Go: the time zone that it may begin with, and the five fields.
pub(super) fn convert_cron(text: &str) -> (Option<&str>, String) {
    let zoned = text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ="));
    let (zone, fields) = match zoned.and_then(|zoned| zoned.split_once(' ')) {
        Some((zone, fields)) => (Some(zone), fields),
        None => (None, text),
    };
    (zone, fields.trim().replace('?', "*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_duration_is_written_in_whole_seconds() {
        for (go, converted) in [
            ("168h", "168h"),
            ("72h0m0s", "72h0m0s"),
            ("0", "0s"),
            ("1.5h", "90m"),
            ("1500ms", "2s"),
            ("90.5s", "91s"),
            ("soon", "soon"),
            ("-5m", "-5m"),
        ] {
            assert_eq!(convert_duration(go), converted, "{go}");
        }
    }

    #[test]
    fn cron_zone_is_separated_from_fields() {
        assert_eq!(convert_cron("0 4 * * 0"), (None, "0 4 * * 0".to_owned()));
        assert_eq!(convert_cron("CRON_TZ=Europe/Berlin 0 4 ? * 0"), (Some("Europe/Berlin"), "0 4 * * 0".to_owned()));
        assert_eq!(convert_cron("TZ=UTC 0 4 * * 0"), (Some("UTC"), "0 4 * * 0".to_owned()));
    }
}
