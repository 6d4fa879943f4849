//! Canal JSON: the members of a message, and the assignment of images to rows.
//!
//! The rules are those of `translator/dialects/canal`, for a writer with a declared form.

use std::collections::HashMap;

use memchr::memmem;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::avro;
use crate::canal_members::{MemberReader, Members};
use crate::continuity::Evidence;
use crate::generations::Generations;
use crate::objects::names;
use crate::output::{Form, Taken};
use crate::reason::{Read, Reason};
use crate::row::{Before, Head, Images, Place, Row, Transaction, STATE_MERGED, STATE_NONE};
use crate::row_key::Key;
use crate::run::{self, Raw};
use crate::scan::{Cell, Rows, Token};
use crate::table::{compiled, Operation, Table};

/// Maximum bytes of the descriptions of tables with the same name. Beyond it, they are cleared.
const SAME_NAME_BYTES: usize = 4 * 1024 * 1024;
/// Bytes that a table counts in addition to its description, so that short descriptions do not allow any number of
/// tables. A generation of the cache limits the number of names only.
const TABLE_BYTES: usize = 1024;

const UPDATE: usize = 1;
const DELETE: usize = 2;

/// The eras of messages whose writer is not declared, by the mark in the message.
const NAMED_TICDC: usize = 0;
const ZERO_ID: usize = 1;
const BARE_OR_SCALARS: usize = 2;
const MILLISECONDS: usize = 3;
const UNMARKED: usize = 4;

/// Number of bytes at the end of a message that are searched for its table, to guess its layout.
const TAIL: usize = 256;

/// The form of messages during part of a writer's life, by their `ts` in milliseconds.
#[derive(FromPyObject)]
struct Era {
    low: i64,
    high: i64,
    /// In an update with two images, `data` contains the before image.
    data_is_before: bool,
    /// The row of a delete is in `old`.
    deleted_in_old: bool,
    /// The writer is unknown, and an update with only complete images has two meanings.
    is_ambiguous: bool,
}

/// The options of a source that matter here.
#[derive(FromPyObject)]
struct Options {
    /// By time or, with `by_mark`, in the order of the constants below.
    eras: Vec<Era>,
    /// The values of a message determine its writer.
    by_mark: bool,
    /// Certain values identify the writer. Only the plain path checks for them.
    marks: bool,
    /// Messages can contain `_tidb`.
    tidb: bool,
    /// Cells can be numbers and booleans.
    any_scalars: bool,
    /// `gtid` identifies the transaction.
    gtid_names_transaction: bool,
    value_bytes: usize,
    rows: usize,
    /// The continuity check is on.
    is_checked: bool,
    /// `old` lists only the changed columns. Signs of another writer are left to the plain path.
    changed_alone: bool,
}

/// Translates the common row messages of one source.
#[pyclass(module = "translator._native.rows")]
pub struct CanalRows {
    options: Options,
    form: Form,
    layouts: Layouts,
    scratch: Scratch,
}

/// The compiled tables.
struct Layouts {
    /// Creates a `NativeTable` from the bytes that describe a table; None leaves its rows to the plain path.
    compile: Py<PyAny>,
    /// Indexed by the table name as spelled.
    known: Generations<SameName>,
}

/// The tables that have the same name in different databases. With sharding, there can be thousands.
struct SameName {
    /// The types of the first table.
    types: Vec<u8>,
    sql_types: Vec<u8>,
    /// Indexed by the database as spelled: the table's descriptions, each with its compiled table.
    by_database: HashMap<Vec<u8>, Vec<(Description, Option<Table>)>>,
    /// The bytes of all descriptions.
    bytes: usize,
}

/// The bytes of a message that a layout is compiled from, in addition to the database and table name. The columns are
/// those of the row if no types describe them.
struct Description {
    types: Vec<u8>,
    sql_types: Vec<u8>,
    key: Vec<u8>,
    columns: Vec<u8>,
}

/// Memory that is reused for each message.
#[derive(Default)]
struct Scratch {
    data: Rows,
    old: Rows,
    images: Images,
    sent: Vec<Option<Token>>,
}

#[pymethods]
impl CanalRows {
    #[new]
    fn new(options: Options, form: &Bound<'_, PyAny>, compile: Py<PyAny>) -> PyResult<Self> {
        let layouts = Layouts { compile, known: Generations::new() };
        Ok(Self { options, form: Form::of(form)?, layouts, scratch: Scratch::default() })
    }

