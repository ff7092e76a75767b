//! Pure. Validates the part of JSON Schema that the published schemas use. A strict mode also requires a description of
//! each field. For tests only.

use serde_json::Value;

/// Violations of `schema` in `value`, with their positions. Undescribed fields are violations.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<String> {
    collect_violations(&Checker { root: schema, is_strict: true }, value)
}

/// Violations in standard JSON Schema, which allows undescribed fields.
pub(crate) fn standard_violations(schema: &Value, value: &Value) -> Vec<String> {
    collect_violations(&Checker { root: schema, is_strict: false }, value)
}

fn collect_violations(checker: &Checker<'_>, value: &Value) -> Vec<String> {
    let mut violations = Vec::new();
    checker.check(checker.root, value, "", &mut violations);
    violations
}

struct Checker<'a> {
    root: &'a Value,
    is_strict: bool,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, path: &str, violations: &mut Vec<String>) {
        let Value::Object(keywords) = schema else {
            assert_eq!(schema, true, "a boolean schema must be `true`");
            return;
        };
        let colon = if path.is_empty() { "" } else { ": " };
        let messages = keywords.iter().filter_map(|(keyword, expected)| keyword_violation(keyword, expected, value));
        violations.extend(messages.map(|message| format!("{path}{colon}{message}")));
        if let Some(name) = schema["$ref"].as_str() {
            let named = self.root.pointer(name.strip_prefix('#').unwrap()).expect(name);
            self.check(&merged(named, schema), value, path, violations);
        } else {
            self.check_fields(schema, value, path, violations);
        }
        for (keyword, exactly_one) in [("anyOf", false), ("oneOf", true)] {
            let Some(branches) = schema[keyword].as_array() else { continue };
            let matches = |branch: &&Value| {
                let mut violations = Vec::new();
                self.check(branch, value, path, &mut violations);
                violations.is_empty()
            };
            let count = branches.iter().filter(matches).count();
            if count == 0 || (exactly_one && count > 1) {
                let message = if count == 0 { "matches no branch" } else { "matches several branches" };
                violations.push(format!("{path}{colon}{message} of `{keyword}`"));
            }
        }
        for (at, item) in value.as_array().into_iter().flatten().enumerate() {
            let schema = schema["prefixItems"].get(at).or_else(|| schema.get("items"));
            if let Some(schema) = schema {
                self.check(schema, item, &format!("{path}[{at}]"), violations);
            }
        }
    }

    fn check_fields(&self, schema: &Value, value: &Value, path: &str, violations: &mut Vec<String>) {
        let Value::Object(fields) = value else { return };
        let colon = if path.is_empty() { "" } else { ": " };
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                violations.push(format!("{path}{colon}`{name}` is missing"));
            }
        }
        let Some(properties) = schema["properties"].as_object() else { return };
        let further = schema.get("additionalProperties");
        let is_open = !self.is_strict && further != Some(&Value::Bool(false));
        for (name, value) in fields {
            let dot = if path.is_empty() { "" } else { "." };
            match properties.get(name).or_else(|| further.filter(|further| further.is_object())) {
                Some(schema) => self.check(schema, value, &format!("{path}{dot}{name}"), violations),
                None if is_open => {}
                None => violations.push(format!("{path}{colon}`{name}` is not described")),
            }
        }
    }
}

/// Merges a referenced schema with added fields, because both describe the same object.
fn merged(named: &Value, schema: &Value) -> Value {
    let mut whole = named.clone();
    if let Some(added) = schema["properties"].as_object() {
        whole["properties"].as_object_mut().expect("a referenced schema has properties").extend(added.clone());
        let required = schema["required"].as_array().into_iter().flatten().cloned();
        whole["required"].as_array_mut().expect("a referenced schema lists its required fields").extend(required);
    }
    whole
}

/// The violation of one keyword by a value, without nested values.
fn keyword_violation(keyword: &str, expected: &Value, value: &Value) -> Option<String> {
    let (text, items, limit) = (value.as_str(), value.as_array(), expected.as_u64());
    let letters = text.map(|text| text.chars().count() as u64);
    let count = items.map(|items| items.len() as u64);
    match keyword {
        "type" => {
            let one = expected.as_str().into_iter();
            let names: Vec<&str> =
                one.chain(expected.as_array().into_iter().flatten().filter_map(Value::as_str)).collect();
            (!names.iter().any(|name| has_type(value, name))).then(|| format!("is not of type {}", names.join(" or ")))
        }
        "const" => (value != expected).then(|| format!("is not {expected}")),
        "enum" => (!expected.as_array().unwrap().contains(value)).then(|| format!("is not one of {expected}")),
        "minimum" => (value.is_number() && value.as_f64().unwrap() < expected.as_f64().unwrap())
            .then(|| format!("is below {expected}")),
        "minLength" => (letters.is_some() && letters < limit).then(|| "is too short".to_owned()),
        "maxLength" => (letters.is_some() && letters > limit).then(|| "is too long".to_owned()),
        "minItems" => (count.is_some() && count < limit).then(|| "has too few items".to_owned()),
        "maxItems" => (count.is_some() && count > limit).then(|| "has too many items".to_owned()),
        "format" => {
            let is_date_time = |text: &str| text.parse::<jiff::Timestamp>().is_ok();
            let is_wrong = expected == "date-time" && text.is_some_and(|text| !is_date_time(text));
            is_wrong.then(|| "is not a date with time".to_owned())
        }
        // Always satisfied, or checked with the nested values.
        "$ref"
        | "anyOf"
        | "oneOf"
        | "properties"
        | "required"
        | "additionalProperties"
        | "items"
        | "prefixItems"
        | "title"
        | "description"
        | "default"
        | "$schema"
        | "$defs"
        | "uniqueItems" => None,
        unknown => Some(format!("the schema keyword `{unknown}` is not supported here")),
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
