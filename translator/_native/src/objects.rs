//! Rows as objects of scalars. Each object contains its column names in its own order.

use std::collections::HashSet;

use pyo3::prelude::*;

use crate::json;
use crate::reason::{Read, Reason};
use crate::row::Image;
use crate::scan::{Cell, Token};
use crate::table::Table;

/// Writes the images of one message.
pub struct CellWriter<'a> {
    /// The token of the interpreter, whose converters read unusual cells.
    pub py: Python<'a>,
    /// The message that contains the cells.
    pub value: &'a [u8],
    /// The table of the rows.
    pub table: &'a Table,
    /// Calls a converter.
    pub convert_cell: &'a Py<PyAny>,
}

impl CellWriter<'_> {
    /// Writes an object of cells in the object's own order.
    pub fn image(&self, cells: &[Cell], image: &mut Image) -> Read<()> {
        image.clear();
        let mut expected = 0;
        for cell in cells {
            let column = self.table.column_of(cell, self.value, expected).ok();
            let reader = match column {
                Some(index) => {
                    expected = index + 1;
                    &self.table.columns[index].reader
                }
                None => self.table.undeclared.as_ref().ok_or(Reason::Columns)?,
            };
            image.add(cell.name.of(self.value), |json| {
                reader.write(self.py, json, cell.value, self.value, self.convert_cell)
            })?;
        }
        image.close();
        Ok(())
    }
}

/// Rejects an object in which a column name is repeated or contains an escape.
pub fn distinct(cells: &[Cell], value: &[u8]) -> Read<()> {
    if cells.iter().any(|cell| memchr::memchr(b'\\', cell.name.of(value)).is_some()) {
        return Err(Reason::Columns);
    }
    let twice = if cells.len() > 16 {
        cells.iter().map(|cell| cell.name.of(value)).collect::<HashSet<_>>().len() < cells.len()
    } else {
        cells.iter().enumerate().any(|(index, cell)| holds(&cells[..index], cell, value))
    };
    if twice {
        return Err(Reason::Columns);
    }
    Ok(())
}

/// Returns the column names of an object as a JSON array. It rejects the same objects as `distinct`.
pub fn names(cells: &[Cell], value: &[u8]) -> Read<Vec<u8>> {
    distinct(cells, value)?;
    Ok(json::array(&cells.iter().map(|cell| cell.name.of(value)).collect::<Vec<_>>()))
}

/// Returns whether one of the cells belongs to the same column.
pub fn holds(cells: &[Cell], wanted: &Cell, value: &[u8]) -> bool {
    position(wanted.name.of(value), cells, value).is_some()
}

/// Returns the index of a column among the cells.
pub fn position(quoted: &[u8], cells: &[Cell], value: &[u8]) -> Option<usize> {
    cells.iter().position(|cell| cell.name.of(value) == quoted)
}

/// Returns the value of a column in the image of these cells.
pub fn value_of<'a>(quoted: &[u8], cells: &[Cell], image: &'a Image, value: &[u8]) -> Option<&'a [u8]> {
    position(quoted, cells, value).map(|index| image.value(index))
}

/// Returns whether the cells are exactly those of these columns.
pub fn are_key(key: &[Vec<u8>], cells: &[Cell], value: &[u8]) -> bool {
    !key.is_empty() && cells.len() == key.len() && key.iter().all(|name| position(name, cells, value).is_some())
}

/// A string without escapes.
pub fn text(token: Token, value: &[u8]) -> Read<&[u8]> {
    let sent = token.of(value);
    if sent[0] != b'"' || memchr::memchr(b'\\', sent).is_some() {
        return Err(Reason::Shape);
    }
    Ok(sent)
}

/// Returns a scalar without its quotes.
pub fn unquoted(sent: &[u8]) -> &[u8] {
    if sent[0] == b'"' {
        &sent[1..sent.len() - 1]
    } else {
        sent
    }
}