    /// Returns for each message of a partition either `Taken` or the reason why it was not translated.
    fn take<'py>(
        &mut self,
        py: Python<'py>,
        topic: &str,
        partition: i64,
        topic_id: &str,
        messages: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        let place = self.form.place(topic, partition, topic_id);
        let (mut scratch, value_bytes) = (std::mem::take(&mut self.scratch), self.options.value_bytes);
        let taken = run::take(py, messages, value_bytes, |raw| {
            run::translate_json(raw, |raw| self.translated(py, &place, raw, &mut scratch))
        });
        self.scratch = scratch;
        taken
    }
}

impl CanalRows {
    fn translated(&mut self, py: Python<'_>, place: &Place, raw: &Raw<'_>, scratch: &mut Scratch) -> Read<Taken> {
        let value = raw.value;
        let Scratch { data, old, images, sent } = scratch;
        let likely = self.layouts.likely(value);
        let members =
            MemberReader { data, old, likely, tidb: self.options.tidb, any_scalars: self.options.any_scalars }
                .read(value)?;
        let kind = members.operation.ok_or(Reason::Shape)?;
        self.check_marks(&members)?;
        let has_scalars = || data.hold_other_scalars(value) || old.hold_other_scalars(value);
        let era_index = if self.options.by_mark { members.mark(has_scalars) } else { self.era(members.ts)? };
        let era = &self.options.eras[era_index];
        let (rows, others) = match kind {
            UPDATE if era.data_is_before => (&*old, &*data),
            DELETE if era.deleted_in_old => (&*old, &*data),
            _ => (&*data, &*old),
        };
        // Entries of `old` without columns do not count.
        let paired = kind == UPDATE && !others.hold_nothing();
        let fits = if paired {
            others.len() == rows.len()
        } else {
            others.hold_nothing() && !(kind == UPDATE && (era.data_is_before || era.is_ambiguous))
        };
        if rows.len() == 0 || !fits {
            return Err(Reason::Shape);
        }
        if rows.len().max(others.len()) > self.options.rows {
            return Err(Reason::Size);
        }
        let columns = if members.are_untyped() { names(rows.row(0), value)? } else { vec![] };
        let table = self.layouts.of(py, &members, &columns)?;
        let operation = table.operations[era_index][kind].as_ref().ok_or(Reason::Layout)?;
        let native = members.commit_ts.or(members.id).map(|number| number.to_string());
        let tx = if self.options.gtid_names_transaction { transaction(members.gtid)? } else { None };
        let head = Head {
            offset: raw.offset,
            timestamp_ms: raw.timestamp_ms,
            native: native.as_ref().map(String::as_bytes),
            commit_us: members.es.map(|es| es * 1000),
            capture_us: members.ts.map(|ts| ts * 1000),
            tx,
            rows: rows.len(),
        };
        let writer = RowWriter { py, value, table, convert_cell: &self.form.convert_cell };
        let mut records = self.form.records(py, place, &head, operation);
        let mut evidence = self.options.is_checked.then(|| Evidence::new(operation, raw.offset));
        let mut whole_images = 0;
        for index in 0..rows.len() {
            writer.row(rows.row(index), images)?;
            images.has_before = Before::Absent;
            if paired {
                writer.before(rows.row(index), others.row(index), images, sent)?;
                let is_whole = images.has_before == Before::Whole;
                whole_images += usize::from(is_whole);
                // `old` lists an unchanged column, or the key did not change: canal never writes this in a first row.
                let unchanged = if table.key.is_empty() {
                    usize::try_from(images.changed_count) != Ok(table.columns.len())
                } else {
                    !images.names_key
                };
                let is_foreign = self.options.changed_alone && index == 0 && is_whole && unchanged;
                if is_foreign || (era.data_is_before && !is_whole) {
                    return Err(Reason::Shape);
                }
            }
            let new_at = |at: usize| Some(images.value(table.key[at]));
            let key = match images.has_before {
                Before::Absent => Key::of(&table.key_names, new_at)?,
                _ => Key::updated(&table.key_names, new_at, |at| Some(images.old_value(table.key[at])))?,
            };
            let mut row = described(table, operation, images, kind == DELETE, index);
            let mut notes = vec![];
            key.describe(&mut row, &mut notes);
            records.add(&row)?;
            if let Some(evidence) = &mut evidence {
                evidence.add(table, operation, images, &key, kind == DELETE);
            }
        }
        if era.is_ambiguous && whole_images == rows.len() {
            return Err(Reason::Shape);
        }
        Ok(records.taken(evidence))
    }

    /// Checks values that identify a writer, if the writer can differ from the declared one (`canal/marks.py`).
    fn check_marks(&self, members: &Members<'_>) -> Read<()> {
        let nothing = |number: Option<i64>| number.unwrap_or(0) == 0;
        let marked = members.id == Some(0)
            || members.es.unwrap_or(0) % 1000 != 0
            || (nothing(members.id) && nothing(members.es) && nothing(members.ts));
        if self.options.marks && marked {
            return Err(Reason::Shape);
        }
        Ok(())
    }

