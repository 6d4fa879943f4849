//! A row as Debezium events, and their JSON, as in `translator/codecs/debezium`. `debezium_avro.rs` writes their Avro.
//!
//! `native.py` in that package determines what happens to a row in each case, and provides the parts that all rows with
//! one operation share.

use pyo3::prelude::*;

use crate::avro;
use crate::blocks::{check, Blocks, Column};
use crate::debezium_avro::AvroTables;
use crate::json;
use crate::reason::{Read, Reason};
use crate::row::{Head, Place, Row, Transaction, STATE_FULL, STATE_KEY, STATE_MERGED};
use crate::scan::Scanner;

/// The text around a schema block.
pub const SCHEMA: &[u8] = b"{\"schema\":";
pub const PAYLOAD: &[u8] = b",\"payload\":";
/// Operations, as JSON.
const CREATE: &[u8] = b"\"c\"";
const DELETE: &[u8] = b"\"d\"";
/// The headers that connect the two events of a key change.
const NEW_KEY: &str = "__debezium.newkey";
const OLD_KEY: &str = "__debezium.oldkey";

/// The parts that the records of one operation share.
#[derive(FromPyObject)]
pub struct DebeziumOperation {
    /// Offsets below this have an ordinal.
    offsets: i64,
    /// A delete is followed by a tombstone.
    tombstones: bool,
    /// Columns that a row lacks are left out.
    omits: bool,
    /// `source` up to its `sequence`, as JSON or Avro.
    pub source: Vec<u8>,
    /// The part of `source` after the times, as JSON or Avro.
    pub origin: Vec<u8>,
    /// Indexed by before image, then by whether the row has a key. Cases that are None are not supported.
    changes: Vec<Option<Vec<Change>>>,
    /// The columns of the schema to which the events refer.
    columns: Vec<Column>,
    /// The schema blocks, if keys and values have them.
    blocks: Option<Blocks>,
    /// How to write Avro. None writes JSON.
    tables: Option<AvroTables>,
}

/// The Debezium event of a row.
#[derive(FromPyObject)]
struct Change {
    /// As JSON.
    op: Vec<u8>,
    /// The before image: `none`, `sent` or `key`.
    before: String,
}

/// The before image, as consumers of Debezium events see it.
#[derive(Clone, Copy)]
enum Before {
    Absent,
    Lacking,
    Whole,
}

/// One Debezium event of a row, before it is written.
pub struct Part<'a> {
    /// As JSON.
    pub op: &'a [u8],
    pub key: Option<&'a [u8]>,
    pub before: Option<&'a [u8]>,
    pub after: Option<&'a [u8]>,
    /// 1 for the second of two events, otherwise 0.
    number: i64,
    /// If the key changed: the header that refers to the other event, and the key of that event.
    other_key: Option<(&'static str, &'a [u8])>,
}

/// A comparison of a row's two images.
pub struct Images<'a> {
    before: Before,
    /// The columns of the row that are missing in the after image.
    pub missing: Vec<&'a [u8]>,
}

/// A record, before it has headers.
pub struct Event {
    pub key: Option<Vec<u8>>,
    /// None for a tombstone.
    pub value: Option<Vec<u8>>,
    /// The columns without a value, as JSON, if there are any.
    pub unavailable: Option<Vec<u8>>,
    /// If the key changed: the header that refers to the other event, and its value.
    pub other_key: Option<(&'static str, Vec<u8>)>,
    /// A tombstone with the same key follows.
    pub has_tombstone: bool,
}

impl DebeziumOperation {
    /// Returns the events of a row: none if the projection leaves such rows out, and two if the key changed.
    pub fn events(&self, py: Python<'_>, place: &Place, head: &Head<'_>, row: &Row<'_>) -> Read<Vec<Event>> {
        if row.unavailable.is_some() {
            return Err(Reason::Projection); // a policy determines what happens to withheld values
        }
        if self.blocks.is_some() {
            check(&self.columns, row)?;
        }
        let row = &self.tables.as_ref().map_or(*row, |tables| tables.reduced(row));
        let table = self.tables.as_ref().map(|tables| tables.of(py, &self.columns, row)).transpose()?;
        let images = images(&self.columns, row)?;
        if head.offset >= self.offsets || !(self.omits || images.missing.is_empty()) {
            return Err(Reason::Projection);
        }
        let unavailable = (!images.missing.is_empty()).then(|| json::array(&images.missing));
        let key_of = |key: &[u8]| table.as_ref().map_or_else(|| self.key(py, key), |table| table.key(py, key));
        let value_of = |part: &Part<'_>| match &table {
            None => self.value(py, place, head, row, part),
            Some(table) => table.value(py, self, place, head, row, part),
        };
        let event = |part: Part<'_>| {
            Ok(Event {
                key: part.key.map(key_of).transpose()?,
                value: Some(value_of(&part)?),
                unavailable: unavailable.clone(),
                other_key: part.other_key.map(|(header, key)| Ok((header, key_of(key)?))).transpose()?,
                has_tombstone: self.tombstones && part.op == DELETE && part.key.is_some(),
            })
        };
        if let (Some(key_old), Some(key)) = (row.key_old, row.key) {
            return moved(row, &images, key_old, key)?.map(event).into_iter().collect();
        }
        let case = images.before as usize * 2 + usize::from(row.key.is_some());
        let changes = self.changes.get(case).and_then(Option::as_ref).ok_or(Reason::Projection)?;
        changes.iter().map(|change| event(change.part(row))).collect()
    }
}

