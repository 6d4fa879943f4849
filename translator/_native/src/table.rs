//! The layout of a table from `translator/codecs/native_table.py`: the bytes that all its events share.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::avro_json::Step;
use crate::cells::{Kind, Reader};
use crate::continuity::Checked;
use crate::generations::Generations;
use crate::output::OutputOperation;
use crate::reason::{Read, Reason};
use crate::record::SharedHeaders;
use crate::scan::Cell;

/// A column of the layout.
pub struct Column {
    /// Its name as JSON, with quotes.
    pub quoted: Vec<u8>,
    /// Its name as an Avro text.
    pub avro_name: Vec<u8>,
    /// The reader of its cells.
    pub reader: Reader,
    /// The column's cells determine whether it contains text or bytes, and can contradict the layout.
    pub is_open: bool,
}

/// The parts that events of one operation share.
pub struct Operation {
    /// The `TableOperation` that this was created from.
    pub python: Py<PyAny>,
    /// From `kind` to `table`, in Avro.
    pub names: Vec<u8>,
    /// The state of a complete image, in Avro.
    pub state: Vec<u8>,
    /// In Avro.
    pub schema_id: Vec<u8>,
    /// In Avro.
    pub notes: Vec<u8>,
    /// The notes of an event whose sparse before image was completed, in Avro.
    pub notes_merged: Vec<u8>,
    /// The Kafka headers.
    pub headers: Arc<SharedHeaders>,
    /// The size of a record without its key, value and id.
    pub fixed_size: usize,
    /// The shared parts of the records for each output. An output that is None gets no records.
    pub outputs: Vec<Option<OutputOperation>>,
    /// The fields of an event from `kind` to `table`.
    pub event_names: Vec<Py<PyAny>>,
    /// The field `schema_id` of an event.
    pub event_schema_id: Py<PyAny>,
    /// The properties that the continuity check needs.
    pub checked: Checked,
}

impl<'py> FromPyObject<'py> for Operation {
    fn extract_bound(python: &Bound<'py, PyAny>) -> PyResult<Self> {
        let bytes = |name: &str| -> PyResult<Vec<u8>> { python.getattr(name)?.extract() };
        let list = |name: &str| -> PyResult<Vec<Py<PyAny>>> { python.getattr(name)?.extract() };
        Ok(Self {
            python: python.clone().unbind(),
            names: bytes("names")?,
            state: bytes("state")?,
            schema_id: bytes("schema_id")?,
            notes: bytes("notes")?,
            notes_merged: bytes("notes_merged")?,
            headers: Arc::new(SharedHeaders::of(python)?),
            fixed_size: python.getattr("fixed_size")?.extract()?,
            outputs: python.getattr("outputs")?.extract()?,
            event_names: list("event_names")?,
            event_schema_id: python.getattr("event_schema_id")?.unbind(),
            checked: Checked::of(python)?,
        })
    }
}

/// Maximum bytes of a table description. Longer ones are not cached.
const LONG: usize = 65_536;

/// The compiled tables of a source, by the bytes that describe them in a message.
pub struct Tables {
    /// Creates a `NativeTable`; None leaves its rows to the plain path.
    compile: Py<PyAny>,
    known: Generations<Option<Table>>,
}

impl Tables {
    /// None yet.
    pub fn new(compile: Py<PyAny>) -> Self {
        Self { compile, known: Generations::new() }
    }

    /// Returns the table with this description, compiled from these parts of its first message.
    pub fn of(&mut self, py: Python<'_>, description: &[u8], parts: &[&[u8]]) -> Read<&Table> {
        if self.known.get(description).is_none() {
            let made = compiled(py, &self.compile, description.len(), parts)?;
            self.known.add(description.to_vec(), made, description.len());
        }
        self.known.peek(description).and_then(Option::as_ref).ok_or(Reason::Layout)
    }
}

/// Compiles the table for a description of this many bytes, from these parts of a message. None leaves its rows to the
/// plain path.
pub fn compiled(py: Python<'_>, compile: &Py<PyAny>, length: usize, parts: &[&[u8]]) -> Read<Option<Table>> {
    if length > LONG {
        return Err(Reason::Layout);
    }
    let parts = PyTuple::new(py, parts.iter().map(|part| PyBytes::new(py, part))).map_err(|_| Reason::Panic)?;
    let made = compile.bind(py).call1(parts).map_err(|_| Reason::Layout)?;
    if made.is_none() {
        return Ok(None);
    }
    Table::of(&made).map(Some).map_err(|_| Reason::Layout)
}

