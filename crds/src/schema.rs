//! Pure. Defines the parts of a schema that several fields share. Every value is bounded: an unbounded string or list makes the cost of a CEL rule
//! unbounded, and the API server rejects the whole definition (measured).

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::duration::PATTERN;

const URL: &str = "^[A-Za-z][A-Za-z0-9+.-]*://[^/?#@ \\t\\r\\n]+([/?][^# \\t\\r\\n]*)?$";

const ZONE: &str = "^[A-Za-z][A-Za-z0-9_+/-]*$";

const OBJECT: &str = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?";

/// Five cron fields with their real ranges and names, or one of the `@` words. It is a `pattern`, because CEL's `matches()` on a long string
/// exceeds the cost limit of a whole definition (measured).
pub fn cron(_: &mut SchemaGenerator) -> Schema {
    const MINUTE: &str = "([0-5]?[0-9])";
    const HOUR: &str = "([01]?[0-9]|2[0-3])";
    const DAY: &str = "(0?[1-9]|[12][0-9]|3[01])";
    const MONTH: &str = "(0?[1-9]|1[0-2]|[jJ][aA][nN]|[fF][eE][bB]|[mM][aA][rR]|[aA][pP][rR]|[mM][aA][yY]|[jJ][uU][nN]|[jJ][uU][lL]|[aA][uU][gG]|[sS][eE][pP]|[oO][cC][tT]|[nN][oO][vV]|[dD][eE][cC])";
    const WEEKDAY: &str =
        "(0?[0-7]|[sS][uU][nN]|[mM][oO][nN]|[tT][uU][eE]|[wW][eE][dD]|[tT][hH][uU]|[fF][rR][iI]|[sS][aA][tT])";
    let field = |value: &str| {
        // Cron implementations differ in how they read a step after a single value. The scheduler rejects it too.
        let item = format!("((\\*|{value}-{value})(/[1-9][0-9]?)?|{value})");
        format!("{item}(,{item})*")
    };
    let five = [MINUTE, HOUR, DAY, MONTH, WEEKDAY].map(field).join("[ \\t]+");
    let pattern = format!("^[ \\t]*(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|{five})[ \\t]*$");
    json_schema!({"type": "string", "maxLength": 120, "pattern": pattern})
}

/// A duration as Nightshift parses it. The `format: duration` of Kubernetes accepts values that Go's parser rejects.
pub fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 32, "pattern": PATTERN})
}

/// The name of a time zone. The API server looks it up. Its library also accepts offsets (`+02:00`), which the pattern rejects. The rule rejects
/// `Local`, which is another zone on each machine.
pub fn zone(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string", "maxLength": 64, "pattern": ZONE,
        "x-kubernetes-validations": [{
            "rule": "self != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",
            "message": "must be an IANA time zone such as Europe/Berlin",
        }],
    })
}

/// A time in RFC 3339 format. It is a string and not a timestamp, because an object with an invalid value must still be readable. The format makes
/// the API server check the calendar. It also accepts times without offset or seconds, which the pattern rejects.
pub fn instant(_: &mut SchemaGenerator) -> Schema {
    const PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})$";
    json_schema!({"type": "string", "format": "date-time", "pattern": PATTERN})
}

/// The languages of `{in:de}`. The agent has their words. A test of the operator compares the two lists.
pub const LANGUAGES: [&str; 26] = [
    "cs", "da", "de", "el", "en", "es", "fi", "fr", "hu", "id", "it", "ja", "ko", "nb", "nl", "pl", "pt", "ro", "ru",
    "sk", "sv", "tr", "uk", "vi", "zh", "zh-TW",
];

/// A text for players. A brace is a normal character, but `{in:` starts a placeholder whose language must be known. The pattern spells this out
/// character by character, because patterns of the API server have no negative lookahead.
pub fn announcement(_: &mut SchemaGenerator) -> Schema {
    // After an incomplete `{in`, the next character may be a brace that starts another placeholder.
    const INCOMPLETE_PLACEHOLDER: &str = "(\\{(in?)?)*";
    let languages = LANGUAGES.join("|");
    let ends = format!("([^{{i]|i[^{{n]|in[^{{:]|in:({languages})\\}})");
    let pattern = format!("^([^{{]|{INCOMPLETE_PLACEHOLDER}\\{{{ends})*{INCOMPLETE_PLACEHOLDER}$");
    json_schema!({"type": "string", "minLength": 1, "maxLength": 256, "pattern": pattern})
}

