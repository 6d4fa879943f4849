//! The datum of a row event, as in `translator/codecs/_datum.py`, and the images that a guard sees.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::avro;
use crate::row::{Before, Head, Images, Place, Row, ARRIVAL};
use crate::row_key::Key;
use crate::table::{Operation, Table};

const POSITION_LENGTH: i64 = 44 + 19 + 1 + 6;
/// The version of the envelope.
pub const ENVELOPE_VERSION: i64 = 1;

/// The images of a row, for a guard: as JSON, with columns sorted by name.
#[pyclass(frozen, get_all, module = "translator._native.rows")]
pub struct RowImages {
    /// The key as JSON.
    key: Option<Py<PyBytes>>,
    /// The key before the change as JSON, if it changed.
    key_old: Option<Py<PyBytes>>,
    /// The before image, completed if only part of it was sent.
    before: Option<Py<PyBytes>>,
    /// The after image.
    after: Option<Py<PyBytes>>,
    /// Both images were sent completely.
    whole: bool,
}

impl RowImages {
    /// The images of one row.
    pub fn new(py: Python<'_>, table: &Table, images: &Images, key: &Key, is_delete: bool) -> Self {
        let bytes = |json: &[u8]| PyBytes::new(py, json).unbind();
        let row = bytes(&sorted(table, |index| images.value(index)));
        let before =
            (images.has_before != Before::Absent).then(|| bytes(&sorted(table, |index| images.old_value(index))));
        let (before, after) = if is_delete { (Some(row), None) } else { (before, Some(row)) };
        let (key, key_old) = (key.now.as_deref().map(bytes), key.old.as_deref().map(bytes));
        Self { key, key_old, before, after, whole: images.has_before == Before::Whole }
    }
}

/// A row as JSON, with columns sorted by name.
fn sorted<'a>(table: &Table, value: impl Fn(usize) -> &'a [u8]) -> Vec<u8> {
    let mut json = Vec::with_capacity(512);
    for index in &table.sorted {
        json.push(if json.is_empty() { b'{' } else { b',' });
        json.extend_from_slice(&table.columns[*index].quoted);
        json.push(b':');
        json.extend_from_slice(value(*index));
    }
    json.push(b'}');
    json
}

/// Writes an event as an Avro datum, after its header.
pub fn datum(
    header: &[u8],
    place: &Place,
    head: &Head<'_>,
    operation: &Operation,
    row: &Row<'_>,
    id: &[u8],
) -> Vec<u8> {
    let images = row.before.map_or(0, <[u8]>::len) + row.after.map_or(0, <[u8]>::len);
    let mut out = Vec::with_capacity(images + 512);
    out.extend_from_slice(header);
    avro::long(&mut out, ENVELOPE_VERSION);
    avro::text(&mut out, id);
    out.extend_from_slice(&operation.names);
    avro::long(&mut out, POSITION_LENGTH);
    out.extend_from_slice(ARRIVAL);
    out.extend_from_slice(row.place_in(head).as_bytes());
    out.extend_from_slice(&place.pos_scope);
    avro::maybe_text(&mut out, head.native);
    avro::maybe_long(&mut out, head.commit_us);
    avro::maybe_long(&mut out, head.capture_us);
    avro::long(&mut out, head.timestamp_ms * 1000);
    avro::maybe_text(&mut out, row.key);
    avro::maybe_text(&mut out, row.key_old);
    out.extend_from_slice(row.key_kind);
    avro::maybe_text(&mut out, row.before);
    avro::maybe_text(&mut out, row.after);
    out.extend_from_slice(row.before_state);
    out.extend_from_slice(row.after_state);
    for columns in [row.changed, row.unavailable] {
        match columns {
            None => out.push(avro::NULL),
            Some((count, names)) => {
                out.push(avro::SOME);
                avro::block(&mut out, count, names);
            }
        }
    }
    out.push(avro::NULL); // issues
    out.extend_from_slice(&operation.schema_id);
    match &head.tx {
        None => out.push(avro::NULL),
        Some(tx) => tx.write(&mut out),
    }
    out.push(avro::NULL); // ddl
    out.extend_from_slice(&place.origin);
    avro::long(&mut out, head.offset);
    avro::long(&mut out, row.index as i64);
    avro::long(&mut out, head.rows as i64);
    out.extend_from_slice(row.notes);
    out.extend_from_slice(row.ext);
    out
}
