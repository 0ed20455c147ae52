//! A whole profile as JSON, written sample by sample: with every frame spelled out it is many times the size of the
//! profile.
//!
//! ```text
//! {"schema":"offheap.convert/1","total":20480,"sample_types":[{"type":"inuse_space","unit":"bytes"}],…,"samples":[
//! {"values":[3,12288],"frames":[{"function":"main.main","file":"/src/main.go","line":12,…}],"labels":{"origin":"native"}},
//! …
//! ]}
//! ```

use offheap_symbolizer::profile::{LabelValue, Profile, Sample, StackFrame, ValueType};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Serialize)]
struct Head<'a> {
    schema: &'static str,
    /// Sum of the value `sample_type`.
    total: i64,
    sample_type: &'a str,
    sample_types: Vec<SampleType<'a>>,
    /// Sums of all values, in the order of `sample_types`.
    totals: Vec<i64>,
    period: i64,
    period_type: Option<SampleType<'a>>,
    time_nanos: i64,
    duration_nanos: i64,
    comments: Vec<&'a str>,
}

#[derive(Serialize)]
struct SampleType<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    unit: &'a str,
}

#[derive(Serialize)]
struct SampleJson<'a> {
    values: &'a [i64],
    /// Leaf first.
    frames: Vec<FrameJson<'a>>,
    labels: BTreeMap<&'a str, LabelJson<'a>>,
}

#[derive(Serialize)]
struct FrameJson<'a> {
    /// The name, or `library+0x1234` where there is none.
    function: Cow<'a, str>,
    file: Option<&'a str>,
    line: Option<i64>,
    module: Option<&'a str>,
    address: Option<u64>,
    inlined: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum LabelJson<'a> {
    Text(&'a str),
    Number(i64),
}

/// Write the profile; `value` is the one that `total` sums.
///
/// # Errors
/// Those of the writer.
pub(crate) fn write(profile: &Profile, value: usize, to: &mut dyn Write) -> io::Result<()> {
    let head = Head {
        schema: "offheap.convert/1",
        total: if profile.value_types.is_empty() { 0 } else { profile.total(value) },
        sample_type: profile.value_types.get(value).map_or("", |value| &*value.kind),
        sample_types: profile.value_types.iter().map(SampleType::of).collect(),
        totals: (0..profile.value_types.len()).map(|value| profile.total(value)).collect(),
        period: profile.period,
        period_type: profile.period_type.as_ref().map(SampleType::of),
        time_nanos: profile.time_nanos,
        duration_nanos: profile.duration_nanos,
        comments: profile.comments.iter().map(|comment| &**comment).collect(),
    };
    let head = serde_json::to_vec(&head)?;
    // The head's closing brace comes after the samples.
    to.write_all(&head[..head.len() - 1])?;
    to.write_all(b",\"samples\":[")?;
    for (index, sample) in profile.samples.iter().enumerate() {
        to.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *to, &SampleJson::of(profile, sample))?;
    }
    to.write_all(b"\n]}\n")
}

impl<'a> SampleType<'a> {
    fn of(value: &'a ValueType) -> Self {
        Self { kind: &value.kind, unit: &value.unit }
    }
}

impl<'a> SampleJson<'a> {
    fn of(profile: &'a Profile, sample: &'a Sample) -> Self {
        let label = |value: &'a LabelValue| match value {
            LabelValue::Text(text) => LabelJson::Text(text),
            LabelValue::Number(number, _) => LabelJson::Number(*number),
        };
        Self {
            values: &sample.values,
            frames: profile.frames(sample).map(FrameJson::of).collect(),
            labels: sample.labels.iter().map(|l| (&*l.key, label(&l.value))).collect(),
        }
    }
}

impl<'a> FrameJson<'a> {
    fn of(frame: StackFrame<'a>) -> Self {
        let address = frame.location.address.0;
        Self {
            function: frame.name(),
            file: frame.function().map(|function| &*function.file).filter(|file| !file.is_empty()),
            line: frame.line.map(|line| line.line).filter(|&line| line != 0),
            module: frame.mapping().map(|mapping| &*mapping.path).filter(|path| !path.is_empty()),
            address: (address != 0).then_some(address),
            inlined: frame.inlined,
        }
    }
}

#[cfg(test)]
mod tests {
    use offheap_symbolizer::profile::{Label, Line, ProfileBuilder, Sample, ValueType};

    #[test]
    fn it_is_one_document() {
        let mut builder = ProfileBuilder::new(vec![ValueType::new("inuse_space", "bytes")]);
        let function = builder.function("put", "_put", "put.c", 3);
        let location = builder.location_of_lines(&[Line { function, line: 7, column: 0 }]);
        for value in [5, 6] {
            builder.sample(Sample {
                locations: vec![location],
                values: vec![value],
                labels: vec![Label::text("origin", "native"), Label::number("bytes", 64, None)],
                ..Sample::default()
            });
        }
        let mut out = Vec::new();
        super::write(&builder.finish(), 0, &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["total"], 11);
        assert_eq!(json["sample_types"][0]["type"], "inuse_space");
        let frame = serde_json::json!({
            "function": "put", "file": "put.c", "line": 7, "module": null, "address": null, "inlined": false,
        });
        let expected = serde_json::json!({
            "values": [6], "frames": [frame], "labels": {"origin": "native", "bytes": 64},
        });
        assert_eq!(json["samples"][1], expected);
        super::write(&ProfileBuilder::default().finish(), 0, &mut Vec::new()).unwrap();
    }
}
