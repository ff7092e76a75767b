//! Pure. Defines a blackout: a time in which a server is not updated or restarted.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// A time in which a server is not updated or restarted: once with `from` and `to`, or repeatedly with `cron` and `duration`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.from) || has(self.cron)")
        .message("set when the blackout applies: from and to for a single one, such as 2026-12-20T00:00:00+01:00, or \
        cron and duration for a recurring one")
        .field_path(".from").reason(Reason::FieldValueRequired),
    validation = Rule::new("!has(self.from) || !has(self.cron)")
        .message("a blackout is either single (from and to) or recurring (cron and duration): remove one of the two")
        .field_path(".cron").reason(Reason::FieldValueForbidden),
    validation = Rule::new("has(self.from) == has(self.to)")
        .message("from and to belong together: write both, or neither").field_path(".to").reason(Reason::FieldValueRequired),
    validation = Rule::new("!has(self.cron) || has(self.duration)")
        .message("set how long it lasts, such as 6h").field_path(".duration").reason(Reason::FieldValueRequired),
    validation = Rule::new("has(self.cron) || (!has(self.duration) && !has(self.timeZone))")
        .message("duration and timeZone belong to a cron: remove them, because from and to are complete").field_path(".duration").reason(Reason::FieldValueForbidden),
    validation = Rule::new("!has(self.from) || !has(self.to) || timestamp(self.from) < timestamp(self.to)")
        .message("to must be later than from").field_path(".to").reason(Reason::FieldValueInvalid),
)]
pub struct Blackout {
    /// The name of the blackout, which is used in messages. Unique in the list. At most 40 lower-case letters, digits and dashes.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The start of a single blackout: an RFC 3339 time with offset, such as `2026-12-20T00:00:00+01:00`. Requires `to`, and cannot be combined
    /// with `cron`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::instant")]
    pub from: Option<String>,
    /// The end of a single blackout, in the same format as `from`. Must be later than `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::instant")]
    pub to: Option<String>,
    /// The start of a repeated blackout: a cron expression with five fields, such as `0 18 * * 5`. Requires `duration`, and cannot be combined with
    /// `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::cron")]
    pub cron: Option<String>,
    /// The length of a repeated blackout, `1m` to `366d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub duration: Option<String>,
    /// The IANA time zone of `cron`, such as `Europe/Berlin`. Defaults to `spec.timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
}