/// A compiled table.
pub struct Table {
    /// The columns, in the order of the rows.
    pub columns: Vec<Column>,
    /// The column indexes, sorted by name.
    pub sorted: Vec<usize>,
    /// The indexes of the key columns, in key order.
    pub key: Vec<usize>,
    /// The key columns by name, as JSON. Also set if no columns are known.
    pub key_names: Vec<Vec<u8>>,
    /// The list of columns is complete.
    pub is_declared: bool,
    /// The reader for cells of unknown columns, if rows can have any.
    pub undeclared: Option<Reader>,
    /// The columns' bits in masks, counted from 1, in ascending order. Empty if the bits equal the positions in a row.
    pub ordinals: Vec<usize>,
    /// Some columns have no bit in a mask of changes.
    pub has_lobs: bool,
    /// How to read a message in Avro.
    pub record: Option<Step>,
    /// The kind of the key in Avro, for a row that has one.
    pub key_kind: Vec<u8>,
    /// The record key up to the row's own key: an array without its end.
    pub record_key: Vec<u8>,
    /// Indexed by era of the writer, then by operation in the dialect's order. Operations that are None are not
    /// supported.
    pub operations: Vec<Vec<Option<Operation>>>,
}

#[derive(FromPyObject)]
struct PythonColumn {
    quoted: Vec<u8>,
    avro_name: Vec<u8>,
    kind: (String, i64, i64),
    convert: Py<PyAny>,
    is_open: bool,
}

#[derive(FromPyObject)]
struct PythonTable {
    columns: Vec<PythonColumn>,
    sorted: Vec<usize>,
    key: Vec<usize>,
    key_names: Vec<Vec<u8>>,
    undeclared: Option<PythonColumn>,
    ordinals: Vec<usize>,
    has_lobs: bool,
    record: Option<Step>,
    key_kind: Vec<u8>,
    record_key: Vec<u8>,
    operations: Vec<Vec<Option<Operation>>>,
}

impl Table {
    /// Reads a `NativeTable`.
    pub fn of(python: &Bound<'_, PyAny>) -> PyResult<Self> {
        let table: PythonTable = python.extract()?;
        let columns = table.columns.into_iter().map(Column::of).collect::<PyResult<Vec<_>>>()?;
        if table.key.iter().any(|index| *index >= columns.len()) {
            return Err(PyValueError::new_err("a key column that the table does not have"));
        }
        if !table.ordinals.is_empty() && table.ordinals.len() != columns.len() {
            return Err(PyValueError::new_err("columns without an ordinal"));
        }
        let undeclared = table.undeclared.map(Column::of).transpose()?.map(|column| column.reader);
        Ok(Self {
            columns,
            key_names: table.key_names,
            is_declared: undeclared.is_none(),
            undeclared,
            ordinals: table.ordinals,
            has_lobs: table.has_lobs,
            record: table.record,
            sorted: table.sorted,
            key: table.key,
            key_kind: table.key_kind,
            record_key: table.record_key,
            operations: table.operations,
        })
    }

    /// Returns whether a row has all columns, in order.
    #[inline]
    pub fn names(&self, row: &[Cell], bytes: &[u8]) -> bool {
        row.len() == self.columns.len()
            && row.iter().zip(&self.columns).all(|(cell, column)| cell.name.of(bytes) == column.quoted)
    }

    /// Returns the column of a cell, searched from the expected position.
    #[inline]
    pub fn column_of(&self, cell: &Cell, bytes: &[u8], expected: usize) -> Read<usize> {
        let name = cell.name.of(bytes);
        let count = self.columns.len();
        (0..count)
            .map(|step| (expected + step) % count)
            .find(|index| self.columns[*index].quoted == name)
            .ok_or(Reason::Columns)
    }
}

impl Column {
    fn of(column: PythonColumn) -> PyResult<Self> {
        let (name, first, second) = column.kind;
        let kind = Kind::named(&name, first, second)
            .ok_or_else(|| PyValueError::new_err(format!("unknown kind of cells {name:?}")))?;
        Ok(Self {
            quoted: column.quoted,
            avro_name: column.avro_name,
            reader: Reader { kind, convert: column.convert },
            is_open: column.is_open,
        })
    }
}
