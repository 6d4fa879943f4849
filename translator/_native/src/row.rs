//! The parts of an event: its origin, the fields that its message's rows share, its row, and the row's images.

use crate::avro;
use crate::json;
use crate::reason::Read;

/// The raw partition that messages come from.
pub struct Place {
    /// The raw topic.
    pub topic: String,
    /// The number of the partition.
    pub partition: i64,
    id_prefix: Vec<u8>,
    /// In Avro.
    pub pos_scope: Vec<u8>,
    /// Topic and partition, in Avro.
    pub origin: Vec<u8>,
    /// An array of scope and position up to the offset, as JSON.
    sequence: Vec<u8>,
}

/// The fields that the rows of one message share.
pub struct Head<'a> {
    /// The position of the message in its partition.
    pub offset: i64,
    /// The time of the raw record, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The writer's own message number, as text.
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
    /// The position of the message in the transaction, counted from 1.
    pub seq: Option<i64>,
    /// The number of messages in the transaction.
    pub size: Option<i64>,
    /// True for the last message of the transaction.
    pub last: Option<bool>,
}

/// The fields of one row.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// The row's number in the message.
    pub index: usize,
    /// The key up to its last member, which belongs to the row.
    pub record_key: &'a [u8],
    /// The key as JSON.
    pub key: Option<&'a [u8]>,
    /// The key before the change as JSON, if it changed.
    pub key_old: Option<&'a [u8]>,
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
    /// Removes all columns but keeps the allocated memory.
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
    /// The text of a key column changed.
    pub names_key: bool,
    /// The form of the before image.
    pub has_before: Before,
}

impl Images {
    /// Returns the value of a column in `row`, as JSON.
    pub fn value(&self, column: usize) -> &[u8] {
        let (start, end) = self.spans[column];
        &self.row[start..end]
    }

    /// Returns the value of a column before the change, as JSON. A value that was not sent did not change.
    pub fn old_value(&self, column: usize) -> &[u8] {
        self.before_spans[column].map_or_else(|| self.value(column), |(start, end)| &self.before[start..end])
    }
}

/// The image before the change.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Before {
    /// No image exists in addition to `row`.
    #[default]
    Absent,
    /// All columns were sent.
    Whole,
    /// The changed columns were sent, and the others were copied from the after image.
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
pub const ARRIVAL: &[u8] = b"0000.00000000000000000000000000000000000000.";

impl Place {
    /// Creates it for a source.
    pub fn of(source: &str, topic: &str, partition: i64, topic_id: &str) -> Self {
        let scope = format!("{topic}:{partition}@{topic_id}");
        let mut pos_scope = Vec::new();
        avro::text(&mut pos_scope, scope.as_bytes());
        let mut origin = Vec::new();
        avro::text(&mut origin, topic.as_bytes());
        avro::long(&mut origin, partition);
        let mut sequence = b"[".to_vec();
        json::text(&mut sequence, scope.as_bytes());
        sequence.extend_from_slice(b",\"");
        sequence.extend_from_slice(ARRIVAL);
        let id_prefix = format!("{source}/{topic}/{partition}/").into_bytes();
        Self { topic: topic.to_string(), partition, id_prefix, pos_scope, origin, sequence }
    }

    /// Returns scope and position of an event, an array as JSON.
    pub fn sequence(&self, head: &Head<'_>, row: &Row<'_>) -> Vec<u8> {
        [&self.sequence[..], row.place_in(head).as_bytes(), b"\"]"].concat()
    }

    /// The `id` of an event.
    pub fn id(&self, head: &Head<'_>, row: &Row<'_>) -> Vec<u8> {
        [&self.id_prefix[..], format!("{}/{}", head.offset, row.index).as_bytes()].concat()
    }
}

impl Head<'_> {
    /// The time of the capture or, if it is not known, of the raw record, in microseconds since 1970.
    pub fn captured_us(&self) -> i64 {
        self.capture_us.unwrap_or(self.timestamp_ms * 1000)
    }
}

impl Row<'_> {
    /// The key of a record with the row's own key.
    pub fn whole_key(&self) -> Vec<u8> {
        self.record_key_of(self.key)
    }

    /// The key of a record with this key of the row.
    pub fn record_key_of(&self, key: Option<&[u8]>) -> Vec<u8> {
        match key {
            None => [self.record_key, b"]"].concat(),
            Some(key) => [self.record_key, b",", key, b"]"].concat(),
        }
    }

    /// The last two parts of its `pos`: the offset of its message, and its number in the message.
    pub fn place_in(&self, head: &Head<'_>) -> String {
        format!("{:019}.{:06}", head.offset, self.index)
    }
}

impl<'a> Transaction<'a> {
    /// Creates a transaction with only its name known, or no transaction if the name is empty.
    pub fn named(id: &'a [u8]) -> Option<Self> {
        (!id.is_empty()).then_some(Self { id, seq: None, size: None, last: None })
    }

    /// Appends it in Avro.
    pub fn write(&self, out: &mut Vec<u8>) {
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
