//! A row event, and its datum as in `translator/codecs/_datum.py`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::avro;
use crate::json;
use crate::reason::{Read, Reason};
use crate::table::{Operation, Table};

/// The images of a row, for a guard: as JSON, with columns sorted by name.
#[pyclass(frozen, get_all, module = "translator._native.rows")]
pub struct RowImages {
    /// The key as JSON.
    key: Option<Py<PyBytes>>,
    /// The row before the change, completed if it was sent in part.
    before: Option<Py<PyBytes>>,
    /// The row after it.
    after: Option<Py<PyBytes>>,
    /// Both were sent completely.
    whole: bool,
}

impl RowImages {
    /// The images of one row.
    pub fn new(py: Python<'_>, table: &Table, images: &Images, key: Option<&[u8]>, is_delete: bool) -> Self {
        let bytes = |json: &[u8]| PyBytes::new(py, json).unbind();
        let row = bytes(&sorted(table, |index| images.value(index)));
        let before = (images.has_before != Before::Absent).then(|| {
            bytes(&sorted(table, |index| match images.before_spans[index] {
                Some((start, end)) => &images.before[start..end],
                None => images.value(index),
            }))
        });
        let (before, after) = if is_delete { (Some(row), None) } else { (before, Some(row)) };
        Self { key: key.map(bytes), before, after, whole: images.has_before == Before::Whole }
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

/// The raw partition that messages come from.
pub struct Place {
    id_prefix: Vec<u8>,
    pos_scope: Vec<u8>,
    origin: Vec<u8>,
    /// An array of scope and position up to the offset, as JSON inside a JSON text.
    sequence: Vec<u8>,
}

/// The fields that the rows of one message share.
pub struct Head<'a> {
    /// The position of the message in its partition.
    pub offset: i64,
    /// The time of the raw record, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The writer's own number of the message, as text.
    pub native: Option<&'a [u8]>,
    /// Microseconds since 1970.
    pub commit_us: Option<i64>,
    /// Microseconds since 1970.
    pub capture_us: Option<i64>,
    /// The transaction, if the message has one.
    pub tx: Option<Transaction<'a>>,
    /// The number of rows.
    pub rows: usize,
}

/// The source transaction.
pub struct Transaction<'a> {
    pub id: &'a [u8],
    /// The position of the message in it, from 1.
    pub seq: Option<i64>,
    /// The number of its messages.
    pub size: Option<i64>,
    /// True for its last message.
    pub last: Option<bool>,
}

/// The fields of one row.
pub struct Row<'a> {
    /// Its number in the message.
    pub index: usize,
    /// The key up to its last member, which belongs to the row.
    pub record_key: &'a [u8],
    /// The key as JSON.
    pub key: Option<&'a [u8]>,
    /// In Avro.
    pub key_kind: &'a [u8],
    /// As JSON.
    pub before: Option<&'a [u8]>,
    /// As JSON.
    pub after: Option<&'a [u8]>,
    /// In Avro.
    pub before_state: &'a [u8],
    /// In Avro.
    pub after_state: &'a [u8],
    /// The number of changed columns, and their names as Avro texts.
    pub changed: Option<(i64, &'a [u8])>,
    /// The number of withheld columns, and their names as Avro texts.
    pub unavailable: Option<(i64, &'a [u8])>,
    /// In Avro.
    pub notes: &'a [u8],
    /// In Avro.
    pub ext: &'a [u8],
}

/// An image of a row: its JSON, and the positions of the values in it.
#[derive(Default)]
pub struct Image {
    /// An object, once it is closed.
    pub json: Vec<u8>,
    values: Vec<(usize, usize)>,
}

impl Image {
    /// Removes all columns but keeps the memory.
    pub fn clear(&mut self) {
        self.json.clear();
        self.values.clear();
    }

    /// Adds a column by its name as JSON; `write` appends the value.
    #[inline]
    pub fn add(&mut self, quoted: &[u8], write: impl FnOnce(&mut Vec<u8>) -> Read<()>) -> Read<()> {
        self.json.push(if self.json.is_empty() { b'{' } else { b',' });
        self.json.extend_from_slice(quoted);
        self.json.push(b':');
        let start = self.json.len();
        write(&mut self.json)?;
        self.values.push((start, self.json.len()));
        Ok(())
    }

    /// Leaves a position without a value. No existing value is empty.
    pub fn leave_out(&mut self) {
        self.values.push((0, 0));
    }

    /// Ends the object.
    pub fn close(&mut self) {
        if self.json.is_empty() {
            self.json.push(b'{');
        }
        self.json.push(b'}');
    }

    /// Returns the value of the column at this index, as JSON, or nothing if it was left out.
    pub fn value(&self, index: usize) -> &[u8] {
        let (start, end) = self.values[index];
        &self.json[start..end]
    }
}

/// The images of one row, as JSON, with their properties.
#[derive(Default)]
pub struct Images {
    /// The row after the change, or the only one.
    pub row: Vec<u8>,
    /// The row before the change.
    pub before: Vec<u8>,
    /// The position of each column's value in `row`.
    pub spans: Vec<(usize, usize)>,
    /// The position of each column's sent value in `before`.
    pub before_spans: Vec<Option<(usize, usize)>>,
    /// The names of the changed columns as Avro texts.
    pub changed: Vec<u8>,
    /// The number of these names.
    pub changed_count: i64,
    /// The form of the before image.
    pub has_before: Before,
}

impl Images {
    /// Returns the value of a column in `row`, as JSON.
    pub fn value(&self, column: usize) -> &[u8] {
        let (start, end) = self.spans[column];
        &self.row[start..end]
    }
}

/// The image before the change.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Before {
    /// There is none in addition to `row`.
    #[default]
    Absent,
    /// All columns were sent.
    Whole,
    /// The changed columns were sent, and the others were copied from the row after.
    Merged,
}

