//! `GET` and `PUT /v1/mallctl/NAME`.

use super::mallctl::{self, Control, Kind, MallctlError, Value};
use serde_json::{Value as Json, json};
use std::fmt;
use std::str::FromStr;

/// Why a control was not read or set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnobError {
    /// Not in the table.
    Unknown(String),
    /// Not on the list of what may be set.
    ReadOnly(String),
    /// No value to read.
    WriteOnly(String),
    /// The text is not a value of the control's type.
    Value {
        name: String,
        expected: &'static str,
        given: String,
    },
    Mallctl(MallctlError),
}

impl fmt::Display for KnobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "unknown control {name:?}: expected a name of the jemalloc manual"),
            Self::ReadOnly(name) => {
                let list = Control::settable().collect::<Vec<_>>();
                write!(f, "control {name:?} cannot be set here; these can: {}", list.join(", "))
            }
            Self::WriteOnly(name) => write!(f, "control {name:?} has no value: use PUT to make it act"),
            Self::Value { name, expected, given } => {
                write!(f, "{given:?} is no value for {name}: expected {expected} as the request body")
            }
            Self::Mallctl(error) => error.fmt(f),
        }
    }
}

impl From<MallctlError> for KnobError {
    fn from(error: MallctlError) -> Self {
        Self::Mallctl(error)
    }
}

/// `{"name": NAME, "value": VALUE}`.
pub(crate) fn get(name: &str) -> Result<Json, KnobError> {
    let control = find(name)?;
    if control.kind() == Kind::Act {
        return Err(KnobError::WriteOnly(name.to_owned()));
    }
    if name.starts_with("stats.") {
        mallctl::advance_epoch()?;
    }
    Ok(answer(name, &control.read()?))
}

/// Sets a control from the text of a request body and answers its value after.
pub(crate) fn put(name: &str, body: &str) -> Result<Json, KnobError> {
    let control = find(name)?;
    if !control.is_settable() {
        return Err(KnobError::ReadOnly(name.to_owned()));
    }
    let given = body.trim();
    let value = parse(control.kind(), given).map_err(|expected| KnobError::Value {
        name: name.to_owned(),
        expected,
        given: given.to_owned(),
    })?;
    control.set(&value)?;
    if value == Value::Act { Ok(answer(name, &value)) } else { get(name) }
}

fn find(name: &str) -> Result<Control<'_>, KnobError> {
    Control::find(name).ok_or_else(|| KnobError::Unknown(name.to_owned()))
}

fn answer(name: &str, value: &Value) -> Json {
    let value = match value {
        Value::Bool(on) => json!(on),
        Value::Unsigned(number) => json!(number),
        Value::U64(number) => json!(number),
        Value::I64(number) => json!(number),
        Value::Size(number) => json!(number),
        Value::SSize(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Act => Json::Null,
    };
    json!({ "name": name, "value": value })
}

/// The value that a text says; what was expected where it says none.
fn parse(kind: Kind, text: &str) -> Result<Value, &'static str> {
    fn number<T: FromStr>(text: &str) -> Result<T, &'static str> {
        text.parse().map_err(|_| "a whole number")
    }
    Ok(match kind {
        Kind::Bool => Value::Bool(text.parse().map_err(|_| "true or false")?),
        Kind::Unsigned => Value::Unsigned(number(text)?),
        Kind::U64 => Value::U64(number(text)?),
        Kind::I64 => Value::I64(number(text)?),
        Kind::Size => Value::Size(number(text)?),
        Kind::SSize => Value::SSize(number(text)?),
        Kind::Text => Value::Text(text.to_owned()),
        Kind::Act => Value::Act,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_typed_and_writes_are_listed() {
        assert_eq!(get("arenas.page").unwrap()["value"], 4096);
        assert_eq!(get("config.stats").unwrap()["value"], true);
        assert!(matches!(get("thread.arena"), Err(KnobError::Unknown(_))));
        assert!(matches!(get("arena.0.purge"), Err(KnobError::WriteOnly(_))));
        assert!(matches!(put("opt.prof", "true"), Err(KnobError::ReadOnly(_))));
        assert!(matches!(put("prof.active", "true"), Err(KnobError::ReadOnly(_))));
        assert!(matches!(put("arena.0.dirty_decay_ms", "soon"), Err(KnobError::Value { .. })));
        assert_eq!(put("arena.0.dirty_decay_ms", "777\n").unwrap()["value"], 777);
        assert_eq!(put("arena.0.purge", "").unwrap()["value"], Json::Null);
    }
}
