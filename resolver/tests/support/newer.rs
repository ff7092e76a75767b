//! Pure. What a newer version might write. For tests only.

use serde_json::Value;

/// The same with a field in every object that nobody knows today.
pub(crate) fn with_further_fields(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let known = fields.iter().map(|(name, value)| (name.clone(), with_further_fields(value)));
            known.chain([("further".to_owned(), Value::from(["unheard of"].as_slice()))]).collect()
        }
        Value::Array(items) => items.iter().map(with_further_fields).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
