//! Pure. Simulates the output of a newer version. For tests only.

use serde_json::Value;

/// The value with an unknown additional field in every object.
pub(crate) fn with_further_fields(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields_read = fields.iter().map(|(name, value)| (name.clone(), with_further_fields(value)));
            fields_read.chain([("further".to_owned(), Value::from(["unknown"].as_slice()))]).collect()
        }
        Value::Array(items) => items.iter().map(with_further_fields).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