    fn era(&self, ts: Option<i64>) -> Read<usize> {
        let holds = |era: &Era| match ts {
            Some(ts) => era.low <= ts && ts <= era.high,
            None => era.low == i64::MIN && era.high == i64::MAX,
        };
        self.options.eras.iter().position(holds).ok_or(Reason::Shape)
    }
}

impl Members<'_> {
    /// Returns the era that a mark identifies (`canal/marks.py`): the first one that the message has.
    fn mark(&self, has_scalars: impl Fn() -> bool) -> usize {
        let is_bare =
            self.id.is_none() && self.es.is_none() && self.ts.is_none() && matches!(self.sql_types, b"" | b"null");
        if self.commit_ts.is_some() {
            NAMED_TICDC
        } else if self.id == Some(0) {
            ZERO_ID
        } else if is_bare || has_scalars() {
            BARE_OR_SCALARS
        } else if self.es.unwrap_or(0) % 1000 != 0 {
            MILLISECONDS
        } else {
            UNMARKED
        }
    }
}

impl Layouts {
    /// Returns the most likely type descriptions of a message, by the table name in its last bytes.
    ///
    /// Comparing bytes with known ones takes a tenth of the time that reading them takes. The guess does not affect the
    /// result.
    fn likely(&self, value: &[u8]) -> (&[u8], &[u8]) {
        let tail = &value[value.len().saturating_sub(TAIL)..];
        let known = memmem::rfind(tail, b"\"table\":").and_then(|at| {
            let name = &tail[at + 8..];
            let end = memchr::memchr(b'"', name.get(1..)?)? + 2;
            self.known.peek(&name[..end])
        });
        known.map_or((b"", b""), |same_name| (&same_name.types, &same_name.sql_types))
    }

    /// Returns the table of a message, compiled for its first message.
    fn of(&mut self, py: Python<'_>, members: &Members<'_>, columns: &[u8]) -> Read<&Table> {
        let is_same = |description: &Description| {
            description.types == members.types
                && description.sql_types == members.sql_types
                && description.key == members.key
                && description.columns == columns
        };
        let layouts = self.known.get(members.table).and_then(|named| named.by_database.get(members.database));
        let found = layouts.and_then(|layouts| layouts.iter().position(|(description, _)| is_same(description)));
        let at = match found {
            Some(at) => at,
            None => self.compile(py, members, columns)?,
        };
        let named = self.known.peek(members.table).ok_or(Reason::Layout)?;
        named.by_database[members.database][at].1.as_ref().ok_or(Reason::Layout)
    }

    fn compile(&mut self, py: Python<'_>, members: &Members<'_>, columns: &[u8]) -> Read<usize> {
        let parts = [members.database, members.table, members.types, members.sql_types, members.key, columns];
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let made = compiled(py, &self.compile, length, &parts)?;
        let description = Description {
            types: members.types.to_vec(),
            sql_types: members.sql_types.to_vec(),
            key: members.key.to_vec(),
            columns: columns.to_vec(),
        };
        let (types, sql_types) = (description.types.clone(), description.sql_types.clone());
        let new = || SameName { types, sql_types, by_database: HashMap::new(), bytes: 0 };
        let mut named = self.known.remove(members.table).unwrap_or_else(new);
        if named.bytes + length + TABLE_BYTES > SAME_NAME_BYTES {
            named.by_database.clear();
            named.bytes = 0;
        }
        named.bytes += length + TABLE_BYTES;
        let bytes = named.bytes;
        let layouts = named.by_database.entry(members.database.to_vec()).or_default();
        layouts.push((description, made));
        let at = layouts.len() - 1;
        self.known.add(members.table.to_vec(), named, bytes);
        Ok(at)
    }
}

/// Writes the images of the rows of one message.
struct RowWriter<'a> {
    py: Python<'a>,
    value: &'a [u8],
    table: &'a Table,
    convert_cell: &'a Py<PyAny>,
}

