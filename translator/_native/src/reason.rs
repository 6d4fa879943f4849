//! Why a message is not taken.

/// A reason, as the metric `cdc_native_messages_total` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No common row message: a statement, a heartbeat, a tombstone, a member or a shape that is rare.
    Shape,
    /// JSON that is not spelled in the shortest way, or none at all.
    Spelling,
    /// The plain way compiled no layout, or one whose rows it reads in a special way.
    Layout,
    /// The cells of a row are not those of the layout, in its order.
    Columns,
    /// A cell for which its converter has an issue or an assumption.
    Cell,
    /// The key holds NULL, or has changed.
    Key,
    /// The value, the rows or a record are beyond a limit.
    Size,
    /// A projection has a rule for the row beyond the common ones.
    Projection,
    /// The code has a bug here.
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

/// What is read of a message, or why it is not taken.
pub type Read<T> = Result<T, Reason>;