/// Returns the events of a row whose key changed. Both images must be complete, so that no value is lost.
fn moved<'a>(row: &Row<'a>, images: &Images<'_>, key_old: &'a [u8], key: &'a [u8]) -> Read<[Part<'a>; 2]> {
    if !matches!(images.before, Before::Whole) || !images.missing.is_empty() {
        return Err(Reason::Projection);
    }
    let gone = Part {
        op: DELETE,
        key: Some(key_old),
        before: row.before,
        after: None,
        number: 0,
        other_key: Some((NEW_KEY, key)),
    };
    let made = Part {
        op: CREATE,
        key: Some(key),
        before: None,
        after: row.after,
        number: 1,
        other_key: Some((OLD_KEY, key_old)),
    };
    Ok([gone, made])
}

impl Change {
    /// Returns the event of a row with this change.
    fn part<'a>(&'a self, row: &Row<'a>) -> Part<'a> {
        let before = match &self.before[..] {
            "none" => None,
            "sent" => row.before,
            _ => row.key,
        };
        Part { op: &self.op, key: row.key, before, after: row.after, number: 0, other_key: None }
    }
}

impl DebeziumOperation {
    /// Returns the record key for the key of a row.
    fn key(&self, py: Python<'_>, key: &[u8]) -> Read<Vec<u8>> {
        let Some(blocks) = &self.blocks else { return Ok(key.to_vec()) };
        let mut out = SCHEMA.to_vec();
        blocks.write_key(py, &self.columns, key, &mut out)?;
        out.extend_from_slice(PAYLOAD);
        out.extend_from_slice(key);
        out.push(b'}');
        Ok(out)
    }

    fn value(&self, py: Python<'_>, place: &Place, head: &Head<'_>, row: &Row<'_>, part: &Part<'_>) -> Read<Vec<u8>> {
        let images = part.before.map_or(0, <[u8]>::len) + part.after.map_or(0, <[u8]>::len);
        let mut out = Vec::with_capacity(images + 768);
        let Some(blocks) = &self.blocks else {
            self.write_payload(&mut out, place, head, row, part)?;
            return Ok(out);
        };
        out.extend_from_slice(SCHEMA);
        blocks.write_value(py, &self.columns, (part.before, part.after), head.commit_us, &mut out)?;
        out.extend_from_slice(PAYLOAD);
        self.write_payload(&mut out, place, head, row, part)?;
        out.push(b'}');
        Ok(out)
    }

    fn write_payload(
        &self,
        out: &mut Vec<u8>,
        place: &Place,
        head: &Head<'_>,
        row: &Row<'_>,
        part: &Part<'_>,
    ) -> Read<()> {
        out.extend_from_slice(b"{\"before\":");
        out.extend_from_slice(part.before.unwrap_or(b"null"));
        out.extend_from_slice(b",\"after\":");
        out.extend_from_slice(part.after.unwrap_or(b"null"));
        out.extend_from_slice(b",\"source\":");
        out.extend_from_slice(&self.source);
        out.extend_from_slice(b"\"sequence\":");
        json::text(out, &place.sequence(head, row));
        number(out, b",\"lsn\":", ordinal(head, row, part));
        if let Some(commit_us) = head.commit_us {
            times(out, commit_us);
        }
        out.extend_from_slice(&self.origin);
        out.extend_from_slice(b",\"transaction\":");
        write_transaction(out, head.tx.as_ref());
        out.extend_from_slice(b",\"op\":");
        out.extend_from_slice(part.op);
        times(out, head.captured_us());
        if let Some(key) = part.key {
            out.extend_from_slice(b",\"pkNames\":");
            out.extend_from_slice(&json::array(&names(key)?));
        }
        out.push(b'}');
        Ok(())
    }
}

