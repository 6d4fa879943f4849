//! A row as Debezium's event, for a projection: the JSON of `translator/codecs/debezium`.
//!
//! What becomes of a row in each case, and all that rows of one operation share, is told by `native.py` there.

use std::io::Write;

use pyo3::prelude::*;

use crate::avro;
use crate::blocks::{check, Blocks, Column};
use crate::event::{Head, Place, Row, Transaction, STATE_FULL, STATE_KEY, STATE_MERGED};
use crate::json;
use crate::reason::{Read, Reason};
use crate::scan::Scanner;

/// What a schema block stands between.
const SCHEMA: &[u8] = b"{\"schema\":";
const PAYLOAD: &[u8] = b",\"payload\":";

/// A projection of one source.
#[derive(FromPyObject)]
pub struct Projection {
    /// The bytes that a record may have, as `record_size` counts them.
    pub max_record: usize,
    /// Those below have an ordinal.
    offsets: i64,
    /// A delete is followed by a record without a value.
    tombstones: bool,
    /// A column that a row does not have is left out.
    omits: bool,
}

/// What the records of one operation share.
#[derive(FromPyObject)]
pub struct Projected {
    /// `source` up to its `sequence`.
    source: Vec<u8>,
    /// What follows in it on the times.
    origin: Vec<u8>,
    /// By the image before, then by whether there is a key; None is not taken.
    changes: Vec<Option<Vec<Change>>>,
    /// The columns of the schema that the events name.
    columns: Vec<Column>,
    /// The schema blocks, where keys and values have them.
    blocks: Option<Blocks>,
}

/// Debezium's event of a row.
#[derive(FromPyObject)]
struct Change {
    /// As JSON.
    op: Vec<u8>,
    /// The image that stands before: `none`, `sent` or `key`.
    before: String,
}

/// The image before, as readers of Debezium's events see it.
#[derive(Clone, Copy)]
enum Before {
    Absent,
    Lacking,
    Whole,
}

/// The images of a row beside each other.
struct Images<'a> {
    before: Before,
    /// The columns that the row has and the image after does not.
    missing: Vec<&'a [u8]>,
}

/// A record before it has headers.
pub struct Event {
    pub key: Option<Vec<u8>>,
    pub value: Vec<u8>,
    /// The columns without a value, as JSON, where there are any.
    pub unavailable: Option<Vec<u8>>,
    /// A record of the same key without a value follows.
    pub has_tombstone: bool,
}

impl Projection {
    /// The events of a row: one, or none where the projection leaves such rows out.
    pub fn events(
        &self,
        py: Python<'_>,
        place: &Place,
        head: &Head<'_>,
        projected: &Projected,
        row: &Row<'_>,
    ) -> Read<Vec<Event>> {
        if row.unavailable.is_some() {
            return Err(Reason::Projection); // what becomes of withheld values is one of the policies
        }
        if projected.blocks.is_some() {
            check(&projected.columns, row)?;
        }
        let images = projected.images(row)?;
        if head.offset >= self.offsets || !(self.omits || images.missing.is_empty()) {
            return Err(Reason::Projection);
        }
        let case = images.before as usize * 2 + usize::from(row.key.is_some());
        let changes = projected.changes.get(case).and_then(Option::as_ref).ok_or(Reason::Projection)?;
        let event = |change: &Change| {
            Ok(Event {
                key: row.key.map(|key| projected.key(py, key)).transpose()?,
                value: projected.value(py, place, head, row, change)?,
                unavailable: (!images.missing.is_empty()).then(|| list(&images.missing)),
                has_tombstone: self.tombstones && change.op == b"\"d\"" && row.key.is_some(),
            })
        };
        changes.iter().map(event).collect()
    }
}

impl Projected {
    /// The record key for the key of a row.
    fn key(&self, py: Python<'_>, key: &[u8]) -> Read<Vec<u8>> {
        let Some(blocks) = &self.blocks else { return Ok(key.to_vec()) };
        let mut out = SCHEMA.to_vec();
        blocks.write_key(py, &self.columns, key, &mut out)?;
        out.extend_from_slice(PAYLOAD);
        out.extend_from_slice(key);
        out.push(b'}');
        Ok(out)
    }

    fn value(&self, py: Python<'_>, place: &Place, head: &Head<'_>, row: &Row<'_>, change: &Change) -> Read<Vec<u8>> {
        let images = row.before.map_or(0, <[u8]>::len) + row.after.map_or(0, <[u8]>::len);
        let mut out = Vec::with_capacity(images + 768);
        let before = match &change.before[..] {
            "none" => None,
            "sent" => row.before,
            _ => row.key,
        };
        let Some(blocks) = &self.blocks else {
            self.write_payload(&mut out, place, head, row, change, before)?;
            return Ok(out);
        };
        out.extend_from_slice(SCHEMA);
        blocks.write_value(py, &self.columns, (before, row.after), head.commit_us, &mut out)?;
        out.extend_from_slice(PAYLOAD);
        self.write_payload(&mut out, place, head, row, change, before)?;
        out.push(b'}');
        Ok(out)
    }