/// A Minecraft version: two or three numbers, and an optional pre-release suffix.
pub fn minecraft(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[0-9]+\\.[0-9]+(\\.[0-9]+)?(-[0-9A-Za-z.-]+)?$"})
}

/// The slug or ID of a project.
pub fn project(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_.!@$()`+,-]+$"})
}

/// The name of a plugin, as users, its page or its JAR write it.
pub fn plugin_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^\\S(.*\\S)?$"})
}

/// Up to 16 plugin names.
pub fn plugin_names(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "maxItems": 16, "items": plugin_name(generator)})
}

/// The name of a backup, or `latest`.
pub fn backup_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^(latest|[0-9][0-9A-Za-z-]*)$"})
}

/// The name of an object.
pub fn object_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 63, "pattern": format!("^{OBJECT}$")})
}

/// The held plugins of a server: unique object names, and `*` for the whole version set.
pub fn hold(_: &mut SchemaGenerator) -> Schema {
    let pattern = format!("^(\\*|{OBJECT})$");
    json_schema!({
        "type": "array", "maxItems": 64, "x-kubernetes-list-type": "set",
        "items": {"type": "string", "minLength": 1, "maxLength": 63, "pattern": pattern},
    })
}

/// A version range: conditions separated by commas. The operator checks that no two of them exclude each other, and its message names the field.
pub fn version_range(_: &mut SchemaGenerator) -> Schema {
    const VERSION: &str = "[0-9A-Za-z][0-9A-Za-z.+_-]*";
    let condition = format!(" *(\\*|(>=|<=|>|<|=)? *{VERSION}(\\.\\*)?) *");
    json_schema!({"type": "string", "minLength": 1, "maxLength": 128, "pattern": format!("^{condition}(,{condition})*$")})
}

/// Unique patterns for file names without version and `.jar`.
pub fn jars(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 16, "x-kubernetes-list-type": "set",
        "items": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[^\\s/\\\\]([^/\\\\]*[^\\s/\\\\])?$"},
    })
}

/// An address with a host. It has no user, because that would be a password in a spec. It has no `#`, because a fragment is never sent to a server.
/// A separate rule with its own message requires HTTPS.
pub fn url(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 2048, "pattern": URL})
}

/// A SHA-256, with or without its prefix.
pub fn sha256(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 71, "pattern": "^(sha256:)?[0-9a-fA-F]{64}$"})
}

/// A short text.
pub fn text64(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 64})
}

/// A name, a reference or a file name.
pub fn text253(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 253})
}

/// A sentence.
pub fn text1024(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 1024})
}

/// Labels or annotations.
pub fn text_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 32,
        "additionalProperties": {"type": "string", "maxLength": 1024},
    })
}

/// A quantity in the format of Kubernetes.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 32, "pattern": "^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$"})
}

/// A list of short texts.
pub fn texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 64}})
}

/// The conditions of a Plugin.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    conditions_up_to(20)
}

/// The conditions of a server, which has some two dozen types. If one condition could not be written, the whole status could not be written.
pub fn conditions_of_a_server(_: &mut SchemaGenerator) -> Schema {
    conditions_up_to(40)
}

/// Conditions in the format of Kubernetes, one of each type.
fn conditions_up_to(most: u32) -> Schema {
    json_schema!({
        "type": "array", "maxItems": most, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object", "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {"type": "string", "maxLength": 64},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "reason": {"type": "string", "minLength": 1, "maxLength": 128},
                "message": {"type": "string", "maxLength": 1024},
            },
        },
    })
}

/// `matchLabels` and `matchExpressions` with limits.
pub fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object", "maxProperties": 16,
                "additionalProperties": {"type": "string", "maxLength": 63},
            },
            "matchExpressions": {
                "type": "array", "maxItems": 16,
                "items": {
                    "type": "object", "required": ["key", "operator"],
                    "properties": {
                        "key": {"type": "string", "maxLength": 317},
                        "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                        "values": {"type": "array", "maxItems": 32, "items": {"type": "string", "maxLength": 63}},
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests;