impl RowWriter<'_> {
    /// Writes a row that has all columns of its table, in table order.
    fn row(&self, cells: &[Cell], images: &mut Images) -> Read<()> {
        if !self.table.names(cells, self.value) {
            return Err(Reason::Columns);
        }
        images.row.clear();
        images.spans.clear();
        for (cell, column) in cells.iter().zip(&self.table.columns) {
            images.row.push(if images.spans.is_empty() { b'{' } else { b',' });
            images.row.extend_from_slice(&column.quoted);
            images.row.push(b':');
            let start = images.row.len();
            column.reader.write(self.py, &mut images.row, cell.value, self.value, self.convert_cell)?;
            images.spans.push((start, images.row.len()));
        }
        images.row.push(b'}');
        Ok(())
    }

    /// Writes the before image: the cells that were sent, on top of those in the after image.
    fn before(&self, after: &[Cell], before: &[Cell], images: &mut Images, sent: &mut Vec<Option<Token>>) -> Read<()> {
        if before.is_empty() {
            return Ok(());
        }
        let columns = &self.table.columns;
        sent.clear();
        sent.resize(columns.len(), None);
        images.before.clear();
        images.before_spans.clear();
        images.before_spans.resize(columns.len(), None);
        images.changed.clear();
        images.changed_count = 0;
        images.names_key = false;
        let whole = before.len() == columns.len();
        let mut expected = 0;
        for cell in before {
            let index = self.table.column_of(cell, self.value, expected)?;
            if sent[index].is_some() || (whole && index != expected) {
                return Err(Reason::Columns);
            }
            expected = index + 1;
            sent[index] = Some(cell.value);
            let (old, new) = (cell.value, after[index].value);
            if old.of(self.value) != new.of(self.value) {
                if old.odd || new.odd || !surely_differ(old.of(self.value), new.of(self.value)) {
                    return Err(Reason::Cell);
                }
                images.names_key |= self.table.key.contains(&index);
                images.changed_count += 1;
                images.changed.extend_from_slice(&columns[index].avro_name);
            }
        }
        let mut copied = 0;
        for (index, column) in columns.iter().enumerate() {
            let Some(token) = sent[index] else { continue };
            let (start, end) = images.spans[index];
            images.before.extend_from_slice(&images.row[copied..start]);
            let written = images.before.len();
            column.reader.write(self.py, &mut images.before, token, self.value, self.convert_cell)?;
            images.before_spans[index] = Some((written, images.before.len()));
            copied = end;
        }
        images.before.extend_from_slice(&images.row[copied..]);
        images.has_before = if whole { Before::Whole } else { Before::Merged };
        Ok(())
    }
}

/// Returns whether two cells with different spellings must have different values. Numbers can have several spellings,
/// and a boolean can equal a number in Python.
fn surely_differ(one: &[u8], other: &[u8]) -> bool {
    let is_text_or_null = |cell: &[u8]| matches!(cell[0], b'"' | b'n');
    if is_text_or_null(one) || is_text_or_null(other) {
        return true;
    }
    let (first, second) = (decimal(one), decimal(other));
    first.is_some() && second.is_some() && first != second
}

/// Returns a number in its shortest spelling, or None for a boolean, an exponent, or a rare spelling of zero.
fn decimal(cell: &[u8]) -> Option<&[u8]> {
    let digits = cell.strip_prefix(b"-").unwrap_or(cell);
    let is_decimal = digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let is_zero = !digits.iter().any(|byte| (b'1'..=b'9').contains(byte));
    if !is_decimal || (is_zero && cell != b"0") {
        return None;
    }
    if !digits.contains(&b'.') {
        return Some(cell);
    }
    let zeros = cell.iter().rev().take_while(|byte| **byte == b'0').count();
    let short = &cell[..cell.len() - zeros];
    Some(short.strip_suffix(b".").unwrap_or(short))
}

/// Returns the transaction with this name, or none if it is empty or null.
fn transaction(gtid: Option<&[u8]>) -> Read<Option<Transaction<'_>>> {
    match gtid {
        None | Some(b"null") => Ok(None),
        Some(quoted) if memchr::memchr(b'\\', quoted).is_some() => Err(Reason::Spelling),
        Some(quoted) => Ok(Transaction::named(&quoted[1..quoted.len() - 1])),
    }
}

/// Returns what the event contains about a row. For a delete, this is the before image.
fn described<'a>(
    table: &'a Table,
    operation: &'a Operation,
    images: &'a Images,
    is_delete: bool,
    index: usize,
) -> Row<'a> {
    let merged = images.has_before == Before::Merged;
    let has_before = images.has_before != Before::Absent;
    let row = Row {
        index,
        record_key: &table.record_key,
        key: None,
        key_old: None,
        key_kind: &table.key_kind,
        before: has_before.then_some(&images.before),
        after: Some(&images.row),
        before_state: match images.has_before {
            Before::Absent => STATE_NONE,
            Before::Whole => &operation.state,
            Before::Merged => STATE_MERGED,
        },
        after_state: &operation.state,
        changed: has_before.then_some((images.changed_count, &images.changed)),
        unavailable: None,
        notes: if merged { &operation.notes_merged } else { &operation.notes },
        ext: &[avro::NULL],
    };
    if is_delete {
        return Row { before: row.after, after: None, before_state: row.after_state, after_state: STATE_NONE, ..row };
    }
    row
}