/// The states of images, in Avro.
pub const STATE_NONE: &[u8] = b"\x08none";
pub const STATE_FULL: &[u8] = b"\x08full";
pub const STATE_KEY: &[u8] = b"\x06key";
pub const STATE_PARTIAL: &[u8] = b"\x0epartial";
pub const STATE_MERGED: &[u8] = b"\x0cmerged";
/// The kinds of keys that no layout contains, in Avro.
pub const KIND_NONE: &[u8] = b"\x08none";
pub const KIND_UNIQUE: &[u8] = b"\x0cunique";
/// `pos` without epoch and native position, which only `order: native` has.
const ARRIVAL: &[u8] = b"0000.00000000000000000000000000000000000000.";
const POSITION_LENGTH: i64 = 44 + 19 + 1 + 6;
const ENVELOPE_VERSION: i64 = 1;

impl Place {
    /// Creates it for a source.
    pub fn of(source: &str, topic: &str, partition: i64, topic_id: &str) -> Self {
        let scope = format!("{topic}:{partition}@{topic_id}");
        let mut pos_scope = Vec::new();
        avro::text(&mut pos_scope, scope.as_bytes());
        let mut origin = Vec::new();
        avro::text(&mut origin, topic.as_bytes());
        avro::long(&mut origin, partition);
        let mut array = b"[".to_vec();
        json::text(&mut array, scope.as_bytes());
        array.extend_from_slice(b",\"");
        array.extend_from_slice(ARRIVAL);
        let mut sequence = b"\"".to_vec();
        json::inside(&mut sequence, &array);
        Self { id_prefix: format!("{source}/{topic}/{partition}/").into_bytes(), pos_scope, origin, sequence }
    }

    /// Appends scope and position of an event, an array as JSON in a text of JSON.
    pub fn sequence(&self, out: &mut Vec<u8>, head: &Head<'_>, row: &Row<'_>) {
        out.extend_from_slice(&self.sequence);
        out.extend_from_slice(format!("{:019}.{:06}\\\"]\"", head.offset, row.index).as_bytes());
    }

    /// The `id` of an event.
    pub fn id(&self, head: &Head<'_>, row: &Row<'_>) -> Vec<u8> {
        [&self.id_prefix[..], format!("{}/{}", head.offset, row.index).as_bytes()].concat()
    }
}

impl<'a> Transaction<'a> {
    /// Creates a transaction of which only the name is known, or none if the name is empty.
    pub fn named(id: &'a [u8]) -> Option<Self> {
        (!id.is_empty()).then_some(Self { id, seq: None, size: None, last: None })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(avro::SOME);
        avro::text(out, self.id);
        avro::maybe_long(out, self.seq);
        avro::maybe_long(out, self.size);
        match self.last {
            None => out.push(avro::NULL),
            Some(last) => out.extend_from_slice(&[avro::SOME, u8::from(last)]),
        }
    }
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
    out.extend_from_slice(format!("{:019}.{:06}", head.offset, row.index).as_bytes());
    out.extend_from_slice(&place.pos_scope);
    avro::maybe_text(&mut out, head.native);
    avro::maybe_long(&mut out, head.commit_us);
    avro::maybe_long(&mut out, head.capture_us);
    avro::long(&mut out, head.timestamp_ms * 1000);
    avro::maybe_text(&mut out, row.key);
    out.push(avro::NULL); // key_old
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

/// Returns the key of a row as JSON, from these columns and their values, or None if the table has no key.
///
/// A key with NULL or with a missing column is not supported.
pub fn key_of<'a>(names: &[Vec<u8>], value_at: impl Fn(usize) -> Option<&'a [u8]>) -> Read<Option<Vec<u8>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let mut key = Vec::with_capacity(64);
    for (at, name) in names.iter().enumerate() {
        let value = value_at(at).filter(|value| *value != b"null").ok_or(Reason::Key)?;
        key.push(if at == 0 { b'{' } else { b',' });
        key.extend_from_slice(name);
        key.push(b':');
        key.extend_from_slice(value);
    }
    key.push(b'}');
    Ok(Some(key))
}
