//! Pure. Defines JSON Schemas of the types with a custom JSON format.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::model::lock::FormatVersion;
use crate::model::version::Minecraft;

impl JsonSchema for Minecraft {
    fn schema_name() -> Cow<'static, str> {
        "Minecraft".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A Minecraft version such as `1.21.10` or `26.1`.",
            "type": "string", "minLength": 1, "maxLength": 48,
        })
    }
}

impl<const NEWEST: u32> JsonSchema for FormatVersion<NEWEST> {
    fn schema_name() -> Cow<'static, str> {
        "FormatVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let versions: Vec<u32> = (1..=NEWEST).collect();
        json_schema!({"description": "The format of a file that is kept.", "type": "integer", "enum": versions})
    }
}