    fn write_payload(
        &self,
        out: &mut Vec<u8>,
        place: &Place,
        head: &Head<'_>,
        row: &Row<'_>,
        change: &Change,
        before: Option<&[u8]>,
    ) -> Read<()> {
        out.extend_from_slice(b"{\"before\":");
        out.extend_from_slice(before.unwrap_or(b"null"));
        out.extend_from_slice(b",\"after\":");
        out.extend_from_slice(row.after.unwrap_or(b"null"));
        out.extend_from_slice(b",\"source\":");
        out.extend_from_slice(&self.source);
        out.extend_from_slice(b"\"sequence\":");
        place.sequence(out, head, row);
        number(out, ",\"lsn\":", (head.offset << 21) | ((row.index as i64) << 1));
        if let Some(commit_us) = head.commit_us {
            times(out, commit_us);
        }
        out.extend_from_slice(&self.origin);
        out.extend_from_slice(b",\"transaction\":");
        write_transaction(out, head.tx.as_ref());
        out.extend_from_slice(b",\"op\":");
        out.extend_from_slice(&change.op);
        times(out, head.capture_us.unwrap_or(head.timestamp_ms * 1000));
        if let Some(key) = row.key {
            out.extend_from_slice(b",\"pkNames\":");
            out.extend_from_slice(&list(&names(key)?));
        }
        out.push(b'}');
        Ok(())
    }

    /// Holds the images of a row beside each other, by their states where these say it all: one that is full has the
    /// columns of the table, and one that was completed those of the other.
    fn images<'a>(&'a self, row: &Row<'a>) -> Read<Images<'a>> {
        let whole = |before| Ok(Images { before, missing: vec![] });
        match (row.before, row.after) {
            (None, Some(_)) if row.changed.is_none() && row.after_state == STATE_FULL => whole(Before::Absent),
            (Some(_), Some(_))
                if row.after_state == STATE_FULL && [STATE_FULL, STATE_MERGED].contains(&row.before_state) =>
            {
                whole(Before::Whole)
            }
            (Some(_), None) if row.before_state == STATE_FULL => whole(Before::Whole),
            _ => self.compared(row),
        }
    }

    /// Holds the images of a row beside each other, column by column. What may have to be completed is not taken.
    fn compared<'a>(&'a self, row: &Row<'a>) -> Read<Images<'a>> {
        let (before, after) = (row.before.map(names).transpose()?, row.after.map(names).transpose()?);
        let key = row.key.map(names).transpose()?.unwrap_or_default();
        let has_key =
            |image: &Option<Vec<&[u8]>>| image.as_ref().map_or(true, |image| holds_all(image, key.iter().copied()));
        if !has_key(&before) || !has_key(&after) {
            return Err(Reason::Projection);
        }
        let Some(after) = after else {
            // Of a row that is gone, readers want all columns of the table, or more than the key where none are known.
            let before = match before {
                None => Before::Absent,
                Some(_) if row.before_state == STATE_KEY || !self.columns.is_empty() => Before::Lacking,
                Some(_) => Before::Whole,
            };
            return Ok(Images { before, missing: vec![] });
        };
        let missing = lacking(&after, self.columns.iter().map(|column| &column.name[..]));
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
}

/// Those of these columns that an image does not have; where it has them, mostly in their order.
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

/// The names of an image, as JSON.
fn names(image: &[u8]) -> Read<Vec<&[u8]>> {
    let mut cells = Vec::with_capacity(16);
    Scanner::new(image)?.object(&mut cells).map_err(|_| Reason::Projection)?;
    Ok(cells.iter().map(|cell| cell.name.of(image)).collect())
}

/// Whether this column, by its name as JSON, is among those of these Avro texts.
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

/// An array of texts that are JSON already.
fn list(texts: &[&[u8]]) -> Vec<u8> {
    [b"[", &texts.join(&b","[..])[..], b"]"].concat()
}

fn number(out: &mut Vec<u8>, member: &str, number: i64) {
    // Nothing fails that is written to memory.
    let _ = write!(out, "{member}{number}");
}

fn write_transaction(out: &mut Vec<u8>, tx: Option<&Transaction<'_>>) {
    let Some(tx) = tx else {
        out.extend_from_slice(b"null");
        return;
    };
    out.extend_from_slice(b"{\"id\":");
    json::text(out, tx.id);
    if let Some(seq) = tx.seq {
        number(out, ",\"total_order\":", seq);
    }
    out.push(b'}');
}

/// Appends milliseconds, microseconds and, between the years 1677 and 2262, nanoseconds.
fn times(out: &mut Vec<u8>, us: i64) {
    number(out, ",\"ts_ms\":", us.div_euclid(1000));
    number(out, ",\"ts_us\":", us);
    if let Some(ns) = us.checked_mul(1000) {
        number(out, ",\"ts_ns\":", ns);
    }
}
