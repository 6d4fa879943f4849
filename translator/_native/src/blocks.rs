//! The schema blocks of a Debezium projection. The codec creates the blocks, and each is cached by everything that it
//! depends on.

use std::collections::HashMap;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::reason::{Read, Reason};
use crate::row::Row;
use crate::scan::{Cell, Scanner};

/// Maximum bytes of cached blocks per operation. Beyond it, the cache is cleared.
const KEPT: usize = 16_384;

/// The kind of a value whose column has a type.
const DECLARED: u8 = b'.';
/// The kind of null, which fits any type.
const NULL: u8 = b'n';

/// A column of the schema to which events refer.
#[derive(FromPyObject)]
pub struct Column {
    /// Its name as JSON.
    pub name: Vec<u8>,
    /// The column's type, not its values, determines the declaration.
    has_type: bool,
    /// A block cannot express a text in this column.
    is_float: bool,
}

/// The blocks for the records of one operation.
pub struct Blocks {
    /// Creates the block of a value, from its images and the commit time in microseconds.
    value: Py<PyAny>,
    /// Creates the block of a key.
    key: Py<PyAny>,
    kept: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
}

/// A cell of an image, with its column if the schema has it.
struct Known<'a> {
    name: &'a [u8],
    value: &'a [u8],
    column: Option<&'a Column>,
}

/// A column of an image, by its name as JSON, and the kind of its value.
type Typed<'a> = (&'a [u8], u8);

impl<'py> FromPyObject<'py> for Blocks {
    fn extract_bound(python: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (value, key) = (python.getattr("value")?.unbind(), python.getattr("key")?.unbind());
        Ok(Self { value, key, kept: Mutex::default() })
    }
}

impl Blocks {
    /// Appends the block of a key.
    pub fn write_key(&self, py: Python<'_>, columns: &[Column], key: &[u8], out: &mut Vec<u8>) -> Read<()> {
        let shape = [b"key", &shape_of_key(columns, key)?[..]].concat();
        self.write(shape, out, || self.key.bind(py).call1((PyBytes::new(py, key),)))
    }

    /// Appends the block of a value with these images, at least one.
    pub fn write_value(
        &self,
        py: Python<'_>,
        columns: &[Column],
        (before, after): (Option<&[u8]>, Option<&[u8]>),
        commit_us: Option<i64>,
        out: &mut Vec<u8>,
    ) -> Read<()> {
        // The members of `source` that depend on a time.
        let times = commit_us.map_or(0, |us| if us.checked_mul(1000).is_some() { 3 } else { 2 });
        let mut shape = vec![times, u8::from(before.is_some()), u8::from(after.is_some())];
        let old = before.map(|image| typed(columns, image)).transpose()?.unwrap_or_default();
        match after {
            None => describe(&mut shape, &old, &[])?,
            Some(image) => describe(&mut shape, &typed(columns, image)?, &old)?,
        }
        self.write(shape, out, || {
            let bytes = |image: Option<&[u8]>| image.map(|image| PyBytes::new(py, image));
            self.value.bind(py).call1((bytes(before), bytes(after), commit_us))
        })
    }

    fn write<'py>(
        &self,
        shape: Vec<u8>,
        out: &mut Vec<u8>,
        make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> Read<()> {
        let mut kept = self.kept.lock().map_err(|_| Reason::Panic)?;
        if let Some(block) = kept.get(&shape) {
            out.extend_from_slice(block);
            return Ok(());
        }
        let made = make().map_err(|_| Reason::Projection)?;
        let block = made.cast::<PyBytes>().map_err(|_| Reason::Projection)?.as_bytes();
        out.extend_from_slice(block);
        if kept.iter().map(|(shape, block)| shape.len() + block.len()).sum::<usize>() > KEPT {
            kept.clear();
        }
        kept.insert(shape, block.to_vec());
        Ok(())
    }
}

/// Returns a description of the names and types of a key.
pub fn shape_of_key(columns: &[Column], key: &[u8]) -> Read<Vec<u8>> {
    let mut shape = vec![];
    describe(&mut shape, &typed(columns, key)?, &[])?;
    Ok(shape)
}

/// Checks that a block can express everything that was sent of a row, whether or not it is written.
pub fn check(columns: &[Column], row: &Row<'_>) -> Read<()> {
    if !columns.iter().any(|column| column.is_float) {
        return Ok(());
    }
    for image in [row.before, row.after].into_iter().flatten() {
        let is_unfit = |cell: &Known<'_>| cell.column.is_some_and(|column| column.is_float) && cell.value[0] == b'"';
        if cells(columns, image)?.iter().any(is_unfit) {
            return Err(Reason::Projection);
        }
    }
    Ok(())
}

/// Returns the columns of an image, each with the kind of its value.
fn typed<'a>(columns: &'a [Column], image: &'a [u8]) -> Read<Vec<Typed<'a>>> {
    let kind_of = |cell: Known<'a>| match cell.column {
        Some(column) if column.has_type => (cell.name, DECLARED),
        _ => (cell.name, kind(cell.value)),
    };
    Ok(cells(columns, image)?.into_iter().map(kind_of).collect())
}

/// Returns the cells of an image. Its columns are usually in table order.
fn cells<'a>(columns: &'a [Column], image: &'a [u8]) -> Read<Vec<Known<'a>>> {
    let mut cells = Vec::with_capacity(columns.len());
    Scanner::new(image)?.object(&mut cells).map_err(|_| Reason::Projection)?;
    let mut expected = 0;
    let known = |cell: &Cell| {
        let (name, value) = (cell.name.of(image), cell.value.of(image));
        let index = (expected..columns.len()).chain(0..expected).find(|index| columns[*index].name == name);
        expected = index.map_or(expected, |index| index + 1);
        Known { name, value, column: index.map(|index| &columns[index]) }
    };
    Ok(cells.iter().map(known).collect())
}

/// Returns the kind of a value, which declares a column without a type.
fn kind(value: &[u8]) -> u8 {
    match value[0] {
        b'"' => b's',
        b't' | b'f' => b'b',
        NULL => NULL,
        _ if value.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => b'd',
        _ => b'i',
    }
}

/// Appends the columns of an image with the kinds of their values, including the values in the before image.
///
/// A column with values of two kinds that are written differently is not supported.
fn describe(shape: &mut Vec<u8>, image: &[Typed<'_>], before: &[Typed<'_>]) -> Read<()> {
    for (index, (name, new)) in image.iter().enumerate() {
        let same_place = before.get(index).filter(|(old, _)| old == name);
        let old = same_place.or_else(|| before.iter().find(|(old, _)| old == name)).map_or(NULL, |(_, kind)| *kind);
        if old != NULL && *new != NULL && old != *new {
            return Err(Reason::Projection);
        }
        shape.extend_from_slice(name);
        shape.push(if *new == NULL { old } else { *new });
    }
    Ok(())
}
