//! Pure. A time in which a server is left alone.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// A time in which a server is left alone: `from` and `to`, or again and again by `cron` and `duration`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.from) || has(self.cron)")
        .message("say when: from and to for once, such as 2026-12-20T00:00:00+01:00; or cron and duration for again and again")
        .field_path(".from").reason(Reason::FieldValueRequired),
    validation = Rule::new("!has(self.from) || !has(self.cron)")
        .message("a blackout comes once (from and to) or again and again (cron and duration); remove one of the two")
        .field_path(".cron").reason(Reason::FieldValueForbidden),
    validation = Rule::new("has(self.from) == has(self.to)")
        .message("from and to belong together: write both, or neither").field_path(".to").reason(Reason::FieldValueRequired),
    validation = Rule::new("!has(self.cron) || has(self.duration)")
        .message("say how long it lasts, such as 6h").field_path(".duration").reason(Reason::FieldValueRequired),
    validation = Rule::new("has(self.cron) || (!has(self.duration) && !has(self.timeZone))")
        .message("duration and timeZone belong to a cron; from and to say it all").field_path(".duration").reason(Reason::FieldValueForbidden),
    validation = Rule::new("!has(self.from) || !has(self.to) || timestamp(self.from) < timestamp(self.to)")
        .message("to must be later than from").field_path(".to").reason(Reason::FieldValueInvalid),
)]
pub struct Blackout {
    /// Its name, for messages; no two are the same.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// When it begins, once: an instant with its offset, such as `2026-12-20T00:00:00+01:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::instant")]
    pub from: Option<String>,
    /// When it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::instant")]
    pub to: Option<String>,
    /// When it begins, again and again: five cron fields, such as `0 18 * * 5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::cron")]
    pub cron: Option<String>,
    /// How long it lasts then, from `1m` to `366d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub duration: Option<String>,
    /// The zone of the cron, when it is not `spec.timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: Option<String>,
}
