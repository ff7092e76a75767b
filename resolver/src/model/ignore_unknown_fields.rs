//! Pure. Reads results of newer versions by ignoring unknown fields. It is only needed for the types that a result
//! shares with a lock, which refuse such fields. The other types of results ignore them anyway.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::{Error, Value};

/// Deserializes a `T` and ignores every field that no struct in it has. For `deserialize_with`.
pub(crate) fn passing_over<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(IgnoreUnknown(Value::deserialize(deserializer)?)).map_err(D::Error::custom)
}

/// A value that presents only known fields to each struct.
struct IgnoreUnknown(Value);

impl<'de> Deserializer<'de> for IgnoreUnknown {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => SeqDeserializer::new(items.into_iter().map(Self)).deserialize_any(visitor),
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, Self(value)));
                MapDeserializer::new(fields).deserialize_any(visitor)
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                plain.deserialize_any(visitor)
            }
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Value::Object(fields) = &mut self.0 {
            fields.retain(|name, _| known.contains(&name.as_str()));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for IgnoreUnknown {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
