//! Rows by key, as in `translator/codecs/upsert.py`.

use pyo3::prelude::*;

use crate::blocks::{check, Blocks, Column};
use crate::debezium::{images, names, Event, PAYLOAD, SCHEMA};
use crate::json;
use crate::reason::{Read, Reason};
use crate::row::Row;
use crate::scan::Scanner;

/// The parts that the records of one operation share.
#[derive(FromPyObject)]
pub struct UpsertOperation {
    /// The codec rejects all rows.
    rejects: bool,
    /// Rows become tombstones.
    deletes: bool,
    /// Columns that a row lacks are left out.
    omits: bool,
    /// A record key has only the columns, not the name of the table.
    by_columns: bool,
    /// The columns of the schema to which the events refer.
    columns: Vec<Column>,
    /// The schema blocks, if keys and values have them.
    blocks: Option<Blocks>,
}

impl UpsertOperation {
    /// Returns the records of a row: two if the key changed.
    pub fn events(&self, py: Python<'_>, row: &Row<'_>) -> Read<Vec<Event>> {
        let key = row.key.filter(|_| !self.rejects && row.unavailable.is_none()).ok_or(Reason::Projection)?;
        if self.blocks.is_some() {
            check(&self.columns, row)?;
        }
        let event = |key: &[u8], value: Option<Vec<u8>>, missing: &[&[u8]]| {
            let unavailable = (!missing.is_empty()).then(|| json::array(missing));
            Ok(Event { key: Some(self.key(py, row, key)?), value, unavailable, other_key: None, has_tombstone: false })
        };
        if self.deletes {
            return Ok(vec![event(key, None, &[])?]);
        }
        let missing = images(&self.columns, row)?.missing;
        // The old row is deleted, so a value that the new row lacks would be lost.
        if !missing.is_empty() && (!self.omits || row.key_old.is_some()) {
            return Err(Reason::Projection);
        }
        let after = row.after.ok_or(Reason::Projection)?;
        let old = row.key_old.map(|old| event(old, None, &[])).transpose()?;
        let new = event(key, Some(self.value(py, key, after)?), &missing)?;
        Ok(old.into_iter().chain([new]).collect())
    }

    fn key(&self, py: Python<'_>, row: &Row<'_>, key: &[u8]) -> Read<Vec<u8>> {
        let Some(blocks) = &self.blocks else {
            return Ok(if self.by_columns { key.to_vec() } else { row.record_key_of(Some(key)) });
        };
        let mut out = SCHEMA.to_vec();
        blocks.write_key(py, &self.columns, key, &mut out)?;
        Ok([&out[..], PAYLOAD, key, b"}"].concat())
    }

    fn value(&self, py: Python<'_>, key: &[u8], after: &[u8]) -> Read<Vec<u8>> {
        let row = key_first(key, after)?;
        let Some(blocks) = &self.blocks else { return Ok(row) };
        let mut out = SCHEMA.to_vec();
        blocks.write_value(py, &self.columns, (None, Some(&row)), None, &mut out)?;
        Ok([&out[..], PAYLOAD, &row, b"}"].concat())
    }
}

/// Returns an image that begins with its key columns.
fn key_first(key: &[u8], image: &[u8]) -> Read<Vec<u8>> {
    let mut cells = Vec::with_capacity(16);
    Scanner::new(image)?.object(&mut cells).map_err(|_| Reason::Projection)?;
    let names = names(key)?;
    let place = |name: &[u8]| names.iter().position(|key| *key == name).unwrap_or(names.len());
    let mut order: Vec<_> = cells.iter().map(|cell| (place(cell.name.of(image)), cell)).collect();
    if order.iter().filter(|(place, _)| *place < names.len()).count() < names.len() {
        return Err(Reason::Projection);
    }
    order.sort_by_key(|(place, _)| *place); // the order of the other columns is kept
    let mut out = Vec::with_capacity(image.len());
    for (_, cell) in order {
        out.push(if out.is_empty() { b'{' } else { b',' });
        out.extend_from_slice(cell.name.of(image));
        out.push(b':');
        out.extend_from_slice(cell.value.of(image));
    }
    out.push(b'}');
    Ok(out)
}
