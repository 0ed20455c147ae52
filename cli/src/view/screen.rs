//! What the reader of a text can take.

use std::borrow::Cow;

/// Width and colour of the place where a text will appear. Detected once, by `output`; views only read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Columns of the terminal; `None` when the text goes to a file or a pipe, where nothing is shortened.
    pub(crate) width: Option<usize>,
    /// Escape sequences are welcome.
    pub(crate) colour: bool,
}

/// Emphasis of a piece of text, by meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// Nothing special.
    #[default]
    Plain,
    /// Headings and the figure that matters.
    Strong,
    /// What may be skipped while reading.
    Faint,
    /// As it should be; shrinking.
    Good,
    /// Look at this.
    Warning,
    /// Act on this; growing.
    Bad,
}

impl Style {
    const fn sgr(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Faint => "\x1b[2m",
            Self::Good => "\x1b[32m",
            Self::Warning => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

impl Screen {
    /// `text` in `style`, or as it is where colour is not welcome.
    pub(crate) fn paint<'a>(&self, style: Style, text: &'a str) -> Cow<'a, str> {
        if self.colour && style != Style::Plain && !text.is_empty() {
            Cow::Owned(format!("{}{text}\x1b[0m", style.sgr()))
        } else {
            Cow::Borrowed(text)
        }
    }
}
