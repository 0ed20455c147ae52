//! What the commands that rank functions are asked in the same words.

use super::{Loaded, Options, Select, Source, load_last};
use offheap_symbolizer::profile::{Graph, GroupBy, ValueType};

/// What is asked of a profile that is shown as functions or the like.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Query {
    /// What a row is: function, filefunction, line, file, module, thread, go
    #[arg(long, value_name = "WHAT", default_value = "function")]
    pub(crate) by: GroupBy,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) select: Select,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// A profile with the value that is to be shown.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) loaded: Loaded,
    /// Index of the value; of an empty profile, which has none, 0.
    pub(crate) value: usize,
}

impl Query {
    /// Read the profile and drop what is not selected.
    ///
    /// # Errors
    /// When it cannot be read, or has no such value.
    pub(crate) fn ask(&self, inputs: &[Source]) -> anyhow::Result<Answer> {
        let mut options = self.options.clone();
        options.parse.by_thread = self.by == GroupBy::Thread;
        let mut loaded = load_last(inputs, &options)?;
        let value = self.select.value(&loaded.profile)?;
        self.select.apply(&mut loaded.profile);
        Ok(Answer { loaded, value })
    }
}

impl Answer {
    /// What the value is called and counted in; `None` of an empty profile.
    pub(crate) fn value_type(&self) -> Option<&ValueType> {
        self.loaded.profile.value_types.get(self.value)
    }

    /// Its name, empty of an empty profile.
    pub(crate) fn kind(&self) -> &str {
        self.value_type().map_or("", |value| &*value.kind)
    }

    /// The call graph of the value.
    pub(crate) fn graph(&self, by: GroupBy) -> Graph {
        match self.value_type() {
            Some(_) => self.loaded.profile.graph(self.value, by),
            None => Graph::default(),
        }
    }
}