/// Compares the images of a row by their states, if the states are sufficient: a full image has the columns of the
/// table, and a completed image has the columns of the other image.
pub fn images<'a>(columns: &'a [Column], row: &Row<'a>) -> Read<Images<'a>> {
    let whole = |before| Ok(Images { before, missing: vec![] });
    match (row.before, row.after) {
        (None, Some(_)) if row.changed.is_none() && row.after_state == STATE_FULL => whole(Before::Absent),
        (Some(_), Some(_))
            if row.after_state == STATE_FULL && [STATE_FULL, STATE_MERGED].contains(&row.before_state) =>
        {
            whole(Before::Whole)
        }
        (Some(_), None) if row.before_state == STATE_FULL => whole(Before::Whole),
        _ => compared(columns, row),
    }
}

/// Compares the images of a row column by column. Images that might need completion are not supported.
fn compared<'a>(columns: &'a [Column], row: &Row<'a>) -> Read<Images<'a>> {
    let (before, after) = (row.before.map(names).transpose()?, row.after.map(names).transpose()?);
    let key = row.key.map(names).transpose()?.unwrap_or_default();
    let has_key =
        |image: &Option<Vec<&[u8]>>| image.as_ref().map_or(true, |image| holds_all(image, key.iter().copied()));
    if !has_key(&before) || !has_key(&after) {
        return Err(Reason::Projection);
    }
    let Some(after) = after else {
        // For a deleted row, consumers need all columns of the table, or more than the key if none are known.
        let before = match before {
            None => Before::Absent,
            Some(_) if row.before_state == STATE_KEY || !columns.is_empty() => Before::Lacking,
            Some(_) => Before::Whole,
        };
        return Ok(Images { before, missing: vec![] });
    };
    let missing = lacking(&after, columns.iter().map(|column| &column.name[..]));
    let Some(before) = before else {
        return if row.changed.is_none() {
            Ok(Images { before: Before::Absent, missing })
        } else {
            Err(Reason::Projection)
        };
    };
    if !holds_all(&after, before.iter().copied()) {
        return Err(Reason::Projection);
    }
    let is_changed = |column| row.changed.map_or(true, |(_, changed)| holds(changed, column));
    let before = match lacking(&before, after.iter().copied()).first() {
        None => Before::Whole,
        Some(column) if is_changed(column) => Before::Lacking,
        Some(_) => return Err(Reason::Projection),
    };
    Ok(Images { before, missing })
}

/// Returns the columns that an image lacks. The columns that it has are usually in order.
fn lacking<'a>(image: &[&[u8]], columns: impl Iterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let (count, mut expected) = (image.len(), 0);
    let is_lacking = |name: &&[u8]| {
        let found = (expected..count).chain(0..expected).find(|index| image[*index] == *name);
        expected = found.map_or(expected, |index| index + 1);
        found.is_none()
    };
    columns.filter(is_lacking).collect()
}

fn holds_all<'a>(image: &[&[u8]], columns: impl Iterator<Item = &'a [u8]>) -> bool {
    lacking(image, columns).is_empty()
}

/// Returns the column names of an image, as JSON.
pub fn names(image: &[u8]) -> Read<Vec<&[u8]>> {
    let mut cells = Vec::with_capacity(16);
    Scanner::new(image)?.object(&mut cells).map_err(|_| Reason::Projection)?;
    Ok(cells.iter().map(|cell| cell.name.of(image)).collect())
}

/// Returns whether this column, by its name as JSON, is among these Avro texts.
fn holds(changed: &[u8], quoted: &[u8]) -> bool {
    let mut wanted = Vec::with_capacity(quoted.len());
    avro::text(&mut wanted, &quoted[1..quoted.len() - 1]);
    let mut rest = changed;
    while !rest.is_empty() {
        if rest.starts_with(&wanted) {
            return true;
        }
        rest = avro::after_text(rest);
    }
    false
}

/// Returns the number of an event in its raw partition.
pub fn ordinal(head: &Head<'_>, row: &Row<'_>, part: &Part<'_>) -> i64 {
    (head.offset << 21) | ((row.index as i64) << 1) | part.number
}

fn number(out: &mut Vec<u8>, member: &[u8], number: i64) {
    out.extend_from_slice(member);
    json::number(out, number);
}

fn write_transaction(out: &mut Vec<u8>, tx: Option<&Transaction<'_>>) {
    let Some(tx) = tx else {
        out.extend_from_slice(b"null");
        return;
    };
    out.extend_from_slice(b"{\"id\":");
    json::text(out, tx.id);
    if let Some(seq) = tx.seq {
        number(out, b",\"total_order\":", seq);
    }
    out.push(b'}');
}

/// Appends milliseconds, microseconds and, between the years 1677 and 2262, nanoseconds.
fn times(out: &mut Vec<u8>, us: i64) {
    number(out, b",\"ts_ms\":", us.div_euclid(1000));
    number(out, b",\"ts_us\":", us);
    if let Some(ns) = us.checked_mul(1000) {
        number(out, b",\"ts_ns\":", ns);
    }
}
