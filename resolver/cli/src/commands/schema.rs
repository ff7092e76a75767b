//! Pure. `resolver schema`: generates JSON Schemas of the command's output formats.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};

use super::plan::ServerPlan;
use super::verify::VerifyReport;
use super::{outdated, ready};
use crate::args::SchemaName;
use crate::what_if::Assumptions;
use resolver::explanation::Explanation;
use resolver::model::lock::{Difference, Lock};

/// The output of `explain --format json` for each server.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only used to generate the JSON Schema")]
enum ExplainOutput {
    /// An answer without assumptions.
    Explanation(Explanation),
    /// An answer under assumptions (`--without`, `--assume`).
    WhatIf(WhatIf),
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only used to generate the JSON Schema")]
struct WhatIf {
    /// Distinguishes it from an answer without assumptions.
    #[schemars(extend("const" = "whatIf"))]
    answer: String,
    /// The assumptions.
    assumptions: Assumptions,
    /// The answer under these assumptions.
    then: Explanation,
}

/// Allows additional fields, also in parts that are shared with a lock, where they are not allowed.
fn allow_additional_fields(schema: &mut Schema) {
    if schema.get("additionalProperties") == Some(&false.into()) {
        schema.remove("additionalProperties");
    }
}

/// The schema as text.
pub(crate) fn schema(name: SchemaName) -> String {
    // The schema of the written form, not of every readable form.
    let written = SchemaSettings::draft2020_12().for_serialize();
    // Locks are stored and contain their format version. Answers may get more fields in a newer version.
    let generator = match name {
        SchemaName::Lock => written,
        SchemaName::Explanation
        | SchemaName::Difference
        | SchemaName::Plan
        | SchemaName::Outdated
        | SchemaName::Ready
        | SchemaName::Verify => written.with_transform(RecursiveTransform(allow_additional_fields)),
    }
    .into_generator();
    let (title, mut schema): (&str, Schema) = match name {
        SchemaName::Lock => {
            let mut schema = generator.into_root_schema_for::<Lock>();
            // The type's doc comment is written for developers.
            schema.insert("description".to_owned(), "Everything that one server runs, file by file.".into());
            ("Nightshift: the lock of a server", schema)
        }
        SchemaName::Explanation => (
            "Nightshift: the versions that a server should run, and why",
            generator.into_root_schema_for::<ExplainOutput>(),
        ),
        SchemaName::Difference => {
            ("Nightshift: the difference between two locks", generator.into_root_schema_for::<Difference>())
        }
        SchemaName::Plan => (
            "Nightshift: the planned changes of a server, and when they are applied",
            generator.into_root_schema_for::<ServerPlan>(),
        ),
        SchemaName::Outdated => {
            let mut schema = generator.into_root_schema_for::<outdated::OutdatedReport>();
            schema.insert("description".to_owned(), "The outdated software of one server.".into());
            ("Nightshift: the outdated software of a server, and why", schema)
        }
        SchemaName::Ready => {
            let mut schema = generator.into_root_schema_for::<ready::ReadyReport>();
            schema.insert("description".to_owned(), "The readiness of all requested servers.".into());
            ("Nightshift: the plugins and servers that are ready for a Minecraft version", schema)
        }
        SchemaName::Verify => (
            "Nightshift: whether a lock is still correct, and the differences",
            generator.into_root_schema_for::<VerifyReport>(),
        ),
    };
    schema.insert("title".to_owned(), title.into());
    serde_json::to_string_pretty(&schema).expect("a schema has string keys only") + "\n"
}
