//! Pure. `resolver schema`: generates JSON Schemas of the command's output formats.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};

use super::args::SchemaName;
use super::plan::ServerPlan;
use super::verify::VerifyReport;
use super::what_if::Assumptions;
use super::{outdated, ready};
use crate::explain::Explanation;
use crate::lock::{Difference, Lock};

/// The output of `explain --format json` for each server.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it only describes what is written from the types in it")]
enum ExplainOutput {
    /// An answer without assumptions.
    Explanation(Explanation),
    /// An answer under assumptions (`--without`, `--assume`).
    WhatIf(WhatIf),
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "as above")]
struct WhatIf {
    /// Distinguishes it from an answer without assumptions.
    #[schemars(extend("const" = "whatIf"))]
    answer: String,
    /// The assumptions.
    supposed: Assumptions,
    /// The answer under these assumptions.
    then: Explanation,
}

/// Allows additional fields, also in parts that are shared with a lock, where they are not allowed.
fn open(schema: &mut Schema) {
    if schema.get("additionalProperties") == Some(&false.into()) {
        schema.remove("additionalProperties");
    }
}

/// The schema as text.
pub(super) fn schema(of: SchemaName) -> String {
    // The schema of the written form, not of every readable form.
    let written = SchemaSettings::draft2020_12().for_serialize();
    // Locks are stored and contain their format version. Answers may get more fields in a newer version.
    let generator = match of {
        SchemaName::Lock => written,
        SchemaName::Explanation
        | SchemaName::Difference
        | SchemaName::Plan
        | SchemaName::Outdated
        | SchemaName::Ready
        | SchemaName::Verify => written.with_transform(RecursiveTransform(open)),
    }
    .into_generator();
    let (title, mut schema): (&str, Schema) = match of {
        SchemaName::Lock => {
            let mut schema = generator.into_root_schema_for::<Lock>();
            // The type's doc comment is written for developers.
            schema.insert("description".to_owned(), "Everything that one server runs, file by file.".into());
            ("Nightshift: the lock of a server", schema)
        }
        SchemaName::Explanation => {
            ("Nightshift: what should run on a server, and why", generator.into_root_schema_for::<ExplainOutput>())
        }
        SchemaName::Difference => {
            ("Nightshift: what differs between two locks", generator.into_root_schema_for::<Difference>())
        }
        SchemaName::Plan => {
            ("Nightshift: what would be changed on a server, and when", generator.into_root_schema_for::<ServerPlan>())
        }
        SchemaName::Outdated => {
            let mut schema = generator.into_root_schema_for::<outdated::OutdatedReport>();
            schema.insert("description".to_owned(), "What is behind on one server.".into());
            ("Nightshift: what is not at its newest on a server, and why", schema)
        }
        SchemaName::Ready => {
            let mut schema = generator.into_root_schema_for::<ready::ReadyReport>();
            schema.insert("description".to_owned(), "The board over all servers that were asked about.".into());
            ("Nightshift: who is ready for a Minecraft version", schema)
        }
        SchemaName::Verify => {
            ("Nightshift: whether a lock holds, and what does not", generator.into_root_schema_for::<VerifyReport>())
        }
    };
    schema.insert("title".to_owned(), title.into());
    serde_json::to_string_pretty(&schema).expect("a schema has string keys only") + "\n"
}
