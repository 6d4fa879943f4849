//! The reasons why a message is not translated on the native path.

/// A reason, as labelled in the metric `cdc_native_messages_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Not a common row message: a statement, a heartbeat, a tombstone, a rare member or shape.
    Shape,
    /// JSON that is not spelled in the shortest way, or text that is not JSON.
    Spelling,
    /// The plain path compiled no layout, or reads the rows of the layout in a special way.
    Layout,
    /// The cells of a row differ from the columns of the layout, or are in another order.
    Columns,
    /// A cell whose converter reports an issue or an assumption.
    Cell,
    /// A key column is missing or NULL, before or after the change.
    Key,
    /// The value, the rows or a record exceed a limit.
    Size,
    /// A projection has a special rule for the row.
    Projection,
    /// A bug in this code.
    Panic,
}

impl Reason {
    /// The label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Shape => "shape",
            Self::Spelling => "spelling",
            Self::Layout => "layout",
            Self::Columns => "columns",
            Self::Cell => "cell",
            Self::Key => "key",
            Self::Size => "size",
            Self::Projection => "projection",
            Self::Panic => "panic",
        }
    }
}

/// A part of a message, or the reason why it is not translated.
pub type Read<T> = Result<T, Reason>;
