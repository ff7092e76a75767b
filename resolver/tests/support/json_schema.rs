//! Pure. Validates the part of JSON Schema that the published schemas use. A strict mode also requires a description of
//! each field. For tests only.

use serde_json::Value;

/// Violations of `schema` in `value`, with their positions. Undescribed fields are violations.
pub(crate) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    found(&Checker { root: schema, describes_all: true }, value)
}

/// Violations in standard JSON Schema, which allows undescribed fields.
pub(crate) fn refusals(schema: &Value, value: &Value) -> Vec<String> {
    found(&Checker { root: schema, describes_all: false }, value)
}

fn found(checker: &Checker<'_>, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    checker.check(checker.root, value, "", &mut faults);
    faults
}

struct Checker<'a> {
    root: &'a Value,
    describes_all: bool,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
        let Value::Object(keywords) = schema else {
            assert_eq!(schema, true, "a schema that nothing fits");
            return;
        };
        let colon = if place.is_empty() { "" } else { ": " };
        let wrongs = keywords.iter().filter_map(|(keyword, says)| wrong(keyword, says, value));
        faults.extend(wrongs.map(|said| format!("{place}{colon}{said}")));
        if let Some(name) = schema["$ref"].as_str() {
            let named = self.root.pointer(name.strip_prefix('#').unwrap()).expect(name);
            self.check(&with_own(named, schema), value, place, faults);
        } else {
            self.fields(schema, value, place, faults);
        }
        for (keyword, exactly_one) in [("anyOf", false), ("oneOf", true)] {
            let Some(branches) = schema[keyword].as_array() else { continue };
            let fits = |branch: &&Value| {
                let mut faults = Vec::new();
                self.check(branch, value, place, &mut faults);
                faults.is_empty()
            };
            let count = branches.iter().filter(fits).count();
            if count == 0 || (exactly_one && count > 1) {
                let said = if count == 0 { "fits none of them" } else { "fits several" };
                faults.push(format!("{place}{colon}{said}"));
            }
        }
        for (at, item) in value.as_array().into_iter().flatten().enumerate() {
            let schema = schema["prefixItems"].get(at).or_else(|| schema.get("items"));
            if let Some(schema) = schema {
                self.check(schema, item, &format!("{place}[{at}]"), faults);
            }
        }
    }

    fn fields(&self, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
        let Value::Object(fields) = value else { return };
        let colon = if place.is_empty() { "" } else { ": " };
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                faults.push(format!("{place}{colon}`{name}` is missing"));
            }
        }
        let Some(properties) = schema["properties"].as_object() else { return };
        let further = schema.get("additionalProperties");
        let is_open = !self.describes_all && further != Some(&Value::Bool(false));
        for (name, value) in fields {
            let dot = if place.is_empty() { "" } else { "." };
            match properties.get(name).or_else(|| further.filter(|further| further.is_object())) {
                Some(schema) => self.check(schema, value, &format!("{place}{dot}{name}"), faults),
                None if is_open => {}
                None => faults.push(format!("{place}{colon}`{name}` is not described")),
            }
        }
    }
}

/// Merges a referenced schema with added fields, because both describe the same object.
fn with_own(named: &Value, schema: &Value) -> Value {
    let mut whole = named.clone();
    if let Some(own) = schema["properties"].as_object() {
        whole["properties"].as_object_mut().expect("fields are added to fields").extend(own.clone());
        let required = schema["required"].as_array().into_iter().flatten().cloned();
        whole["required"].as_array_mut().expect("all of them have to be there").extend(required);
    }
    whole
}

/// The violation of one keyword by a value, without nested values.
fn wrong(keyword: &str, says: &Value, value: &Value) -> Option<String> {
    let (text, items, limit) = (value.as_str(), value.as_array(), says.as_u64());
    let letters = text.map(|text| text.chars().count() as u64);
    let count = items.map(|items| items.len() as u64);
    match keyword {
        "type" => {
            let one = says.as_str().into_iter();
            let names: Vec<&str> = one.chain(says.as_array().into_iter().flatten().filter_map(Value::as_str)).collect();
            (!names.iter().any(|name| is_a(value, name))).then(|| format!("no {}", names.join(" or ")))
        }
        "const" => (value != says).then(|| format!("is not {says}")),
        "enum" => (!says.as_array().unwrap().contains(value)).then(|| format!("is none of {says}")),
        "minimum" => {
            (value.is_number() && value.as_f64().unwrap() < says.as_f64().unwrap()).then(|| format!("is below {says}"))
        }
        "minLength" => (letters.is_some() && letters < limit).then(|| "is too short".to_owned()),
        "maxLength" => (letters.is_some() && letters > limit).then(|| "is too long".to_owned()),
        "minItems" => (count.is_some() && count < limit).then(|| "has too few items".to_owned()),
        "maxItems" => (count.is_some() && count > limit).then(|| "has too many items".to_owned()),
        "format" => {
            let is_instant = |text: &str| text.parse::<jiff::Timestamp>().is_ok();
            (says == "date-time" && text.is_some_and(|text| !is_instant(text))).then(|| "is no instant".to_owned())
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
        unknown => Some(format!("`{unknown}` is a keyword that is not understood here")),
    }
}

fn is_a(value: &Value, name: &str) -> bool {
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
