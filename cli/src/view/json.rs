//! JSON documents of the commands.

use serde::Serialize;

/// A document: the schema key first, then the keys of the body.
#[derive(Serialize)]
struct Document<'a, T> {
    schema: String,
    #[serde(flatten)]
    body: &'a T,
}

/// The document of a command, indented, a line feed at its end. The schema is `offheap.COMMAND/1`; keys may be added to
/// a schema, never renamed. Ratios that cannot be computed are null.
pub(crate) fn document<T: Serialize>(command: &str, body: &T) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(&Document { schema: format!("offheap.{command}/1"), body })?;
    text.push('\n');
    Ok(text)
}

/// The same on one line, for commands that print a document a reading.
pub(crate) fn line<T: Serialize>(command: &str, body: &T) -> anyhow::Result<String> {
    let mut text = serde_json::to_string(&Document { schema: format!("offheap.{command}/1"), body })?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_comes_first_and_a_missing_ratio_is_null() {
        #[derive(serde::Serialize)]
        struct Body {
            total: u64,
            index: f64,
        }
        let text = super::document("frag", &Body { total: 7, index: f64::NAN }).unwrap();
        assert_eq!(text, "{\n  \"schema\": \"offheap.frag/1\",\n  \"total\": 7,\n  \"index\": null\n}\n");
    }
}
