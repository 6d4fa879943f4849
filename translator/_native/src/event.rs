//! The datum of a row event, as in `translator/codecs/_datum.py`, and the images that the continuity check hashes.

use crate::avro;
use crate::row::{Head, Place, Row, ARRIVAL};
use crate::table::{Operation, Table};

const POSITION_LENGTH: i64 = 44 + 19 + 1 + 6;
/// The version of the envelope.
pub const ENVELOPE_VERSION: i64 = 1;

/// Returns a row as JSON, with columns sorted by name.
pub fn sorted_json<'a>(table: &Table, value: impl Fn(usize) -> &'a [u8]) -> Vec<u8> {
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
